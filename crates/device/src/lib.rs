//! The virtual device that CUDA programs run on.
//!
//! A [`Platform`] has [`Device`]s; a device has [`Context`]s; a context owns memory, [`Module`]s, [`Stream`]s and [`Event`]s. How each
//! behaves is decided here; an API above converts its arguments, calls, and returns.
//!
//! * [`memory`]: allocations, copies and fills in one address space with the host;
//! * [`stream`]: queues of commands, run by the threads of the [`executor`] and by threads that wait;
//! * [`module`]: PTX, compiled at first use by a [`kernel_abi::KernelBackend`] that is given from outside;
//! * [`texture`]: texture and surface objects, and the references of modules;
//! * [`fault`]: a kernel's failure stays in its context.
//!
//! **Invariants.** No C types. Unsafe code only in `memory`, the executor and the callbacks. No lock is held while a kernel, a
//! host function or a copy runs. A wait always ends: a command that is dropped is over.

pub mod attributes;
mod callbacks;
pub mod checkpoint;
pub mod clock;
mod context;
pub mod decompression;
mod device;
mod domain;
mod error;
mod event;
mod executor;
pub mod fault;
pub mod graph;
pub mod launch;
pub mod limits;
mod lock;
pub mod memory;
pub mod module;
mod nested;
pub mod occupancy;
mod options;
mod partition;
mod platform;
mod registry;
mod semaphore;
pub mod stream;
pub mod tensor_map;
pub mod texture;
mod threads;
pub mod usage;

pub use context::{CacheConfig, Context, ContextFlags, Scheduling, SharedConfig};
pub use device::{Device, PrimaryContext};
pub use error::{Error, Result};
pub use event::{Event, EventFlags, SharedEventHandle};
pub use fault::FaultReport;
pub use launch::Launch;
pub use limits::Limit;
pub use module::{Function, Module};
pub use options::Options;
pub use partition::Partition;
pub use platform::Platform;
pub use semaphore::{ExternalSemaphore, SemaphoreUse};
pub use stream::{Stream, StreamKind};
