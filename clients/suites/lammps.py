"""LAMMPS: molecular dynamics, whose GPU package has kernels for some fifty potentials. Debian's source, with its own tests of forces."""

import hashlib
import tarfile

import harness

NAME = "lammps"
VERSION = "2022-01-06, Debian 12's"
HOW = "linked with `-lcuda`; nvcc's PTX of fat binaries inside it, a module for each potential"
GAPS = {}

PACKAGES = ["ASPHERE", "CLASS2", "COLLOID", "DIPOLE", "EXTRA-PAIR", "GPU", "KSPACE", "MANYBODY", "MOLECULE"]


def install(home):
    harness.install_from_debian(home, "dpkg-dev", "cmake", "ninja-build", "googletest", "libyaml-dev")
    harness.install_packages(home, harness.requirements(NAME))
    source = harness.debian_source(home, "bookworm", NAME, "20220106.git7586adbb6a+ds1-2")
    source.rename(home / "source")
    # In CUDA 13 contexts are made with other parameters.
    toolkit = harness.older_toolkit(home, "include")
    # It unpacks GoogleTest from an archive.
    googletest = home / "googletest.tar.gz"
    with tarfile.open(googletest, "w:gz") as archive:
        archive.add("/usr/src/googletest", "googletest")
    settings = {
        # Optimized, it takes three times as long to build.
        "CMAKE_BUILD_TYPE": "None",
        "CMAKE_CXX_FLAGS": "-O1 -w",
        **{f"PKG_{package}": "ON" for package in PACKAGES},
        "BUILD_MPI": "OFF",
        "BUILD_OMP": "OFF",
        "FFT": "KISS",
        "GPU_API": "cuda",
        "GPU_ARCH": "sm_90",
        "GPU_PREC": "double",
        "CUDA_TOOLKIT_ROOT_DIR": toolkit,
        "BIN2C": toolkit / "bin/bin2c",
        "CUDA_USE_STATIC_CUDA_RUNTIME": "OFF",
        "CUDA_CUDA_LIBRARY": toolkit / "lib64/libcuda.so",
        # What its host's side takes from CUDA 11.2 on, its kernels take with CUDA 11 alone.
        "CUDA_NVCC_FLAGS": "-DLAL_USE_OLD_NEIGHBOR",
        "ENABLE_TESTING": "ON",
        "GTEST_URL": f"file://{googletest}",
        "GTEST_MD5": hashlib.md5(googletest.read_bytes()).hexdigest(),
    }
    environment = {"LIBRARY_PATH": toolkit / "lib64", "LD_LIBRARY_PATH": toolkit / "lib64"}
    harness.cmake(home, home / "source/cmake", settings, "test_pair_style", environment=environment)


def run(home, library, whole):
    """A file of its tests says what a style of forces gives; those of styles that have no kernels skip themselves."""
    tests = []
    program = home / "build/unittest/force-styles/test_pair_style"
    environment = harness.environment(home, library)
    log, failed = home / "run.log", home / "failed.log"
    failed.write_text("")
    for kind in ("atomic-pair", "kspace", "manybody-pair", "mol-pair"):
        for file in sorted((home / "source/unittest/force-styles/tests").glob(f"{kind}*.yaml")):
            # It looks for files of potentials in the folder where it runs.
            command = [program, file, "--gtest_filter=*.gpu"]
            status = harness.run(command, home / "source/potentials", environment, 100, log)
            text = log.read_text(errors="replace")
            verdict = "failed"
            if status == 0:
                verdict = "skipped" if "[  SKIPPED ]" in text else "passed"
            else:
                with open(failed, "a") as output:
                    output.write(text)
            tests.append(harness.Test(file.stem, verdict, f"ended with {status}, see {failed}"))
    return tests
