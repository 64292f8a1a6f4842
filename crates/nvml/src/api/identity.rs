//! What a device is called, and where it is.

use super::{find, not_there, text_array, write_text};
use cuda_abi::args::{Array, Out};
use cuda_abi::nvml::*;
use entry_macros::entry_point;
use std::ffi::c_char;

#[entry_point]
fn nvmlDeviceGetName(device: nvmlDevice_t, name: Array<c_char>, length: u32) -> NvmlResult {
    write_text(&find(device)?.device().attributes.name, name, length)
}

#[entry_point]
fn nvmlDeviceGetUUID(device: nvmlDevice_t, uuid: Array<c_char>, length: u32) -> NvmlResult {
    write_text(&find(device)?.device().uuid(), uuid, length)
}

/// There is no board with a number on it.
#[entry_point]
fn nvmlDeviceGetSerial(device: nvmlDevice_t, serial: Array<c_char>, _length: u32) -> NvmlResult {
    if serial.is_null() {
        return Err(NVML_ERROR_INVALID_ARGUMENT);
    }
    not_there(device)
}

#[entry_point]
fn nvmlDeviceGetBrand(device: nvmlDevice_t, r#type: Out<nvmlBrandType_t>) -> NvmlResult {
    find(device)?;
    r#type.set(NVML_BRAND_UNKNOWN)?;
    Ok(())
}

/// The device is no file, but has its number where programs ask for that of one.
#[entry_point]
fn nvmlDeviceGetMinorNumber(device: nvmlDevice_t, minorNumber: Out<u32>) -> NvmlResult {
    minorNumber.set(find(device)?.index as u32)?;
    Ok(())
}

/// Numbers of makers and models belong to real buses.
const NO_PCI_DEVICE: u32 = 0;

#[entry_point]
fn nvmlDeviceGetPciInfo(device: nvmlDevice_t, pci: Out<nvmlPciInfo_v1_t>) -> NvmlResult {
    let found = find(device)?;
    let (bus, domain) = (found.device().attributes.pci_bus, 0);
    let busId = text_array(&legacy_bus_id(bus));
    pci.set(nvmlPciInfo_v1_t { busId, domain, bus, device: 0, pciDeviceId: NO_PCI_DEVICE })?;
    Ok(())
}

#[entry_point]
fn nvmlDeviceGetPciInfo_v2(device: nvmlDevice_t, pci: Out<nvmlPciInfo_v2_t>) -> NvmlResult {
    let bus = find(device)?.device().attributes.pci_bus;
    pci.set(nvmlPciInfo_v2_t { busId: text_array(&legacy_bus_id(bus)), bus, ..Default::default() })?;
    Ok(())
}

#[entry_point]
fn nvmlDeviceGetPciInfo_v3(device: nvmlDevice_t, pci: Out<nvmlPciInfo_t>) -> NvmlResult {
    let found = find(device)?;
    let bus = found.device().attributes.pci_bus;
    pci.set(nvmlPciInfo_t {
        busIdLegacy: text_array(&legacy_bus_id(bus)),
        domain: 0,
        bus,
        device: 0,
        pciDeviceId: NO_PCI_DEVICE,
        pciSubSystemId: NO_PCI_DEVICE,
        busId: text_array(&found.device().pci_bus_id()),
    })?;
    Ok(())
}

/// With a domain of 16 bits.
fn legacy_bus_id(bus: u32) -> String {
    format!("0000:{bus:02X}:00.0")
}

#[entry_point]
fn nvmlDeviceGetCudaComputeCapability(device: nvmlDevice_t, major: Out<i32>, minor: Out<i32>) -> NvmlResult {
    major.check()?;
    minor.check()?;
    let capability = find(device)?.device().attributes.compute_capability;
    major.set(capability.0 as i32)?;
    minor.set(capability.1 as i32)?;
    Ok(())
}

/// The one that the compute capability is of.
#[entry_point]
fn nvmlDeviceGetArchitecture(device: nvmlDevice_t, arch: Out<u32>) -> NvmlResult {
    let capability = find(device)?.device().attributes.compute_capability;
    arch.set(match capability {
        (3, _) => NVML_DEVICE_ARCH_KEPLER,
        (5, _) => NVML_DEVICE_ARCH_MAXWELL,
        (6, _) => NVML_DEVICE_ARCH_PASCAL,
        (7, 0..=2) => NVML_DEVICE_ARCH_VOLTA,
        (7, _) => NVML_DEVICE_ARCH_TURING,
        (8, 9) => NVML_DEVICE_ARCH_ADA,
        (8, _) => NVML_DEVICE_ARCH_AMPERE,
        (9, _) => NVML_DEVICE_ARCH_HOPPER,
        (10.., _) => NVML_DEVICE_ARCH_BLACKWELL,
        _ => NVML_DEVICE_ARCH_UNKNOWN,
    })?;
    Ok(())
}

/// The processors of the machine that the device uses.
#[entry_point]
fn nvmlDeviceGetNumGpuCores(device: nvmlDevice_t, numCores: Out<u32>) -> NvmlResult {
    numCores.set(find(device)?.device().attributes.threads)?;
    Ok(())
}
