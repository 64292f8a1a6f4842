//! Single values of devices and processes, by the names that scripts ask for.

use super::options::Format;
use cuda_abi::driver::CUDA_VERSION;
use nvml::machine::{Device, Machine, Process, driver_version, process_name};

/// A value with its unit.
pub struct Value {
    text: String,
    unit: &'static str,
}

/// A value of a device.
pub struct DeviceField {
    names: &'static [&'static str],
    about: &'static str,
    unit: &'static str,
    value: fn(&Machine, &Device) -> String,
}

/// A value of a process.
pub struct ProcessField {
    names: &'static [&'static str],
    unit: &'static str,
    value: fn(&Device, &Process) -> String,
}

/// What is asked for and not there.
const NOT_THERE: &str = "[N/A]";

/// A megabyte, as these tools count.
const MEGABYTE: u64 = 1 << 20;

macro_rules! device_fields {
    ($($($name:literal)|+ $unit:literal $about:literal |$machine:pat_param, $device:pat_param| $value:expr;)*) => {
        &[$(DeviceField {
            names: &[$($name),+],
            about: $about,
            unit: $unit,
            value: |$machine, $device| $value.to_string(),
        }),*]
    };
}

/// Every value of a device, in the order in which `-q` shows them.
static DEVICE_FIELDS: &[DeviceField] = device_fields! {
    "timestamp" "" "the time of the query" |_, _| timestamp();
    "driver_version" "" "the driver's version" |_, _| driver_version();
    "count" "" "devices of the machine" |machine, _| machine.devices().len();
    "name" | "gpu_name" "" "the device's name" |_, device| device.attributes.name;
    "gpu_bus_id" | "pci.bus_id" "" "its place on the bus" |_, device| device.pci_bus_id();
    "pci.domain" "" "of that, the domain" |_, _| "0x0000";
    "pci.bus" "" "of that, the bus" |_, device| format!("0x{:02X}", device.attributes.pci_bus);
    "pci.device" "" "of that, the device" |_, _| "0x00";
    "index" "" "its number" |_, device| device.index;
    "uuid" | "gpu_uuid" "" "its identity" |_, device| device.uuid();
    "serial" | "gpu_serial" "" "its serial number" |_, _| NOT_THERE;
    "vbios_version" "" "its firmware" |_, _| NOT_THERE;
    "compute_cap" "" "its compute capability" |_, device| {
        let (major, minor) = device.attributes.compute_capability;
        format!("{major}.{minor}")
    };
    "compute_mode" "" "who may use it" |_, _| "Default";
    "persistence_mode" "" "whether its driver stays" |_, _| "Enabled";
    "display_mode" "" "whether there is a display" |_, _| "Disabled";
    "display_active" "" "whether that is in use" |_, _| "Disabled";
    "mig.mode.current" "" "whether it is divided" |_, _| NOT_THERE;
    "ecc.mode.current" "" "whether its memory corrects errors" |_, _| NOT_THERE;
    "pstate" "" "its performance state" |_, _| NOT_THERE;
    "fan.speed" "" "its fan" |_, _| NOT_THERE;
    "memory.total" " MiB" "memory" |machine, device| machine.memory(device).total / MEGABYTE;
    "memory.reserved" " MiB" "memory that the machine uses otherwise" |machine, device| {
        machine.memory(device).reserved() / MEGABYTE
    };
    "memory.used" " MiB" "memory that processes have allocated" |machine, device| {
        machine.memory(device).used.div_ceil(MEGABYTE)
    };
    "memory.free" " MiB" "memory that can be allocated" |machine, device| machine.memory(device).free / MEGABYTE;
    "utilization.gpu" " %" "time in which kernels ran, of the last second" |machine, device| machine.utilization(device);
    "utilization.memory" "" "how busy its memory is" |_, _| NOT_THERE;
    "temperature.gpu" "" "its temperature" |_, _| NOT_THERE;
    "power.draw" "" "the power it takes" |_, _| NOT_THERE;
    "power.limit" "" "the power it may take" |_, _| NOT_THERE;
    "clocks.current.sm" | "clocks.sm" | "clocks.gr" | "clocks.current.graphics" " MHz" "its clock" |_, device| {
        device.attributes.clock_khz / 1000
    };
    "clocks.max.sm" | "clocks.max.gr" | "clocks.max.graphics" " MHz" "its highest clock" |_, device| {
        device.attributes.clock_khz / 1000
    };
    "clocks.current.memory" | "clocks.mem" "" "its memory's clock" |_, _| NOT_THERE;
};

static PROCESS_FIELDS: &[ProcessField] = &[
    ProcessField { names: &["timestamp"], unit: "", value: |_, _| timestamp() },
    ProcessField { names: &["gpu_name"], unit: "", value: |device, _| device.attributes.name.clone() },
    ProcessField { names: &["gpu_bus_id"], unit: "", value: |device, _| device.pci_bus_id() },
    ProcessField { names: &["gpu_uuid"], unit: "", value: |device, _| device.uuid() },
    ProcessField { names: &["pid"], unit: "", value: |_, process| process.id.to_string() },
    ProcessField {
        names: &["process_name", "name"],
        unit: "",
        value: |_, process| process_name(process.id).unwrap_or_else(|| "[Not Found]".into()),
    },
    ProcessField {
        names: &["used_gpu_memory", "used_memory"],
        unit: " MiB",
        value: |_, process| process.memory.div_ceil(MEGABYTE).to_string(),
    },
];

