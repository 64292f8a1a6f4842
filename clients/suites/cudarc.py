"""cudarc's unit tests (driver and NVRTC, all symbols found at run time) and its examples that need one device."""

import harness

NAME = "cudarc"
VERSION = "0.19.10"
HOW = "driver through dlopen, from Rust; NVRTC's PTX and files"
GAPS = {
    "test_launch_with_half": "wants CUDA's headers in /usr/include",
    "example 12-context-config": "reads a limit that devices of capability 9.0 do not have; a GPU refuses it too",
}
# They compare times, which a loaded machine does not keep.
TIMED = ["is_faster", "are_faster", "test_par_launch"]
EXAMPLES = [
    "01-allocate", "02-copy", "03-launch-kernel", "04-streams", "05-device-repr", "06-threading",
    "09-constant-memory", "10-function-attributes", "12-context-config", "nvrtc-compile", "matmul-kernel",
]
FEATURES = ["--no-default-features", "--features", "std,driver,nvrtc,cuda-13000,dynamic-loading,f16"]


def install(home):
    source = harness.crate(home, NAME, VERSION)
    harness.must(["cargo", "test", "--lib", "--no-run", *FEATURES], source, home / "build.log")


def run(home, library, whole):
    source = home / "source"
    env = harness.environment(home, library, harness.toolkit_libraries())
    log = home / "run.log"
    skip = [option for name in TIMED for option in ("--skip", name)]
    status = harness.run(
        ["cargo", "test", "--offline", "--lib", *FEATURES, "--", "--test-threads=1", *skip], source, env, 600, log
    )
    tests = harness.cargo_tests(log, status)
    for name in EXAMPLES:
        log = home / f"example-{name}.log"
        command = ["cargo", "run", "-q", "--offline", "--example", name, *FEATURES]
        status = harness.run(command, source, env, 300, log)
        verdict = "passed" if status == 0 else "failed"
        tests.append(harness.Test(f"example {name}", verdict, f"ended with {status}, see {log}"))
    return tests
