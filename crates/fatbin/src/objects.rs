//! Fat binaries in the host's object files and static libraries, where a compiler leaves the device code of what it
//! compiles, and the PTX that machine code was assembled from.

use object::read::archive::ArchiveFile;
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection};

use crate::container::CONTAINER_HEADER_LEN;
use crate::{CONTAINER_MAGIC, Container, FatbinError};

/// Sections that hold containers: of whole programs, and of units that are to be linked.
const SECTIONS: [&str; 2] = [".nv_fatbin", "__nv_relfatbin"];

/// Whether these bytes are a static library.
pub fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(b"!<arch>\n")
}

/// The containers in an object file of the host or, one after another, in the members of a static library. Members that
/// are no object files hold none.
pub fn containers(bytes: &[u8]) -> Result<Vec<Container<'_>>, FatbinError> {
    if !is_archive(bytes) {
        return in_object(bytes);
    }
    let archive = ArchiveFile::parse(bytes).map_err(unreadable("static library"))?;
    let mut found = Vec::new();
    for member in archive.members() {
        let member = member.map_err(unreadable("static library"))?;
        let content = member.data(bytes).map_err(unreadable("static library"))?;
        if content.starts_with(b"\x7fELF") {
            found.extend(in_object(content)?);
        }
    }
    Ok(found)
}

fn in_object(bytes: &[u8]) -> Result<Vec<Container<'_>>, FatbinError> {
    let file = ElfFile64::<LittleEndian>::parse(bytes).map_err(unreadable("object file"))?;
    let mut found = Vec::new();
    for section in file.sections() {
        if !section.name().is_ok_and(|name| SECTIONS.contains(&name)) {
            continue;
        }
        let mut rest = section.data().map_err(unreadable("object file"))?;
        // Padding stands between containers and after them.
        while let Some(at) = rest.chunks_exact(4).position(|word| word == CONTAINER_MAGIC.to_le_bytes()) {
            rest = &rest[4 * at..];
            found.push(Container::parse(rest)?);
            let header = rest.get(..CONTAINER_HEADER_LEN).unwrap_or(rest);
            let len = usize::try_from(Container::claimed_len(header)?).unwrap_or(usize::MAX);
            rest = rest.get(len..).unwrap_or_default();
        }
    }
    Ok(found)
}

/// Sections of machine code that hold the PTX it was assembled from, where it was asked to say which lines it is of (`-lineinfo`, `-G`): one
/// for each unit, by this name and perhaps a number.
const SOURCE: &str = ".nv_debug_ptx_txt";
/// What machine code for GPUs is for, in an ELF header.
const GPU: u16 = 190;

/// The PTX texts that a machine-code image carries, which together are its program; none if it does not.
///
/// # Errors
/// It cannot be read.
pub fn sources(image: &[u8]) -> Result<Vec<String>, FatbinError> {
    let file = ElfFile64::<LittleEndian>::parse(image).map_err(unreadable("machine code"))?;
    let mut found = Vec::new();
    if file.elf_header().e_machine.get(LittleEndian) != GPU {
        return Ok(found);
    }
    for section in file.sections().filter(|section| section.name().is_ok_and(|name| name.starts_with(SOURCE)))
    {
        let text = section.data().map_err(unreadable("machine code"))?;
        // Each line ends with a zero.
        let text: Vec<u8> = text.iter().map(|byte| if *byte == 0 { b'\n' } else { *byte }).collect();
        found.push(String::from_utf8_lossy(&text).into_owned());
    }
    Ok(found)
}

fn unreadable(what: &'static str) -> impl Fn(object::Error) -> FatbinError {
    move |error| FatbinError::Unreadable { what, reason: error.to_string() }
}
