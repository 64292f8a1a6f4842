//! Memory and events shared between processes.

use super::prelude::*;
use crate::context;
use crate::copy::device_pointer;

/// What another process needs to open an allocation.
#[entry_point]
fn cudaIpcGetMemHandle(handle: Out<cudaIpcMemHandle_t>, devPtr: *mut c_void) -> CudaResult {
    context::ensure_current()?;
    let handle = handle.check()?;
    call!(cuIpcGetMemHandle(handle.as_ptr(), device_pointer(devPtr)))
}

/// Opens another process's allocation.
#[entry_point]
fn cudaIpcOpenMemHandle(devPtr: Out<*mut c_void>, handle: cudaIpcMemHandle_t, flags: u32) -> CudaResult {
    context::ensure_current()?;
    let pointer = devPtr.check()?;
    call!(cuIpcOpenMemHandle_v2(pointer.as_ptr().cast(), handle, flags))
}

/// Closes another process's allocation.
#[entry_point]
fn cudaIpcCloseMemHandle(devPtr: *mut c_void) -> CudaResult {
    context::ensure_current()?;
    call!(cuIpcCloseMemHandle(device_pointer(devPtr)))
}

/// What another process needs to open an event.
#[entry_point]
fn cudaIpcGetEventHandle(handle: Out<cudaIpcEventHandle_t>, event: cudaEvent_t) -> CudaResult {
    context::ensure_current()?;
    let handle = handle.check()?;
    call!(cuIpcGetEventHandle(handle.as_ptr(), event))
}

/// Opens another process's event.
#[entry_point]
fn cudaIpcOpenEventHandle(event: Out<cudaEvent_t>, handle: cudaIpcEventHandle_t) -> CudaResult {
    context::ensure_current()?;
    let event = event.check()?;
    call!(cuIpcOpenEventHandle(event.as_ptr(), handle))
}
