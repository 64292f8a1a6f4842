"""cupmb: meshes of where fields are zero (marching squares and cubes), from templates for the field at hand. Its own tests."""

import harness

from suites import cupy

NAME = "cupmb"
VERSION = "1.1.2"
HOW = "CuPy, by `anywarp run`; PTX of NVRTC of templates in C++, whose blocks add up what they found in one pass"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))
    harness.download_source(home, NAME, VERSION)


def run(home, library, whole):
    env = cupy.environment(home, library)
    folder = home / f"{NAME}-{VERSION}/tests"
    return harness.pytest(home, folder, env, ["--timeout=300", "."], 1800, through=harness.redirecting(library))
