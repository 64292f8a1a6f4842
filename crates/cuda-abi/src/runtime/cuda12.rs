//! Structures of CUDA 12 that CUDA 13 lays out otherwise under the same name.
#![allow(missing_docs, reason = "fields are the manual's; the structures say what they are for")]

use super::*;
use core::ffi::{c_char, c_void};
use core::fmt;
use core::mem::offset_of;

/// A device's properties: CUDA 13 has removed what `cudaDeviceGetAttribute` tells, and used some of the reserved space.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaDeviceProp_cuda12 {
    pub name: [c_char; 256],
    pub uuid: cudaUUID_t,
    pub luid: [c_char; 8],
    pub luidDeviceNodeMask: u32,
    pub totalGlobalMem: usize,
    pub sharedMemPerBlock: usize,
    pub regsPerBlock: i32,
    pub warpSize: i32,
    pub memPitch: usize,
    pub maxThreadsPerBlock: i32,
    pub maxThreadsDim: [i32; 3],
    pub maxGridSize: [i32; 3],
    pub clockRate: i32,
    pub totalConstMem: usize,
    pub major: i32,
    pub minor: i32,
    pub textureAlignment: usize,
    pub texturePitchAlignment: usize,
    pub deviceOverlap: i32,
    pub multiProcessorCount: i32,
    pub kernelExecTimeoutEnabled: i32,
    pub integrated: i32,
    pub canMapHostMemory: i32,
    pub computeMode: i32,
    pub maxTexture1D: i32,
    pub maxTexture1DMipmap: i32,
    pub maxTexture1DLinear: i32,
    pub maxTexture2D: [i32; 2],
    pub maxTexture2DMipmap: [i32; 2],
    pub maxTexture2DLinear: [i32; 3],
    pub maxTexture2DGather: [i32; 2],
    pub maxTexture3D: [i32; 3],
    pub maxTexture3DAlt: [i32; 3],
    pub maxTextureCubemap: i32,
    pub maxTexture1DLayered: [i32; 2],
    pub maxTexture2DLayered: [i32; 3],
    pub maxTextureCubemapLayered: [i32; 2],
    pub maxSurface1D: i32,
    pub maxSurface2D: [i32; 2],
    pub maxSurface3D: [i32; 3],
    pub maxSurface1DLayered: [i32; 2],
    pub maxSurface2DLayered: [i32; 3],
    pub maxSurfaceCubemap: i32,
    pub maxSurfaceCubemapLayered: [i32; 2],
    pub surfaceAlignment: usize,
    pub concurrentKernels: i32,
    pub ECCEnabled: i32,
    pub pciBusID: i32,
    pub pciDeviceID: i32,
    pub pciDomainID: i32,
    pub tccDriver: i32,
    pub asyncEngineCount: i32,
    pub unifiedAddressing: i32,
    pub memoryClockRate: i32,
    pub memoryBusWidth: i32,
    pub l2CacheSize: i32,
    pub persistingL2CacheMaxSize: i32,
    pub maxThreadsPerMultiProcessor: i32,
    pub streamPrioritiesSupported: i32,
    pub globalL1CacheSupported: i32,
    pub localL1CacheSupported: i32,
    pub sharedMemPerMultiprocessor: usize,
    pub regsPerMultiprocessor: i32,
    pub managedMemory: i32,
    pub isMultiGpuBoard: i32,
    pub multiGpuBoardGroupID: i32,
    pub hostNativeAtomicSupported: i32,
    pub singleToDoublePrecisionPerfRatio: i32,
    pub pageableMemoryAccess: i32,
    pub concurrentManagedAccess: i32,
    pub computePreemptionSupported: i32,
    pub canUseHostPointerForRegisteredMem: i32,
    pub cooperativeLaunch: i32,
    pub cooperativeMultiDeviceLaunch: i32,
    pub sharedMemPerBlockOptin: usize,
    pub pageableMemoryAccessUsesHostPageTables: i32,
    pub directManagedMemAccessFromHost: i32,
    pub maxBlocksPerMultiProcessor: i32,
    pub accessPolicyMaxWindowSize: i32,
    pub reservedSharedMemPerBlock: usize,
    pub hostRegisterSupported: i32,
    pub sparseCudaArraySupported: i32,
    pub hostRegisterReadOnlySupported: i32,
    pub timelineSemaphoreInteropSupported: i32,
    pub memoryPoolsSupported: i32,
    pub gpuDirectRDMASupported: i32,
    pub gpuDirectRDMAFlushWritesOptions: u32,
    pub gpuDirectRDMAWritesOrdering: i32,
    pub memoryPoolSupportedHandleTypes: u32,
    pub deferredMappingCudaArraySupported: i32,
    pub ipcEventSupported: i32,
    pub clusterLaunch: i32,
    pub unifiedFunctionPointers: i32,
    pub reserved: [i32; 63],
}

