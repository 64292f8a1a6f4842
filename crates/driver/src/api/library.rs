//! Library management: code that is loaded into each context on demand.

use super::module::given;
use crate::error::CuResult;
use crate::functions;
use crate::images;
use crate::jit::{JitOptions, Use};
use crate::libraries::{self, Kernel, find, find_kernel};
use crate::platform::device;
use cuda_abi::args::{Array, Out, Text};
use cuda_abi::driver::*;
use entry_macros::entry_point;
use std::ffi::{c_char, c_void};
use std::sync::Arc;

/// Needs no context. The image is copied, whatever the options say about keeping it.
#[entry_point]
unsafe fn cuLibraryLoadData(
    library: Out<CUlibrary>,
    code: *const c_void,
    jitOptions: Array<CUjit_option>,
    jitOptionsValues: Array<*mut c_void>,
    numJitOptions: u32,
    libraryOptions: Array<CUlibraryOption>,
    _libraryOptionValues: Array<*mut c_void>,
    numLibraryOptions: u32,
) -> CuResult {
    library.check()?;
    check_options(libraryOptions, numLibraryOptions)?;
    let mut options = JitOptions::read(numJitOptions, jitOptions, jitOptionsValues, Use::Load)?;
    // SAFETY: the caller's duty.
    let texts = unsafe { images::at(code, options.sm()?) };
    let loaded = texts.and_then(|texts| libraries::load(texts, &mut options));
    options.finish();
    library.set(loaded?)?;
    Ok(())
}

#[entry_point]
fn cuLibraryLoadFromFile(
    library: Out<CUlibrary>,
    fileName: Text,
    jitOptions: Array<CUjit_option>,
    jitOptionsValues: Array<*mut c_void>,
    numJitOptions: u32,
    libraryOptions: Array<CUlibraryOption>,
    _libraryOptionValues: Array<*mut c_void>,
    numLibraryOptions: u32,
) -> CuResult {
    library.check()?;
    check_options(libraryOptions, numLibraryOptions)?;
    let mut options = JitOptions::read(numJitOptions, jitOptions, jitOptionsValues, Use::Load)?;
    let bytes = images::read_file(given(&fileName)?)?;
    let loaded = libraries::load(images::of_bytes(&bytes, options.sm()?), &mut options);
    options.finish();
    library.set(loaded?)?;
    Ok(())
}

fn check_options(options: Array<CUlibraryOption>, count: u32) -> CuResult {
    for index in 0..count as usize {
        let option = options.get(index)?;
        if option == CU_LIBRARY_NUM_OPTIONS || option.name().is_none() {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
    }
    Ok(())
}

#[entry_point]
fn cuLibraryUnload(library: CUlibrary) -> CuResult {
    libraries::unload(library)
}

#[entry_point]
fn cuLibraryGetKernel(pKernel: Out<CUkernel>, library: CUlibrary, name: Text) -> CuResult {
    pKernel.check()?;
    let name = name.get()?;
    pKernel.set(find(library)?.kernel(name)?)?;
    Ok(())
}

#[entry_point]
fn cuLibraryGetKernelCount(count: Out<u32>, lib: CUlibrary) -> CuResult {
    count.check()?.set(find(lib)?.kernel_count() as u32)?;
    Ok(())
}

#[entry_point]
fn cuLibraryEnumerateKernels(kernels: Array<CUkernel>, numKernels: u32, lib: CUlibrary) -> CuResult {
    let all = find(lib)?.kernels()?;
    if kernels.is_null() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    for (index, kernel) in all.into_iter().take(numKernels as usize).enumerate() {
        kernels.set(index, kernel)?;
    }
    Ok(())
}

/// The library's module in the current context.
#[entry_point]
fn cuLibraryGetModule(pMod: Out<CUmodule>, library: CUlibrary) -> CuResult {
    pMod.check()?.set(find(library)?.module()?.handle)?;
    Ok(())
}

/// A variable's place in the current context: its address, its size, or both.
#[entry_point]
fn cuLibraryGetGlobal(dptr: Out<CUdeviceptr>, bytes: Out<usize>, library: CUlibrary, name: Text) -> CuResult {
    if dptr.is_null() && bytes.is_null() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let name = name.get()?;
    let (address, size) = find(library)?.module()?.global(name)?;
    dptr.set_if_wanted(address);
    bytes.set_if_wanted(size);
    Ok(())
}

/// A managed variable's place, which is the same in every context.
#[entry_point]
fn cuLibraryGetManaged(
    dptr: Out<CUdeviceptr>,
    bytes: Out<usize>,
    library: CUlibrary,
    name: Text,
) -> CuResult {
    let (address, size) = find(library)?.managed(given(&name)?)?;
    dptr.set_if_wanted(address);
    bytes.set_if_wanted(size);
    Ok(())
}

#[entry_point]
fn cuKernelGetName(name: Out<*const c_char>, hfunc: CUkernel) -> CuResult {
    name.check()?.set(given_kernel(hfunc)?.name.as_ptr())?;
    Ok(())
}

#[entry_point]
fn cuKernelGetLibrary(pLib: Out<CUlibrary>, kernel: CUkernel) -> CuResult {
    pLib.check()?.set(find_kernel(kernel)?.library)?;
    Ok(())
}

/// The kernel in the current context.
#[entry_point]
fn cuKernelGetFunction(pFunc: Out<CUfunction>, kernel: CUkernel) -> CuResult {
    pFunc.check()?.set(find_kernel(kernel)?.function()?.handle)?;
    Ok(())
}

#[entry_point]
fn cuKernelGetParamInfo(
    kernel: CUkernel,
    paramIndex: usize,
    paramOffset: Out<usize>,
    paramSize: Out<usize>,
) -> CuResult {
    let parameter = functions::parameter(given_kernel(kernel)?.kernel.entry(), paramIndex)?;
    paramOffset.check()?.set(parameter.offset)?;
    paramSize.set_if_wanted(parameter.size);
    Ok(())
}

/// Functions that host and device share under one address need a table of the host's, which no device here uses.
#[entry_point]
fn cuLibraryGetUnifiedFunction(fptr: Out<*mut c_void>, library: CUlibrary, symbol: Text) -> CuResult {
    fptr.check()?;
    symbol.get()?;
    find(library)?;
    Err(CUDA_ERROR_INVALID_VALUE.into())
}

/// The attribute is the same on every device.
#[entry_point]
fn cuKernelGetAttribute(
    pi: Out<i32>,
    attrib: CUfunction_attribute,
    kernel: CUkernel,
    dev: CUdevice,
) -> CuResult {
    pi.check()?;
    device(dev)?;
    pi.set(find_kernel(kernel)?.function()?.attribute(attrib)?)?;
    Ok(())
}

#[entry_point]
fn cuKernelSetAttribute(attrib: CUfunction_attribute, val: i32, kernel: CUkernel, dev: CUdevice) -> CuResult {
    device(dev)?;
    find_kernel(kernel)?.function()?.set_attribute(attrib, val)
}

/// As [`cuFuncSetCacheConfig`](super::execution).
#[entry_point]
fn cuKernelSetCacheConfig(kernel: CUkernel, config: CUfunc_cache, dev: CUdevice) -> CuResult {
    device(dev)?;
    find_kernel(kernel)?.function()?.set_cache_config(config)
}

/// The kernel of a handle, for functions to which null is a wrong value rather than a wrong handle.
fn given_kernel(handle: CUkernel) -> CuResult<Arc<Kernel>> {
    if handle.is_null() { Err(CUDA_ERROR_INVALID_VALUE.into()) } else { find_kernel(handle) }
}
