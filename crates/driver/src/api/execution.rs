//! Execution control.

use crate::error::CuResult;
use crate::functions::{self, find};
use crate::streams;
use crate::texture_references;
use cuda_abi::args::{In, Out};
use cuda_abi::driver::*;
use cuda_abi::shim::DefaultStream;
use device::limits::{MAX_BLOCK, MAX_THREADS_PER_BLOCK};
use device::{Error, Launch};
use entry_macros::entry_point;
use std::ffi::{c_char, c_void};
use std::ptr::null_mut;

#[entry_point]
fn cuFuncGetAttribute(pi: Out<i32>, attrib: CUfunction_attribute, hfunc: CUfunction) -> CuResult {
    pi.check()?.set(find(hfunc)?.attribute(attrib)?)?;
    Ok(())
}

#[entry_point]
fn cuFuncSetAttribute(hfunc: CUfunction, attrib: CUfunction_attribute, value: i32) -> CuResult {
    find(hfunc)?.set_attribute(attrib, value)
}

/// Caches are the processor's: a preference changes how many blocks are told to run together, and nothing else.
#[entry_point]
fn cuFuncSetCacheConfig(hfunc: CUfunction, config: CUfunc_cache) -> CuResult {
    find(hfunc)?.set_cache_config(config)
}

/// Deprecated: banks have one width.
#[entry_point]
fn cuFuncSetSharedMemConfig(hfunc: CUfunction, config: CUsharedconfig) -> CuResult {
    find(hfunc)?;
    config.name().ok_or(CUDA_ERROR_INVALID_VALUE)?;
    Ok(())
}

#[entry_point]
fn cuFuncGetModule(hmod: Out<CUmodule>, hfunc: CUfunction) -> CuResult {
    hmod.check()?;
    if hfunc.is_null() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    hmod.set(find(hfunc)?.module)?;
    Ok(())
}

/// The function, where null is a wrong value rather than a wrong handle.
fn find_given(function: CUfunction) -> CuResult<std::sync::Arc<functions::Function>> {
    if function.is_null() { Err(CUDA_ERROR_INVALID_VALUE.into()) } else { find(function) }
}

#[entry_point]
fn cuFuncGetName(name: Out<*const c_char>, hfunc: CUfunction) -> CuResult {
    name.check()?.set(find_given(hfunc)?.name.as_ptr())?;
    Ok(())
}

#[entry_point]
fn cuFuncGetParamInfo(
    func: CUfunction,
    paramIndex: usize,
    paramOffset: Out<usize>,
    paramSize: Out<usize>,
) -> CuResult {
    let parameter = functions::parameter(find_given(func)?.entry(), paramIndex)?;
    paramOffset.check()?.set(parameter.offset)?;
    paramSize.set_if_wanted(parameter.size);
    Ok(())
}

#[entry_point]
fn cuFuncIsLoaded(state: Out<CUfunctionLoadingState>, function: CUfunction) -> CuResult {
    find(function)?;
    state.set(CU_FUNCTION_LOADING_STATE_LOADED)?;
    Ok(())
}

/// Code is specialised at the first launch, whose shape is not known yet.
#[entry_point]
fn cuFuncLoad(function: CUfunction) -> CuResult {
    find(function)?;
    Ok(())
}

