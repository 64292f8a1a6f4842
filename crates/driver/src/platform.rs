//! The devices of this process.

use crate::error::CuResult;
use cuda_abi::driver::*;
use device::{Device, Options, Platform};
use interp::Interpreter;
use jit::Jit;
use kernel_abi::{KernelBackend, WithFallback};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Never dropped: programs call the driver from their exit handlers.
static PLATFORM: OnceLock<Platform> = OnceLock::new();

/// Makes the devices, once.
pub fn initialise() -> CuResult {
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    Platform::check_process()?;
    if PLATFORM.get().is_none() {
        let made = Platform::new(Options::from_environment(), backend()?)?;
        assert!(PLATFORM.set(made).is_ok(), "made under the lock");
    }
    Ok(())
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

/// What runs kernels. `ANYWARP_BACKEND` says whether only the compiler (`jit`) or only the interpreter (`interp`) does; if it
/// is not set, the interpreter runs what the compiler does not support.
fn backend() -> CuResult<Arc<dyn KernelBackend>> {
    let name = std::env::var("ANYWARP_BACKEND").unwrap_or_default();
    let (jit, interp) = (|| Arc::new(Jit::default()), || Arc::new(Interpreter::default()));
    match name.as_str() {
        "" => Ok(Arc::new(WithFallback::new(jit(), interp()))),
        "jit" => Ok(jit()),
        "interp" => Ok(interp()),
        other => {
            eprintln!("anywarp: ANYWARP_BACKEND={other} is no back end");
            Err(CUDA_ERROR_INVALID_VALUE.into())
        }
    }
}
