//! Structures of CUDA 11 that grew in CUDA 12.
#![allow(missing_docs, reason = "fields are the manual's; the structures say what they are for")]

use super::*;
use crate::driver::CUgraphExecUpdateResult;
use core::mem::offset_of;

/// What stood in the way of an executable graph's update. Later versions tell it in a structure.
pub type cudaGraphExecUpdateResult = CUgraphExecUpdateResult;

/// The beginning of [`cudaDeviceProp_cuda12`]: all that programs compiled with CUDA 11 have room for.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug)]
pub struct cudaDeviceProp_cuda11(pub [u8; 728]);

/// What a kernel needs, without clusters.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct cudaFuncAttributes_cuda11 {
    pub sharedSizeBytes: usize,
    pub constSizeBytes: usize,
    pub localSizeBytes: usize,
    pub maxThreadsPerBlock: i32,
    pub numRegs: i32,
    pub ptxVersion: i32,
    pub binaryVersion: i32,
    pub cacheModeCA: i32,
    pub maxDynamicSharedSizeBytes: i32,
    pub preferredShmemCarveout: i32,
}

/// How a texture object reads, where cube maps have seams.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaTextureDesc_cuda11 {
    pub addressMode: [cudaTextureAddressMode; 3],
    pub filterMode: cudaTextureFilterMode,
    pub readMode: cudaTextureReadMode,
    pub sRGB: i32,
    pub borderColor: [f32; 4],
    pub normalizedCoords: i32,
    pub maxAnisotropy: u32,
    pub mipmapFilterMode: cudaTextureFilterMode,
    pub mipmapLevelBias: f32,
    pub minMipmapLevelClamp: f32,
    pub maxMipmapLevelClamp: f32,
    pub disableTrilinearOptimization: i32,
}

const _: () = {
    assert!(size_of::<cudaDeviceProp_cuda11>() == offset_of!(cudaDeviceProp_cuda12, hostRegisterSupported));
    assert!(size_of::<cudaFuncAttributes_cuda11>() == 56);
    assert!(size_of::<cudaTextureDesc_cuda11>() == 68);
};
