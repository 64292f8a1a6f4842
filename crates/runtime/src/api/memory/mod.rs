//! Memory management.

pub mod allocate;
pub mod array;
pub mod batch;
pub mod copy;
pub mod copy_array;
pub mod copy_array_bytes;
pub mod copy_box;
pub mod host;
pub mod managed;
pub mod set;
pub mod symbol;
