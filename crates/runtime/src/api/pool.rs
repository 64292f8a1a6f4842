//! Memory that is allocated and freed in stream order, and the pools it comes from.

use super::prelude::*;
use crate::copy::device_pointer;
use crate::streams::resolve;
use crate::{context, devices};

/// Allocates from the device's pool when the stream's work so far is done. No bytes are a null pointer.
#[entry_point(ptsz)]
fn cudaMallocAsync(
    default: DefaultStream,
    devPtr: Out<*mut c_void>,
    size: usize,
    hStream: cudaStream_t,
) -> CudaResult {
    context::ensure_current()?;
    let pointer = devPtr.check()?;
    if size == 0 {
        pointer.set(std::ptr::null_mut())?;
        return Ok(());
    }
    call!(cuMemAllocAsync(pointer.as_ptr().cast(), size, resolve(default, hStream)))
}

/// Allocates from a pool when the stream's work so far is done.
#[entry_point(ptsz)]
fn cudaMallocFromPoolAsync(
    default: DefaultStream,
    ptr: Out<*mut c_void>,
    size: usize,
    memPool: cudaMemPool_t,
    stream: cudaStream_t,
) -> CudaResult {
    context::ensure_current()?;
    let pointer = ptr.check()?;
    call!(cuMemAllocFromPoolAsync(pointer.as_ptr().cast(), size, memPool, resolve(default, stream)))
}

/// Frees when the stream's work so far is done.
#[entry_point(ptsz)]
fn cudaFreeAsync(default: DefaultStream, devPtr: *mut c_void, hStream: cudaStream_t) -> CudaResult {
    context::ensure_current()?;
    call!(cuMemFreeAsync(device_pointer(devPtr), resolve(default, hStream)))
}

/// The pool that a device begins with.
#[entry_point]
fn cudaDeviceGetDefaultMemPool(memPool: Out<cudaMemPool_t>, device: i32) -> CudaResult {
    let pool = memPool.check()?;
    let device = devices::check(device)?;
    call!(cuDeviceGetDefaultMemPool(pool.as_ptr(), device))
}

/// The pool that a device allocates from.
#[entry_point]
fn cudaDeviceGetMemPool(memPool: Out<cudaMemPool_t>, device: i32) -> CudaResult {
    let pool = memPool.check()?;
    context::initialize()?;
    call!(cuDeviceGetMemPool(pool.as_ptr(), device))
}

/// Sets the pool that a device allocates from.
#[entry_point]
fn cudaDeviceSetMemPool(device: i32, memPool: cudaMemPool_t) -> CudaResult {
    context::initialize()?;
    call!(cuDeviceSetMemPool(device, memPool))
}

/// Makes a pool. Both APIs lay out the properties alike.
#[entry_point]
fn cudaMemPoolCreate(memPool: Out<cudaMemPool_t>, poolProps: In<cudaMemPoolProps>) -> CudaResult {
    context::initialize()?;
    let pool = memPool.check()?;
    call!(cuMemPoolCreate(pool.as_ptr(), poolProps.as_ptr().cast()))
}

/// Destroys a pool, when its allocations are freed.
#[entry_point]
fn cudaMemPoolDestroy(memPool: cudaMemPool_t) -> CudaResult {
    context::initialize()?;
    call!(cuMemPoolDestroy(memPool))
}

/// Gives memory beyond `minBytesToKeep` back to the system.
#[entry_point]
fn cudaMemPoolTrimTo(memPool: cudaMemPool_t, minBytesToKeep: usize) -> CudaResult {
    context::initialize()?;
    call!(cuMemPoolTrimTo(memPool, minBytesToKeep))
}

/// One of a pool's attributes.
#[entry_point]
fn cudaMemPoolGetAttribute(memPool: cudaMemPool_t, attr: cudaMemPoolAttr, value: *mut c_void) -> CudaResult {
    context::initialize()?;
    call!(cuMemPoolGetAttribute(memPool, CUmemPool_attribute(attr.0), value))
}

/// Sets one of a pool's attributes.
#[entry_point]
fn cudaMemPoolSetAttribute(memPool: cudaMemPool_t, attr: cudaMemPoolAttr, value: *mut c_void) -> CudaResult {
    context::initialize()?;
    call!(cuMemPoolSetAttribute(memPool, CUmemPool_attribute(attr.0), value))
}

