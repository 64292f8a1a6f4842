"""RISC Zero's arithmetic for proofs, in Rust with kernels in C++ and those of sppark. Its own tests of what it has for devices, beside its CPU's."""

import harness

NAME = "risc0"
VERSION = "3.0.5"
HOW = "linked with `-lcuda` and `libcudart_static.a`, from Rust; nvcc's PTX"
GAPS = {}

CARGO = ["cargo", "test", "--release", "--features", "cuda", "--lib"]


def environment(home):
    """Where it finds compiler and libraries, and the architecture; of itself it asks the device that there is when it is built."""
    toolkit = home / "toolkit"
    return {
        "CUDA_LIBRARY_PATH": toolkit,
        "LIBRARY_PATH": toolkit / "lib64",
        "PATH": harness.path(toolkit / "bin"),
        "NVCC_APPEND_FLAGS": "-arch=sm_80",
    }


def install(home):
    harness.whole_toolkit(home / "toolkit")
    source, env = harness.crate(home, "risc0-zkp", VERSION), environment(home)
    # In the sppark that its lock file has, warps go on to overwrite what others have yet to read: a barrier came later.
    harness.must(["cargo", "update", "-p", "sppark", "--precise", "0.1.16"], source, home / "update.log", env)
    harness.must([*CARGO, "--no-run"], source, home / "build.log", env)


def run(home, library, whole):
    log = home / "run.log"
    env = {**harness.environment(home, library), **environment(home)}
    command = [*CARGO, "--offline", "cuda", "--", "--test-threads=1"]
    return harness.cargo_tests(log, harness.run(command, home / "source", env, 900, log))
