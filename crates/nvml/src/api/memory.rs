//! Memory and how busy a device is.

use super::find;
use cuda_abi::args::Out;
use cuda_abi::nvml::*;
use entry_macros::entry_point;

/// Used is here whatever is not free.
#[entry_point]
fn nvmlDeviceGetMemoryInfo(device: nvmlDevice_t, memory: Out<nvmlMemory_t>) -> NvmlResult {
    memory.check()?;
    let found = find(device)?;
    let found = found.machine.memory(found.device());
    memory.set(nvmlMemory_t { total: found.total, free: found.free, used: found.total - found.free })?;
    Ok(())
}

/// Used is here what processes have allocated, and reserved is what the machine uses its memory for otherwise.
#[entry_point]
fn nvmlDeviceGetMemoryInfo_v2(device: nvmlDevice_t, memory: Out<nvmlMemory_v2_t>) -> NvmlResult {
    memory.check()?;
    // SAFETY: where not null, the manual wants the structure there, with its version set.
    let version = unsafe { memory.as_ptr().cast::<u32>().read_unaligned() };
    if version != nvmlMemory_v2 {
        return Err(NVML_ERROR_FUNCTION_NOT_FOUND);
    }
    let found = find(device)?;
    let found = found.machine.memory(found.device());
    memory.set(nvmlMemory_v2_t {
        version,
        total: found.total,
        reserved: found.reserved(),
        free: found.free,
        used: found.used,
    })?;
    Ok(())
}

/// All memory of the device can be reached by the host.
#[entry_point]
fn nvmlDeviceGetBAR1MemoryInfo(device: nvmlDevice_t, bar1Memory: Out<nvmlBAR1Memory_t>) -> NvmlResult {
    bar1Memory.check()?;
    let found = find(device)?;
    let found = found.machine.memory(found.device());
    let (bar1Total, bar1Free) = (found.total, found.free);
    bar1Memory.set(nvmlBAR1Memory_t { bar1Total, bar1Free, bar1Used: bar1Total - bar1Free })?;
    Ok(())
}

/// The time in which kernels ran, out of the last second. How busy the memory is, nobody measures.
#[entry_point]
fn nvmlDeviceGetUtilizationRates(device: nvmlDevice_t, utilization: Out<nvmlUtilization_t>) -> NvmlResult {
    utilization.check()?;
    let found = find(device)?;
    let gpu = found.machine.utilization(found.device());
    utilization.set(nvmlUtilization_t { gpu, memory: 0 })?;
    Ok(())
}
