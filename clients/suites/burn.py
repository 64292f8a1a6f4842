"""Burn's backend for CUDA: tensors and their gradients by kernels that CubeCL makes CUDA C++ of, several for most operations, of which it tunes. Its own unit tests."""

import harness

NAME = "burn"
VERSION = "0.19.1"
HOW = "driver through dlopen of every symbol of its CUDA version, by cudarc 0.17; NVRTC's PTX of kernels for each shape"
GAPS = {}

CARGO = ["cargo", "test", "--locked", "--lib"]
# Debugging information is most of what would be written.
PROFILE = {"CARGO_PROFILE_DEV_DEBUG": 0, "CARGO_PROFILE_TEST_DEBUG": 0}


def install(home):
    source = harness.crate(home, "burn-cuda", VERSION)
    harness.must([*CARGO, "--no-run"], source, home / "build.log", PROFILE, 3600)


def run(home, library, whole):
    env = {
        **harness.environment(home, library, harness.toolkit_libraries()),
        **PROFILE,
        # Its kernels include CUDA's headers.
        "CUDA_PATH": harness.toolkit(),
    }
    # CubeCL's own compiler subtracts more than there is where one of the kernels that this can be tuned to has it so.
    skipped = ["--skip", "test_conv2d_simple_implicit"]
    chosen = [] if whole else ["cube::kernel", "cube_fusion::tensor"]
    log = home / "run.log"
    status = harness.run([*CARGO, "--offline", "--", "--test-threads=2", *skipped, *chosen], home / "source", env, 7200, log)
    return harness.cargo_tests(log, status)
