//! Where in a device's address range allocations lie.
//!
//! Up to [`LARGEST_SLOT`], an allocation is a slot of a slab of equal ones: fast, without guard pages. Above, it has pages
//! of its own, followed by at least one page that faults. Freed pages are kept for the next allocation of the same size up to a limit, since
//! memory that was touched before is far cheaper than new memory. They are *exposed* until [`Heap::conceal_freed`] has all of them fault: who
//! frees and allocates in turn need not ask the system to take away what it is to give back at once.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::RawFd;

use super::extents::Extents;
use super::mapping::Access;
use super::range::{AddressRange, HUGE_PAGE, PAGE};
use super::shared::SharedFile;
use crate::{Error, Result};

/// What every size is rounded up to, and the least alignment of an allocation.
pub const GRANULE: u64 = 512;
/// Largest allocation that shares pages with others.
const LARGEST_SLOT: u64 = 1 << 20;
/// How much later in its page an allocation begins than the one before it; after eight they meet again.
const STAGGER: u64 = 3 * GRANULE;
/// From which size on slots are staggered: smaller ones would waste too much.
const LEAST_STAGGERED: u64 = 32 << 10;
/// From which size on allocations are at the beginning of a page again: no cache has them, so that kernels wait for memory anyway. A triad of 64 MiB took
/// a few per cent more where they were not.
const LEAST_ALIGNED: u64 = 32 << 20;
/// Memory of freed large allocations that is kept.
const LARGEST_CACHE: u64 = 512 << 20;

/// How an allocation was placed, to free it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// First byte.
    pub address: u64,
    /// Bytes set aside: those of a slot, or of the pages that it lies in.
    pub reserved: u64,
    /// Addresses taken for these pages alone; none for a slot.
    pub extent: Option<u64>,
}

/// Where other processes find an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shared {
    /// The descriptor of the file that it lies in.
    pub descriptor: RawFd,
    /// What tells that file from all other.
    pub identity: u64,
    /// Where in the file it begins.
    pub offset: u64,
    /// Bytes of memory in the file.
    pub len: u64,
    /// Where in the file stands which allocation is there.
    pub ticket: u64,
}

/// The heap of one device.
#[derive(Debug)]
pub struct Heap {
    range: AddressRange,
    extents: Extents,
    /// By class.
    slabs: Vec<BTreeMap<u64, Slab>>,
    /// Slabs with a free slot, by class.
    partial: Vec<BTreeSet<u64>>,
    /// Extent length to freed extents whose memory is kept.
    cached: BTreeMap<u64, Vec<Kept>>,
    cached_bytes: u64,
    /// Where in its first page the next extent's allocation begins.
    next_place: u64,
    /// How many of them do not fault.
    exposed: usize,
    /// Start of an extent or a slab to the file that its memory was moved to.
    shared: BTreeMap<u64, SharedFile>,
}

/// A freed extent.
#[derive(Clone, Copy, Debug)]
struct Kept {
    start: u64,
    /// Where in the first page the allocation began.
    place: u64,
    /// Bytes that have memory.
    committed: u64,
    is_exposed: bool,
}

#[derive(Debug)]
struct Slab {
    free: Vec<u64>,
    used: u32,
}

impl Heap {
    /// A heap in this range.
    pub fn new(range: AddressRange) -> Heap {
        let extents = Extents::new(range.base(), range.bytes());
        let classes = class_of(LARGEST_SLOT) + 1;
        Heap {
            range,
            extents,
            slabs: (0..classes).map(|_| BTreeMap::new()).collect(),
            partial: vec![BTreeSet::new(); classes],
            cached: BTreeMap::new(),
            cached_bytes: 0,
            next_place: 0,
            exposed: 0,
            shared: BTreeMap::new(),
        }
    }

    /// Whether the address lies in the heap's range.
    pub fn contains(&self, address: u64) -> bool {
        self.range.contains(address)
    }

    /// The heap's addresses.
    pub fn addresses(&self) -> std::ops::Range<u64> {
        self.range.base()..self.range.base() + self.range.bytes()
    }

