"""cuda-bindings and cuda-core, NVIDIA's own Python. Their wheels carry no tests: `checks/with_cuda_core.py` is ours."""

import shutil

import harness

NAME = "cuda-core"
VERSION = "1.2.2"
HOW = "driver through cuGetProcAddress; NVRTC's PTX"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    env = harness.environment(home, library, harness.toolkit_libraries())
    checks = harness.ROOT / "clients/checks/with_cuda_core.py"
    copy = shutil.copy(checks, home)
    return harness.pytest(home, home, env, [copy], 300)
