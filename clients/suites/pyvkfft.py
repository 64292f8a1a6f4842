"""pyvkfft: VkFFT, which writes a kernel for each transform, for PyCUDA's arrays. Its own tests."""

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
    pycuda.install_with(home, NAME)
    toolkit = harness.whole_toolkit(home / "toolkit")
    harness.link_compiler(toolkit / "lib64")
    env = {"VKFFT_BACKEND": "cuda", "CUDA_PATH": toolkit, "PATH": harness.path(toolkit / "bin")}
    harness.add_packages(home, "--no-build-isolation", "--no-binary=pyvkfft", f"pyvkfft=={VERSION}", environment=env, log="build.log")
    (home / "tests").mkdir()
    (home / "tests/quick.py").write_text(PLUGIN)


def run(home, library, whole):
    env = pycuda.environment(home, library, harness.toolkit_libraries())
    options = ["-k", ALL if whole else SOME, "--timeout=3600", "--pyargs", "pyvkfft.test.test_fft"]
    if not whole:
        env["PYTHONPATH"] = home / "tests"
        options = ["-p", "quick", *options]
    return harness.pytest(home, home, env, options, 7200, through=harness.redirecting(library))
