//! Memory management as it was before version 3.2: device pointers and sizes have 32 bits.
//!
//! What is allocated by these functions lies below 4 GiB, so that its addresses fit; all other memory can be used through
//! them as far as its addresses do.

use super::copies::{copy_async, copy_now, to_device, to_host, within_device};
use super::memory::find;
use super::sets::{fill_now, rows};
use crate::contexts;
use crate::error::CuResult;
use crate::platform::platform;
use crate::transfers;
use cuda_abi::args::{In, Out};
use cuda_abi::driver::*;
use cuda_abi::shim::DefaultStream;
use device::memory::{Fill, Kind};
use entry_macros::entry_point;
use std::ffi::c_void;

const LEGACY: DefaultStream = DefaultStream::Legacy;

/// An address that must fit.
fn narrow(address: u64) -> CuResult<CUdeviceptr_v1> {
    CUdeviceptr_v1::try_from(address).map_err(|_| CUDA_ERROR_NOT_SUPPORTED.into())
}

fn wide(address: CUdeviceptr_v1) -> CUdeviceptr {
    CUdeviceptr(address.into())
}

#[entry_point]
fn cuMemAlloc(dptr: Out<CUdeviceptr_v1>, bytesize: u32) -> CuResult {
    dptr.check()?.set(narrow(contexts::current()?.allocate_low(bytesize.into(), Kind::Device)?)?)?;
    Ok(())
}

#[entry_point]
fn cuMemAllocPitch(
    dptr: Out<CUdeviceptr_v1>,
    pPitch: Out<u32>,
    WidthInBytes: u32,
    Height: u32,
    ElementSizeBytes: u32,
) -> CuResult {
    dptr.check()?;
    pPitch.check()?;
    let context = contexts::current()?;
    let (size, pitch) = device::Context::pitched(WidthInBytes.into(), Height.into(), ElementSizeBytes)?;
    let pitch = u32::try_from(pitch).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    dptr.set(narrow(context.allocate_low(size, Kind::Device)?)?)?;
    pPitch.set(pitch)?;
    Ok(())
}

#[entry_point]
fn cuMemFree(dptr: CUdeviceptr_v1) -> CuResult {
    platform()?.free(dptr.into())?;
    Ok(())
}

/// More than 32 bits can say is said as the most they can.
#[entry_point]
fn cuMemGetInfo(free: Out<u32>, total: Out<u32>) -> CuResult {
    let (unused, all) = contexts::current()?.memory_info()?;
    free.set_if_wanted(u32::try_from(unused).unwrap_or(u32::MAX));
    total.set_if_wanted(u32::try_from(all).unwrap_or(u32::MAX));
    Ok(())
}

#[entry_point]
fn cuMemGetAddressRange(pbase: Out<CUdeviceptr_v1>, psize: Out<u32>, dptr: CUdeviceptr_v1) -> CuResult {
    contexts::usable()?;
    let allocation = find(dptr.into())?.ok_or(CUDA_ERROR_NOT_FOUND)?;
    let (base, size) = (narrow(allocation.base)?, narrow(allocation.size)?);
    pbase.set_if_wanted(base);
    psize.set_if_wanted(size);
    Ok(())
}

/// Host memory that has an address on the device too.
#[entry_point]
fn cuMemAllocHost(pp: Out<*mut c_void>, bytesize: u32) -> CuResult {
    pp.check()?;
    let context = contexts::current()?;
    let address = match bytesize {
        0 => context.check().map(|()| 0)?,
        _ => context.allocate_low(bytesize.into(), Kind::Pinned { flags: 0 })?,
    };
    pp.set(address as *mut c_void)?;
    Ok(())
}

