"""era_cudart: the Runtime API in Rust, which ZKsync's prover stands on. Its own unit tests."""

import os

import harness

NAME = "era_cudart"
VERSION = "0.156.2"
HOW = "linked with `libcudart.so.13`, from Rust"
GAPS = {}

CARGO = ["cargo", "test", "--lib"]


def environment(home):
    """It asks nvcc for its version, and Rust for features that only a nightly compiler has without being told to."""
    toolkit = home / "toolkit"
    path = f"{toolkit / 'bin'}:{os.environ['PATH']}"
    return {"CUDA_PATH": toolkit, "PATH": path, "RUSTC_BOOTSTRAP": 1, "CARGO_PROFILE_TEST_DEBUG": 0}


def install(home):
    harness.whole_toolkit(home / "toolkit")
    harness.must([*CARGO, "--no-run"], harness.crate(home, NAME, VERSION), home / "build.log", environment(home))


def run(home, library, whole):
    log = home / "run.log"
    env = {**harness.environment(home, library), **environment(home)}
    status = harness.run([*CARGO, "--offline", "--", "--test-threads=1"], home / "source", env, 300, log)
    return harness.cargo_tests(log, status)
