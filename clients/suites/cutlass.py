"""CUTLASS: its examples, compiled by nvcc, which compare their products with a plain kernel's or the host's."""

import harness

NAME = "cutlass"
VERSION = "4.2.0"
HOW = "headers; `libcudart.so.13` and `cuTensorMapEncodeTiled`, nvcc's PTX for `sm_90a`"
GAPS = {}

# The file of each in the folder of examples, and small sizes: what they compare with is slow on a CPU.
EXAMPLES = {
    "basic_gemm": ("00_basic_gemm/basic_gemm", "128 128 128"),
    "tf32_tensorop_gemm": ("14_ampere_tf32_tensorop_gemm/ampere_tf32_tensorop_gemm", "--m=256 --n=256 --k=128"),
    "sparse_tensorop_gemm": ("15_ampere_sparse_tensorop_gemm/ampere_sparse_tensorop_gemm", ""),
    "gemm_softmax": ("35_gemm_softmax/gemm_softmax", "--m=128 --n=128 --k=64 --batch_count=2 --iterations=1"),
    "hopper_warp_specialized": (
        "48_hopper_warp_specialized_gemm/48_hopper_warp_specialized_gemm",
        "--m=512 --n=512 --k=128 --iterations=1",
    ),
    "hopper_fp8_warp_specialized": (
        "54_hopper_fp8_warp_specialized_gemm/54_hopper_fp8_warp_specialized_gemm",
        "--m=256 --n=256 --k=128 --iterations=1",
    ),
}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))
    packages = harness.packages(home)
    source = packages / "cutlass_library/source"
    includes = [source / "include", source / "tools/util/include", source / "examples/common"]
    includes.append(packages / "nvidia/cu13/include")
    for name, (file, _) in EXAMPLES.items():
        nvcc = [harness.toolkit() / "bin/nvcc", "-std=c++17", "-O2", "-w", "-DNDEBUG", "--expt-relaxed-constexpr"]
        nvcc += ["-gencode", "arch=compute_90a,code=compute_90a", *(f"-I{folder}" for folder in includes)]
        code = [source / f"examples/{file}.cu", "-c", "-o", home / f"{name}.o"]
        harness.must([*nvcc, *code], home, home / f"{name}-nvcc.log")


def run(home, library, whole):
    tests = []
    environment = harness.environment(home, library)
    for name, (_, arguments) in EXAMPLES.items():
        program = harness.link(home, library, name, "-lcuda")
        log = home / f"{name}.log"
        status = harness.run([program, *arguments.split()], home, environment, 600, log)
        passed = status == 0 and "Passed" in log.read_text(errors="replace")
        tests.append(harness.Test(name, "passed" if passed else "failed", f"exit status {status}, see {log}"))
    return tests
