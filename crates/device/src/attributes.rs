//! What a device is and can, for programs that ask.

use std::fs;

use crate::Options;
use crate::limits::Multiprocessor;

/// Facts about a device. What is a limit of the programming model is in [`limits`](crate::limits).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// A name for people: the processor's.
    pub name: String,
    /// Identifies the device on this machine, the same in every process.
    pub uuid: [u8; 16],
    /// Compute capability.
    pub compute_capability: (u32, u32),
    /// Multiprocessors: so many times as many blocks as run together on one are on the device at the same time. Threads that run them
    /// are another matter.
    pub multiprocessors: u32,
    /// Worker threads.
    pub threads: u32,
    /// Bytes of memory.
    pub total_memory: u64,
    /// Clock of the processor in kHz.
    pub clock_khz: u32,
    /// Bytes of the largest cache.
    pub l2_bytes: u32,
    /// Number on the PCI bus, which is made up but unique among the devices.
    pub pci_bus: u32,
}

impl Attributes {
    /// What each of its multiprocessors holds.
    pub fn multiprocessor(&self) -> Multiprocessor {
        Multiprocessor::of(self.compute_capability)
    }

    /// The device number `physical` of this machine.
    pub fn of_machine(options: &Options, physical: usize, total_memory: u64) -> Attributes {
        let model = cpu_field("model name").unwrap_or_else(|| "CPU".into());
        let mut uuid = *b"Anywarp device\0\0";
        uuid[15] = physical as u8;
        Attributes {
            name: format!("Anywarp on {model}"),
            uuid,
            compute_capability: (options.sm / 10, options.sm % 10),
            multiprocessors: options.multiprocessors(),
            threads: options.threads as u32,
            total_memory,
            clock_khz: clock_khz().unwrap_or(1_000_000),
            l2_bytes: largest_cache().unwrap_or(1 << 20),
            pci_bus: physical as u32 + 1,
        }
    }
}

fn cpu_field(name: &str) -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn clock_khz() -> Option<u32> {
    let highest = fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq").ok();
    let highest = highest.and_then(|text| text.trim().parse().ok());
    highest.or_else(|| Some((cpu_field("cpu MHz")?.parse::<f64>().ok()? * 1000.0) as u32))
}

fn largest_cache() -> Option<u32> {
    let caches = fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    let sizes = caches.flatten().filter_map(|cache| {
        let text = fs::read_to_string(cache.path().join("size")).ok()?;
        text.trim().strip_suffix('K')?.parse::<u32>().ok()?.checked_mul(1024)
    });
    sizes.max()
}
