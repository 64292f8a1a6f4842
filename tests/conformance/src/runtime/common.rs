//! What the tests of the Runtime API share.
#![allow(dead_code, unused_imports, reason = "each test file uses some of it")]

pub use crate::answers::{differs, is_ours, our_runtime_only, ours_only, runtime_differs, set_env, skip};
pub use crate::runtime::functions::*;
pub use cuda_abi::runtime::*;
pub use std::ffi::{CStr, CString, c_char, c_void};
pub use std::ptr::{null, null_mut};

/// Functions of the driver, for programs that use both APIs.
pub mod driver {
    pub use crate::driver::functions::*;
    pub use cuda_abi::driver::*;
}
