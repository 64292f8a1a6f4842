"""PoCL: OpenCL on devices that CUDA's driver has. Its own tests, those that it runs on such devices, and PyOpenCL's on top of it."""

import re

import harness

NAME = "pocl"
VERSION = "6.0, Debian 13's"
HOW = "linked with `-lcuda`; PTX of LLVM 16 and libdevice, for `sm_75`"
GAPS = {}

PYOPENCL = "2026.1.4"
SOME = ["test_clmath.py", "test_clrandom.py", "test_wrapper.py", "test_arrays_in_structs.py"]
MORE = ["test_algorithm.py", "test_array.py"]


def install(home):
    packages = ["cmake", "ninja-build", "dpkg-dev", "clang-16", "llvm-16-dev", "libclang-16-dev", "libclang-cpp16-dev"]
    packages += ["libhwloc-dev", "ocl-icd-opencl-dev", "ocl-icd-libopencl1", "pkg-config"]
    harness.install_from_debian(home, *packages)
    harness.install_packages(home, harness.requirements(NAME))
    source = harness.debian_source(home, "trixie", NAME, "6.0-6")
    settings = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_POSITION_INDEPENDENT_CODE": "ON",
        "ENABLE_CUDA": "ON",
        "ENABLE_HOST_CPU_DEVICES": "OFF",
        "WITH_LLVM_CONFIG": "/usr/bin/llvm-config-16",
        # In CUDA 13 contexts are made with other parameters.
        "CUDA_TOOLKIT_ROOT_DIR": harness.older_toolkit(home, "include", "nvvm"),
    }
    library = home / "toolkit/lib64"
    environment = {"LIBRARY_PATH": library, "LD_LIBRARY_PATH": library}
    harness.cmake(home, source, settings, environment=environment)
    harness.download_source(home, "pyopencl", PYOPENCL)


def run(home, library, whole):
    build = home / "build"
    (home / "compiled").mkdir(exist_ok=True)
    env = {
        **harness.environment(home, library),
        # It is not installed.
        "POCL_BUILDING": 1,
        "OCL_ICD_VENDORS": build / "ocl-vendors",
        "POCL_DEVICES": "cuda",
        "POCL_CACHE_DIR": home / "compiled",
        "PYOPENCL_NO_CACHE": 1,
    }
    log = home / "ctest.log"
    status = harness.run(["ctest", "--label-regex", "cuda", "--timeout", "300"], build, env, 3600, log)
    tests = own_tests(log, status)
    files = SOME + MORE if whole else SOME
    folder = home / f"pyopencl-{PYOPENCL}/test"
    return tests + harness.pytest(home, folder, env, ["--timeout=300", *files], 3600, "PyOpenCL ")


def own_tests(log, status):
    """What ctest prints of each test."""
    verdicts = {"Passed": "passed", "***Skipped": "skipped"}
    lines = re.findall(r"^ *\d+/\d+ Test +#\d+: (\S+) \.+ *(\S+)", log.read_text(errors="replace"), re.M)
    tests = [harness.Test(name, verdicts.get(verdict, "failed"), f"see {log}") for name, verdict in lines]
    return tests or [harness.Test("its tests as a whole", "failed", f"ended with {status}, see {log}")]
