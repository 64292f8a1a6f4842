//! Messages. They go straight to standard error: the program's own streams do not exist yet.

use std::path::Path;

/// Something the user must know.
pub fn warn(path: &Path, found: &str, advice: &str) {
    say(&format!("anywarp: {} {found}.\nanywarp: {advice}\n", path.display()));
}

/// What was done, for those who ask with `ANYWARP_LOG`.
pub fn log(path: &Path, done: &str) {
    if std::env::var_os("ANYWARP_LOG").is_some() {
        say(&format!("anywarp: {}: {done}\n", path.display()));
    }
}

/// Ends the process as the dynamic loader does when a symbol is missing at its first call.
pub fn die(reason: &str) -> ! {
    const EXIT_SYMBOL_MISSING: i32 = 127;
    say(&format!("anywarp: {reason}\n"));
    // SAFETY: ends the process without running any handler, which may belong to the half-started program.
    unsafe { libc::_exit(EXIT_SYMBOL_MISSING) }
}

fn say(text: &str) {
    // SAFETY: the buffer is readable for its length. Nothing can be done about a standard error that is closed.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}
