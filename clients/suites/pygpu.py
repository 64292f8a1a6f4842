"""pygpu, Theano's arrays for GPUs, over libgpuarray, which makes a kernel of each expression: Debian's packages, with their own tests."""

import harness

NAME = "pygpu"
VERSION = "0.7.6"
HOW = "driver through dlopen; NVRTC's PTX of kernels that it makes of expressions"
GAPS = {}


def install(home):
    harness.install_from_debian(home, "python3-pygpu", "python3-pytest")
    # Debian's interpreter, which these packages are for.
    harness.python(home).parent.mkdir(parents=True)
    harness.python(home).symlink_to("/usr/bin/python3")
    # It knows NVRTC by the name that development packages give it.
    harness.link_compiler(home / "nvrtc")


def run(home, library, whole):
    env = {**harness.environment(home, library, home / "nvrtc"), "DEVICE": "cuda"}
    modules = ["basic", "elemwise", "gpu_ndarray", "operations", "reduction", "tools"]
    return harness.pytest(home, home, env, ["--pyargs", *(f"pygpu.tests.test_{name}" for name in modules)], 900)
