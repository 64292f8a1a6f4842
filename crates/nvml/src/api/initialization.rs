//! Initialisation and errors.

use crate::shim;
use cuda_abi::nvml::*;
use entry_macros::entry_point;
use std::ffi::c_char;

#[entry_point(before_init)]
fn nvmlInit() -> NvmlResult {
    shim::initialise()
}

#[entry_point(before_init)]
fn nvmlInit_v2() -> NvmlResult {
    shim::initialise()
}

/// A machine without devices is no failure in any case, and none has to be opened.
#[entry_point(before_init)]
fn nvmlInitWithFlags(_flags: u32) -> NvmlResult {
    shim::initialise()
}

/// After as many calls as there were of `nvmlInit` and the like, nothing works any more.
#[entry_point(before_init)]
fn nvmlShutdown() -> NvmlResult {
    shim::shut_down()
}

#[entry_point]
fn nvmlErrorString(result: nvmlReturn_t) -> *const c_char {
    result.c_text().unwrap_or(c"Unknown Error").as_ptr()
}
