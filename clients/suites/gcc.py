"""GCC's offloading to GPUs: OpenACC and OpenMP in C, C++ and Fortran become PTX when a program is linked. The tests are GCC's own, of libgomp."""

import re
import shutil
import warnings
from concurrent.futures import ThreadPoolExecutor

import harness

NAME = "gcc"
VERSION = "12.2"
HOW = "dlopen, by libgomp; PTX through the driver's linker"
GAPS = {
    r"kernels-loop-g\.c": "GCC itself does not compile it, with debug information",
    r"(fortran|c\+\+/).*does not compile": "Debian's compiler has no Fortran library for devices; aliases, stacks",
}

# Compilers by the suffix of a source, with what is asked of them.
COMPILERS = {".c": "gcc-12", ".C": "g++-12"} | dict.fromkeys((".f", ".F", ".f90", ".F90", ".f95", ".F95"), "gfortran-12")
# The folders of a selection, and all, with how the names of files begin. Without optimization (`-O0`) lanes are handed addresses of each other's
# local variables, each of which leads to a lane's own on a GPU.
COMMON = "libgomp.oacc-c-c++-common"
SOME = {COMMON: "", "libgomp.oacc-c": "", "libgomp.c": "target-", "libgomp.c-c++-common": "target-"}
ALL = {**SOME, "libgomp.oacc-c++": "", "libgomp.oacc-fortran": "", "libgomp.c++": "target-", "libgomp.fortran": "target"}
# What a test may want that we do not have.
WANTED = {"openacc_cublas", "openacc_radeon_accel_selected", "openacc_host_selected"}


def install(home):
    harness.install_from_debian(home, "gcc-12-offload-nvptx", "g++-12", "gfortran-12")
    # Only the source's tests are wanted, and not what the package depends on.
    download = ["apt-get", "download", "-o", "APT::Sandbox::User=root", "gcc-12-source"]
    harness.must(download, home, home / "source.log")
    archive = next(home.glob("gcc-12-source_*.deb"))
    harness.must(["dpkg-deb", "-x", archive, home / "package"], home, home / "source.log")
    source = next((home / "package/usr/src/gcc-12").glob("gcc-12*.tar.xz"))
    wanted = ["*/libgomp/testsuite/*", "*/include/gomp-constants.h", "*/gcc/testsuite/*/goacc/*"]
    unpack = ["tar", "xJf", source, "--strip-components=1", "--wildcards", *wanted]
    harness.must(unpack, home, home / "source.log")
    archive.unlink()
    shutil.rmtree(home / "package")


def run(home, library, whole):
    suite = home / "libgomp/testsuite"
    folders = (ALL if whole else SOME).items()
    sources = [file for folder, start in folders for file in sorted((suite / folder).glob(f"{start}*"))]
    parts = {other for file in sources for other in Directives(file.read_text(errors="replace")).sources()}
    tests = [file for file in sources if file.suffix in COMPILERS and file.name not in parts]
    shutil.rmtree(home / "run", ignore_errors=True)
    with ThreadPoolExecutor(2) as pool:
        return [test for test in pool.map(lambda file: outcome(home, library, file), tests) if test]


