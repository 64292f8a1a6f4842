//! CUDA from Rust, safely.
//!
//! # A first program
//!
//! ```
//! use anywarp::{LaunchConfig, Platform};
//!
//! let kernel = "
//!     .version 8.0
//!     .target sm_80
//!     .address_size 64
//!     .visible .entry square (.param .u64 values)
//!     {
//!         .reg .u32 %r<3>;
//!         .reg .u64 %rd<3>;
//!         mov.u32 %r1, %tid.x;
//!         ld.param.u64 %rd1, [values];
//!         mul.wide.u32 %rd2, %r1, 4;
//!         add.u64 %rd1, %rd1, %rd2;
//!         mul.lo.u32 %r2, %r1, %r1;
//!         st.global.u32 [%rd1], %r2;
//!         ret;
//!     }";
//! let platform = Platform::embedded()?; // or the system's driver: Platform::system()?
//! let context = platform.device(0)?.create_context()?;
//! let module = context.load_ptx(kernel)?;
//! let square = module.function("square")?;
//! let mut squares = context.zeroed::<u32>(8)?;
//! // SAFETY: the kernel writes as many elements as it has threads.
//! unsafe { square.launch(&context.default_stream(), LaunchConfig::new(1, 8), (&mut squares,))? };
//! assert_eq!(squares.to_vec()?, [0, 1, 4, 9, 16, 25, 36, 49]);
//! # Ok::<(), anywarp::Error>(())
//! ```
//!
//! # Which device
//!
//! A [`Platform`] is a driver with its devices. [`Platform::embedded`] is Anywarp's own device, which is part of this crate:
//! kernels run on the CPU. [`Platform::system`] and [`Platform::library`] are any `libcuda.so.1`, opened at run time: NVIDIA's
//! on a machine with a GPU, or Anywarp's. The rest of a program is the same for all of them.
//!
//! # Two ways
//!
//! * The **driver's** way names everything: a [`Device`], a [`Context`] on it, a [`Module`] loaded from PTX or a fat
//!   binary, its [`Function`]s, [`Stream`]s to launch them in, [`Event`]s, and memory: [`Buffer`], [`PinnedBuffer`],
//!   [`ManagedBuffer`].
//! * The **runtime's** way ([`runtime`]) has a current device for each thread and uses its primary context.
//!
//! # What the compiler sees to
//!
//! * Everything of a context borrows it and a kernel borrows its module, so nothing is used after it is gone, and the order
//!   in which things are dropped is right.
//! * [`View`] and [`ViewMut`] are parts of device memory as `&[T]` and `&mut [T]` are of the host's.
//! * Host memory of an asynchronous copy stays borrowed until the copy is done ([`Stream::scope`]), or belongs to the copy
//!   ([`Stream::upload`]).
//! * All of them can be sent to and shared between threads:
//!
//! ```
//! # let context = anywarp::Device::get(0)?.create_context()?;
//! std::thread::scope(|threads| {
//!     for number in 0..4_u32 {
//!         let context = &context;
//!         threads.spawn(move || {
//!             let stream = context.create_stream()?;
//!             let mut buffer = context.allocate::<u32>(100)?;
//!             stream.fill(&mut buffer, number)?;
//!             assert_eq!(buffer.to_vec()?, [number; 100]);
//!             Ok::<(), anywarp::Error>(())
//!         });
//!     }
//! });
//! # Ok::<(), anywarp::Error>(())
//! ```
//!
//! Only launches are `unsafe`: what a kernel does with the addresses it is given, nobody can check. Their arguments are checked
//! against the parameters that the kernel declares.
//!
//! # Order and failure
//!
//! Launches are asynchronous: they return before the kernel has ended, and work of one stream is done in its order. Reading or
//! writing a buffer from the host waits for all work of its context. A kernel's failure (a bad address, a trap) is an
//! [`ErrorKind::Fault`] of every later operation in its context; over the embedded platform the process and its other contexts
//! go on.
//!
//! An [`Error`] has CUDA's code and a message: the compiler's log, or the kernel, block, thread and line that failed.

mod arguments;
mod buffer;
mod context;
mod driver;
mod error;
mod event;
mod function;
mod host;
mod module;
mod platform;
pub mod runtime;
mod scope;
mod stream;
mod view;

pub use arguments::{Argument, Arguments, ByValue};
pub use buffer::Buffer;
pub use bytemuck::Pod;
pub use context::{Context, Limit};
pub use error::{Error, ErrorKind};
pub use event::{Event, EventOptions};
pub use function::{Function, FunctionAttributes, LaunchConfig};
pub use host::{ManagedBuffer, PinnedBuffer};
pub use module::{Image, JitOptions, Module};
pub use platform::{ContextOptions, Device, DeviceLimits, Platform, Scheduling, kernel_cache};
pub use scope::Scope;
pub use stream::{Stream, StreamOptions};
pub use view::{View, ViewMut};

/// The result of this crate's operations.
pub type Result<T> = std::result::Result<T, Error>;
