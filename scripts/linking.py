"""Which runtime programs are linked with: CUDA 12's and 13's, shared and static, alone and together in one process.

The programs are those of tests/linking and two examples. CUDA 12's are compiled with CUDA 12's headers; its nvcc is not
needed, since the newer one compiles for whichever headers it is given.
"""

import subprocess
import sys

sys.dont_write_bytecode = True
import examples

SOURCES = examples.ROOT / "tests/linking"
OUT = examples.TARGET / "linking"
LIB = examples.DIST / "lib"

FLAGS = ["-std=c++17", "-O2", "-gencode", "arch=compute_80,code=compute_80", "-cudadevrt", "none"]
FLAGS += [f"-I{SOURCES}", f"-I{examples.ROOT / 'examples/common'}", "-diag-suppress=177"]

# What is linked for each runtime; as in the README.
STATIC = [f"-L{LIB}"]
SHARED = ["-cudart", "shared", f"-L{LIB}"]
CUDA12_STATIC = [f"-L{LIB / 'cuda12'}", f"-L{LIB}"]
CUDA12_SHARED = ["-cudart", "none", f"-L{LIB}", "-l:libcudart.so.12"]


def cuda12_headers():
    """Where scripts/setup installed them."""
    found = list((examples.ROOT / ".cache/venv").glob("lib/python3*/site-packages/nvidia/cuda_runtime/include"))
    if not found:
        raise SystemExit("CUDA 12's headers are missing: run scripts/setup")
    return [f"-I{found[0]}"]


def nvcc(name, *options):
    """Runs nvcc with an output in OUT; the result is its path."""
    output = OUT / name
    command = [examples.nvcc(), *FLAGS, *options, "-o", output]
    subprocess.run([str(part) for part in command], check=True)
    return output


def compile(name, source, *options):
    """Compiles a source file that may become part of a program or of a plug-in."""
    return nvcc(name, "-c", source, "-Xcompiler", "-fPIC,-fvisibility=hidden", *options)


def build():
    """Every program: its path and arguments."""
    OUT.mkdir(parents=True, exist_ok=True)
    headers = cuda12_headers()
    other = OUT / "libother.a"
    rustc = ["rustc", "--edition", "2024", "-O", "--crate-type", "staticlib", SOURCES / "other.rs", "-o", other]
    subprocess.run([str(part) for part in rustc], check=True)

    plugin = compile("plugin.o", SOURCES / "plugin.cu")
    plugin12 = compile("plugin12.o", SOURCES / "plugin.cu", *headers)
    plugins = [
        nvcc("plugin-static.so", "-shared", plugin, *STATIC),
        nvcc("plugin-shared.so", "-shared", plugin, *SHARED),
        nvcc("plugin-cuda12-static.so", "-shared", plugin12, *CUDA12_STATIC),
        nvcc("plugin-cuda12-shared.so", "-shared", plugin12, *CUDA12_SHARED),
    ]
    yield nvcc("runtimes-together", SOURCES / "main.cu", other, "-ldl", *STATIC), plugins

    cuda12 = compile("cuda12.o", SOURCES / "cuda12.cu", *headers, "-Wno-deprecated-declarations")
    yield nvcc("cuda12-shared", cuda12, *CUDA12_SHARED, "-lcuda"), []
    yield nvcc("cuda12-static", cuda12, *CUDA12_STATIC, "-lcuda"), []

    for example in ["reduction"]:
        source = examples.ROOT / "examples" / example / "main.cu"
        yield nvcc(f"{example}-static", source, *STATIC, "-lcuda"), []
        yield nvcc(f"{example}-cuda12", source, *headers, *CUDA12_SHARED, "-lcuda"), []


def main():
    passed = failed = 0
    for program, arguments in build():
        result = examples.run(program, arguments)
        passed, failed = passed + result.ok, failed + (not result.ok)
        print(f"{'ok  ' if result.ok else 'FAIL'} {result.name:24} {result.seconds:6.2f} s  {result.text}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
