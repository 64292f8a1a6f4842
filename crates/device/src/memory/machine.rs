//! What the machine says about its memory.

use std::fs;

use super::range::PAGE;

/// Bytes of memory this process may use: the machine's, or less where a control group limits it.
pub fn total() -> u64 {
    let installed = meminfo("MemTotal:").unwrap_or(1 << 30);
    installed.min(group_number("memory.max").unwrap_or(u64::MAX))
}

/// Bytes that can be had at the moment; `None` if the machine does not tell.
pub fn available() -> Option<u64> {
    let machine = meminfo("MemAvailable:")?;
    let group = group_number("memory.max")
        .zip(group_number("memory.current"))
        .map_or(u64::MAX, |(limit, current)| limit.saturating_sub(current));
    Some(machine.min(group))
}

/// Whether every page of a range is mapped in this process.
pub fn is_mapped(base: u64, size: u64) -> bool {
    let first = base & !(PAGE - 1);
    let Some(end) = base.checked_add(size).and_then(|end| end.checked_next_multiple_of(PAGE)) else {
        return false;
    };
    let mut resident = vec![0_u8; 1 << 12];
    let step = resident.len() as u64 * PAGE;
    let mut address = first;
    while address < end {
        let len = step.min(end - address);
        // SAFETY: one byte of the vector for each page; nothing is read through the address.
        if unsafe { libc::mincore(address as *mut _, len as usize, resident.as_mut_ptr()) } != 0 {
            return false;
        }
        address += len;
    }
    true
}

/// Whether the first and the last byte of a range of the program's memory can be read, and written if that is asked for. What is there
/// stays.
pub fn has_accessible_ends(base: u64, size: u64, to_write: bool) -> bool {
    let _receptive = guard::receptive();
    [base, base + (size - 1)].into_iter().all(|address| {
        // SAFETY: the program's memory, read at one place, and replaced there by what it is, in one step that others do not see.
        unsafe {
            guard::load::<u8>(address)
                .is_ok_and(|byte| !to_write || guard::compare_exchange(address, byte, byte).is_ok())
        }
    })
}

fn meminfo(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// A number of this process's control group (version 2); `None` without one or without a limit.
fn group_number(file: &str) -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let path = format!("/sys/fs/cgroup{}/{file}", group.trim_end_matches('/'));
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
