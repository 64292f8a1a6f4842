"""Builds and talks to the workers of scripts/bench: each runs the cases of benches/ in one way (benches/common/worker.h)."""

import concurrent.futures
import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import typing
from pathlib import Path

import examples

ROOT, DIST = examples.ROOT, examples.DIST
SOURCES = ROOT / "benches"
WORK = examples.TARGET / "benches"
CALLS = WORK / "calls"
VENV = ROOT / ".cache/bench-venv"
DEBIAN = ["pocl-opencl-icd", "ocl-icd-opencl-dev", "opencl-headers", "libomp-22-dev", "libopenblas0-pthread"]
INTEL = ["intel-opencl-rt==2026.2.0", "intel-cmplr-lib-rt==2026.2.0"]  # the second has what the first links to
OURS = "Anywarp"
PATIENCE = 300  # seconds for one answer

CXX = ["g++", "-std=c++17", "-O2", "-Wno-unused-result"]
# The rules for floating-point numbers that nvcc has by default. A reference may ask for more in its first line.
CLANG = ["clang++-22", "-std=c++17", "-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math",
         "-fveclib=libmvec", "-fopenmp", "-mno-daz-ftz"]


# What tells each to do without AVX-512, by variables that all of them inherit. PoCL cannot be told.
AVX2_ONLY = {"ANYWARP_CPU": "avx2", "CL_CONFIG_CPU_TARGET_ARCH": "core-avx2", "BENCH_FAST": "fast-avx2.so"}


def fast_object():
    """The name of what the C++ of each kernel is compiled to."""
    return os.environ.get("BENCH_FAST", "fast.so")


def is_narrow():
    """Whether AVX-512 is not to be used."""
    return fast_object() == AVX2_ONLY["BENCH_FAST"]


def say(text):
    print(f"\033[1m{text}\033[0m", flush=True)


def folders():
    """Every folder that describes cases."""
    return sorted(case.parent.name for case in SOURCES.glob("*/case.cpp"))


def install():
    """The other implementations; what cannot be installed is reported and left out."""
    query = ["dpkg-query", "-W", "-f=${db:Status-Status}\n", *DEBIAN]
    status = subprocess.run(query, capture_output=True, text=True)
    if status.stdout.split() != ["installed"] * len(DEBIAN):
        say(f"Installing Debian packages for the comparison: {' '.join(DEBIAN)}")
        root = [] if os.geteuid() == 0 else ["sudo"]
        subprocess.run([*root, "apt-get", "update", "-q"])
        subprocess.run([*root, "apt-get", "install", "-y", "-q", "--no-install-recommends", *DEBIAN])
    stamp = VENV / "installed"
    if not stamp.exists() or stamp.read_text() != " ".join(INTEL):
        say(f"Installing from PyPI for the comparison: {' '.join(INTEL)}")
        shutil.rmtree(VENV, ignore_errors=True)
        done = subprocess.run([sys.executable, "-m", "venv", VENV]).returncode == 0
        if done and subprocess.run([VENV / "bin/pip", "install", "-q", *INTEL]).returncode == 0:
            stamp.write_text(" ".join(INTEL))


class Build:
    """Commands that make one file each, run side by side; a file newer than its sources stays."""

    def __init__(self):
        self.pool = concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0)))
        self.pending = []

    def add(self, output, sources, command, needed=True):
        self.pending.append((output, needed, self.pool.submit(self.make, output, sources, command)))

    @staticmethod
    def make(output, sources, command):
        """What went wrong, or nothing."""
        sources = [*sources, *(SOURCES / "common").glob("*.h")]
        if output.exists() and all(source.stat().st_mtime <= output.stat().st_mtime for source in sources):
            return ""
        output.parent.mkdir(parents=True, exist_ok=True)
        # Under another name until it is complete: this program may be ended meanwhile.
        partial = output.with_name(f"new-{output.name}")
        command = [str(partial if part == output else part) for part in command]
        try:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        except FileNotFoundError as error:
            return str(error)
        if done.returncode == 0:
            partial.rename(output)
        else:
            output.unlink(missing_ok=True)
            partial.unlink(missing_ok=True)
            return done.stderr.strip() or f"exit status {done.returncode}"
        return ""

    def finish(self):
        """Waits; ends the program where something that is needed could not be made."""
        for output, needed, future in self.pending:
            if problem := future.result():
                print(f"{output.relative_to(WORK)}: {problem if needed else 'left out: ' + problem.splitlines()[-1]}")
                if needed:
                    sys.exit(1)
        self.pool.shutdown()


