//! Error handling: names and texts of codes.

use crate::error::CuResult;
use cuda_abi::args::Out;
use cuda_abi::driver::*;
use entry_macros::entry_point;
use std::ffi::{CStr, c_char};

/// The code's name; an unknown code gives null and `CUDA_ERROR_INVALID_VALUE`.
#[entry_point(before_init)]
fn cuGetErrorName(error: CUresult, pStr: Out<*const c_char>) -> CuResult {
    give(error.c_name(), pStr)
}

/// The code's description; an unknown code gives null and `CUDA_ERROR_INVALID_VALUE`.
#[entry_point(before_init)]
fn cuGetErrorString(error: CUresult, pStr: Out<*const c_char>) -> CuResult {
    give(error.c_text(), pStr)
}

fn give(text: Option<&'static CStr>, place: Out<*const c_char>) -> CuResult {
    place.set(text.map_or(std::ptr::null(), CStr::as_ptr))?;
    text.map(drop).ok_or(CUDA_ERROR_INVALID_VALUE.into())
}
