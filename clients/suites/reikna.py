"""Reikna: algorithms for GPUs as templates over PyCUDA, and its own tests of them."""

import harness

from suites import pycuda

NAME = "reikna"
VERSION = "0.9.0"
HOW = "PyCUDA, with nvcc's PTX of templates"
GAPS = {"test_array_offset": "PyCUDA's arrays take no `data` any more"}
# Its tests of random numbers want such arrays before they begin; those of Fourier transforms take minutes.
SOME = ["test_algorithms", "test_linalg", "test_transformations.py", "test_core"]
MORE = ["test_fft", "test_dht.py", "test_cluda"]


def install(home):
    pycuda.install_with(home, NAME)
    harness.download_source(home, NAME, VERSION)


def run(home, library, whole):
    folder = home / f"reikna-{VERSION}/test"
    return harness.pytest(home, folder, pycuda.environment(home, library), SOME + MORE if whole else SOME, 3600)
