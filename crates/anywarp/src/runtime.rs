//! The runtime's way: each thread has a current device, and everything is in that device's primary context.
//!
//! Nothing has to be made first, and nothing ends before the process does, so what comes from here can be kept anywhere:
//!
//! ```
//! use anywarp::{LaunchConfig, runtime};
//!
//! # let square = "
//! #     .version 8.0\n.target sm_80\n.address_size 64
//! #     .visible .entry square (.param .u64 values)
//! #     {
//! #         .reg .u32 %r<2>; .reg .u64 %rd<3>; .reg .f32 %f;
//! #         mov.u32 %r1, %tid.x;
//! #         ld.param.u64 %rd1, [values];
//! #         mul.wide.u32 %rd2, %r1, 4;
//! #         add.u64 %rd1, %rd1, %rd2;
//! #         ld.global.f32 %f, [%rd1];
//! #         mul.rn.f32 %f, %f, %f;
//! #         st.global.f32 [%rd1], %f;
//! #         ret;
//! #     }";
//! let mut values = runtime::buffer_from(&[1.0_f32, 2.0, 3.0])?;
//! let square = runtime::kernel(square, "square")?;
//! // SAFETY: three threads, three elements.
//! unsafe { square.launch(LaunchConfig::new(1, 3), (&mut values,))? };
//! assert_eq!(values.to_vec()?, [1.0, 4.0, 9.0]);
//! # Ok::<(), anywarp::Error>(())
//! ```

use crate::{Arguments, Buffer, Context, Device, Error, Function, LaunchConfig, ManagedBuffer, Module};
use crate::{PinnedBuffer, Platform, Result, Stream};
use bytemuck::Pod;
use cuda_abi::driver::CUDA_ERROR_ILLEGAL_STATE;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

static PLATFORM: OnceLock<Platform> = OnceLock::new();

/// Has this module use a platform other than the [embedded](Platform::embedded) one, in all threads.
///
/// # Errors
/// [`Other`](crate::ErrorKind::Other) with code 401 if a platform is in use already: this comes before everything else here.
pub fn use_platform(platform: Platform) -> Result<()> {
    let in_use = |_| Error::new(CUDA_ERROR_ILLEGAL_STATE, "the runtime has a platform already");
    PLATFORM.set(platform).map_err(in_use)
}

/// The platform in use.
pub fn platform() -> Result<&'static Platform> {
    match PLATFORM.get() {
        Some(platform) => Ok(platform),
        None => {
            let embedded = Platform::embedded()?;
            Ok(PLATFORM.get_or_init(|| embedded))
        }
    }
}

/// How many devices there are.
pub fn device_count() -> Result<usize> {
    platform()?.device_count()
}

/// Makes a device this thread's current one; before that it is device 0.
///
/// # Errors
/// [`NoDevice`](crate::ErrorKind::NoDevice) if there are not as many.
pub fn set_device(ordinal: usize) -> Result<()> {
    platform()?.device(ordinal)?;
    CURRENT.set(ordinal);
    Ok(())
}

/// The current device.
pub fn device() -> Result<Device> {
    platform()?.device(CURRENT.get())
}

/// The current device's primary context, which stays once it is used.
pub fn context() -> Result<&'static Context> {
    static CONTEXTS: Mutex<BTreeMap<usize, &'static Context>> = Mutex::new(BTreeMap::new());
    let ordinal = CURRENT.get();
    let mut contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(context) = contexts.get(&ordinal) {
        return Ok(context);
    }
    let context = device()?.primary_context()?.leak();
    contexts.insert(ordinal, context);
    Ok(context)
}

/// Device memory with copies of these elements.
///
/// # Errors
/// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
pub fn buffer_from<T: Pod>(elements: &[T]) -> Result<Buffer<'static, T>> {
    context()?.buffer_from(elements)
}

/// Device memory for `len` elements, all bytes zero.
///
/// # Errors
/// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
pub fn zeroed<T: Pod>(len: usize) -> Result<Buffer<'static, T>> {
    context()?.zeroed(len)
}

/// Host memory that the device reaches too, for `len` elements, all bytes zero.
///
/// # Errors
/// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
pub fn pinned<T: Pod>(len: usize) -> Result<PinnedBuffer<'static, T>> {
    context()?.pinned(len)
}

/// Memory for `len` elements that host and device take turns with, all bytes zero.
///
/// # Errors
/// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
pub fn managed<T: Pod>(len: usize) -> Result<ManagedBuffer<'static, T>> {
    context()?.managed(len)
}

/// A stream whose work runs beside that of all other streams.
pub fn create_stream() -> Result<Stream<'static>> {
    context()?.create_stream()
}

/// Loads PTX.
///
/// # Errors
/// As for [`Context::load_ptx`].
pub fn load_ptx(ptx: &str) -> Result<Module<'static>> {
    context()?.load_ptx(ptx)
}

/// Loads PTX and answers one of its kernels, which keeps it loaded.
///
/// # Errors
/// As for [`Context::load_ptx`] and [`Module::function`].
pub fn kernel(ptx: &str, name: &str) -> Result<Kernel> {
    Kernel::new(load_ptx(ptx)?, name)
}

/// Waits until all work on the current device's primary context is done.
///
/// # Errors
/// [`Fault`](crate::ErrorKind::Fault) if a kernel there has failed.
pub fn synchronize() -> Result<()> {
    context()?.synchronize()
}

/// A kernel of the current device's primary context, with its module.
pub struct Kernel {
    function: Function<'static>,
    /// What the function refers to, in fact if not in type: it goes after it.
    module: Module<'static>,
}

impl Kernel {
    /// The kernel of this name, keeping its module.
    ///
    /// # Errors
    /// As for [`Module::function`].
    pub fn new(module: Module<'static>, name: &str) -> Result<Kernel> {
        let function = module.make_function(name)?;
        Ok(Kernel { function, module })
    }

    /// The kernel, for what this type does not have.
    pub fn function(&self) -> &Function<'_> {
        &self.function
    }

    /// Its module.
    pub fn module(&self) -> &Module<'static> {
        &self.module
    }

    /// Queues the kernel in the default stream.
    ///
    /// # Errors
    /// As for [`Function::launch`].
    ///
    /// # Safety
    /// As for [`Function::launch`].
    pub unsafe fn launch(&self, config: LaunchConfig, arguments: impl Arguments) -> Result<()> {
        let stream = self.module.context().default_stream();
        // SAFETY: the caller's contract is the same.
        unsafe { self.function.launch(&stream, config, arguments) }
    }

    /// Queues the kernel in a stream.
    ///
    /// # Errors
    /// As for [`Function::launch`].
    ///
    /// # Safety
    /// As for [`Function::launch`].
    pub unsafe fn launch_in(
        &self,
        stream: &Stream<'_>,
        config: LaunchConfig,
        arguments: impl Arguments,
    ) -> Result<()> {
        // SAFETY: the caller's contract is the same.
        unsafe { self.function.launch(stream, config, arguments) }
    }
}
