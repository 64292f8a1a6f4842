//! Free parts of an address range: plain arithmetic, no memory.

use std::collections::{BTreeMap, BTreeSet};

/// The free extents of a range; neighbours are merged.
#[derive(Debug)]
pub struct Extents {
    /// Start to length.
    by_start: BTreeMap<u64, u64>,
    /// Length and start: the best fit is the first that is long enough.
    by_len: BTreeSet<(u64, u64)>,
}

impl Extents {
    /// A range that is all free.
    pub fn new(base: u64, len: u64) -> Extents {
        let mut extents = Extents { by_start: BTreeMap::new(), by_len: BTreeSet::new() };
        extents.insert(base, len);
        extents
    }

    /// Takes `len` bytes at a multiple of `align` (a power of two) out of the smallest extent that has room.
    pub fn take(&mut self, len: u64, align: u64) -> Option<u64> {
        debug_assert!(align.is_power_of_two() && len > 0);
        let (start, extent_len, address) =
            self.by_len.range((len, 0)..).find_map(|&(extent_len, start)| {
                let address = start.checked_next_multiple_of(align)?;
                let end = address.checked_add(len)?;
                (end <= start + extent_len).then_some((start, extent_len, address))
            })?;
        self.remove(start, extent_len);
        self.insert(start, address - start);
        self.insert(address + len, start + extent_len - address - len);
        Some(address)
    }

    /// Takes these bytes, if they are all free.
    pub fn take_at(&mut self, address: u64, len: u64) -> bool {
        let Some((&start, &extent_len)) = self.by_start.range(..=address).next_back() else { return false };
        let Some(end) = address.checked_add(len).filter(|end| *end <= start + extent_len) else {
            return false;
        };
        self.remove(start, extent_len);
        self.insert(start, address - start);
        self.insert(end, start + extent_len - end);
        true
    }

    /// Gives back what was taken.
    pub fn give(&mut self, mut start: u64, mut len: u64) {
        if let Some((&before, &before_len)) = self.by_start.range(..start).next_back()
            && before + before_len == start
        {
            self.remove(before, before_len);
            start = before;
            len += before_len;
        }
        if let Some(&after_len) = self.by_start.get(&(start + len)) {
            self.remove(start + len, after_len);
            len += after_len;
        }
        self.insert(start, len);
    }

    fn insert(&mut self, start: u64, len: u64) {
        if len > 0 {
            self.by_start.insert(start, len);
            self.by_len.insert((len, start));
        }
    }

    fn remove(&mut self, start: u64, len: u64) {
        self.by_start.remove(&start);
        self.by_len.remove(&(len, start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_aligned_and_merges_back() {
        let mut extents = Extents::new(0x1000, 0x10000);
        let a = extents.take(0x100, 0x4000).unwrap();
        assert_eq!(a, 0x4000);
        let b = extents.take(0x2000, 0x1000).unwrap();
        assert_eq!(b, 0x1000, "the smaller extent before `a` is the better fit");
        let c = extents.take(0xc000, 0x100).unwrap();
        assert_eq!(c, 0x4100);
        assert_eq!(extents.take(0x4000, 1), None);
        assert!(!extents.take_at(0x3f00, 0x200) && !extents.take_at(0x500, 0x100));
        assert!(extents.take_at(0x3f00, 0x80) && !extents.take_at(0x3f00, 0x80));
        extents.give(0x3f00, 0x80);
        assert!(!extents.take_at(0x10f00, 0x200) && !extents.take_at(0x10f00, u64::MAX));
        extents.give(b, 0x2000);
        extents.give(a, 0x100);
        extents.give(c, 0xc000);
        assert_eq!(extents.by_start, BTreeMap::from([(0x1000, 0x10000)]));
        assert_eq!(extents.by_len.len(), 1);
    }

    #[test]
    fn no_two_taken_extents_overlap() {
        let mut extents = Extents::new(0, 1 << 20);
        let mut taken: Vec<(u64, u64)> = Vec::new();
        let mut state = 12345_u64;
        for step in 0..2000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let random = state >> 33;
            if step % 3 == 2 && !taken.is_empty() {
                let (start, len) = taken.swap_remove(random as usize % taken.len());
                extents.give(start, len);
            } else if let Some(start) = extents.take(random % 5000 + 1, 1 << (random % 13)) {
                let len = random % 5000 + 1;
                assert!(taken.iter().all(|&(s, l)| start + len <= s || s + l <= start));
                assert!(start + len <= 1 << 20 && start % (1 << (random % 13)) == 0);
                taken.push((start, len));
            }
        }
        for (start, len) in taken {
            extents.give(start, len);
        }
        assert_eq!(extents.by_start, BTreeMap::from([(0, 1 << 20)]));
    }
}
