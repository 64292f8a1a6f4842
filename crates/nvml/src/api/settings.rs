//! How a device is set.

use super::{find, not_there};
use cuda_abi::args::Out;
use cuda_abi::nvml::*;
use entry_macros::entry_point;

/// Any number of processes may use a device.
#[entry_point]
fn nvmlDeviceGetComputeMode(device: nvmlDevice_t, mode: Out<nvmlComputeMode_t>) -> NvmlResult {
    find(device)?;
    mode.set(NVML_COMPUTEMODE_DEFAULT)?;
    Ok(())
}

/// There is no driver to be unloaded when nobody uses it.
#[entry_point]
fn nvmlDeviceGetPersistenceMode(device: nvmlDevice_t, mode: Out<nvmlEnableState_t>) -> NvmlResult {
    find(device)?;
    mode.set(NVML_FEATURE_ENABLED)?;
    Ok(())
}

/// No display is connected.
#[entry_point]
fn nvmlDeviceGetDisplayMode(device: nvmlDevice_t, display: Out<nvmlEnableState_t>) -> NvmlResult {
    find(device)?;
    display.set(NVML_FEATURE_DISABLED)?;
    Ok(())
}

#[entry_point]
fn nvmlDeviceGetDisplayActive(device: nvmlDevice_t, isActive: Out<nvmlEnableState_t>) -> NvmlResult {
    find(device)?;
    isActive.set(NVML_FEATURE_DISABLED)?;
    Ok(())
}

/// Whether the machine's memory corrects errors, nobody tells.
#[entry_point]
fn nvmlDeviceGetEccMode(
    device: nvmlDevice_t,
    current: Out<nvmlEnableState_t>,
    pending: Out<nvmlEnableState_t>,
) -> NvmlResult {
    current.check()?;
    pending.check()?;
    not_there(device)
}

/// The device is not one that a hypervisor hands out.
#[entry_point]
fn nvmlDeviceGetVirtualizationMode(device: nvmlDevice_t, pVirtualMode: Out<u32>) -> NvmlResult {
    find(device)?;
    pVirtualMode.set(0)?;
    Ok(())
}
