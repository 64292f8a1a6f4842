"""Blender as a module: images that its path tracer, Cycles, renders on its CUDA device beside those of its CPU device."""

import harness

NAME = "blender"
VERSION = "5.0.1"
HOW = "driver through dlopen; PTX of nvcc for compute_75, 12 MB with 74 kernels, beside machine code for other devices"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    return harness.checks(home, "with_blender.py", [], harness.environment(home, library))
