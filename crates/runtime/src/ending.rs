//! What the process's end does to calls.
//!
//! Exit handlers and destructors run in the reverse of their order. Those of what was there before the first call come after the driver's own,
//! and find a runtime that does nothing more.

use std::sync::atomic::{AtomicBool, Ordering};

use cuda_abi::runtime::*;

static OVER: AtomicBool = AtomicBool::new(false);

/// From now on, exit handlers that are there already find the runtime unloading.
pub fn watch() {
    extern "C" fn end() {
        OVER.store(true, Ordering::Release);
    }
    // SAFETY: the handler only sets a flag. If there is no room for it, the driver says the same.
    unsafe { libc::atexit(end) };
}

/// Whether a function still does what it does.
pub fn check(function: &str) -> CudaResult {
    if !OVER.load(Ordering::Acquire) || ANSWER_ALWAYS.contains(&function) {
        return Ok(());
    }
    Err(cudaErrorCudartUnloading)
}

/// Those that need no driver.
const ANSWER_ALWAYS: [&str; 5] = [
    "cudaDriverGetVersion",
    "cudaGetDeviceCount",
    "cudaGetLastError",
    "cudaPeekAtLastError",
    "cudaRuntimeGetVersion",
];
