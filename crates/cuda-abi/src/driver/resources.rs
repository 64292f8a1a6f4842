//! What texture and surface objects are made of.
#![allow(missing_docs, reason = "fields are the manual's; the structures say what they are for")]

use super::*;
use core::fmt;

/// What an object reads: `res` is told by `resType`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUDA_RESOURCE_DESC {
    pub resType: CUresourcetype,
    pub res: CUDA_RESOURCE,
    pub flags: u32,
}

/// The resource of a [`CUDA_RESOURCE_DESC`].
#[repr(C)]
#[derive(Clone, Copy)]
pub union CUDA_RESOURCE {
    pub hArray: CUarray,
    pub hMipmappedArray: CUmipmappedArray,
    pub linear: CUDA_RESOURCE_LINEAR,
    pub pitch2D: CUDA_RESOURCE_PITCH2D,
    pub reserved: [i32; 32],
}

/// Linear memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_RESOURCE_LINEAR {
    pub devPtr: CUdeviceptr,
    pub format: CUarray_format,
    pub numChannels: u32,
    pub sizeInBytes: usize,
}

/// Rows of memory that lie `pitchInBytes` apart.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_RESOURCE_PITCH2D {
    pub devPtr: CUdeviceptr,
    pub format: CUarray_format,
    pub numChannels: u32,
    pub width: usize,
    pub height: usize,
    pub pitchInBytes: usize,
}

impl fmt::Debug for CUDA_RESOURCE_DESC {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Which member of the union counts is the type's business, so only that is shown.
        f.debug_struct("CUDA_RESOURCE_DESC").field("resType", &self.resType).finish_non_exhaustive()
    }
}

/// How a texture object reads.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_TEXTURE_DESC {
    pub addressMode: [CUaddress_mode; 3],
    pub filterMode: CUfilter_mode,
    pub flags: u32,
    pub maxAnisotropy: u32,
    pub mipmapFilterMode: CUfilter_mode,
    pub mipmapLevelBias: f32,
    pub minMipmapLevelClamp: f32,
    pub maxMipmapLevelClamp: f32,
    pub borderColor: [f32; 4],
    pub reserved: [i32; 12],
}

/// Another way to read a resource's texels.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_RESOURCE_VIEW_DESC {
    pub format: CUresourceViewFormat,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
    pub firstMipmapLevel: u32,
    pub lastMipmapLevel: u32,
    pub firstLayer: u32,
    pub lastLayer: u32,
    pub reserved: [u32; 16],
}

c_consts! {
    CU_TRSA_OVERRIDE_FORMAT: u32 = 0x01;
    CU_TRSF_READ_AS_INTEGER: u32 = 0x01;
    CU_TRSF_NORMALIZED_COORDINATES: u32 = 0x02;
    CU_TRSF_SRGB: u32 = 0x10;
    CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION: u32 = 0x20;
    CU_TRSF_SEAMLESS_CUBEMAP: u32 = 0x40;
}
