//! The table that people look at.

use super::query::{cuda_version, timestamp};
use nvml::machine::{Device, Machine, Memory, driver_version, process_name};

/// Characters between the bars at both ends.
const WIDTH: usize = 89;

/// A line for each device.
pub fn list(devices: &[&Device]) -> String {
    let line = |device: &&Device| {
        format!("GPU {}: {} (UUID: {})\n", device.index, device.attributes.name, device.uuid())
    };
    devices.iter().map(line).collect()
}

/// Devices and processes.
pub fn table(machine: &Machine, devices: &[&Device]) -> String {
    let versions = format!(
        "Anywarp {:<24} Driver Version: {:<18} CUDA Version: {}",
        env!("CARGO_PKG_VERSION"),
        driver_version(),
        cuda_version()
    );
    let mut lines = vec![format!("{} UTC", timestamp()), rule('-', &[WIDTH]), row(&[(&versions, WIDTH)])];
    lines.push(rule('-', &COLUMNS));
    lines.push(columns("GPU  Name", "Bus-Id", "GPU-Util"));
    lines.push(columns("Cores   Clock", "Memory-Usage", "Compute M."));
    lines.push(rule('=', &COLUMNS));
    for device in devices {
        let Memory { used, total, .. } = machine.memory(device);
        let attributes = &device.attributes;
        let cores = format!("{:>5}   {} MHz", attributes.threads, attributes.clock_khz / 1000);
        let use_of = format!("{}%", machine.utilization(device));
        lines.push(columns(
            &format!("{:>3}  {}", device.index, attributes.name),
            &device.pci_bus_id(),
            &use_of,
        ));
        lines.push(columns(&cores, &format!("{} / {}MiB", megabytes(used), total >> 20), "Default"));
        lines.push(rule('-', &COLUMNS));
    }
    lines.push(String::new());
    lines.push(rule('-', &[WIDTH]));
    lines.push(row(&[("Processes:", WIDTH)]));
    lines.push(row(&[("  GPU        PID   Type   Process name", 66), ("GPU Memory", WIDTH - 67)]));
    lines.push(rule('=', &[WIDTH]));
    let mut any = false;
    for device in devices {
        for process in machine.processes(device) {
            any = true;
            let name = process_name(process.id).unwrap_or_else(|| "[Not Found]".into());
            let text = format!("{:>5} {:>10}      C   {name}", device.index, process.id);
            lines.push(row(&[(&text, 66), (&format!("{:>10}", megabytes(process.memory)), WIDTH - 67)]));
        }
    }
    if !any {
        lines.push(row(&[("  No running processes found", WIDTH)]));
    }
    lines.push(rule('-', &[WIDTH]));
    lines.join("\n") + "\n"
}

/// Widths of the columns of devices; with the bars between them they are as wide as the table.
const COLUMNS: [usize; 3] = [45, 26, 16];

fn columns(first: &str, second: &str, third: &str) -> String {
    let (second, third) = (format!("{second:>24}"), format!("{third:>14}"));
    format!("|{}|{}|{}|", cell(first, COLUMNS[0]), cell(&second, COLUMNS[1]), cell(&third, COLUMNS[2]))
}

/// Cells without bars between them.
fn row(cells: &[(&str, usize)]) -> String {
    let texts: Vec<String> = cells.iter().map(|(text, width)| cell(text, *width)).collect();
    format!("|{}|", texts.join(" "))
}

/// A text with a space on each side, cut or filled to a width.
fn cell(text: &str, width: usize) -> String {
    let room = width - 2;
    let text = match text.chars().count() > room {
        true => text.chars().take(room - 1).chain(['…']).collect(),
        false => text.to_owned(),
    };
    format!(" {text:<room$} ")
}

fn rule(line: char, widths: &[usize]) -> String {
    let parts: Vec<String> = widths.iter().map(|width| line.to_string().repeat(*width)).collect();
    format!("+{}+", parts.join("+"))
}

/// Rounded up: a little is not nothing.
fn megabytes(bytes: u64) -> String {
    format!("{}MiB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lines_of_the_table_are_as_wide() {
        assert_eq!(COLUMNS.iter().sum::<usize>() + 2, WIDTH);
        let options = device::Options { devices: 2, memory: Some(1 << 40), ..device::Options::default() };
        let machine = Machine::new(&options);
        let devices: Vec<_> = machine.devices().iter().collect();
        let text = table(&machine, &devices);
        let widths = text.lines().skip(1).filter(|line| !line.is_empty()).map(|line| line.chars().count());
        assert!(widths.into_iter().all(|width| width == WIDTH + 2), "{text}");
        assert!(text.contains("1048576MiB") && text.contains("No running processes found"), "{text}");
        assert!(cell("a name that is too long for its cell", 12).ends_with("… "));
    }
}
