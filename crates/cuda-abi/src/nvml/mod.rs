//! The management library's types, under its manual's names.
#![allow(non_camel_case_types, non_snake_case, non_upper_case_globals, reason = "the manual's names")]

mod codes;
mod enums;
mod structs;

pub use codes::*;
pub use enums::*;
pub use structs::*;

c_handles! {
    /// A device of the machine.
    nvmlDevice_t;
    /// Events that a program waits for.
    nvmlEventSet_t;
}

/// What a body of an entry point returns.
pub type NvmlResult<T = ()> = Result<T, nvmlReturn_t>;

/// Room for a device's name, its UUID, a version and a serial number, as the manual wants it.
pub const NVML_DEVICE_NAME_V2_BUFFER_SIZE: usize = 96;
/// Likewise.
pub const NVML_DEVICE_UUID_V2_BUFFER_SIZE: usize = 96;
/// Likewise.
pub const NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE: usize = 80;

/// `nvmlInitWithFlags`: a machine without devices is no failure.
pub const NVML_INIT_FLAG_NO_GPUS: u32 = 1;
/// `nvmlInitWithFlags`: do not open the devices.
pub const NVML_INIT_FLAG_NO_ATTACH: u32 = 2;

/// A number that is not known; of instances, that there is none.
pub const NVML_VALUE_NOT_AVAILABLE: u64 = u64::MAX;
