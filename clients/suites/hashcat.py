"""hashcat, Debian's: passwords found again by kernels that it compiles with NVRTC, after its own self-test of each kind."""

import hashlib
import shutil

import harness

NAME = "hashcat"
VERSION = "6.2, Debian's"
HOW = "driver and NVRTC through dlopen, NVML; NVRTC's PTX"
GAPS = {}

# Its number of the kind, what it hashes with, the password, the mask that is searched.
KINDS = [
    (0, hashlib.md5, "warp!", "?l?l?lp!"),
    (100, hashlib.sha1, "lanes", "la?l?l?l"),
    (1400, hashlib.sha256, "war42", "war?d?d"),
    (1700, hashlib.sha512, "block", "?l?lock"),
]


def install(home):
    if not shutil.which("hashcat"):
        harness.install_from_debian(home, "hashcat")
    # It knows NVRTC by the name that development packages give it.
    harness.link_compiler(home / "nvrtc")


def run(home, library, whole):
    env = {**harness.environment(home, library, home / "nvrtc"), "HOME": home}
    tests = []
    for number, algorithm, password, mask in KINDS:
        name = f"{algorithm().name} by mask"
        target, found, log = (home / f"{algorithm().name}.{end}" for end in ("hash", "found", "log"))
        target.write_text(algorithm(password.encode()).hexdigest() + "\n")
        found.unlink(missing_ok=True)
        options = ["--potfile-disable", "--quiet", "--force", "--outfile", found, "--outfile-format", 2]
        command = ["hashcat", "-D", 2, "-m", number, "-a", 3, *options, target, mask]
        status = harness.run(command, home, env, 300, log)
        right = status == 0 and found.exists() and found.read_text().split() == [password]
        tests.append(harness.Test(name, "passed" if right else "failed", f"ended with {status}, see {log}"))
    return tests
