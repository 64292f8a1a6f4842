//! Initialisation and the current context.
//!
//! The runtime works in the context that is current in the driver's sense. If none is, the primary context of the
//! thread's device is retained and made current, whichever thread comes first.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cuda_abi::driver::{CUcontext, CUdevice};
use cuda_abi::runtime::{CUDART_VERSION, CudaResult, cudaErrorInsufficientDriver, cudaErrorInvalidDevice};

use crate::driver::call;
use crate::{devices, thread};

/// Initialises the driver, once.
pub fn initialize() -> CudaResult {
    static INITIALIZED: AtomicBool = AtomicBool::new(false);
    if INITIALIZED.load(Ordering::Acquire) {
        return Ok(());
    }
    let mut version = 0;
    call!(cuDriverGetVersion(&mut version))?;
    if version < CUDART_VERSION {
        return Err(cudaErrorInsufficientDriver);
    }
    // Safe to repeat: a second thread that comes here meanwhile initialises what is initialised already.
    call!(cuInit(0))?;
    INITIALIZED.store(true, Ordering::Release);
    Ok(())
}

/// Makes sure that a context is current.
pub fn ensure_current() -> CudaResult {
    current().map(drop)
}

/// The current context; the primary one of the thread's device is made current if there is none.
pub fn current() -> CudaResult<CUcontext> {
    initialize()?;
    let mut context = CUcontext::NULL;
    call!(cuCtxGetCurrent(&mut context))?;
    if context.is_null() {
        return activate(devices::of_thread());
    }
    if RESET.load(Ordering::Acquire) != 0 {
        retain_again(context)?;
    }
    Ok(context)
}

/// Makes the device's primary context current in this thread.
pub fn activate(device: CUdevice) -> CudaResult<CUcontext> {
    let context = primary(device)?;
    call!(cuCtxSetCurrent(context))?;
    Ok(context)
}

/// The device's primary context, retained by the runtime.
pub fn primary(device: CUdevice) -> CudaResult<CUcontext> {
    initialize()?;
    let index = usize::try_from(device).map_err(|_| cudaErrorInvalidDevice)?;
    let mut primaries = lock();
    // One retention for the whole process, under the lock: threads that come first together share it.
    if let Some(Some(primary)) = primaries.get(index)
        && primary.retained
    {
        return Ok(primary.context);
    }
    let mut context = CUcontext::NULL;
    call!(cuDevicePrimaryCtxRetain(&mut context, device))?;
    if primaries.len() <= index {
        primaries.resize(index + 1, None);
    }
    if let Some(Primary { retained: false, .. }) = primaries[index] {
        RESET.fetch_sub(1, Ordering::AcqRel);
    }
    primaries[index] = Some(Primary { context, retained: true });
    Ok(context)
}

/// Destroys everything in the device's primary context. The next use of the device retains it again.
pub fn reset(device: CUdevice) -> CudaResult {
    let (mut flags, mut active) = (0, 0);
    initialize()?;
    call!(cuDevicePrimaryCtxGetState(device, &mut flags, &mut active))?;
    if active != 0 {
        // The program itself may have retained it and have it current: the runtime must know it to retain it again.
        primary(device)?;
    }
    let mut primaries = lock();
    call!(cuDevicePrimaryCtxReset_v2(device))?;
    if let Some(Some(primary)) = usize::try_from(device).ok().and_then(|index| primaries.get_mut(index))
        && primary.retained
    {
        primary.retained = false;
        RESET.fetch_add(1, Ordering::AcqRel);
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Primary {
    context: CUcontext,
    retained: bool,
}

/// The primary contexts that the runtime has used, by device.
static PRIMARIES: Mutex<Vec<Option<Primary>>> = Mutex::new(Vec::new());

/// How many of them were reset and not retained since: threads may still have such a context current.
static RESET: AtomicUsize = AtomicUsize::new(0);

/// Retains the primary context again if it is `context` and was reset.
fn retain_again(context: CUcontext) -> CudaResult {
    let is_reset = |primary: &Option<Primary>| primary.is_some_and(|p| p.context == context && !p.retained);
    let device = lock().iter().position(is_reset);
    match device {
        Some(device) => activate(device as CUdevice).map(drop),
        None => Ok(()),
    }
}

fn lock() -> MutexGuard<'static, Vec<Option<Primary>>> {
    // Each change is complete before anything can panic.
    PRIMARIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The device of the current context, or the one whose primary context the thread's next call makes current.
pub fn device() -> CudaResult<CUdevice> {
    initialize()?;
    let mut context = CUcontext::NULL;
    call!(cuCtxGetCurrent(&mut context))?;
    if context.is_null() {
        return Ok(devices::of_thread());
    }
    let mut device = 0;
    match call!(cuCtxGetDevice(&mut device)) {
        Ok(()) => Ok(device),
        // A context that was reset or destroyed may no longer tell.
        Err(_) => Ok(thread::chosen_device().unwrap_or(0)),
    }
}
