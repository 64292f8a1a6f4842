//! Device management.

use super::prelude::*;
use super::properties;
use crate::{context, devices, thread};

/// The number of devices.
#[entry_point]
fn cudaGetDeviceCount(count: Out<i32>) -> CudaResult {
    count.check()?.set(devices::count()?)?;
    Ok(())
}

/// The device of the calling thread.
#[entry_point]
fn cudaGetDevice(device: Out<i32>) -> CudaResult {
    device.check()?.set(context::device()?)?;
    Ok(())
}

/// Chooses the calling thread's device and makes its primary context current.
#[entry_point]
fn cudaSetDevice(device: i32) -> CudaResult {
    context::activate(devices::check(device)?)?;
    thread::choose_device(device);
    Ok(())
}

/// Brings a device's primary context to life without making it current.
#[entry_point]
fn cudaInitDevice(device: i32, deviceFlags: u32, flags: u32) -> CudaResult {
    let device = devices::check(device)?;
    if flags & cudaInitDeviceFlagsAreValid != 0 {
        call!(cuDevicePrimaryCtxSetFlags_v2(device, deviceFlags & !cudaDeviceMapHost))?;
    }
    context::primary(device)?;
    Ok(())
}

/// Names the devices that threads without a choice of their own may get. An empty list means any.
#[entry_point]
fn cudaSetValidDevices(device_arr: Array<i32>, len: i32) -> CudaResult {
    let count = devices::count()?;
    let len = usize::try_from(len).map_err(|_| cudaErrorInvalidValue)?;
    if len > count as usize {
        return Err(cudaErrorInvalidValue);
    }
    let list = (0..len).map(|index| device_arr.get(index)).collect::<Result<Vec<_>, _>>()?;
    devices::prefer(list)
}

/// The device that has most of what is asked for.
#[entry_point]
fn cudaChooseDevice(device: Out<i32>, prop: In<cudaDeviceProp>) -> CudaResult {
    let (device, wanted) = (device.check()?, prop.get()?);
    device.set(properties::closest(&wanted)?)?;
    Ok(())
}

/// All of a device's properties.
#[entry_point]
fn cudaGetDeviceProperties(prop: Out<cudaDeviceProp>, device: i32) -> CudaResult {
    let prop = prop.check()?;
    prop.set(properties::of(devices::check(device)?)?)?;
    Ok(())
}

/// One number about a device. Both APIs number the attributes alike.
#[entry_point]
fn cudaDeviceGetAttribute(value: Out<i32>, attr: cudaDeviceAttr, device: i32) -> CudaResult {
    context::initialize()?;
    let value = value.check()?;
    call!(cuDeviceGetAttribute(value.as_ptr(), CUdevice_attribute(attr.0), device))
}

/// One number about a pair of devices.
#[entry_point]
fn cudaDeviceGetP2PAttribute(
    value: Out<i32>,
    attr: cudaDeviceP2PAttr,
    srcDevice: i32,
    dstDevice: i32,
) -> CudaResult {
    context::initialize()?;
    let value = value.check()?;
    call!(cuDeviceGetP2PAttribute(value.as_ptr(), CUdevice_P2PAttribute(attr.0), srcDevice, dstDevice))
}

/// The device at a place on the PCI bus.
#[entry_point]
fn cudaDeviceGetByPCIBusId(device: Out<i32>, pciBusId: Text) -> CudaResult {
    context::initialize()?;
    let device = device.check()?;
    call!(cuDeviceGetByPCIBusId(device.as_ptr(), pciBusId.get()?.as_ptr()))
}

/// A device's place on the PCI bus, as text of at most `len` bytes.
#[entry_point]
fn cudaDeviceGetPCIBusId(pciBusId: *mut c_char, len: i32, device: i32) -> CudaResult {
    context::initialize()?;
    call!(cuDeviceGetPCIBusId(pciBusId, len, device))
}

/// Waits for all work of the current context.
#[entry_point]
fn cudaDeviceSynchronize() -> CudaResult {
    context::ensure_current()?;
    call!(cuCtxSynchronize())
}

/// Destroys everything in the primary context of the thread's device.
#[entry_point]
fn cudaDeviceReset() -> CudaResult {
    context::reset(context::device()?)
}

/// Sets how the thread's device waits, and other properties of its primary context, which becomes current if no
/// context is.
#[entry_point]
fn cudaSetDeviceFlags(flags: u32) -> CudaResult {
    let device = context::device()?;
    // Host memory is always mapped; the driver does not take the flag that once asked for it.
    call!(cuDevicePrimaryCtxSetFlags_v2(device, flags & !cudaDeviceMapHost))?;
    context::ensure_current()
}

/// The flags of the current context; if there is none, those that the device's primary context will have.
#[entry_point]
fn cudaGetDeviceFlags(flags: Out<u32>) -> CudaResult {
    let flags = flags.check()?;
    let device = context::device()?;
    let mut current = CUcontext::NULL;
    call!(cuCtxGetCurrent(&mut current))?;
    if current.is_null() {
        let (mut set, mut active) = (0, 0);
        call!(cuDevicePrimaryCtxGetState(device, &mut set, &mut active))?;
        flags.set(set | cudaDeviceMapHost)?;
        Ok(())
    } else {
        call!(cuCtxGetFlags(flags.as_ptr()))
    }
}

/// A limit of the current context.
#[entry_point]
fn cudaDeviceGetLimit(pValue: Out<usize>, limit: cudaLimit) -> CudaResult {
    context::ensure_current()?;
    let value = pValue.check()?;
    call!(cuCtxGetLimit(value.as_ptr(), CUlimit(limit.0)))
}

