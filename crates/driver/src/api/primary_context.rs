//! Primary context management.

use crate::contexts::primary;
use crate::error::CuResult;
use cuda_abi::args::Out;
use cuda_abi::driver::*;
use entry_macros::entry_point;

#[entry_point]
fn cuDevicePrimaryCtxRetain(pctx: Out<CUcontext>, dev: CUdevice) -> CuResult {
    pctx.check()?.set(primary(dev)?.retain()?)?;
    Ok(())
}

#[entry_point]
fn cuDevicePrimaryCtxRelease(dev: CUdevice) -> CuResult {
    primary(dev)?.release()
}

#[entry_point]
fn cuDevicePrimaryCtxRelease_v2(dev: CUdevice) -> CuResult {
    primary(dev)?.release()
}

#[entry_point]
fn cuDevicePrimaryCtxReset(dev: CUdevice) -> CuResult {
    primary(dev)?.reset()
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
