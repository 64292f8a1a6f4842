//! Functions of the time when each host thread had a context of its own: they are those of the device.

use crate::api::prelude::*;
use crate::context;

/// Destroys everything in the primary context of the thread's device.
#[entry_point]
fn cudaThreadExit() -> CudaResult {
    context::reset(context::device()?)
}

/// Waits for all work of the current context.
#[entry_point]
fn cudaThreadSynchronize() -> CudaResult {
    context::ensure_current()?;
    call!(cuCtxSynchronize())
}

/// A limit of the current context.
#[entry_point]
fn cudaThreadGetLimit(pValue: Out<usize>, limit: cudaLimit) -> CudaResult {
    context::ensure_current()?;
    let value = pValue.check()?;
    call!(cuCtxGetLimit(value.as_ptr(), CUlimit(limit.0)))
}

/// Sets a limit of the current context.
#[entry_point]
fn cudaThreadSetLimit(limit: cudaLimit, value: usize) -> CudaResult {
    context::ensure_current()?;
    call!(cuCtxSetLimit(CUlimit(limit.0), value))
}

/// The current context's preferred split between L1 cache and shared memory.
#[entry_point]
fn cudaThreadGetCacheConfig(pCacheConfig: Out<cudaFuncCache>) -> CudaResult {
    context::ensure_current()?;
    let config = pCacheConfig.check()?;
    call!(cuCtxGetCacheConfig(config.as_ptr().cast()))
}

/// Sets the current context's preferred split between L1 cache and shared memory.
#[entry_point]
fn cudaThreadSetCacheConfig(cacheConfig: cudaFuncCache) -> CudaResult {
    context::ensure_current()?;
    call!(cuCtxSetCacheConfig(CUfunc_cache(cacheConfig.0)))
}
