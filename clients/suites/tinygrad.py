"""tinygrad's own smoke test, once with the PTX that tinygrad writes and once with CUDA C through NVRTC."""

import shutil

import harness

NAME = "tinygrad"
VERSION = "0.14.0"
HOW = "driver through ctypes; PTX of its own, and NVRTC's"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))
    harness.download_source(home, "tinygrad", VERSION)
    # Its host device calls `clang` by that name.
    clang = shutil.which("clang") or next((path for path in map(shutil.which, clangs()) if path), None)
    if not clang:
        raise harness.Unavailable("clang is missing: run scripts/setup")
    (home / "bin").mkdir()
    (home / "bin/clang").symlink_to(clang)


def clangs():
    """Names that Debian gives it."""
    return [f"clang-{version}" for version in range(22, 13, -1)]


def run(home, library, whole):
    source = home / f"tinygrad-{VERSION}"
    tests = []
    for device in ("CUDA:PTX", "CUDA"):
        env = {
            **harness.environment(home, library, harness.toolkit_libraries()),
            "DEV": device,
            "CACHELEVEL": 0,
            "CUDA_PATH": harness.toolkit(),
            "PATH": f"{home / 'bin'}:/usr/bin:/bin",
            "PYTHONPATH": source,
        }
        tests += harness.pytest(home, source, env, ["test/test_tiny.py"], 1200, prefix=f"{device} ")
    return tests
