//! Peer context memory access: every device reaches all memory.

use crate::contexts;
use crate::error::CuResult;
use crate::platform::device;
use cuda_abi::args::Out;
use cuda_abi::driver::*;
use entry_macros::entry_point;

#[entry_point]
fn cuDeviceCanAccessPeer(canAccessPeer: Out<i32>, dev: CUdevice, peerDev: CUdevice) -> CuResult {
    canAccessPeer.check()?;
    device(dev)?;
    device(peerDev)?;
    canAccessPeer.set((dev != peerDev).into())?;
    Ok(())
}

#[entry_point]
fn cuDeviceGetP2PAttribute(
    value: Out<i32>,
    attrib: CUdevice_P2PAttribute,
    srcDevice: CUdevice,
    dstDevice: CUdevice,
) -> CuResult {
    value.check()?;
    device(srcDevice)?;
    device(dstDevice)?;
    if srcDevice == dstDevice {
        return Err(CUDA_ERROR_INVALID_DEVICE.into());
    }
    value.set(match attrib {
        CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK => 0,
        CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED | CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED => 1,
        other => other.name().map(|_| 0).ok_or(CUDA_ERROR_INVALID_VALUE)?,
    })?;
    Ok(())
}

#[entry_point]
fn cuCtxEnablePeerAccess(peerContext: CUcontext, Flags: u32) -> CuResult {
    if Flags != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let peer = contexts::find(peerContext)?;
    contexts::current()?.enable_peer(&peer)
}

#[entry_point]
fn cuCtxDisablePeerAccess(peerContext: CUcontext) -> CuResult {
    let peer = contexts::find(peerContext)?;
    contexts::current()?.disable_peer(&peer)
}
