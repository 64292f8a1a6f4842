//! The devices of this process.

use crate::error::CuResult;
use crate::{coredump, log};
use cuda_abi::driver::*;
use cuda_abi::shim::locked;
use device::memory::ContextId;
use device::{Device, FaultReport, Platform};
use platform::WithoutCompiler;
use std::sync::{Arc, Mutex, OnceLock};

/// Never dropped: programs call the driver from their exit handlers.
static PLATFORM: OnceLock<Platform> = OnceLock::new();

/// Makes the devices, once.
pub fn initialise() -> CuResult {
    static MAKING: Mutex<()> = Mutex::new(());
    // Before the lock: a thread of the process that this one was forked from may hold it.
    Platform::check_process()?;
    let _making = locked(&MAKING);
    if PLATFORM.get().is_none() {
        device::fault::tell(kernel_failed);
        let made = platform::from_environment(WithoutCompiler::Refuse)?;
        assert!(PLATFORM.set(made).is_ok(), "made under the lock");
    }
    Ok(())
}

/// Called where a context fails, by a thread that may hold the device's locks.
fn kernel_failed(context: ContextId, report: &FaultReport) {
    log::kernel_failed(report);
    coredump::kernel_failed(context, report);
}

/// The devices. [`CUDA_ERROR_NOT_INITIALIZED`] before [`initialise`] and in a process forked after it.
pub fn platform() -> CuResult<&'static Platform> {
    Platform::check_process()?;
    Ok(PLATFORM.get().ok_or(CUDA_ERROR_NOT_INITIALIZED)?)
}

/// The device of an ordinal.
pub fn device(ordinal: CUdevice) -> CuResult<&'static Arc<Device>> {
    let index = usize::try_from(ordinal).map_err(|_| CUDA_ERROR_INVALID_DEVICE)?;
    Ok(platform()?.device(index)?)
}
