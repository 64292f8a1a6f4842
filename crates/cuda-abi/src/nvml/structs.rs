//! Structures of the management library.

use super::nvmlDevice_t;
use core::ffi::c_char;

/// Memory of a device, in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the manual's own names")]
pub struct nvmlMemory_t {
    pub total: u64,
    pub free: u64,
    pub used: u64,
}

/// The same, with what nobody can have apart from what programs use.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the manual's own names")]
pub struct nvmlMemory_v2_t {
    /// [`nvmlMemory_v2`], set by the caller.
    pub version: u32,
    pub total: u64,
    pub reserved: u64,
    pub free: u64,
    pub used: u64,
}

/// The version that [`nvmlMemory_v2_t`] begins with.
pub const nvmlMemory_v2: u32 = version_of::<nvmlMemory_v2_t>(2);

/// How structures with a version number say which they are: the size, and the version above it.
pub const fn version_of<T>(version: u32) -> u32 {
    version << 24 | size_of::<T>() as u32
}

/// Memory of a device that the bus shows, in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the manual's own names")]
pub struct nvmlBAR1Memory_t {
    pub bar1Total: u64,
    pub bar1Free: u64,
    pub bar1Used: u64,
}

/// Per cent of time.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the manual's own names")]
pub struct nvmlUtilization_t {
    pub gpu: u32,
    pub memory: u32,
}

/// Where a device is on the bus, as the first version tells.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the manual's own names")]
pub struct nvmlPciInfo_v1_t {
    pub busId: [c_char; 16],
    pub domain: u32,
    pub bus: u32,
    pub device: u32,
    pub pciDeviceId: u32,
}

/// The same, as the second version tells.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the manual's own names")]
pub struct nvmlPciInfo_v2_t {
    pub busId: [c_char; 16],
    pub domain: u32,
    pub bus: u32,
    pub device: u32,
    pub pciDeviceId: u32,
    pub pciSubSystemId: u32,
    pub reserved: [u32; 4],
}

/// The same, as the third version tells.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the manual's own names")]
pub struct nvmlPciInfo_t {
    pub busIdLegacy: [c_char; 16],
    pub domain: u32,
    pub bus: u32,
    pub device: u32,
    pub pciDeviceId: u32,
    pub pciSubSystemId: u32,
    pub busId: [c_char; 32],
}

/// A process with contexts on a device, as the first version tells.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the manual's own names")]
pub struct nvmlProcessInfo_v1_t {
    pub pid: u32,
    pub usedGpuMemory: u64,
}

/// The same, with the instance of a divided device.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the manual's own names")]
pub struct nvmlProcessInfo_t {
    pub pid: u32,
    pub usedGpuMemory: u64,
    pub gpuInstanceId: u32,
    pub computeInstanceId: u32,
}

/// Per cent of time in which a process used parts of a device.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the manual's own names")]
pub struct nvmlProcessUtilizationSample_t {
    pub pid: u32,
    pub timeStamp: u64,
    pub smUtil: u32,
    pub memUtil: u32,
    pub encUtil: u32,
    pub decUtil: u32,
}

/// A question of `nvmlDeviceGetFieldValues` and its answer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the manual's own names")]
pub struct nvmlFieldValue_t {
    pub fieldId: u32,
    pub scopeId: u32,
    pub timestamp: i64,
    pub latencyUsec: i64,
    pub valueType: u32,
    pub nvmlReturn: u32,
    pub value: u64,
}

/// Something that happened to a device. The first version ends before the instances.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the manual's own names")]
pub struct nvmlEventData_t {
    pub device: nvmlDevice_t,
    pub eventType: u64,
    pub eventData: u64,
    pub gpuInstanceId: u32,
    pub computeInstanceId: u32,
}

const _: () = {
    assert!(size_of::<nvmlMemory_v2_t>() == 40 && size_of::<nvmlPciInfo_t>() == 68);
    assert!(size_of::<nvmlPciInfo_v2_t>() == 52 && size_of::<nvmlProcessInfo_t>() == 24);
    assert!(size_of::<nvmlProcessUtilizationSample_t>() == 32 && size_of::<nvmlFieldValue_t>() == 40);
    assert!(size_of::<nvmlEventData_t>() == 32);
};