def add_calls(work):
    """What calls of the Runtime API cost, by whichever runtime the loader finds."""
    source = SOURCES / "calls/main.cu"
    command = [examples.nvcc(), "-O2", "-cudart", "shared", "-cudadevrt", "none", "-gencode", "arch=compute_80,code=compute_80",
               f"-L{DIST / 'lib'}", source, "-o", CALLS]
    work.add(CALLS, [source], command)


def build_calls():
    work = Build()
    add_calls(work)
    work.finish()


def measure_calls(program, folder, rounds=21, **environment):
    """What that program says, nanoseconds by the name of the call, with the libcudart of a folder; RuntimeError if it fails."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder), **environment}
    done = subprocess.run([program, str(rounds)], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{program} with {folder}: {done.stderr.strip()}")
    return {name: float(time) for name, time in (line.split("\t") for line in done.stdout.splitlines())}


def build(peers):
    """What our worker needs, and with `peers` what the others do."""
    work = Build()
    nvcc = examples.nvcc()
    include = Path(nvcc).resolve().parent.parent / "include"
    common = SOURCES / "common"
    for name in folders():
        folder, out = SOURCES / name, WORK / name
        texts = [folder / "case.cpp", folder / "reference.cpp"]
        work.add(out / "case.so", texts, [*CXX, "-fPIC", "-shared", *texts, "-o", out / "case.so"])
        kernels = folder / "kernel.cu"
        if kernels.exists():
            ptx = out / "kernel.ptx"
            work.add(ptx, [kernels], [nvcc, "-ptx", "-O3", "-std=c++17", "-arch=compute_80", kernels, "-o", ptx])
        if peers:
            options = re.match(r"// clang: (-\S+)", texts[1].read_text())
            fast = out / fast_object()
            chosen = [*CLANG, *(options.groups() if options else ()), *(["-march=haswell"] if is_narrow() else ())]
            work.add(fast, texts, [*chosen, "-fPIC", "-shared", *texts, "-o", fast], needed=False)
            if kernels.exists():
                work.add(out / "kernel.cl", [folder / "kernel.cl"], ["cp", folder / "kernel.cl", out / "kernel.cl"])
    source = common / "cuda.cpp"
    work.add(WORK / "cuda", [source], [*CXX, "-I", include, source, "-L", DIST / "lib", "-lcuda", "-ldl", "-o", WORK / "cuda"])
    add_calls(work)
    if peers:
        source = common / "opencl.cpp"
        work.add(WORK / "opencl", [source], [*CXX, source, "-lOpenCL", "-ldl", "-o", WORK / "opencl"], needed=False)
        source = common / "host.cpp"
        work.add(WORK / "host", [source], [*CXX, source, "-ldl", "-o", WORK / "host"], needed=False)
    work.finish()


def blas_kernels():
    """OpenBLAS takes its oldest kernels on processors that it does not know, such as newer ones: says what this one can do."""
    flags = Path("/proc/cpuinfo").read_text().partition("flags")[2].partition("\n")[0].split()
    cores = [("avx512vl", "SkylakeX"), ("avx2", "Haswell")][is_narrow():]
    core = next((core for flag, core in cores if flag in flags), None)
    return {"OPENBLAS_CORETYPE": core} if core else {}


def inherited():
    """The environment, without what it tells OpenBLAS: some machines have all programs take kernels for older processors."""
    return {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}


def vendors(name, library):
    """A folder that tells the OpenCL loader of one implementation only."""
    folder = WORK / f"vendors-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.icd").write_text(f"{library}\n")
    return {"OCL_ICD_VENDORS": str(folder)}


def available(peers, against=None):
    """Program and environment of each implementation that is there, by its name; with another build of ours, whose `dist` this is."""
    found = {OURS: (WORK / "cuda", {"LD_LIBRARY_PATH": str(DIST / "lib")})}
    if against:
        # Code in the cache is found by what its compiler says it is, which a build in progress may not change.
        cache = {"CUDA_CACHE_PATH": str(WORK / "cache-against")}
        found["the other build"] = (WORK / "cuda", {"LD_LIBRARY_PATH": str(against.absolute() / "lib"), **cache})
    if not peers:
        return found
    opencl, host = WORK / "opencl", WORK / "host"
    if opencl.exists():
        if pocl := sorted(Path("/usr/lib").glob("*/libpocl.so.*")):
            found["PoCL"] = (opencl, vendors("pocl", pocl[0]))
        if intel := sorted(VENV.glob("lib/libintelocl.so.*")):
            found["Intel OpenCL"] = (opencl, {**vendors("intel", intel[0]), "LD_LIBRARY_PATH": str(VENV / "lib")})
    if host.exists() and any((WORK / name / fast_object()).exists() for name in folders()):
        found["C++ OpenMP"] = (host, {})
        if blas := sorted(Path("/usr/lib").glob("*/openblas-pthread/libopenblas.so.0")):
            found["OpenBLAS"] = (host, {"BENCH_BLAS": str(blas[0]), **blas_kernels()})
    return found


def belong(processors):
    """In a new process: runs on these processors only, and ends with its parent, however that ends; stopped it would stay."""
    set_death_signal = 1
    ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
    os.sched_setaffinity(0, processors)


class Case(typing.NamedTuple):
    """What a worker says of a case."""

    title: str
    unit: str
    for_many: bool  # only for the section on more threads
    bound: str  # what decides how long it takes: compute, memory or launch


def known(lines):
    """Cases by their names, from the lines that a worker answers `list` with."""
    fields = (line.split("\t") for line in lines if line)
    return {name: Case(title, unit, for_many == "1", bound) for name, title, unit, for_many, bound in fields}


class Worker:
    """A process that is stopped while others have their turn, so that nothing of it spins or sleeps in between."""

    def __init__(self, name, program, environment, threads):
        self.name, self.failed, self.threads = name, {}, threads
        processors = sorted(os.sched_getaffinity(0))[:threads]
        counts = {"ANYWARP_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POCL_MAX_PTHREAD_COUNT"}
        self.process = subprocess.Popen(
            [str(program), str(WORK), *folders()],
            env={**inherited(), **dict.fromkeys(counts, str(threads)), **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: belong(processors),
        )
        os.kill(self.process.pid, signal.SIGSTOP)

    def ask(self, question, lines=1):
        """The answer's lines: so many, or up to an empty one; empty where the process has ended, or took too long."""
        answers = []
        alarm = threading.Timer(PATIENCE, self.process.kill)
        alarm.start()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGCONT)
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{question}\n")
            self.process.stdin.flush()
        while lines is None or len(answers) < lines:
            line = self.process.stdout.readline().rstrip("\n")
            if not line:
                break
            answers.append(line)
        alarm.cancel()
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGSTOP)
        return answers

    def cases(self):
        """Each case by its name."""
        return known(self.ask("list", None))

    def answer(self, question, case):
        """One line; what is wrong is kept and told once. None: nothing to be had."""
        if case in self.failed:
            return None
        answer = (self.ask(question) or [""])[0]
        if not answer or answer.startswith("error"):
            self.failed[case] = answer or f"ended with status {self.process.wait()}"
            print(f"{self.name}, {case}: {self.failed[case]}", flush=True)
            return None
        return None if answer == "absent" else answer

    def check(self, case):
        """Whether one run gave the right results; None: not a case of this worker."""
        answer = self.answer(f"check {case}", case)
        return False if case in self.failed else answer and True

    def measure(self, case, milliseconds):
        """Nanoseconds of one run and its work, or None."""
        answer = self.answer(f"time {case} {milliseconds}", case)
        return answer and tuple(float(number) for number in answer.split())

    def end(self):
        """No more cases: the worker ends by itself."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGCONT)
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()


@contextlib.contextmanager
def started(implementations, threads):
    """A worker for each."""
    workers = [Worker(name, *rest, threads) for name, rest in implementations.items()]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.end()


def version(*command):
    """The first number with points that a command prints, or nothing."""
    with contextlib.suppress(OSError):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0 and (match := re.search(r"\d+(?:\.\d+)+", done.stdout)):
            return match[0]
    return ""


def versions(names):
    """What was compared, by name: the versions of the libraries and compilers that are there."""
    package = lambda name: version("dpkg-query", "-W", "-f=${Version}", name)
    asked = {
        OURS: lambda: version("git", "-C", ROOT, "describe", "--tags") or revision(),
        "PoCL": lambda: package("pocl-opencl-icd"),
        "Intel OpenCL": lambda: INTEL[0].split("==")[1],
        "C++ OpenMP": lambda: "clang " + version("clang++-22", "--version"),
        "OpenBLAS": lambda: package("libopenblas0-pthread"),
    }
    found = {name: asked[name]() for name in names if name in asked}
    found["LLVM"] = version("llvm-config-22", "--version")
    return {name: number for name, number in found.items() if number}


def revision():
    """The commit that is checked out, if this is a repository."""
    with contextlib.suppress(OSError):
        done = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
        return done.stdout.strip()
    return ""
