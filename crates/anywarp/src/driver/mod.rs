//! What the public API needs of a driver.
//!
//! [`embedded`] has it from the device in this crate, [`library`] from any `libcuda.so.1`. The objects above add lifetimes and
//! checks of their own and know nothing else of either. All traits are object safe; where two objects meet (an event is
//! recorded in a stream), the caller has checked that they are of one context, and so of one driver.

pub mod callback;
pub mod embedded;
pub mod library;

use crate::arguments::Parameter;
use crate::{ContextOptions, DeviceLimits, EventOptions, FunctionAttributes, Image, JitOptions};
use crate::{LaunchConfig, Limit, Result, StreamOptions};
use callback::Callback;
use std::any::Any;
use std::sync::Arc;

/// A driver.
pub trait Driver: Send + Sync {
    /// The version of CUDA that it has, 1000 · major + 10 · minor.
    fn version(&self) -> Result<u32>;
    /// How many devices it has.
    fn devices(&self) -> Result<usize>;
    /// One of them.
    fn device(&self, ordinal: usize) -> Result<Arc<dyn Device>>;
}

/// A device.
pub trait Device: Send + Sync {
    /// What it is.
    fn info(&self) -> &DeviceInfo;
    /// A context of the caller's own.
    fn create_context(&self, options: ContextOptions) -> Result<Box<dyn Context>>;
    /// The context that all share, retained.
    fn primary_context(&self) -> Result<Box<dyn Context>>;
}

/// What a device is.
pub struct DeviceInfo {
    pub ordinal: usize,
    pub name: String,
    pub compute_capability: (u32, u32),
    pub multiprocessors: u32,
    pub total_memory: u64,
    pub limits: DeviceLimits,
}

/// Which memory an allocation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    Device,
    Pinned,
    Managed,
}

/// An end of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Device(u64),
    Host(u64),
}

/// A context.
pub trait Context: Send + Sync {
    /// Equal for two handles of one context only.
    fn id(&self) -> (usize, u64);
    /// Destroys it, or releases it if it is the primary one. Called once.
    fn end(&self) -> Result<()>;
    /// Waits for all its work.
    fn synchronize(&self) -> Result<()>;
    fn limit(&self, limit: Limit) -> Result<u64>;
    fn set_limit(&self, limit: Limit, value: u64) -> Result<()>;
    /// Free and total bytes.
    fn memory_info(&self) -> Result<(u64, u64)>;
    /// Least and most urgent.
    fn stream_priorities(&self) -> Result<(i32, i32)>;
    /// Loads an image, or links several; answers the module and what the compiler had to say.
    fn load(&self, images: &[(&str, Image<'_>)], options: &JitOptions) -> Result<(Box<dyn Module>, String)>;
    fn create_stream(&self, options: StreamOptions) -> Result<Box<dyn Stream>>;
    fn default_stream(&self) -> Box<dyn Stream>;
    fn create_event(&self, options: EventOptions) -> Result<Box<dyn Event>>;
    /// At least one byte of memory.
    fn allocate(&self, kind: MemoryKind, bytes: usize) -> Result<u64>;
    /// Waits for the context's work, and frees. What cannot be freed goes with the context.
    fn free(&self, kind: MemoryKind, address: u64);
    /// Copies, and waits for that.
    ///
    /// # Safety
    /// Host memory is the caller's: to read, or to write where it is the destination.
    unsafe fn copy(&self, to: Place, from: Place, bytes: usize) -> Result<()>;
}

/// A module of a context, unloaded when dropped.
pub trait Module: Send + Sync {
    fn function(&self, name: &str) -> Result<Box<dyn Function>>;
    fn function_names(&self) -> Result<Vec<String>>;
    /// Address and bytes of a variable.
    fn variable(&self, name: &str) -> Result<(u64, usize)>;
}

/// A kernel of a module that is loaded.
pub trait Function: Send + Sync {
    fn parameters(&self) -> Result<Vec<Parameter>>;
    fn attributes(&self) -> Result<FunctionAttributes>;
    fn set_max_dynamic_shared(&self, bytes: u32) -> Result<()>;
    fn blocks_per_multiprocessor(&self, threads: u32, dynamic_shared: u32) -> Result<u32>;
    /// Threads of a block, and blocks that fill the device.
    fn best_block(&self, dynamic_shared: u32) -> Result<(u32, u32)>;
    /// Queues the kernel with parameters laid out as it declares them.
    ///
    /// # Safety
    /// The caller vouches for what the kernel does.
    unsafe fn launch(
        &self,
        stream: &dyn Stream,
        config: &LaunchConfig,
        parameters: &[Parameter],
        bytes: &mut [u8],
    ) -> Result<()>;
}

/// A stream of a context.
pub trait Stream: Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn priority(&self) -> Result<i32>;
    fn synchronize(&self) -> Result<()>;
    /// Returns when nothing of the stream runs any more, whatever has failed.
    fn wait(&self);
    fn is_done(&self) -> Result<bool>;
    fn wait_for(&self, event: &dyn Event) -> Result<()>;
    /// Calls back once when all work before is done or has failed.
    fn call_back(&self, callback: Callback) -> Result<()>;
    /// Queues a copy.
    ///
    /// # Safety
    /// Host memory is the caller's until the copy is done: to read, or to write where it is the destination.
    unsafe fn copy(&self, to: Place, from: Place, bytes: usize) -> Result<()>;
    /// Queues the setting of `count` elements of 1, 2 or 4 bytes to the low bytes of a value.
    fn fill(&self, address: u64, value: u32, element: usize, count: usize) -> Result<()>;
}

/// An event of a context.
pub trait Event: Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn record(&self, stream: &dyn Stream) -> Result<()>;
    fn synchronize(&self) -> Result<()>;
    fn is_done(&self) -> Result<bool>;
    /// Milliseconds from an earlier one to this.
    fn elapsed_since(&self, earlier: &dyn Event) -> Result<f32>;
}

/// The driver's own form of an object.
fn own<T: 'static>(object: &dyn Any) -> Result<&T> {
    object.downcast_ref().ok_or_else(|| crate::Error::arguments("objects of two drivers do not meet"))
}
