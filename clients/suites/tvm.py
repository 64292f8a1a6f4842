"""Apache TVM: tensor programs with its default schedules, as CUDA C++ for NVRTC. The checks are ours: its wheel carries none."""

import harness

NAME = "tvm"
VERSION = "0.27.0"
HOW = "linked with `libcudart.so.13` and `libcuda.so.1`; NVRTC's PTX"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    toolkit = harness.toolkit()
    env = {
        **harness.environment(home, library, harness.toolkit_libraries()),
        "CUDA_PATH": toolkit,
        # It does not know where CUDA 13 has the headers of the C++ library.
        "TVM_CUDA_NVRTC_EXTRA_OPTS": f"-I{toolkit / 'include/cccl'}",
    }
    return harness.checks(home, "with_tvm.py", [], env, 900)
