//! The virtual device that CUDA programs run on.
//!
//! A [`Platform`] has [`Device`]s; a device has [`Context`]s; a context owns memory, [`Module`]s, [`Stream`]s and [`Event`]s. How each
//! behaves is decided here; an API above converts its arguments, calls, and returns.
//!
//! What there is:
//! * [`platform`], [`device`](mod@device), [`context`], [`options`]: devices, what a program has on one, and what users set;
//! * [`registry`], [`threads`], [`domain`]: which contexts exist, which threads call, and what all work of a context shares;
//! * [`attributes`], [`limits`], [`occupancy`], [`partition`]: what a device says of itself, and parts of it;
//! * [`usage`], [`checkpoint`]: what processes tell each other, and how they stop each other;
//! * [`error`], [`fault`]: why an operation failed; a kernel's failure stays in its context.
//!
//! What programs use:
//! * [`memory`]: allocations, copies and fills in one address space with the host;
//! * [`module`]: PTX, compiled at first use by a [`kernel_abi::KernelBackend`] that is given from outside;
//! * [`texture`], [`tensor_map`]: texture and surface objects, the references of modules, and boxes of tensors;
//! * [`stream`], [`event`], [`semaphore`]: queues of commands, and what they wait for;
//! * [`graph`]: work that is described once and launched many times;
//! * [`decompression`], [`clock`]: compressed memory, and the time.
//!
//! How kernels run:
//! * [`launch`]: what is checked before one is queued;
//! * [`executor`]: the threads that run grids, copies and fills;
//! * [`callbacks`]: what kernels ask of the host;
//! * [`nested`]: what kernels launch themselves;
//! * [`lock`]: locks with ranks.
//!
//! **Invariants.** No C types. Unsafe code is where memory of programs or of other processes is touched, where kernels run, and where the
//! operating system is asked; what keeps account of contexts, code and graphs has none. No lock is held while a kernel, a
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