    /// The range that the heap is in.
    pub fn range(&self) -> &AddressRange {
        &self.range
    }

    /// Finds room for `size` bytes, at least one.
    pub fn allocate(&mut self, size: u64) -> Result<Placement> {
        if size > self.range.bytes() {
            return Err(Error::OutOfMemory);
        }
        let size = size.max(1);
        if size <= LARGEST_SLOT { self.allocate_slot(size) } else { self.allocate_pages(size) }
    }

    /// Takes an allocation back. What has pages of its own is exposed.
    pub fn free(&mut self, placement: Placement) {
        if !self.shared.is_empty() {
            self.withdraw(placement);
        }
        match placement.extent {
            None => self.free_slot(placement),
            Some(extent) => self.free_pages(placement, extent),
        }
    }

    /// Gives the memory behind whole pages of allocations back; what is read there next is zero, or what was there.
    pub fn discard(&mut self, start: u64, len: u64) {
        self.range.discard(start, len);
    }

    /// Takes addresses without memory.
    pub fn take_addresses(&mut self, len: u64, align: u64) -> Result<u64> {
        self.extents.take(len, align).ok_or(Error::OutOfMemory)
    }

    /// Takes these addresses, if they are all free.
    pub fn take_addresses_at(&mut self, start: u64, len: u64) -> bool {
        self.extents.take_at(start, len)
    }

    /// Gives addresses back, at which nothing is mapped.
    pub fn give_addresses(&mut self, start: u64, len: u64) {
        self.extents.give(start, len);
    }

    /// Maps a file at addresses that were [taken](Self::take_addresses).
    pub fn map_shared(
        &mut self,
        start: u64,
        len: u64,
        file: &SharedFile,
        offset: u64,
        access: Access,
    ) -> Result<()> {
        self.range.map_file(start, len.next_multiple_of(PAGE), file, offset, protection(access))
    }

    /// Changes what may be done with a mapped file.
    pub fn protect_shared(&mut self, start: u64, len: u64, access: Access) -> Result<()> {
        self.range.protect(start, len, protection(access))
    }

    /// Takes a mapped file out.
    pub fn unmap_shared(&mut self, start: u64, len: u64) -> Result<()> {
        self.range.decommit(start, len)
    }

    /// Moves the memory of an allocation to a file, unless it is in one. Behind the memory stands a number for each place where an
    /// allocation can begin, by which who opens the file knows whether it is still there: `id` from now on, 0 when it is freed.
    pub fn share(&mut self, placement: Placement, id: u64) -> Result<Shared> {
        let (start, len, index) = self.place_of(placement);
        if !self.shared.contains_key(&start) {
            let file = SharedFile::create(len)?;
            // SAFETY: the pages are committed, and the caller sees to it that nothing uses them.
            unsafe { file.fill_from(start) }?;
            self.range.map_file(start, len, &file, 0, protection(Access::ReadWrite))?;
            self.shared.insert(start, file);
        }
        let (file, ticket) = (&self.shared[&start], len + 8 * index);
        file.set_word(ticket, id)?;
        let offset = placement.address - start;
        Ok(Shared { descriptor: file.descriptor(), identity: file.identity()?, offset, len, ticket })
    }

    /// Where the file of an allocation's memory begins, with its bytes, if it is shared; and which of those in it the allocation is.
    fn place_of(&self, placement: Placement) -> (u64, u64, u64) {
        if placement.extent.is_some() {
            return (placement.address - placement.address % PAGE, placement.reserved, 0);
        }
        let class = class_of(placement.reserved);
        let slab = self.slabs[class].range(..=placement.address).next_back();
        let start = *slab.expect("slots lie in slabs").0;
        (start, slab_len(class), (placement.address - start) / slot_distance(class))
    }

    /// Other processes are told that an allocation is gone. Where that fails they see memory that is nobody's.
    fn withdraw(&self, placement: Placement) {
        let (start, len, index) = self.place_of(placement);
        if let Some(file) = self.shared.get(&start) {
            let _ = file.set_word(len + 8 * index, 0);
        }
    }

