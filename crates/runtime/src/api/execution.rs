//! Execution control.

use super::prelude::*;
use crate::registry::Kernel;
use crate::{context, kernels, streams};

/// Launches a kernel; `args` holds the addresses of its parameters.
#[entry_point(ptsz)]
fn cudaLaunchKernel(
    default: DefaultStream,
    func: *const c_void,
    gridDim: dim3,
    blockDim: dim3,
    args: *mut *mut c_void,
    sharedMem: usize,
    stream: cudaStream_t,
) -> CudaResult {
    launch(default, kernels::launchable(func)?, gridDim, blockDim, args, sharedMem, stream)
}

/// Launches a kernel whose blocks may wait for each other.
#[entry_point(ptsz)]
fn cudaLaunchCooperativeKernel(
    default: DefaultStream,
    func: *const c_void,
    gridDim: dim3,
    blockDim: dim3,
    args: *mut *mut c_void,
    sharedMem: usize,
    stream: cudaStream_t,
) -> CudaResult {
    let function = kernels::launchable(func)?;
    let stream = streams::resolve(default, stream);
    let (grid, block, shared) = (gridDim, blockDim, shared_bytes(sharedMem)?);
    call!(cuLaunchCooperativeKernel(
        function, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream, args
    ))
}

/// Launches a kernel with attributes.
#[entry_point(ptsz)]
fn cudaLaunchKernelExC(
    default: DefaultStream,
    config: In<cudaLaunchConfig_t>,
    func: *const c_void,
    args: *mut *mut c_void,
) -> CudaResult {
    let config = launch_config(default, config)?;
    let function = kernels::launchable(func)?;
    call!(cuLaunchKernelEx(&config, function, args, std::ptr::null_mut()))
}

/// Has the host function called when the work before it in the stream is done.
#[entry_point(ptsz)]
fn cudaLaunchHostFunc(
    default: DefaultStream,
    stream: cudaStream_t,
    r#fn: cudaHostFn_t,
    userData: *mut c_void,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuLaunchHostFunc(streams::resolve(default, stream), r#fn, userData))
}

/// Tells what a kernel needs and may have.
#[entry_point]
fn cudaFuncGetAttributes(attr: Out<cudaFuncAttributes>, func: *const c_void) -> CudaResult {
    let function = kernels::in_context(func)?;
    attr.check()?.set(attributes(function)?)?;
    Ok(())
}

/// What a kernel needs and may have.
pub fn attributes(function: CUfunction) -> CudaResult<cudaFuncAttributes> {
    let get = |attribute: CUfunction_attribute| -> CudaResult<i32> {
        let mut value = 0;
        call!(cuFuncGetAttribute(&mut value, attribute, function))?;
        Ok(value)
    };
    let bytes = |attribute| -> CudaResult<usize> { Ok(usize::try_from(get(attribute)?).unwrap_or(0)) };
    Ok(cudaFuncAttributes {
        sharedSizeBytes: bytes(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
        constSizeBytes: bytes(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
        localSizeBytes: bytes(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
        maxThreadsPerBlock: get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        numRegs: get(CU_FUNC_ATTRIBUTE_NUM_REGS)?,
        ptxVersion: get(CU_FUNC_ATTRIBUTE_PTX_VERSION)?,
        binaryVersion: get(CU_FUNC_ATTRIBUTE_BINARY_VERSION)?,
        cacheModeCA: get(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA)?,
        maxDynamicSharedSizeBytes: get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)?,
        preferredShmemCarveout: get(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)?,
        clusterDimMustBeSet: get(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET)?,
        requiredClusterWidth: get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH)?,
        requiredClusterHeight: get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT)?,
        requiredClusterDepth: get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)?,
        clusterSchedulingPolicyPreference: get(CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)?,
        nonPortableClusterSizeAllowed: get(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED)?,
        reserved: [0; 16],
    })
}

/// Sets what a kernel may have. The driver knows the attributes by the same numbers; only these are the runtime's.
#[entry_point]
fn cudaFuncSetAttribute(func: *const c_void, attr: cudaFuncAttribute, value: i32) -> CudaResult {
    if !(cudaFuncAttributeMaxDynamicSharedMemorySize..cudaFuncAttributeMax).contains(&attr) {
        return Err(cudaErrorInvalidValue);
    }
    let kernel = kernels::named(func)?;
    call!(cuKernelSetAttribute(CUfunction_attribute(attr.0), value, kernel, context::device()?))
}

/// Sets a kernel's preferred split between L1 cache and shared memory.
#[entry_point]
fn cudaFuncSetCacheConfig(func: *const c_void, cacheConfig: cudaFuncCache) -> CudaResult {
    let kernel = kernels::named(func)?;
    call!(cuKernelSetCacheConfig(kernel, CUfunc_cache(cacheConfig.0), context::device()?))
}

/// Sets the width of the shared memory banks for a kernel, where a device has a choice.
#[entry_point]
fn cudaFuncSetSharedMemConfig(func: *const c_void, config: cudaSharedMemConfig) -> CudaResult {
    call!(cuFuncSetSharedMemConfig(kernels::in_context(func)?, CUsharedconfig(config.0)))
}

/// The kernel's name in the device code.
#[entry_point]
fn cudaFuncGetName(name: Out<*const c_char>, func: *const c_void) -> CudaResult {
    let kernel = kernels::named(func)?;
    call!(cuKernelGetName(name.check()?.as_ptr(), kernel))
}

/// Where a kernel's parameter begins and how long it is.
#[entry_point]
fn cudaFuncGetParamInfo(
    func: *const c_void,
    paramIndex: usize,
    paramOffset: Out<usize>,
    paramSize: Out<usize>,
) -> CudaResult {
    let kernel = kernels::named(func)?;
    call!(cuKernelGetParamInfo(kernel, paramIndex, paramOffset.as_ptr(), paramSize.as_ptr()))
}

/// A registered kernel in the form in which launches take it.
pub(super) fn launchable_record(record: &Kernel) -> CudaResult<CUfunction> {
    context::ensure_current()?;
    let kernel = record.found().map_or_else(|| record.find(), Ok)?;
    Ok(kernels::as_function(kernel))
}

/// Launches a kernel in the current context.
pub(super) fn launch(
    default: DefaultStream,
    function: CUfunction,
    grid: dim3,
    block: dim3,
    args: *mut *mut c_void,
    shared: usize,
    stream: cudaStream_t,
) -> CudaResult {
    let stream = streams::resolve(default, stream);
    let shared = shared_bytes(shared)?;
    let extra = std::ptr::null_mut();
    call!(cuLaunchKernel(
        function, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream, args, extra
    ))
}

/// A launch's description in the driver's terms. The attributes are the same in both.
pub(super) fn launch_config(
    default: DefaultStream,
    config: In<cudaLaunchConfig_t>,
) -> CudaResult<CUlaunchConfig> {
    let config = config.get()?;
    Ok(CUlaunchConfig {
        gridDimX: config.gridDim.x,
        gridDimY: config.gridDim.y,
        gridDimZ: config.gridDim.z,
        blockDimX: config.blockDim.x,
        blockDimY: config.blockDim.y,
        blockDimZ: config.blockDim.z,
        sharedMemBytes: shared_bytes(config.dynamicSmemBytes)?,
        hStream: streams::resolve(default, config.stream),
        attrs: config.attrs,
        numAttrs: config.numAttrs,
    })
}

/// The driver counts shared memory in 32 bits; no device has as much.
pub(super) fn shared_bytes(bytes: usize) -> CudaResult<u32> {
    u32::try_from(bytes).map_err(|_| cudaErrorInvalidValue)
}
