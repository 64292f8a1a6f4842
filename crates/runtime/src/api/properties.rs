//! `cudaDeviceProp`, made of the driver's attributes.

use std::mem::MaybeUninit;

use super::prelude::*;
use crate::devices;

/// No properties: all fields are zero.
// SAFETY: integers and arrays of them, for which zero is a value.
pub(super) const NONE: cudaDeviceProp = unsafe { MaybeUninit::zeroed().assume_init() };

/// A device's properties. `device` exists.
pub(super) fn of(device: CUdevice) -> CudaResult<cudaDeviceProp> {
    let mut p = NONE;
    call!(cuDeviceGetName(p.name.as_mut_ptr(), p.name.len() as i32, device))?;
    call!(cuDeviceGetUuid_v2(&mut p.uuid, device))?;
    // Only Windows has such an identifier.
    let _ = call!(cuDeviceGetLuid(p.luid.as_mut_ptr(), &mut p.luidDeviceNodeMask, device));
    call!(cuDeviceTotalMem_v2(&mut p.totalGlobalMem, device))?;

    let get = |attribute| attribute_of(device, attribute);
    let bytes = |attribute| get(attribute).map(|value| usize::try_from(value).unwrap_or(0));
    let bits = |attribute| get(attribute).map(|value| value as u32);

    p.sharedMemPerBlock = bytes(cudaDevAttrMaxSharedMemoryPerBlock)?;
    p.regsPerBlock = get(cudaDevAttrMaxRegistersPerBlock)?;
    p.warpSize = get(cudaDevAttrWarpSize)?;
    p.memPitch = bytes(cudaDevAttrMaxPitch)?;
    p.maxThreadsPerBlock = get(cudaDevAttrMaxThreadsPerBlock)?;
    p.maxThreadsDim =
        [get(cudaDevAttrMaxBlockDimX)?, get(cudaDevAttrMaxBlockDimY)?, get(cudaDevAttrMaxBlockDimZ)?];
    p.maxGridSize =
        [get(cudaDevAttrMaxGridDimX)?, get(cudaDevAttrMaxGridDimY)?, get(cudaDevAttrMaxGridDimZ)?];
    p.totalConstMem = bytes(cudaDevAttrTotalConstantMemory)?;
    p.major = get(cudaDevAttrComputeCapabilityMajor)?;
    p.minor = get(cudaDevAttrComputeCapabilityMinor)?;
    p.textureAlignment = bytes(cudaDevAttrTextureAlignment)?;
    p.texturePitchAlignment = bytes(cudaDevAttrTexturePitchAlignment)?;
    p.multiProcessorCount = get(cudaDevAttrMultiProcessorCount)?;
    p.integrated = get(cudaDevAttrIntegrated)?;
    p.canMapHostMemory = get(cudaDevAttrCanMapHostMemory)?;
    p.maxTexture1D = get(cudaDevAttrMaxTexture1DWidth)?;
    p.maxTexture1DMipmap = get(cudaDevAttrMaxTexture1DMipmappedWidth)?;
    p.maxTexture2D = [get(cudaDevAttrMaxTexture2DWidth)?, get(cudaDevAttrMaxTexture2DHeight)?];
    p.maxTexture2DMipmap =
        [get(cudaDevAttrMaxTexture2DMipmappedWidth)?, get(cudaDevAttrMaxTexture2DMipmappedHeight)?];
    p.maxTexture2DLinear = [
        get(cudaDevAttrMaxTexture2DLinearWidth)?,
        get(cudaDevAttrMaxTexture2DLinearHeight)?,
        get(cudaDevAttrMaxTexture2DLinearPitch)?,
    ];
    p.maxTexture2DGather =
        [get(cudaDevAttrMaxTexture2DGatherWidth)?, get(cudaDevAttrMaxTexture2DGatherHeight)?];
    p.maxTexture3D = [
        get(cudaDevAttrMaxTexture3DWidth)?,
        get(cudaDevAttrMaxTexture3DHeight)?,
        get(cudaDevAttrMaxTexture3DDepth)?,
    ];
    p.maxTexture3DAlt = [
        get(cudaDevAttrMaxTexture3DWidthAlt)?,
        get(cudaDevAttrMaxTexture3DHeightAlt)?,
        get(cudaDevAttrMaxTexture3DDepthAlt)?,
    ];
    p.maxTextureCubemap = get(cudaDevAttrMaxTextureCubemapWidth)?;
    p.maxTexture1DLayered =
        [get(cudaDevAttrMaxTexture1DLayeredWidth)?, get(cudaDevAttrMaxTexture1DLayeredLayers)?];
    p.maxTexture2DLayered = [
        get(cudaDevAttrMaxTexture2DLayeredWidth)?,
        get(cudaDevAttrMaxTexture2DLayeredHeight)?,
        get(cudaDevAttrMaxTexture2DLayeredLayers)?,
    ];
    p.maxTextureCubemapLayered =
        [get(cudaDevAttrMaxTextureCubemapLayeredWidth)?, get(cudaDevAttrMaxTextureCubemapLayeredLayers)?];
    p.maxSurface1D = get(cudaDevAttrMaxSurface1DWidth)?;
    p.maxSurface2D = [get(cudaDevAttrMaxSurface2DWidth)?, get(cudaDevAttrMaxSurface2DHeight)?];
    p.maxSurface3D = [
        get(cudaDevAttrMaxSurface3DWidth)?,
        get(cudaDevAttrMaxSurface3DHeight)?,
        get(cudaDevAttrMaxSurface3DDepth)?,
    ];
    p.maxSurface1DLayered =
        [get(cudaDevAttrMaxSurface1DLayeredWidth)?, get(cudaDevAttrMaxSurface1DLayeredLayers)?];
    p.maxSurface2DLayered = [
        get(cudaDevAttrMaxSurface2DLayeredWidth)?,
        get(cudaDevAttrMaxSurface2DLayeredHeight)?,
        get(cudaDevAttrMaxSurface2DLayeredLayers)?,
    ];
    p.maxSurfaceCubemap = get(cudaDevAttrMaxSurfaceCubemapWidth)?;
    p.maxSurfaceCubemapLayered =
        [get(cudaDevAttrMaxSurfaceCubemapLayeredWidth)?, get(cudaDevAttrMaxSurfaceCubemapLayeredLayers)?];
    p.surfaceAlignment = bytes(cudaDevAttrSurfaceAlignment)?;
    p.concurrentKernels = get(cudaDevAttrConcurrentKernels)?;
    p.ECCEnabled = get(cudaDevAttrEccEnabled)?;
    p.pciBusID = get(cudaDevAttrPciBusId)?;
    p.pciDeviceID = get(cudaDevAttrPciDeviceId)?;
    p.pciDomainID = get(cudaDevAttrPciDomainId)?;
    p.tccDriver = get(cudaDevAttrTccDriver)?;
    p.asyncEngineCount = get(cudaDevAttrAsyncEngineCount)?;
    p.unifiedAddressing = get(cudaDevAttrUnifiedAddressing)?;
    p.memoryBusWidth = get(cudaDevAttrGlobalMemoryBusWidth)?;
    p.l2CacheSize = get(cudaDevAttrL2CacheSize)?;
    p.persistingL2CacheMaxSize = get(cudaDevAttrMaxPersistingL2CacheSize)?;
    p.maxThreadsPerMultiProcessor = get(cudaDevAttrMaxThreadsPerMultiProcessor)?;
    p.streamPrioritiesSupported = get(cudaDevAttrStreamPrioritiesSupported)?;
    p.globalL1CacheSupported = get(cudaDevAttrGlobalL1CacheSupported)?;
    p.localL1CacheSupported = get(cudaDevAttrLocalL1CacheSupported)?;
    p.sharedMemPerMultiprocessor = bytes(cudaDevAttrMaxSharedMemoryPerMultiprocessor)?;
    p.regsPerMultiprocessor = get(cudaDevAttrMaxRegistersPerMultiprocessor)?;
    p.managedMemory = get(cudaDevAttrManagedMemory)?;
    p.isMultiGpuBoard = get(cudaDevAttrIsMultiGpuBoard)?;
    p.multiGpuBoardGroupID = get(cudaDevAttrMultiGpuBoardGroupID)?;
    p.hostNativeAtomicSupported = get(cudaDevAttrHostNativeAtomicSupported)?;
    p.pageableMemoryAccess = get(cudaDevAttrPageableMemoryAccess)?;
    p.concurrentManagedAccess = get(cudaDevAttrConcurrentManagedAccess)?;
    p.computePreemptionSupported = get(cudaDevAttrComputePreemptionSupported)?;
    p.canUseHostPointerForRegisteredMem = get(cudaDevAttrCanUseHostPointerForRegisteredMem)?;
    p.cooperativeLaunch = get(cudaDevAttrCooperativeLaunch)?;
    p.sharedMemPerBlockOptin = bytes(cudaDevAttrMaxSharedMemoryPerBlockOptin)?;
    p.pageableMemoryAccessUsesHostPageTables = get(cudaDevAttrPageableMemoryAccessUsesHostPageTables)?;
    p.directManagedMemAccessFromHost = get(cudaDevAttrDirectManagedMemAccessFromHost)?;
    p.maxBlocksPerMultiProcessor = get(cudaDevAttrMaxBlocksPerMultiprocessor)?;
    p.accessPolicyMaxWindowSize = get(cudaDevAttrMaxAccessPolicyWindowSize)?;
    p.reservedSharedMemPerBlock = bytes(cudaDevAttrReservedSharedMemoryPerBlock)?;
    p.hostRegisterSupported = get(cudaDevAttrHostRegisterSupported)?;
    p.sparseCudaArraySupported = get(cudaDevAttrSparseCudaArraySupported)?;
    p.hostRegisterReadOnlySupported = get(cudaDevAttrHostRegisterReadOnlySupported)?;
    p.timelineSemaphoreInteropSupported = get(cudaDevAttrTimelineSemaphoreInteropSupported)?;
    p.memoryPoolsSupported = get(cudaDevAttrMemoryPoolsSupported)?;
    p.gpuDirectRDMASupported = get(cudaDevAttrGPUDirectRDMASupported)?;
    p.gpuDirectRDMAFlushWritesOptions = bits(cudaDevAttrGPUDirectRDMAFlushWritesOptions)?;
    p.gpuDirectRDMAWritesOrdering = get(cudaDevAttrGPUDirectRDMAWritesOrdering)?;
    p.memoryPoolSupportedHandleTypes = bits(cudaDevAttrMemoryPoolSupportedHandleTypes)?;
    p.deferredMappingCudaArraySupported = get(cudaDevAttrDeferredMappingCudaArraySupported)?;
    p.ipcEventSupported = get(cudaDevAttrIpcEventSupport)?;
    p.clusterLaunch = get(cudaDevAttrClusterLaunch)?;
    // Reserved among the runtime's attributes.
    p.unifiedFunctionPointers = get(cudaDeviceAttr(CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS.0))?;
    p.deviceNumaConfig = get(cudaDevAttrNumaConfig)?;
    p.deviceNumaId = get(cudaDevAttrNumaId)?;
    p.mpsEnabled = get(cudaDevAttrMpsEnabled)?;
    p.hostNumaId = get(cudaDevAttrHostNumaId)?;
    p.gpuPciDeviceID = bits(cudaDevAttrGpuPciDeviceId)?;
    p.gpuPciSubsystemID = bits(cudaDevAttrGpuPciSubsystemId)?;
    p.hostNumaMultinodeIpcSupported = get(cudaDevAttrHostNumaMultinodeIpcSupported)?;
    Ok(p)
}

