"""mojolearn: machine learning in Mojo. Its own verifier, which compares the bits of what it computes with those that GPUs of three makers gave."""

import re

import harness

NAME = "mojolearn"
VERSION = "0.8.62"
HOW = "dlopen; PTX of Mojo's own LLVM for `sm_80`, a module for each of some 4,000 kernels"
GAPS = {}


def install(home):
    harness.install_packages(home, harness.requirements(NAME))


def run(home, library, whole):
    """A kind of model is a test, and those that it was given for inference alone are one more."""
    log = home / "run.log"
    verify = [harness.python(home), "-m", "mojolearn", "verify", "--cell-timeout", "600"]
    verify += [] if whole else ["--quick"]
    status = harness.run(verify, home, harness.environment(home, library), 5400, log)
    text = log.read_text(errors="replace")
    parts = r"verified (\d+) of \d+ cell parts \((\d+) divergent, (\d+) owed, (\d+) refused"
    tests = []
    for name, verified, *others in re.findall(rf"^\s+\[\d+/\d+\] (\S+) \S+: {parts}", text, re.M):
        is_right = not any(map(int, others))
        verdict = ("passed" if int(verified) else "skipped") if is_right else "failed"
        tests.append(harness.Test(name, verdict, f"see {log}"))
    models = re.search(r"^\| portable models +\| +\d+ \| +(\d+) \| +(\d+) \| +(\d+) \| +(\d+) ", text, re.M)
    is_right = models and int(models[1]) and not any(map(int, models.groups()[1:]))
    tests.append(harness.Test("portable models", "passed" if is_right else "failed", f"see {log}"))
    if status != 0:
        tests.append(harness.Test("as a whole", "failed", f"ended with {status}, see {log}"))
    return tests
