//! The devices of this process.

use crate::error::CuResult;
use crate::{coredump, log};
use cuda_abi::driver::*;
use cuda_abi::shim::locked;
use device::memory::ContextId;
use device::{Device, FaultReport, Platform};
use platform::WithoutCompiler;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// Never dropped: threads may be at work in it while the process exits.
static PLATFORM: OnceLock<Platform> = OnceLock::new();

/// The process exits, and what was there before the driver was initialised is being destroyed.
static OVER: AtomicBool = AtomicBool::new(false);

/// Makes the devices, once.
pub fn initialise() -> CuResult {
    static MAKING: Mutex<()> = Mutex::new(());
    // Before the lock: a thread of the process that this one was forked from may hold it.
    Platform::check_process()?;
    check_over()?;
    let _making = locked(&MAKING);
    if PLATFORM.get().is_none() {
        device::fault::tell(kernel_failed);
        let made = platform::from_environment(WithoutCompiler::Refuse)?;
        assert!(PLATFORM.set(made).is_ok(), "made under the lock");
        // Handlers run in the reverse of their order: those that came later still find the driver at work.
        // SAFETY: the handler only sets a flag. If there is no room for it, the driver works to the last.
        unsafe { libc::atexit(end) };
    }
    Ok(())
}

extern "C" fn end() {
    OVER.store(true, Ordering::Release);
}

fn check_over() -> CuResult {
    if OVER.load(Ordering::Acquire) { Err(CUDA_ERROR_DEINITIALIZED.into()) } else { Ok(()) }
}

/// Called where a context fails, by a thread that may hold the device's locks.
fn kernel_failed(context: ContextId, report: &FaultReport) {
    log::kernel_failed(report);
    coredump::kernel_failed(context, report);
}

/// The devices. [`CUDA_ERROR_NOT_INITIALIZED`] before [`initialise`] and in a process forked after it, [`CUDA_ERROR_DEINITIALIZED`] once
/// the process destroys what was there before.
pub fn platform() -> CuResult<&'static Platform> {
    Platform::check_process()?;
    check_over()?;
    Ok(PLATFORM.get().ok_or(CUDA_ERROR_NOT_INITIALIZED)?)
}

/// The device of an ordinal.
pub fn device(ordinal: CUdevice) -> CuResult<&'static Arc<Device>> {
    let index = usize::try_from(ordinal).map_err(|_| CUDA_ERROR_INVALID_DEVICE)?;
    Ok(platform()?.device(index)?)
}
