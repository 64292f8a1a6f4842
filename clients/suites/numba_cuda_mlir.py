"""numba-cuda-mlir: numba-cuda's language with a compiler of its own, by MLIR. The checks are ours: its wheel carries none."""

import harness

NAME = "numba-cuda-mlir"
VERSION = "0.6.0"
HOW = "driver through cuda-bindings and cuda-core; PTX through cuLink*"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    return harness.checks(home, "with_numba_cuda_mlir.py", [], harness.environment(home, library))
