//! Fat binaries in object files and static libraries.

use fatbin::objects::{containers, is_archive};
use fatbin::writer::{ContainerWriter, EntryWriter};
use fatbin::{FatbinError, Target};
use object::write::Object;
use object::{Architecture, BinaryFormat, Endianness, SectionKind};

fn container(text: &str) -> Vec<u8> {
    ContainerWriter::new().entry(EntryWriter::elf(90, "code")).entry(EntryWriter::ptx(80, text)).finish()
}

/// An object file with these sections.
fn object_file(sections: &[(&str, &[u8])]) -> Vec<u8> {
    let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    for (name, data) in sections {
        let section = object.add_section(vec![], name.as_bytes().to_vec(), SectionKind::ReadOnlyData);
        object.append_section_data(section, data, 8);
    }
    object.write().unwrap()
}

/// A static library with these members.
fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, data) in members {
        let name = format!("{name}/");
        bytes.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 644, data.len()).bytes());
        bytes.extend(*data);
        if data.len() % 2 == 1 {
            bytes.push(b'\n');
        }
    }
    bytes
}

fn texts(bytes: &[u8]) -> Vec<String> {
    let text = |container: fatbin::Container<'_>| {
        let entry = container.choose_ptx(Target::new(90)).unwrap()?;
        Some(String::from_utf8(entry.payload().unwrap().into_owned()).unwrap())
    };
    containers(bytes).unwrap().into_iter().filter_map(text).collect()
}

#[test]
fn all_containers_of_an_object_file() {
    let padding = [0; 16];
    let both = [container("one"), padding.to_vec(), container("two")].concat();
    let bytes =
        object_file(&[(".text", &both), (".nv_fatbin", &both), ("__nv_relfatbin", &container("three"))]);
    assert_eq!(texts(&bytes), ["one", "two", "three"]);
    assert_eq!(texts(&object_file(&[(".text", b"nothing")])), [""; 0]);
}

#[test]
fn all_members_of_a_static_library() {
    let (a, b) = (container("a"), container("b"));
    let (a, b) = (object_file(&[(".nv_fatbin", &a)]), object_file(&[("__nv_relfatbin", &b)]));
    let library = archive(&[("a.o", &a), ("notes.txt", b"odd"), ("b.o", &b)]);
    assert!(is_archive(&library) && !is_archive(&a));
    assert_eq!(texts(&library), ["a", "b"]);
    assert_eq!(texts(&archive(&[])), [""; 0]);
}

#[test]
fn damage_is_an_error() {
    let whole = container("a");
    let cut = object_file(&[(".nv_fatbin", &whole[..whole.len() - 8])]);
    assert!(matches!(containers(&cut), Err(FatbinError::OutOfBounds { .. })));
    assert!(matches!(containers(b"\x7fELF no"), Err(FatbinError::Unreadable { what: "object file", .. })));
    assert!(matches!(containers(b"text"), Err(FatbinError::Unreadable { what: "object file", .. })));
    let library = archive(&[("a.o", &object_file(&[(".nv_fatbin", &whole)]))]);
    for len in 9..library.len() {
        // Whatever is left: an answer or an error.
        let _ = containers(&library[..len]).map(|found| found.len());
    }
}
