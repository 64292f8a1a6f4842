"""gpusw: scores of alignments of sequences, a thread for each pair, by kernels that it writes for the scheme at hand. Its own tests."""

import harness

NAME = "gpusw"
VERSION = "0.2.0"
HOW = "CuPy, by `anywarp run`; PTX of NVRTC of kernels made for schemes, alphabets and widths of scores"
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
    return harness.pytest(home, folder, env, ["--timeout=300", "."], 900, through=[library.parent / "bin/anywarp", "run"])
