//! Managed memory whose place is a device's number, and pointers.

use crate::api::prelude::*;
use crate::api::unified_addressing;
use crate::context;
use crate::copy::device_pointer;
use crate::streams::resolve;

/// Tells how a range is going to be used; a device of -1 is the host.
#[entry_point]
fn cudaMemAdvise_cuda12(
    devPtr: *const c_void,
    count: usize,
    advice: cudaMemoryAdvise,
    device: i32,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuMemAdvise(device_pointer(devPtr), count, CUmem_advise(advice.0), device))
}

/// Moves a range to where it is going to be used; a device of -1 is the host.
#[entry_point(ptsz)]
fn cudaMemPrefetchAsync_cuda12(
    default: DefaultStream,
    devPtr: *const c_void,
    count: usize,
    dstDevice: i32,
    stream: cudaStream_t,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuMemPrefetchAsync(device_pointer(devPtr), count, dstDevice, resolve(default, stream)))
}

/// What a pointer leads to.
#[entry_point]
fn cudaPointerGetAttributes_cuda12(
    attributes: Out<cudaPointerAttributes_cuda12>,
    ptr: *const c_void,
) -> CudaResult {
    context::ensure_current()?;
    let out = attributes.check()?;
    let cudaPointerAttributes { r#type, device, devicePointer, hostPointer, .. } =
        unified_addressing::attributes_of(ptr)?;
    out.set(cudaPointerAttributes_cuda12 { r#type, device, devicePointer, hostPointer })?;
    Ok(())
}

/// Copies `count` ranges, in any order; `failIdx` is the first that is wrong, or `SIZE_MAX` if it is none of them.
#[entry_point(ptsz)]
fn cudaMemcpyBatchAsync_cuda12(
    default: DefaultStream,
    dsts: *mut *mut c_void,
    srcs: *mut *mut c_void,
    sizes: *mut usize,
    count: usize,
    attrs: *mut cudaMemcpyAttributes,
    attrsIdxs: *mut usize,
    numAttrs: usize,
    failIdx: *mut usize,
    stream: cudaStream_t,
) -> CudaResult {
    context::ensure_current()?;
    let (to, from, stream) = (dsts.cast(), srcs.cast(), resolve(default, stream));
    call!(cuMemcpyBatchAsync(to, from, sizes, count, attrs, attrsIdxs, numAttrs, failIdx, stream))
}

/// Copies `numOps` boxes, in any order; `failIdx` as above.
#[entry_point(ptsz)]
fn cudaMemcpy3DBatchAsync_cuda12(
    default: DefaultStream,
    numOps: usize,
    opList: *mut cudaMemcpy3DBatchOp,
    failIdx: *mut usize,
    flags: u64,
    stream: cudaStream_t,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuMemcpy3DBatchAsync(numOps, opList, failIdx, flags, resolve(default, stream)))
}
