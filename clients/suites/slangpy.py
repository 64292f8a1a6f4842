"""SlangPy: shaders in Slang, which becomes CUDA C++ and, by NVRTC, PTX. The checks are ours: its wheel carries none."""

import harness

NAME = "slangpy"
VERSION = "0.43.1"
HOW = "driver and NVRTC through dlopen; NVRTC's PTX"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))
    # It looks for a toolkit as NVIDIA's installer lays it out.
    toolkit = home / "toolkit"
    harness.link_compiler(toolkit / "lib64")
    (toolkit / "include").symlink_to(harness.toolkit() / "include")


def run(home, library, whole):
    env = {**harness.environment(home, library, home / "toolkit/lib64"), "CUDA_PATH": home / "toolkit"}
    return harness.checks(home, "with_slangpy.py", [], env)
