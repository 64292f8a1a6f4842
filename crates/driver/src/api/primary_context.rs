//! Primary context management.

use crate::contexts::{self, primary};
use crate::error::{CuResult, Failure};
use cuda_abi::args::Out;
use cuda_abi::driver::*;
use entry_macros::entry_point;

#[entry_point]
fn cuDevicePrimaryCtxRetain(pctx: Out<CUcontext>, dev: CUdevice) -> CuResult {
    pctx.check()?.set(primary(dev)?.retain()?)?;
    Ok(())
}

/// The first version takes no offence where there is nothing to release.
#[entry_point]
fn cuDevicePrimaryCtxRelease(dev: CUdevice) -> CuResult {
    match primary(dev)?.release() {
        Err(Failure(CUDA_ERROR_INVALID_CONTEXT)) => Ok(()),
        outcome => outcome,
    }
}

#[entry_point]
fn cuDevicePrimaryCtxRelease_v2(dev: CUdevice) -> CuResult {
    primary(dev)?.release()
}

/// The first version forgets who uses it.
#[entry_point]
fn cuDevicePrimaryCtxReset(dev: CUdevice) -> CuResult {
    let primary = primary(dev)?;
    primary.reset()?;
    while primary.release().is_ok() {}
    Ok(())
}

#[entry_point]
fn cuDevicePrimaryCtxReset_v2(dev: CUdevice) -> CuResult {
    primary(dev)?.reset()
}

/// The first version wants a context that is not active.
#[entry_point]
fn cuDevicePrimaryCtxSetFlags(dev: CUdevice, flags: u32) -> CuResult {
    let primary = primary(dev)?;
    check_flags(flags)?;
    if primary.is_active() {
        return Err(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE.into());
    }
    primary.set_flags(flags)
}

#[entry_point]
fn cuDevicePrimaryCtxSetFlags_v2(dev: CUdevice, flags: u32) -> CuResult {
    let primary = primary(dev)?;
    check_flags(flags)?;
    primary.set_flags(flags)
}

/// Memory of the host is mapped in every primary context; to ask for that is refused.
fn check_flags(flags: u32) -> CuResult {
    if flags & CU_CTX_MAP_HOST != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    contexts::read_flags(flags).map(drop)
}

#[entry_point]
fn cuDevicePrimaryCtxGetState(dev: CUdevice, flags: Out<u32>, active: Out<i32>) -> CuResult {
    flags.check()?;
    active.check()?;
    let primary = primary(dev)?;
    flags.set(primary.flags())?;
    active.set(primary.is_active().into())?;
    Ok(())
}
