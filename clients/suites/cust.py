"""cust: the driver's API in safe Rust, older than cudarc. Its own unit tests."""

import harness

NAME = "cust"
VERSION = "0.3.2"
HOW = "linked with `-lcuda`, from Rust; a PTX file"
GAPS = {}

CARGO = ["cargo", "test", "--lib"]


def environment(home):
    """Where it finds headers and the library that it links."""
    return {"CUDA_LIBRARY_PATH": home / "toolkit", "LIBRARY_PATH": home / "toolkit/lib64", "CARGO_PROFILE_TEST_DEBUG": 0}


def install(home):
    harness.build_crate(home, NAME, VERSION, CARGO, environment(home))


def run(home, library, whole):
    return harness.run_crate(home, library, CARGO, environment(home), 300)
