//! How long the blocks of a kernel take.

use std::sync::atomic::{AtomicU32, Ordering};

/// Measured time of a kernel's blocks, to decide how many threads a launch is worth.
#[derive(Debug, Default)]
pub struct Profile {
    /// Nanoseconds of a block in one thread, in 1/16; 0 before the first launch has ended.
    block_time: AtomicU32,
}

impl Profile {
    /// Whether so many blocks took less than so many nanoseconds, on one thread, when the kernel ran before.
    pub(super) fn is_short(&self, blocks: u64, limit: u64) -> bool {
        self.time_of(blocks).is_some_and(|time| time < limit)
    }

    /// How many nanoseconds so many blocks take on one thread, by the last launches.
    pub(super) fn time_of(&self, blocks: u64) -> Option<u64> {
        let each = self.block_time.load(Ordering::Relaxed);
        (each != 0).then(|| u64::from(each).saturating_mul(blocks) / 16)
    }

    /// How many blocks take so many nanoseconds; 0 if that is not known.
    pub(super) fn blocks_in(&self, time: u64) -> u64 {
        time.saturating_mul(16).checked_div(self.block_time.load(Ordering::Relaxed).into()).unwrap_or(0)
    }

    /// Notes how long so many blocks took in all threads together. What takes longer than before counts at once, what takes less by and
    /// by: a kernel's blocks need not be alike, and it is worse to have a long launch on one thread than a short one on many.
    pub(super) fn note(&self, blocks: u64, time: u64) {
        let each = (time.saturating_mul(16) / blocks).clamp(1, u32::MAX.into()) as u32;
        let before = self.block_time.load(Ordering::Relaxed);
        self.block_time.store(each.max(before - before / 4), Ordering::Relaxed);
    }
}