#[entry_point(ptsz)]
unsafe fn cuLaunchKernel(
    default: DefaultStream,
    f: CUfunction,
    gridDimX: u32,
    gridDimY: u32,
    gridDimZ: u32,
    blockDimX: u32,
    blockDimY: u32,
    blockDimZ: u32,
    sharedMemBytes: u32,
    hStream: CUstream,
    kernelParams: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CuResult {
    let launch = Launch {
        grid: [gridDimX, gridDimY, gridDimZ],
        block: [blockDimX, blockDimY, blockDimZ],
        dynamic_shared: sharedMemBytes,
        cooperative: false,
        cluster: None,
    };
    // SAFETY: the caller's duty.
    unsafe { functions::launch(f, launch, hStream, default, kernelParams, extra) }
}

#[entry_point(ptsz)]
unsafe fn cuLaunchKernelEx(
    default: DefaultStream,
    config: In<CUlaunchConfig>,
    f: CUfunction,
    kernelParams: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CuResult {
    let config = config.get()?;
    // SAFETY: the manual wants as many attributes as the configuration says.
    let asked = unsafe { functions::asked(config.attrs, config.numAttrs) }?;
    let grid = [config.gridDimX, config.gridDimY, config.gridDimZ];
    if !asked.is_preference_possible(f, grid)? {
        let stream = streams::find(config.hStream, default)?;
        return Err(stream.refuse_capture(Error::InvalidClusterSize).into());
    }
    let launch = Launch {
        grid,
        block: [config.blockDimX, config.blockDimY, config.blockDimZ],
        dynamic_shared: config.sharedMemBytes,
        cooperative: asked.cooperative,
        cluster: asked.cluster,
    };
    let is_captured = || CuResult::Ok(streams::find(config.hStream, default)?.is_capturing());
    let events = asked.events(is_captured)?;
    if asked.updatable && !is_captured()? {
        return Err(CUDA_ERROR_NOT_SUPPORTED.into());
    }
    // SAFETY: the caller's duty.
    unsafe { functions::launch(f, launch, config.hStream, default, kernelParams, extra) }?;
    asked.remember_in_capture(config.hStream, default)?;
    if asked.updatable {
        let stream = streams::find(config.hStream, default)?;
        // SAFETY: as for `asked`.
        unsafe { functions::let_kernels_change(&stream, config.attrs, config.numAttrs) }?;
    }
    if asked.programmatic {
        streams::find(config.hStream, default)?.let_captured_kernel_begin_early()?;
    }
    for (event, start) in events {
        event.record_within_kernel(&*streams::find(config.hStream, default)?, start)?;
    }
    Ok(())
}

#[entry_point(ptsz)]
unsafe fn cuLaunchCooperativeKernel(
    default: DefaultStream,
    f: CUfunction,
    gridDimX: u32,
    gridDimY: u32,
    gridDimZ: u32,
    blockDimX: u32,
    blockDimY: u32,
    blockDimZ: u32,
    sharedMemBytes: u32,
    hStream: CUstream,
    kernelParams: *mut *mut c_void,
) -> CuResult {
    let launch = Launch {
        grid: [gridDimX, gridDimY, gridDimZ],
        block: [blockDimX, blockDimY, blockDimZ],
        dynamic_shared: sharedMemBytes,
        cooperative: true,
        cluster: None,
    };
    // SAFETY: the caller's duty.
    unsafe { functions::launch(f, launch, hStream, default, kernelParams, null_mut()) }
}

/// Deprecated: one cooperative launch for each device, none of which begins before the streams of all have got there.
#[entry_point]
unsafe fn cuLaunchCooperativeKernelMultiDevice(
    launchParamsList: *mut CUDA_LAUNCH_PARAMS,
    numDevices: u32,
    flags: u32,
) -> CuResult {
    let known = CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC
        | CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC;
    if launchParamsList.is_null() || numDevices == 0 || flags & !known != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    // SAFETY: the manual wants as many launches.
    let launches = unsafe { std::slice::from_raw_parts(launchParamsList, numDevices as usize) };
    // SAFETY: their parameters are the caller's duty.
    unsafe { functions::launch_on_devices(launches, flags) }
}

/// Deprecated: the block shape of the next `cuLaunch`.
#[entry_point]
fn cuFuncSetBlockShape(hfunc: CUfunction, x: i32, y: i32, z: i32) -> CuResult {
    let block = [x, y, z].map(|size| u32::try_from(size).unwrap_or(0));
    let most = u64::from(MAX_THREADS_PER_BLOCK);
    let threads = block.iter().map(|size| u64::from(*size)).fold(1, u64::saturating_mul);
    if !(1..=most).contains(&threads) || block[2] > MAX_BLOCK[2] {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    find(hfunc)?.prepare_block(block);
    Ok(())
}

/// Deprecated: the dynamic shared memory of the next `cuLaunch`.
#[entry_point]
fn cuFuncSetSharedSize(hfunc: CUfunction, bytes: u32) -> CuResult {
    find(hfunc)?.prepare_shared(bytes);
    Ok(())
}

/// Deprecated: the bytes of parameters that `cuLaunch` passes.
#[entry_point]
fn cuParamSetSize(hfunc: CUfunction, numbytes: u32) -> CuResult {
    find(hfunc)?.prepare_parameters(numbytes as usize, &[])
}

/// Deprecated: an integer parameter of the next `cuLaunch`.
#[entry_point]
fn cuParamSeti(hfunc: CUfunction, offset: i32, value: u32) -> CuResult {
    set_parameter(hfunc, offset, &value.to_ne_bytes())
}

/// Deprecated: a floating-point parameter of the next `cuLaunch`.
#[entry_point]
fn cuParamSetf(hfunc: CUfunction, offset: i32, value: f32) -> CuResult {
    set_parameter(hfunc, offset, &value.to_ne_bytes())
}

/// Deprecated: a parameter of the next `cuLaunch`.
#[entry_point]
unsafe fn cuParamSetv(hfunc: CUfunction, offset: i32, ptr: *mut c_void, numbytes: u32) -> CuResult {
    if ptr.is_null() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    // SAFETY: the manual wants so many bytes.
    set_parameter(hfunc, offset, unsafe { std::slice::from_raw_parts(ptr.cast(), numbytes as usize) })
}

/// Deprecated: a module's texture references are there for its kernels in any case.
#[entry_point]
fn cuParamSetTexRef(hfunc: CUfunction, texunit: i32, hTexRef: CUtexref) -> CuResult {
    find(hfunc)?;
    texture_references::find(hTexRef)?;
    // The only unit that is left.
    if texunit == CU_PARAM_TR_DEFAULT { Ok(()) } else { Err(CUDA_ERROR_INVALID_VALUE.into()) }
}

fn set_parameter(function: CUfunction, offset: i32, bytes: &[u8]) -> CuResult {
    let offset = usize::try_from(offset).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    find(function)?.prepare_parameters(offset, bytes)
}

/// Deprecated: launches one block with what was set before.
#[entry_point]
fn cuLaunch(f: CUfunction) -> CuResult {
    functions::launch_prepared(f, [1, 1, 1], CUstream::NULL)
}

/// Deprecated: launches a grid with what was set before.
#[entry_point]
fn cuLaunchGrid(f: CUfunction, grid_width: i32, grid_height: i32) -> CuResult {
    functions::launch_prepared(f, grid(grid_width, grid_height)?, CUstream::NULL)
}

/// Deprecated: launches a grid with what was set before.
#[entry_point]
fn cuLaunchGridAsync(f: CUfunction, grid_width: i32, grid_height: i32, hStream: CUstream) -> CuResult {
    functions::launch_prepared(f, grid(grid_width, grid_height)?, hStream)
}

fn grid(width: i32, height: i32) -> CuResult<[u32; 3]> {
    let size = |number: i32| u32::try_from(number).map_err(|_| CUDA_ERROR_INVALID_VALUE);
    Ok([size(width)?, size(height)?, 1])
}
