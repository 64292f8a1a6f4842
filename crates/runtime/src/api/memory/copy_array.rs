//! Copies of rows to and from arrays. Offsets into an array's rows are in bytes.

use super::copy::copy_2d;
use crate::api::prelude::*;
use crate::context;
use crate::copy::{End, check_kind_with_device, describe_2d};
use crate::streams::resolve;

/// Copies rows into an array.
#[entry_point(ptds)]
fn cudaMemcpy2DToArray(
    default: DefaultStream,
    dst: cudaArray_t,
    wOffset: usize,
    hOffset: usize,
    src: *const c_void,
    spitch: usize,
    width: usize,
    height: usize,
    kind: cudaMemcpyKind,
) -> CudaResult {
    let from = memory_source(kind, src, spitch, (width, height))?;
    let to = in_array(dst.0)?.at(wOffset, hOffset, 0);
    copy_now(default, from, to, width, height)
}

/// Copies rows into an array in stream order.
#[entry_point(ptsz)]
fn cudaMemcpy2DToArrayAsync(
    default: DefaultStream,
    dst: cudaArray_t,
    wOffset: usize,
    hOffset: usize,
    src: *const c_void,
    spitch: usize,
    width: usize,
    height: usize,
    kind: cudaMemcpyKind,
    stream: cudaStream_t,
) -> CudaResult {
    let from = memory_source(kind, src, spitch, (width, height))?;
    let to = in_array(dst.0)?.at(wOffset, hOffset, 0);
    copy_in_order(from, to, width, height, resolve(default, stream))
}

/// Copies rows out of an array.
#[entry_point(ptds)]
fn cudaMemcpy2DFromArray(
    default: DefaultStream,
    dst: *mut c_void,
    dpitch: usize,
    src: cudaArray_const_t,
    wOffset: usize,
    hOffset: usize,
    width: usize,
    height: usize,
    kind: cudaMemcpyKind,
) -> CudaResult {
    let from = in_array(src.0)?.at(wOffset, hOffset, 0);
    let to = memory_destination(kind, dst, dpitch, (width, height))?;
    copy_now(default, from, to, width, height)
}

/// Copies rows out of an array in stream order.
#[entry_point(ptsz)]
fn cudaMemcpy2DFromArrayAsync(
    default: DefaultStream,
    dst: *mut c_void,
    dpitch: usize,
    src: cudaArray_const_t,
    wOffset: usize,
    hOffset: usize,
    width: usize,
    height: usize,
    kind: cudaMemcpyKind,
    stream: cudaStream_t,
) -> CudaResult {
    let from = in_array(src.0)?.at(wOffset, hOffset, 0);
    let to = memory_destination(kind, dst, dpitch, (width, height))?;
    copy_in_order(from, to, width, height, resolve(default, stream))
}

/// Copies rows from one array to another.
#[entry_point(ptds)]
fn cudaMemcpy2DArrayToArray(
    default: DefaultStream,
    dst: cudaArray_t,
    wOffsetDst: usize,
    hOffsetDst: usize,
    src: cudaArray_const_t,
    wOffsetSrc: usize,
    hOffsetSrc: usize,
    width: usize,
    height: usize,
    kind: cudaMemcpyKind,
) -> CudaResult {
    check_kind_with_device(kind, cudaMemcpyDefault)?;
    let from = in_array(src.0)?.at(wOffsetSrc, hOffsetSrc, 0);
    let to = in_array(dst.0)?.at(wOffsetDst, hOffsetDst, 0);
    copy_now(default, from, to, width, height)
}

/// The beginning of an array.
fn in_array(array: usize) -> CudaResult<End> {
    if array == 0 { Err(cudaErrorInvalidResourceHandle) } else { Ok(End::array(CUarray(array))) }
}

fn copy_now(default: DefaultStream, from: End, to: End, width: usize, height: usize) -> CudaResult {
    context::ensure_current()?;
    if width == 0 || height == 0 {
        return Ok(());
    }
    copy_2d(default, &describe_2d(from, to, width, height))
}

fn copy_in_order(from: End, to: End, width: usize, height: usize, stream: CUstream) -> CudaResult {
    context::ensure_current()?;
    if width == 0 || height == 0 {
        return Ok(());
    }
    call!(cuMemcpy2DAsync_v2(&describe_2d(from, to, width, height), stream))
}

fn memory_source(
    kind: cudaMemcpyKind,
    pointer: *const c_void,
    pitch: usize,
    (width, height): (usize, usize),
) -> CudaResult<End> {
    check_kind_with_device(kind, cudaMemcpyHostToDevice)?;
    check_pitch(pitch, width, height)?;
    Ok(End::source(kind, pointer, pitch, 0))
}

fn memory_destination(
    kind: cudaMemcpyKind,
    pointer: *mut c_void,
    pitch: usize,
    (width, height): (usize, usize),
) -> CudaResult<End> {
    check_kind_with_device(kind, cudaMemcpyDeviceToHost)?;
    check_pitch(pitch, width, height)?;
    Ok(End::destination(kind, pointer, pitch, 0))
}

/// Rows must not lie in each other. Of a single one's pitch the driver has its own opinion.
fn check_pitch(pitch: usize, width: usize, height: usize) -> CudaResult {
    if height > 1 && width > pitch { Err(cudaErrorInvalidPitchValue) } else { Ok(()) }
}
