//! What a program is, before it runs.

use object::elf::PT_INTERP;
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, Object, ObjectSection};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
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

/// Why the dynamic loader will not bring our libraries into a program, although it is asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfReach {
    /// There is no dynamic loader: the program is linked statically, with NVIDIA's runtime and all.
    Static,
    /// It runs with the rights of another user, so the loader trusts nothing that this user says.
    Privileged,
}

/// Looks for such a reason in the file of a program. A script is as reachable as its interpreter.
pub fn out_of_reach(file: &Path) -> Option<OutOfReach> {
    let program = std::fs::metadata(file).ok()?;
    // The kernel lets every process see itself.
    let user = std::fs::metadata("/proc/self").ok()?;
    let set_user = program.mode() & 0o4000 != 0 && program.uid() != user.uid();
    let set_group = program.mode() & 0o2000 != 0 && program.gid() != user.gid();
    if set_user || set_group {
        return Some(OutOfReach::Privileged);
    }
    is_static_with_kernels(&std::fs::read(file).ok()?).then_some(OutOfReach::Static)
}

fn is_static_with_kernels(bytes: &[u8]) -> bool {
    let Ok(elf) = ElfFile64::<Endianness>::parse(bytes) else { return false };
    let has_loader =
        elf.elf_program_headers().iter().any(|segment| segment.p_type(elf.endian()) == PT_INTERP);
    // nvcc leaves kernels in this section. A shared object that is run as a program (the loader itself) has none.
    !has_loader && elf.sections().any(|section| section.name() == Ok(".nv_fatbin"))
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
    fn what_is_no_elf_file_is_in_reach() {
        assert!(!is_static_with_kernels(b"#!/bin/sh\n"));
        assert!(!is_static_with_kernels(b""));
        assert!(!is_static_with_kernels(b"\x7fELF\x02\x01\x01"));
    }
}
