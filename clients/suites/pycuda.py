"""PyCUDA, built against our library, and its own tests. Its nvcc makes PTX where PyCUDA asks for machine code."""

import sys

import harness

NAME = "pycuda"
VERSION = "2026.1"
HOW = "linked with -lcuda, from C++; nvcc's PTX through cuModuleLoadDataEx"
GAPS = {}


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
    # What takes minutes is done once for all that stand on it.
    wheel = [harness.python(home), "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", home / "wheel", source]
    harness.must(wheel, home, home / "build.log", {"PATH": harness.path(toolkit / "bin")})
    install_built(home, home)


def install_with(home, name):
    """PyCUDA, as it was built for itself, and the packages of a client that stands on it."""
    built = harness.installed(sys.modules[__name__])
    harness.install_packages(home, harness.requirements(NAME))
    install_built(home, built)
    harness.add_packages(home, "--no-build-isolation", "--requirement", harness.requirements(name))


def install_built(home, built):
    """Puts what was built, and the compiler that it calls, into a client's folder."""
    harness.add_packages(home, next((built / "wheel").glob("pycuda-*.whl")))
    harness.compiler_to_ptx(home / "bin", more_packages(home) / "include")
    # It looks for libcudadevrt.a beside the folder of nvcc.
    (home / "lib64").symlink_to(harness.toolkit() / "lib")


def environment(home, library, *more):
    """The environment in which PyCUDA finds our library and its compiler."""
    (home / "pycuda-cache").mkdir(exist_ok=True)
    return {
        **harness.environment(home, library, more_packages(home) / "lib", *more),
        "PATH": harness.path(home / "bin"),
        "PYCUDA_CACHE_DIR": home / "pycuda-cache",
    }


def run(home, library, whole):
    # Two tests fill 4 GiB of the device, and on the host several times as much, where there is that much.
    env = {**environment(home, library), "ANYWARP_MEMORY": "4G"}
    folder = home / f"pycuda-{VERSION}/test"
    files = ["test_driver.py", "test_cumath.py"]
    if whole:
        files.append("test_gpuarray.py")
    return harness.pytest(home, folder, env, ["--timeout=300", *files], 3600)
