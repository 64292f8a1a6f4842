"""RustaCUDA: the driver's API in safe Rust, the oldest of these. Its own tests, and those of its documentation."""

import harness

from suites import cust

NAME = "rustacuda"
VERSION = "0.1.3"
HOW = "linked with `-lcuda`, from Rust, by the names that functions had in 2018; a PTX file"
GAPS = {}

CARGO = ["cargo", "test"]


def install(home):
    harness.build_crate(home, NAME, VERSION, CARGO, cust.environment(home))


def run(home, library, whole):
    return harness.run_crate(home, library, CARGO, cust.environment(home), 900)
