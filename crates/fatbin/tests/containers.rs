//! Containers that the writer builds, whole and damaged.

use fatbin::writer::{ContainerWriter, EntryWriter};
use fatbin::{Compression, Container, EntryKind, Fatbin, FatbinError, Target};

const TEXT: &str =
    ".version 8.0\n.target sm_90\n.address_size 64\n// a comment to compress to compress to compress\n";

fn ptx(sm: u32, name: &str) -> EntryWriter {
    EntryWriter::ptx(sm, format!("{TEXT}// {name}\n"))
}

fn chosen(container: ContainerWriter, sm: u32) -> Option<String> {
    let bytes = container.finish();
    let entry = Container::parse(&bytes).unwrap().choose_ptx(Target::new(sm)).unwrap()?;
    let text = String::from_utf8(entry.payload().unwrap().into_owned()).unwrap();
    Some(text.lines().last().unwrap().trim_start_matches("// ").to_owned())
}

#[test]
fn payloads_survive_each_compression() {
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let bytes =
            ContainerWriter::new().entry(EntryWriter::ptx(90, TEXT).compression(compression)).finish();
        let entry = Container::parse(&bytes).unwrap().entries().next().unwrap().unwrap();
        assert_eq!(entry.compression, compression);
        assert_eq!(entry.payload().unwrap().as_ref(), TEXT.as_bytes(), "{compression:?}");
    }
}

#[test]
fn entries_keep_order_kind_version_and_strings() {
    let bytes = ContainerWriter::new()
        .entry(EntryWriter::elf(90, *b"\x7fELF\0\0"))
        .entry(ptx(80, "x").source_name("kernel.cu").options(" -O1 -maxrregcount=32 ").debug())
        .entry(EntryWriter::lto(90, *b"ir"))
        .finish();
    let entries: Vec<_> =
        Container::parse(&bytes).unwrap().entries().collect::<Result<_, _>>().expect("what the writer built");
    let kinds: Vec<_> = entries.iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [EntryKind::Elf, EntryKind::Ptx, EntryKind::Lto]);
    assert_eq!(entries[1].source_name().unwrap(), Some("kernel.cu"));
    assert_eq!(entries[1].options().unwrap(), Some("-O1 -maxrregcount=32"));
    assert_eq!((entries[1].version.major, entries[1].version.minor), (9, 0));
    assert!(entries[1].is_debug());
    assert_eq!(entries[0].source_name().unwrap(), None);
    assert_eq!(entries[0].options().unwrap(), None);
    // An image keeps the NULs that end it, padding included.
    assert_eq!(entries[0].payload().unwrap().as_ref(), b"\x7fELF\0\0\0\0");
}

#[test]
fn the_highest_architecture_not_above_the_device_is_chosen() {
    let all = || ContainerWriter::new().entry(ptx(80, "80")).entry(ptx(90, "90")).entry(ptx(100, "100"));
    assert_eq!(chosen(all(), 90).as_deref(), Some("90"));
    assert_eq!(chosen(all(), 89).as_deref(), Some("80"));
    assert_eq!(chosen(all(), 121).as_deref(), Some("100"));
    assert_eq!(chosen(all(), 75), None);
}

#[test]
fn specific_text_is_for_matching_devices_only() {
    let specific = || ContainerWriter::new().entry(ptx(90, "90")).entry(ptx(90, "90a").arch_specific());
    assert_eq!(chosen(specific(), 90).as_deref(), Some("90a"));
    assert_eq!(chosen(specific(), 100).as_deref(), Some("90"));
    let family = || ContainerWriter::new().entry(ptx(90, "90")).entry(ptx(100, "100f").family());
    assert_eq!(chosen(family(), 100).as_deref(), Some("100f"));
    assert_eq!(chosen(family(), 103).as_deref(), Some("100f"));
    assert_eq!(chosen(family(), 110).as_deref(), Some("90"));
}

#[test]
fn machine_code_and_link_time_ir_are_not_chosen() {
    let container =
        ContainerWriter::new().entry(EntryWriter::elf(90, *b"code")).entry(EntryWriter::lto(90, *b"ir"));
    assert_eq!(chosen(container, 90), None);
    assert_eq!(chosen(ContainerWriter::new(), 90), None);
}

