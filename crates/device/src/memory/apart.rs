//! Reservations apart from a device's range: those that would take much of its addresses, or more than it has.
//!
//! Programs that manage memory themselves set aside as many addresses as they may ever want, terabytes, since addresses cost nothing.

use std::collections::BTreeMap;

use super::range::AddressRange;
use crate::Result;

/// Ranges of addresses by the address where their reservations begin.
#[derive(Debug, Default)]
pub(super) struct Apart(BTreeMap<u64, AddressRange>);

impl Apart {
    /// Sets `len` bytes aside at a multiple of `align`, a power of two.
    pub fn reserve(&mut self, len: u64, align: u64) -> Result<u64> {
        // The range is aligned to a huge page by itself.
        let range = AddressRange::reserve(len.saturating_add(align))?;
        let start = range.base().next_multiple_of(align);
        self.0.insert(start, range);
        Ok(start)
    }

    /// Gives back what begins here, if anything does.
    pub fn unreserve(&mut self, start: u64) -> bool {
        self.0.remove(&start).is_some()
    }

    /// The range that an address lies in.
    pub fn of(&self, address: u64) -> Option<&AddressRange> {
        let (_, range) = self.0.range(..=address).next_back()?;
        range.contains(address).then_some(range)
    }
}

#[cfg(test)]
#[cfg(not(miri))] // reserved address space
mod tests {
    use super::*;

    #[test]
    fn ranges_are_aligned_and_given_back() {
        let mut apart = Apart::default();
        let (len, align) = (3 << 40, 1 << 34);
        let start = apart.reserve(len, align).unwrap();
        assert!(start.is_multiple_of(align));
        assert!(apart.of(start).is_some() && apart.of(start + len - 1).is_some());
        assert!(apart.of(start + len + align).is_none());
        assert!(!apart.unreserve(start + align));
        assert!(apart.unreserve(start) && apart.of(start).is_none());
        assert!(apart.reserve(u64::MAX - 4096, 4096).is_err());
    }
}
