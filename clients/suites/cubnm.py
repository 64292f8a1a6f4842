"""cuBNM: networks of brain regions, simulated. The checks are ours: its wheel carries none."""

import harness

NAME = "cubnm"
VERSION = "0.1.0"
HOW = "`anywarp run` redirects NVIDIA's runtime (CUDA 11) inside its module; PTX of its fat binaries"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    return harness.redirected_checks(home, library, "with_cubnm.py", [], harness.environment(home, library))
