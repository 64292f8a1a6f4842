"""cupoch: clouds of points, meshes and grids with Thrust, for robots. The checks are ours: its wheel carries none."""

import harness

NAME = "cupoch"
VERSION = "0.2.11.0"
HOW = "`anywarp run` redirects the runtime of CUDA 11 inside its module; PTX of its fat binaries"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    return harness.redirected_checks(home, library, "with_cupoch.py", [], harness.environment(home, library))
