//! Which processes use a device.

use super::{Found, find};
use crate::machine::Process;
use cuda_abi::args::{Array, Out};
use cuda_abi::nvml::*;
use device::clock;
use entry_macros::entry_point;

/// The device is not divided, so no process uses an instance of it.
const NO_INSTANCE: u32 = NVML_VALUE_NOT_AVAILABLE as u32;

#[entry_point]
fn nvmlDeviceGetComputeRunningProcesses(
    device: nvmlDevice_t,
    infoCount: Out<u32>,
    infos: Array<nvmlProcessInfo_v1_t>,
) -> NvmlResult {
    list(&computing(device)?, infoCount, infos, |process| nvmlProcessInfo_v1_t {
        pid: process.id,
        usedGpuMemory: process.memory,
    })
}

#[entry_point]
fn nvmlDeviceGetComputeRunningProcesses_v2(
    device: nvmlDevice_t,
    infoCount: Out<u32>,
    infos: Array<nvmlProcessInfo_t>,
) -> NvmlResult {
    list(&computing(device)?, infoCount, infos, info)
}

#[entry_point]
fn nvmlDeviceGetComputeRunningProcesses_v3(
    device: nvmlDevice_t,
    infoCount: Out<u32>,
    infos: Array<nvmlProcessInfo_t>,
) -> NvmlResult {
    list(&computing(device)?, infoCount, infos, info)
}

/// There is no graphics.
#[entry_point]
fn nvmlDeviceGetGraphicsRunningProcesses(
    device: nvmlDevice_t,
    infoCount: Out<u32>,
    infos: Array<nvmlProcessInfo_v1_t>,
) -> NvmlResult {
    none(device, infoCount, infos)
}

#[entry_point]
fn nvmlDeviceGetGraphicsRunningProcesses_v2(
    device: nvmlDevice_t,
    infoCount: Out<u32>,
    infos: Array<nvmlProcessInfo_t>,
) -> NvmlResult {
    none(device, infoCount, infos)
}

#[entry_point]
fn nvmlDeviceGetGraphicsRunningProcesses_v3(
    device: nvmlDevice_t,
    infoCount: Out<u32>,
    infos: Array<nvmlProcessInfo_t>,
) -> NvmlResult {
    none(device, infoCount, infos)
}

/// There is no service through which processes share contexts.
#[entry_point]
fn nvmlDeviceGetMPSComputeRunningProcesses(
    device: nvmlDevice_t,
    infoCount: Out<u32>,
    infos: Array<nvmlProcessInfo_v1_t>,
) -> NvmlResult {
    none(device, infoCount, infos)
}

#[entry_point]
fn nvmlDeviceGetMPSComputeRunningProcesses_v2(
    device: nvmlDevice_t,
    infoCount: Out<u32>,
    infos: Array<nvmlProcessInfo_t>,
) -> NvmlResult {
    none(device, infoCount, infos)
}

#[entry_point]
fn nvmlDeviceGetMPSComputeRunningProcesses_v3(
    device: nvmlDevice_t,
    infoCount: Out<u32>,
    infos: Array<nvmlProcessInfo_t>,
) -> NvmlResult {
    none(device, infoCount, infos)
}

/// How busy each process has kept the device since a time, in microseconds: of the last second, if that is not later.
#[entry_point]
fn nvmlDeviceGetProcessUtilization(
    device: nvmlDevice_t,
    utilization: Array<nvmlProcessUtilizationSample_t>,
    processSamplesCount: Out<u32>,
    lastSeenTimeStamp: u64,
) -> NvmlResult {
    processSamplesCount.check()?;
    let timeStamp = clock::now() / 1000;
    let mut busy = computing(device)?;
    busy.retain(|process| process.utilization > 0 && timeStamp > lastSeenTimeStamp);
    if busy.is_empty() {
        processSamplesCount.set(0)?;
        return Err(NVML_ERROR_NOT_FOUND);
    }
    list(&busy, processSamplesCount, utilization, |process| nvmlProcessUtilizationSample_t {
        pid: process.id,
        timeStamp,
        smUtil: process.utilization,
        ..Default::default()
    })
}

fn computing(device: nvmlDevice_t) -> NvmlResult<Vec<Process>> {
    let found: Found = find(device)?;
    Ok(found.machine.processes(found.device()))
}

fn none<T: Copy>(device: nvmlDevice_t, count: Out<u32>, _places: Array<T>) -> NvmlResult {
    count.check()?;
    find(device)?;
    count.set(0)?;
    Ok(())
}

fn info(process: &Process) -> nvmlProcessInfo_t {
    nvmlProcessInfo_t {
        pid: process.id,
        usedGpuMemory: process.memory,
        gpuInstanceId: NO_INSTANCE,
        computeInstanceId: NO_INSTANCE,
    }
}

/// Writes what there is where there is room for all of it; says in any case how much it is.
fn list<T: Copy>(
    found: &[Process],
    count: Out<u32>,
    places: Array<T>,
    make: impl Fn(&Process) -> T,
) -> NvmlResult {
    // SAFETY: where not null, the manual wants there how many elements the array has room for.
    let room = unsafe { count.check()?.as_ptr().read_unaligned() };
    count.set(found.len() as u32)?;
    if found.len() > room as usize {
        return Err(NVML_ERROR_INSUFFICIENT_SIZE);
    }
    for (index, process) in found.iter().enumerate() {
        places.set(index, make(process))?;
    }
    Ok(())
}
