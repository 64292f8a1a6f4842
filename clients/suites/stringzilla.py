"""StringZilla's wheel for CUDA: distances and alignments of many strings. The checks are ours: it carries none."""

import harness

NAME = "stringzilla"
VERSION = "5.3.2"
HOW = "`anywarp run` redirects the runtime of CUDA 12 that its wheel brings; PTX of its fat binaries"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    return harness.redirected_checks(home, library, "with_stringzilla.py", [], harness.environment(home, library))
