//! CUDA kernels on the CPU, from Rust.
//!
//! Two ways lead to the same device:
//!
//! * The **driver's** way names everything: a [`Device`], a [`Context`] on it, a [`Module`] loaded from PTX, its
//!   [`Function`]s, [`Stream`]s to launch them in, [`Event`]s, [`Buffer`]s of device memory.
//! * The **runtime's** way ([`runtime`]) has a current device for each thread and uses its primary context.
//!
//! ```
//! use anywarp::{Device, LaunchConfig};
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
//! let context = Device::get(0)?.create_context()?;
//! let square = context.load_ptx(kernel)?.function("square")?;
//! let mut squares = context.zeroed::<u32>(8)?;
//! // SAFETY: the kernel writes as many elements as it has threads.
//! unsafe { square.launch(context.default_stream(), LaunchConfig::new(1, 8), (&mut squares,))? };
//! assert_eq!(squares.to_vec()?, [0, 1, 4, 9, 16, 25, 36, 49]);
//! # Ok::<(), anywarp::Error>(())
//! ```
//!
//! Launches are asynchronous: they return before the kernel has ended, and work of one stream is done in its order.
//! Reading a buffer waits. A kernel's failure (a bad address, a trap) is an [`Error::Fault`] of every later operation in
//! its context; the process and other contexts go on.
//!
//! Buffers, modules and streams keep their context alive; all of them can be sent to and shared between threads.

mod arguments;
mod buffer;
mod context;
mod error;
mod function;
mod platform;
pub mod runtime;
mod stream;

pub use arguments::{Argument, Arguments, ByValue};
pub use buffer::Buffer;
pub use context::{Context, Module};
pub use error::Error;
pub use function::{Function, LaunchConfig};
pub use platform::{Device, Limits, kernel_cache};
pub use stream::{Event, Stream};

/// The result of this crate's operations.
pub type Result<T> = std::result::Result<T, Error>;
