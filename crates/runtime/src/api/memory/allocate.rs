//! Device memory. Where the driver refuses to allocate nothing, the runtime gives a null pointer.

use std::ptr;

use crate::api::prelude::*;
use crate::context;
use crate::copy::device_pointer;

/// Allocates device memory.
#[entry_point]
fn cudaMalloc(devPtr: Out<*mut c_void>, size: usize) -> CudaResult {
    context::ensure_current()?;
    let pointer = devPtr.check()?;
    if size == 0 {
        pointer.set(ptr::null_mut())?;
        return Ok(());
    }
    call!(cuMemAlloc_v2(pointer.as_ptr().cast(), size))
}

/// Frees device memory; null is allowed.
#[entry_point]
fn cudaFree(devPtr: *mut c_void) -> CudaResult {
    context::ensure_current()?;
    call!(cuMemFree_v2(device_pointer(devPtr)))
}

/// Allocates rows that lie as far apart as suits the device; the distance is in bytes.
#[entry_point]
fn cudaMallocPitch(devPtr: Out<*mut c_void>, pitch: Out<usize>, width: usize, height: usize) -> CudaResult {
    context::ensure_current()?;
    let (pointer, pitch) = (devPtr.check()?, pitch.check()?);
    pointer.set(std::ptr::null_mut())?;
    let (address, distance) = allocate_rows(width, height)?;
    pointer.set(address)?;
    pitch.set(distance)?;
    Ok(())
}

/// Allocates a box of rows.
#[entry_point]
fn cudaMalloc3D(pitchedDevPtr: Out<cudaPitchedPtr>, extent: cudaExtent) -> CudaResult {
    context::ensure_current()?;
    let pointer = pitchedDevPtr.check()?;
    let rows = extent.height.checked_mul(extent.depth).ok_or(cudaErrorMemoryAllocation)?;
    let (ptr, pitch) = allocate_rows(extent.width, rows)?;
    pointer.set(cudaPitchedPtr { ptr, pitch, xsize: extent.width, ysize: extent.height })?;
    Ok(())
}

/// How much of the device's memory is free, and how much there is; either may be unwanted.
#[entry_point]
fn cudaMemGetInfo(free: Out<usize>, total: Out<usize>) -> CudaResult {
    context::ensure_current()?;
    let (mut free_bytes, mut total_bytes) = (0, 0);
    call!(cuMemGetInfo_v2(&mut free_bytes, &mut total_bytes))?;
    free.set_if_wanted(free_bytes);
    total.set_if_wanted(total_bytes);
    Ok(())
}

fn allocate_rows(width: usize, rows: usize) -> CudaResult<(*mut c_void, usize)> {
    /// The size in bytes of what a kernel reads at a time. The widest gives a pitch that suits all.
    const ELEMENT: u32 = 16;
    if width == 0 || rows == 0 {
        return Ok((ptr::null_mut(), 0));
    }
    let (mut address, mut pitch) = (CUdeviceptr(0), 0);
    call!(cuMemAllocPitch_v2(&mut address, &mut pitch, width, rows, ELEMENT))?;
    Ok((ptr::with_exposed_provenance_mut(address.0 as usize), pitch))
}