/// The device that satisfies most of what `wanted` asks for; fields that are zero ask for nothing. The first of
/// equals.
pub(super) fn closest(wanted: &cudaDeviceProp) -> CudaResult<CUdevice> {
    let mut best = None;
    for device in 0..devices::count()? {
        let score = score(&of(device)?, wanted);
        if best.is_none_or(|(best_score, _)| score > best_score) {
            best = Some((score, device));
        }
    }
    best.map(|(_, device)| device).ok_or(cudaErrorNoDevice)
}

fn score(has: &cudaDeviceProp, wanted: &cudaDeviceProp) -> usize {
    let name_wanted = wanted.name[0] != 0;
    let satisfied = [
        name_wanted && has.name == wanted.name,
        wanted.major != 0 && (has.major, has.minor) >= (wanted.major, wanted.minor),
        wanted.totalGlobalMem != 0 && has.totalGlobalMem >= wanted.totalGlobalMem,
        wanted.sharedMemPerBlock != 0 && has.sharedMemPerBlock >= wanted.sharedMemPerBlock,
        wanted.regsPerBlock != 0 && has.regsPerBlock >= wanted.regsPerBlock,
        wanted.maxThreadsPerBlock != 0 && has.maxThreadsPerBlock >= wanted.maxThreadsPerBlock,
        wanted.totalConstMem != 0 && has.totalConstMem >= wanted.totalConstMem,
        wanted.multiProcessorCount != 0 && has.multiProcessorCount >= wanted.multiProcessorCount,
    ];
    satisfied.into_iter().filter(|&satisfied| satisfied).count()
}

/// One attribute; 0 for one that the driver is too old to know.
pub(super) fn attribute_of(device: CUdevice, attribute: cudaDeviceAttr) -> CudaResult<i32> {
    let mut value = 0;
    match call!(cuDeviceGetAttribute(&mut value, CUdevice_attribute(attribute.0), device)) {
        Ok(()) => Ok(value),
        Err(cudaErrorInvalidValue) => Ok(0),
        Err(code) => Err(code),
    }
}
