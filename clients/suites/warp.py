"""Warp: simulations in Python. Its own tests, on its library built anew: the one in its wheel has NVIDIA's runtime inside without symbols."""

import harness

NAME = "warp"
VERSION = "1.19.0"
HOW = "driver through `cuGetProcAddress`, linked with `libcudart.so.13`; NVRTC's PTX of C++ that it makes of Python, and nvcc's of its library"
GAPS = {
    "test_destroyed_context_discards_queued_releases": "frees memory of a pool that a context allocated which is destroyed by then; here that goes with the context",
}

SOME = [
    "cuda", "geometry", "test_array_reduce.py", "test_atomic.py", "test_copy.py", "test_graph.py", "test_rand.py",
    "test_runlength_encode.py", "test_sparse.py", "test_struct.py",
]
# Its tiles are kernels that NVRTC takes seconds for each.
MORE = ["tile"]
WITHOUT = {
    "cubin": "asks for machine code",
    "texture2d_array": "asks for machine code",
    "texture3d_array": "asks for machine code",
    "sample_grad_moderate_cancellation": "asks for machine code",
    "sample_grad_texture_array": "asks for machine code",
    "struct_and_array": "asks for machine code",
    "mathdx": "asks for machine code",
    "priority_timings": "compares times",
    "event_external": "fills arrays in a stream that nobody waits for",
    "olume": "the wheel lacks headers of NanoVDB's",
    "cubql": "the wheel lacks cuBQL",
}
PLUGIN = '''"""Has Warp hand out PTX where it would make machine code."""
import warp

warp.config.cuda_output = "ptx"
'''
COMPILER = """#!/bin/sh
exec /usr/bin/g++ -DWP_DISABLE_CUBQL=1 "$@"
"""


def install(home):
    harness.install_packages(home, harness.requirements(NAME))
    toolkit = harness.whole_toolkit(home / "toolkit")
    harness.link_compiler(toolkit / "lib64")
    for part, folder in (("lib", "lib64"), ("include", "include")):
        for file in (harness.packages(home) / "nvidia/cu13" / part).iterdir():
            (toolkit / folder / file.name).symlink_to(file)
    # By this name its rules know the compiler.
    compiler = home / "bin/g++"
    compiler.parent.mkdir()
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    build = [harness.python(home), harness.ROOT / "clients/checks/build_warp.py", toolkit, compiler]
    harness.must(build, home, home / "build.log", {"NVCC_APPEND_FLAGS": "-DWP_DISABLE_CUBQL=1"}, 3600)
    (home / "tests").mkdir()
    (home / "tests/client_plugin.py").write_text(PLUGIN)


def run(home, library, whole):
    folder = home / "tests"
    env = {
        **harness.environment(home, library, harness.toolkit_libraries()),
        "PYTHONPATH": folder,
        "WARP_CACHE_PATH": home / "sources",
    }
    tests = harness.packages(home) / "warp/tests"
    chosen = " and ".join(["cuda_0", *(f"not {name}" for name in WITHOUT)])
    # -s: tests look at what is written where the process writes.
    options = ["-s", "-p", "client_plugin", "--timeout=300", f"--rootdir={folder}", "-k", chosen]
    return harness.pytest(home, folder, env, [*options, *(tests / name for name in SOME + MORE * whole)], 3600)
