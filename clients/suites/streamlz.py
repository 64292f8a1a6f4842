"""StreamLZ: a compressor that runs on devices alone. The checks are ours: it carries none."""

import harness

NAME = "streamlz"
VERSION = "3.7.1"
HOW = "dlopen, from Zig; PTX inside it"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    return harness.checks(home, "with_streamlz.py", [], harness.environment(home, library))
