"""Triton: kernels in Python, compiled to PTX for sm_90a by its own LLVM. The checks are ours: its tests want PyTorch."""

import harness

NAME = "triton"
VERSION = "3.9.0"
HOW = "driver through cuda-bindings; PTX 9.4 of its own LLVM"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    # It caches what it compiled in the home folder otherwise.
    env = {**harness.environment(home, library), "TRITON_HOME": home, "TRITON_DEFAULT_FP_FUSION": 1}
    return harness.checks(home, "with_triton.py", [], env)
