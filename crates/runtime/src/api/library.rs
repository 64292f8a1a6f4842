//! Library management. Libraries and their kernels are the driver's own; both APIs number the options alike.

use super::prelude::*;
use crate::context;

/// Loads code for every context.
#[entry_point]
fn cudaLibraryLoadData(
    library: Out<cudaLibrary_t>,
    code: *const c_void,
    jitOptions: *mut cudaJitOption,
    jitOptionsValues: *mut *mut c_void,
    numJitOptions: u32,
    libraryOptions: *mut cudaLibraryOption,
    libraryOptionValues: *mut *mut c_void,
    numLibraryOptions: u32,
) -> CudaResult {
    context::initialize()?;
    let library = library.check()?;
    call!(cuLibraryLoadData(
        library.as_ptr(),
        code,
        jitOptions.cast(),
        jitOptionsValues,
        numJitOptions,
        libraryOptions.cast(),
        libraryOptionValues,
        numLibraryOptions
    ))
}

/// Loads code from a file for every context.
#[entry_point]
fn cudaLibraryLoadFromFile(
    library: Out<cudaLibrary_t>,
    fileName: Text,
    jitOptions: *mut cudaJitOption,
    jitOptionsValues: *mut *mut c_void,
    numJitOptions: u32,
    libraryOptions: *mut cudaLibraryOption,
    libraryOptionValues: *mut *mut c_void,
    numLibraryOptions: u32,
) -> CudaResult {
    context::initialize()?;
    let library = library.check()?;
    call!(cuLibraryLoadFromFile(
        library.as_ptr(),
        fileName.get()?.as_ptr(),
        jitOptions.cast(),
        jitOptionsValues,
        numJitOptions,
        libraryOptions.cast(),
        libraryOptionValues,
        numLibraryOptions
    ))
}

/// Unloads a library.
#[entry_point]
fn cudaLibraryUnload(library: cudaLibrary_t) -> CudaResult {
    context::initialize()?;
    call!(cuLibraryUnload(library))
}

/// A library's kernel by name.
#[entry_point]
fn cudaLibraryGetKernel(pKernel: Out<cudaKernel_t>, library: cudaLibrary_t, name: Text) -> CudaResult {
    context::initialize()?;
    let kernel = pKernel.check()?;
    call!(cuLibraryGetKernel(kernel.as_ptr(), library, name.get()?.as_ptr()))
}

/// How many kernels a library has.
#[entry_point]
fn cudaLibraryGetKernelCount(count: Out<u32>, lib: cudaLibrary_t) -> CudaResult {
    context::initialize()?;
    let count = count.check()?;
    call!(cuLibraryGetKernelCount(count.as_ptr(), lib))
}

/// At most `numKernels` of a library's kernels.
#[entry_point]
fn cudaLibraryEnumerateKernels(
    kernels: *mut cudaKernel_t,
    numKernels: u32,
    lib: cudaLibrary_t,
) -> CudaResult {
    context::initialize()?;
    call!(cuLibraryEnumerateKernels(kernels, numKernels, lib))
}

/// The current context's copy of a library's variable; either result may be unwanted.
#[entry_point]
fn cudaLibraryGetGlobal(
    dptr: Out<*mut c_void>,
    bytes: Out<usize>,
    library: cudaLibrary_t,
    name: Text,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuLibraryGetGlobal(dptr.as_ptr().cast(), bytes.as_ptr(), library, name.get()?.as_ptr()))
}

/// A library's managed variable; either result may be unwanted.
#[entry_point]
fn cudaLibraryGetManaged(
    dptr: Out<*mut c_void>,
    bytes: Out<usize>,
    library: cudaLibrary_t,
    name: Text,
) -> CudaResult {
    context::initialize()?;
    call!(cuLibraryGetManaged(dptr.as_ptr().cast(), bytes.as_ptr(), library, name.get()?.as_ptr()))
}

/// The address of a function that host and device share.
#[entry_point]
fn cudaLibraryGetUnifiedFunction(fptr: Out<*mut c_void>, library: cudaLibrary_t, symbol: Text) -> CudaResult {
    context::initialize()?;
    let function = fptr.check()?;
    call!(cuLibraryGetUnifiedFunction(function.as_ptr(), library, symbol.get()?.as_ptr()))
}

/// Sets what a library's kernel may have on one device.
#[entry_point]
fn cudaKernelSetAttributeForDevice(
    kernel: cudaKernel_t,
    attr: cudaFuncAttribute,
    value: i32,
    device: i32,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuKernelSetAttribute(CUfunction_attribute(attr.0), value, kernel, device))
}
