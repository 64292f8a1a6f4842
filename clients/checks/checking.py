"""What the programs of checks share: `@check` registers one, `main` runs all, a line for each: `ok NAME` or `FAIL NAME: why`."""

CHECKS = []


def check(function):
    """Registers a check, which raises if something is wrong."""
    CHECKS.append(function)
    return function


def main():
    """Runs the checks in the order of the file."""
    for function in CHECKS:
        try:
            function()
            print(f"ok {function.__name__}", flush=True)
        except Exception as failure:
            text = " ".join(f"{type(failure).__name__}: {failure}".split())
            print(f"FAIL {function.__name__}: {text[:300]}", flush=True)
