"""Eigen: linear algebra in C++ templates, in kernels too, and tensors evaluated by them. Debian's source, with its own tests for CUDA."""

import harness

NAME = "eigen"
VERSION = "3.4.0, Debian 13's"
HOW = "headers; `libcudart.so.13`, nvcc's PTX"
GAPS = {}

# The programs, and which of their parts: those left out take minutes for products of a hundred sizes, or (5) want NaN of a quantile that is a number.
PARTS = {
    "gpu_basic": ["ALL"],
    "cxx11_tensor_argmax_gpu": ["ALL"],
    "cxx11_tensor_cast_float16_gpu": ["ALL"],
    "cxx11_tensor_complex_cwise_ops_gpu": ["ALL"],
    "cxx11_tensor_complex_gpu": ["ALL"],
    "cxx11_tensor_contract_gpu": ["1"],
    "cxx11_tensor_device": ["ALL"],
    "cxx11_tensor_gpu": ["1", "2", "3", "4", "6"],
    "cxx11_tensor_of_float16_gpu": ["ALL"],
    "cxx11_tensor_random_gpu": ["ALL"],
    "cxx11_tensor_reduction_gpu": ["ALL"],
    "cxx11_tensor_scan_gpu": ["ALL"],
}


def install(home):
    harness.install_from_debian(home, "dpkg-dev")
    source = harness.debian_source(home, "trixie", "eigen3", "3.4.0-5")
    folders = [source, source / "test", source / "unsupported", source / "unsupported/test"]
    nvcc = [harness.toolkit() / "bin/nvcc", "-std=c++17", "-O1", "-w", "--expt-relaxed-constexpr"]
    nvcc += ["-gencode", "arch=compute_90,code=compute_90", *(f"-I{folder}" for folder in folders)]
    # It prints two properties of the device that CUDA 13 does not have any more.
    nvcc += ["-DclockRate=l2CacheSize", "-DcomputeMode=l2CacheSize"]
    for name, parts in PARTS.items():
        file = next(source.glob(f"**/test/{name}.cu"))
        chosen = [f"-DEIGEN_TEST_FUNC={name}", *(f"-DEIGEN_TEST_PART_{part}=1" for part in parts)]
        harness.must([*nvcc, *chosen, "-c", file, "-o", home / f"{name}.o"], home, home / f"{name}-nvcc.log")


def run(home, library, whole):
    tests = []
    for name in PARTS:
        log = home / f"{name}.log"
        # `s`: where random numbers start.
        status = harness.run([harness.link(home, library, name), "s42"], home, harness.environment(home, library), 600, log)
        tests.append(harness.Test(name, "passed" if status == 0 else "failed", f"ended with {status}, see {log}"))
    return tests
