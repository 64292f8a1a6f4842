//! Pools that several processes share.
//!
//! Such a pool is one file in memory, mapped as a whole by every process that uses it; its allocations are pieces of that. Only
//! the process that made the pool allocates from it.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::extents::Extents;
use super::mapping::{Access, GRANULARITY, MemoryPlace, Purpose};
use super::range::PAGE;
use super::shared::SharedFile;
use super::{AddressSpace, Allocation, ContextId, GRANULE, Pool, PoolId, PoolKind};
use crate::{Error, Result};

/// Most bytes of a pool that says nothing of its size.
const LARGEST: u64 = 64 << 30;

/// Names an allocation of a shared pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedPointer {
    /// Of the pool's memory.
    pub identity: u64,
    /// Where in that it begins.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}

/// The shared pools of this process.
#[derive(Default)]
pub(super) struct SharedPools {
    by_id: HashMap<PoolId, SharedPool>,
}

struct SharedPool {
    file: SharedFile,
    device: usize,
    base: u64,
    len: u64,
    /// What is free; not for another process's pool.
    free: Option<Extents>,
    /// Allocations there are.
    used: usize,
    /// It ends with its last allocation.
    is_closed: bool,
}

impl AddressSpace {
    /// Makes a pool that other processes can open, of so many bytes at most (0: as many as the device likes): of the device's
    /// memory, or of the host's.
    pub fn create_shared_pool(
        self: &Arc<Self>,
        device: usize,
        place: MemoryPlace,
        most: u64,
    ) -> Result<Pool> {
        let most = if most == 0 { self.device(device)?.total.min(LARGEST) } else { most };
        let len = most.checked_next_multiple_of(GRANULARITY).ok_or(Error::OutOfMemory)?;
        let pool = Pool::new(device, kind_at(place), self.clone());
        let name = Purpose { place, tiles: false }.name();
        self.add_shared_pool(&pool, SharedFile::create_named(len, &name)?, true)?;
        Ok(pool)
    }

    /// Opens another process's pool by a descriptor that it has sent. Nothing can be allocated from it.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a descriptor of something else.
    pub fn import_shared_pool(self: &Arc<Self>, device: usize, descriptor: OwnedFd) -> Result<Pool> {
        let file = SharedFile::from_descriptor(descriptor)?;
        if !file.bytes().is_multiple_of(GRANULARITY) {
            return Err(Error::InvalidValue);
        }
        let kind = kind_at(Purpose::of_name(&file.name()).place);
        let pool = Pool::new(device, kind, self.clone());
        self.add_shared_pool(&pool, file, false)?;
        Ok(pool)
    }

    /// A descriptor to send to another process.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a pool that was not made to be shared.
    pub fn export_shared_pool(&self, pool: &Pool) -> Result<OwnedFd> {
        let pools = self.shared_pools.lock();
        pools.by_id.get(&pool.id()).ok_or(Error::InvalidValue)?.file.duplicate()
    }

    /// Whether a pool is one that processes share.
    pub fn is_shared(&self, pool: &Pool) -> bool {
        self.shared_pools.lock().by_id.contains_key(&pool.id())
    }

    /// Whether a pool is another process's.
    pub fn is_imported(&self, pool: &Pool) -> bool {
        self.shared_pools.lock().by_id.get(&pool.id()).is_some_and(|pool| pool.free.is_none())
    }

    /// Names an allocation of a shared pool of this process.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] unless one begins there.
    pub fn export_pointer(&self, address: u64) -> Result<SharedPointer> {
        let found = self.find(address).filter(|found| found.base == address).ok_or(Error::InvalidValue)?;
        let pools = self.shared_pools.lock();
        let pool = found
            .pool
            .and_then(|pool| pools.by_id.get(&pool))
            .filter(|pool| pool.free.is_some())
            .ok_or(Error::InvalidValue)?;
        Ok(SharedPointer { identity: pool.file.identity()?, offset: address - pool.base, size: found.size })
    }

    /// The address of another process's allocation in this one, owned by a context.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if it is not of this pool, or has been imported already.
    pub fn import_pointer(&self, owner: ContextId, pool: &Pool, pointer: &SharedPointer) -> Result<u64> {
        let mut pools = self.shared_pools.lock();
        let shared = pools.by_id.get_mut(&pool.id()).ok_or(Error::InvalidValue)?;
        let end = pointer.offset.checked_add(pointer.size).ok_or(Error::InvalidValue)?;
        let fits = pointer.size > 0 && end <= shared.len && pointer.offset.is_multiple_of(GRANULE);
        if !fits || shared.free.is_some() || shared.file.identity()? != pointer.identity {
            return Err(Error::InvalidValue);
        }
        let base = shared.base + pointer.offset;
        let mut allocation = Allocation::new(base, pointer.size, pool.allocations(), owner, shared.device);
        allocation.pool = Some(pool.id());
        shared.used += 1;
        let inserted = self.insert(allocation).map_err(|_| Error::InvalidValue);
        inserted.inspect_err(|_| shared.used -= 1)?;
        Ok(base)
    }

    /// The pool's handle goes, if it is a shared pool's: its memory goes with its last allocation.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for another process's pool that has allocations here.
    pub fn close_shared_pool(&self, pool: &Pool) -> Result<()> {
        let mut pools = self.shared_pools.lock();
        if let Some(shared) = pools.by_id.get_mut(&pool.id()) {
            if shared.free.is_none() && shared.used > 0 {
                return Err(Error::InvalidValue);
            }
            shared.is_closed = true;
            self.end_if_unused(&mut pools, pool.id());
        }
        Ok(())
    }

