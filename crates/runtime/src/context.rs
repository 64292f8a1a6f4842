//! Initialisation and the current context.
//!
//! The runtime works in the context that is current in the driver's sense. If none is, the primary context of the
//! thread's device is retained and made current, whichever thread comes first.

use cuda_abi::shim::locked;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use cuda_abi::driver::{CUcontext, CUdevice};
use cuda_abi::runtime::*;

use crate::driver::call;
use crate::version::version;
use crate::{devices, ending, fork, thread};

/// Initialises the driver, once.
pub fn initialize() -> CudaResult {
    static INITIALIZED: AtomicBool = AtomicBool::new(false);
    if fork::is_child() {
        return Err(cudaErrorInitializationError);
    }
    if INITIALIZED.load(Ordering::Acquire) {
        return Ok(());
    }
    let mut driver_version = 0;
    call!(cuDriverGetVersion(&mut driver_version))?;
    if driver_version < version() {
        return Err(cudaErrorInsufficientDriver);
    }
    // Safe to repeat: a second thread that comes here meanwhile initialises what is initialised already.
    call!(cuInit(0))?;
    devices::find()?;
    fork::watch();
    ending::watch();
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
    if let Some(context) = retained(device) {
        return Ok(context);
    }
    // One retention for the whole process, under the lock: threads that come first together share it.
    primary_among(&mut lock(), device)
}

/// Destroys everything in the device's primary context. The next use of the device retains it again.
pub fn reset(device: CUdevice) -> CudaResult {
    initialize()?;
    let mut primaries = lock();
    if is_active(device)? {
        // The program itself may have retained it and have it current: the runtime must know it to retain it again.
        primary_among(&mut primaries, device)?;
    }
    if let Some(primary) = primaries.iter_mut().find(|primary| primary.device == device && primary.retained) {
        primary.retained = false;
        note_retained(device, CUcontext::NULL);
        RESET.fetch_add(1, Ordering::AcqRel);
        // After a fault there may be nothing left to release.
        let _ = call!(cuDevicePrimaryCtxRelease_v2(device));
    }
    call!(cuDevicePrimaryCtxReset_v2(device))
}

/// After the driver said with this code that the current context is destroyed, or is none: whether there is a new one now,
/// so that the call is worth repeating. That is so for primary contexts, which the program may reset through the driver, or
/// through a second runtime in the process.
pub fn renew(code: cudaError_t) -> CudaResult<bool> {
    let mut context = CUcontext::NULL;
    call!(cuCtxGetCurrent(&mut context))?;
    let mut primaries = lock();
    let Some(primary) = primaries.iter_mut().find(|primary| primary.context == context) else {
        return renew_unknown(&mut primaries, context);
    };
    let (device, active) = (primary.device, is_active(primary.device)?);
    if active && code != cudaErrorContextIsDestroyed {
        // Something else is wrong.
        return Ok(false);
    }
    // Unless another thread was here first.
    if primary.retained && !active {
        primary.retained = false;
        note_retained(device, CUcontext::NULL);
        RESET.fetch_add(1, Ordering::AcqRel);
        // Resetting leaves retentions as they are, at least with some drivers.
        let _ = call!(cuDevicePrimaryCtxRelease_v2(device));
    }
    let context = primary_among(&mut primaries, device)?;
    drop(primaries);
    call!(cuCtxSetCurrent(context))?;
    Ok(true)
}

/// The same where the runtime has not retained the context: it may be the primary one all the same, which the program or a
/// second runtime has reset. A primary context that is retained again has the handle that it had before.
fn renew_unknown(primaries: &mut Vec<Primary>, context: CUcontext) -> CudaResult<bool> {
    let device = devices::of_thread();
    if context.is_null() || primaries.iter().any(|primary| primary.device == device) || is_active(device)? {
        return Ok(false);
    }
    let found = primary_among(primaries, device)?;
    if found == context {
        return Ok(true);
    }
    primaries.retain(|primary| primary.device != device);
    note_retained(device, CUcontext::NULL);
    let _ = call!(cuDevicePrimaryCtxRelease_v2(device));
    Ok(false)
}

