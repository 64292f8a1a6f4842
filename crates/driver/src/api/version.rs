//! Version management.

use crate::error::CuResult;
use cuda_abi::args::Out;
use cuda_abi::driver::*;
use entry_macros::entry_point;

/// The version of the API that this driver implements.
#[entry_point(before_init)]
fn cuDriverGetVersion(driverVersion: Out<i32>) -> CuResult {
    driverVersion.set(CUDA_VERSION)?;
    Ok(())
}
