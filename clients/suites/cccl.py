"""CUB and Thrust from CUDA's core compute libraries: headers, compiled by nvcc. The checks are ours: its tests need CMake and Catch2."""

import harness

NAME = "cccl"
VERSION = "13.3, PyPI's"
HOW = "headers; `libcudart.so.13`, nvcc's PTX"
GAPS = {}

PROGRAMS = ["with_cub", "with_thrust"]


def install(home):
    for name in PROGRAMS:
        source = harness.ROOT / f"clients/checks/{name}.cu"
        nvcc = [harness.toolkit() / "bin/nvcc", "-std=c++17", "-O2", "-gencode", "arch=compute_90,code=compute_90"]
        harness.must([*nvcc, "--extended-lambda", "-c", source, "-o", home / f"{name}.o"], home, home / "nvcc.log")


def run(home, library, whole):
    tests = []
    for name in PROGRAMS:
        log = home / f"{name}.log"
        status = harness.run([harness.link(home, library, name)], home, harness.environment(home, library), 600, log)
        tests += harness.printed_checks(log, status)
    return tests
