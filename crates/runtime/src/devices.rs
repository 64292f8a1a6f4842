//! Devices: how many there are and which one a thread uses.

use cuda_abi::shim::locked;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering};

use cuda_abi::driver::CUdevice;
use cuda_abi::runtime::{CudaResult, cudaErrorInitializationError, cudaErrorInvalidDevice};

use crate::driver::call;
use crate::{context, fork, thread};

/// The devices that `cudaSetValidDevices` named, most wanted first; empty if it was not called.
static PREFERRED: Mutex<Vec<CUdevice>> = Mutex::new(Vec::new());

/// The number of devices. It never changes, and host functions in streams may ask for it, who may not ask the driver.
pub fn count() -> CudaResult<i32> {
    static COUNT: AtomicI32 = AtomicI32::new(0);
    match COUNT.load(Ordering::Relaxed) {
        _ if fork::is_child() => Err(cudaErrorInitializationError),
        0 => {
            context::initialize()?;
            let mut count = 0;
            call!(cuDeviceGetCount(&mut count))?;
            COUNT.store(count, Ordering::Relaxed);
            Ok(count)
        }
        known => Ok(known),
    }
}

/// Fails for a number that no device has.
pub fn check(device: CUdevice) -> CudaResult<CUdevice> {
    if (0..count()?).contains(&device) { Ok(device) } else { Err(cudaErrorInvalidDevice) }
}

/// The device that the thread uses when no context is current: its own choice, the program's, the first.
pub fn of_thread() -> CUdevice {
    thread::chosen_device().or_else(|| locked(&PREFERRED).first().copied()).unwrap_or(0)
}

/// Sets which devices threads without a choice of their own may get, most wanted first.
pub fn prefer(devices: Vec<CUdevice>) -> CudaResult {
    devices.iter().try_for_each(|&device| check(device).map(drop))?;
    *locked(&PREFERRED) = devices;
    Ok(())
}
