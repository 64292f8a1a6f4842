"""pyfwht: Walsh-Hadamard transforms, built from its source distribution, with shuffles, shared memory and products of halves by `mma`. Its own tests."""

import os

import harness

NAME = "pyfwht"
VERSION = "2.0.1"
HOW = "linked with `libcudart.so.13`; nvcc's PTX"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))
    toolkit = harness.whole_toolkit(home / "toolkit")
    source = harness.download_source(home, NAME, VERSION)
    build = [harness.python(home), "-m", "pip", "install", "--no-build-isolation", "--no-deps", "."]
    environment = {"CUDA_HOME": toolkit, "PATH": f"{toolkit / 'bin'}:{os.environ['PATH']}", "USE_CUDA": 1}
    harness.must(build, source, home / "build.log", environment)


def run(home, library, whole):
    folder = home / f"{NAME}-{VERSION}/tests"
    return harness.pytest(home, folder, harness.environment(home, library), ["--timeout=300", "."], 900)
