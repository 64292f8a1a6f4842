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
    tools = home / "venv/bin"
    settings = {
        "CMAKE_MAKE_PROGRAM": tools / "ninja",
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
    defined = [f"-D{name}={value}" for name, value in settings.items()]
    # NCCL is looked for where a system has it.
    environment = {"CPATH": nccl / "include"}
    configure = [tools / "cmake", "-G", "Ninja", "-B", home / "build", "-S", source, *defined]
    harness.must(configure, home, home / "cmake.log", environment)
    harness.must([tools / "ninja", "-C", home / "build"], home, home / "ninja.log", environment, 3600)
    package = harness.packages(home) / "lightgbm"
    shutil.copytree(source / "lightgbm", package)
    (package / "lib").mkdir()
    shutil.copy(source / "lib_lightgbm.so", package / "lib")


def run(home, library, whole):
    environment = harness.environment(home, library, harness.packages(home) / "nvidia/nccl/lib")
    return harness.checks(home, "with_lightgbm.py", [], environment, 1200)
