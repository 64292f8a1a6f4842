//! How often the program has waited for a device.

use std::sync::atomic::{AtomicU64, Ordering};

/// Waits of all threads, and successful questions whether work is done. What a program launches between two of them, it has launched
/// without having seen the results of any.
#[derive(Debug, Default)]
pub(crate) struct Waits(AtomicU64);

impl Waits {
    /// One more.
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn so_far(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
