"""What the suites share: installing a pinned client, running its tests on our library, counting what came out.

A suite is a module of `suites` with

    NAME, VERSION    the client
    HOW              how it reaches us: which library it opens, and where its PTX comes from
    GAPS             tests known to fail: a regular expression for their names or messages, and why
    install(home)    puts the client into the folder; called once for each version of the suite
    run(home, library, whole)
                     its tests: a list of `Test`. `whole` asks for all of them rather than a selection
"""

import hashlib
import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import venv
import xml.etree.ElementTree
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache/clients"


class Unavailable(Exception):
    """The client cannot be installed or run here, and why."""


@dataclass
class Test:
    """One of a client's tests: `passed`, `failed` or `skipped`, and the first line of what went wrong."""

    name: str
    verdict: str
    text: str = ""


@dataclass
class Report:
    """What became of a suite's tests."""

    passed: int = 0
    skipped: int = 0
    unexpected: list = field(default_factory=list)
    known: list = field(default_factory=list)
    stale: list = field(default_factory=list)

    def failures(self):
        """What must be looked at: failures nobody knows of, and entries of `GAPS` whose tests all pass."""
        return len(self.unexpected) + len(self.stale)


def matches(pattern, test):
    """Whether an entry of `GAPS` means this test, by its name or by what went wrong."""
    return re.search(pattern, f"{test.name}: {test.text}") is not None


def judge(tests, gaps):
    """Compares the tests with what is known to fail. An entry is stale when its tests ran and none failed."""
    report = Report()
    seen, failing = set(), set()
    for test in tests:
        matching = {pattern for pattern in gaps if matches(pattern, test)}
        if test.verdict == "skipped":
            report.skipped += 1
            continue
        seen |= matching
        if test.verdict == "passed":
            report.passed += 1
        elif matching:
            failing |= matching
            report.known.append(test)
        else:
            report.unexpected.append(test)
    report.stale = sorted(seen - failing)
    return report


def toolkit():
    """The folder of the CUDA compiler and NVRTC that scripts/setup installed."""
    nvcc = os.environ.get("NVCC")
    found = [Path(nvcc).resolve().parent.parent] if nvcc else []
    found += (ROOT / ".cache/venv").glob("lib/python3*/site-packages/nvidia/cu13")
    for folder in found:
        if (folder / "include").is_dir():
            return folder
    raise Unavailable("the CUDA compiler is missing: run scripts/setup")


def toolkit_libraries():
    """Where NVRTC is."""
    for name in ("lib", "lib64"):
        if next((toolkit() / name).glob("libnvrtc.so*"), None):
            return toolkit() / name
    raise Unavailable("NVRTC is missing beside nvcc")


def link_compiler(folder):
    """Puts links to NVRTC into a folder, also by the name that development packages give it, and to what it opens beside itself."""
    folder.mkdir(parents=True, exist_ok=True)
    for library in toolkit_libraries().glob("libnvrtc*.so.*"):
        (folder / library.name).symlink_to(library)
    versioned = next(folder.glob("libnvrtc.so.*"))
    (folder / "libnvrtc.so").symlink_to(versioned.name)
    return folder


COMPILER = """#!/bin/sh
# Who asks for machine code reads it from a file, NAME.cubin of NAME.cu unless it is named, which may be PTX.
for argument; do
    shift
    case $argument in
    -cubin | --cubin) argument=--ptx ;;
    *.cu) name=${{argument%.cu}} ;;
    esac
    set -- "$@" "$argument"
done
"{nvcc}" {options} "$@" || exit
if [ -n "$name" ] && [ -f "$name.ptx" ]; then cp "$name.ptx" "$name.cubin"; fi
"""


def compiler_to_ptx(folder, *headers):
    """Puts an nvcc into a folder that makes PTX where a client asks for machine code, with more folders of headers."""
    folder.mkdir()
    options = " ".join(f"-I '{header}'" for header in headers)
    (folder / "nvcc").write_text(COMPILER.format(nvcc=toolkit() / "bin/nvcc", options=options))
    (folder / "nvcc").chmod(0o755)


