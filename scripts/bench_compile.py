#!/usr/bin/env python3
"""Times compilation: for each kernel of benches/ from its text to the end of its first run, on our libraries and on the OpenCL
implementations; and our first result from the start of a process, with a kernel that is in the cache and with one that is not.

    scripts/bench_compile.py [--rounds N] [--case NAME]...

Uses what scripts/bench has built in target/benches, and prints JSON: `kernels`, a list of `name` and milliseconds
(`anywarp_ms`, `pocl_ms`, `intel_ms`; null where there is none), and `start` (`warm_first_launch_ms`, `cold_first_launch_ms`).
Medians of N rounds. Each kernel is compiled in a process of its own, after the empty one, or that after another: what is compared is not how long a
compiler takes to start. Nobody may find anything in a cache.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
import bench_workers
from bench_workers import OURS, WORK

KEYS = {OURS: "anywarp_ms", "PoCL": "pocl_ms", "Intel OpenCL": "intel_ms"}
NO_CACHE = {"CUDA_CACHE_DISABLE": "1", "POCL_KERNEL_CACHE": "0"}
# A kernel that every program's first might be.
FIRST = ("saxpy", "saxpy_64k")


def ask(program, environment, folders, questions):
    """The answers of a fresh worker to these questions, one line each."""
    process = subprocess.run(
        [str(program), str(WORK), *folders],
        env={**os.environ, **environment},
        input="".join(f"{question}\n" for question in questions),
        capture_output=True,
        text=True,
    )
    return process.stdout.splitlines()


def cases():
    """Every case with its folder; of a kernel's sizes the usual ones."""
    program, environment = bench_workers.available(peers=False)[OURS]
    found = {}
    for folder in bench_workers.folders():
        if (WORK / folder / "kernel.ptx").exists():
            listed = bench_workers.known(ask(program, environment, [folder], ["list"]))
            found |= {name: folder for name, case in listed.items() if not case.for_many}
    return found


def compile_time(implementation, folder, case):
    """Milliseconds, or None."""
    program, environment = implementation
    before = ("empty", "empty") if folder != "empty" else FIRST
    answers = ask(program, {**environment, **NO_CACHE}, [before[0], folder], [f"first {before[1]}", f"first {case}"])
    try:
        return float(answers[-1]) / 1e6 if len(answers) == 2 else None
    except ValueError:
        return None


def processor_time(process):
    """Milliseconds of processors that a process has had."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11:13]) * 1e3 / os.sysconf("SC_CLK_TCK")


def start_time(cache, then=lambda process: None):
    """Milliseconds from the start of a process to the end of its first kernel, after which it waits for a question, and what `then` says of it."""
    program, environment = bench_workers.available(peers=False)[OURS]
    folder, case = FIRST
    begin = time.monotonic()
    process = subprocess.Popen(
        [str(program), str(WORK), folder],
        env={**os.environ, **environment, "CUDA_CACHE_PATH": cache, "CUDA_CACHE_DISABLE": "0"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    process.stdin.write(f"first {case}\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    spent = time.monotonic() - begin
    said = then(process)
    process.stdin.close()
    process.wait()
    if not answer or not answer[0].isdigit():
        sys.exit(f"{case} did not run: {answer.strip()}")
    return spent * 1e3, said


def idling(process):
    """Milliseconds of processors that a process with a device takes in a second in which nothing is asked of it."""
    time.sleep(0.5)  # who has just run something looks for more for a while
    before = processor_time(process)
    time.sleep(1)
    return processor_time(process) - before


def starts(rounds):
    times = {"warm_first_launch_ms": [], "cold_first_launch_ms": [], "idle_second_ms": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            times["cold_first_launch_ms"].append(start_time(cache)[0])
            warm, idle = start_time(cache, idling)
            times["warm_first_launch_ms"].append(warm)
            times["idle_second_ms"].append(idle)
    return {name: statistics.median(values) for name, values in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--case", action="append", metavar="NAME")
    options = parser.parse_args()
    implementations = {
        name: found for name, found in bench_workers.available(peers=True).items() if name in KEYS
    }
    known = cases()
    chosen = {case: known[case] for case in options.case or known}
    times = {(case, name): [] for case in chosen for name in implementations}
    # In turns, so that a disturbance hits all alike.
    for _ in range(options.rounds):
        for case, folder in chosen.items():
            for name, implementation in implementations.items():
                if (milliseconds := compile_time(implementation, folder, case)) is not None:
                    times[case, name].append(milliseconds)
    rows = []
    for case in chosen:
        medians = {name: statistics.median(times[case, name]) for name in implementations if times[case, name]}
        rows.append({"name": case, **{key: medians.get(name) for name, key in KEYS.items()}})
    print(json.dumps({"kernels": rows, "start": starts(2 * options.rounds + 1)}, indent=1))
    return 0 if all(row["anywarp_ms"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
