//! What must hold before the body of an entry point runs.

use cuda_abi::driver::*;
use cuda_abi::shim::{Entry, WriteArguments, guarded, trace};

/// Called by the C side of every entry point.
pub fn call(entry: &Entry, arguments: WriteArguments<'_>, body: impl FnOnce() -> CuResult) -> CUresult {
    let result = guarded(entry, Err(CUDA_ERROR_UNKNOWN), body);
    let code = result.err().unwrap_or(CUDA_SUCCESS);
    trace(entry, arguments, &code);
    code
}

/// Called by every stub.
pub fn missing(name: &'static str) {
    let entry = Entry { name, before_init: true, sets_last_error: false };
    trace(&entry, &|f| f.write_str("?"), &CUDA_ERROR_NOT_SUPPORTED);
}
