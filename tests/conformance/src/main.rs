//! Runs the tests: `conformance --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    conformance::runner::main(std::env::args_os().skip(1).collect())
}
