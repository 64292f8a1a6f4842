"""CuPy from its wheels: modules with NVIDIA's runtime inside, and kernels by way of NVRTC and from fat binaries."""

import harness

NAME = "cupy"
VERSION = "14.2.0"
HOW = "`anywarp run` redirects the runtime of CUDA 13 inside its modules; PTX of NVRTC, which it asks for machine code, and of fat binaries"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    return checks(home, library, 13, harness.toolkit(), harness.toolkit_libraries())


def checks(home, library, version, toolkit, nvrtc):
    """What becomes of each check, with the headers and NVRTC of that version of CUDA."""
    env = {
        **harness.environment(home, library, nvrtc),
        "CUDA_PATH": toolkit,
        "CUPY_CACHE_DIR": home / "sources",
    }
    return harness.redirected_checks(home, library, "with_cupy.py", [version], env)
