"""pasta-msm: sums of multiples of points on the Pasta curves, by sppark. Its own test, which compares with sums by its CPU."""

import harness

NAME = "pasta-msm"
VERSION = "0.1.5"
HOW = "from Rust; `libcudart_static.a`, nvcc's PTX of C++ templates, launched cooperatively"
GAPS = {}

CARGO = ["cargo", "test", "--release", "--lib"]


def environment(home):
    """It compiles for devices where it finds nvcc."""
    toolkit = home / "toolkit"
    return {"PATH": harness.path(toolkit / "bin"), "LIBRARY_PATH": toolkit / "lib64"}


def install(home):
    harness.build_crate(home, NAME, VERSION, CARGO, environment(home))


def run(home, library, whole):
    return harness.run_crate(home, library, CARGO, environment(home), 600)
