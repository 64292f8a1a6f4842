"""XGBoost from its wheel: a library with NVIDIA's runtime inside, and PTX in its fat binaries. The checks are ours: its wheel carries none."""

import harness

NAME = "xgboost"
VERSION = "3.2.0"
HOW = "`anywarp run` redirects the runtime of CUDA 12 inside its library; PTX in fat binaries"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    return harness.redirected_checks(home, library, "with_xgboost.py", [], harness.environment(home, library), 1200)