/// Sets a limit of the current context.
#[entry_point]
fn cudaDeviceSetLimit(limit: cudaLimit, value: usize) -> CudaResult {
    context::ensure_current()?;
    call!(cuCtxSetLimit(CUlimit(limit.0), value))
}

/// The current context's preferred split between L1 cache and shared memory.
#[entry_point]
fn cudaDeviceGetCacheConfig(pCacheConfig: Out<cudaFuncCache>) -> CudaResult {
    context::ensure_current()?;
    let config = pCacheConfig.check()?;
    call!(cuCtxGetCacheConfig(config.as_ptr().cast()))
}

/// Sets the current context's preferred split between L1 cache and shared memory.
#[entry_point]
fn cudaDeviceSetCacheConfig(cacheConfig: cudaFuncCache) -> CudaResult {
    context::ensure_current()?;
    call!(cuCtxSetCacheConfig(CUfunc_cache(cacheConfig.0)))
}

/// The width of the current context's shared memory banks.
#[entry_point]
fn cudaDeviceGetSharedMemConfig(pConfig: Out<cudaSharedMemConfig>) -> CudaResult {
    context::ensure_current()?;
    let config = pConfig.check()?;
    call!(cuCtxGetSharedMemConfig(config.as_ptr().cast()))
}

/// Sets the width of the current context's shared memory banks, where a device has a choice.
#[entry_point]
fn cudaDeviceSetSharedMemConfig(config: cudaSharedMemConfig) -> CudaResult {
    context::ensure_current()?;
    call!(cuCtxSetSharedMemConfig(CUsharedconfig(config.0)))
}

/// The least and the greatest priority of streams; either may be unwanted.
#[entry_point]
fn cudaDeviceGetStreamPriorityRange(leastPriority: Out<i32>, greatestPriority: Out<i32>) -> CudaResult {
    context::ensure_current()?;
    call!(cuCtxGetStreamPriorityRange(leastPriority.as_ptr(), greatestPriority.as_ptr()))
}

/// The widest texture of the channel format that can be bound to linear memory.
#[entry_point]
fn cudaDeviceGetTexture1DLinearMaxWidth(
    maxWidthInElements: Out<usize>,
    fmtDesc: In<cudaChannelFormatDesc>,
    device: i32,
) -> CudaResult {
    let width = maxWidthInElements.check()?;
    let (format, channels) = crate::formats::of_channels(&fmtDesc.get()?)?;
    context::initialize()?;
    call!(cuDeviceGetTexture1DLinearMaxWidth(width.as_ptr(), format, channels, device))
}

/// Has persisting lines of the L2 cache become normal ones.
#[entry_point]
fn cudaCtxResetPersistingL2Cache() -> CudaResult {
    // Makes no context current.
    context::initialize()?;
    call!(cuCtxResetPersistingL2Cache())
}

/// Waits until what other devices wrote into the current device's memory is visible.
#[entry_point]
fn cudaDeviceFlushGPUDirectRDMAWrites(
    target: cudaFlushGPUDirectRDMAWritesTarget,
    scope: cudaFlushGPUDirectRDMAWritesScope,
) -> CudaResult {
    context::ensure_current()?;
    let target = CUflushGPUDirectRDMAWritesTarget(target.0);
    call!(cuFlushGPUDirectRDMAWrites(target, CUflushGPUDirectRDMAWritesScope(scope.0)))
}

/// What a device can do atomically to the host's memory: a set of capabilities for each operation.
#[entry_point]
fn cudaDeviceGetHostAtomicCapabilities(
    capabilities: *mut u32,
    operations: *const cudaAtomicOperation,
    count: u32,
    device: i32,
) -> CudaResult {
    let device = devices::check(device)?;
    call!(cuDeviceGetHostAtomicCapabilities(capabilities, operations, count, device))
}

/// What a device can do atomically to another's memory.
#[entry_point]
fn cudaDeviceGetP2PAtomicCapabilities(
    capabilities: *mut u32,
    operations: *const cudaAtomicOperation,
    count: u32,
    srcDevice: i32,
    dstDevice: i32,
) -> CudaResult {
    let (from, to) = (devices::check(srcDevice)?, devices::check(dstDevice)?);
    call!(cuDeviceGetP2PAtomicCapabilities(capabilities, operations, count, from, to))
}

/// What a device wants of the synchronisation objects of NvSciSync.
#[entry_point]
fn cudaDeviceGetNvSciSyncAttributes(nvSciSyncAttrList: *mut c_void, device: i32, flags: i32) -> CudaResult {
    let device = devices::check(device)?;
    call!(cuDeviceGetNvSciSyncAttributes(nvSciSyncAttrList, device, flags))
}

/// Has a function called with notifications about a device.
#[entry_point]
fn cudaDeviceRegisterAsyncNotification(
    device: i32,
    callbackFunc: cudaAsyncCallback,
    userData: *mut c_void,
    callback: Out<cudaAsyncCallbackHandle_t>,
) -> CudaResult {
    let device = devices::check(device)?;
    let callback = callback.check()?;
    call!(cuDeviceRegisterAsyncNotification(device, callbackFunc, userData, callback.as_ptr()))
}

/// Ends that.
#[entry_point]
fn cudaDeviceUnregisterAsyncNotification(device: i32, callback: cudaAsyncCallbackHandle_t) -> CudaResult {
    let device = devices::check(device)?;
    call!(cuDeviceUnregisterAsyncNotification(device, callback))
}
