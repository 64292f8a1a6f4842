//! Memory that streams are about to free.
//!
//! What a stream allocates next comes behind what it frees, so it may have that memory at once, as on a GPU: a loop that allocates, launches
//! and frees needs no more memory than one turn of it, however far the program is ahead of the device. Where there is no other memory, a
//! stream gets what another one is about to free, and waits for that. What several allocations give together it gets as other memory, of which there is
//! then more than the pool may have until the stream comes to where they are freed: before it is used.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::Completion;
use crate::lock::{Rank, RankedMutex};
use crate::memory::{AddressSpace, Allocation, PoolId};

/// How many are remembered; the oldest will be free soonest.
const MOST: usize = 256;

/// Allocations of pools that a context's streams were told to free and have not come to, oldest first.
pub(crate) struct Freed(RankedMutex<Vec<Pending>>);

/// One of them.
#[derive(Clone)]
pub(super) struct Pending {
    pub(super) allocation: Allocation,
    stream: u64,
    /// When the stream has come to it; not known yet while it is being told.
    pub(super) end: Option<Arc<Completion>>,
}

impl Freed {
    pub(crate) fn new() -> Freed {
        Freed(RankedMutex::new(Rank::Stream, Vec::new()))
    }

    /// A stream is about to be told to free this.
    pub(super) fn add(&self, stream: u64, allocation: Allocation) {
        let mut pending = self.0.lock();
        if pending.iter().any(|other| other.allocation.id == allocation.id) {
            return;
        }
        if pending.len() == MOST {
            pending.remove(0);
        }
        pending.push(Pending { allocation, stream, end: None });
    }

    /// It has been told, and will have come to it then.
    pub(super) fn set_end(&self, id: u64, end: Arc<Completion>) {
        if let Some(pending) = self.0.lock().iter_mut().find(|pending| pending.allocation.id == id) {
            pending.end = Some(end);
        }
    }

    /// It has come to it, or never will.
    pub(super) fn remove(&self, id: u64) {
        self.0.lock().retain(|pending| pending.allocation.id != id);
    }

    /// Memory of a pool for so many bytes: the smallest allocation of these sizes that this stream is about to free, or any if none is named.
    pub(super) fn take(
        &self,
        space: &AddressSpace,
        stream: Option<u64>,
        pool: PoolId,
        sizes: RangeInclusive<u64>,
    ) -> Option<Pending> {
        loop {
            let pending = self.smallest(stream, pool, &sizes)?;
            if space.hand_on(&pending.allocation, *sizes.start()) {
                return Some(pending);
            }
        }
    }

    /// What a stream is about to free of a pool, the oldest first.
    pub(super) fn of_stream(&self, stream: u64, pool: PoolId) -> Vec<Allocation> {
        let all = self.0.lock();
        let own = all.iter().filter(|pending| pending.stream == stream);
        own.map(|pending| pending.allocation).filter(|allocation| allocation.pool == Some(pool)).collect()
    }

    fn smallest(&self, stream: Option<u64>, pool: PoolId, sizes: &RangeInclusive<u64>) -> Option<Pending> {
        let mut all = self.0.lock();
        let fits = |pending: &Pending| {
            let is_near = stream.map_or(pending.end.is_some(), |stream| pending.stream == stream);
            is_near && pending.allocation.pool == Some(pool) && sizes.contains(&pending.allocation.size)
        };
        let fitting = all.iter().enumerate().filter(|(_, pending)| fits(pending));
        let (index, _) = fitting.min_by_key(|(_, pending)| pending.allocation.size)?;
        Some(all.remove(index))
    }
}
