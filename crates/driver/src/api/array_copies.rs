//! Memory management: copies of a row into and out of an array.

use super::copies::{copy_async, copy_now};
use crate::arrays;
use crate::error::CuResult;
use cuda_abi::driver::*;
use cuda_abi::shim::DefaultStream;
use device::memory::{Extent, Region, Side, Transfer};
use entry_macros::entry_point;
use std::ffi::c_void;

fn extent(len: usize) -> Extent {
    Extent { width: len as u64, height: 1, depth: 1 }
}

/// Bytes of an array's first row.
fn in_array(array: CUarray, offset: usize, len: usize) -> CuResult<Region> {
    Ok(arrays::level(array)?.region(offset as u64, 0, 0, extent(len))?)
}

fn in_memory(start: Side, len: usize) -> Region {
    Region { start, pitch: len as u64, slice_pitch: len as u64 }
}

fn between(to: Region, from: Region, len: usize) -> Transfer {
    Transfer { to, from, extent: extent(len) }
}

fn array_to_array(
    to: CUarray,
    to_offset: usize,
    from: CUarray,
    from_offset: usize,
    len: usize,
) -> CuResult<Transfer> {
    Ok(between(in_array(to, to_offset, len)?, in_array(from, from_offset, len)?, len))
}

fn array_to_device(to: CUdeviceptr, from: CUarray, offset: usize, len: usize) -> CuResult<Transfer> {
    Ok(between(in_memory(Side::device(to.0), len), in_array(from, offset, len)?, len))
}

fn device_to_array(to: CUarray, offset: usize, from: CUdeviceptr, len: usize) -> CuResult<Transfer> {
    Ok(between(in_array(to, offset, len)?, in_memory(Side::device(from.0), len), len))
}

/// # Safety
/// The host memory may be written until the copy is done.
unsafe fn array_to_host(to: *mut c_void, from: CUarray, offset: usize, len: usize) -> CuResult<Transfer> {
    // SAFETY: the caller's duty.
    let to = unsafe { Side::any(to as u64) };
    Ok(between(in_memory(to, len), in_array(from, offset, len)?, len))
}

/// # Safety
/// The host memory may be read until the copy is done.
unsafe fn host_to_array(to: CUarray, offset: usize, from: *const c_void, len: usize) -> CuResult<Transfer> {
    // SAFETY: the caller's duty.
    let from = unsafe { Side::any(from as u64) };
    Ok(between(in_array(to, offset, len)?, in_memory(from, len), len))
}

#[entry_point(ptds)]
fn cuMemcpyAtoA_v2(
    default: DefaultStream,
    dstArray: CUarray,
    dstOffset: usize,
    srcArray: CUarray,
    srcOffset: usize,
    ByteCount: usize,
) -> CuResult {
    copy_now(default, array_to_array(dstArray, dstOffset, srcArray, srcOffset, ByteCount)?)
}

#[entry_point(ptds)]
fn cuMemcpyAtoD_v2(
    default: DefaultStream,
    dstDevice: CUdeviceptr,
    srcArray: CUarray,
    srcOffset: usize,
    ByteCount: usize,
) -> CuResult {
    copy_now(default, array_to_device(dstDevice, srcArray, srcOffset, ByteCount)?)
}

#[entry_point(ptds)]
fn cuMemcpyDtoA_v2(
    default: DefaultStream,
    dstArray: CUarray,
    dstOffset: usize,
    srcDevice: CUdeviceptr,
    ByteCount: usize,
) -> CuResult {
    copy_now(default, device_to_array(dstArray, dstOffset, srcDevice, ByteCount)?)
}

#[entry_point(ptds)]
unsafe fn cuMemcpyAtoH_v2(
    default: DefaultStream,
    dstHost: *mut c_void,
    srcArray: CUarray,
    srcOffset: usize,
    ByteCount: usize,
) -> CuResult {
    // SAFETY: the caller's duty.
    copy_now(default, unsafe { array_to_host(dstHost, srcArray, srcOffset, ByteCount) }?)
}

