//! Module management: loading and looking up.

use crate::error::CuResult;
use crate::images;
use crate::jit::{JitOptions, Use};
use crate::modules::{self, find};
use crate::platform::platform;
use cuda_abi::args::{Array, Out, Text};
use cuda_abi::driver::*;
use entry_macros::entry_point;
use std::ffi::c_void;

/// Loads a file that holds an image.
#[entry_point]
fn cuModuleLoad(module: Out<CUmodule>, fname: Text) -> CuResult {
    module.check()?;
    let name = fname.get()?;
    if name.is_empty() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let bytes = images::read_file(name)?;
    module.set(modules::load(images::of_bytes(&bytes, images::sm()?), &mut JitOptions::none())?)?;
    Ok(())
}

/// Loads PTX text or a fat binary.
#[entry_point]
unsafe fn cuModuleLoadData(module: Out<CUmodule>, image: *const c_void) -> CuResult {
    module.check()?;
    // SAFETY: the caller's duty.
    let texts = unsafe { images::at(image, images::sm()?) }?;
    module.set(modules::load(texts, &mut JitOptions::none())?)?;
    Ok(())
}

#[entry_point]
unsafe fn cuModuleLoadDataEx(
    module: Out<CUmodule>,
    image: *const c_void,
    numOptions: u32,
    options: Array<CUjit_option>,
    optionValues: Array<*mut c_void>,
) -> CuResult {
    module.check()?;
    let mut options = JitOptions::read(numOptions, options, optionValues, Use::Load)?;
    // SAFETY: the caller's duty.
    let texts = unsafe { images::at(image, options.sm()?) };
    let loaded = texts.and_then(|texts| modules::load(texts, &mut options));
    options.finish();
    module.set(loaded?)?;
    Ok(())
}

#[entry_point]
unsafe fn cuModuleLoadFatBinary(module: Out<CUmodule>, fatCubin: *const c_void) -> CuResult {
    module.check()?;
    // SAFETY: the caller's duty.
    let texts = unsafe { images::at(fatCubin, images::sm()?) }?;
    module.set(modules::load(texts, &mut JitOptions::none())?)?;
    Ok(())
}

#[entry_point]
fn cuModuleUnload(hmod: CUmodule) -> CuResult {
    modules::unload(hmod)
}

/// A name, or the path of a file, which is not empty.
pub(super) fn given(name: &Text) -> CuResult<&std::ffi::CStr> {
    let name = name.get()?;
    if name.is_empty() { Err(CUDA_ERROR_INVALID_VALUE.into()) } else { Ok(name) }
}

#[entry_point]
fn cuModuleGetFunction(hfunc: Out<CUfunction>, hmod: CUmodule, name: Text) -> CuResult {
    hfunc.check()?;
    let name = given(&name)?;
    let module = find(hmod)?;
    hfunc.set(CUfunction::NULL)?;
    hfunc.set(module.function(name)?.handle)?;
    Ok(())
}

#[entry_point]
fn cuModuleGetFunctionCount(count: Out<u32>, r#mod: CUmodule) -> CuResult {
    count.check()?.set(find(r#mod)?.kernels().len() as u32)?;
    Ok(())
}

#[entry_point]
fn cuModuleEnumerateFunctions(functions: Array<CUfunction>, numFunctions: u32, r#mod: CUmodule) -> CuResult {
    let module = find(r#mod)?;
    if functions.is_null() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    for (index, kernel) in module.kernels().take(numFunctions as usize).enumerate() {
        functions.set(index, module.function_named(kernel.name())?.handle)?;
    }
    Ok(())
}

/// Address and size of a variable; one of the two places may be null.
#[entry_point]
fn cuModuleGetGlobal_v2(dptr: Out<CUdeviceptr>, bytes: Out<usize>, hmod: CUmodule, name: Text) -> CuResult {
    if dptr.is_null() && bytes.is_null() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let name = name.get()?;
    let module = find(hmod)?;
    dptr.set_if_wanted(CUdeviceptr(0));
    bytes.set_if_wanted(0);
    let (address, size) = module.global(name)?;
    dptr.set_if_wanted(address);
    bytes.set_if_wanted(size);
    Ok(())
}

/// The first version tells the lower halves.
#[entry_point]
fn cuModuleGetGlobal(dptr: Out<CUdeviceptr_v1>, bytes: Out<u32>, hmod: CUmodule, name: Text) -> CuResult {
    if dptr.is_null() && bytes.is_null() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let name = name.get()?;
    let (address, size) = find(hmod)?.global(name)?;
    dptr.set_if_wanted(address.0 as u32);
    bytes.set_if_wanted(size as u32);
    Ok(())
}

#[entry_point]
fn cuModuleGetTexRef(pTexRef: Out<CUtexref>, hmod: CUmodule, name: Text) -> CuResult {
    pTexRef.check()?.set(find(hmod)?.texture_reference(given(&name)?)?)?;
    Ok(())
}

#[entry_point]
fn cuModuleGetSurfRef(pSurfRef: Out<CUsurfref>, hmod: CUmodule, name: Text) -> CuResult {
    pSurfRef.check()?.set(find(hmod)?.surface_reference(given(&name)?)?)?;
    Ok(())
}

/// `LAZY` unless `CUDA_MODULE_LOADING` asks for `EAGER`.
#[entry_point]
fn cuModuleGetLoadingMode(mode: Out<CUmoduleLoadingMode>) -> CuResult {
    let eager = platform()?.options().eager;
    mode.set(if eager { CU_MODULE_EAGER_LOADING } else { CU_MODULE_LAZY_LOADING })?;
    Ok(())
}
