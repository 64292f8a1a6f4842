//! Kernels as programs name them: by host function, or by a driver's handle in its place.

use std::ffi::c_void;

use cuda_abi::driver::{CUfunction, CUkernel};
use cuda_abi::runtime::{CudaResult, cudaErrorInvalidDeviceFunction, cudaKernel_t};

use crate::driver::call;
use crate::{context, registry};

/// The kernel that `function` names. What is not a registered host function is taken for a handle, which the driver
/// knows or refuses.
pub fn named(function: *const c_void) -> CudaResult<cudaKernel_t> {
    if function.is_null() {
        return Err(cudaErrorInvalidDeviceFunction);
    }
    context::ensure_current()?;
    let address = function.addr();
    Ok(registry::kernel(address)?.unwrap_or(CUkernel(address)))
}

/// The kernel in the form in which launches and occupancy functions take it.
pub fn launchable(function: *const c_void) -> CudaResult<CUfunction> {
    Ok(as_function(named(function)?))
}

/// Launches and occupancy functions take a kernel of a library in the place of a function.
pub fn as_function(kernel: cudaKernel_t) -> CUfunction {
    CUfunction(kernel.0)
}

/// The kernel of a registered host function; nothing else will do.
pub fn registered(function: *const c_void) -> CudaResult<cudaKernel_t> {
    context::ensure_current()?;
    registry::kernel(function.addr())?.ok_or(cudaErrorInvalidDeviceFunction)
}

/// The kernel's function in the current context, for what belongs to a context.
pub fn in_context(function: *const c_void) -> CudaResult<CUfunction> {
    let kernel = named(function)?;
    let mut found = CUfunction::NULL;
    call!(cuKernelGetFunction(&mut found, kernel))?;
    Ok(found)
}
