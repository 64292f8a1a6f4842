//! Primary context management.

use crate::contexts::primary;
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

#[entry_point]
fn cuDevicePrimaryCtxSetFlags(dev: CUdevice, flags: u32) -> CuResult {
    primary(dev)?.set_flags(flags)
}

#[entry_point]
fn cuDevicePrimaryCtxSetFlags_v2(dev: CUdevice, flags: u32) -> CuResult {
    primary(dev)?.set_flags(flags)
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
