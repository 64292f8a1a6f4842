//! The runtime's way: each thread has a current device, and everything is in that device's primary context.
//!
//! ```
//! use anywarp::runtime;
//!
//! let buffer = runtime::buffer_from(&[1.0_f32, 2.0])?;
//! assert_eq!(buffer.to_vec()?, [1.0, 2.0]);
//! # Ok::<(), anywarp::Error>(())
//! ```

use crate::{Arguments, Buffer, Context, Device, Function, LaunchConfig, Result, Stream};
use bytemuck::Pod;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Mutex;

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// Makes a device this thread's current one.
pub fn set_device(ordinal: usize) -> Result<()> {
    Device::get(ordinal)?;
    CURRENT.set(ordinal);
    Ok(())
}

/// The current device.
pub fn device() -> Result<Device> {
    Device::get(CURRENT.get())
}

/// The current device's primary context, which stays once it is used.
pub fn context() -> Result<Context> {
    static CONTEXTS: Mutex<BTreeMap<usize, Context>> = Mutex::new(BTreeMap::new());
    let device = device()?;
    let mut contexts = CONTEXTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(context) = contexts.get(&device.ordinal()) {
        return Ok(context.clone());
    }
    let context = device.primary_context()?;
    contexts.insert(device.ordinal(), context.clone());
    Ok(context)
}

/// A buffer with copies of these elements.
pub fn buffer_from<T: Pod>(elements: &[T]) -> Result<Buffer<T>> {
    context()?.buffer_from(elements)
}

/// A buffer of elements whose bytes are all zero.
pub fn zeroed<T: Pod>(len: usize) -> Result<Buffer<T>> {
    context()?.zeroed(len)
}

/// Loads PTX and answers one of its kernels.
pub fn kernel(ptx: &str, name: &str) -> Result<Kernel> {
    let context = context()?;
    let function = context.load_ptx(ptx)?.function(name)?;
    Ok(Kernel { function, context })
}

/// Waits until all work on the current device's primary context is done.
pub fn synchronize() -> Result<()> {
    context()?.synchronize()
}

/// A kernel of the current device's primary context.
#[derive(Clone)]
pub struct Kernel {
    function: Function,
    context: Context,
}

impl Kernel {
    /// Queues the kernel in the default stream.
    ///
    /// # Safety
    /// As for [`Function::launch`].
    pub unsafe fn launch(&self, config: LaunchConfig, arguments: impl Arguments) -> Result<()> {
        // SAFETY: the caller's contract is the same.
        unsafe { self.launch_in(self.context.default_stream(), config, arguments) }
    }

    /// Queues the kernel in a stream.
    ///
    /// # Safety
    /// As for [`Function::launch`].
    pub unsafe fn launch_in(
        &self,
        stream: &Stream,
        config: LaunchConfig,
        arguments: impl Arguments,
    ) -> Result<()> {
        // SAFETY: the caller's contract is the same.
        unsafe { self.function.launch(stream, config, arguments) }
    }
}
