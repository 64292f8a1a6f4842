//! Copies between linear memories.

use crate::api::prelude::*;
use crate::context;
use crate::copy::{End, check_kind, describe_2d, device_pointer};
use crate::streams::resolve;

/// Copies bytes.
#[entry_point(ptds)]
fn cudaMemcpy(
    default: DefaultStream,
    dst: *mut c_void,
    src: *const c_void,
    count: usize,
    kind: cudaMemcpyKind,
) -> CudaResult {
    context::ensure_current()?;
    copy(default, dst, src, count, kind)
}

/// Copies bytes in stream order.
#[entry_point(ptsz)]
fn cudaMemcpyAsync(
    default: DefaultStream,
    dst: *mut c_void,
    src: *const c_void,
    count: usize,
    kind: cudaMemcpyKind,
    stream: cudaStream_t,
) -> CudaResult {
    context::ensure_current()?;
    copy_in_order(dst, src, count, kind, resolve(default, stream))
}

/// Copies `height` rows of `width` bytes.
#[entry_point(ptds)]
fn cudaMemcpy2D(
    default: DefaultStream,
    dst: *mut c_void,
    dpitch: usize,
    src: *const c_void,
    spitch: usize,
    width: usize,
    height: usize,
    kind: cudaMemcpyKind,
) -> CudaResult {
    context::ensure_current()?;
    let Some(description) = rows(dst, dpitch, src, spitch, width, height, kind)? else { return Ok(()) };
    copy_2d(default, &description)
}

/// Copies rows in stream order.
#[entry_point(ptsz)]
fn cudaMemcpy2DAsync(
    default: DefaultStream,
    dst: *mut c_void,
    dpitch: usize,
    src: *const c_void,
    spitch: usize,
    width: usize,
    height: usize,
    kind: cudaMemcpyKind,
    stream: cudaStream_t,
) -> CudaResult {
    context::ensure_current()?;
    let Some(description) = rows(dst, dpitch, src, spitch, width, height, kind)? else { return Ok(()) };
    call!(cuMemcpy2DAsync_v2(&description, resolve(default, stream)))
}

/// Copies bytes from one device's memory to another's.
#[entry_point]
fn cudaMemcpyPeer(
    dst: *mut c_void,
    dstDevice: i32,
    src: *const c_void,
    srcDevice: i32,
    count: usize,
) -> CudaResult {
    context::ensure_current()?;
    if count == 0 {
        return Ok(());
    }
    let (to, from) = (context::primary(dstDevice)?, context::primary(srcDevice)?);
    call!(cuMemcpyPeer(device_pointer(dst), to, device_pointer(src), from, count))
}

/// Copies bytes from one device's memory to another's in stream order.
#[entry_point]
fn cudaMemcpyPeerAsync(
    dst: *mut c_void,
    dstDevice: i32,
    src: *const c_void,
    srcDevice: i32,
    count: usize,
    stream: cudaStream_t,
) -> CudaResult {
    context::ensure_current()?;
    if count == 0 {
        return Ok(());
    }
    let (to, from) = (context::primary(dstDevice)?, context::primary(srcDevice)?);
    call!(cuMemcpyPeerAsync(device_pointer(dst), to, device_pointer(src), from, count, stream))
}

/// Copies in the current context. Where the direction names a host end, the driver takes the pointer as such; host to
/// host, it finds out what the pointers are.
pub(super) fn copy(
    default: DefaultStream,
    dst: *mut c_void,
    src: *const c_void,
    count: usize,
    kind: cudaMemcpyKind,
) -> CudaResult {
    if count == 0 {
        return Ok(());
    }
    check_kind(kind)?;
    let (to, from) = (device_pointer(dst), device_pointer(src));
    match (kind, default) {
        (cudaMemcpyHostToDevice, DefaultStream::Legacy) => call!(cuMemcpyHtoD_v2(to, src, count)),
        (cudaMemcpyHostToDevice, DefaultStream::PerThread) => call!(cuMemcpyHtoD_v2_ptds(to, src, count)),
        (cudaMemcpyDeviceToHost, DefaultStream::Legacy) => call!(cuMemcpyDtoH_v2(dst, from, count)),
        (cudaMemcpyDeviceToHost, DefaultStream::PerThread) => call!(cuMemcpyDtoH_v2_ptds(dst, from, count)),
        (cudaMemcpyDeviceToDevice, DefaultStream::Legacy) => call!(cuMemcpyDtoD_v2(to, from, count)),
        (cudaMemcpyDeviceToDevice, DefaultStream::PerThread) => call!(cuMemcpyDtoD_v2_ptds(to, from, count)),
        (_, DefaultStream::Legacy) => call!(cuMemcpy(to, from, count)),
        (_, DefaultStream::PerThread) => call!(cuMemcpy_ptds(to, from, count)),
    }
}

/// Copies in the current context in stream order.
pub(super) fn copy_in_order(
    dst: *mut c_void,
    src: *const c_void,
    count: usize,
    kind: cudaMemcpyKind,
    stream: CUstream,
) -> CudaResult {
    if count == 0 {
        return Ok(());
    }
    check_kind(kind)?;
    let (to, from) = (device_pointer(dst), device_pointer(src));
    match kind {
        cudaMemcpyHostToDevice => call!(cuMemcpyHtoDAsync_v2(to, src, count, stream)),
        cudaMemcpyDeviceToHost => call!(cuMemcpyDtoHAsync_v2(dst, from, count, stream)),
        cudaMemcpyDeviceToDevice => call!(cuMemcpyDtoDAsync_v2(to, from, count, stream)),
        _ => call!(cuMemcpyAsync(to, from, count, stream)),
    }
}

/// Copies rows on the default stream.
pub(super) fn copy_2d(default: DefaultStream, description: &CUDA_MEMCPY2D) -> CudaResult {
    match default {
        DefaultStream::Legacy => call!(cuMemcpy2DUnaligned_v2(description)),
        DefaultStream::PerThread => call!(cuMemcpy2DUnaligned_v2_ptds(description)),
    }
}

/// Describes a copy of rows; `None` if there is nothing to copy.
fn rows(
    dst: *mut c_void,
    dst_pitch: usize,
    src: *const c_void,
    src_pitch: usize,
    width: usize,
    height: usize,
    kind: cudaMemcpyKind,
) -> CudaResult<Option<CUDA_MEMCPY2D>> {
    if width == 0 || height == 0 {
        return Ok(None);
    }
    check_kind(kind)?;
    // A single row needs no pitch; the driver has its own opinion.
    if height > 1 && (width > dst_pitch || width > src_pitch) {
        return Err(cudaErrorInvalidPitchValue);
    }
    let (from, to) = (End::source(kind, src, src_pitch, 0), End::destination(kind, dst, dst_pitch, 0));
    Ok(Some(describe_2d(from, to, width, height)))
}
