"""Dr.Jit, which traces arrays and writes PTX itself. The checks are ours: its wheel carries none."""

import harness

NAME = "drjit"
VERSION = "1.5.0"
HOW = "driver through dlopen; PTX that it writes itself"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    return harness.checks(home, "with_drjit.py", [], harness.environment(home, library))
