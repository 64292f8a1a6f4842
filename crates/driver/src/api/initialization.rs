//! Initialization.

use crate::error::CuResult;
use crate::platform;
use cuda_abi::driver::*;
use entry_macros::entry_point;

/// Must come before other functions; may be called again.
#[entry_point(before_init)]
fn cuInit(Flags: u32) -> CuResult {
    if Flags != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    platform::initialise()
}
