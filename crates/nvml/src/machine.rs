//! The devices of this machine, and what processes do with them.

use std::path::PathBuf;

use device::Options;
use device::attributes::Attributes;
use device::memory::machine;
use device::usage::{self, DeviceUse, ProcessUse};

/// The devices, and where processes tell what they use.
#[derive(Debug)]
pub struct Machine {
    devices: Vec<Device>,
    shared_folder: Option<PathBuf>,
}

/// A device of the machine.
#[derive(Debug)]
pub struct Device {
    /// Its number.
    pub index: usize,
    /// What it is and can.
    pub attributes: Attributes,
}

/// Memory of a device, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// All of it.
    pub total: u64,
    /// What can be allocated, the same that `cuMemGetInfo` says.
    pub free: u64,
    /// What processes have allocated.
    pub used: u64,
}

impl Memory {
    /// What is neither free nor anybody's allocation: the machine's memory is used for other things too.
    pub fn reserved(&self) -> u64 {
        self.total.saturating_sub(self.free).saturating_sub(self.used)
    }
}

/// A process that has contexts on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// The process.
    pub id: u32,
    /// Bytes of the device's memory that it has allocated.
    pub memory: u64,
    /// Per cent of the last second in which its kernels ran.
    pub utilization: u32,
}

impl Machine {
    /// The machine as the environment describes its devices; `CUDA_VISIBLE_DEVICES` is about programs and does not matter.
    pub fn from_environment() -> Machine {
        Machine::new(&Options::from_environment())
    }

    /// The machine that these options describe.
    pub fn new(options: &Options) -> Machine {
        let total = options.memory_of_device();
        let device = |index| Device { index, attributes: Attributes::of_machine(options, index, total) };
        Machine {
            devices: (0..options.devices).map(device).collect(),
            shared_folder: options.shared_folder.clone(),
        }
    }

    /// Its devices, by number.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// The memory of a device.
    pub fn memory(&self, device: &Device) -> Memory {
        let total = device.attributes.total_memory;
        let used = self.uses(device).map(|(_, found)| found.memory).fold(0, u64::saturating_add).min(total);
        let unused = total - used;
        Memory { total, free: unused.min(machine::available().unwrap_or(unused)), used }
    }

    /// The processes with contexts on a device, in order of their numbers.
    pub fn processes(&self, device: &Device) -> Vec<Process> {
        let with_contexts = self.uses(device).filter(|(_, found)| found.contexts > 0);
        let process = |(id, found): (u32, DeviceUse)| Process {
            id,
            memory: found.memory,
            utilization: percent(found.busy),
        };
        with_contexts.map(process).collect()
    }

    /// Per cent of the last second in which kernels ran on a device. The time of several processes is added up.
    pub fn utilization(&self, device: &Device) -> u32 {
        percent(self.uses(device).map(|(_, found)| found.busy).sum())
    }

    fn uses(&self, device: &Device) -> impl Iterator<Item = (u32, DeviceUse)> {
        let index = device.index;
        let all = self.shared_folder.as_deref().map(usage::processes).unwrap_or_default();
        let of_device =
            move |process: ProcessUse| Some((process.process, process.devices.get(index).copied()?));
        all.into_iter().filter_map(of_device)
    }
}

impl Device {
    /// Its identity as people write it.
    pub fn uuid(&self) -> String {
        let hex: String = self.attributes.uuid.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("GPU-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// Where it is on the bus: domain, bus, device and function.
    pub fn pci_bus_id(&self) -> String {
        format!("00000000:{:02X}:00.0", self.attributes.pci_bus)
    }
}

/// How a process was called; `None` if it is gone or not this user's to see.
pub fn process_name(process: u32) -> Option<String> {
    let command = std::fs::read(format!("/proc/{process}/cmdline")).ok()?;
    let name = command.split(|byte| *byte == 0).next().filter(|name| !name.is_empty())?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// The version of the driver: its first number is that of NVIDIA's driver whose answers are ours, which programs compare; the
/// rest is this project's own.
pub fn driver_version() -> String {
    format!("580.{:0>2}.{:0>2}", env!("CARGO_PKG_VERSION_MINOR"), env!("CARGO_PKG_VERSION_PATCH"))
}

fn percent(busy: u64) -> u32 {
    (busy.saturating_mul(100).div_ceil(usage::WINDOW)).min(100) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_told_apart_as_people_write_it() {
        let machine = Machine::new(&Options { devices: 2, memory: Some(1 << 30), ..Options::default() });
        let [first, second] = machine.devices() else { panic!("two devices") };
        assert_eq!(first.uuid(), "GPU-416e7977-6172-7020-6465-766963650000");
        assert_eq!(second.uuid(), "GPU-416e7977-6172-7020-6465-766963650001");
        assert_eq!(second.pci_bus_id(), "00000000:02:00.0");
        let memory = machine.memory(second);
        assert_eq!((memory.total, memory.used), (1 << 30, 0));
        assert!(memory.free <= memory.total && memory.reserved() == memory.total - memory.free);
    }

    #[test]
    fn a_short_use_is_not_none() {
        assert_eq!([percent(0), percent(1), percent(usage::WINDOW / 2)], [0, 1, 50]);
        assert_eq!([percent(usage::WINDOW), percent(u64::MAX)], [100, 100]);
    }

    #[test]
    fn a_process_is_named_by_its_command() {
        let own = process_name(std::process::id()).unwrap();
        assert!(own.contains("nvml"), "{own}");
        assert_eq!(process_name(u32::MAX), None);
    }
}
