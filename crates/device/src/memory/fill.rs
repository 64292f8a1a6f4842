//! Setting memory to a value.

use super::transfer::Side;
use super::{AddressSpace, Allocation};
use crate::{Error, Result};

/// Rows of equal elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// The first byte to set, in memory that the device knows.
    pub address: u64,
    /// Bytes from one row to the next.
    pub pitch: u64,
    /// The value, in the low bytes.
    pub value: u32,
    /// Bytes of an element: 1, 2 or 4.
    pub element: u32,
    /// Elements of a row.
    pub width: u64,
    /// Rows.
    pub height: u64,
}

impl Fill {
    /// `count` elements in a row.
    pub fn linear(address: u64, value: u32, element: u32, count: u64) -> Fill {
        Fill { address, pitch: 0, value, element, width: count, height: 1 }
    }

    /// Checks the elements' size and alignment, and that all lie in memory the device knows.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] where they do not.
    pub fn check(&self, space: &AddressSpace) -> Result<()> {
        self.check_found(space, AddressSpace::find)
    }

    /// The same for a fill that a kernel asks for: it may name the heap that it allocates from too.
    ///
    /// # Errors
    /// As for [`check`](Self::check).
    pub(crate) fn check_for_kernel(&self, space: &AddressSpace) -> Result<()> {
        self.check_found(space, AddressSpace::find_for_kernel)
    }

    fn check_found(
        &self,
        space: &AddressSpace,
        find: impl FnOnce(&AddressSpace, u64) -> Option<Allocation>,
    ) -> Result<()> {
        if !matches!(self.element, 1 | 2 | 4) {
            return Err(Error::InvalidValue);
        }
        if self.is_empty() {
            return Ok(());
        }
        let element = u64::from(self.element);
        let row = self.width.checked_mul(element).ok_or(Error::InvalidValue)?;
        let misaligned =
            !self.address.is_multiple_of(element) || (self.height > 1 && !self.pitch.is_multiple_of(element));
        if misaligned || (self.height > 1 && self.pitch < row) {
            return Err(Error::InvalidValue);
        }
        let len = (self.height - 1).checked_mul(self.pitch).and_then(|rows| rows.checked_add(row));
        let end = len.and_then(|len| self.address.checked_add(len)).ok_or(Error::InvalidValue)?;
        match find(space, self.address) {
            Some(allocation) if end <= allocation.end() || space.covers(self.address, end - self.address) => {
                space.check_access(&allocation, self.address, end - self.address, true)
            }
            _ => Err(Error::InvalidValue),
        }
    }

    /// Bytes that are set, if they can be counted.
    pub fn bytes(&self) -> Option<u64> {
        self.width.checked_mul(self.element.into())?.checked_mul(self.height)
    }

    /// The same, if there is one row.
    pub(crate) fn bytes_in_a_row(&self) -> Option<u64> {
        self.bytes().filter(|_| self.height == 1)
    }

    /// Sets up to `len` of the bytes behind the first `offset` of the first row; both are of whole elements.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub(crate) fn run_part(&self, offset: u64, len: u64) -> Result<()> {
        let row = self.width * u64::from(self.element);
        self.fill_row(self.address + offset, len.min(row.saturating_sub(offset)))
    }

    /// Sets the memory.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if it is not there any more.
    pub fn run(&self) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let row = self.width * u64::from(self.element);
        for y in 0..self.height {
            self.fill_row(Side::device(self.address + y * self.pitch).address(), row)?;
        }
        Ok(())
    }

    /// Whether there is nothing to set; its other numbers may then be anything.
    fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0
    }

    fn fill_row(&self, address: u64, len: u64) -> Result<()> {
        let bytes = self.value.to_le_bytes();
        let element = &bytes[..self.element as usize];
        let faulted = |_| Error::InvalidValue;
        if element.iter().all(|byte| *byte == element[0]) {
            // SAFETY: the row was checked to lie in memory the device knows, which holds no host object.
            return unsafe { guard::fill(address, element[0], len) }.map_err(faulted);
        }
        // A piece of the pattern at a time; pieces hold whole elements.
        let pattern: Vec<u8> = element.iter().copied().cycle().take(PATTERN.min(len as usize)).collect();
        let mut done = 0;
        while done < len {
            let piece = (pattern.len() as u64).min(len - done);
            // SAFETY: as above for the destination; the pattern is ours and at least as long.
            unsafe { guard::copy(address + done, pattern.as_ptr() as u64, piece) }.map_err(faulted)?;
            done += piece;
        }
        Ok(())
    }
}

/// Bytes of pattern written at once.
const PATTERN: usize = 16 << 10;

#[cfg(test)]
#[cfg(not(miri))] // signals and inline assembly
mod tests {
    use super::super::{ContextId, Kind};
    use super::*;

    #[test]
    fn patterns_of_all_sizes() {
        let mut bytes = vec![0_u8; 100_000];
        let address = bytes.as_mut_ptr() as u64;
        for (value, element, count) in
            [(0xab, 1, 99_999), (0x1234, 2, 40_001), (0x1020304, 4, 20_003), (0, 4, 3)]
        {
            bytes.fill(0xee);
            Fill::linear(address, value, element, count).run().unwrap();
            let len = (count * u64::from(element)) as usize;
            for (index, byte) in bytes.iter().enumerate() {
                let expected = if index < len { value.to_le_bytes()[index % element as usize] } else { 0xee };
                assert_eq!(*byte, expected, "{value:#x} at {index}");
            }
        }
    }

    #[test]
    fn bounds_and_alignment() {
        let space = AddressSpace::new(&[64 << 20]).unwrap();
        let base = space.allocate(0, ContextId(1), 4096, Kind::Device).unwrap();
        let check = |address, element, count| Fill::linear(address, 1, element, count).check(&space);
        assert_eq!(check(base, 4, 1024), Ok(()));
        assert_eq!(check(base, 4, 1025), Err(Error::InvalidValue));
        assert_eq!(check(base + 2, 4, 1), Err(Error::InvalidValue));
        assert_eq!(check(base + 1, 2, 1), Err(Error::InvalidValue));
        assert_eq!(check(base, 3, 1), Err(Error::InvalidValue));
        assert_eq!(check(base, 4, u64::MAX / 2), Err(Error::InvalidValue));
        assert_eq!(check(0, 4, 0), Ok(()));
        assert_eq!(check(0, 4, 1), Err(Error::InvalidValue));
        let plane = Fill { pitch: 512, width: 128, height: 8, ..Fill::linear(base, 1, 4, 0) };
        assert_eq!(plane.check(&space), Ok(()));
        assert_eq!(Fill { height: 9, ..plane }.check(&space), Err(Error::InvalidValue));
        assert_eq!(Fill { pitch: 511, ..plane }.check(&space), Err(Error::InvalidValue));
        let nothing = Fill { height: 0, width: u64::MAX, address: u64::MAX, ..plane };
        assert_eq!((nothing.check(&space), nothing.run()), (Ok(()), Ok(())));
    }
}
