"""Awkward Array: nested lists and records as flat arrays, with a kernel for each operation. Its own tests of what it has for devices."""

import harness

from suites import cupy

NAME = "awkward"
VERSION = "2.8.9"
HOW = "CuPy, by `anywarp run`; PTX of NVRTC of some 200 kernels in C++, many of them templates"
GAPS = {}


def install(home):
    # Later versions have `cuda.compute` for some of it, which has NVIDIA's runtime inside without symbols.
    harness.install_packages(home, harness.requirements(NAME))
    harness.download_source(home, NAME, VERSION)


def run(home, library, whole):
    """Its tests of each kernel, made of the kernels' definitions in Python, and those of whole operations."""
    folder = home / f"awkward-{VERSION}"
    env = cupy.environment(home, library)
    through = harness.redirecting(library)
    options = ["--timeout=300", "-r", "N"]
    tests = harness.pytest(home, folder, env, [*options, "tests-cuda-kernels"], 1800, "kernels ", through)
    # A kernel sets what other blocks of it clear: this way the first block, which sets, runs before the others.
    env["ANYWARP_THREADS"] = 1
    # It has lists of twice as many numbers as there are, and multiplies what lies behind them.
    options += ["-k", "not test_block_boundary_prod_complex13"]
    return tests + harness.pytest(home, folder, env, [*options, "tests-cuda"], 1800, "operations ", through)
