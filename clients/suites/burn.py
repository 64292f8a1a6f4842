"""Burn's backend for CUDA: tensors and their gradients by kernels that CubeCL makes CUDA C++ of, several for most operations, of which it tunes. Its own unit tests."""

import harness

from suites import cubecl

NAME = "burn"
VERSION = "0.19.1"
HOW = "driver through dlopen of every symbol of its CUDA version, by cudarc 0.17; NVRTC's PTX of kernels for each shape"
GAPS = {}


def install(home):
    source = harness.crate(home, "burn-cuda", VERSION)
    harness.must([*cubecl.CARGO, "--no-run"], source, home / "build.log", cubecl.PROFILE, 3600)


def run(home, library, whole):
    # CubeCL's own compiler subtracts more than there is where one of the kernels that this can be tuned to has it so.
    skipped = ["--skip", "test_conv2d_simple_implicit"]
    chosen = [] if whole else ["cube::kernel", "cube_fusion::tensor"]
    return cubecl.tests(home, library, 7200, *skipped, *chosen)
