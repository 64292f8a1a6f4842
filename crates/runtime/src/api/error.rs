//! Error handling.

use std::ffi::CStr;

use super::prelude::*;
use crate::thread;

/// The code of the thread's last call that failed, which is then forgotten.
#[entry_point(keeps_last_error)]
fn cudaGetLastError() -> CudaResult {
    as_result(thread::replace_last_error(cudaSuccess))
}

/// The code of the thread's last call that failed.
#[entry_point(keeps_last_error)]
fn cudaPeekAtLastError() -> CudaResult {
    as_result(thread::last_error())
}

/// A code's name.
#[entry_point]
fn cudaGetErrorName(error: cudaError_t) -> *const c_char {
    error.c_name().unwrap_or(UNRECOGNIZED).as_ptr()
}

/// A code's description.
#[entry_point]
fn cudaGetErrorString(error: cudaError_t) -> *const c_char {
    let known = error.c_text().or_else(|| (error.0 == 10_000).then_some(c"api failure base"));
    known.unwrap_or(UNRECOGNIZED).as_ptr()
}

const UNRECOGNIZED: &CStr = c"unrecognized error code";

fn as_result(code: cudaError_t) -> CudaResult {
    if code == cudaSuccess { Ok(()) } else { Err(code) }
}
