"""CubeCL's runtime for CUDA: kernels written in Rust, which it makes CUDA C++ of. Its own unit tests."""

import harness

NAME = "cubecl"
VERSION = "0.9.0"
HOW = "driver through dlopen of every symbol of CUDA 13.1, by cudarc 0.18; NVRTC's PTX"
GAPS = {}

CARGO = ["cargo", "test", "--locked", "--lib"]
# Debugging information is most of what would be written.
PROFILE = {"CARGO_PROFILE_DEV_DEBUG": 0, "CARGO_PROFILE_TEST_DEBUG": 0}


def install(home):
    source = harness.crate(home, "cubecl-cuda", VERSION)
    harness.must([*CARGO, "--no-run"], source, home / "build.log", PROFILE)


def run(home, library, whole):
    return tests(home, library, 1800)


def tests(home, library, seconds, *chosen):
    """The tests of a crate that stands on CubeCL, whose kernels include CUDA's headers."""
    env = {**harness.environment(home, library, harness.toolkit_libraries()), **PROFILE, "CUDA_PATH": harness.toolkit()}
    log = home / "run.log"
    status = harness.run([*CARGO, "--offline", "--", "--test-threads=2", *chosen], home / "source", env, seconds, log)
    return harness.cargo_tests(log, status)
