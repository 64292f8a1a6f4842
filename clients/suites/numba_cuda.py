"""numba-cuda's own tests, which its wheel carries. Without nvJitLink in its environment it links by the driver."""

import harness

NAME = "numba-cuda"
VERSION = "0.30.4"
HOW = "driver through cuda-bindings and cuda-core; PTX through cuLink*"
GAPS = {
    r"test_declare_device_cabi_(void|pointer)_return": "a declaration with a result that the definition lacks, which nvlink refuses too",
    r"test_ipc": "asks cuda-bindings for a field that this version of it does not have",
    r"CUDAAndCPUCachingTest": "what the client's cache for CPUs holds, not ours",
}
# What works on small inputs and covers the driver; the rest with --all.
SELECTION = [
    "cudadrv.test_cuda_driver", "cudadrv.test_cuda_memory", "cudadrv.test_cuda_ndarray", "cudadrv.test_events",
    "cudadrv.test_streams", "cudadrv.test_managed_alloc", "cudadrv.test_pinned", "cudadrv.test_linker",
    "cudapy.test_array", "cudapy.test_array_args", "cudapy.test_atomics", "cudapy.test_bfloat16_bindings",
    "cudapy.test_complex_kernel", "cudapy.test_constmem", "cudapy.test_cooperative_groups",
    "cudapy.test_device_func", "cudapy.test_fp8_bindings", "cudapy.test_intrinsics", "cudapy.test_math",
    "cudapy.test_print", "cudapy.test_random", "cudapy.test_reduction", "cudapy.test_sm", "cudapy.test_sync",
    "cudapy.test_warp_ops", "doc_examples.test_laplace", "doc_examples.test_reduction",
]
PLUGIN = '''"""What the client's own test runner sets up and pytest does not."""
import pytest


@pytest.fixture(scope="class")
def initialize_from_pytest_config(request):
    request.cls._dump_failed_filechecks = False
'''


def install(home):
    harness.install_packages(home, harness.requirements(NAME))
    folder = home / "tests"
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\nconsider_namespace_packages = true\n")
    (folder / "client_plugin.py").write_text(PLUGIN)


def run(home, library, whole):
    folder = home / "tests"
    env = {**harness.environment(home, library), "PYTHONPATH": folder}
    modules = ["numba.cuda.tests"] if whole else [f"numba.cuda.tests.{name}" for name in SELECTION]
    options = ["-p", "client_plugin", "--benchmark-disable", "--timeout=300", "-n2", "--dist=loadscope"]
    return harness.pytest(home, folder, env, [*options, "--pyargs", *modules], 7200)
