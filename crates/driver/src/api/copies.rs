//! Memory management: copies.

use crate::contexts;
use crate::error::CuResult;
use crate::streams;
use crate::transfers;
use cuda_abi::args::In;
use cuda_abi::driver::*;
use cuda_abi::shim::DefaultStream;
use device::memory::{Side, Transfer};
use entry_macros::entry_point;
use std::ffi::c_void;

/// A copy on the default stream, done when the call returns if the host could tell otherwise.
pub(super) fn copy_now(default: DefaultStream, transfer: Transfer) -> CuResult {
    streams::default_stream(default)?.copy_now(transfer)?;
    Ok(())
}

/// A copy in the order of a stream.
pub(super) fn copy_async(default: DefaultStream, stream: CUstream, transfer: Transfer) -> CuResult {
    streams::find(stream, default)?.copy(transfer)?;
    Ok(())
}

/// Both ends may be anything; the addresses tell.
///
/// # Safety
/// Host memory that the addresses name may be read and written until the copy is done.
pub(super) unsafe fn unified(to: CUdeviceptr, from: CUdeviceptr, len: usize) -> Transfer {
    // SAFETY: the caller's duty.
    unsafe { Transfer::linear(Side::any(to.0), Side::any(from.0), len as u64) }
}

/// # Safety
/// The host memory may be read until the copy is done.
pub(super) unsafe fn to_device(to: CUdeviceptr, from: *const c_void, len: usize) -> Transfer {
    // SAFETY: the caller's duty.
    Transfer::linear(Side::device(to.0), unsafe { Side::any(from as u64) }, len as u64)
}

/// # Safety
/// The host memory may be written until the copy is done.
pub(super) unsafe fn to_host(to: *mut c_void, from: CUdeviceptr, len: usize) -> Transfer {
    // SAFETY: the caller's duty.
    Transfer::linear(unsafe { Side::any(to as u64) }, Side::device(from.0), len as u64)
}

pub(super) fn within_device(to: CUdeviceptr, from: CUdeviceptr, len: usize) -> Transfer {
    Transfer::linear(Side::device(to.0), Side::device(from.0), len as u64)
}

#[entry_point(ptds)]
unsafe fn cuMemcpy(default: DefaultStream, dst: CUdeviceptr, src: CUdeviceptr, ByteCount: usize) -> CuResult {
    // SAFETY: the caller's duty.
    copy_now(default, unsafe { unified(dst, src, ByteCount) })
}

#[entry_point(ptsz)]
unsafe fn cuMemcpyAsync(
    default: DefaultStream,
    dst: CUdeviceptr,
    src: CUdeviceptr,
    ByteCount: usize,
    hStream: CUstream,
) -> CuResult {
    // SAFETY: the caller's duty.
    copy_async(default, hStream, unsafe { unified(dst, src, ByteCount) })
}

#[entry_point(ptds)]
unsafe fn cuMemcpyHtoD_v2(
    default: DefaultStream,
    dstDevice: CUdeviceptr,
    srcHost: *const c_void,
    ByteCount: usize,
) -> CuResult {
    // SAFETY: the caller's duty.
    copy_now(default, unsafe { to_device(dstDevice, srcHost, ByteCount) })
}

#[entry_point(ptsz)]
unsafe fn cuMemcpyHtoDAsync_v2(
    default: DefaultStream,
    dstDevice: CUdeviceptr,
    srcHost: *const c_void,
    ByteCount: usize,
    hStream: CUstream,
) -> CuResult {
    // SAFETY: the caller's duty.
    copy_async(default, hStream, unsafe { to_device(dstDevice, srcHost, ByteCount) })
}

#[entry_point(ptds)]
unsafe fn cuMemcpyDtoH_v2(
    default: DefaultStream,
    dstHost: *mut c_void,
    srcDevice: CUdeviceptr,
    ByteCount: usize,
) -> CuResult {
    // SAFETY: the caller's duty.
    copy_now(default, unsafe { to_host(dstHost, srcDevice, ByteCount) })
}

#[entry_point(ptsz)]
unsafe fn cuMemcpyDtoHAsync_v2(
    default: DefaultStream,
    dstHost: *mut c_void,
    srcDevice: CUdeviceptr,
    ByteCount: usize,
    hStream: CUstream,
) -> CuResult {
    // SAFETY: the caller's duty.
    copy_async(default, hStream, unsafe { to_host(dstHost, srcDevice, ByteCount) })
}

#[entry_point(ptds)]
fn cuMemcpyDtoD_v2(
    default: DefaultStream,
    dstDevice: CUdeviceptr,
    srcDevice: CUdeviceptr,
    ByteCount: usize,
) -> CuResult {
    copy_now(default, within_device(dstDevice, srcDevice, ByteCount))
}

#[entry_point(ptsz)]
fn cuMemcpyDtoDAsync_v2(
    default: DefaultStream,
    dstDevice: CUdeviceptr,
    srcDevice: CUdeviceptr,
    ByteCount: usize,
    hStream: CUstream,
) -> CuResult {
    copy_async(default, hStream, within_device(dstDevice, srcDevice, ByteCount))
}

