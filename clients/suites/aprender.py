"""Kernels of aprender, for learning and language models, whose PTX its Rust code writes. Its own tests beside its CPU's."""

import harness

NAME = "aprender"
VERSION = "0.72.3"
HOW = "dlopen, from Rust; PTX that it writes itself, an instruction for each call"
GAPS = {
    "classify_rtx4090_classic": "takes devices older than 10.0 for such with memory of their own; ours says it shares the host's",
    "test_ops_softmax_warp": "launches a kernel of a context that the test before gave back",
}

CARGO = ["cargo", "test", "--locked", "--features", "cuda", "--lib", "--tests"]
# What wants cuBLAS, and files that only its repository has.
WITHOUT = ["cublas", "fusion_contract_falsify"]


def install(home):
    source = harness.crate(home, "aprender-gpu", VERSION)
    harness.must([*CARGO, "--no-run"], source, home / "build.log", seconds=3600)


def run(home, library, whole):
    # A test fills the device.
    env = {**harness.environment(home, library), "ANYWARP_MEMORY": "4G"}
    skipped = [word for name in WITHOUT for word in ("--skip", name)]
    log = home / "run.log"
    command = [*CARGO, "--no-fail-fast", "--offline", "--", "--test-threads=1", *skipped]
    return harness.cargo_tests(log, harness.run(command, home / "source", env, 3600, log))