    fn allocate_slot(&mut self, size: u64) -> Result<Placement> {
        let class = class_of(size);
        let slot = size_of_class(class);
        let start = match self.partial[class].first() {
            Some(start) => *start,
            None => self.add_slab(class)?,
        };
        let slab = self.slabs[class].get_mut(&start).expect("a partial slab is a slab");
        let address = slab.free.pop().expect("a partial slab has a free slot");
        slab.used += 1;
        if slab.free.is_empty() {
            self.partial[class].remove(&start);
        }
        Ok(Placement { address, reserved: slot, extent: None })
    }

    fn add_slab(&mut self, class: usize) -> Result<u64> {
        let (distance, len) = (slot_distance(class), slab_len(class));
        // One page more, so that running off the end of a slab faults.
        let start = self.extents.take(len + PAGE, HUGE_PAGE).ok_or(Error::OutOfMemory)?;
        if let Err(error) = self.range.commit(start, len) {
            self.extents.give(start, len + PAGE);
            return Err(error);
        }
        let free = (0..len / distance).rev().map(|index| start + index * distance).collect();
        self.slabs[class].insert(start, Slab { free, used: 0 });
        self.partial[class].insert(start);
        Ok(start)
    }

    fn free_slot(&mut self, placement: Placement) {
        let class = class_of(placement.reserved);
        let (start, slab) =
            self.slabs[class].range_mut(..=placement.address).next_back().expect("slots lie in slabs");
        let start = *start;
        slab.free.push(placement.address);
        slab.used -= 1;
        let unused = slab.used == 0;
        self.partial[class].insert(start);
        // One unused slab stays, for the program that frees and allocates in turn.
        if unused && self.partial[class].len() > 1 {
            let len = slab_len(class);
            if self.range.decommit(start, len).is_ok() {
                self.partial[class].remove(&start);
                self.slabs[class].remove(&start);
                self.shared.remove(&start);
                self.extents.give(start, len + PAGE);
            }
        }
    }

    fn allocate_pages(&mut self, size: u64) -> Result<Placement> {
        let extent = extent_len(size)?;
        let pages = |place: u64| (place + size).next_multiple_of(PAGE);
        let placement = |start: u64, place: u64| Placement {
            address: start + place,
            reserved: pages(place),
            extent: Some(extent),
        };
        if let Some(kept) = self.cached.get_mut(&extent).and_then(Vec::pop) {
            self.cached_bytes -= kept.committed;
            self.exposed -= usize::from(kept.is_exposed);
            let pages = pages(kept.place);
            if kept.committed > pages {
                self.range.decommit(kept.start + pages, kept.committed - pages)?;
            }
            if !kept.is_exposed || kept.committed < pages {
                self.range.commit(kept.start, pages)?;
            }
            return Ok(placement(kept.start, kept.place));
        }
        let start = match self.extents.take(extent, HUGE_PAGE) {
            Some(start) => start,
            None => {
                self.drop_cache();
                self.extents.take(extent, HUGE_PAGE).ok_or(Error::OutOfMemory)?
            }
        };
        let place = if size < LEAST_ALIGNED { self.next_place } else { 0 };
        let pages = pages(place);
        if let Err(error) = self.range.commit(start, pages) {
            self.extents.give(start, extent);
            return Err(error);
        }
        self.next_place = (self.next_place + STAGGER) % PAGE;
        Ok(placement(start, place))
    }

    fn free_pages(&mut self, Placement { address, reserved, .. }: Placement, extent: u64) {
        let place = address % PAGE;
        let start = address - place;
        // Other processes may still look at memory that was shared: it is not used again.
        let was_shared = self.shared.remove(&start).is_some();
        if !was_shared && self.cached_bytes + reserved <= LARGEST_CACHE {
            self.cached_bytes += reserved;
            self.exposed += 1;
            let kept = Kept { start, place, committed: reserved, is_exposed: true };
            self.cached.entry(extent).or_default().push(kept);
        } else if self.range.decommit(start, reserved).is_ok() {
            self.extents.give(start, extent);
        }
    }