#[test]
fn a_linked_set_gives_the_text_of_every_unit() {
    let empty = ContainerWriter::new().finish();
    let units: Vec<_> = ["a", "b"].map(|name| ContainerWriter::new().entry(ptx(90, name)).finish()).into();
    let library = ContainerWriter::new().entry(ptx(100, "newer")).finish();
    let parse = |bytes| Container::parse(bytes).unwrap();
    let linked = Fatbin::Linked {
        whole: Some(parse(&empty)),
        units: vec![parse(&units[0]), parse(&library), parse(&units[1])],
    };
    assert_eq!(linked.choose_ptx(Target::new(90)).unwrap().len(), 2);

    let whole = ContainerWriter::new().entry(ptx(90, "linked")).finish();
    let linked = Fatbin::Linked { whole: Some(parse(&whole)), units: vec![parse(&units[0])] };
    assert_eq!(linked.choose_ptx(Target::new(90)).unwrap().len(), 1);
}

#[test]
fn bytes_after_the_container_are_ignored() {
    let mut bytes = ContainerWriter::new().entry(ptx(90, "x")).finish();
    bytes.extend([0xFF; 100]);
    assert_eq!(Container::parse(&bytes).unwrap().entries().count(), 1);
}

#[test]
fn every_truncation_is_an_error() {
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let bytes = ContainerWriter::new().entry(ptx(90, "x").compression(compression)).finish();
        for len in 0..bytes.len() {
            assert!(Container::parse(&bytes[..len]).is_err(), "{len} bytes");
            // With the container's length made to agree, the entry must notice.
            if len > 16 {
                let mut cut = bytes[..len].to_vec();
                cut[8..16].copy_from_slice(&(len as u64 - 16).to_le_bytes());
                let entry = Container::parse(&cut).unwrap().entries().next().unwrap();
                assert!(entry.is_err(), "{len} bytes");
            }
        }
    }
}

#[test]
fn damaged_fields_give_errors_and_no_panic() {
    let bytes = ContainerWriter::new()
        .entry(ptx(90, "x").compression(Compression::Lz4).source_name("a.cu").options("-O1"))
        .entry(ptx(80, "y").compression(Compression::Zstd))
        .finish();
    for offset in 0..bytes.len() {
        for value in [0, 1, 0x7F, 0x80, 0xFF] {
            let mut damaged = bytes.clone();
            damaged[offset] = value;
            let Ok(container) = Container::parse(&damaged) else { continue };
            for entry in container.entries().flatten() {
                // Either outcome is right; a panic or an endless loop is not.
                let _ = (entry.payload(), entry.source_name(), entry.options());
            }
        }
    }
}

#[test]
fn errors_say_what_is_wrong() {
    assert!(matches!(
        Container::parse(b"garbage garbage "),
        Err(FatbinError::BadMagic { what: "container", .. })
    ));
    let good = ContainerWriter::new().entry(ptx(90, "x").compression(Compression::Lz4)).finish();
    let first = |bytes: &[u8]| Container::parse(bytes).unwrap().entries().next().unwrap().map(|_| ());

    let mut newer = good.clone();
    newer[4] = 9;
    let error = Container::parse(&newer).unwrap_err();
    assert_eq!(error, FatbinError::UnsupportedVersion { what: "container", found: 9 });

    let mut huge = good.clone();
    huge[16 + 56..16 + 64].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(matches!(first(&huge), Err(FatbinError::TooLarge { .. })));

    let mut bomb = good.clone();
    bomb[16 + 56..16 + 64].copy_from_slice(&(1u64 << 29).to_le_bytes());
    let entry = Container::parse(&bomb).unwrap().entries().next().unwrap().unwrap();
    assert!(matches!(entry.payload(), Err(FatbinError::SizeMismatch { .. })));

    let mut both = good.clone();
    both[16 + 40..16 + 48].copy_from_slice(&0xA000u64.to_le_bytes());
    assert_eq!(first(&both), Err(FatbinError::BadCompression { flags: 0xA000 }));

    let mut short = good;
    short[16 + 4..16 + 8].copy_from_slice(&8u32.to_le_bytes());
    assert_eq!(first(&short), Err(FatbinError::HeaderTooShort { what: "entry", found: 8 }));
}
