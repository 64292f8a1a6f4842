//! The entry points, one file per heading of the manual.

pub mod compiler;
pub mod cuda11;
pub mod cuda12;
pub mod device;
pub mod driver_entry_points;
pub mod driver_interaction;
pub mod error;
pub mod error_log;
pub mod event;
pub mod execution;
pub mod external;
pub mod graph;
pub mod ipc;
pub mod library;
pub mod memory;
pub mod occupancy;
pub mod peer;
pub mod pool;
pub mod profiler;
pub mod properties;
pub mod stream;
pub mod surface_object;
pub mod texture_object;
pub mod unified_addressing;
pub mod version;

/// What most entry points use.
mod prelude {
    pub use std::ffi::{c_char, c_void};

    pub use cuda_abi::args::{Array, In, Out, Text};
    pub use cuda_abi::driver::*;
    pub use cuda_abi::runtime::*;
    pub use cuda_abi::shim::DefaultStream;
    pub use entry_macros::entry_point;

    pub(super) use crate::driver::call;
}