    /// Whether there are freed pages that do not fault.
    pub fn has_exposed(&self) -> bool {
        self.exposed > 0
    }

    /// From now on freed pages fault.
    pub fn conceal_freed(&mut self) {
        if std::mem::take(&mut self.exposed) == 0 {
            return;
        }
        for kept in self.cached.values_mut().flatten().filter(|kept| kept.is_exposed) {
            kept.is_exposed = false;
            // Pages that cannot be concealed lose their memory instead.
            if self.range.conceal(kept.start, kept.committed).is_err() {
                let _ = self.range.decommit(kept.start, kept.committed);
            }
        }
    }

    /// Gives the memory of freed allocations back to the machine.
    pub fn drop_cache(&mut self) {
        self.exposed = 0;
        for (extent, extents) in std::mem::take(&mut self.cached) {
            for Kept { start, committed, .. } in extents {
                self.cached_bytes -= committed;
                // An extent whose pages cannot be given back stays out of use.
                if self.range.decommit(start, committed).is_ok() {
                    self.extents.give(start, extent);
                }
            }
        }
    }
}

/// Addresses taken for so many bytes: wherever in the first page they begin, at least one page more, so that the next one faults.
fn extent_len(size: u64) -> Result<u64> {
    let pages = size.checked_next_multiple_of(PAGE);
    let len = pages.and_then(|pages| pages.checked_add(2 * PAGE)?.checked_next_multiple_of(HUGE_PAGE));
    len.ok_or(Error::OutOfMemory)
}

pub(super) fn protection(access: Access) -> libc::c_int {
    match access {
        Access::None => libc::PROT_NONE,
        Access::Read => libc::PROT_READ,
        Access::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
    }
}

/// Four classes to each doubling: 512, 1024, 1536, 2048, 2560, 3072, 3584, 4096, 5120, …
fn class_of(size: u64) -> usize {
    let granules = size.div_ceil(GRANULE).max(1);
    if granules <= 4 {
        return granules as usize - 1;
    }
    let exponent = (granules - 1).ilog2();
    let quarter = (granules - 1) >> (exponent - 2);
    (4 * (exponent as usize - 1)) + (quarter as usize - 4)
}

fn size_of_class(class: usize) -> u64 {
    if class < 4 {
        return (class as u64 + 1) * GRANULE;
    }
    let (doubling, quarter) = (class / 4 - 1, class as u64 % 4);
    ((5 + quarter) << doubling) * GRANULE
}

/// From one slot of a slab to the next.
fn slot_distance(class: usize) -> u64 {
    let slot = size_of_class(class);
    if slot < LEAST_STAGGERED { slot } else { slot + STAGGER }
}

