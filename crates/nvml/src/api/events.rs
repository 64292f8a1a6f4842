//! Events of devices. Nothing happens to these, but programs that watch devices make sets and wait, and give up where they cannot.

use super::find;
use cuda_abi::args::Out;
use cuda_abi::nvml::*;
use cuda_abi::shim::locked;
use entry_macros::entry_point;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::thread::sleep;
use std::time::Duration;

/// The sets that were made and not freed. Numbers are not used again, so that a handle which was freed is none.
static SETS: Mutex<Sets> = Mutex::new(Sets { made: 0, live: BTreeSet::new() });

struct Sets {
    made: usize,
    live: BTreeSet<usize>,
}

/// A handle must be one of a set.
fn check(set: nvmlEventSet_t) -> NvmlResult {
    let live = locked(&SETS).live.contains(&set.0);
    if live { Ok(()) } else { Err(NVML_ERROR_INVALID_ARGUMENT) }
}

#[entry_point]
fn nvmlDeviceGetSupportedEventTypes(device: nvmlDevice_t, eventTypes: Out<u64>) -> NvmlResult {
    find(device)?;
    eventTypes.set(0)?;
    Ok(())
}

#[entry_point]
fn nvmlEventSetCreate(set: Out<nvmlEventSet_t>) -> NvmlResult {
    set.check()?;
    let mut sets = locked(&SETS);
    sets.made += 1;
    let number = sets.made;
    sets.live.insert(number);
    set.set(nvmlEventSet_t(number))?;
    Ok(())
}

/// A device must have each of the events that are asked for.
#[entry_point]
fn nvmlDeviceRegisterEvents(device: nvmlDevice_t, eventTypes: u64, set: nvmlEventSet_t) -> NvmlResult {
    find(device)?;
    check(set)?;
    if eventTypes == 0 { Ok(()) } else { Err(NVML_ERROR_NOT_SUPPORTED) }
}

/// As for [`nvmlEventSetWait_v2`]; an event tells less.
#[entry_point]
fn nvmlEventSetWait(set: nvmlEventSet_t, data: Out<nvmlEventData_t>, timeoutms: u32) -> NvmlResult {
    wait(set, data, timeoutms)
}

/// Waits for so many milliseconds, and says so where nothing happened.
#[entry_point]
fn nvmlEventSetWait_v2(set: nvmlEventSet_t, data: Out<nvmlEventData_t>, timeoutms: u32) -> NvmlResult {
    wait(set, data, timeoutms)
}

fn wait(set: nvmlEventSet_t, data: Out<nvmlEventData_t>, timeoutms: u32) -> NvmlResult {
    data.check()?;
    check(set)?;
    sleep(Duration::from_millis(timeoutms.into()));
    Err(NVML_ERROR_TIMEOUT)
}

#[entry_point]
fn nvmlEventSetFree(set: nvmlEventSet_t) -> NvmlResult {
    let freed = locked(&SETS).live.remove(&set.0);
    if freed { Ok(()) } else { Err(NVML_ERROR_INVALID_ARGUMENT) }
}
