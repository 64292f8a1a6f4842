//! Host memory that the device can reach.

use std::ptr;

use crate::api::prelude::*;
use crate::context;

/// Allocates host memory that stays in place.
#[entry_point]
fn cudaMallocHost(ptr: Out<*mut c_void>, size: usize) -> CudaResult {
    allocate(ptr, size, cudaHostAllocDefault)
}

/// Allocates host memory that stays in place. The driver's flags have the same numbers.
#[entry_point]
fn cudaHostAlloc(pHost: Out<*mut c_void>, size: usize, flags: u32) -> CudaResult {
    allocate(pHost, size, flags)
}

/// Frees such memory; null is allowed.
#[entry_point]
fn cudaFreeHost(ptr: *mut c_void) -> CudaResult {
    context::ensure_current()?;
    // That frees nothing either, but tells what is wrong with the context or a capture.
    if ptr.is_null() { call!(cuMemFree_v2(CUdeviceptr(0))) } else { call!(cuMemFreeHost(ptr)) }
}

/// Makes memory of the program's own stay in place and reachable for the device.
#[entry_point]
fn cudaHostRegister(ptr: *mut c_void, size: usize, flags: u32) -> CudaResult {
    context::ensure_current()?;
    call!(cuMemHostRegister_v2(ptr, size, flags))
}

/// Ends that.
#[entry_point]
fn cudaHostUnregister(ptr: *mut c_void) -> CudaResult {
    context::ensure_current()?;
    call!(cuMemHostUnregister(ptr))
}

/// The device's address of such memory.
#[entry_point]
fn cudaHostGetDevicePointer(pDevice: Out<*mut c_void>, pHost: *mut c_void, flags: u32) -> CudaResult {
    context::ensure_current()?;
    let pointer = pDevice.check()?;
    call!(cuMemHostGetDevicePointer_v2(pointer.as_ptr().cast(), pHost, flags))
}

/// The flags that such memory was allocated with.
#[entry_point]
fn cudaHostGetFlags(pFlags: Out<u32>, pHost: *mut c_void) -> CudaResult {
    context::ensure_current()?;
    let flags = pFlags.check()?;
    call!(cuMemHostGetFlags(flags.as_ptr(), pHost))
}

fn allocate(pointer: Out<*mut c_void>, size: usize, flags: u32) -> CudaResult {
    context::ensure_current()?;
    let pointer = pointer.check()?;
    if size == 0 {
        pointer.set(ptr::null_mut())?;
        return Ok(());
    }
    call!(cuMemHostAlloc(pointer.as_ptr(), size, flags))
}
