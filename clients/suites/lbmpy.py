"""lbmpy: lattice Boltzmann methods as formulas, of which pystencils writes kernels. Its own tests that run on devices, beside its CPU's."""

import harness

from suites import cupy

NAME = "lbmpy"
VERSION = "2.0"
HOW = "CuPy, by `anywarp run`; PTX of NVRTC of stencils that pystencils writes as CUDA C++"
GAPS = {}
# Diffusion is left out: 50,000 steps of a lattice of 256,000 cells.
TESTS = ["boundary_handling", "cpu_gpu_equivalence", "lbstep", "shear_flow", "simple_equilibrium_conservation"]


def install(home):
    harness.install_packages(home, harness.requirements(NAME))
    harness.download_source(home, NAME, VERSION)


def run(home, library, whole):
    folder = home / f"{NAME}-{VERSION}/tests"
    files = [f"test_{name}.py" for name in TESTS]
    env = {**cupy.environment(home, library), "XDG_CACHE_HOME": home / "cache"}
    options = ["--timeout=600", "-k", "not _CPU"]
    return harness.pytest(home, folder, env, [*options, *files], 1800, through=harness.redirecting(library))
