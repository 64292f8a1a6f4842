//! Kernel nodes that kernels change: their parameters, their grids, and whether launches run them (the section on updating graphs from the
//! device in CUDA's programming guide).
//!
//! What such a node does is read when its turn comes in a launch: a kernel before it in the same graph may have changed it. There is one
//! executable graph at a time with it, and kernels reach it once that has been uploaded.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use super::KernelCall;
use super::executable::kernel_work;
use super::launched::GraphLaunch;
use crate::lock::{Rank, RankedMutex};
use crate::stream::Work;
use crate::{Error, Result};

/// Nodes by what kernels know them by.
static KNOWN: RankedMutex<BTreeMap<u64, Weak<UpdatableKernel>>> =
    RankedMutex::new(Rank::UpdatableKernels, BTreeMap::new());

/// A node that kernels can change.
pub struct UpdatableKernel {
    handle: u64,
    /// What launches do now; nothing before the upload.
    current: RankedMutex<Option<Current>>,
}

struct Current {
    call: KernelCall,
    enabled: bool,
}

impl UpdatableKernel {
    pub(super) fn new() -> Arc<UpdatableKernel> {
        const FIRST: u64 = 0xd00_0000_0000;
        let mut known = KNOWN.lock();
        known.retain(|_, kernel| kernel.strong_count() > 0);
        let handle = known.last_key_value().map_or(FIRST, |(last, _)| last + 64);
        let current = RankedMutex::new(Rank::UpdatableKernel, None);
        let kernel = Arc::new(UpdatableKernel { handle, current });
        known.insert(handle, Arc::downgrade(&kernel));
        kernel
    }

    /// The node that kernels know by this.
    pub(crate) fn find(handle: u64) -> Option<Arc<UpdatableKernel>> {
        KNOWN.lock().get(&handle)?.upgrade()
    }

    /// What kernels know it by.
    pub fn handle(&self) -> u64 {
        self.handle
    }

    /// A new executable graph has it, which has not been uploaded.
    pub(super) fn reset(&self) {
        *self.current.lock() = None;
    }

    /// The upload of that: it does this, unless it has been uploaded before.
    pub(super) fn upload(&self, call: &KernelCall, enabled: bool) {
        self.current.lock().get_or_insert_with(|| Current::new(call, enabled));
    }

    /// The host changes what it does, if it has been uploaded.
    pub(super) fn set(&self, call: &KernelCall, enabled: bool) {
        if let Some(current) = &mut *self.current.lock() {
            *current = Current::new(call, enabled);
        }
    }

    /// Writes parameters from a place on.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] beyond the last one, and before the upload.
    pub(crate) fn set_parameters(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.change(|current| {
            let start = usize::try_from(offset).map_err(|_| Error::InvalidValue)?;
            let end = start.checked_add(bytes.len()).ok_or(Error::InvalidValue)?;
            let place = current.call.params.get_mut(start..end).ok_or(Error::InvalidValue)?;
            place.copy_from_slice(bytes);
            Ok(())
        })
    }

    /// Sets the blocks of the grid.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a grid that cannot be, and before the upload.
    pub(crate) fn set_grid(&self, grid: [u32; 3]) -> Result<()> {
        self.change(|current| {
            let launch = crate::Launch { grid, ..current.call.launch };
            current.call.function.check_launch(&launch).map_err(|_| Error::InvalidValue)?;
            current.call.launch = launch;
            Ok(())
        })
    }

    /// Has launches run it, or not.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] before the upload.
    pub(crate) fn set_enabled(&self, enabled: bool) -> Result<()> {
        self.change(|current| {
            current.enabled = enabled;
            Ok(())
        })
    }

    fn change(&self, change: impl FnOnce(&mut Current) -> Result<()>) -> Result<()> {
        self.current.lock().as_mut().ok_or(Error::InvalidValue).and_then(change)
    }

    /// What it does when its turn comes, as a command.
    pub(super) fn work(self: &Arc<Self>, launch: Option<Arc<GraphLaunch>>) -> Work {
        let kernel = self.clone();
        Work::Branch(Box::new(move |queue| {
            let enabled = |current: &Current| current.enabled.then(|| current.call.clone());
            let Some(call) = kernel.current.lock().as_ref().and_then(enabled) else { return Ok(Vec::new()) };
            Ok(vec![kernel_work(queue, &call, launch.as_ref())?])
        }))
    }
}

impl Current {
    fn new(call: &KernelCall, enabled: bool) -> Current {
        Current { call: KernelCall { updatable: None, ..call.clone() }, enabled }
    }
}
