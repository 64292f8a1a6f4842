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

/// The number of devices, once the driver has been initialised.
static COUNT: AtomicI32 = AtomicI32::new(0);

/// Asks the driver, which has just been initialised, how many devices there are.
pub fn find() -> CudaResult {
    let mut count = 0;
    call!(cuDeviceGetCount(&mut count))?;
    COUNT.store(count, Ordering::Relaxed);
    Ok(())
}

/// The number of devices. It never changes, and those may ask for it who may not ask the driver: host functions in streams, and children
/// of the process.
pub fn count() -> CudaResult<i32> {
    if COUNT.load(Ordering::Relaxed) == 0 {
        context::initialize()?;
    }
    Ok(COUNT.load(Ordering::Relaxed))
}

/// Fails for a number that no device has.
pub fn check(device: CUdevice) -> CudaResult<CUdevice> {
    if fork::is_child() {
        return Err(cudaErrorInitializationError);
    }
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
