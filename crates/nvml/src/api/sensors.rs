//! What other devices measure. A processor has no sensors of its own that anybody may read everywhere, so most of it is not
//! there; its clock is.

use super::{find, not_there};
use cuda_abi::args::{Array, Out};
use cuda_abi::nvml::*;
use device::clock;
use entry_macros::entry_point;

#[entry_point]
fn nvmlDeviceGetClockInfo(device: nvmlDevice_t, r#type: nvmlClockType_t, clock: Out<u32>) -> NvmlResult {
    processor_clock(device, r#type, clock)
}

/// Unlike for a clock's rate now, the clock has to be one that there is.
#[entry_point]
fn nvmlDeviceGetMaxClockInfo(device: nvmlDevice_t, r#type: nvmlClockType_t, clock: Out<u32>) -> NvmlResult {
    r#type.name().ok_or(NVML_ERROR_INVALID_ARGUMENT)?;
    processor_clock(device, r#type, clock)
}

/// In MHz. Kernels run on the processor's clock, and nothing is known of others.
fn processor_clock(handle: nvmlDevice_t, clock: nvmlClockType_t, place: Out<u32>) -> NvmlResult {
    place.check()?;
    let found = find(handle)?;
    match clock {
        NVML_CLOCK_GRAPHICS | NVML_CLOCK_SM => place.set(found.device().attributes.clock_khz / 1000)?,
        _ => return Err(NVML_ERROR_NOT_SUPPORTED),
    }
    Ok(())
}

#[entry_point]
fn nvmlDeviceGetTemperature(
    device: nvmlDevice_t,
    sensorType: nvmlTemperatureSensors_t,
    temp: Out<u32>,
) -> NvmlResult {
    temp.check()?;
    find(device)?;
    Err(if sensorType == NVML_TEMPERATURE_GPU {
        NVML_ERROR_NOT_SUPPORTED
    } else {
        NVML_ERROR_INVALID_ARGUMENT
    })
}

#[entry_point]
fn nvmlDeviceGetPowerUsage(device: nvmlDevice_t, power: Out<u32>) -> NvmlResult {
    power.check()?;
    not_there(device)
}

#[entry_point]
fn nvmlDeviceGetFanSpeed(device: nvmlDevice_t, speed: Out<u32>) -> NvmlResult {
    speed.check()?;
    not_there(device)
}

/// Each question is answered by itself; those about sensors and links, which all are, with "not supported".
#[entry_point]
fn nvmlDeviceGetFieldValues(
    device: nvmlDevice_t,
    valuesCount: i32,
    values: Array<nvmlFieldValue_t>,
) -> NvmlResult {
    find(device)?;
    if values.is_null() || valuesCount <= 0 {
        return Err(NVML_ERROR_INVALID_ARGUMENT);
    }
    for index in 0..valuesCount as usize {
        let mut value = values.get(index)?;
        value.timestamp = (clock::now() / 1000) as i64;
        value.nvmlReturn = NVML_ERROR_NOT_SUPPORTED.0;
        values.set(index, value)?;
    }
    Ok(())
}
