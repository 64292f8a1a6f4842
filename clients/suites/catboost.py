"""CatBoost from its wheel: a library with the runtime of CUDA 11 inside, and PTX in its fat binaries. The checks are ours: its wheel carries none."""

import harness

NAME = "catboost"
VERSION = "1.2.10"
HOW = "`anywarp run` redirects the runtime of CUDA 11 inside its library; PTX in fat binaries"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    return harness.redirected_checks(home, library, "with_catboost.py", [], harness.environment(home, library), 1800)
