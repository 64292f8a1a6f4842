//! Which processors and which memory are near a device: those it is made of.

use super::{find, not_there};
use cuda_abi::args::{Array, Out};
use cuda_abi::nvml::*;
use entry_macros::entry_point;

#[entry_point]
fn nvmlDeviceGetCpuAffinity(device: nvmlDevice_t, cpuSetSize: u32, cpuSet: Array<u64>) -> NvmlResult {
    find(device)?;
    write_processors(cpuSetSize, cpuSet)
}

#[entry_point]
fn nvmlDeviceGetCpuAffinityWithinScope(
    device: nvmlDevice_t,
    cpuSetSize: u32,
    cpuSet: Array<u64>,
    scope: u32,
) -> NvmlResult {
    find(device)?;
    check_scope(scope)?;
    write_processors(cpuSetSize, cpuSet)
}

/// A bit for each node that has memory: a device's memory may be anywhere.
#[entry_point]
fn nvmlDeviceGetMemoryAffinity(
    device: nvmlDevice_t,
    nodeSetSize: u32,
    nodeSet: Array<u64>,
    scope: u32,
) -> NvmlResult {
    find(device)?;
    check_scope(scope)?;
    let nodes = std::fs::read_to_string("/sys/devices/system/node/has_memory").unwrap_or_else(|_| "0".into());
    write_bits(&parse_list(&nodes), nodeSetSize, nodeSet)
}

/// The device is no node of the machine's memory.
#[entry_point]
fn nvmlDeviceGetNumaNodeId(device: nvmlDevice_t, node: Out<u32>) -> NvmlResult {
    node.check()?;
    not_there(device)
}

fn check_scope(scope: u32) -> NvmlResult {
    match scope {
        NVML_AFFINITY_SCOPE_NODE | NVML_AFFINITY_SCOPE_SOCKET => Ok(()),
        _ => Err(NVML_ERROR_INVALID_ARGUMENT),
    }
}

fn write_processors(words: u32, place: Array<u64>) -> NvmlResult {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_else(|_| "0".into());
    write_bits(&parse_list(&online), words, place)
}

/// Sets the bits that there is room for, and clears the others.
fn write_bits(bits: &[usize], words: u32, place: Array<u64>) -> NvmlResult {
    if words == 0 || place.is_null() {
        return Err(NVML_ERROR_INVALID_ARGUMENT);
    }
    for index in 0..words as usize {
        let here = bits.iter().filter(|bit| *bit / 64 == index);
        place.set(index, here.fold(0, |word, bit| word | 1 << (bit % 64)))?;
    }
    Ok(())
}

/// Reads `0-3,8`, as the system writes sets.
fn parse_list(text: &str) -> Vec<usize> {
    let ranges = text.trim().split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?.min(1 << 16))
    });
    ranges.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_read_as_the_system_writes_them() {
        assert_eq!(parse_list("0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!(parse_list("5"), [5]);
        assert!(parse_list("").is_empty() && parse_list("x-3").is_empty());
    }
}
