"""pyfwht: Walsh-Hadamard transforms, built from its source distribution, with shuffles, shared memory and products of halves by `mma`. Its own tests."""

import harness

NAME = "pyfwht"
VERSION = "2.0.1"
HOW = "linked with `libcudart.so.13`; nvcc's PTX"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))
    toolkit = harness.whole_toolkit(home / "toolkit")
    source = harness.download_source(home, NAME, VERSION)
    environment = {"CUDA_HOME": toolkit, "PATH": harness.path(toolkit / "bin"), "USE_CUDA": 1}
    harness.add_packages(home, "--no-build-isolation", source, environment=environment, log="build.log")


def run(home, library, whole):
    folder = home / f"{NAME}-{VERSION}/tests"
    return harness.pytest(home, folder, harness.environment(home, library), ["--timeout=300", "."], 900)
