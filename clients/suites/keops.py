"""KeOps: reductions over pairs of points by formulas, each a kernel that NVRTC makes. Its own tests, those that want NumPy alone."""

import harness

NAME = "keops"
VERSION = "2.3"
HOW = "linked with -lcuda, from C++; `anywarp run` has NVRTC, which it asks for machine code, hand out PTX"
GAPS = {}
TESTS = ["numpy", "complex_numpy", "contiguous_numpy", "lazytensor_gaussian_numpy_inplace"]


def install(home):
    harness.install_packages(home, harness.requirements(NAME))
    # It knows NVRTC by the name that development packages give it.
    harness.link_compiler(home / "nvrtc")


def run(home, library, whole):
    env = {
        **harness.environment(home, library, home / "nvrtc"),
        # Where it looks for headers, and the linker for libraries.
        "CUDA_PATH": harness.toolkit(),
        "LIBRARY_PATH": f"{library}:{home / 'nvrtc'}",
        "KEOPS_CACHE_FOLDER": home / "built",
    }
    files = [f"test_{name}.py" for name in TESTS]
    folder = harness.packages(home) / "pykeops/test"
    return harness.pytest(home, folder, env, files, 900, through=harness.redirecting(library))
