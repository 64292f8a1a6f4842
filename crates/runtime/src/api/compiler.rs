//! What the compiler's glue calls: registration before `main`, launches written `<<<…>>>`.

use std::ffi::CStr;
use std::sync::Arc;

use super::execution;
use super::prelude::*;
use crate::registry::{self, Kernel, VariableKind};
use crate::thread::{self, CallConfiguration};

/// Records a fat binary by its wrapper. The result is the handle for the other registering functions.
#[entry_point]
fn __cudaRegisterFatBinary(fatCubin: *mut c_void) -> *mut *mut c_void {
    std::ptr::with_exposed_provenance_mut(registry::register_binary(fatCubin))
}

/// Says that all of a binary's kernels and variables have been named. Nothing waits for it here.
#[entry_point]
fn __cudaRegisterFatBinaryEnd(_fatCubinHandle: *mut *mut c_void) {}

/// Forgets a binary, when the program exits or the shared object that it came with is closed.
#[entry_point]
fn __cudaUnregisterFatBinary(fatCubinHandle: *mut *mut c_void) {
    registry::unregister_binary(fatCubinHandle.addr());
}

/// Records a kernel: `hostFun` is what the program calls, `deviceName` what the device code has.
#[entry_point]
unsafe fn __cudaRegisterFunction(
    fatCubinHandle: *mut *mut c_void,
    hostFun: *const c_char,
    _deviceFun: *mut c_char,
    deviceName: *const c_char,
    _threadLimit: i32,
    _tid: *mut c_void,
    _bid: *mut c_void,
    _bDim: *mut c_void,
    _gDim: *mut c_void,
    _wSize: *mut i32,
) {
    // SAFETY: the glue passes a name in the program's image.
    if let Some(name) = unsafe { name(deviceName) } {
        registry::register_kernel(fatCubinHandle.addr(), hostFun.addr(), name);
    }
}

/// Records a variable: `hostVar` is its shadow in the program.
#[entry_point]
unsafe fn __cudaRegisterVar(
    fatCubinHandle: *mut *mut c_void,
    hostVar: *mut c_char,
    _deviceAddress: *mut c_char,
    deviceName: *const c_char,
    _ext: i32,
    _size: usize,
    _constant: i32,
    _global: i32,
) {
    // SAFETY: the glue passes a name in the program's image.
    if let Some(name) = unsafe { name(deviceName) } {
        let kind = VariableKind::Device;
        registry::register_variable(fatCubinHandle.addr(), hostVar.addr(), name, kind);
    }
}

/// Records a managed variable: the host reaches it through the pointer at `hostVarPtrAddress`, which is set when the
/// binary is loaded.
#[entry_point]
unsafe fn __cudaRegisterManagedVar(
    fatCubinHandle: *mut *mut c_void,
    hostVarPtrAddress: *mut *mut c_void,
    _deviceAddress: *mut c_char,
    deviceName: *const c_char,
    _ext: i32,
    _size: usize,
    _constant: i32,
    _global: i32,
) {
    // SAFETY: the glue passes a name in the program's image.
    if let Some(name) = unsafe { name(deviceName) } {
        let host_pointer = hostVarPtrAddress.expose_provenance();
        let kind = VariableKind::Managed { host_pointer };
        registry::register_variable(fatCubinHandle.addr(), host_pointer, name, kind);
    }
}

/// Records a variable of the host, which device code reaches under `deviceName` at the host's address. Compilers that
/// take all of the host's memory to be the device's too register those that kernels name.
#[entry_point]
unsafe fn __cudaRegisterHostVar(
    fatCubinHandle: *mut *mut c_void,
    deviceName: *const c_char,
    hostVar: *mut c_char,
    _size: usize,
) {
    // SAFETY: the glue passes a name in the program's image.
    if let Some(name) = unsafe { name(deviceName) } {
        registry::register_host_variable(fatCubinHandle.addr(), hostVar.expose_provenance(), name);
    }
}

