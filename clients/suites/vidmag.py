"""vidmag: what changes too little to be seen in films, made larger: filters in space and time. Built from its source distribution; its own tests."""

import harness

NAME = "vidmag"
VERSION = "0.2.0"
HOW = "linked with `libcudart.so.13`; nvcc's PTX"
GAPS = {"cuFFT error": "cuFFT has NVIDIA's runtime inside without symbols"}


def cufft(home):
    """Where the client's own environment has cuFFT, which it is linked with."""
    return harness.packages(home) / "nvidia/cu13"


def install(home):
    harness.install_packages(home, harness.requirements(NAME))
    toolkit = harness.whole_toolkit(home / "toolkit")
    for header in (cufft(home) / "include").glob("*cufft*"):
        (toolkit / "include" / header.name).symlink_to(header)
    library = next((cufft(home) / "lib").glob("libcufft.so.*"))
    (toolkit / "lib64/libcufft.so").symlink_to(library)
    source = harness.download_source(home, NAME, VERSION)
    settings = {"CMAKE_CUDA_ARCHITECTURES": "90-virtual", "CMAKE_CUDA_RUNTIME_LIBRARY": "Shared"}
    defined = [f"--config-settings=cmake.define.{name}={value}" for name, value in settings.items()]
    path = harness.path(toolkit / "bin", home / "venv/bin")
    # Without a compiler it is built for CPUs alone, unless it is asked for.
    environment = {"PATH": path, "CUDAToolkit_ROOT": toolkit, "CUDACXX": toolkit / "bin/nvcc", "VIDMAG_CUDA_REQUIRE": 1}
    harness.add_packages(home, "--no-build-isolation", *defined, source, environment=environment, log="build.log")


def run(home, library, whole):
    folder = home / f"{NAME}-{VERSION}"
    env = harness.environment(home, library, cufft(home) / "lib")
    return harness.pytest(home, folder, env, ["--timeout=300", "tests/cuda"], 900)