/// A primary context that the runtime has used.
struct Primary {
    device: CUdevice,
    context: CUcontext,
    retained: bool,
}

static PRIMARIES: Mutex<Vec<Primary>> = Mutex::new(Vec::new());

/// The retained ones among those of the first devices, or 0, to be looked at without the lock. Changed under it.
static RETAINED: [AtomicUsize; 64] = [const { AtomicUsize::new(0) }; 64];

/// The device's primary context, if the runtime is known to retain it.
fn retained(device: CUdevice) -> Option<CUcontext> {
    let place = RETAINED.get(usize::try_from(device).ok()?)?;
    Some(CUcontext(place.load(Ordering::Acquire))).filter(|context| !context.is_null())
}

fn note_retained(device: CUdevice, context: CUcontext) {
    if let Some(place) = usize::try_from(device).ok().and_then(|device| RETAINED.get(device)) {
        place.store(context.0, Ordering::Release);
    }
}

/// How many of them were reset and not retained since: threads may still have such a context current.
static RESET: AtomicUsize = AtomicUsize::new(0);

fn primary_among(primaries: &mut Vec<Primary>, device: CUdevice) -> CudaResult<CUcontext> {
    let known = primaries.iter_mut().find(|primary| primary.device == device);
    if let Some(Primary { context, retained: true, .. }) = known {
        return Ok(*context);
    }
    let mut context = CUcontext::NULL;
    call!(cuDevicePrimaryCtxRetain(&mut context, device)).map_err(unavailable)?;
    match known {
        Some(primary) => {
            *primary = Primary { device, context, retained: true };
            RESET.fetch_sub(1, Ordering::AcqRel);
        }
        None => primaries.push(Primary { device, context, retained: true }),
    }
    note_retained(device, context);
    Ok(context)
}

/// Where no context can be made because a kernel's fault has spoilt the process, as NVIDIA's driver has it, the device is
/// not to be had; other reasons stay what they are.
fn unavailable(reason: cudaError_t) -> cudaError_t {
    match reason {
        cudaErrorIllegalAddress
        | cudaErrorAssert
        | cudaErrorHardwareStackError
        | cudaErrorIllegalInstruction
        | cudaErrorMisalignedAddress
        | cudaErrorInvalidAddressSpace
        | cudaErrorInvalidPc
        | cudaErrorLaunchFailure => cudaErrorDevicesUnavailable,
        other => other,
    }
}

/// Retains the primary context again if it is `context` and was reset.
fn retain_again(context: CUcontext) -> CudaResult {
    let is_reset = |primary: &&Primary| primary.context == context && !primary.retained;
    let device = lock().iter().find(is_reset).map(|primary| primary.device);
    match device {
        Some(device) => activate(device).map(drop),
        None => Ok(()),
    }
}

fn is_active(device: CUdevice) -> CudaResult<bool> {
    let (mut flags, mut active) = (0, 0);
    call!(cuDevicePrimaryCtxGetState(device, &mut flags, &mut active))?;
    Ok(active != 0)
}

fn lock() -> MutexGuard<'static, Vec<Primary>> {
    locked(&PRIMARIES)
}

/// The device of the current context, or the one whose primary context the thread's next call makes current.
pub fn device() -> CudaResult<CUdevice> {
    initialize()?;
    let mut context = CUcontext::NULL;
    call!(cuCtxGetCurrent(&mut context))?;
    if context.is_null() {
        return Ok(devices::of_thread());
    }
    // Most of the time it is the primary context of the device that the thread chose, or of the first.
    let own = thread::chosen_device().unwrap_or(0);
    if retained(own) == Some(context) {
        return Ok(own);
    }
    let mut device = 0;
    match call!(cuCtxGetDevice(&mut device)) {
        Ok(()) => Ok(device),
        // A context that was reset or destroyed may no longer tell.
        Err(_) => Ok(thread::chosen_device().unwrap_or(0)),
    }
}
