"""PyCUDA, built against our library, and its own tests. Its nvcc makes PTX where PyCUDA asks for machine code."""

import os

import harness

NAME = "pycuda"
VERSION = "2026.1"
HOW = "linked with -lcuda, from C++; nvcc's PTX through cuModuleLoadDataEx"
GAPS = {}

NVCC = """#!/bin/sh
# PyCUDA compiles NAME.cu in its folder with --cubin and reads NAME.cubin, which may be PTX.
for argument; do
    shift
    case $argument in
    --cubin) argument=--ptx ;;
    *.cu) name=${{argument%.cu}} ;;
    esac
    set -- "$@" "$argument"
done
"{nvcc}" -I "{headers}" "$@" || exit
if [ -n "$name" ] && [ -f "$name.ptx" ]; then cp "$name.ptx" "$name.cubin"; fi
"""


def more_packages(home):
    """What of NVIDIA's toolkit the client's own environment has."""
    return harness.packages(home) / "nvidia/cu13"


def install(home):
    harness.install_packages(home, harness.requirements(NAME))
    source = harness.download_source(home, "pycuda", VERSION)
    toolkit, library = harness.toolkit(), harness.ROOT / "dist/lib"
    # The profiler's header and cuRAND are in packages of their own. Of cuRAND it takes what kernels include, and tables.
    more = more_packages(home)
    options = [
        f"--cuda-root={toolkit}",
        f"--cuda-inc-dir={toolkit / 'include'},{more / 'include'}",
        f"--curand-lib-dir={more / 'lib'}",
        "--curand-libname=:libcurand.so.10",
    ]
    configure = [harness.python(home), "configure.py", *options, f"--cudadrv-lib-dir={library}"]
    harness.must(configure, source, home / "configure.log")
    build = [harness.python(home), "-m", "pip", "install", "--no-build-isolation", "--no-deps", "."]
    harness.must(build, source, home / "build.log", {"PATH": f"{toolkit / 'bin'}:{os.environ['PATH']}"})
    (home / "bin").mkdir()
    (home / "bin/nvcc").write_text(NVCC.format(nvcc=toolkit / "bin/nvcc", headers=more / "include"))
    (home / "bin/nvcc").chmod(0o755)
    # It looks for libcudadevrt.a beside the folder of nvcc.
    (home / "lib64").symlink_to(toolkit / "lib")


def run(home, library, whole):
    (home / "pycuda-cache").mkdir(exist_ok=True)
    env = {
        **harness.environment(home, library, more_packages(home) / "lib"),
        "PATH": f"{home / 'bin'}:{os.environ['PATH']}",
        "PYCUDA_CACHE_DIR": home / "pycuda-cache",
        # Two tests fill 4 GiB of the device, and on the host several times as much, where there is that much.
        "ANYWARP_MEMORY": "4G",
    }
    folder = home / f"pycuda-{VERSION}/test"
    files = ["test_driver.py", "test_cumath.py"]
    if whole:
        files.append("test_gpuarray.py")
    return harness.pytest(home, folder, env, ["--timeout=300", *files], 3600)
