//! Memory management: notifications about a device.
//!
//! There is one kind: that a process has more memory than it was granted. Nobody grants processes memory here, so nothing is
//! ever sent.

use crate::error::CuResult;
use crate::handle::{Kind, Table};
use crate::platform::device;
use cuda_abi::args::Out;
use cuda_abi::driver::*;
use entry_macros::entry_point;
use std::ffi::c_void;
use std::sync::Arc;

/// The devices of the registrations.
static REGISTRATIONS: Table<CUdevice> = Table::new(Kind::Notification);

#[entry_point]
fn cuDeviceRegisterAsyncNotification(
    device: CUdevice,
    callbackFunc: CUasyncCallback,
    _userData: *mut c_void,
    callback: Out<CUasyncCallbackHandle>,
) -> CuResult {
    callback.check()?;
    crate::platform::device(device)?;
    callbackFunc.ok_or(CUDA_ERROR_INVALID_VALUE)?;
    let handle = REGISTRATIONS.insert(Arc::new(device)).ok_or(CUDA_ERROR_OUT_OF_MEMORY)?;
    callback.set(CUasyncCallbackHandle(handle))?;
    Ok(())
}

#[entry_point]
fn cuDeviceUnregisterAsyncNotification(dev: CUdevice, callback: CUasyncCallbackHandle) -> CuResult {
    device(dev)?;
    match REGISTRATIONS.get(callback.0) {
        Ok(registered) if *registered == dev => {}
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
    REGISTRATIONS.remove(callback.0).map(drop).map_err(|_| CUDA_ERROR_INVALID_VALUE.into())
}
