"""gprMax: radar that looks into the ground, Maxwell's equations step by step. The checks are ours: its wheel carries none."""

import harness

from suites import pycuda

NAME = "gprmax"
VERSION = "4.0.1"
HOW = "PyCUDA; nvcc's PTX of templates, a kernel for each part of a step"
GAPS = {}


def install(home):
    pycuda.install_with(home, NAME)


def run(home, library, whole):
    return harness.checks(home, "with_gprmax.py", [], pycuda.environment(home, library), 1200)
