//! The functions of a driver, as the build script finds their names in these sources and their types in `functions.in`.

use cuda_abi::driver::*;
use std::ffi::*;

include!(concat!(env!("OUT_DIR"), "/functions.rs"));