class Directives:
    """What a test says of itself to the program that runs GCC's tests."""

    def __init__(self, text):
        inner = r"[^{}]|\{[^{}]*\}"
        self.said = re.findall(rf"\{{ *dg-([\w-]+)((?:{inner}|\{{(?:{inner})*\}})*)\}}", text)

    def of(self, *names):
        """The operands of each directive of these names that is meant for our device."""
        return [rest.strip() for name, rest in self.said if name in names and self.is_meant(rest)]

    @staticmethod
    def is_meant(rest):
        target = re.search(r"\{ *(?:target +)?(.*?) *\}\s*$", rest)
        if "xfail" in rest:
            return False
        if not target:
            return True
        condition = re.sub(r"[{}]", " ", target[1])
        others = r"openacc_(host|radeon_accel)_selected|offload_device_(any_intel_mic|shared_as)"
        others += r"|run_expensive_tests|lto\b|this-really-should-fail"
        return not re.search(rf"(?<!! )\b({others})", condition) and not re.search("! *openacc_nvidia", condition)

    def strings(self, *names):
        """Their quoted words, with what a backslash says in Tcl."""
        words = [re.search(r'"((?:[^"\\]|\\.)*)"', rest) for rest in self.of(*names)]
        escapes = {"n": "\n", "r": "\r", "t": "\t"}
        return [re.sub(r"\\(.)", lambda it: escapes.get(it[1], it[1]), word[1], flags=re.S) for word in words if word]

    def sources(self):
        """Other files that it is compiled with."""
        return [name for rest in self.of("additional-sources") for name in re.findall(r"[\w.+-]+", rest)]

    def runs(self):
        """Whether it is to be run at all, on our device."""
        kinds = [rest.split()[0] for name, rest in self.said if name == "do"]
        skips = [rest for name, rest in self.said if name == "skip-if"]
        # For other devices or levels, or unless something is defined as it is here.
        others = r'radeon|host_selected|MEM_SHARED=1|"-O0"|"\*" *\} *\{ *"-D'
        skipped = any(not re.search(others, rest) for rest in skips)
        meant = [rest for name, rest in self.said if name == "do" and self.is_meant(rest)] or not kinds
        wanted = " ".join(self.of("require-effective-target"))
        return (not kinds or "run" in kinds) and meant and not skipped and not any(name in wanted for name in WANTED)


def outcome(home, library, file):
    """What becomes of one test: it compiles, and ends as it says; `None` for what is none."""
    text = file.read_text(errors="replace")
    said = Directives(text)
    # Tests that compare times, or wait for long, are left out.
    if not said.runs() or re.search(r'"timer.h"|"usleep.h"|gettimeofday', text):
        return None
    name = f"{file.parent.name}/{file.name}"
    # Of its own: what Fortran's compiler leaves for the next file is called alike in several tests.
    folder = home / "run" / re.sub(r"\W", "-", name)
    folder.mkdir(parents=True)
    shutil.copy(file.parents[1] / COMMON / "subr.ptx", folder)
    options = [option for text in said.strings("options", "additional-options") for option in text.split()]
    options = [option for option in options if not option.startswith("-fopt-info")]
    sources = [file, *(file.parent / other for other in said.sources())]
    language = "-fopenacc" if "oacc" in file.parent.name else "-fopenmp"
    command = [COMPILERS[file.suffix], language, "-foffload=nvptx-none", "-O2", "-w", *options, *sources]
    command += ["-DACC_DEVICE_TYPE_nvidia=1", "-DACC_MEM_SHARED=0"]
    command += [f"-I{folder}" for folder in (file.parents[1] / COMMON, home / "include", harness.toolkit() / "include")]
    command += ["-Wl,--no-as-needed", f"-L{library}", "-lcuda", "-lcudart", "-lm", "-o", folder / "test"]
    log = folder / "log"
    if harness.run(command, folder, {}, 300, log) != 0:
        return harness.Test(name, "failed", f"does not compile, see {log}")
    # What Fortran prints and what libgomp says come in order.
    environment = {**harness.environment(home, library), "ACC_DEVICE_TYPE": "nvidia", "GFORTRAN_UNBUFFERED_ALL": "y"}
    for rest in said.of("set-target-env-var"):
        variable, value = re.match(r'"?([\w]+)"? +"?([^"]*)"?', rest).groups()
        environment[variable] = value
    status = harness.run([folder / "test"], folder, environment, 120, log)
    (folder / "test").unlink()
    should_fail = bool(said.of("shouldfail", "xfail-run-if"))
    output = log.read_text(errors="replace")
    wanted = "".join(said.strings("output"))
    if (status != 0) != should_fail or status == "out of time":
        return harness.Test(name, "failed", f"ended with {status}, see {log}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # What Tcl's expressions have within brackets, Python's may mean something else by one day.
        said = re.search(wanted, output, re.S)
    if not said:
        return harness.Test(name, "failed", f"did not print what it should, see {log}")
    return harness.Test(name, "passed")
