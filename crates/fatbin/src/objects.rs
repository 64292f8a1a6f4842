//! Fat binaries in the host's object files and static libraries, where a compiler leaves the device code of what it
//! compiles.

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

fn unreadable(what: &'static str) -> impl Fn(object::Error) -> FatbinError {
    move |error| FatbinError::Unreadable { what, reason: error.to_string() }
}