    /// Room for an allocation in a shared pool; `None` if the pool is none.
    pub(super) fn take_from_shared_pool(&self, pool: Option<PoolId>, size: u64) -> Result<Option<u64>> {
        let Some(id) = pool else { return Ok(None) };
        let mut pools = self.shared_pools.lock();
        let Some(shared) = pools.by_id.get_mut(&id) else { return Ok(None) };
        let free = shared.free.as_mut().ok_or(Error::InvalidValue)?;
        let len = size.max(1).checked_next_multiple_of(PAGE).ok_or(Error::OutOfMemory)?;
        let base = free.take(len, PAGE).ok_or(Error::OutOfMemory)?;
        shared.used += 1;
        Ok(Some(base))
    }

    /// Takes an allocation of a shared pool back; whether it was of this process.
    pub(super) fn give_to_shared_pool(&self, allocation: &Allocation) -> bool {
        let Some(id) = allocation.pool else { return false };
        let mut pools = self.shared_pools.lock();
        let Some(shared) = pools.by_id.get_mut(&id) else { return false };
        shared.used -= 1;
        let is_own = shared.free.is_some();
        if let Some(free) = &mut shared.free {
            let len = allocation.size.max(1).next_multiple_of(PAGE);
            shared.file.discard(allocation.base - shared.base, len);
            free.give(allocation.base, len);
        }
        self.end_if_unused(&mut pools, id);
        is_own
    }

    fn add_shared_pool(&self, pool: &Pool, file: SharedFile, is_own: bool) -> Result<()> {
        let (device, len) = (pool.device(), file.bytes());
        let mut pools = self.shared_pools.lock();
        let mut heap = self.device(device)?.own.heap.lock();
        let base = heap.take_addresses(len, GRANULARITY)?;
        if let Err(error) = heap.map_shared(base, len, &file, 0, Access::ReadWrite) {
            heap.give_addresses(base, len);
            return Err(error);
        }
        drop(heap);
        let free = is_own.then(|| Extents::new(base, len));
        let shared = SharedPool { file, device, base, len, free, used: 0, is_closed: false };
        pools.by_id.insert(pool.id(), shared);
        Ok(())
    }

    fn end_if_unused(&self, pools: &mut SharedPools, id: PoolId) {
        if pools.by_id.get(&id).is_none_or(|shared| !shared.is_closed || shared.used > 0) {
            return;
        }
        if let Some(shared) = pools.by_id.remove(&id) {
            let mut heap = self.devices[shared.device].own.heap.lock();
            // Addresses whose memory cannot be taken out stay out of use.
            if heap.unmap_shared(shared.base, shared.len).is_ok() {
                heap.give_addresses(shared.base, shared.len);
            }
        }
    }
}

/// What memory the pool of a file hands out.
fn kind_at(place: MemoryPlace) -> PoolKind {
    if place == MemoryPlace::Device { PoolKind::Device } else { PoolKind::Host }
}

#[cfg(test)]
#[cfg(not(miri))] // reserved address space
mod tests {
    use super::*;

    #[test]
    fn two_processes_see_the_same_memory() {
        let space = Arc::new(AddressSpace::new(&[64 << 20]).unwrap());
        let owner = ContextId(1);
        for place in [MemoryPlace::Device, MemoryPlace::Node(0)] {
            see_the_same_memory(&space, owner, place);
        }
        assert_eq!(space.info(0).unwrap().1, 64 << 20);
    }

    fn see_the_same_memory(space: &Arc<AddressSpace>, owner: ContextId, place: MemoryPlace) {
        let pool = space.create_shared_pool(0, place, 8 << 20).unwrap();
        let allocate = |size| space.allocate_in(Some(pool.id()), 0, owner, size, pool.allocations());
        let (first, second) = (allocate(100).unwrap(), allocate(5000).unwrap());
        assert_eq!(allocate(8 << 20), Err(Error::OutOfMemory));
        assert_eq!(pool.used().current, 5100);
        // As another process would.
        let imported = space.import_shared_pool(0, space.export_shared_pool(&pool).unwrap()).unwrap();
        let pointer = space.export_pointer(second).unwrap();
        assert_eq!(space.export_pointer(second + 512), Err(Error::InvalidValue));
        let theirs = space.import_pointer(owner, &imported, &pointer).unwrap();
        assert_eq!(space.import_pointer(owner, &imported, &pointer), Err(Error::InvalidValue));
        assert_eq!(space.import_pointer(owner, &pool, &pointer), Err(Error::InvalidValue));
        let far = SharedPointer { offset: 8 << 20, ..pointer };
        assert_eq!(space.import_pointer(owner, &imported, &far), Err(Error::InvalidValue));
        assert_eq!(imported.kind(), kind_at(place));
        assert_eq!(space.find(theirs).unwrap().kind.is_host(), place != MemoryPlace::Device);
        let denied = space.allocate_in(Some(imported.id()), 0, owner, 64, imported.allocations());
        assert_eq!(denied, Err(Error::InvalidValue));
        // SAFETY: memory of the test's.
        unsafe {
            guard::store(second + 16, 7_u32).unwrap();
            assert_eq!(guard::load::<u32>(theirs + 16), Ok(7));
        }
        assert!(space.is_imported(&imported) && !space.is_imported(&pool) && space.is_shared(&pool));
        assert_eq!(space.close_shared_pool(&imported), Err(Error::InvalidValue));
        for address in [theirs, first] {
            space.free(address, |_| true).unwrap();
        }
        space.close_shared_pool(&imported).unwrap();
        space.close_shared_pool(&pool).unwrap();
        space.free(second, |_| true).unwrap();
        assert_eq!(pool.used().current, 0);
        assert!(space.shared_pools.lock().by_id.is_empty());
    }
}