/// Says which devices may use a pool's memory.
#[entry_point]
fn cudaMemPoolSetAccess(
    memPool: cudaMemPool_t,
    descList: Array<cudaMemAccessDesc>,
    count: usize,
) -> CudaResult {
    context::initialize()?;
    // The driver wants a list even then.
    if descList.is_null() && count == 0 {
        return Ok(());
    }
    call!(cuMemPoolSetAccess(memPool, descList.as_ptr().cast(), count))
}

/// Which use a place may make of a pool's memory.
#[entry_point]
fn cudaMemPoolGetAccess(
    flags: Out<cudaMemAccessFlags>,
    memPool: cudaMemPool_t,
    location: *mut cudaMemLocation,
) -> CudaResult {
    context::initialize()?;
    let flags = flags.check()?;
    call!(cuMemPoolGetAccess(flags.as_ptr().cast(), memPool, location.cast()))
}

/// The pool that a place begins with, for a kind of allocation.
#[entry_point]
fn cudaMemGetDefaultMemPool(
    memPool: Out<cudaMemPool_t>,
    location: *mut cudaMemLocation,
    r#type: cudaMemAllocationType,
) -> CudaResult {
    context::initialize()?;
    let pool = memPool.check()?;
    call!(cuMemGetDefaultMemPool(pool.as_ptr(), location.cast(), CUmemAllocationType(r#type.0)))
}

/// The pool that a place allocates from, for a kind of allocation.
#[entry_point]
fn cudaMemGetMemPool(
    memPool: Out<cudaMemPool_t>,
    location: *mut cudaMemLocation,
    r#type: cudaMemAllocationType,
) -> CudaResult {
    context::initialize()?;
    let pool = memPool.check()?;
    call!(cuMemGetMemPool(pool.as_ptr(), location.cast(), CUmemAllocationType(r#type.0)))
}

/// Sets the pool that a place allocates from, for a kind of allocation.
#[entry_point]
fn cudaMemSetMemPool(
    location: *mut cudaMemLocation,
    r#type: cudaMemAllocationType,
    memPool: cudaMemPool_t,
) -> CudaResult {
    context::initialize()?;
    call!(cuMemSetMemPool(location.cast(), CUmemAllocationType(r#type.0), memPool))
}

/// What another process needs to open a pool: with file descriptors, the descriptor.
#[entry_point]
fn cudaMemPoolExportToShareableHandle(
    shareableHandle: *mut c_void,
    memPool: cudaMemPool_t,
    handleType: cudaMemAllocationHandleType,
    flags: u32,
) -> CudaResult {
    context::initialize()?;
    let kind = CUmemAllocationHandleType(handleType.0);
    call!(cuMemPoolExportToShareableHandle(shareableHandle, memPool, kind, flags.into()))
}

/// Opens another process's pool.
#[entry_point]
fn cudaMemPoolImportFromShareableHandle(
    memPool: Out<cudaMemPool_t>,
    shareableHandle: *mut c_void,
    handleType: cudaMemAllocationHandleType,
    flags: u32,
) -> CudaResult {
    context::initialize()?;
    let (pool, kind) = (memPool.check()?, CUmemAllocationHandleType(handleType.0));
    call!(cuMemPoolImportFromShareableHandle(pool.as_ptr(), shareableHandle, kind, flags.into()))
}

/// What another process needs to reach an allocation of a shared pool.
#[entry_point]
fn cudaMemPoolExportPointer(exportData: Out<cudaMemPoolPtrExportData>, ptr: *mut c_void) -> CudaResult {
    context::initialize()?;
    let data = exportData.check()?;
    call!(cuMemPoolExportPointer(data.as_ptr(), device_pointer(ptr)))
}

/// Reaches another process's allocation of a shared pool.
#[entry_point]
fn cudaMemPoolImportPointer(
    ptr: Out<*mut c_void>,
    memPool: cudaMemPool_t,
    exportData: *mut cudaMemPoolPtrExportData,
) -> CudaResult {
    context::ensure_current()?;
    let pointer = ptr.check()?;
    call!(cuMemPoolImportPointer(pointer.as_ptr().cast(), memPool, exportData))
}
