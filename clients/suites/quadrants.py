"""Quadrants, Taichi's successor: Python compiled by its own LLVM. The checks are Taichi's."""

import harness

NAME = "quadrants"
VERSION = "1.3.3"
HOW = "driver through dlopen; PTX of its own LLVM, through cuModuleLoadDataEx"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    return harness.checks(home, "with_taichi.py", [NAME], harness.environment(home, library))