#[entry_point(ptds)]
unsafe fn cuMemcpyHtoA_v2(
    default: DefaultStream,
    dstArray: CUarray,
    dstOffset: usize,
    srcHost: *const c_void,
    ByteCount: usize,
) -> CuResult {
    // SAFETY: the caller's duty.
    copy_now(default, unsafe { host_to_array(dstArray, dstOffset, srcHost, ByteCount) }?)
}

#[entry_point(ptsz)]
unsafe fn cuMemcpyAtoHAsync_v2(
    default: DefaultStream,
    dstHost: *mut c_void,
    srcArray: CUarray,
    srcOffset: usize,
    ByteCount: usize,
    hStream: CUstream,
) -> CuResult {
    // SAFETY: the caller's duty.
    copy_async(default, hStream, unsafe { array_to_host(dstHost, srcArray, srcOffset, ByteCount) }?)
}

#[entry_point(ptsz)]
unsafe fn cuMemcpyHtoAAsync_v2(
    default: DefaultStream,
    dstArray: CUarray,
    dstOffset: usize,
    srcHost: *const c_void,
    ByteCount: usize,
    hStream: CUstream,
) -> CuResult {
    // SAFETY: the caller's duty.
    copy_async(default, hStream, unsafe { host_to_array(dstArray, dstOffset, srcHost, ByteCount) }?)
}

// As they were before version 3.2: device pointers and sizes have 32 bits.

const LEGACY: DefaultStream = DefaultStream::Legacy;

fn wide(address: CUdeviceptr_v1) -> CUdeviceptr {
    CUdeviceptr(address.into())
}

#[entry_point]
fn cuMemcpyAtoA(
    dstArray: CUarray,
    dstOffset: u32,
    srcArray: CUarray,
    srcOffset: u32,
    ByteCount: u32,
) -> CuResult {
    copy_now(
        LEGACY,
        array_to_array(dstArray, dstOffset as usize, srcArray, srcOffset as usize, ByteCount as usize)?,
    )
}

#[entry_point]
fn cuMemcpyAtoD(dstDevice: CUdeviceptr_v1, srcArray: CUarray, srcOffset: u32, ByteCount: u32) -> CuResult {
    copy_now(LEGACY, array_to_device(wide(dstDevice), srcArray, srcOffset as usize, ByteCount as usize)?)
}

#[entry_point]
fn cuMemcpyDtoA(dstArray: CUarray, dstOffset: u32, srcDevice: CUdeviceptr_v1, ByteCount: u32) -> CuResult {
    copy_now(LEGACY, device_to_array(dstArray, dstOffset as usize, wide(srcDevice), ByteCount as usize)?)
}

#[entry_point]
unsafe fn cuMemcpyAtoH(dstHost: *mut c_void, srcArray: CUarray, srcOffset: u32, ByteCount: u32) -> CuResult {
    // SAFETY: the caller's duty.
    copy_now(LEGACY, unsafe { array_to_host(dstHost, srcArray, srcOffset as usize, ByteCount as usize) }?)
}

#[entry_point]
unsafe fn cuMemcpyHtoA(
    dstArray: CUarray,
    dstOffset: u32,
    srcHost: *const c_void,
    ByteCount: u32,
) -> CuResult {
    // SAFETY: the caller's duty.
    copy_now(LEGACY, unsafe { host_to_array(dstArray, dstOffset as usize, srcHost, ByteCount as usize) }?)
}

#[entry_point]
unsafe fn cuMemcpyAtoHAsync(
    dstHost: *mut c_void,
    srcArray: CUarray,
    srcOffset: u32,
    ByteCount: u32,
    hStream: CUstream,
) -> CuResult {
    // SAFETY: the caller's duty.
    copy_async(LEGACY, hStream, unsafe {
        array_to_host(dstHost, srcArray, srcOffset as usize, ByteCount as usize)
    }?)
}

#[entry_point]
unsafe fn cuMemcpyHtoAAsync(
    dstArray: CUarray,
    dstOffset: u32,
    srcHost: *const c_void,
    ByteCount: u32,
    hStream: CUstream,
) -> CuResult {
    // SAFETY: the caller's duty.
    copy_async(LEGACY, hStream, unsafe {
        host_to_array(dstArray, dstOffset as usize, srcHost, ByteCount as usize)
    }?)
}
