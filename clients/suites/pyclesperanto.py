"""pyclesperanto: pictures of microscopes, by kernels that it compiles when they are asked for. The checks are ours: its wheels carry none."""

import harness

NAME = "pyclesperanto"
VERSION = "0.25.1"
HOW = "`anywarp run` redirects the runtime of CUDA 12 that its wheel brings, and asks the NVRTC in it for PTX"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    return harness.redirected_checks(home, library, "with_pyclesperanto.py", [], harness.environment(home, library))
