"""gpusw: scores of alignments of sequences, a thread for each pair, by kernels that it writes for the scheme at hand. Its own tests."""

import harness

from suites import cupy

NAME = "gpusw"
VERSION = "0.2.0"
HOW = "CuPy, by `anywarp run`; PTX of NVRTC of kernels made for schemes, alphabets and widths of scores"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))
    harness.download_source(home, NAME, VERSION)


def run(home, library, whole):
    env = cupy.environment(home, library)
    folder = home / f"{NAME}-{VERSION}/tests"
    return harness.pytest(home, folder, env, ["--timeout=300", "."], 900, through=harness.redirecting(library))
