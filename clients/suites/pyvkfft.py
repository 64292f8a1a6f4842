"""pyvkfft: VkFFT, which writes a kernel for each transform, for PyCUDA's arrays. Its own tests."""

import os

import harness

from suites import pycuda

NAME = "pyvkfft"
VERSION = "2025.1.1"
HOW = "linked with `-lcuda`; PTX of NVRTC, which it asks for machine code (`anywarp run`), of CUDA C++ that VkFFT writes"
GAPS = {}
# Each transform is a kernel of its own to compile, and cosines take minutes.
SOME = "backend or simple_fft or c2c or pycuda_streams"
ALL = f"{SOME} or r2c or dct or dst"
# What the client's own test runner sets where it is asked to be quick: small transforms of few dimensions.
PLUGIN = """from pyvkfft.test import TestFFT

TestFFT.quick = True
"""


def install(home):
    pycuda.install(home)
    pip = [harness.python(home), "-m", "pip", "install", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]
    harness.must([*pip, "--requirement", harness.requirements(NAME)], home, home / "pip.log")
    toolkit = harness.whole_toolkit(home / "toolkit")
    (toolkit / "lib64/libnvrtc.so").symlink_to(next(harness.toolkit_libraries().glob("libnvrtc.so.*")))
    env = {"VKFFT_BACKEND": "cuda", "CUDA_PATH": toolkit, "PATH": f"{toolkit / 'bin'}:{os.environ['PATH']}"}
    harness.must([*pip, "--no-binary=pyvkfft", f"pyvkfft=={VERSION}"], home, home / "build.log", env)
    (home / "tests").mkdir()
    (home / "tests/quick.py").write_text(PLUGIN)


def run(home, library, whole):
    (home / "pycuda-cache").mkdir(exist_ok=True)
    env = {
        **harness.environment(home, library, pycuda.more_packages(home) / "lib", harness.toolkit_libraries()),
        "PATH": f"{home / 'bin'}:{os.environ['PATH']}",
        "PYCUDA_CACHE_DIR": home / "pycuda-cache",
    }
    options = ["-k", ALL if whole else SOME, "--timeout=3600", "--pyargs", "pyvkfft.test.test_fft"]
    if not whole:
        env["PYTHONPATH"] = home / "tests"
        options = ["-p", "quick", *options]
    return harness.pytest(home, home, env, options, 7200, through=[library.parent / "bin/anywarp", "run"])
