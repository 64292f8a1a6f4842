//! `anywarp run`: a program finds our libraries instead of the system's, and what it carries inside leads to them.

use crate::installation;
use crate::program::{self, OutOfReach};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Where the dynamic loader looks before the system's folders.
const LOADER_PATH: &str = "LD_LIBRARY_PATH";

/// Libraries that the dynamic loader tells of every object it maps, before the object's code runs. Ours redirects NVIDIA's
/// runtime where that was linked in. Children inherit both variables.
const AUDITORS: &str = "LD_AUDIT";
const REDIRECTION: &str = "libanywarp_redirect.so";

/// Exit statuses as shells use them: found but not runnable, and not found.
const EXIT_NOT_RUNNABLE: u8 = 126;
const EXIT_NOT_FOUND: u8 = 127;

/// Becomes the program: its exit status, its signals and its terminal are its own. Returns only if it cannot start.
pub fn run(name: &OsStr, arguments: &[OsString]) -> ExitCode {
    let folder = match installation::library_folder() {
        Ok(folder) => folder,
        Err(reason) => return fail(EXIT_NOT_RUNNABLE, &reason),
    };
    if folder.as_os_str().as_bytes().contains(&b':') {
        let reason =
            format!("{} has a colon in it, which separates folders for the dynamic loader", folder.display());
        return fail(EXIT_NOT_RUNNABLE, &reason);
    }
    let Some(file) = program::find(name, std::env::var_os("PATH")) else {
        return fail(EXIT_NOT_FOUND, &format!("{} is not in PATH", name.display()));
    };
    if let Some(reason) = program::out_of_reach(&file) {
        warn(&file, reason);
    }
    let mut command = Command::new(&file);
    command.arg0(name).args(arguments);
    command.env(LOADER_PATH, first(folder.as_os_str(), std::env::var_os(LOADER_PATH)));
    let redirection = folder.join(REDIRECTION);
    if redirection.is_file() {
        command.env(AUDITORS, first(redirection.as_os_str(), std::env::var_os(AUDITORS)));
    }
    let error = command.exec();
    let status =
        if error.kind() == std::io::ErrorKind::NotFound { EXIT_NOT_FOUND } else { EXIT_NOT_RUNNABLE };
    fail(status, &format!("{}: {error}", file.display()))
}

/// Ours, then whatever was there.
fn first(ours: &OsStr, before: Option<OsString>) -> OsString {
    let mut list = ours.to_owned();
    // An empty entry would mean the working folder.
    if let Some(before) = before.filter(|before| !before.is_empty()) {
        list.push(":");
        list.push(before);
    }
    list
}

fn warn(file: &Path, reason: OutOfReach) {
    let (found, advice) = match reason {
        OutOfReach::Static => (
            "is linked statically, with NVIDIA's CUDA runtime in it",
            "Its CUDA calls will fail. Link it dynamically, best with `nvcc -cudart shared`.",
        ),
        OutOfReach::Privileged => (
            "runs with the rights of another user or group (setuid, setgid)",
            "The dynamic loader ignores where Anywarp's libraries are for such programs: run it without those rights.",
        ),
    };
    eprintln!("anywarp: {} {found}.\nanywarp: {advice}", file.display());
}

fn fail(status: u8, reason: &str) -> ExitCode {
    eprintln!("anywarp: {reason}");
    ExitCode::from(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_comes_first_and_no_empty_entry_appears() {
        let ours = OsStr::new("/opt/lib");
        assert_eq!(first(ours, None), "/opt/lib");
        assert_eq!(first(ours, Some("".into())), "/opt/lib");
        assert_eq!(first(ours, Some("/a:/b".into())), "/opt/lib:/a:/b");
    }
}
