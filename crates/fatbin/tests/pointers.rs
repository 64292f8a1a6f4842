//! Wrappers and other images that arrive as bare pointers.

use fatbin::raw::{Image, image_at};
use fatbin::writer::{ContainerWriter, EntryWriter, machine_code};
use fatbin::{Fatbin, FatbinError, Target, WRAPPER_MAGIC, objects};

fn wrapper(version: u32, container: *const u8, linked: *const *const u8) -> Vec<u8> {
    let mut bytes = WRAPPER_MAGIC.to_le_bytes().to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend((container as u64).to_le_bytes());
    bytes.extend((linked as u64).to_le_bytes());
    bytes
}

fn unit(name: &str) -> Vec<u8> {
    ContainerWriter::new().entry(EntryWriter::ptx(90, name)).finish()
}

fn image(bytes: &[u8]) -> Result<Image<'_>, FatbinError> {
    // SAFETY: each test passes an image of the kind its first bytes name, or NUL-terminated text.
    unsafe { image_at(bytes.as_ptr()) }
}

#[test]
fn a_wrapper_leads_to_its_container() {
    let container = unit("text");
    let wrapper = wrapper(1, container.as_ptr(), std::ptr::null());
    let Ok(Image::Fatbin(fatbin)) = image(&wrapper) else { panic!("no fat binary") };
    assert_eq!(fatbin.choose_ptx(Target::new(90)).unwrap()[0].payload().unwrap().as_ref(), b"text");
}

#[test]
fn a_linked_wrapper_leads_to_its_units() {
    let (empty, units) = (ContainerWriter::new().finish(), [unit("a"), unit("b")]);
    let array = [units[0].as_ptr(), units[1].as_ptr(), std::ptr::null()];
    let bytes = wrapper(2, empty.as_ptr(), array.as_ptr());
    let Ok(Image::Fatbin(fatbin)) = image(&bytes) else { panic!("no fat binary") };
    assert_eq!(fatbin.choose_ptx(Target::new(90)).unwrap().len(), 2);

    let bytes = wrapper(2, std::ptr::null(), std::ptr::null());
    let Ok(Image::Fatbin(fatbin @ Fatbin::Linked { .. })) = image(&bytes) else {
        panic!("no linked fat binary")
    };
    assert!(fatbin.choose_ptx(Target::new(90)).unwrap().is_empty());
}

#[test]
fn other_images_are_told_apart() {
    assert!(matches!(image(&unit("x")), Ok(Image::Fatbin(Fatbin::Whole(_)))));
    assert!(matches!(image(b"\x7fELF rest\0"), Ok(Image::Elf(_))));
    assert!(matches!(image(b".version 8.0\n\0"), Ok(Image::Text(b".version 8.0\n"))));
    assert!(matches!(image(b"\0"), Ok(Image::Text(b""))));
    // SAFETY: null is allowed.
    let null = unsafe { image_at(std::ptr::null()) };
    assert_eq!(null.unwrap_err(), FatbinError::NullPointer { what: "module image" });
}

#[test]
fn bad_wrappers_and_lengths_are_refused() {
    let unknown = wrapper(7, std::ptr::null(), std::ptr::null());
    assert_eq!(image(&unknown).unwrap_err(), FatbinError::UnsupportedVersion { what: "wrapper", found: 7 });
    let null = wrapper(1, std::ptr::null(), std::ptr::null());
    assert_eq!(image(&null).unwrap_err(), FatbinError::NullPointer { what: "container" });
    for len in [u64::MAX, 1 << 40] {
        let mut huge = unit("x");
        huge[8..16].copy_from_slice(&len.to_le_bytes());
        assert!(image(&huge).is_err(), "a container of {len} bytes");
    }
}

#[test]
fn machine_code_is_as_long_as_its_sections() {
    let mut bytes = machine_code(&[".version 8.0\n.target sm_90\n", ".version 7.8\n"]);
    let len = bytes.len();
    // What follows in memory is no part of it.
    bytes.resize(4096, 0xff);
    // SAFETY: the image is readable as a whole.
    let Ok(Image::Elf(image)) = (unsafe { image_at(bytes.as_ptr()) }) else { panic!("it is an image") };
    assert_eq!(image.len(), len);
    assert_eq!(objects::sources(image).unwrap(), [".version 8.0\n.target sm_90\n", ".version 7.8\n"]);
    // SAFETY: no more is read of what is no image of 64 bits.
    assert!(matches!(unsafe { image_at(b"\x7fELF\x02\x02".as_ptr()) }, Ok(Image::Elf([]))));
}

#[test]
fn machine_code_for_the_host_has_no_source() {
    let mut bytes = machine_code(&[".version 8.0\n"]);
    bytes[18] = 62;
    assert!(objects::sources(&bytes).unwrap().is_empty());
    assert!(objects::sources(&bytes[..40]).is_err());
}
