//! Filling memory with a byte.

use crate::api::prelude::*;
use crate::context;
use crate::copy::device_pointer;
use crate::streams::resolve;

/// Sets bytes.
#[entry_point(ptds)]
fn cudaMemset(default: DefaultStream, devPtr: *mut c_void, value: i32, count: usize) -> CudaResult {
    context::ensure_current()?;
    let (pointer, value) = (device_pointer(devPtr), value as u8);
    match default {
        _ if count == 0 => Ok(()),
        DefaultStream::Legacy => call!(cuMemsetD8_v2(pointer, value, count)),
        DefaultStream::PerThread => call!(cuMemsetD8_v2_ptds(pointer, value, count)),
    }
}

/// Sets bytes in stream order.
#[entry_point(ptsz)]
fn cudaMemsetAsync(
    default: DefaultStream,
    devPtr: *mut c_void,
    value: i32,
    count: usize,
    stream: cudaStream_t,
) -> CudaResult {
    context::ensure_current()?;
    if count == 0 {
        return Ok(());
    }
    call!(cuMemsetD8Async(device_pointer(devPtr), value as u8, count, resolve(default, stream)))
}

/// Sets rows of bytes.
#[entry_point(ptds)]
fn cudaMemset2D(
    default: DefaultStream,
    devPtr: *mut c_void,
    pitch: usize,
    value: i32,
    width: usize,
    height: usize,
) -> CudaResult {
    context::ensure_current()?;
    set_rows(When::Now(default), device_pointer(devPtr), pitch, value, width, height)
}

/// Sets rows of bytes in stream order.
#[entry_point(ptsz)]
fn cudaMemset2DAsync(
    default: DefaultStream,
    devPtr: *mut c_void,
    pitch: usize,
    value: i32,
    width: usize,
    height: usize,
    stream: cudaStream_t,
) -> CudaResult {
    context::ensure_current()?;
    let when = When::InOrder(resolve(default, stream));
    set_rows(when, device_pointer(devPtr), pitch, value, width, height)
}

/// Sets a box of bytes.
#[entry_point(ptds)]
fn cudaMemset3D(
    default: DefaultStream,
    pitchedDevPtr: cudaPitchedPtr,
    value: i32,
    extent: cudaExtent,
) -> CudaResult {
    context::ensure_current()?;
    set_box(When::Now(default), pitchedDevPtr, value, extent)
}

/// Sets a box of bytes in stream order.
#[entry_point(ptsz)]
fn cudaMemset3DAsync(
    default: DefaultStream,
    pitchedDevPtr: cudaPitchedPtr,
    value: i32,
    extent: cudaExtent,
    stream: cudaStream_t,
) -> CudaResult {
    context::ensure_current()?;
    set_box(When::InOrder(resolve(default, stream)), pitchedDevPtr, value, extent)
}

#[derive(Clone, Copy)]
enum When {
    /// On the default stream.
    Now(DefaultStream),
    InOrder(CUstream),
}

fn set_rows(
    when: When,
    pointer: CUdeviceptr,
    pitch: usize,
    value: i32,
    width: usize,
    height: usize,
) -> CudaResult {
    if width == 0 || height == 0 {
        return Ok(());
    }
    // The value's lowest byte, as for memset.
    let value = value as u8;
    match when {
        When::Now(DefaultStream::Legacy) => call!(cuMemsetD2D8_v2(pointer, pitch, value, width, height)),
        When::Now(DefaultStream::PerThread) => {
            call!(cuMemsetD2D8_v2_ptds(pointer, pitch, value, width, height))
        }
        When::InOrder(stream) => call!(cuMemsetD2D8Async(pointer, pitch, value, width, height, stream)),
    }
}

fn set_box(when: When, pointer: cudaPitchedPtr, value: i32, extent: cudaExtent) -> CudaResult {
    let start = device_pointer(pointer.ptr);
    if extent.width == 0 || extent.height == 0 || extent.depth == 0 {
        return Ok(());
    }
    // A slice has no more rows than it says.
    if extent.height > pointer.ysize {
        return Err(cudaErrorInvalidValue);
    }
    if extent.depth == 1 || extent.height == pointer.ysize {
        // The slices follow each other without a gap.
        let rows = extent.height.checked_mul(extent.depth).ok_or(cudaErrorInvalidValue)?;
        return set_rows(when, start, pointer.pitch, value, extent.width, rows);
    }
    // Rows may not lie in each other: each slice then lies behind the one before, and the memory's end ends them.
    if extent.width > pointer.pitch {
        return Err(cudaErrorInvalidValue);
    }
    let slice = pointer.pitch.checked_mul(pointer.ysize).ok_or(cudaErrorInvalidValue)?;
    for z in 0..extent.depth {
        let offset = slice.checked_mul(z).ok_or(cudaErrorInvalidValue)?;
        let address = start.0.checked_add(offset as u64).ok_or(cudaErrorInvalidValue)?;
        set_rows(when, CUdeviceptr(address), pointer.pitch, value, extent.width, extent.height)?;
    }
    Ok(())
}
