"""Reikna: algorithms for GPUs as templates over PyCUDA, and its own tests of them."""

import os

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
    pycuda.install(home)
    pip = [harness.python(home), "-m", "pip", "install", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]
    harness.must([*pip, "--requirement", harness.requirements(NAME)], home, home / "pip.log")
    harness.download_source(home, NAME, VERSION)


def run(home, library, whole):
    (home / "pycuda-cache").mkdir(exist_ok=True)
    env = {
        **harness.environment(home, library, pycuda.more_packages(home) / "lib"),
        "PATH": f"{home / 'bin'}:{os.environ['PATH']}",
        "PYCUDA_CACHE_DIR": home / "pycuda-cache",
    }
    folder = home / f"reikna-{VERSION}/test"
    return harness.pytest(home, folder, env, SOME + MORE if whole else SOME, 3600)
