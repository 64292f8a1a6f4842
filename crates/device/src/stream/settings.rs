//! What a program says about the work of a stream in general.

use super::Stream;
use crate::{Result, Scheduling, limits};

/// Settings of a stream that have no effect on what its work does. All but the priority are kept, for the program to ask for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamSettings {
    /// How threads that wait for the stream do, if that has been said.
    pub scheduling: Option<Scheduling>,
    /// Memory that is expected to be accessed in a certain way.
    pub window: AccessWindow,
    /// Which domain's fences the stream's accesses are ordered by: of a kernel's own, and of remote accesses.
    pub domains: [u8; 2],
    /// Whether the stream's kernels are of the remote domain.
    pub is_remote: bool,
}

impl Default for StreamSettings {
    /// Remote accesses are of a domain of their own.
    fn default() -> StreamSettings {
        StreamSettings {
            scheduling: None,
            window: AccessWindow::default(),
            domains: [0, 1],
            is_remote: false,
        }
    }
}

/// A range of memory and what is expected of accesses to it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AccessWindow {
    /// First byte.
    pub address: u64,
    /// Bytes; 0 for no window.
    pub bytes: u64,
    /// The share of accesses that are as in `hit`; the others are as in `miss`.
    pub hit_ratio: f32,
    /// Expected of that share.
    pub hit: AccessProperty,
    /// Expected of the rest.
    pub miss: AccessProperty,
}

/// How memory is accessed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessProperty {
    /// Like any other.
    #[default]
    Normal,
    /// Once.
    Streaming,
    /// Again and again.
    Persisting,
}

impl Stream {
    /// What it is set to.
    pub fn settings(&self) -> StreamSettings {
        *self.settings.lock()
    }

    /// Changes what it is set to, for what is queued from now on.
    ///
    /// # Errors
    /// Those of [`Context::check`](crate::Context::check).
    pub fn set_settings(&self, settings: StreamSettings) -> Result<()> {
        self.context()?.check()?;
        *self.settings.lock() = settings;
        Ok(())
    }

    /// 0, or below for more urgent streams.
    pub fn priority(&self) -> i32 {
        self.queue.priority()
    }

    /// Sets the priority; one out of range is brought into it.
    ///
    /// # Errors
    /// Those of [`Context::check`](crate::Context::check).
    pub fn set_priority(&self, priority: i32) -> Result<()> {
        self.context()?.check()?;
        let (least, greatest) = limits::PRIORITIES;
        self.queue.set_priority(priority.clamp(greatest, least));
        Ok(())
    }
}
