//! What must hold before the body of an entry point runs.

use crate::error::CuResult;
use crate::log;
use crate::platform::platform;
use cuda_abi::driver::*;
use cuda_abi::shim::{Entry, WriteArguments, guarded, trace};

/// Called by the C side of every entry point.
pub fn call(entry: &Entry, arguments: WriteArguments<'_>, body: impl FnOnce() -> CuResult) -> CUresult {
    let result = match check(entry) {
        Ok(()) => guarded(entry, Err(CUDA_ERROR_UNKNOWN.into()), body),
        Err(failure) => Err(failure),
    };
    let code = result.map_or_else(|failure| failure.0, |()| CUDA_SUCCESS);
    if code != CUDA_SUCCESS {
        log::failed(entry.name, code);
    }
    trace(entry, arguments, &code);
    code
}

/// Most functions need an initialised driver, and none of those may be called from a function that a stream runs.
fn check(entry: &Entry) -> CuResult {
    if entry.before_init {
        return Ok(());
    }
    platform()?;
    if device::stream::in_host_function() {
        return Err(CUDA_ERROR_NOT_PERMITTED.into());
    }
    if !entry.while_locked {
        device::checkpoint::wait_until_unlocked();
    }
    Ok(())
}

/// Called by every stub.
pub fn missing(name: &'static str) -> CUresult {
    let entry = Entry { name, before_init: true, while_locked: true, sets_last_error: false };
    log::failed(name, CUDA_ERROR_NOT_SUPPORTED);
    trace(&entry, &|f| f.write_str("?"), &CUDA_ERROR_NOT_SUPPORTED);
    CUDA_ERROR_NOT_SUPPORTED
}
