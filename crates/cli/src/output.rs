//! What the command prints.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// Prints a command's answer. One that nobody reads to its end (`anywarp smi | head -1`) ends the command, and is no failure.
///
/// # Errors
/// The status to exit with, if not all could be written.
pub fn print(text: &str) -> Result<(), ExitCode> {
    let mut output = std::io::stdout().lock();
    output.write_all(text.as_bytes()).and_then(|()| output.flush()).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        _ => {
            eprintln!("anywarp: the output cannot be written: {error}");
            ExitCode::FAILURE
        }
    })
}

/// Likewise, where nothing is left to do: the status to exit with.
pub fn finish(text: &str, status: ExitCode) -> ExitCode {
    print(text).err().unwrap_or(status)
}
