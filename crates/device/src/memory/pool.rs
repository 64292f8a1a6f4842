//! Pools: what stream-ordered allocations are counted in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub use super::account::PoolBytes;
use super::{AddressSpace, Allocation, Kind};

/// Identifies a pool in its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolId(pub(super) u64);

/// A way in which a pool may use memory again. The first two are kept only: what is free is used at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// Where an event says that it is free.
    FollowEventDependencies,
    /// Where it happens to be free.
    AllowOpportunistic,
    /// Where the device makes one stream wait for another, as it does when there is no other memory.
    AllowInternalDependencies,
}

/// What memory a pool hands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolKind {
    /// Its device's.
    Device,
    /// The host's. It counts as no device's use.
    Host,
    /// Managed, charged to its device.
    Managed,
}

impl PoolKind {
    fn allocations(self) -> Kind {
        match self {
            PoolKind::Device => Kind::Pooled,
            PoolKind::Host => Kind::PooledHost,
            PoolKind::Managed => Kind::Managed { attach_host: false },
        }
    }
}

/// A pool of a device, or of the host.
pub struct Pool {
    id: PoolId,
    device: usize,
    kind: PoolKind,
    access: PoolAccess,
    space: Arc<AddressSpace>,
    reuse: [AtomicBool; 3],
}

impl Pool {
    pub(crate) fn new(device: usize, kind: PoolKind, space: Arc<AddressSpace>) -> Pool {
        static LAST_ID: AtomicU64 = AtomicU64::new(0);
        let id = PoolId(LAST_ID.fetch_add(1, Ordering::Relaxed) + 1);
        let reuse = [const { AtomicBool::new(true) }; 3];
        space.open_account(id, device, kind == PoolKind::Host);
        let access = PoolAccess::new(device, kind, space.devices.len());
        Pool { id, device, kind, access, space, reuse }
    }

    /// From now on it holds no more than so many bytes, in pieces as the device gives them.
    pub(crate) fn limit(&self, most: u64) {
        self.space.limit_pool(self.id, most);
    }

    /// Its identity.
    pub fn id(&self) -> PoolId {
        self.id
    }

    /// Number of its device; 0 for a pool of the host.
    pub fn device(&self) -> usize {
        self.device
    }

    /// What memory it hands out.
    pub fn kind(&self) -> PoolKind {
        self.kind
    }

    /// What its allocations are.
    pub(crate) fn allocations(&self) -> Kind {
        self.kind.allocations()
    }

    /// Who was given access to its memory.
    pub fn access(&self) -> &PoolAccess {
        &self.access
    }

    /// Bytes of its allocations.
    pub fn used(&self) -> PoolBytes {
        self.space.pool_bytes(self.id)[0]
    }

    /// Bytes that it has taken from its device, used or not.
    pub fn reserved(&self) -> PoolBytes {
        self.space.pool_bytes(self.id)[1]
    }

    /// Makes the highest use that of now.
    pub fn reset_most_used(&self) {
        self.space.reset_pool_high(self.id, false);
    }

    /// Makes the most that it held what it holds now.
    pub fn reset_most_reserved(&self) {
        self.space.reset_pool_high(self.id, true);
    }

    /// Bytes that the pool keeps when somebody waits for the device.
    pub fn threshold(&self) -> u64 {
        self.space.pool_threshold(self.id)
    }

    /// Makes the pool keep so many bytes.
    pub fn set_threshold(&self, bytes: u64) {
        self.space.set_pool_threshold(self.id, bytes);
    }

    /// Gives back what it does not use, but for so many bytes.
    pub fn trim(&self, keep: u64) {
        self.space.trim(self.id, keep);
    }

    /// Whether a way to use memory again is allowed.
    pub fn allows(&self, reuse: Reuse) -> bool {
        self.reuse[reuse as usize].load(Ordering::Relaxed)
    }

    /// Allows or forbids a way to use memory again.
    pub fn set_allowed(&self, reuse: Reuse, allowed: bool) {
        self.reuse[reuse as usize].store(allowed, Ordering::Relaxed);
    }
}

/// Who was given access to a pool's memory: the devices' threads reach it in any case, being the host's.
pub struct PoolAccess {
    devices: Vec<AtomicBool>,
    host: AtomicBool,
}

impl PoolAccess {
    fn new(owner: usize, kind: PoolKind, devices: usize) -> PoolAccess {
        let is_owner = |device| kind == PoolKind::Device && device == owner;
        PoolAccess {
            devices: (0..devices).map(|device| AtomicBool::new(is_owner(device))).collect(),
            host: AtomicBool::new(kind == PoolKind::Host),
        }
    }

    /// Whether a device has access.
    pub fn of_device(&self, device: usize) -> bool {
        self.devices.get(device).is_some_and(|access| access.load(Ordering::Relaxed))
    }

    /// Whether the host has access.
    pub fn of_host(&self) -> bool {
        self.host.load(Ordering::Relaxed)
    }

    /// Gives access to a device, or takes it back.
    pub fn set_device(&self, device: usize, access: bool) {
        if let Some(place) = self.devices.get(device) {
            place.store(access, Ordering::Relaxed);
        }
    }

    /// Gives access to the host, or takes it back.
    pub fn set_host(&self, access: bool) {
        self.host.store(access, Ordering::Relaxed);
    }
}

impl AddressSpace {
    /// Makes an allocation of a pool, which somebody was about to free, another one of so many bytes, in its place. Not if it is gone, or is of
    /// memory that is shared with other processes.
    pub(crate) fn hand_on(&self, old: &Allocation, size: u64) -> bool {
        let pool = match old.pool {
            Some(pool) if old.placement.is_some() && size <= old.size => pool,
            _ => return false,
        };
        {
            let mut allocations = self.allocations.lock();
            let is_same = |found: &&mut Allocation| found.id == old.id && !found.written_off;
            let Some(found) = allocations.get_mut(&old.base).filter(is_same) else { return false };
            found.id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
            found.size = size;
            found.synchronous = false;
        }
        self.forget_advice(old);
        self.give_to_account(pool, &self.devices[old.device], old.size - size);
        true
    }

    /// Has an allocation's pool count it no more: what is allocated in its stead is used only once it has been freed. Whether the pool had counted it.
    pub(crate) fn write_off(&self, old: &Allocation) -> bool {
        let Some(pool) = old.pool.filter(|_| old.placement.is_some()) else { return false };
        {
            let mut allocations = self.allocations.lock();
            let is_same = |found: &&mut Allocation| found.id == old.id && !found.written_off;
            let Some(found) = allocations.get_mut(&old.base).filter(is_same) else { return false };
            found.written_off = true;
        }
        self.give_to_account(pool, &self.devices[old.device], old.size);
        true
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.space.close_account(self.id);
    }
}
