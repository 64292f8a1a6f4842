"""CuPy's wheel for CUDA 12, which has that version's runtime inside."""

import harness

from suites import cupy

NAME = "cupy12"
VERSION = cupy.VERSION
HOW = "`anywarp run` redirects the runtime of CUDA 12 inside its modules; PTX of NVRTC, and of fat binaries"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    nvidia = harness.packages(home) / "nvidia"
    return cupy.checks(home, library, 12, nvidia / "cuda_runtime", nvidia / "cuda_nvrtc/lib")
