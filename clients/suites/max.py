"""MAX: graphs of tensors, compiled for the device with kernels in Mojo, as PTX for sm_90a of Mojo's own LLVM. The checks are ours."""

import harness

NAME = "max"
VERSION = "26.7.0"
HOW = "driver through dlopen; PTX 8.5 of its own LLVM, by its hook for another assembler"
GAPS = {}

PTXAS = """#!/bin/sh
# In place of NVIDIA's assembler, which it runs as `ptxas INPUT -o OUTPUT ...`: the driver takes PTX where machine code is.
cp "$1" "$3"
"""


def install(home):
    harness.install_packages(home, harness.requirements(NAME))
    (home / "ptxas").write_text(PTXAS)
    (home / "ptxas").chmod(0o755)


def run(home, library, whole):
    env = {
        **harness.environment(home, library),
        "MODULAR_NVPTX_COMPILER_PATH": home / "ptxas",
        # It caches what it compiled in the home folder otherwise.
        "HOME": home,
    }
    return harness.checks(home, "with_max.py", [], env, 1200)
