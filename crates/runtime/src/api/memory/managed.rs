//! Managed memory.

use std::ptr;

use crate::api::prelude::*;
use crate::context;
use crate::copy::device_pointer;
use crate::streams::resolve;

/// Allocates memory that host and device share. No bytes are a null pointer.
#[entry_point]
fn cudaMallocManaged(devPtr: Out<*mut c_void>, size: usize, flags: u32) -> CudaResult {
    context::ensure_current()?;
    let pointer = devPtr.check()?;
    if size == 0 {
        pointer.set(ptr::null_mut())?;
        return Ok(());
    }
    call!(cuMemAllocManaged(pointer.as_ptr().cast(), size, flags))
}

/// Tells how a range is going to be used.
#[entry_point]
fn cudaMemAdvise(
    devPtr: *const c_void,
    count: usize,
    advice: cudaMemoryAdvise,
    location: cudaMemLocation,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuMemAdvise_v2(device_pointer(devPtr), count, CUmem_advise(advice.0), to_driver(location)))
}

/// Moves a range to where it is going to be used.
#[entry_point(ptsz)]
fn cudaMemPrefetchAsync(
    default: DefaultStream,
    devPtr: *const c_void,
    count: usize,
    location: cudaMemLocation,
    flags: u32,
    stream: cudaStream_t,
) -> CudaResult {
    context::ensure_current()?;
    let (pointer, stream) = (device_pointer(devPtr), resolve(default, stream));
    call!(cuMemPrefetchAsync_v2(pointer, count, to_driver(location), flags, stream))
}

/// One of a range's attributes.
#[entry_point]
fn cudaMemRangeGetAttribute(
    data: *mut c_void,
    dataSize: usize,
    attribute: cudaMemRangeAttribute,
    devPtr: *const c_void,
    count: usize,
) -> CudaResult {
    context::ensure_current()?;
    let attribute = CUmem_range_attribute(attribute.0);
    call!(cuMemRangeGetAttribute(data, dataSize, attribute, device_pointer(devPtr), count))
}

/// Several of a range's attributes.
#[entry_point]
fn cudaMemRangeGetAttributes(
    data: *mut *mut c_void,
    dataSizes: *mut usize,
    attributes: *mut cudaMemRangeAttribute,
    numAttributes: usize,
    devPtr: *const c_void,
    count: usize,
) -> CudaResult {
    context::ensure_current()?;
    let (attributes, pointer) = (attributes.cast(), device_pointer(devPtr));
    call!(cuMemRangeGetAttributes(data, dataSizes, attributes, numAttributes, pointer, count))
}

fn to_driver(location: cudaMemLocation) -> CUmemLocation {
    CUmemLocation { r#type: CUmemLocationType(location.r#type.0), id: location.id }
}
