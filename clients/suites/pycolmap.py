"""COLMAP, which makes models of pictures, from its Python wheel for CUDA. The checks are ours: it carries none."""

import harness

NAME = "pycolmap"
VERSION = "4.2.1"
HOW = "linked with `libcudart.so.12`; PTX of its fat binaries"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    # It is linked with cuRAND too, whose functions in kernels are all that it uses.
    environment = harness.environment(home, library, harness.packages(home) / "nvidia/curand/lib")
    return harness.checks(home, "with_pycolmap.py", [], environment, 1200)
