//! What all work of one context shares, whatever stream it is in.

use crate::callbacks::{DeviceHeap, Output};
use crate::fault::Health;
use crate::memory::AddressSpace;
use crate::usage::Usage;
use std::sync::Arc;

/// A context as its commands see it.
pub(crate) struct Domain {
    /// Whether it still works.
    pub(crate) health: Health,
    /// What kernels print.
    pub(crate) output: Output,
    /// What kernels allocate from.
    pub(crate) heap: DeviceHeap,
    /// What kernels access.
    pub(crate) memory: Arc<AddressSpace>,
    /// Where the time that kernels take is counted.
    pub(crate) usage: Usage,
}
