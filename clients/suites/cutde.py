"""cutde: how the ground moves where faults slip, by formulas for triangles. Its own tests, beside its plain Python and known results."""

import shutil

import harness

from suites import pycuda

NAME = "cutde"
VERSION = "26.3.6"
HOW = "PyCUDA; nvcc's PTX of templates in single and double precision, hundreds of numbers live in each thread"
GAPS = {}


def install(home):
    pycuda.install_with(home, NAME)
    source = harness.download_source(home, NAME, VERSION)
    # What is tested is the wheel.
    shutil.rmtree(source / "cutde")


def run(home, library, whole):
    env = {**pycuda.environment(home, library), "CUTDE_USE_BACKEND": "cuda"}
    folder = home / f"{NAME}-{VERSION}"
    return harness.pytest(home, folder, env, ["--timeout=300", "--durations=5", "tests"], 1800)
