//! Pools: what stream-ordered allocations are counted in.
//!
//! Memory goes back to the device's heap as soon as it is freed, whatever a pool's threshold says; the heap keeps freed pages
//! for the next allocation itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::AddressSpace;

/// Identifies a pool in its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolId(pub(super) u64);

/// Bytes in use, now and at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolUsage {
    /// Now.
    pub current: u64,
    /// At most since the mark was last reset.
    pub high: u64,
}

/// A way in which a pool may use memory again: kept, since freed memory can be used at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// Where an event says that it is free.
    FollowEventDependencies,
    /// Where it happens to be free.
    AllowOpportunistic,
    /// Where the device makes one stream wait for another.
    AllowInternalDependencies,
}

/// A pool of a device.
pub struct Pool {
    id: PoolId,
    device: usize,
    space: Arc<AddressSpace>,
    threshold: AtomicU64,
    reuse: [AtomicBool; 3],
}

impl Pool {
    pub(crate) fn new(device: usize, space: Arc<AddressSpace>) -> Pool {
        static LAST_ID: AtomicU64 = AtomicU64::new(0);
        let id = PoolId(LAST_ID.fetch_add(1, Ordering::Relaxed) + 1);
        let reuse = [const { AtomicBool::new(true) }; 3];
        Pool { id, device, space, threshold: AtomicU64::new(0), reuse }
    }

    /// Its identity.
    pub fn id(&self) -> PoolId {
        self.id
    }

    /// Number of its device.
    pub fn device(&self) -> usize {
        self.device
    }

    /// Bytes of its allocations.
    pub fn usage(&self) -> PoolUsage {
        self.space.pool_usage(self.id)
    }

    /// Makes the highest usage that of now.
    pub fn reset_high(&self) {
        self.space.reset_pool_high(self.id);
    }

    /// Bytes that the pool is asked to keep.
    pub fn threshold(&self) -> u64 {
        self.threshold.load(Ordering::Relaxed)
    }

    /// Asks the pool to keep so many bytes.
    pub fn set_threshold(&self, bytes: u64) {
        self.threshold.store(bytes, Ordering::Relaxed);
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
