"""What people watch devices with, over `libnvidia-ml.so.1`: NVIDIA's Python for it, nvitop and gpustat. The checks are ours."""

import shutil

import harness

NAME = "monitors"
VERSION = "13.615.71"
HOW = "opens libnvidia-ml.so.1: pynvml, nvitop, gpustat"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    copy = shutil.copy(harness.ROOT / "clients/checks/with_nvml.py", home)
    return harness.pytest(home, home, harness.environment(home, library), [copy], 300)
