//! Pools: what stream-ordered allocations are counted in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::AddressSpace;
pub use super::account::PoolBytes;

/// Identifies a pool in its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolId(pub(super) u64);

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
    reuse: [AtomicBool; 3],
}

impl Pool {
    pub(crate) fn new(device: usize, space: Arc<AddressSpace>) -> Pool {
        static LAST_ID: AtomicU64 = AtomicU64::new(0);
        let id = PoolId(LAST_ID.fetch_add(1, Ordering::Relaxed) + 1);
        let reuse = [const { AtomicBool::new(true) }; 3];
        space.open_account(id, device);
        Pool { id, device, space, reuse }
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

impl Drop for Pool {
    fn drop(&mut self) {
        self.space.close_account(self.id);
    }
}
