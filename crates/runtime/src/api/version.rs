//! Version management.

use super::prelude::*;
use crate::version::version;

/// The version of the API that the driver implements; 0 if there is no driver.
#[entry_point]
fn cudaDriverGetVersion(driverVersion: Out<i32>) -> CudaResult {
    let out = driverVersion.check()?;
    let mut version = 0;
    match call!(cuDriverGetVersion(&mut version)) {
        Ok(()) | Err(cudaErrorInsufficientDriver) => out.set(version)?,
        Err(code) => return Err(code),
    }
    Ok(())
}

/// The version of this library's API.
#[entry_point]
fn cudaRuntimeGetVersion(runtimeVersion: Out<i32>) -> CudaResult {
    runtimeVersion.set(version())?;
    Ok(())
}
