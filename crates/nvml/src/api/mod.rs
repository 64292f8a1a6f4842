//! The entry points, one file for each kind of question.

mod affinity;
mod devices;
mod events;
mod identity;
mod initialization;
mod links;
mod memory;
mod processes;
mod sensors;
mod settings;
mod system;

use crate::machine::{Device, Machine};
use crate::shim::machine;
use cuda_abi::args::Array;
use cuda_abi::nvml::*;
use std::ffi::c_char;
use std::sync::Arc;

/// The handles of devices count from here, so that none is null.
const FIRST: usize = 0x6177_0000;

/// The handle of a device.
fn handle_of(device: &Device) -> nvmlDevice_t {
    nvmlDevice_t(FIRST + device.index)
}

/// A device, and the machine that it is of.
struct Found {
    machine: Arc<Machine>,
    index: usize,
}

impl Found {
    fn device(&self) -> &Device {
        &self.machine.devices()[self.index]
    }
}

/// The device of a handle.
fn find(handle: nvmlDevice_t) -> NvmlResult<Found> {
    let machine = machine()?;
    let index = handle.0.checked_sub(FIRST).filter(|index| *index < machine.devices().len());
    Ok(Found { index: index.ok_or(NVML_ERROR_INVALID_ARGUMENT)?, machine })
}

/// What the devices do not have.
fn not_there(handle: nvmlDevice_t) -> NvmlResult {
    find(handle)?;
    Err(NVML_ERROR_NOT_SUPPORTED)
}

/// Writes a text with its NUL, if it fits.
fn write_text(text: &str, place: Array<c_char>, len: u32) -> NvmlResult {
    if place.is_null() {
        return Err(NVML_ERROR_INVALID_ARGUMENT);
    }
    if len as usize <= text.len() {
        return Err(NVML_ERROR_INSUFFICIENT_SIZE);
    }
    for (index, byte) in text.bytes().chain([0]).enumerate() {
        place.set(index, byte as c_char)?;
    }
    Ok(())
}

/// A text in an array of characters, cut where it is too long, with at least one NUL behind it.
fn text_array<const N: usize>(text: &str) -> [c_char; N] {
    let mut array = [0; N];
    for (place, byte) in array[..N - 1].iter_mut().zip(text.bytes()) {
        *place = byte as c_char;
    }
    array
}
