"""Halide: pipelines compiled by its own LLVM. The checks are ours: its wheel carries none."""

import harness

NAME = "halide"
VERSION = "21.0.0"
HOW = "driver through dlopen; PTX of its own LLVM"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    return harness.checks(home, "with_halide.py", [], harness.environment(home, library))
