"""LightGBM, whose wheel is for CPUs, built for CUDA from its source distribution. The checks are ours: it carries none."""

import shutil

import harness

NAME = "lightgbm"
VERSION = "4.7.0"
HOW = "linked with `libcudart.so.13`; nvcc's PTX of relocatable code"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))
    source = harness.download_source(home, NAME, VERSION)
    toolkit, nccl = harness.whole_toolkit(home / "toolkit"), harness.packages(home) / "nvidia/nccl"
    (nccl / "lib/libnccl.so").symlink_to("libnccl.so.2")
    settings = {
        "CMAKE_BUILD_TYPE": "Release",
        "USE_CUDA": "ON",
        "BUILD_CLI": "OFF",
        "CUDAToolkit_ROOT": toolkit,
        "CMAKE_CUDA_COMPILER": toolkit / "bin/nvcc",
        "CMAKE_CUDA_ARCHITECTURES": "90",
        "CMAKE_CUDA_RUNTIME_LIBRARY": "Shared",
        "NCCL_ROOT": nccl,
        "BUILD_WITH_SHARED_NCCL": "ON",
    }
    # NCCL is looked for where a system has it.
    environment = {"CPATH": nccl / "include", "PATH": harness.path(home / "venv/bin")}
    harness.cmake(home, source, settings, environment=environment)
    package = harness.packages(home) / "lightgbm"
    shutil.copytree(source / "lightgbm", package)
    (package / "lib").mkdir()
    shutil.copy(source / "lib_lightgbm.so", package / "lib")


def run(home, library, whole):
    environment = harness.environment(home, library, harness.packages(home) / "nvidia/nccl/lib")
    return harness.checks(home, "with_lightgbm.py", [], environment, 1200)
