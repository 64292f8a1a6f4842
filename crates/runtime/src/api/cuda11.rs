//! Functions that CUDA 11 has with other parameters or smaller structures than CUDA 12; their names end in `_cuda11` here.
//! All else in `libcudart.so.11.0` is as in `libcudart.so.12`.

use std::mem::MaybeUninit;
use std::ptr;

use super::cuda12::{device, objects};
use super::{execution, texture_object};
use crate::api::prelude::*;
use crate::version::version;
use crate::{context, devices, kernels};

/// A device's properties, as far as CUDA 11 has them. `libcudart.so.12` has it by this name too, for objects that were
/// compiled before the structure grew.
#[entry_point]
fn cudaGetDeviceProperties_cuda11(prop: Out<cudaDeviceProp_cuda11>, device: i32) -> CudaResult {
    let prop = prop.check()?;
    let properties = device::properties_of(devices::check(device)?)?;
    // SAFETY: the caller's structure is writable; CUDA 11's structure is the beginning of ours (asserted where it is declared).
    unsafe { ptr::copy_nonoverlapping((&raw const properties).cast(), prop.as_ptr(), 1) };
    Ok(())
}

/// The device that has most of what is asked for.
#[entry_point]
fn cudaChooseDevice_cuda11(device: Out<i32>, prop: In<cudaDeviceProp_cuda11>) -> CudaResult {
    let (device, prop) = (device.check()?, prop.get()?);
    let mut wanted = MaybeUninit::<cudaDeviceProp_cuda12>::zeroed();
    // SAFETY: the shorter structure is the beginning of the longer one, whose fields are numbers: zeros and any bytes do.
    let wanted = unsafe {
        ptr::copy_nonoverlapping(&raw const prop, wanted.as_mut_ptr().cast(), 1);
        wanted.assume_init()
    };
    device.set(device::closest(&wanted)?)?;
    Ok(())
}

/// What a kernel needs and may have.
#[entry_point]
fn cudaFuncGetAttributes_cuda11(attr: Out<cudaFuncAttributes_cuda11>, func: *const c_void) -> CudaResult {
    let function = kernels::in_context(func)?;
    let attr = attr.check()?;
    let of = execution::attributes(function)?;
    attr.set(cudaFuncAttributes_cuda11 {
        sharedSizeBytes: of.sharedSizeBytes,
        constSizeBytes: of.constSizeBytes,
        localSizeBytes: of.localSizeBytes,
        maxThreadsPerBlock: of.maxThreadsPerBlock,
        numRegs: of.numRegs,
        ptxVersion: of.ptxVersion,
        binaryVersion: of.binaryVersion,
        cacheModeCA: of.cacheModeCA,
        maxDynamicSharedSizeBytes: of.maxDynamicSharedSizeBytes,
        preferredShmemCarveout: of.preferredShmemCarveout,
    })?;
    Ok(())
}

/// The driver's function of a name. Whether there is one the code tells: there is no status.
#[entry_point(ptsz)]
fn cudaGetDriverEntryPoint_cuda11(
    default: DefaultStream,
    symbol: Text,
    funcPtr: Out<*mut c_void>,
    flags: u64,
) -> CudaResult {
    context::initialize()?;
    let function = funcPtr.check()?;
    let flags = match (default, flags) {
        (DefaultStream::PerThread, cudaEnableDefault) => cudaEnablePerThreadDefaultStream,
        _ => flags,
    };
    call!(cuGetProcAddress(symbol.get()?.as_ptr(), function.as_ptr(), version(), flags))
}

/// Makes a graph ready for launching, and tells where and why it cannot be.
#[entry_point]
fn cudaGraphInstantiate_cuda11(
    pGraphExec: Out<cudaGraphExec_t>,
    graph: cudaGraph_t,
    pErrorNode: *mut cudaGraphNode_t,
    pLogBuffer: *mut c_char,
    bufferSize: usize,
) -> CudaResult {
    context::ensure_current()?;
    let exec = pGraphExec.check()?;
    call!(cuGraphInstantiate_v2(exec.as_ptr(), graph, pErrorNode, pLogBuffer, bufferSize))
}

/// Gives an executable graph the parameters of another graph, and tells what stood in the way.
#[entry_point]
fn cudaGraphExecUpdate_cuda11(
    hGraphExec: cudaGraphExec_t,
    hGraph: cudaGraph_t,
    hErrorNode_out: *mut cudaGraphNode_t,
    updateResult_out: *mut cudaGraphExecUpdateResult,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphExecUpdate(hGraphExec, hGraph, hErrorNode_out, updateResult_out))
}

/// Makes a texture object. The view may be left out.
#[entry_point]
fn cudaCreateTextureObject_cuda11(
    pTexObject: Out<cudaTextureObject_t>,
    pResDesc: In<cudaResourceDesc_cuda12>,
    pTexDesc: In<cudaTextureDesc_cuda11>,
    pResViewDesc: In<cudaResourceViewDesc_cuda12>,
) -> CudaResult {
    let wanted = pTexDesc.get()?;
    let texture = cudaTextureDesc {
        addressMode: wanted.addressMode,
        filterMode: wanted.filterMode,
        readMode: wanted.readMode,
        sRGB: wanted.sRGB,
        borderColor: wanted.borderColor,
        normalizedCoords: wanted.normalizedCoords,
        maxAnisotropy: wanted.maxAnisotropy,
        mipmapFilterMode: wanted.mipmapFilterMode,
        mipmapLevelBias: wanted.mipmapLevelBias,
        minMipmapLevelClamp: wanted.minMipmapLevelClamp,
        maxMipmapLevelClamp: wanted.maxMipmapLevelClamp,
        disableTrilinearOptimization: wanted.disableTrilinearOptimization,
        seamlessCubemap: 0,
    };
    objects::create(pTexObject, pResDesc, &texture, pResViewDesc)
}

/// How a texture object reads.
#[entry_point]
fn cudaGetTextureObjectTextureDesc_cuda11(
    pTexDesc: Out<cudaTextureDesc_cuda11>,
    texObject: cudaTextureObject_t,
) -> CudaResult {
    context::ensure_current()?;
    let out = pTexDesc.check()?;
    let of = texture_object::texture_of(texObject)?;
    out.set(cudaTextureDesc_cuda11 {
        addressMode: of.addressMode,
        filterMode: of.filterMode,
        readMode: of.readMode,
        sRGB: of.sRGB,
        borderColor: of.borderColor,
        normalizedCoords: of.normalizedCoords,
        maxAnisotropy: of.maxAnisotropy,
        mipmapFilterMode: of.mipmapFilterMode,
        mipmapLevelBias: of.mipmapLevelBias,
        minMipmapLevelClamp: of.minMipmapLevelClamp,
        maxMipmapLevelClamp: of.maxMipmapLevelClamp,
        disableTrilinearOptimization: of.disableTrilinearOptimization,
    })?;
    Ok(())
}