def whole_toolkit(folder):
    """A toolkit where build systems find all that they look for: compiler, headers, and our libraries in place of NVIDIA's."""
    library = ROOT / "dist/lib"
    if not (library / "libcudart.so").exists():
        raise Unavailable(f"{library} has no libcudart.so: run make build")
    for name in ("bin", "include", "nvvm"):
        # A tree of links: the compiler looks for the others beside itself.
        shutil.copytree(toolkit() / name, folder / name, copy_function=os.symlink)
    (folder / "lib64").mkdir()
    for file in library.glob("lib*"):
        (folder / "lib64" / file.name).symlink_to(file)
    must(["ar", "rc", folder / "lib64/libcudadevrt.a"], folder, folder / "ar.log")
    return folder


def older_toolkit(home, *parts):
    """A whole toolkit of which some parts, as `include`, are those of CUDA 12 from packages in the client's environment."""
    folder = whole_toolkit(home / "toolkit")
    for part in parts:
        (folder / part).rename(home / f"newer-{part}")
        for older in packages(home).glob(f"nvidia/*/{part}"):
            shutil.copytree(older, folder / part, dirs_exist_ok=True)
    return folder


def link(home, library, name, *libraries):
    """Links NAME.o in the client's folder, which nvcc made, with our runtime; returns the program."""
    nvcc = [toolkit() / "bin/nvcc", "-cudart", "shared", "-cudadevrt", "none", f"-L{library}", *libraries]
    must([*nvcc, home / f"{name}.o", "-o", home / name], home, home / "link.log")
    return home / name


def cmake(home, source, settings, *targets, environment=None):
    """Builds a project, or targets of it, with Ninja in the folder `build`."""
    defined = [f"-D{name}={value}" for name, value in settings.items()]
    must(["cmake", "-G", "Ninja", "-B", home / "build", "-S", source, *defined], home, home / "cmake.log", environment)
    must(["ninja", "-C", home / "build", *targets], home, home / "ninja.log", environment, 5400)


def run(command, folder, environment, seconds, log):
    """Runs a command with its output in a file; whatever it started ends with it. Returns its exit status."""
    with open(log, "w") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=folder,
            env={**os.environ, **{name: str(value) for name, value in environment.items()}},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return "out of time"
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


def must(command, folder, log, environment=None, seconds=1800):
    """Runs a step of an installation."""
    status = run(command, folder, environment or {}, seconds, log)
    if status != 0:
        end = "\n".join(Path(log).read_text(errors="replace").splitlines()[-5:])
        raise Unavailable(f"{Path(str(command[0])).name} failed ({status}), see {log}:\n{end}")


def python(home):
    """The interpreter of a client's virtual environment."""
    return home / "venv/bin/python"


def packages(home):
    """Where the packages of a client's virtual environment lie."""
    return next((home / "venv/lib").glob("python3*/site-packages"))


def install_packages(home, requirements, *options):
    """A virtual environment with the packages, whose list is complete and pinned."""
    venv.create(home / "venv", with_pip=True)
    add_packages(home, "--requirement", requirements, *options)


def add_packages(home, *what, environment=None, log="pip.log"):
    """Installs more packages into a client's virtual environment, without what they depend on."""
    pip = [python(home), "-m", "pip", "install", "--disable-pip-version-check", "--no-deps"]
    must([*pip, *what], home, home / log, environment)


def install_from_debian(home, *names):
    """Installs Debian's packages of these names."""
    apt = [*([] if os.geteuid() == 0 else ["sudo"]), "apt-get"]
    must([*apt, "update"], home, home / "apt.log")
    must([*apt, "install", "-y", "--no-install-recommends", *names], home, home / "apt.log")


