"""OpenMM, molecules: forces and trajectories on its CUDA platform beside its reference platform."""

import harness

NAME = "openmm"
VERSION = "8.6.1"
HOW = "linked with libcuda.so.1; PTX of NVRTC"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    cufft = next(harness.packages(home).glob("nvidia/cu13/lib"))
    env = harness.environment(home, library, harness.toolkit_libraries(), cufft)
    return harness.checks(home, "with_openmm.py", [], env)
