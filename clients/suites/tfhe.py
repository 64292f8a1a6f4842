"""TFHE-rs: computing with encrypted numbers. Its own tests of what it has for devices; some compare with bits that GPUs gave."""

import harness

NAME = "tfhe"
VERSION = "1.8.2"
HOW = "from Rust, linked with `libcudart.so.13`; nvcc's PTX of relocatable code, 60 files that the driver links"
GAPS = {}

CARGO = ["cargo", "test", "--release", "--locked", "--features", "gpu,integer", "--lib"]

# Its build asks for machine code of the device that there is.
COMPILER = """#!/bin/sh
for argument; do
    shift
    case $argument in
    --generate-code=*) argument=--generate-code=arch=compute_90,code=compute_90 ;;
    esac
    set -- "$@" "$argument"
done
exec {} "$@"
"""


def environment(home):
    """Where it finds compiler and libraries; its build asks the device what it is."""
    toolkit = home / "toolkit"
    return {
        "PATH": harness.path(toolkit / "bin"),
        "LIBRARY_PATH": toolkit / "lib64",
        "LD_LIBRARY_PATH": toolkit / "lib64",
    }


def install(home):
    harness.install_from_debian(home, "cmake")
    toolkit = harness.whole_toolkit(home / "toolkit")
    compiler = toolkit / "bin/nvcc"
    compiler.unlink()
    compiler.write_text(COMPILER.format(harness.toolkit() / "bin/nvcc"))
    compiler.chmod(0o755)
    source = harness.crate(home, NAME, VERSION)
    harness.must([*CARGO, "--no-run"], source, home / "build.log", environment(home), 7200)


def run(home, library, whole):
    """Most of all its tests are of integers, which take minutes each here."""
    env = {**environment(home), **harness.environment(home, library)}
    chosen = ["core_crypto::gpu", "--skip", "noise_distribution"]
    # What takes long: thousands of keys switched, parameters of all sizes, many streams at once.
    long = ["lwe_keyswitch", "bootstrapping", "parallel_streams", "packing"]
    chosen += [] if whole else [word for name in long for word in ("--skip", name)]
    log = home / "run.log"
    command = [*CARGO, "--offline", "--", "--test-threads=1", *chosen]
    return harness.cargo_tests(log, harness.run(command, home / "source", env, 14400 if whole else 1800, log))
