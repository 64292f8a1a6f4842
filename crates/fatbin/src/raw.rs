//! From the bare pointers of the C interface to slices.
//!
//! A loading function gets a pointer without a length. What stands there tells by its first bytes what it is, and
//! fat binaries carry their own lengths.

use std::ffi::CStr;

use crate::container::{CONTAINER_HEADER_LEN, Container};
use crate::error::FatbinError;
use crate::wrapper::{WRAPPER_LEN, Wrapper, WrapperVersion};
use crate::{CONTAINER_MAGIC, Fatbin, MAX_CONTAINER_LEN, MAX_LINKED_CONTAINERS, WRAPPER_MAGIC};

const ELF_MAGIC: [u8; 4] = *b"\x7fELF";
/// The same, of 64 bits, the lowest first.
const GPU_MAGIC: [u8; 7] = *b"\x7fELF\x02\x01\x01";
/// Bytes of an ELF file's header, and of one entry of its table of sections.
const ELF_HEADER_LEN: usize = 64;
const SECTION_LEN: usize = 64;
/// Sections that have no bytes in the file (`SHT_NOBITS`).
const NO_CONTENT: u64 = 8;

/// What a pointer given to a loading function leads to.
#[derive(Clone, Debug)]
pub enum Image<'a> {
    /// A fat binary, by its wrapper or as a bare container.
    Fatbin(Fatbin<'a>),
    /// A machine-code image; empty if it is not of 64 bits.
    Elf(&'a [u8]),
    /// Anything else: text that ends with a NUL, which is not part of the slice.
    Text(&'a [u8]),
}

/// Finds out what stands at `pointer`.
///
/// # Safety
/// `pointer` is null or leads to a wrapper, a container, an ELF image or NUL-terminated text, as the CUDA loading
/// functions demand of their callers, and what it leads to stays unchanged for `'a`.
pub unsafe fn image_at<'a>(pointer: *const u8) -> Result<Image<'a>, FatbinError> {
    if pointer.is_null() {
        return Err(FatbinError::NullPointer { what: "module image" });
    }
    // SAFETY: every image that the caller may pass has, up to its NUL if it is text, the bytes read here: the
    // comparison stops at the first difference, and no magic number contains a NUL before its last byte.
    let begins_with = |magic: &[u8]| unsafe { begins_with(pointer, magic) };
    if begins_with(&WRAPPER_MAGIC.to_le_bytes()) {
        // SAFETY: by its magic number the image is a wrapper, the caller's duty covers what it points to.
        return Ok(Image::Fatbin(unsafe { fatbin_at(pointer) }?));
    }
    if begins_with(&CONTAINER_MAGIC.to_le_bytes()) {
        // SAFETY: by its magic number the image is a container.
        return Ok(Image::Fatbin(Fatbin::Whole(unsafe { container_at(pointer) }?)));
    }
    if begins_with(&ELF_MAGIC) {
        if !begins_with(&GPU_MAGIC) {
            return Ok(Image::Elf(&[]));
        }
        // SAFETY: by its first bytes the image is an ELF file of 64 bits, which is readable in its whole length by the caller's contract.
        return Ok(Image::Elf(unsafe { elf_at(pointer) }?));
    }
    // SAFETY: what is none of the above is NUL-terminated text by the caller's contract.
    Ok(Image::Text(unsafe { CStr::from_ptr(pointer.cast()) }.to_bytes()))
}

/// Follows a wrapper to its containers.
///
/// # Safety
/// `wrapper` leads to the 24 bytes of a wrapper whose pointers lead to containers, all of them unchanged for `'a`.
pub unsafe fn fatbin_at<'a>(wrapper: *const u8) -> Result<Fatbin<'a>, FatbinError> {
    if wrapper.is_null() {
        return Err(FatbinError::NullPointer { what: "wrapper" });
    }
    // SAFETY: the caller vouches for the 24 bytes.
    let wrapper = Wrapper::parse(unsafe { std::slice::from_raw_parts(wrapper, WRAPPER_LEN) })?;
    let container = wrapper.container as *const u8;
    match wrapper.version {
        // SAFETY: the caller vouches for the wrapper's pointers.
        WrapperVersion::Whole => Ok(Fatbin::Whole(unsafe { container_at(container) }?)),
        WrapperVersion::Linked => {
            let whole = match container.is_null() {
                true => None,
                // SAFETY: as above.
                false => Some(unsafe { container_at(container) }?),
            };
            let array = wrapper.linked as *const *const u8;
            let mut units = Vec::new();
            if array.is_null() {
                return Ok(Fatbin::Linked { whole, units });
            }
            for index in 0..=MAX_LINKED_CONTAINERS {
                // SAFETY: the array ends with a null, which the loop does not pass.
                let unit = unsafe { array.add(index).read_unaligned() };
                if unit.is_null() {
                    return Ok(Fatbin::Linked { whole, units });
                }
                // SAFETY: the caller vouches for the array's pointers.
                units.push(unsafe { container_at(unit) }?);
            }
            Err(FatbinError::TooLarge {
                what: "linked set",
                found: MAX_LINKED_CONTAINERS as u64 + 1,
                limit: MAX_LINKED_CONTAINERS as u64,
            })
        }
    }
}

/// Reads the container at `pointer`, as long as its own header says.
///
/// # Safety
/// `pointer` is null or leads to a container that is readable in its whole length and unchanged for `'a`.
pub unsafe fn container_at<'a>(pointer: *const u8) -> Result<Container<'a>, FatbinError> {
    if pointer.is_null() {
        return Err(FatbinError::NullPointer { what: "container" });
    }
    // SAFETY: a container has at least its header.
    let header = unsafe { std::slice::from_raw_parts(pointer, CONTAINER_HEADER_LEN) };
    let len = Container::claimed_len(header)?;
    if len > MAX_CONTAINER_LEN {
        return Err(FatbinError::TooLarge { what: "container", found: len, limit: MAX_CONTAINER_LEN });
    }
    // SAFETY: the caller vouches for the container's length; it is far below isize::MAX.
    Container::parse(unsafe { std::slice::from_raw_parts(pointer, len as usize) })
}

/// The ELF image at `pointer`, as long as its tables and sections say.
///
/// # Safety
/// `pointer` leads to an ELF image that is readable in its whole length and unchanged for `'a`.
unsafe fn elf_at<'a>(pointer: *const u8) -> Result<&'a [u8], FatbinError> {
    // SAFETY: an image has at least its header.
    let header = unsafe { std::slice::from_raw_parts(pointer, ELF_HEADER_LEN) };
    let number = |bytes: &[u8], at: usize, len: usize| {
        bytes[at..at + len].iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte))
    };
    let (segments, sections) = (number(header, 32, 8), number(header, 40, 8));
    let (of_segments, of_sections) = (number(header, 54, 4), number(header, 58, 4));
    let table = |start: u64, shape: u64| start.saturating_add((shape & 0xffff) * (shape >> 16));
    let mut len = table(sections, of_sections).max(table(segments, of_segments)).max(ELF_HEADER_LEN as u64);
    let check = |len: u64| match len {
        0..=MAX_CONTAINER_LEN => Ok(len as usize),
        _ => Err(FatbinError::TooLarge { what: "machine code", found: len, limit: MAX_CONTAINER_LEN }),
    };
    // SAFETY: the tables are part of the image.
    let head = unsafe { std::slice::from_raw_parts(pointer, check(len)?) };
    if of_sections & 0xffff == SECTION_LEN as u64 {
        for section in head[sections as usize..].chunks_exact(SECTION_LEN).take((of_sections >> 16) as usize)
        {
            if number(section, 4, 4) != NO_CONTENT {
                len = len.max(number(section, 24, 8).saturating_add(number(section, 32, 8)));
            }
        }
    }
    // SAFETY: so is the content of its sections.
    Ok(unsafe { std::slice::from_raw_parts(pointer, check(len)?) })
}

/// Whether the bytes at `pointer` are `magic`, reading none after the first that differs.
///
/// # Safety
/// The bytes up to and including the first that differs from `magic` are readable.
unsafe fn begins_with(pointer: *const u8, magic: &[u8]) -> bool {
    // SAFETY: `all` stops at the first difference, up to which the caller vouches.
    magic.iter().enumerate().all(|(index, &byte)| unsafe { pointer.add(index).read() } == byte)
}
