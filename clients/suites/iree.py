"""IREE: programs of tensors in MLIR, compiled to PTX by its own LLVM. The checks are ours: its wheels carry none."""

import harness

NAME = "iree"
VERSION = "3.13.0"
HOW = "driver through dlopen, streams and graphs; PTX of its own LLVM"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    return harness.checks(home, "with_iree.py", [], harness.environment(home, library))
