"""pyptx: kernels of PTX that Python functions write, an instruction for each call. Its examples for devices of 8.0 and 9.0, which want JAX or PyTorch to be
launched: the checks launch them themselves."""

import harness

NAME = "pyptx"
VERSION = "0.1.1"
HOW = "cuda-bindings; PTX that Python functions write: `mma`, `wgmma`, tensor maps, clusters"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    return harness.checks(home, "with_pyptx.py", [], harness.environment(home, library))
