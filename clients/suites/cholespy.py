"""cholespy: sparse systems solved by Cholesky's factors, whose rows wait for each other on the device. The checks are ours: its wheels carry none."""

import harness

NAME = "cholespy"
VERSION = "2.2.0"
HOW = "dlopen; nvcc's PTX inside, of CUDA 10.1; threads that poll what those of other blocks store"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    return harness.checks(home, "with_cholespy.py", [], harness.environment(home, library))
