"""cupmb: meshes of where fields are zero (marching squares and cubes), from templates for the field at hand. Its own tests."""

import harness

NAME = "cupmb"
VERSION = "1.1.2"
HOW = "CuPy, by `anywarp run`; PTX of NVRTC of templates in C++, whose blocks add up what they found in one pass"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))
    harness.download_source(home, NAME, VERSION)


def run(home, library, whole):
    env = {
        **harness.environment(home, library, harness.toolkit_libraries()),
        "CUDA_PATH": harness.toolkit(),
        "CUPY_CACHE_DIR": home / "sources",
    }
    folder = home / f"{NAME}-{VERSION}/tests"
    return harness.pytest(home, folder, env, ["--timeout=300", "."], 1800, through=[library.parent / "bin/anywarp", "run"])
