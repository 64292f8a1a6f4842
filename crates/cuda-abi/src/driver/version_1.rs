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

/// Shape and format of a one- or two-dimensional array.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_ARRAY_DESCRIPTOR_v1 {
    pub Width: u32,
    pub Height: u32,
    pub Format: CUarray_format,
    pub NumChannels: u32,
}

/// Shape and format of an array of up to three dimensions.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_ARRAY3D_DESCRIPTOR_v1 {
    pub Width: u32,
    pub Height: u32,
    pub Depth: u32,
    pub Format: CUarray_format,
    pub NumChannels: u32,
    pub Flags: u32,
}

impl From<CUDA_ARRAY_DESCRIPTOR_v1> for CUDA_ARRAY_DESCRIPTOR {
    fn from(old: CUDA_ARRAY_DESCRIPTOR_v1) -> Self {
        let CUDA_ARRAY_DESCRIPTOR_v1 { Width, Height, Format, NumChannels } = old;
        CUDA_ARRAY_DESCRIPTOR { Width: Width as usize, Height: Height as usize, Format, NumChannels }
    }
}

/// No array is larger than 32 bits say.
impl From<CUDA_ARRAY_DESCRIPTOR> for CUDA_ARRAY_DESCRIPTOR_v1 {
    fn from(new: CUDA_ARRAY_DESCRIPTOR) -> Self {
        let CUDA_ARRAY_DESCRIPTOR { Width, Height, Format, NumChannels } = new;
        CUDA_ARRAY_DESCRIPTOR_v1 { Width: Width as u32, Height: Height as u32, Format, NumChannels }
    }
}

impl From<CUDA_ARRAY3D_DESCRIPTOR_v1> for CUDA_ARRAY3D_DESCRIPTOR {
    fn from(old: CUDA_ARRAY3D_DESCRIPTOR_v1) -> Self {
        CUDA_ARRAY3D_DESCRIPTOR {
            Width: old.Width as usize,
            Height: old.Height as usize,
            Depth: old.Depth as usize,
            Format: old.Format,
            NumChannels: old.NumChannels,
            Flags: old.Flags,
        }
    }
}

/// No array is larger than 32 bits say.
impl From<CUDA_ARRAY3D_DESCRIPTOR> for CUDA_ARRAY3D_DESCRIPTOR_v1 {
    fn from(new: CUDA_ARRAY3D_DESCRIPTOR) -> Self {
        CUDA_ARRAY3D_DESCRIPTOR_v1 {
            Width: new.Width as u32,
            Height: new.Height as u32,
            Depth: new.Depth as u32,
            Format: new.Format,
            NumChannels: new.NumChannels,
            Flags: new.Flags,
        }
    }
}
