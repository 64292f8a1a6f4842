//! Which devices there are.

use super::{find, handle_of, not_there};
use crate::machine::Device;
use crate::shim::machine;
use cuda_abi::args::{Out, Text};
use cuda_abi::nvml::*;
use entry_macros::entry_point;

#[entry_point]
fn nvmlDeviceGetCount(deviceCount: Out<u32>) -> NvmlResult {
    count(deviceCount)
}

#[entry_point]
fn nvmlDeviceGetCount_v2(deviceCount: Out<u32>) -> NvmlResult {
    count(deviceCount)
}

fn count(place: Out<u32>) -> NvmlResult {
    place.set(machine()?.devices().len() as u32)?;
    Ok(())
}

#[entry_point]
fn nvmlDeviceGetHandleByIndex(index: u32, device: Out<nvmlDevice_t>) -> NvmlResult {
    by_index(index, device)
}

#[entry_point]
fn nvmlDeviceGetHandleByIndex_v2(index: u32, device: Out<nvmlDevice_t>) -> NvmlResult {
    by_index(index, device)
}

fn by_index(index: u32, place: Out<nvmlDevice_t>) -> NvmlResult {
    by(place, NVML_ERROR_INVALID_ARGUMENT, |device| device.index == index as usize)
}

/// The first device for which something holds.
fn by(place: Out<nvmlDevice_t>, otherwise: nvmlReturn_t, accept: impl Fn(&Device) -> bool) -> NvmlResult {
    place.check()?;
    let machine = machine()?;
    let found = machine.devices().iter().find(|device| accept(device)).ok_or(otherwise)?;
    place.set(handle_of(found))?;
    Ok(())
}

/// No device has a serial number.
#[entry_point]
fn nvmlDeviceGetHandleBySerial(serial: Text, device: Out<nvmlDevice_t>) -> NvmlResult {
    serial.get()?;
    by(device, NVML_ERROR_NOT_FOUND, |_| false)
}

/// What stands before the number may be left out.
#[entry_point]
fn nvmlDeviceGetHandleByUUID(uuid: Text, device: Out<nvmlDevice_t>) -> NvmlResult {
    let wanted = uuid.get()?.to_str().map_err(|_| NVML_ERROR_INVALID_ARGUMENT)?;
    by(device, NVML_ERROR_NOT_FOUND, |device| {
        let uuid = device.uuid();
        uuid == wanted || uuid.strip_prefix("GPU-") == Some(wanted)
    })
}

#[entry_point]
fn nvmlDeviceGetHandleByPciBusId(pciBusId: Text, device: Out<nvmlDevice_t>) -> NvmlResult {
    by_bus(pciBusId, device)
}

#[entry_point]
fn nvmlDeviceGetHandleByPciBusId_v2(pciBusId: Text, device: Out<nvmlDevice_t>) -> NvmlResult {
    by_bus(pciBusId, device)
}

fn by_bus(text: Text, place: Out<nvmlDevice_t>) -> NvmlResult {
    let text = text.get()?.to_str().map_err(|_| NVML_ERROR_INVALID_ARGUMENT)?;
    let wanted = parse_bus(text).ok_or(NVML_ERROR_INVALID_ARGUMENT)?;
    by(place, NVML_ERROR_NOT_FOUND, |device| wanted == (0, device.attributes.pci_bus, 0, 0))
}

/// Reads `[domain:]bus:device[.function]`, all hexadecimal.
fn parse_bus(text: &str) -> Option<(u32, u32, u32, u32)> {
    let number = |text: &str| u32::from_str_radix(text, 16).ok();
    let (text, function) = text.rsplit_once('.').unwrap_or((text, "0"));
    let parts: Vec<&str> = text.split(':').collect();
    match parts[..] {
        [bus, device] => Some((0, number(bus)?, number(device)?, number(function)?)),
        [domain, bus, device] => Some((number(domain)?, number(bus)?, number(device)?, number(function)?)),
        _ => None,
    }
}

#[entry_point]
fn nvmlDeviceGetIndex(device: nvmlDevice_t, index: Out<u32>) -> NvmlResult {
    index.set(find(device)?.index as u32)?;
    Ok(())
}

/// Devices are not divided into instances.
#[entry_point]
fn nvmlDeviceGetMigMode(device: nvmlDevice_t, currentMode: Out<u32>, pendingMode: Out<u32>) -> NvmlResult {
    currentMode.check()?;
    pendingMode.check()?;
    not_there(device)
}

#[entry_point]
fn nvmlDeviceGetMaxMigDeviceCount(device: nvmlDevice_t, count: Out<u32>) -> NvmlResult {
    find(device)?;
    count.set(0)?;
    Ok(())
}

#[entry_point]
fn nvmlDeviceGetMigDeviceHandleByIndex(
    device: nvmlDevice_t,
    _index: u32,
    migDevice: Out<nvmlDevice_t>,
) -> NvmlResult {
    migDevice.check()?;
    not_there(device)
}

#[entry_point]
fn nvmlDeviceIsMigDeviceHandle(device: nvmlDevice_t, isMigDevice: Out<u32>) -> NvmlResult {
    find(device)?;
    isMigDevice.set(0)?;
    Ok(())
}

#[entry_point]
fn nvmlDeviceGetMultiGpuBoard(device: nvmlDevice_t, multiGpuBool: Out<u32>) -> NvmlResult {
    find(device)?;
    multiGpuBool.set(0)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_on_the_bus_are_read_as_people_write_them() {
        for text in ["00000000:01:00.0", "0000:01:00.0", "0:1:0", "01:00.0", "01:00"] {
            assert_eq!(parse_bus(text), Some((0, 1, 0, 0)), "{text}");
        }
        for text in ["", "zz", "1", "1:2:3:4", "01:00.x", ":"] {
            assert_eq!(parse_bus(text), None, "{text}");
        }
    }
}
