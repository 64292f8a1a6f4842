//! What texture and surface objects are made of.
#![allow(missing_docs, reason = "fields are the manual's; the structures say what they are for")]

use super::*;
use core::ffi::c_void;
use core::fmt;

/// What an object reads: `res` is told by `resType`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cudaResourceDesc {
    pub resType: cudaResourceType,
    pub res: cudaResource,
    pub flags: u32,
}

/// The resource of a [`cudaResourceDesc`].
#[repr(C)]
#[derive(Clone, Copy)]
pub union cudaResource {
    pub array: cudaArray_t,
    pub mipmap: cudaMipmappedArray_t,
    pub linear: cudaResourceLinear,
    pub pitch2D: cudaResourcePitch2D,
    pub reserved: [i32; 32],
}

/// Linear memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaResourceLinear {
    pub devPtr: *mut c_void,
    pub desc: cudaChannelFormatDesc,
    pub sizeInBytes: usize,
}

/// Rows of memory that lie `pitchInBytes` apart.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaResourcePitch2D {
    pub devPtr: *mut c_void,
    pub desc: cudaChannelFormatDesc,
    pub width: usize,
    pub height: usize,
    pub pitchInBytes: usize,
}

impl fmt::Debug for cudaResourceDesc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Which member of the union counts is the type's business, so only that is shown.
        f.debug_struct("cudaResourceDesc").field("resType", &self.resType).finish_non_exhaustive()
    }
}

/// Another way to read a resource's texels.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaResourceViewDesc {
    pub format: cudaResourceViewFormat,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
    pub firstMipmapLevel: u32,
    pub lastMipmapLevel: u32,
    pub firstLayer: u32,
    pub lastLayer: u32,
    pub reserved: [u32; 16],
}
