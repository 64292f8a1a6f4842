"""An interpreter reaches libraries with NVIDIA's runtime inside: run by `anywarp run`, ends with `N passed, M failed`.

    dist/bin/anywarp run python scripts/redirection.py LIBRARY     the plug-in of tests/programs/opened_library
"""

import ctypes
import multiprocessing
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

COUNT = 5000


def transform(path):
    """Opens the library as an extension module would be, and lets it compute; raises if the results are wrong."""
    library = ctypes.CDLL(path)
    values = (ctypes.c_int * COUNT)(*range(COUNT))
    code = library.library_transform_host(values, COUNT, 3, 7)
    if code != 0:
        raise RuntimeError(f"code {code}")
    wrong = [i for i in range(COUNT) if values[i] != 3 * i + 7]
    if wrong:
        raise RuntimeError(f"value {wrong[0]} is {values[wrong[0]]}")


def in_children(path):
    """A new process inherits the redirection, however it is started."""
    for method in ["spawn", "forkserver"]:
        with multiprocessing.get_context(method).Pool(1) as pool:
            pool.apply(transform, [path])


def in_threads(path):
    """The first call may come from several threads at once."""
    failures = []

    def attempt():
        try:
            transform(path)
        except RuntimeError as failure:
            failures.append(failure)

    threads = [threading.Thread(target=attempt) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def stripped(path):
    """A library without symbols cannot be reached, and its user is told."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "stripped.so"
        subprocess.run(["strip", "-o", copy, path], check=True)
        program = f"import ctypes; print(ctypes.CDLL('{copy}').library_transform_host(None, 0, 0, 0))"
        child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    if "no symbol table" not in child.stderr or "-cudart shared" not in child.stderr:
        raise RuntimeError(f"no message: {child.stderr}")
    if child.returncode != 0 or child.stdout.strip() == "0":
        raise RuntimeError(f"exit status {child.returncode}, answer {child.stdout}")


def main():
    failed = 0
    tests = [in_threads, transform, in_children, stripped]
    for test in tests:
        try:
            test(sys.argv[1])
            print(f"ok   {test.__name__}")
        except Exception as failure:
            print(f"FAIL {test.__name__}: {failure}")
            failed += 1
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
