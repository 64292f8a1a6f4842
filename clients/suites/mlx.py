"""MLX: arrays, functions it compiles, gradients and what transformers are made of. The checks are ours: its wheels carry none."""

import harness

NAME = "mlx"
VERSION = "0.32.4"
HOW = "`anywarp run` redirects the runtime of CUDA 13 inside its library; PTX of its fat binaries, for `sm_120` alone, and NVRTC's"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    return harness.redirected_checks(home, library, "with_mlx.py", [], harness.environment(home, library))
