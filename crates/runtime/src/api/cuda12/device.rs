//! Device properties with the fields that CUDA 13 has removed, and what else there is of devices.

use crate::api::prelude::*;
use crate::api::properties::{self, attribute_of};
use crate::devices;

/// All of a device's properties.
#[entry_point]
fn cudaGetDeviceProperties_v2(prop: Out<cudaDeviceProp_cuda12>, device: i32) -> CudaResult {
    let prop = prop.check()?;
    prop.set(properties_of(devices::check(device)?)?)?;
    Ok(())
}

/// The device that has most of what is asked for.
#[entry_point]
fn cudaChooseDevice_cuda12(device: Out<i32>, prop: In<cudaDeviceProp_cuda12>) -> CudaResult {
    let (device, wanted) = (device.check()?, prop.get()?);
    device.set(closest(&wanted)?)?;
    Ok(())
}

/// The device that is closest to what is asked for.
pub fn closest(wanted: &cudaDeviceProp_cuda12) -> CudaResult<i32> {
    properties::closest(&with_common_fields!(cudaDeviceProp, wanted, ..properties::NONE))
}

/// A device's properties as CUDA 12 has them.
pub fn properties_of(device: CUdevice) -> CudaResult<cudaDeviceProp_cuda12> {
    let common = properties::of(device)?;
    let get = |attribute| attribute_of(device, attribute);
    Ok(with_common_fields!(
        cudaDeviceProp_cuda12,
        common,
        clockRate: get(cudaDevAttrClockRate)?,
        deviceOverlap: get(cudaDevAttrGpuOverlap)?,
        kernelExecTimeoutEnabled: get(cudaDevAttrKernelExecTimeout)?,
        computeMode: get(cudaDevAttrComputeMode)?,
        maxTexture1DLinear: get(cudaDevAttrMaxTexture1DLinearWidth)?,
        memoryClockRate: get(cudaDevAttrMemoryClockRate)?,
        singleToDoublePrecisionPerfRatio: get(cudaDevAttrSingleToDoublePrecisionPerfRatio)?,
        // Among the runtime's attributes only in CUDA 12.
        cooperativeMultiDeviceLaunch: get(cudaDeviceAttr(CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH.0))?,
        reserved: [0; 63],
    ))
}

/// A structure with the fields that those of CUDA 12 and 13 share taken from `$from`.
macro_rules! with_common_fields {
    ($name:ident, $from:ident, $($rest:tt)*) => {
        with_common_fields!(@ $name, $from, { $($rest)* },
            name, uuid, luid, luidDeviceNodeMask, totalGlobalMem, sharedMemPerBlock, regsPerBlock, warpSize,
            memPitch, maxThreadsPerBlock, maxThreadsDim, maxGridSize, totalConstMem, major, minor,
            textureAlignment, texturePitchAlignment, multiProcessorCount, integrated, canMapHostMemory,
            maxTexture1D, maxTexture1DMipmap, maxTexture2D, maxTexture2DMipmap, maxTexture2DLinear,
            maxTexture2DGather, maxTexture3D, maxTexture3DAlt, maxTextureCubemap, maxTexture1DLayered,
            maxTexture2DLayered, maxTextureCubemapLayered, maxSurface1D, maxSurface2D, maxSurface3D,
            maxSurface1DLayered, maxSurface2DLayered, maxSurfaceCubemap, maxSurfaceCubemapLayered,
            surfaceAlignment, concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver,
            asyncEngineCount, unifiedAddressing, memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize,
            maxThreadsPerMultiProcessor, streamPrioritiesSupported, globalL1CacheSupported,
            localL1CacheSupported, sharedMemPerMultiprocessor, regsPerMultiprocessor, managedMemory,
            isMultiGpuBoard, multiGpuBoardGroupID, hostNativeAtomicSupported, pageableMemoryAccess,
            concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem,
            cooperativeLaunch, sharedMemPerBlockOptin, pageableMemoryAccessUsesHostPageTables,
            directManagedMemAccessFromHost, maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize,
            reservedSharedMemPerBlock, hostRegisterSupported, sparseCudaArraySupported,
            hostRegisterReadOnlySupported, timelineSemaphoreInteropSupported, memoryPoolsSupported,
            gpuDirectRDMASupported, gpuDirectRDMAFlushWritesOptions, gpuDirectRDMAWritesOrdering,
            memoryPoolSupportedHandleTypes, deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch,
            unifiedFunctionPointers
        )
    };
    (@ $name:ident, $from:ident, { $($rest:tt)* }, $($field:ident),*) => {
        $name { $($field: $from.$field,)* $($rest)* }
    };
}
use with_common_fields;

/// Meant for devices that calculate with single precision only, which there are none of any more: the number stays.
#[entry_point]
fn cudaSetDoubleForDevice(d: Out<f64>) -> CudaResult {
    d.check()?;
    Ok(())
}

/// The same on the way back.
#[entry_point]
fn cudaSetDoubleForHost(d: Out<f64>) -> CudaResult {
    d.check()?;
    Ok(())
}
