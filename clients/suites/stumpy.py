"""STUMPY: which parts of a series resemble each other, by kernels that numba-cuda compiles. Its own tests of them, beside plain NumPy."""

import harness

NAME = "stumpy"
VERSION = "1.14.1"
HOW = "numba-cuda; PTX through the driver's linker"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))
    harness.download_source(home, NAME, VERSION)


def run(home, library, whole):
    folder = home / f"{NAME}-{VERSION}"
    files = sorted(file.relative_to(folder) for file in folder.glob("tests/test_gpu_*.py"))
    return harness.pytest(home, folder, harness.environment(home, library), ["--timeout=300", *files], 1800)
