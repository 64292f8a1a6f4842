//! What surrounds the body of an entry point.

use cuda_abi::runtime::*;
use cuda_abi::shim::{Entry, WriteArguments, guarded, trace};

use crate::{context, ending, thread};

/// Called by the C side of every entry point.
pub fn call(entry: &Entry, arguments: WriteArguments<'_>, body: impl Fn() -> CudaResult) -> cudaError_t {
    let run = || {
        ending::check(entry.name)?;
        guarded(entry, Err(cudaErrorUnknown), &body)
    };
    let result = match run() {
        // The driver did nothing: with a new context the call can be made again.
        Err(code @ (cudaErrorContextIsDestroyed | cudaErrorDeviceUninitialized)) => {
            match guarded(entry, Err(cudaErrorUnknown), || context::renew(code)) {
                Ok(true) => run(),
                Ok(false) => Err(cudaErrorDeviceUninitialized),
                Err(code) => Err(code),
            }
        }
        result => result,
    };
    let code = result.err().unwrap_or(cudaSuccess);
    // "Not ready" is an answer, not a failure. Success leaves an earlier failure where it is.
    if entry.sets_last_error && code != cudaSuccess && code != cudaErrorNotReady {
        thread::replace_last_error(code);
    }
    trace(entry, arguments, &code);
    code
}

/// Called by every stub.
pub fn missing(name: &'static str) -> cudaError_t {
    let entry = Entry { name, before_init: true, while_locked: true, sets_last_error: true };
    thread::replace_last_error(cudaErrorNotSupported);
    trace(&entry, &|f| f.write_str("?"), &cudaErrorNotSupported);
    cudaErrorNotSupported
}