/// Records the functions and data whose addresses host and device share; the driver learns of them when the binary is
/// loaded.
#[entry_point]
fn __cudaRegisterUnifiedTable(
    fatCubinHandle: *mut *mut c_void,
    functionTable: *mut c_void,
    functionWindowSize: usize,
    dataTable: *mut c_void,
    dataWindowSize: usize,
) {
    let table = CUlibraryHostUniversalFunctionAndDataTable {
        functionTable,
        functionWindowSize,
        dataTable,
        dataWindowSize,
    };
    registry::register_unified_table(fatCubinHandle.addr(), table);
}

/// Loads a binary. Called before the host's first use of a managed variable; the result says whether it worked.
#[entry_point]
fn __cudaInitModule(fatCubinHandle: *mut *mut c_void) -> c_char {
    match registry::load(fatCubinHandle.addr()) {
        Ok(()) => 1,
        Err(code) => {
            thread::replace_last_error(code);
            0
        }
    }
}

/// Begins a launch: `<<<…>>>`. The kernel's stub takes the configuration up. The result is a code.
#[entry_point]
fn __cudaPushCallConfiguration(gridDim: dim3, blockDim: dim3, sharedMem: usize, stream: *mut c_void) -> u32 {
    let stream = CUstream(stream.expose_provenance());
    thread::push_configuration(CallConfiguration {
        grid: gridDim,
        block: blockDim,
        shared_bytes: sharedMem,
        stream,
    });
    cudaSuccess.0
}

/// Gives the kernel's stub the configuration of its launch.
#[entry_point]
fn __cudaPopCallConfiguration(
    gridDim: Out<dim3>,
    blockDim: Out<dim3>,
    sharedMem: Out<usize>,
    stream: *mut c_void,
) -> CudaResult {
    let configuration = thread::pop_configuration().ok_or(cudaErrorMissingConfiguration)?;
    // SAFETY: the glue passes the address of the variable that takes the stream.
    let stream = unsafe { Out::<cudaStream_t>::new(stream.cast()) };
    gridDim.set(configuration.grid)?;
    blockDim.set(configuration.block)?;
    sharedMem.set(configuration.shared_bytes)?;
    stream.set(configuration.stream)?;
    Ok(())
}

/// Gives a kernel's stub its handle for [`__cudaLaunchKernel`], once in the program's life.
///
/// The handle stands for what was registered, not for what the driver made of it, so that this needs no driver and
/// every launch reports why its binary cannot be loaded. The stub never gives it back: the record stays.
#[entry_point]
fn __cudaGetKernel(kernelPtr: Out<cudaKernel_t>, entryFuncAddr: *const c_void) -> CudaResult {
    let kernel = registry::kernel_record(entryFuncAddr.addr()).ok_or(cudaErrorInvalidDeviceFunction)?;
    kernelPtr.check()?.set(CUkernel(Arc::into_raw(kernel).expose_provenance()))?;
    Ok(())
}

/// Launches a kernel from its stub.
#[entry_point(ptsz)]
unsafe fn __cudaLaunchKernel(
    default: DefaultStream,
    kernel: cudaKernel_t,
    gridDim: dim3,
    blockDim: dim3,
    args: *mut *mut c_void,
    sharedMem: usize,
    stream: cudaStream_t,
) -> CudaResult {
    if kernel.is_null() {
        return Err(cudaErrorInvalidDeviceFunction);
    }
    // SAFETY: the stub passes the handle that it got from __cudaGetKernel, which leaked the record for it.
    let record = unsafe { &*std::ptr::with_exposed_provenance::<Kernel>(kernel.0) };
    let function = execution::launchable_record(record)?;
    execution::launch(default, function, gridDim, blockDim, args, sharedMem, stream)
}

/// A name that the glue passes.
///
/// # Safety
/// `name` is null or points to a text that ends in NUL and stays in place for `'a`.
unsafe fn name<'a>(name: *const c_char) -> Option<&'a CStr> {
    // SAFETY: not null, so a text by the function's contract.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })
}
