//! Access to other devices' memory.

use super::prelude::*;
use crate::{context, devices};

/// Whether one device can reach another's memory.
#[entry_point]
fn cudaDeviceCanAccessPeer(canAccessPeer: Out<i32>, device: i32, peerDevice: i32) -> CudaResult {
    context::initialize()?;
    let can = canAccessPeer.check()?;
    call!(cuDeviceCanAccessPeer(can.as_ptr(), device, peerDevice))
}

/// Lets the current context reach the memory of the other device's primary context.
#[entry_point]
fn cudaDeviceEnablePeerAccess(peerDevice: i32, flags: u32) -> CudaResult {
    let peer = devices::check(peerDevice)?;
    context::ensure_current()?;
    call!(cuCtxEnablePeerAccess(context::primary(peer)?, flags))
}

/// Ends that.
#[entry_point]
fn cudaDeviceDisablePeerAccess(peerDevice: i32) -> CudaResult {
    let peer = devices::check(peerDevice)?;
    context::ensure_current()?;
    call!(cuCtxDisablePeerAccess(context::primary(peer)?))
}
