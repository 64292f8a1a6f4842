//! The memory that graphs allocate.

use crate::api::prelude::*;
use crate::devices;

/// Gives memory that graphs no longer use back to the system.
#[entry_point]
fn cudaDeviceGraphMemTrim(device: i32) -> CudaResult {
    call!(cuDeviceGraphMemTrim(devices::check(device)?))
}

/// One number about the memory that graphs allocate.
#[entry_point]
fn cudaDeviceGetGraphMemAttribute(
    device: i32,
    attr: cudaGraphMemAttributeType,
    value: *mut c_void,
) -> CudaResult {
    call!(cuDeviceGetGraphMemAttribute(devices::check(device)?, attr, value))
}

/// Sets one of these numbers: the highest so far, to zero.
#[entry_point]
fn cudaDeviceSetGraphMemAttribute(
    device: i32,
    attr: cudaGraphMemAttributeType,
    value: *mut c_void,
) -> CudaResult {
    call!(cuDeviceSetGraphMemAttribute(devices::check(device)?, attr, value))
}
