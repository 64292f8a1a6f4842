//! Interactions with the Driver API.

use super::prelude::*;
use crate::kernels;

/// The driver's handle of a kernel, for every context.
#[entry_point]
fn cudaGetKernel(kernelPtr: Out<cudaKernel_t>, entryFuncAddr: *const c_void) -> CudaResult {
    let out = kernelPtr.check()?;
    out.set(kernels::registered(entryFuncAddr)?)?;
    Ok(())
}

/// The driver's handle of a kernel in the current context.
#[entry_point]
fn cudaGetFuncBySymbol(functionPtr: Out<cudaFunction_t>, symbolPtr: *const c_void) -> CudaResult {
    let out = functionPtr.check()?;
    let kernel = kernels::registered(symbolPtr)?;
    call!(cuKernelGetFunction(out.as_ptr(), kernel))
}