/// Contexts share one address space: a copy between them is a copy.
#[entry_point(ptds)]
fn cuMemcpyPeer(
    default: DefaultStream,
    dstDevice: CUdeviceptr,
    dstContext: CUcontext,
    srcDevice: CUdeviceptr,
    srcContext: CUcontext,
    ByteCount: usize,
) -> CuResult {
    contexts::named_or_current(dstContext)?.check()?;
    contexts::named_or_current(srcContext)?.check()?;
    copy_now(default, within_device(dstDevice, srcDevice, ByteCount))
}

#[entry_point(ptsz)]
fn cuMemcpyPeerAsync(
    default: DefaultStream,
    dstDevice: CUdeviceptr,
    dstContext: CUcontext,
    srcDevice: CUdeviceptr,
    srcContext: CUcontext,
    ByteCount: usize,
    hStream: CUstream,
) -> CuResult {
    contexts::named_or_current(dstContext)?.check()?;
    contexts::named_or_current(srcContext)?.check()?;
    // No node of a graph copies between contexts.
    streams::find(hStream, default)?.check_not_capturing()?;
    copy_async(default, hStream, within_device(dstDevice, srcDevice, ByteCount))
}

#[entry_point(ptds)]
unsafe fn cuMemcpy2D_v2(default: DefaultStream, pCopy: In<CUDA_MEMCPY2D>) -> CuResult {
    // SAFETY: the caller's duty.
    copy_now(default, unsafe { transfers::from_2d(&pCopy.get()?) }?)
}

/// Rows may have any alignment here anyway.
#[entry_point(ptds)]
unsafe fn cuMemcpy2DUnaligned_v2(default: DefaultStream, pCopy: In<CUDA_MEMCPY2D>) -> CuResult {
    // SAFETY: the caller's duty.
    copy_now(default, unsafe { transfers::from_2d(&pCopy.get()?) }?)
}

#[entry_point(ptsz)]
unsafe fn cuMemcpy2DAsync_v2(
    default: DefaultStream,
    pCopy: In<CUDA_MEMCPY2D>,
    hStream: CUstream,
) -> CuResult {
    // SAFETY: the caller's duty.
    copy_async(default, hStream, unsafe { transfers::from_2d(&pCopy.get()?) }?)
}

#[entry_point(ptds)]
unsafe fn cuMemcpy3D_v2(default: DefaultStream, pCopy: In<CUDA_MEMCPY3D>) -> CuResult {
    // SAFETY: the caller's duty.
    copy_now(default, unsafe { transfers::from_3d(&pCopy.get()?) }?)
}

#[entry_point(ptsz)]
unsafe fn cuMemcpy3DAsync_v2(
    default: DefaultStream,
    pCopy: In<CUDA_MEMCPY3D>,
    hStream: CUstream,
) -> CuResult {
    // SAFETY: the caller's duty.
    copy_async(default, hStream, unsafe { transfers::from_3d(&pCopy.get()?) }?)
}

#[entry_point(ptds)]
unsafe fn cuMemcpy3DPeer(default: DefaultStream, pCopy: In<CUDA_MEMCPY3D_PEER>) -> CuResult {
    // SAFETY: the caller's duty.
    copy_now(default, unsafe { between_contexts(&pCopy.get()?) }?)
}

#[entry_point(ptsz)]
unsafe fn cuMemcpy3DPeerAsync(
    default: DefaultStream,
    pCopy: In<CUDA_MEMCPY3D_PEER>,
    hStream: CUstream,
) -> CuResult {
    // SAFETY: the caller's duty.
    copy_async(default, hStream, unsafe { between_contexts(&pCopy.get()?) }?)
}

/// # Safety
/// As for [`transfers::from_3d`].
unsafe fn between_contexts(copy: &CUDA_MEMCPY3D_PEER) -> CuResult<Transfer> {
    let ends = [(copy.srcMemoryType, copy.srcContext), (copy.dstMemoryType, copy.dstContext)];
    for (kind, context) in ends {
        // No context at all is the memory's own.
        if kind == CU_MEMORYTYPE_DEVICE && !context.is_null() {
            contexts::find(context)?.check()?;
        }
    }
    let copy = CUDA_MEMCPY3D {
        srcXInBytes: copy.srcXInBytes,
        srcY: copy.srcY,
        srcZ: copy.srcZ,
        srcLOD: copy.srcLOD,
        srcMemoryType: copy.srcMemoryType,
        srcHost: copy.srcHost,
        srcDevice: copy.srcDevice,
        srcArray: copy.srcArray,
        reserved0: std::ptr::null_mut(),
        srcPitch: copy.srcPitch,
        srcHeight: copy.srcHeight,
        dstXInBytes: copy.dstXInBytes,
        dstY: copy.dstY,
        dstZ: copy.dstZ,
        dstLOD: copy.dstLOD,
        dstMemoryType: copy.dstMemoryType,
        dstHost: copy.dstHost,
        dstDevice: copy.dstDevice,
        dstArray: copy.dstArray,
        reserved1: std::ptr::null_mut(),
        dstPitch: copy.dstPitch,
        dstHeight: copy.dstHeight,
        WidthInBytes: copy.WidthInBytes,
        Height: copy.Height,
        Depth: copy.Depth,
    };
    // SAFETY: the caller's duty.
    unsafe { transfers::from_3d(&copy) }
}
