"""Builds and runs the examples, and the programs of tests/programs; used by scripts/demo and scripts/test."""

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
BUILT = TARGET / "examples"


def nvcc():
    """The compiler that scripts/setup installed, or the one in $NVCC."""
    if chosen := os.environ.get("NVCC"):
        return chosen
    found = list((ROOT / ".cache/venv").glob("lib/python3*/site-packages/nvidia/cu13/bin/nvcc"))
    if not found:
        raise SystemExit("nvcc is missing: run scripts/setup")
    return str(found[0])


def build(source=ROOT / "examples", out=BUILT):
    """Compiles a folder of CUDA programs with nvcc; raises if one does not compile.

    Each is linked twice: in `out` against dist/lib, in `out`/static with NVIDIA's runtime inside."""
    make = ["make", "-j2", "--no-print-directory", "-C", str(ROOT / "examples")]
    subprocess.run([*make, f"NVCC={nvcc()}", f"LIB={DIST / 'lib'}", f"SOURCE={source}/", f"OUT={out}"], check=True)


def build_rust():
    """Compiles the examples in Rust."""
    subprocess.run(["cargo", "build", "--release", "--locked", "-p", "anywarp-examples"], cwd=ROOT, check=True)


def cuda_names(source=ROOT / "examples"):
    """Every folder with a main.cu."""
    return sorted(main.parent.name for main in source.glob("*/main.cu"))


def rust_names():
    """Every program of the package examples/rust."""
    return sorted(source.stem for source in (ROOT / "examples/rust/src/bin").glob("*.rs"))


@dataclass
class Result:
    """How a run ended: its last line where it succeeded, otherwise what went wrong."""

    name: str
    ok: bool
    text: str
    seconds: float


def path(name):
    """Where the program of an example lies, once built."""
    return TARGET / "release" / name if name in rust_names() else BUILT / name / name


def run(program, arguments=(), env=None, timeout=300):
    """Runs a program on the libraries in dist/lib. It ends its output with `ok: ...` or `failed: ...`.

    A program with NVIDIA's runtime inside is started by `anywarp run`, which needs no help from the environment."""
    name = program.name
    environment = {**os.environ, **(env or {})}
    if program.parent.parent.name == "static":
        environment.pop("LD_LIBRARY_PATH", None)
        command = [DIST / "bin/anywarp", "run", program]
    else:
        environment["LD_LIBRARY_PATH"] = str(DIST / "lib")
        command = [program]
    start = time.monotonic()
    process = subprocess.Popen(
        [*map(str, command), *map(str, arguments)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout)
        late = False
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        late = True
    seconds = time.monotonic() - start
    last = next((line for line in reversed(output.splitlines()) if line.strip()), "(no output)")
    if late:
        return Result(name, False, f"no end after {timeout} s; last line: {last}", seconds)
    if process.returncode == 0 and last.startswith("ok: "):
        return Result(name, True, last.removeprefix("ok: "), seconds)
    status = process.returncode
    ended = f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    return Result(name, False, f"{ended}; {last}", seconds)