#[entry_point]
fn cuMemHostGetDevicePointer(pdptr: Out<CUdeviceptr_v1>, p: *mut c_void, Flags: u32) -> CuResult {
    pdptr.check()?;
    contexts::usable()?;
    let known = find(p as u64)?.is_some_and(|allocation| allocation.kind.is_host());
    if Flags != 0 || !known {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    pdptr.set(narrow(p as u64)?)?;
    Ok(())
}

#[entry_point]
unsafe fn cuMemcpyHtoD(dstDevice: CUdeviceptr_v1, srcHost: *const c_void, ByteCount: u32) -> CuResult {
    // SAFETY: the caller's duty.
    copy_now(LEGACY, unsafe { to_device(wide(dstDevice), srcHost, ByteCount as usize) })
}

#[entry_point]
unsafe fn cuMemcpyDtoH(dstHost: *mut c_void, srcDevice: CUdeviceptr_v1, ByteCount: u32) -> CuResult {
    // SAFETY: the caller's duty.
    copy_now(LEGACY, unsafe { to_host(dstHost, wide(srcDevice), ByteCount as usize) })
}

#[entry_point]
fn cuMemcpyDtoD(dstDevice: CUdeviceptr_v1, srcDevice: CUdeviceptr_v1, ByteCount: u32) -> CuResult {
    copy_now(LEGACY, within_device(wide(dstDevice), wide(srcDevice), ByteCount as usize))
}

#[entry_point]
unsafe fn cuMemcpyHtoDAsync(
    dstDevice: CUdeviceptr_v1,
    srcHost: *const c_void,
    ByteCount: u32,
    hStream: CUstream,
) -> CuResult {
    // SAFETY: the caller's duty.
    copy_async(LEGACY, hStream, unsafe { to_device(wide(dstDevice), srcHost, ByteCount as usize) })
}

#[entry_point]
unsafe fn cuMemcpyDtoHAsync(
    dstHost: *mut c_void,
    srcDevice: CUdeviceptr_v1,
    ByteCount: u32,
    hStream: CUstream,
) -> CuResult {
    // SAFETY: the caller's duty.
    copy_async(LEGACY, hStream, unsafe { to_host(dstHost, wide(srcDevice), ByteCount as usize) })
}

#[entry_point]
fn cuMemcpyDtoDAsync(
    dstDevice: CUdeviceptr_v1,
    srcDevice: CUdeviceptr_v1,
    ByteCount: u32,
    hStream: CUstream,
) -> CuResult {
    copy_async(LEGACY, hStream, within_device(wide(dstDevice), wide(srcDevice), ByteCount as usize))
}

#[entry_point]
unsafe fn cuMemcpy2D(pCopy: In<CUDA_MEMCPY2D_v1>) -> CuResult {
    // SAFETY: the caller's duty.
    copy_now(LEGACY, unsafe { transfers::from_2d(&wide_2d(&pCopy.get()?)) }?)
}

/// Rows may have any alignment here anyway.
#[entry_point]
unsafe fn cuMemcpy2DUnaligned(pCopy: In<CUDA_MEMCPY2D_v1>) -> CuResult {
    // SAFETY: the caller's duty.
    copy_now(LEGACY, unsafe { transfers::from_2d(&wide_2d(&pCopy.get()?)) }?)
}

#[entry_point]
unsafe fn cuMemcpy2DAsync(pCopy: In<CUDA_MEMCPY2D_v1>, hStream: CUstream) -> CuResult {
    // SAFETY: the caller's duty.
    copy_async(LEGACY, hStream, unsafe { transfers::from_2d(&wide_2d(&pCopy.get()?)) }?)
}

#[entry_point]
unsafe fn cuMemcpy3D(pCopy: In<CUDA_MEMCPY3D_v1>) -> CuResult {
    // SAFETY: the caller's duty.
    copy_now(LEGACY, unsafe { transfers::from_3d(&wide_3d(&pCopy.get()?)) }?)
}

#[entry_point]
unsafe fn cuMemcpy3DAsync(pCopy: In<CUDA_MEMCPY3D_v1>, hStream: CUstream) -> CuResult {
    // SAFETY: the caller's duty.
    copy_async(LEGACY, hStream, unsafe { transfers::from_3d(&wide_3d(&pCopy.get()?)) }?)
}

fn wide_2d(copy: &CUDA_MEMCPY2D_v1) -> CUDA_MEMCPY2D {
    CUDA_MEMCPY2D {
        srcXInBytes: copy.srcXInBytes as usize,
        srcY: copy.srcY as usize,
        srcMemoryType: copy.srcMemoryType,
        srcHost: copy.srcHost,
        srcDevice: wide(copy.srcDevice),
        srcArray: copy.srcArray,
        srcPitch: copy.srcPitch as usize,
        dstXInBytes: copy.dstXInBytes as usize,
        dstY: copy.dstY as usize,
        dstMemoryType: copy.dstMemoryType,
        dstHost: copy.dstHost,
        dstDevice: wide(copy.dstDevice),
        dstArray: copy.dstArray,
        dstPitch: copy.dstPitch as usize,
        WidthInBytes: copy.WidthInBytes as usize,
        Height: copy.Height as usize,
    }
}

fn wide_3d(copy: &CUDA_MEMCPY3D_v1) -> CUDA_MEMCPY3D {
    CUDA_MEMCPY3D {
        srcXInBytes: copy.srcXInBytes as usize,
        srcY: copy.srcY as usize,
        srcZ: copy.srcZ as usize,
        srcLOD: copy.srcLOD as usize,
        srcMemoryType: copy.srcMemoryType,
        srcHost: copy.srcHost,
        srcDevice: wide(copy.srcDevice),
        srcArray: copy.srcArray,
        reserved0: copy.reserved0,
        srcPitch: copy.srcPitch as usize,
        srcHeight: copy.srcHeight as usize,
        dstXInBytes: copy.dstXInBytes as usize,
        dstY: copy.dstY as usize,
        dstZ: copy.dstZ as usize,
        dstLOD: copy.dstLOD as usize,
        dstMemoryType: copy.dstMemoryType,
        dstHost: copy.dstHost,
        dstDevice: wide(copy.dstDevice),
        dstArray: copy.dstArray,
        reserved1: copy.reserved1,
        dstPitch: copy.dstPitch as usize,
        dstHeight: copy.dstHeight as usize,
        WidthInBytes: copy.WidthInBytes as usize,
        Height: copy.Height as usize,
        Depth: copy.Depth as usize,
    }
}

#[entry_point]
fn cuMemsetD8(dstDevice: CUdeviceptr_v1, uc: u8, N: u32) -> CuResult {
    fill_now(LEGACY, Fill::linear(dstDevice.into(), uc.into(), 1, N.into()))
}

#[entry_point]
fn cuMemsetD16(dstDevice: CUdeviceptr_v1, us: u16, N: u32) -> CuResult {
    fill_now(LEGACY, Fill::linear(dstDevice.into(), us.into(), 2, N.into()))
}

#[entry_point]
fn cuMemsetD32(dstDevice: CUdeviceptr_v1, ui: u32, N: u32) -> CuResult {
    fill_now(LEGACY, Fill::linear(dstDevice.into(), ui, 4, N.into()))
}

#[entry_point]
fn cuMemsetD2D8(dstDevice: CUdeviceptr_v1, dstPitch: u32, uc: u8, Width: u32, Height: u32) -> CuResult {
    fill_now(LEGACY, rows(wide(dstDevice), dstPitch as usize, uc.into(), 1, Width as usize, Height as usize))
}

#[entry_point]
fn cuMemsetD2D16(dstDevice: CUdeviceptr_v1, dstPitch: u32, us: u16, Width: u32, Height: u32) -> CuResult {
    fill_now(LEGACY, rows(wide(dstDevice), dstPitch as usize, us.into(), 2, Width as usize, Height as usize))
}

#[entry_point]
fn cuMemsetD2D32(dstDevice: CUdeviceptr_v1, dstPitch: u32, ui: u32, Width: u32, Height: u32) -> CuResult {
    fill_now(LEGACY, rows(wide(dstDevice), dstPitch as usize, ui, 4, Width as usize, Height as usize))
}
