//! What a program is, before it runs.

use object::{Object, ObjectSection};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The file that a shell would run for this name: a path as it is, a bare name by way of `PATH`.
pub fn find(name: &OsStr, path: Option<OsString>) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name));
    }
    std::env::split_paths(&path?).map(|folder| folder.join(name)).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// How a program reaches the CUDA runtime, as far as its file tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// It was linked with NVIDIA's static runtime, which serves NVIDIA's own driver only.
    BuiltIn,
    /// It finds a shared runtime, or uses none (the driver API, a script, an interpreter that loads libraries later).
    Shared,
}

/// Reads the file of a program. A file that is no ELF file (a script) counts as `Shared`.
pub fn runtime(file: &Path) -> std::io::Result<Runtime> {
    Ok(runtime_of(&std::fs::read(file)?))
}

fn runtime_of(bytes: &[u8]) -> Runtime {
    let Ok(elf) = object::File::parse(bytes) else { return Runtime::Shared };
    // nvcc leaves kernels in this section, and what registers them with a runtime beside it.
    let has_kernels = elf.sections().any(|section| section.name() == Ok(".nv_fatbin"));
    let imports_runtime = elf
        .imports()
        .is_ok_and(|imports| imports.iter().any(|import| import.name() == b"__cudaRegisterFatBinary"));
    if has_kernels && !imports_runtime { Runtime::BuiltIn } else { Runtime::Shared }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_is_looked_for_in_path_and_a_path_is_not() {
        let found = find(OsStr::new("sh"), Some("/nowhere:/bin:/usr/bin".into()));
        assert_eq!(found, Some(PathBuf::from("/bin/sh")));
        assert_eq!(find(OsStr::new("sh"), Some("/nowhere".into())), None);
        assert_eq!(find(OsStr::new("./sh"), None), Some(PathBuf::from("./sh")));
    }

    #[test]
    fn what_is_no_elf_file_carries_no_runtime() {
        assert_eq!(runtime_of(b"#!/bin/sh\n"), Runtime::Shared);
        assert_eq!(runtime_of(b""), Runtime::Shared);
        assert_eq!(runtime_of(b"\x7fELF\x02\x01\x01"), Runtime::Shared);
    }
}