/// What is known about a pointer: without reserved space.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaPointerAttributes_cuda12 {
    pub r#type: cudaMemoryType,
    pub device: i32,
    pub devicePointer: *mut c_void,
    pub hostPointer: *mut c_void,
}

/// What an object reads: without reserved space and flags.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cudaResourceDesc_cuda12 {
    pub resType: cudaResourceType,
    pub res: cudaResource_cuda12,
}

/// The resource of a [`cudaResourceDesc_cuda12`].
#[repr(C)]
#[derive(Clone, Copy)]
pub union cudaResource_cuda12 {
    pub array: cudaArray_t,
    pub mipmap: cudaMipmappedArray_t,
    pub linear: cudaResourceLinear,
    pub pitch2D: cudaResourcePitch2D,
}

impl fmt::Debug for cudaResourceDesc_cuda12 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Which member of the union counts is the type's business, so only that is shown.
        f.debug_struct("cudaResourceDesc").field("resType", &self.resType).finish_non_exhaustive()
    }
}

/// Another way to read a resource's texels: without reserved space.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaResourceViewDesc_cuda12 {
    pub format: cudaResourceViewFormat,
    pub width: usize,
    pub height: usize,
    pub depth: usize,
    pub firstMipmapLevel: u32,
    pub lastMipmapLevel: u32,
    pub firstLayer: u32,
    pub lastLayer: u32,
}

// What the C compiler makes of CUDA 12's headers on 64-bit Linux.
const _: () = {
    assert!(size_of::<cudaDeviceProp_cuda12>() == 1032);
    assert!(offset_of!(cudaDeviceProp_cuda12, uuid) == 256);
    assert!(offset_of!(cudaDeviceProp_cuda12, luid) == 272);
    assert!(offset_of!(cudaDeviceProp_cuda12, totalGlobalMem) == 288);
    assert!(offset_of!(cudaDeviceProp_cuda12, clockRate) == 348);
    assert!(offset_of!(cudaDeviceProp_cuda12, totalConstMem) == 352);
    assert!(offset_of!(cudaDeviceProp_cuda12, textureAlignment) == 368);
    assert!(offset_of!(cudaDeviceProp_cuda12, deviceOverlap) == 384);
    assert!(offset_of!(cudaDeviceProp_cuda12, multiProcessorCount) == 388);
    assert!(offset_of!(cudaDeviceProp_cuda12, kernelExecTimeoutEnabled) == 392);
    assert!(offset_of!(cudaDeviceProp_cuda12, computeMode) == 404);
    assert!(offset_of!(cudaDeviceProp_cuda12, maxTexture1DLinear) == 416);
    assert!(offset_of!(cudaDeviceProp_cuda12, maxTexture2DLinear) == 436);
    assert!(offset_of!(cudaDeviceProp_cuda12, surfaceAlignment) == 568);
    assert!(offset_of!(cudaDeviceProp_cuda12, memoryClockRate) == 608);
    assert!(offset_of!(cudaDeviceProp_cuda12, sharedMemPerMultiprocessor) == 640);
    assert!(offset_of!(cudaDeviceProp_cuda12, singleToDoublePrecisionPerfRatio) == 668);
    assert!(offset_of!(cudaDeviceProp_cuda12, cooperativeMultiDeviceLaunch) == 692);
    assert!(offset_of!(cudaDeviceProp_cuda12, sharedMemPerBlockOptin) == 696);
    assert!(offset_of!(cudaDeviceProp_cuda12, reservedSharedMemPerBlock) == 720);
    assert!(offset_of!(cudaDeviceProp_cuda12, hostRegisterSupported) == 728);
    assert!(offset_of!(cudaDeviceProp_cuda12, unifiedFunctionPointers) == 776);
    assert!(offset_of!(cudaDeviceProp_cuda12, reserved) == 780);
    assert!(size_of::<cudaPointerAttributes_cuda12>() == 24);
    assert!(offset_of!(cudaPointerAttributes_cuda12, hostPointer) == 16);
    assert!(size_of::<cudaResourceDesc_cuda12>() == 64);
    assert!(offset_of!(cudaResourceDesc_cuda12, res) == 8);
    assert!(size_of::<cudaResourceViewDesc_cuda12>() == 48);
    assert!(offset_of!(cudaResourceViewDesc_cuda12, firstMipmapLevel) == 32);
};

/// One launch of `cudaLaunchCooperativeKernelMultiDevice`, which CUDA 13 has not.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaLaunchParams {
    pub func: *const c_void,
    pub gridDim: dim3,
    pub blockDim: dim3,
    pub args: *mut *mut c_void,
    pub sharedMem: usize,
    pub stream: cudaStream_t,
}