fn slab_len(class: usize) -> u64 {
    // At least eight slots, in whole huge pages.
    (slot_distance(class) * 8).next_multiple_of(HUGE_PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_their_sizes() {
        let mut last = 0;
        for class in 0..=class_of(LARGEST_SLOT) {
            let size = size_of_class(class);
            assert!(size > last && size.is_multiple_of(GRANULE));
            assert_eq!(class_of(size), class, "{size} is of its own class");
            assert_eq!(class_of(last + 1), class, "{} needs {size}", last + 1);
            last = size;
        }
        assert_eq!(last, LARGEST_SLOT);
    }

    #[test]
    #[cfg_attr(miri, ignore = "reserves address space with mmap flags that Miri lacks")]
    fn large_allocations_fault_when_freed() {
        let mut heap = Heap::new(AddressRange::reserve(1 << 30).unwrap());
        let block = heap.allocate(3 << 20).unwrap();
        // SAFETY: nobody else uses the heap.
        unsafe {
            guard::store(block.address, 7_u32).unwrap();
            assert!(guard::load::<u8>(block.address + (3 << 20)).is_err(), "a guard page follows");
            heap.free(block);
            heap.conceal_freed();
            assert!(guard::load::<u32>(block.address).is_err());
        }
        let again = heap.allocate((3 << 20) - 100).unwrap();
        assert_eq!(again.address, block.address, "freed pages are used again");
        assert!(!heap.has_exposed());
        heap.free(again);
        assert!(heap.has_exposed());
        heap.drop_cache();
        assert_eq!(heap.cached_bytes, 0);
    }

    #[test]
    #[cfg_attr(miri, ignore = "reserves address space with mmap flags that Miri lacks")]
    fn neighbours_begin_at_different_places_of_a_page() {
        let mut heap = Heap::new(AddressRange::reserve(1 << 30).unwrap());
        for size in [40 << 10, 64 << 10, 1 << 20, (1 << 20) + 1, 4 << 20, 40 << 20] {
            let blocks: Vec<Placement> = (0..8).map(|_| heap.allocate(size).unwrap()).collect();
            let places: BTreeSet<u64> = blocks.iter().map(|block| block.address % PAGE).collect();
            assert_eq!(places.len(), if size < LEAST_ALIGNED { 8 } else { 1 }, "{size}");
            for block in &blocks {
                assert!(block.address.is_multiple_of(GRANULE));
                // SAFETY: nobody else uses the heap.
                unsafe {
                    guard::store(block.address, 1_u8).unwrap();
                    guard::store(block.address + size - 1, 1_u8).unwrap();
                    let end = (block.address + size).next_multiple_of(PAGE);
                    let faults = guard::load::<u8>(end).is_err();
                    assert_eq!(
                        faults,
                        block.extent.is_some(),
                        "pages of its own are followed by one that faults"
                    );
                }
            }
            let [first, last] = [blocks[0], blocks[7]];
            blocks.into_iter().for_each(|block| heap.free(block));
            assert_eq!(heap.allocate(size).unwrap().address, last.address, "the same place is used again");
            if let Some(extent) = first.extent {
                assert!(first.address % HUGE_PAGE < PAGE && extent >= size + PAGE);
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "reserves address space with mmap flags that Miri lacks")]
    fn exposed_pages_are_used_as_they_are() {
        let mut heap = Heap::new(AddressRange::reserve(1 << 30).unwrap());
        let page = |block: Placement, at: u64| block.address + at * PAGE;
        let block = heap.allocate(1000 * PAGE).unwrap();
        // SAFETY: nobody else uses the heap.
        unsafe {
            guard::store(page(block, 999), 7_u32).unwrap();
            heap.free(block);
            let less = heap.allocate(900 * PAGE).unwrap();
            assert_eq!((less.address, heap.has_exposed()), (block.address, false));
            assert!(guard::load::<u32>(page(less, 899)).is_ok());
            assert!(guard::load::<u32>(page(less, 900)).is_err(), "a page that faults follows");
            heap.free(less);
            let more = heap.allocate(1000 * PAGE).unwrap();
            assert_eq!(guard::load::<u32>(page(more, 999)).ok(), Some(0));
            heap.conceal_freed();
            assert!(guard::load::<u32>(page(more, 999)).is_ok(), "it is in use");
            heap.free(more);
            heap.drop_cache();
            assert!(guard::load::<u32>(page(more, 0)).is_err());
            assert!(!heap.has_exposed());
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "reserves address space with mmap flags that Miri lacks")]
    fn exhausted_and_recovered() {
        let mut heap = Heap::new(AddressRange::reserve(64 << 20).unwrap());
        let mut blocks = Vec::new();
        while let Ok(block) = heap.allocate(5 << 20) {
            blocks.push(block);
        }
        assert!(blocks.len() >= 9, "{}", blocks.len());
        assert_eq!(heap.allocate(1 << 40), Err(Error::OutOfMemory));
        for block in blocks {
            heap.free(block);
        }
        assert!(heap.allocate(50 << 20).is_ok(), "cached extents merge when room is needed");
    }
}
