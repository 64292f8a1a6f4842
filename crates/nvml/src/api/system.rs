//! Questions about the machine as a whole.

use super::{handle_of, write_text};
use crate::machine::{driver_version, process_name};
use crate::shim::machine;
use cuda_abi::args::{Array, Out};
use cuda_abi::driver::CUDA_VERSION;
use cuda_abi::nvml::*;
use entry_macros::entry_point;
use std::ffi::{c_char, c_void};

#[entry_point]
fn nvmlSystemGetDriverVersion(version: Array<c_char>, length: u32) -> NvmlResult {
    write_text(&driver_version(), version, length)
}

/// The major version of CUDA, and the driver's.
#[entry_point(before_init)]
fn nvmlSystemGetNVMLVersion(version: Array<c_char>, length: u32) -> NvmlResult {
    write_text(&format!("{}.{}", CUDA_VERSION / 1000, driver_version()), version, length)
}

#[entry_point]
fn nvmlSystemGetCudaDriverVersion(cudaDriverVersion: Out<i32>) -> NvmlResult {
    cudaDriverVersion.set(CUDA_VERSION)?;
    Ok(())
}

#[entry_point]
fn nvmlSystemGetCudaDriverVersion_v2(cudaDriverVersion: Out<i32>) -> NvmlResult {
    cudaDriverVersion.set(CUDA_VERSION)?;
    Ok(())
}

/// Writes as much of the name as fits with its NUL.
#[entry_point]
fn nvmlSystemGetProcessName(pid: u32, name: Array<c_char>, length: u32) -> NvmlResult {
    if name.is_null() || length == 0 {
        return Err(NVML_ERROR_INVALID_ARGUMENT);
    }
    let found = process_name(pid).ok_or(NVML_ERROR_NOT_FOUND)?;
    let fits = found.as_bytes().iter().take(length as usize - 1);
    for (index, byte) in fits.chain(&[0]).enumerate() {
        name.set(index, *byte as c_char)?;
    }
    Ok(())
}

/// There are no cards that lead to devices outside the machine.
#[entry_point]
fn nvmlSystemGetHicVersion(hwbcCount: Out<u32>, _hwbcEntries: *mut c_void) -> NvmlResult {
    hwbcCount.set(0)?;
    Ok(())
}

/// Nor are there boxes of devices.
#[entry_point]
fn nvmlUnitGetCount(unitCount: Out<u32>) -> NvmlResult {
    unitCount.set(0)?;
    Ok(())
}

/// Every processor of the machine is near every device.
#[entry_point]
fn nvmlSystemGetTopologyGpuSet(
    cpuNumber: u32,
    count: Out<u32>,
    deviceArray: Array<nvmlDevice_t>,
) -> NvmlResult {
    // SAFETY: where not null, the manual wants a number there.
    let room = unsafe { count.check()?.as_ptr().read_unaligned() };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if cpuNumber as usize >= processors {
        return Err(NVML_ERROR_INVALID_ARGUMENT);
    }
    let machine = machine()?;
    count.set(machine.devices().len() as u32)?;
    if room == 0 {
        return Ok(());
    }
    for (index, device) in machine.devices().iter().take(room as usize).enumerate() {
        deviceArray.set(index, handle_of(device))?;
    }
    Ok(())
}
