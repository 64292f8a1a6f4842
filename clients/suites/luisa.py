"""LuisaCompute: functions in Python that become CUDA C++, and PTX by the NVRTC in its wheel. The checks are ours: it carries none."""

import harness

NAME = "luisa"
VERSION = "0.3.7"
HOW = "driver, linked with `libcuda.so.1`; PTX of its own NVRTC, linked with `libcudadevrt`"
GAPS = {}


def install(home):
    # Libraries that its device for CUDA is linked with, beside what it uses of them.
    harness.install_from_debian(home, "libvulkan1", "libsm6", "libice6", "libx11-6", "libxext6")
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    # It caches what it compiled in the home folder otherwise.
    env = {**harness.environment(home, library), "HOME": home}
    return harness.checks(home, "with_luisa.py", [], env)
