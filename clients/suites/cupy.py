"""CuPy from its wheels: modules with NVIDIA's runtime inside, and kernels by way of NVRTC and from fat binaries. Checks of ours, and its own tests."""

import shutil

import harness

NAME = "cupy"
VERSION = "14.2.0"
HOW = "`anywarp run` redirects the runtime of CUDA 13 inside its modules; PTX of NVRTC, which it asks for machine code, and of fat binaries"
GAPS = {
    r'Failure finding "lib(cublas|cublasLt|cufft|curand|cusolver|cusparse|nvJitLink)\.': "cuRAND and the like have NVIDIA's runtime inside without symbols",
    r"test_dynamical_parallelism\[NVCC": "kernels that launch kernels, which it has nvcc link into machine code",
    "test_free_all_blocks_large_chunk": "what a stream freed is there for others before anybody has waited for the stream",
}

CORE = ["userkernel", "elementwise", "scan", "cub_reduction", "ndarray_scatter", "dlpack", "bfloat16"]
DEVICE = ["device", "driver", "runtime", "memory", "pinned_memory", "stream", "graph", "texture", "compiler", "nvrtc"]
SOME = [
    *(f"cupy_tests/core_tests/test_{name}.py" for name in CORE),
    *(f"cupy_tests/cuda_tests/test_{name}.py" for name in DEVICE),
]
# Each is kernels that NVRTC or nvcc makes of tens of thousands of lines, which takes seconds for each.
MORE = [
    "cupyx_tests/jit_tests",
    *(f"cupy_tests/core_tests/test_{name}.py" for name in ("raw", "reduction", "mdspan", "ndarray_adv_indexing")),
]
# Jitify is deprecated, and takes a minute for each test; a grid that waits for itself is launched as if it did not.
WITHOUT = ["(TestRaw and not no-jitify)", "test_jitify", "test_cg_sync"]


def install(home):
    harness.install_packages(home, harness.requirements(NAME))
    # What is tested is the wheel; without a toolkit its source says what it needs only so.
    source = harness.download_source(home, NAME, VERSION, {"CUPY_INSTALL_USE_STUB": 1})
    for package in ("cupy", "cupyx", "cupy_backends"):
        shutil.rmtree(source / package)
    harness.compiler_to_ptx(home / "bin")


def run(home, library, whole):
    tests = checks(home, library, 13, harness.toolkit(), harness.toolkit_libraries())
    # Two devices: some tests go from one to the other. Of nvcc it asks machine code.
    env = {**environment(home, library), "ANYWARP_DEVICES": 2, "NVCC": home / "bin/nvcc"}
    options = ["--timeout=300", "-n2", "-k", " and ".join(f"not {words}" for words in WITHOUT)]
    files = [*SOME, *MORE] if whole else SOME
    through = harness.redirecting(library)
    return tests + harness.pytest(home, home / f"cupy-{VERSION}/tests", env, [*options, *files], 7200, "its own ", through)


def checks(home, library, version, toolkit, nvrtc):
    """What becomes of each check, with the headers and NVRTC of that version of CUDA."""
    env = environment(home, library, toolkit, nvrtc)
    return harness.redirected_checks(home, library, "with_cupy.py", [version], env)


def environment(home, library, toolkit=None, nvrtc=None):
    """The environment in which CuPy finds our library, headers and NVRTC: those that scripts/setup installed, or others."""
    return {
        **harness.environment(home, library, nvrtc or harness.toolkit_libraries()),
        "CUDA_PATH": toolkit or harness.toolkit(),
        "CUPY_CACHE_DIR": home / "sources",
    }
