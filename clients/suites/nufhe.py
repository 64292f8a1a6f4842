"""nuFHE: gates on encrypted bits, by Fourier and number-theoretic transforms in shared memory. Its own tests, but for those of speed."""

import harness

from suites import pycuda

NAME = "nufhe"
VERSION = "0.0.3"
HOW = "PyCUDA, by Reikna; nvcc's PTX of templates, with carries and multiplications in assembly"
GAPS = {}


def install(home):
    pycuda.install_with(home, NAME)
    harness.download_source(home, NAME, VERSION)


def run(home, library, whole):
    folder = home / f"{NAME}-{VERSION}/test"
    return harness.pytest(home, folder, pycuda.environment(home, library), ["--timeout=300", "-m", "not perf", "."], 1800)
