//! Memory of other APIs, by a descriptor that they have exported.
//!
//! What a descriptor of a file in memory leads to can be shared with whoever else maps it: another process, a library, a device
//! of another kind that works in the machine's memory.

use std::os::fd::OwnedFd;

use super::mapping::{Access, GRANULARITY};
use super::range::PAGE;
use super::shared::SharedFile;
use super::{AddressSpace, Allocation, ArrayLayout, ArrayMemory, ContextId, Kind};
use crate::{Error, Result};

/// Memory that another API has made.
#[derive(Debug)]
pub struct ExternalMemory {
    file: SharedFile,
    size: u64,
    device: usize,
}

impl ExternalMemory {
    /// The memory behind a descriptor, for a device.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a size of 0, or more than there is; [`Error::OperatingSystem`] for a descriptor of what
    /// cannot be mapped to be read and written.
    pub fn import(device: usize, descriptor: OwnedFd, size: u64) -> Result<ExternalMemory> {
        let unusable = |_| Error::OperatingSystem("the descriptor is of no memory that can be mapped".into());
        let file = SharedFile::from_descriptor(descriptor).map_err(unusable)?;
        if !file.is_mappable() {
            return Err(unusable(Error::InvalidValue));
        }
        if size == 0 || size > file.bytes() {
            return Err(Error::InvalidValue);
        }
        Ok(ExternalMemory { file, size, device })
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Number of its device.
    pub fn device(&self) -> usize {
        self.device
    }
}

impl AddressSpace {
    /// Maps a part of external memory, as an allocation of a context's. It stays when the object itself is gone.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a part that is empty or does not lie in the memory, [`Error::OutOfMemory`] where no addresses
    /// are left.
    pub fn map_external(
        &self,
        memory: &ExternalMemory,
        owner: ContextId,
        offset: u64,
        size: u64,
    ) -> Result<u64> {
        self.place_external(memory, owner, offset, size, Kind::External)
    }

    /// An array in external memory: its levels lie there as those of an array of ours do.
    ///
    /// # Errors
    /// As for [`map_external`](Self::map_external) and [`allocate_array`](Self::allocate_array).
    pub fn map_external_array(
        &self,
        memory: &ExternalMemory,
        owner: ContextId,
        offset: u64,
        layout: &ArrayLayout,
    ) -> Result<ArrayMemory> {
        self.array_at(memory.device, owner, layout, |size| {
            self.place_external(memory, owner, offset, size, Kind::Array)
        })
    }

    fn place_external(
        &self,
        memory: &ExternalMemory,
        owner: ContextId,
        offset: u64,
        size: u64,
        kind: Kind,
    ) -> Result<u64> {
        let end = offset.checked_add(size).filter(|end| size > 0 && *end <= memory.size);
        let end = end.ok_or(Error::InvalidValue)?;
        let first = offset - offset % PAGE;
        let len = (end - first).checked_next_multiple_of(GRANULARITY).ok_or(Error::OutOfMemory)?;
        let mut mappings = self.mappings.lock();
        let mut heap = self.device(memory.device)?.own.heap.lock();
        let start = heap.take_addresses(len, GRANULARITY)?;
        if let Err(error) = heap.map_shared(start, end - first, &memory.file, first, Access::ReadWrite) {
            heap.give_addresses(start, len);
            return Err(error);
        }
        drop(heap);
        let address = start + (offset - first);
        mappings.external.insert(address, (start, len));
        let allocation = Allocation::new(address, size, kind, owner, memory.device);
        self.insert(allocation).map_err(|_| Error::InvalidValue)?;
        Ok(address)
    }

    /// Takes the mapping of an allocation that is gone out, if it was of external memory or an array without its own.
    pub(super) fn reclaim_external(&self, allocation: &Allocation) {
        let mut mappings = self.mappings.lock();
        let Some((start, len)) = mappings.external.remove(&allocation.base) else { return };
        mappings.tiles.retain(|place, _| !(start..start + len).contains(place));
        let mut heap = self.devices[allocation.device].own.heap.lock();
        if heap.unmap_shared(start, len).is_ok() {
            heap.give_addresses(start, len);
        }
    }
}

#[cfg(test)]
#[cfg(not(miri))] // reserved address space
mod tests {
    use super::super::Backing;
    use super::*;

