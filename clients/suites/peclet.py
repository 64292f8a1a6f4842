"""Flows of peclet.flow, whose wheel for CUDA is written with Kokkos. The checks are ours: it carries none."""

import harness

NAME = "peclet"
VERSION = "1.4.0"
HOW = "linked with `libcudart.so.13` and `libcuda.so.1`; PTX of its fat binaries, of Kokkos"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    return harness.checks(home, "with_peclet.py", [], harness.environment(home, library))
