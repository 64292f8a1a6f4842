"""Taichi: Python compiled by its own LLVM. The checks are ours: its wheel carries none."""

import harness

NAME = "taichi"
VERSION = "1.7.4"
HOW = "driver through dlopen; PTX of LLVM 15, through cuModuleLoadDataEx"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    return harness.checks(home, "with_taichi.py", [NAME], harness.environment(home, library))
