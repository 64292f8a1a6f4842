//! The heap that kernels allocate from.

use std::collections::HashMap;
use std::sync::Arc;

use crate::lock::{Rank, RankedMutex};
use crate::memory::{AddressSpace, ContextId, Kind};

use crate::memory::extents::Extents;

/// Alignment of what kernels allocate.
const ALIGN: u64 = 16;

/// What lies before each allocation and is nobody's. nvcc stores the length of an array that `new T[n]` of a class with operators of
/// its own makes in the word before what the allocation gave, for which it asks no room: a GPU's heap has room there.
const BEFORE: u64 = 16;

/// The heap of one context; its memory is allocated when a kernel first asks.
pub struct DeviceHeap {
    space: Arc<AddressSpace>,
    device: usize,
    owner: ContextId,
    state: RankedMutex<State>,
}

struct State {
    limit: u64,
    region: Option<Region>,
}

struct Region {
    base: u64,
    free: Extents,
    /// Address to where what lies before it begins, and the length from there.
    used: HashMap<u64, (u64, u64)>,
}

impl DeviceHeap {
    /// A heap of so many bytes in the memory of a device, owned by a context.
    pub fn new(space: Arc<AddressSpace>, device: usize, owner: ContextId, limit: u64) -> DeviceHeap {
        let state = RankedMutex::new(Rank::DeviceHeap, State { limit, region: None });
        DeviceHeap { space, device, owner, state }
    }

    /// Sets the size; false if the heap is in use already and its size would change.
    pub fn set_limit(&self, limit: u64) -> bool {
        let mut state = self.state.lock();
        if state.region.is_some() && state.limit != limit {
            return false;
        }
        state.limit = limit;
        true
    }

    /// Forgets the memory, which its owner has freed.
    pub fn reset(&self, limit: u64) {
        *self.state.lock() = State { limit, region: None };
    }

    /// Allocates; `None` when there is no room. No bytes take as much as one.
    pub fn allocate(&self, size: u64) -> Option<u64> {
        self.allocate_aligned(size, ALIGN)
    }

    /// Allocates at a multiple of a power of two; `None` also if it is none.
    pub fn allocate_aligned(&self, size: u64, align: u64) -> Option<u64> {
        let align = Some(align).filter(|align| align.is_power_of_two())?.max(ALIGN);
        // What lies before takes as much as the alignment, so that what is given is aligned too.
        let before = BEFORE.max(align);
        let len = size.max(1).checked_next_multiple_of(ALIGN)?.checked_add(before)?;
        let mut state = self.state.lock();
        let State { limit, region } = &mut *state;
        let region = match region {
            Some(region) => region,
            None => {
                let base = self.space.allocate(self.device, self.owner, *limit, Kind::KernelHeap).ok()?;
                region.insert(Region { base, free: Extents::new(base, *limit), used: HashMap::new() })
            }
        };
        let start = region.free.take(len, align)?;
        region.used.insert(start + before, (start, len));
        Some(start + before)
    }

    /// Whether an address is one of the heap's.
    pub fn contains(&self, address: u64) -> bool {
        let state = self.state.lock();
        state
            .region
            .as_ref()
            .is_some_and(|region| (region.base..region.base + state.limit).contains(&address))
    }

    /// Gives an allocation back; false if there is none at the address.
    pub fn free(&self, address: u64) -> bool {
        let mut state = self.state.lock();
        let Some(region) = &mut state.region else { return false };
        let Some((start, len)) = region.used.remove(&address) else { return false };
        region.free.give(start, len);
        true
    }
}

#[cfg(test)]
#[cfg(not(miri))] // reserves address space with mmap flags that Miri lacks
mod tests {
    use super::*;

    #[test]
    fn the_word_before_an_allocation_is_nobodys() {
        let space = Arc::new(AddressSpace::new(&[64 << 20]).unwrap());
        let heap = DeviceHeap::new(space, 0, ContextId(1), 1000);
        let (a, b) = (heap.allocate(16).unwrap(), heap.allocate(12).unwrap());
        assert!(heap.contains(a - 8), "of the heap's memory");
        assert!(b - 8 >= a + 16, "not of the allocation before");
        assert!(heap.free(a) && heap.free(b));
        assert_eq!(heap.allocate(1000 - BEFORE - 8), Some(a), "all was given back");
        assert_eq!(heap.allocate(u64::MAX - 20), None);
    }

    #[test]
    fn allocates_at_multiples_of_powers_of_two() {
        let space = Arc::new(AddressSpace::new(&[64 << 20]).unwrap());
        let heap = DeviceHeap::new(space, 0, ContextId(1), 1 << 20);
        for align in [1, 2, 16, 64, 4096, 1 << 16] {
            let (a, b) = (heap.allocate_aligned(100, align).unwrap(), heap.allocate(1).unwrap());
            assert!(a.is_multiple_of(align) && (b >= a + 100 || b < a), "{align}");
            assert!(heap.free(a) && heap.free(b), "{align}");
        }
        assert_eq!([0, 3, 24].map(|align| heap.allocate_aligned(8, align)), [None; 3], "no powers of two");
        assert_eq!(heap.allocate_aligned(8, 1 << 20), None, "no room before it");
        assert!(heap.allocate((1 << 20) - BEFORE).is_some(), "all was given back");
    }

    #[test]
    fn allocates_until_exhausted() {
        let space = Arc::new(AddressSpace::new(&[64 << 20]).unwrap());
        let heap = DeviceHeap::new(space.clone(), 0, ContextId(1), 1000);
        assert!(heap.allocate(0).is_some_and(|nothing| heap.free(nothing)));
        let a = heap.allocate(500).unwrap();
        assert_eq!(a % 16, 0);
        assert_eq!(heap.allocate(500), None, "rounded up, two do not fit");
        assert!(!heap.set_limit(5000), "the heap is in use");
        assert!(!heap.free(a + 16) && !heap.free(0));
        assert_eq!(heap.allocate(500), None, "that was no allocation");
        assert!(heap.free(a) && !heap.free(a));
        assert!(heap.contains(a) && heap.contains(a - BEFORE + 999) && !heap.contains(a - BEFORE + 1000));
        assert_eq!(heap.allocate(900), Some(a));
        assert_eq!(space.find(a), None, "not the host's to use");
        assert_eq!(space.free(a, |_| true), Err(crate::Error::InvalidValue));
        space.free_owned(ContextId(1));
        assert_eq!(space.info(0).unwrap().0, 64 << 20);
    }
}
