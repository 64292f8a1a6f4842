//! What the first versions of the API were called with: device pointers and sizes of 32 bits.
#![allow(missing_docs, reason = "fields are the manual's; the structures say what they are for")]

use super::*;
use core::ffi::c_void;

/// An address in the device's address space, as far as 32 bits go.
pub type CUdeviceptr_v1 = u32;

/// Two-dimensional copy.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_MEMCPY2D_v1 {
    pub srcXInBytes: u32,
    pub srcY: u32,
    pub srcMemoryType: CUmemorytype,
    pub srcHost: *const c_void,
    pub srcDevice: CUdeviceptr_v1,
    pub srcArray: CUarray,
    pub srcPitch: u32,
    pub dstXInBytes: u32,
    pub dstY: u32,
    pub dstMemoryType: CUmemorytype,
    pub dstHost: *mut c_void,
    pub dstDevice: CUdeviceptr_v1,
    pub dstArray: CUarray,
    pub dstPitch: u32,
    pub WidthInBytes: u32,
    pub Height: u32,
}

/// Three-dimensional copy.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_MEMCPY3D_v1 {
    pub srcXInBytes: u32,
    pub srcY: u32,
    pub srcZ: u32,
    pub srcLOD: u32,
    pub srcMemoryType: CUmemorytype,
    pub srcHost: *const c_void,
    pub srcDevice: CUdeviceptr_v1,
    pub srcArray: CUarray,
    pub reserved0: *mut c_void,
    pub srcPitch: u32,
    pub srcHeight: u32,
    pub dstXInBytes: u32,
    pub dstY: u32,
    pub dstZ: u32,
    pub dstLOD: u32,
    pub dstMemoryType: CUmemorytype,
    pub dstHost: *mut c_void,
    pub dstDevice: CUdeviceptr_v1,
    pub dstArray: CUarray,
    pub reserved1: *mut c_void,
    pub dstPitch: u32,
    pub dstHeight: u32,
    pub WidthInBytes: u32,
    pub Height: u32,
    pub Depth: u32,
}
