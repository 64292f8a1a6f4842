"""era_cudart: the Runtime API in Rust, which ZKsync's prover stands on. Its own unit tests."""

import harness

NAME = "era_cudart"
VERSION = "0.156.2"
HOW = "linked with `libcudart.so.13`, from Rust"
GAPS = {}

CARGO = ["cargo", "test", "--lib"]


def environment(home):
    """It asks nvcc for its version, and Rust for features that only a nightly compiler has without being told to."""
    toolkit = home / "toolkit"
    return {"CUDA_PATH": toolkit, "PATH": harness.path(toolkit / "bin"), "RUSTC_BOOTSTRAP": 1, "CARGO_PROFILE_TEST_DEBUG": 0}


def install(home):
    harness.build_crate(home, NAME, VERSION, CARGO, environment(home))


def run(home, library, whole):
    return harness.run_crate(home, library, CARGO, environment(home), 300)
