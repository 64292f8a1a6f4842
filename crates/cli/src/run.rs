//! `anywarp run`: a program finds our libraries instead of the system's.

use crate::installation;
use crate::program::{self, Runtime};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Where the dynamic loader looks before the system's folders.
const LOADER_PATH: &str = "LD_LIBRARY_PATH";

/// Exit statuses as shells use them: found but not runnable, and not found.
const EXIT_NOT_RUNNABLE: u8 = 126;
const EXIT_NOT_FOUND: u8 = 127;

/// Becomes the program: its exit status, its signals and its terminal are its own. Returns only if it cannot start.
pub fn run(name: &OsStr, arguments: &[OsString]) -> ExitCode {
    let folder = match installation::library_folder() {
        Ok(folder) => folder,
        Err(reason) => return fail(EXIT_NOT_RUNNABLE, &reason),
    };
    let Some(file) = program::find(name, std::env::var_os("PATH")) else {
        return fail(EXIT_NOT_FOUND, &format!("{} is not in PATH", name.display()));
    };
    if let Ok(Runtime::BuiltIn) = program::runtime(&file) {
        warn_of_built_in_runtime(&file);
    }
    let error = Command::new(&file)
        .arg0(name)
        .args(arguments)
        .env(LOADER_PATH, loader_path(&folder, std::env::var_os(LOADER_PATH)))
        .exec();
    let status =
        if error.kind() == std::io::ErrorKind::NotFound { EXIT_NOT_FOUND } else { EXIT_NOT_RUNNABLE };
    fail(status, &format!("{}: {error}", file.display()))
}

/// Our folder, then whatever was there.
fn loader_path(folder: &Path, before: Option<OsString>) -> OsString {
    let mut path = folder.as_os_str().to_owned();
    // An empty entry would mean the working folder.
    if let Some(before) = before.filter(|before| !before.is_empty()) {
        path.push(":");
        path.push(before);
    }
    path
}

fn warn_of_built_in_runtime(file: &Path) {
    eprintln!(
        "anywarp: {} has NVIDIA's CUDA runtime linked into it, which works with NVIDIA's driver only.\n\
         anywarp: Its runtime calls will fail: redirecting them does not exist yet. \
         Link it again with `nvcc -cudart shared`.",
        file.display()
    );
}

fn fail(status: u8, reason: &str) -> ExitCode {
    eprintln!("anywarp: {reason}");
    ExitCode::from(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_folder_comes_first_and_no_empty_entry_appears() {
        let ours = Path::new("/opt/lib");
        assert_eq!(loader_path(ours, None), "/opt/lib");
        assert_eq!(loader_path(ours, Some("".into())), "/opt/lib");
        assert_eq!(loader_path(ours, Some("/a:/b".into())), "/opt/lib:/a:/b");
    }
}
