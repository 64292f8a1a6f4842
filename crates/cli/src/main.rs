//! The `anywarp` command.
//!
//! ```text
//! anywarp run PROGRAM [ARGUMENT]...   run a CUDA program on Anywarp's libraries
//! anywarp info                        devices, limits, where libraries and compiled kernels are
//! anywarp smi [OPTION]...             devices, memory, and the processes that use them
//! anywarp version                     this command's version
//! ```

mod info;
mod installation;
mod output;
mod program;
mod run;
mod smi;

use std::ffi::OsString;
use std::process::ExitCode;

const USAGE: &str = "\
usage: anywarp run PROGRAM [ARGUMENT]...   run a CUDA program on Anywarp's libraries
       anywarp info                        show devices, limits, and where things are
       anywarp smi [OPTION]...             show devices, memory, and the processes that use them
       anywarp version                     show the version
";

/// Exit status for a wrong command line, as shells use it.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let command = arguments.next().unwrap_or_default();
    let rest: Vec<OsString> = arguments.collect();
    match (command.to_str(), rest.as_slice()) {
        (Some("run"), [program, arguments @ ..]) => run::run(program, arguments),
        (Some("info"), []) => info::run(),
        (Some("smi"), arguments) => smi::run(arguments),
        (Some("version" | "--version" | "-V"), []) => {
            output::finish(concat!("anywarp ", env!("CARGO_PKG_VERSION"), "\n"), ExitCode::SUCCESS)
        }
        (Some("help" | "--help" | "-h"), _) => output::finish(USAGE, ExitCode::SUCCESS),
        _ => {
            eprint!("{USAGE}");
            ExitCode::from(EXIT_USAGE)
        }
    }
}
