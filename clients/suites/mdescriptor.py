"""MDescriptor: numbers that describe the surroundings of atoms, for models of them. The checks are ours: it carries none."""

import harness

NAME = "mdescriptor"
VERSION = "0.3.5"
HOW = "linked with `libcudart.so.12`; PTX of its fat binaries"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    return harness.checks(home, "with_mdescriptor.py", [], harness.environment(home, library))