def debian_source(home, release, package, version):
    """The source of a package of Debian, with Debian's changes, of a release that need not be this one; returns the folder."""
    targets = output_of(["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)", "Created-By: Packages"])
    here = re.search(r"^VERSION_CODENAME=(\S+)", Path("/etc/os-release").read_text(), re.M).group(1)
    archive = re.search(rf"^{here} (\S+)$", targets, re.M).group(1)
    lists = home / "apt"
    (lists / "partial").mkdir(parents=True)
    key = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (home / "apt.list").write_text(f"deb-src [signed-by={key}] {archive} {release} main\n")
    settings = {"Dir::Etc::SourceList": home / "apt.list", "Dir::Etc::SourceParts": "/dev/null", "Dir::State::Lists": lists}
    apt = ["apt-get", "-o", "APT::Sandbox::User=root", *(f"-o{name}={value}" for name, value in settings.items())]
    must([*apt, "update"], home, home / "apt-source.log")
    must([*apt, "source", f"{package}={version}"], home, home / "apt-source.log")
    shutil.rmtree(lists)
    return next(folder for folder in home.glob(f"{package}-*") if folder.is_dir())


def download_source(home, package, version, environment=None):
    """Unpacks the source distribution of a package, where its tests are; returns the folder. Its build, which pip asks what it needs, has the environment."""
    pip = [python(home), "-m", "pip", "download", "--disable-pip-version-check", "--no-deps"]
    must([*pip, "--no-binary", package, "--dest", home, f"{package}=={version}"], home, home / "download.log", environment)
    archive = next(home.glob(f"{package}-{version}.tar.gz"))
    shutil.unpack_archive(archive, home)
    archive.unlink()
    return home / f"{package}-{version}"


def installed(suite):
    """The folder of an installed client; installs it when it is missing or what is installed has changed."""
    home = CACHE / suite.NAME
    parts = [suite.VERSION, inspect.getsource(suite.install)]
    if requirements(suite.NAME).exists():
        parts.append(requirements(suite.NAME).read_text())
    stamp = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    if (home / "installed").exists() and (home / "installed").read_text() == stamp:
        return home
    print(f"installing {suite.NAME} {suite.VERSION} into {home.relative_to(ROOT)}", flush=True)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    suite.install(home)
    (home / "installed").write_text(stamp)
    return home


def requirements(name):
    """The file that lists a client's packages."""
    return Path(__file__).parent / f"requirements/{name}.txt"


def crate(home, name, version):
    """The source of a crate from crates.io, in the client's folder, as a workspace of its own."""
    project, source = home / "fetch", home / "source"
    (project / "src").mkdir(parents=True)
    (project / "src/lib.rs").touch()
    (project / "Cargo.toml").write_text(
        f"""[package]
name = "fetch"
version = "0.0.0"
edition = "2021"

[dependencies]
{name} = {{ version = "={version}", default-features = false }}

[workspace]
"""
    )
    manifest = project / "Cargo.toml"
    described = json.loads(output_of(["cargo", "metadata", "-q", "--format-version=1", f"--manifest-path={manifest}"]))
    found = next(package["manifest_path"] for package in described["packages"] if package["name"] == name)
    shutil.copytree(Path(found).parent, source)
    shutil.rmtree(project)
    with open(source / "Cargo.toml", "a") as manifest:
        manifest.write("\n[workspace]\n")  # It belongs to no workspace around it.
    return source


def build_crate(home, name, version, cargo, variables):
    """Fetches a crate and compiles its tests, as `cargo` says, beside a toolkit in the client's folder."""
    whole_toolkit(home / "toolkit")
    must([*cargo, "--no-run"], crate(home, name, version), home / "build.log", variables)


def run_crate(home, library, cargo, variables, seconds):
    """The tests of a crate that `build_crate` has compiled, one at a time."""
    log = home / "run.log"
    env = {**environment(home, library), **variables}
    status = run([*cargo, "--offline", "--", "--test-threads=1"], home / "source", env, seconds, log)
    return cargo_tests(log, status)


