//! A reserved range of addresses whose pages are made usable as needed.

use std::ptr;

use super::shared::SharedFile;
use crate::{Error, Result};

/// Bytes of a page of the machine.
pub const PAGE: u64 = 4096;
/// Bytes of a huge page.
pub const HUGE_PAGE: u64 = 2 << 20;

/// Addresses that belong to nobody else. Pages fault until they are committed.
#[derive(Debug)]
pub struct AddressRange {
    base: u64,
    len: u64,
}

impl AddressRange {
    /// Reserves `len` bytes at a multiple of [`HUGE_PAGE`]. Takes no memory.
    pub fn reserve(len: u64) -> Result<AddressRange> {
        let padded = len.checked_add(HUGE_PAGE).and_then(|len| usize::try_from(len).ok());
        let padded = padded.ok_or(Error::OutOfMemory)?;
        // SAFETY: a fresh private mapping.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                padded,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(Error::OutOfMemory);
        }
        let start = start as u64;
        let base = start.next_multiple_of(HUGE_PAGE);
        let end = start + padded as u64;
        // SAFETY: what is cut off on both sides is part of the mapping just made.
        unsafe {
            if base > start {
                libc::munmap(start as *mut _, (base - start) as usize);
            }
            if end > base + len {
                libc::munmap((base + len) as *mut _, (end - base - len) as usize);
            }
        }
        Ok(AddressRange { base, len })
    }

    /// Reserves `len` bytes, or half of that, and so on down to `least`.
    pub fn reserve_up_to(len: u64, least: u64) -> Result<AddressRange> {
        let mut len = len.max(least);
        loop {
            match AddressRange::reserve(len) {
                Err(_) if len / 2 >= least => len /= 2,
                outcome => return outcome,
            }
        }
    }

    /// Reserves as much as there is, from `most` bytes down to `least`, at addresses that fit 32 bits.
    pub fn reserve_low(most: u64, least: u64) -> Result<AddressRange> {
        const END: u64 = 1 << 32;
        const STEP: u64 = 64 << 20;
        let mut len = most;
        while len >= least {
            // From above: programs that are linked to fixed addresses have theirs below.
            let mut base = END - len;
            while base >= STEP {
                // SAFETY: a fresh private mapping; what is there already makes it fail.
                let start = unsafe {
                    libc::mmap(
                        base as *mut _,
                        len as usize,
                        libc::PROT_NONE,
                        libc::MAP_PRIVATE
                            | libc::MAP_ANONYMOUS
                            | libc::MAP_NORESERVE
                            | libc::MAP_FIXED_NOREPLACE,
                        -1,
                        0,
                    )
                };
                if start as u64 == base {
                    return Ok(AddressRange { base, len });
                }
                if start != libc::MAP_FAILED {
                    // An old kernel takes the address for a hint.
                    // SAFETY: the mapping just made.
                    unsafe { libc::munmap(start, len as usize) };
                }
                base -= STEP;
            }
            len /= 2;
        }
        Err(Error::OutOfMemory)
    }

    /// First address.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Bytes.
    pub fn bytes(&self) -> u64 {
        self.len
    }

    /// Whether the address lies in the range.
    pub fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.base) < self.len
    }

    /// Makes whole pages readable and writable. Pages that were decommitted are zero.
    pub fn commit(&self, start: u64, len: u64) -> Result<()> {
        self.protect(start, len, libc::PROT_READ | libc::PROT_WRITE)?;
        if len >= HUGE_PAGE {
            // SAFETY: advice about pages of this range. Where it is not taken, nothing is lost but speed.
            unsafe { libc::madvise(start as *mut _, len as usize, libc::MADV_HUGEPAGE) };
        }
        Ok(())
    }

    /// Makes whole pages fault, keeping their memory for the next commit.
    pub fn conceal(&self, start: u64, len: u64) -> Result<()> {
        self.protect(start, len, libc::PROT_NONE)
    }

    /// Makes whole pages fault and gives their memory back.
    pub fn decommit(&self, start: u64, len: u64) -> Result<()> {
        self.assert_within(start, len);
        // SAFETY: the pages are ours, and their allocation is gone; a fresh mapping replaces them at once.
        let mapped = unsafe {
            libc::mmap(
                start as *mut _,
                len as usize,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        if mapped == libc::MAP_FAILED { Err(Error::OutOfMemory) } else { Ok(()) }
    }

    /// Gives the memory of whole pages back, which stay usable.
    pub fn discard(&self, start: u64, len: u64) {
        self.assert_within(start, len);
        // SAFETY: the pages are ours and their content is not needed. Where the advice is not taken, nothing is lost.
        unsafe { libc::madvise(start as *mut _, len as usize, libc::MADV_DONTNEED) };
    }

    /// Replaces whole pages by those of a file.
    pub fn map_file(
        &self,
        start: u64,
        len: u64,
        file: &SharedFile,
        offset: u64,
        protection: libc::c_int,
    ) -> Result<()> {
        self.assert_within(start, len);
        // SAFETY: the pages are ours; what was there is replaced at once.
        let mapped = unsafe {
            libc::mmap(
                start as *mut _,
                len as usize,
                protection,
                libc::MAP_SHARED | libc::MAP_FIXED,
                file.descriptor(),
                offset as libc::off_t,
            )
        };
        if mapped == libc::MAP_FAILED { Err(Error::OutOfMemory) } else { Ok(()) }
    }

    pub(super) fn protect(&self, start: u64, len: u64, protection: libc::c_int) -> Result<()> {
        self.assert_within(start, len);
        // SAFETY: the pages are ours.
        match unsafe { libc::mprotect(start as *mut _, len as usize, protection) } {
            0 => Ok(()),
            _ => Err(Error::OutOfMemory),
        }
    }

    fn assert_within(&self, start: u64, len: u64) {
        let offset = start.wrapping_sub(self.base);
        assert!(
            offset <= self.len
                && len <= self.len - offset
                && offset.is_multiple_of(PAGE)
                && len.is_multiple_of(PAGE),
            "whole pages of this range: {start:#x}, {len:#x} bytes"
        );
    }
}

impl Drop for AddressRange {
    fn drop(&mut self) {
        // SAFETY: the range is ours and nothing in it is used any more: what lies in it borrows from its owner.
        unsafe { libc::munmap(self.base as *mut _, self.len as usize) };
    }
}
