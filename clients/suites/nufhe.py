"""nuFHE: gates on encrypted bits, by Fourier and number-theoretic transforms in shared memory. Its own tests, but for those of speed."""

import os

import harness

from suites import pycuda

NAME = "nufhe"
VERSION = "0.0.3"
HOW = "PyCUDA, by Reikna; nvcc's PTX of templates, with carries and multiplications in assembly"
GAPS = {}


def install(home):
    pycuda.install(home)
    pip = [harness.python(home), "-m", "pip", "install", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]
    harness.must([*pip, "--requirement", harness.requirements(NAME)], home, home / "pip.log")
    harness.download_source(home, NAME, VERSION)


def run(home, library, whole):
    (home / "pycuda-cache").mkdir(exist_ok=True)
    env = {
        **harness.environment(home, library, pycuda.more_packages(home) / "lib"),
        "PATH": f"{home / 'bin'}:{os.environ['PATH']}",
        "PYCUDA_CACHE_DIR": home / "pycuda-cache",
    }
    folder = home / f"{NAME}-{VERSION}/test"
    return harness.pytest(home, folder, env, ["--timeout=300", "-m", "not perf", "."], 1800)
