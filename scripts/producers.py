#!/usr/bin/env python3
"""Builds and runs the CUDA programs with the code of other compilers, and of nvcc's other modes.

    scripts/producers.py [--all] [NAME...]      programs by name, all by default

Each program is built by one producer, whichever is its turn, or with --all by every one. The last line is
`N passed, M failed`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
import examples

SOURCES = [examples.ROOT / "examples", examples.ROOT / "tests/programs"]
OUT = examples.TARGET / "producers"

# What nvcc is told.
NVCC = {
    "debug": ["-G"],
    "unoptimised": ["-Xcicc", "-O0"],
    "lines": ["-lineinfo"],
    "fast": ["-use_fast_math"],
    "separate": ["-rdc=true"],
    # Machine code only, which carries the PTX that it was assembled from.
    "machine": ["-lineinfo"],
}
ARCH = {"machine": "-gencode arch=compute_90a,code=sm_90a"}
CLANG = {"clang-O0": ["-O0"], "clang-O2": ["-O2"]}

# Programs that mean something else then.
EXCEPT = {
    "fast": {"numbers": "compares exact results"},
    "clang-O0": {
        "process_end": "clang takes kernels back before globals are destroyed",
        "runtime_answers": "clang has no managed variables",
    },
    "clang-O2": {
        "process_end": "clang takes kernels back before globals are destroyed",
        "in_kernels": "an allocation too large is taken to succeed where its memory is not used",
        "runtime_answers": "clang has no managed variables",
    },
    "unoptimised": {"source_lines": "asks for calls that were inlined"},
    "debug": {"source_lines": "asks for calls that were inlined"},
    "machine": {
        "launches": "the linker wants NVIDIA's library that kernels launch kernels with",
        "runtime_answers": "asks for the version of PTX for 8.0",
        "source_lines": "the text that machine code carries does not say which lines it is of",
    },
}


def clang():
    """The compiler that scripts/setup installed."""
    return shutil.which("clang++-22") or shutil.which("/usr/lib/llvm-22/bin/clang++")


def compile_with_clang(options):
    """The command for COMPILE in examples/Makefile."""
    toolkit = Path(examples.nvcc()).parent.parent
    # Clang includes it for its own ends; it is part of a package that nothing here needs.
    headers = OUT / "include"
    headers.mkdir(parents=True, exist_ok=True)
    (headers / "curand_mtgp32_kernel.h").touch()
    return " ".join(
        map(
            str,
            [clang(), "-c", "-x", "cuda", "--offload-arch=sm_80", "--cuda-include-ptx=sm_80", f"--cuda-path={toolkit}"]
            + ["-std=c++17", "-fPIC", "-Wno-unknown-cuda-version", "-I", examples.ROOT / "examples/common"]
            + ["-idirafter", headers, *options],
        )
    )


def build(producer, source, names):
    """Builds some programs of a folder; whether it worked."""
    out = OUT / producer / source.name
    make = ["make", "-j2", "-k", "--no-print-directory", "-C", examples.ROOT / "examples", "shared"]
    make += [f"NVCC={examples.nvcc()}", f"LIB={examples.DIST / 'lib'}", f"SOURCE={source}/", f"OUT={out}"]
    make += ["ONLY=" + " ".join(names)]
    if producer in CLANG:
        make += ["COMPILE=" + compile_with_clang(CLANG[producer])]
    else:
        make += ["EXTRA=" + " ".join(NVCC[producer])]
    if producer in ARCH:
        make += [f"ARCH={ARCH[producer]}"]
    return subprocess.run(list(map(str, make))).returncode == 0


def main():
    everything = "--all" in sys.argv[1:]
    wanted = [argument for argument in sys.argv[1:] if argument != "--all"]
    producers = list(NVCC) + (list(CLANG) if clang() else [])
    passed = failed = turn = 0
    plan = {}
    for source in SOURCES:
        for name in examples.cuda_names(source):
            mine = producers if everything else [producers[turn % len(producers)]]
            turn += 1
            for producer in mine:
                # A program's own options are nvcc's.
                has_options = (source / name / "options").exists()
                if producer in CLANG and has_options:
                    continue
                if (not wanted or name in wanted) and name not in EXCEPT.get(producer, {}):
                    plan.setdefault((producer, source), []).append(name)
    for (producer, source), names in plan.items():
        build(producer, source, names)
        for name in names:
            program = OUT / producer / source.name / name / name
            if not program.exists():
                result = examples.Result(name, False, "does not compile", 0)
            else:
                result = examples.run(program, env={"ANYWARP_LOG": "1"} if os.environ.get("VERBOSE") else None)
            passed += result.ok
            failed += not result.ok
            verdict = "ok  " if result.ok else "FAIL"
            print(f"{verdict} {producer:12} {name:22} {result.seconds:6.2f} s  {result.text}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
