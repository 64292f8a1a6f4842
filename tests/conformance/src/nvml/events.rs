//! Events of devices, for which programs wait that watch them.

use super::common::*;
use std::time::{Duration, Instant};

/// A new set.
fn new_set() -> nvmlEventSet_t {
    let mut set = nvmlEventSet_t::NULL;
    ml!(nvmlEventSetCreate(&mut set));
    assert!(!set.is_null());
    set
}

fn no_data() -> nvmlEventData_t {
    let device = nvmlDevice_t::NULL;
    nvmlEventData_t { device, eventType: 0, eventData: 0, gpuInstanceId: 0, computeInstanceId: 0 }
}

pub fn waiting_for_what_does_not_happen_ends_in_time() {
    let device = first_device();
    let (mut types, mut data, set) = (1 << 63, no_data(), new_set());
    ml!(nvmlDeviceGetSupportedEventTypes(device, &mut types); nvmlDeviceRegisterEvents(device, types, set));
    let start = Instant::now();
    fails!(NVML_ERROR_TIMEOUT, nvmlEventSetWait_v2(set, &mut data, 50));
    assert!(start.elapsed() >= Duration::from_millis(50));
    fails!(NVML_ERROR_TIMEOUT, nvmlEventSetWait(set, &mut data, 0));
    ml!(nvmlEventSetFree(set));
}

pub fn sets_are_several() {
    ml!(nvmlInit_v2());
    let (first, second) = (new_set(), new_set());
    assert_ne!(first, second);
    ml!(nvmlEventSetFree(first); nvmlEventSetFree(second));
}

pub fn a_device_says_which_events_it_does_not_have() {
    let device = first_device();
    let (mut types, set) = (0, new_set());
    ml!(nvmlDeviceGetSupportedEventTypes(device, &mut types));
    // No type has the highest bit.
    fails!(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceRegisterEvents(device, types | 1 << 63, set));
    ml!(nvmlEventSetFree(set));
}

pub fn what_is_null_is_refused() {
    let device = first_device();
    let (mut data, set, none) = (no_data(), new_set(), nvmlEventSet_t::NULL);
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlEventSetCreate(null_mut()));
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlEventSetFree(none));
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlEventSetWait(none, &mut data, 0));
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlEventSetWait(set, null_mut(), 0));
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlEventSetWait_v2(none, &mut data, 0));
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlEventSetWait_v2(set, null_mut(), 0));
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceRegisterEvents(device, 0, none));
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceRegisterEvents(nvmlDevice_t::NULL, 0, set));
    ml!(nvmlEventSetFree(set));
}