/// The values that a list names.
pub fn device_fields(list: &str) -> Result<Vec<&'static DeviceField>, String> {
    find(list, DEVICE_FIELDS, |field| field.names)
}

/// Likewise.
pub fn process_fields(list: &str) -> Result<Vec<&'static ProcessField>, String> {
    find(list, PROCESS_FIELDS, |field| field.names)
}

fn find<F>(
    list: &str,
    all: &'static [F],
    names: fn(&F) -> &'static [&'static str],
) -> Result<Vec<&'static F>, String> {
    let one = |name: &str| {
        let found = all.iter().find(|field| names(field).contains(&name.trim()));
        found.ok_or(format!("{}: no such field", name.trim()))
    };
    list.split(',').map(one).collect()
}

/// A line of values for each device.
pub fn devices(machine: &Machine, devices: &[&Device], fields: &[&DeviceField], format: &Format) -> String {
    let rows = devices.iter().map(|device| {
        let value = |field: &&DeviceField| Value { text: (field.value)(machine, device), unit: field.unit };
        fields.iter().map(value).collect()
    });
    lines(fields.iter().map(|field| (field.names[0], field.unit)), rows, format)
}

/// A line of values for each process of the devices.
pub fn processes(
    machine: &Machine,
    devices: &[&Device],
    fields: &[&ProcessField],
    format: &Format,
) -> String {
    let pairs = devices
        .iter()
        .flat_map(|device| machine.processes(device).into_iter().map(move |process| (*device, process)));
    let rows = pairs.map(|(device, process)| {
        let value = |field: &&ProcessField| Value { text: (field.value)(device, &process), unit: field.unit };
        fields.iter().map(value).collect()
    });
    lines(fields.iter().map(|field| (field.names[0], field.unit)), rows, format)
}

fn lines<'a>(
    names: impl Iterator<Item = (&'a str, &'a str)>,
    rows: impl Iterator<Item = Vec<Value>>,
    format: &Format,
) -> String {
    let mut text = String::new();
    if format.header {
        let name = |(name, unit): (&str, &str)| match unit {
            "" => name.to_owned(),
            unit => format!("{name} [{}]", unit.trim()),
        };
        text += &(names.map(name).collect::<Vec<_>>().join(", ") + "\n");
    }
    for row in rows {
        let value = |value: &Value| match format.units {
            true => format!("{}{}", value.text, value.unit),
            false => value.text.clone(),
        };
        text += &(row.iter().map(value).collect::<Vec<_>>().join(", ") + "\n");
    }
    text
}

/// Everything that is known of the devices, a line each.
pub fn everything(machine: &Machine, devices: &[&Device]) -> String {
    let mut text = format!(
        "Timestamp      : {}\nDriver Version : {}\nCUDA Version   : {}\nAttached GPUs  : {}\n",
        timestamp(),
        driver_version(),
        cuda_version(),
        machine.devices().len()
    );
    for device in devices {
        text += &format!("\nGPU {}\n", device.pci_bus_id());
        let of_machine = ["timestamp", "driver_version", "count"];
        for field in DEVICE_FIELDS.iter().filter(|field| !of_machine.contains(&field.names[0])) {
            text += &format!("    {:24}: {}{}\n", field.names[0], (field.value)(machine, device), field.unit);
        }
        for process in machine.processes(device) {
            let name = process_name(process.id).unwrap_or_default();
            text += &format!(
                "    process {:16}: {} MiB, {name}\n",
                process.id,
                process.memory.div_ceil(MEGABYTE)
            );
        }
    }
    text
}

/// The fields of devices, with what they are.
pub fn help() -> String {
    let line = |field: &DeviceField| format!("{:40}{}\n", field.names.join(", "), field.about);
    DEVICE_FIELDS.iter().map(line).collect()
}

/// CUDA's version, as people write it.
pub fn cuda_version() -> String {
    format!("{}.{}", CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10)
}

/// The time, in UTC.
pub fn timestamp() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let (seconds, milliseconds) = (now.as_secs(), now.subsec_millis());
    let (year, month, day) = date(seconds / 86400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year}/{month:02}/{day:02} {hour:02}:{minute:02}:{second:02}.{milliseconds:03}")
}

/// Year, month and day of a day counted from the first of 1970.
fn date(mut day: u64) -> (u64, usize, u64) {
    let is_leap = |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let mut year = 1970;
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 0;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    (year, month + 1, day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(59), (1970, 3, 1));
        assert_eq!(date(19782), (2024, 2, 29));
        assert_eq!(date(20454), (2026, 1, 1));
    }

    #[test]
    fn no_name_is_given_twice_and_unknown_ones_are_told() {
        let mut names: Vec<_> = DEVICE_FIELDS.iter().flat_map(|field| field.names).collect();
        names.sort();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(device_fields("name, warp.speed").err().unwrap(), "warp.speed: no such field");
    }
}