def cargo_tests(log, status):
    """What `cargo test` prints of each test."""
    verdicts = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}
    text = log.read_text(errors="replace")
    tests = [
        Test(name, verdicts[verdict], f"see {log}")
        for name, verdict in re.findall(r"^test (\S+)(?: - should panic)? \.\.\. (?:.*?)\b(ok|FAILED|ignored)\b", text, re.M | re.S)
    ]
    if "test result:" not in text:
        tests.append(Test("the unit tests as a whole", "failed", f"ended with {status}, see {log}"))
    return tests


def environment(home, library, *more):
    """The environment in which a client finds our library, after it NVRTC if it is asked for."""
    paths = [str(path) for path in (library, *more)]
    return {
        "LD_LIBRARY_PATH": ":".join(paths),
        "CUDA_CACHE_PATH": home / "kernels",
        "PYTHONDONTWRITEBYTECODE": 1,
    }


def path(*folders):
    """The path of programs with these folders before those that it has."""
    return ":".join(str(folder) for folder in (*folders, os.environ["PATH"]))


def redirecting(library):
    """What runs a command with NVIDIA's runtime inside led to ours, and PTX where it asks NVRTC for machine code."""
    return [library.parent / "bin/anywarp", "run"]


def output_of(command):
    """What a command prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def printed_checks(log, status):
    """Tests of a program that prints `ok NAME: ...` or `FAIL NAME: ...` for each; one more where it did not end well."""
    tests = []
    for line in log.read_text(errors="replace").splitlines():
        verdict, _, rest = line.partition(" ")
        name, _, text = rest.partition(": ")
        if verdict in ("ok", "FAIL"):
            tests.append(Test(name, "passed" if verdict == "ok" else "failed", text))
    if status != 0:
        tests.append(Test("as a whole", "failed", f"ended with {status}, see {log}"))
    return tests


def checks(home, program, arguments, env, seconds=600, through=()):
    """What becomes of each check of a program of `clients/checks`, run in the client's environment, through another command if there is one."""
    log = home / f"run-{'-'.join(map(str, arguments))}.log"
    command = [*through, python(home), ROOT / "clients/checks" / program, *arguments]
    return printed_checks(log, run(command, home, env, seconds, log))


def redirected_checks(home, library, program, arguments, env, seconds=600):
    """As `checks`, of a client with NVIDIA's runtime inside."""
    return checks(home, program, arguments, env, seconds, redirecting(library))


def pytest(home, folder, env, arguments, seconds, prefix="", through=()):
    """Runs pytest in a client's environment, through another command if there is one; a run that ends before its time is one more failure."""
    part = re.sub(r"\W+", "-", prefix.strip())
    results, log = home / f"results-{part}.xml", home / f"run-{part}.log"
    results.unlink(missing_ok=True)
    command = [python(home), "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider", f"--junitxml={results}"]
    status = run([*through, *command, *arguments], folder, env, seconds, log)
    whole = Test(f"{prefix or 'pytest'} as a whole", "failed", f"ended with {status}, see {log}")
    if not results.exists():
        return [whole]
    # With 0 or 1 it says how its tests went; with whatever else, as a signal at its very end, none of them failed.
    tests = [] if status in (0, 1) else [whole]
    for case in xml.etree.ElementTree.parse(results).getroot().iter("testcase"):
        name = f"{prefix}{case.get('classname', '')}.{case.get('name')}"
        problem = case.find("failure")
        if problem is None:
            problem = case.find("error")
        if problem is not None:
            text = (problem.get("message") or "").splitlines()
            tests.append(Test(name, "failed", text[0] if text else ""))
        elif case.find("skipped") is not None:
            tests.append(Test(name, "skipped"))
        else:
            tests.append(Test(name, "passed"))
    return tests
