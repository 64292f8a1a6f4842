//! What a program is, before it runs.

use object::elf::{FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache, ReadRef};
use std::ffi::{OsStr, OsString};
use std::fs::File;
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
    // Programs are large: of nearly all nothing but the headers is read.
    let content = ReadCache::new(File::open(file).ok()?);
    is_static_with_kernels(&content).unwrap_or(false).then_some(OutOfReach::Static)
}

/// `None` for what is no program.
fn is_static_with_kernels<'data>(content: impl ReadRef<'data>) -> Option<bool> {
    let header = FileHeader64::<Endianness>::parse(content).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, content).ok()?;
    if segments.iter().any(|segment| segment.p_type(endian) == PT_INTERP) {
        return Some(false);
    }
    // nvcc leaves kernels in this section. A shared object that is run as a program (the loader itself) has none.
    let sections = header.sections(endian, content).ok()?;
    Some(sections.section_by_name(endian, b".nv_fatbin").is_some())
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
        let of = |bytes: &'static [u8]| is_static_with_kernels(bytes);
        assert_eq!(of(b"#!/bin/sh\n"), None);
        assert_eq!(of(b""), None);
        assert_eq!(of(b"\x7fELF\x02\x01\x01"), None);
        assert_eq!(out_of_reach(&std::env::current_exe().unwrap()), None);
    }

    /// An ELF file without a loader, with a section of this name.
    fn static_program(section: &str) -> Vec<u8> {
        let names = format!("\0{section}\0");
        let headers = 64 + names.len().next_multiple_of(8);
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(16, 0);
        let mut put = |value: u64, bytes: usize| file.extend(&value.to_le_bytes()[..bytes]);
        // Type, machine, version; entry, program headers, section headers; flags.
        for (value, bytes) in [(2, 2), (62, 2), (1, 4), (0, 8), (0, 8), (headers as u64, 8), (0, 4)] {
            put(value, bytes);
        }
        // Sizes and numbers of headers, and which section has the names.
        for value in [64, 56, 0, 64, 3, 2] {
            put(value, 2);
        }
        file.extend(names.as_bytes());
        file.resize(headers + 64, 0);
        let mut section = |kind: u32, offset: u64, size: u64| {
            let place = file.len();
            file.resize(place + 64, 0);
            file[place..place + 4].copy_from_slice(&1u32.to_le_bytes());
            file[place + 4..place + 8].copy_from_slice(&kind.to_le_bytes());
            file[place + 24..place + 32].copy_from_slice(&offset.to_le_bytes());
            file[place + 32..place + 40].copy_from_slice(&size.to_le_bytes());
        };
        section(1, 64, 0);
        section(3, 64, names.len() as u64);
        file
    }

    #[test]
    fn a_static_program_with_kernels_is_out_of_reach() {
        assert_eq!(is_static_with_kernels(&*static_program(".nv_fatbin")), Some(true));
        assert_eq!(is_static_with_kernels(&*static_program(".other")), Some(false));
    }
}