    const A: ContextId = ContextId(1);

    fn word(address: u64) -> Option<u32> {
        // SAFETY: memory of the test's.
        unsafe { guard::load(address) }.ok()
    }

    #[test]
    fn two_mappings_show_the_same_memory() {
        let space = AddressSpace::new(&[64 << 20]).unwrap();
        let file = SharedFile::create(3 * PAGE).unwrap();
        let memory = ExternalMemory::import(0, file.duplicate().unwrap(), 3 * PAGE - 8).unwrap();
        let before = space.info(0).unwrap().0;
        let whole = space.map_external(&memory, A, 0, 3 * PAGE - 8).unwrap();
        let part = space.map_external(&memory, A, PAGE + 12, 100).unwrap();
        // SAFETY: memory of the test's.
        unsafe { guard::store(whole + PAGE + 12, 7_u32).unwrap() };
        assert_eq!(word(part), Some(7));
        assert!(space.covers(part, 100) && !space.covers(part, 101));
        let found = space.find(part + 5).unwrap();
        assert_eq!((found.base, found.size, found.kind), (part, 100, Kind::External));
        assert_eq!(space.info(0).unwrap().0, before, "it is not the device's memory");
        for (offset, size) in [(0, 0), (0, 3 * PAGE), (3 * PAGE - 8, 1), (u64::MAX, 2), (1, u64::MAX)] {
            assert_eq!(space.map_external(&memory, A, offset, size), Err(Error::InvalidValue));
        }
        drop(memory);
        space.free(part, |found| found.kind == Kind::External).unwrap();
        assert_eq!((word(part), word(whole + PAGE + 12)), (None, Some(7)));
        space.free_owned(A);
        assert_eq!(word(whole), None);
    }

    #[test]
    fn only_what_can_be_mapped_is_memory() {
        let import = |descriptor: OwnedFd, size| ExternalMemory::import(0, descriptor, size).map(drop);
        let file = || SharedFile::create(PAGE).unwrap().duplicate().unwrap();
        assert_eq!(import(file(), PAGE), Ok(()));
        assert_eq!(import(file(), PAGE + 1), Err(Error::InvalidValue));
        assert_eq!(import(file(), 0), Err(Error::InvalidValue));
        let read_only = std::fs::File::open("/proc/self/exe").unwrap();
        assert!(matches!(import(read_only.into(), 16), Err(Error::OperatingSystem(_))));
        let empty = std::fs::File::open("/dev/null").unwrap();
        assert!(matches!(import(empty.into(), 16), Err(Error::OperatingSystem(_))));
    }

    #[test]
    fn arrays_lie_in_external_memory_too() {
        let space = AddressSpace::new(&[64 << 20]).unwrap();
        let file = SharedFile::create(4 * PAGE).unwrap();
        let memory = ExternalMemory::import(0, file.duplicate().unwrap(), 4 * PAGE).unwrap();
        let layout = ArrayLayout {
            width: 16,
            height: 16,
            depth: 1,
            texel: 4,
            side: 1,
            levels: 2,
            layered: false,
            backing: Backing::Own,
        };
        let array = space.map_external_array(&memory, A, PAGE, &layout).unwrap();
        let seen = space.map_external(&memory, A, PAGE, PAGE).unwrap();
        // SAFETY: memory of the test's.
        unsafe { guard::store(seen + 1024, 9_u32).unwrap() };
        assert_eq!(word(array.levels()[1].address), Some(9), "the second level lies behind the first");
        let large = ArrayLayout { width: 128, height: 128, ..layout };
        assert_eq!(space.map_external_array(&memory, A, 0, &large), Err(Error::InvalidValue));
        space.free_array(&array).unwrap();
        assert_eq!(word(array.levels()[0].address), None);
        assert_eq!(word(seen + 1024), Some(9));
    }
}
