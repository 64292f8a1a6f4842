//! Questions about a device.

use super::common::*;
use crate::driver::functions::{cuDeviceGetCount, cuDeviceGetPCIBusId, cuDeviceGetUuid_v2, cuInit};
use cuda_abi::driver::{CUDA_SUCCESS, CUuuid};

fn uuid(device: nvmlDevice_t) -> String {
    text(|place, len| ml!(nvmlDeviceGetUUID(device, place, len)))
}

pub fn devices_are_found_by_number() {
    let (mut count, mut first, mut device) = (0, 0, nvmlDevice_t::NULL);
    ml!(nvmlInit_v2(); nvmlDeviceGetCount_v2(&mut count); nvmlDeviceGetCount(&mut first));
    assert_eq!(count, first);
    for index in 0..count {
        let mut found = u32::MAX;
        ml!(nvmlDeviceGetHandleByIndex_v2(index, &mut device); nvmlDeviceGetIndex(device, &mut found));
        assert_eq!(found, index);
        ml!(nvmlDeviceGetMinorNumber(device, &mut found));
    }
    ml!(nvmlDeviceGetHandleByIndex(0, &mut device));
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetHandleByIndex_v2(count, &mut device));
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetHandleByIndex_v2(0, null_mut()));
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetCount_v2(null_mut()));
}

pub fn the_environment_of_programs_hides_no_device() {
    set_env("CUDA_VISIBLE_DEVICES", "");
    let mut count = 0;
    ml!(nvmlInit_v2(); nvmlDeviceGetCount_v2(&mut count));
    assert!(count >= 1);
}

pub fn the_driver_calls_a_device_the_same() {
    let device = first_device();
    let mut of_driver = CUuuid { bytes: [0; 16] };
    fails!(CUDA_SUCCESS, cuInit(0));
    fails!(CUDA_SUCCESS, cuDeviceGetUuid_v2(&mut of_driver, 0));
    let digits: String = of_driver.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(uuid(device).strip_prefix("GPU-").expect("a prefix").replace('-', ""), digits);
    let (mut bus, mut pci) = ([0; 64], None);
    fails!(CUDA_SUCCESS, cuDeviceGetPCIBusId(bus.as_mut_ptr(), 64, 0));
    pci_info(device, &mut pci);
    let pci = pci.expect("just asked");
    assert_eq!(until_nul(&bus).to_uppercase(), until_nul(&pci.busIdLegacy).to_uppercase());
    let mut devices = 0;
    fails!(CUDA_SUCCESS, cuDeviceGetCount(&mut devices));
    let mut count = 0;
    ml!(nvmlDeviceGetCount_v2(&mut count));
    assert_eq!(devices as u32, count);
}

fn pci_info(device: nvmlDevice_t, place: &mut Option<nvmlPciInfo_t>) {
    let mut info = std::mem::MaybeUninit::<nvmlPciInfo_t>::zeroed();
    ml!(nvmlDeviceGetPciInfo_v3(device, info.as_mut_ptr()));
    // SAFETY: numbers and characters, of which zero is one.
    *place = Some(unsafe { info.assume_init() });
}

pub fn devices_are_found_by_identity() {
    let device = first_device();
    let (name, mut found) = (CString::new(uuid(device)).expect("no NUL"), nvmlDevice_t::NULL);
    ml!(nvmlDeviceGetHandleByUUID(name.as_ptr(), &mut found));
    assert_eq!(found, device);
    found = nvmlDevice_t::NULL;
    ml!(nvmlDeviceGetHandleByUUID(name.as_ptr().wrapping_add(4), &mut found));
    assert_eq!(found, device, "without GPU-");
    let unknown = c"GPU-00000000-0000-0000-0000-000000000000";
    fails!(NVML_ERROR_NOT_FOUND, nvmlDeviceGetHandleByUUID(unknown.as_ptr(), &mut found));
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetHandleByUUID(null(), &mut found));
    fails!(NVML_ERROR_NOT_FOUND, nvmlDeviceGetHandleBySerial(c"123".as_ptr(), &mut found));
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetHandleBySerial(null(), &mut found));
}

pub fn devices_are_found_on_the_bus() {
    let device = first_device();
    let (mut pci, mut found) = (None, nvmlDevice_t::NULL);
    pci_info(device, &mut pci);
    let pci = pci.expect("just asked");
    let long = until_nul(&pci.busId);
    assert!(long.ends_with(&until_nul(&pci.busIdLegacy)), "{long}");
    for text in [long.clone(), until_nul(&pci.busIdLegacy), long.to_lowercase()] {
        let text = CString::new(text).expect("no NUL");
        ml!(nvmlDeviceGetHandleByPciBusId_v2(text.as_ptr(), &mut found));
        assert_eq!(found, device);
        ml!(nvmlDeviceGetHandleByPciBusId(text.as_ptr(), &mut found));
    }
    fails!(NVML_ERROR_NOT_FOUND, nvmlDeviceGetHandleByPciBusId_v2(c"0000:fe:1f.0".as_ptr(), &mut found));
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetHandleByPciBusId_v2(null(), &mut found));
    let mut second = nvmlPciInfo_v2_t::default();
    ml!(nvmlDeviceGetPciInfo_v2(device, &mut second));
    assert_eq!((second.bus, second.domain), (pci.bus, pci.domain));
    assert_eq!(until_nul(&second.busId), until_nul(&pci.busIdLegacy));
    let mut first = nvmlPciInfo_v1_t::default();
    ml!(nvmlDeviceGetPciInfo(device, &mut first));
    assert_eq!((first.bus, first.domain), (pci.bus, pci.domain));
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetPciInfo_v3(device, null_mut()));
}

pub fn a_name_needs_room() {
    let device = first_device();
    let name = text(|place, len| ml!(nvmlDeviceGetName(device, place, len)));
    assert!(!name.is_empty());
    let mut buffer = [0; 96];
    fails!(NVML_ERROR_INSUFFICIENT_SIZE, nvmlDeviceGetName(device, buffer.as_mut_ptr(), 3));
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetName(device, null_mut(), 96));
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetName(nvmlDevice_t::NULL, buffer.as_mut_ptr(), 96));
    fails!(NVML_ERROR_INSUFFICIENT_SIZE, nvmlDeviceGetUUID(device, buffer.as_mut_ptr(), 40));
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetSerial(device, null_mut(), 30));
    if is_ours() {
        fails!(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetSerial(device, buffer.as_mut_ptr(), 30));
        let mut brand = nvmlBrandType_t(99);
        ml!(nvmlDeviceGetBrand(device, &mut brand));
        assert_eq!(brand, NVML_BRAND_UNKNOWN);
    }
}

pub fn memory_adds_up() {
    let device = first_device();
    let mut memory = nvmlMemory_t::default();
    ml!(nvmlDeviceGetMemoryInfo(device, &mut memory));
    assert_eq!(memory.total, memory.free + memory.used);
    let mut second = nvmlMemory_v2_t { version: nvmlMemory_v2, ..Default::default() };
    ml!(nvmlDeviceGetMemoryInfo_v2(device, &mut second));
    assert_eq!(second.total, second.free + second.used + second.reserved);
    assert_eq!(second.total, memory.total);
    let mut wrong = nvmlMemory_v2_t { version: 7, ..Default::default() };
    fails!(NVML_ERROR_FUNCTION_NOT_FOUND, nvmlDeviceGetMemoryInfo_v2(device, &mut wrong));
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetMemoryInfo(device, null_mut()));
    let mut bus = nvmlBAR1Memory_t::default();
    ml!(nvmlDeviceGetBAR1MemoryInfo(device, &mut bus));
    assert_eq!(bus.bar1Total, bus.bar1Free + bus.bar1Used);
}

pub fn what_a_device_is() {
    let device = first_device();
    let (mut major, mut minor, mut arch, mut cores) = (0, 0, 0, 0);
    ml!(
        nvmlDeviceGetCudaComputeCapability(device, &mut major, &mut minor);
        nvmlDeviceGetArchitecture(device, &mut arch);
        nvmlDeviceGetNumGpuCores(device, &mut cores);
    );
    if major == 9 {
        assert_eq!(arch, NVML_DEVICE_ARCH_HOPPER);
    }
    assert!(cores > 0);
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetCudaComputeCapability(device, null_mut(), &mut minor));
    let (mut clock, mut most) = (0, 0);
    for kind in [NVML_CLOCK_GRAPHICS, NVML_CLOCK_SM] {
        ml!(nvmlDeviceGetClockInfo(device, kind, &mut clock); nvmlDeviceGetMaxClockInfo(device, kind, &mut most));
        assert!(clock > 0 && most > 0);
    }
    if is_ours() {
        fails!(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetClockInfo(device, NVML_CLOCK_MEM, &mut clock));
    }
    fails!(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetClockInfo(device, nvmlClockType_t(5), &mut clock));
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetMaxClockInfo(device, nvmlClockType_t(5), &mut clock));
    let mut board = 7;
    ml!(nvmlDeviceGetMultiGpuBoard(device, &mut board));
    assert_eq!(board, 0);
}

pub fn how_a_device_is_set() {
    let device = first_device();
    let (mut mode, mut state) = (nvmlComputeMode_t(9), nvmlEnableState_t(9));
    ml!(nvmlDeviceGetComputeMode(device, &mut mode); nvmlDeviceGetPersistenceMode(device, &mut state));
    assert_eq!(mode, NVML_COMPUTEMODE_DEFAULT);
    assert!(state.name().is_some());
    ml!(nvmlDeviceGetDisplayMode(device, &mut state); nvmlDeviceGetDisplayActive(device, &mut state));
    assert_eq!(state, NVML_FEATURE_DISABLED);
    let (mut virtual_mode, mut events) = (9, 9);
    ml!(nvmlDeviceGetVirtualizationMode(device, &mut virtual_mode));
    ml!(nvmlDeviceGetSupportedEventTypes(device, &mut events));
    let (mut current, mut pending) = (nvmlEnableState_t(9), nvmlEnableState_t(9));
    if is_ours() {
        assert_eq!((virtual_mode, events), (0, 0));
        fails!(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetEccMode(device, &mut current, &mut pending));
    }
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetComputeMode(device, null_mut()));
}

pub fn sensors_that_are_not_there_say_so() {
    if !is_ours() {
        skip("sensors of this device are its own");
    }
    let (device, mut value) = (first_device(), 0);
    fails!(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_GPU, &mut value));
    fails!(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetPowerUsage(device, &mut value));
    fails!(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetFanSpeed(device, &mut value));
    fails!(
        NVML_ERROR_INVALID_ARGUMENT,
        nvmlDeviceGetTemperature(device, nvmlTemperatureSensors_t(9), &mut value)
    );
}

pub fn a_device_is_not_divided() {
    let device = first_device();
    let (mut current, mut pending, mut part) = (9, 9, nvmlDevice_t::NULL);
    ml!(nvmlDeviceIsMigDeviceHandle(device, &mut current));
    assert_eq!(current, 0);
    if is_ours() {
        fails!(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetMigMode(device, &mut current, &mut pending));
        fails!(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetMigDeviceHandleByIndex(device, 0, &mut part));
        ml!(nvmlDeviceGetMaxMigDeviceCount(device, &mut current));
        assert_eq!(current, 0);
    }
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetMigMode(device, null_mut(), &mut pending));
}

pub fn questions_of_a_list_are_answered_one_by_one() {
    let device = first_device();
    let mut values = [nvmlFieldValue_t::default(); 2];
    (values[0].fieldId, values[1].fieldId) = (186, 0xffff);
    ml!(nvmlDeviceGetFieldValues(device, 2, values.as_mut_ptr()));
    assert_ne!(values[1].nvmlReturn, NVML_SUCCESS.0);
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetFieldValues(device, 1, null_mut()));
}

pub fn processors_and_memory_are_near() {
    let (device, mut words) = (first_device(), [0_u64; 16]);
    ml!(nvmlDeviceGetCpuAffinity(device, 16, words.as_mut_ptr()));
    assert_ne!(words, [0; 16]);
    let mut scoped = [0_u64; 16];
    ml!(nvmlDeviceGetCpuAffinityWithinScope(device, 16, scoped.as_mut_ptr(), NVML_AFFINITY_SCOPE_NODE));
    assert_eq!(words, scoped);
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetCpuAffinity(device, 0, words.as_mut_ptr()));
    ml!(nvmlDeviceGetMemoryAffinity(device, 16, words.as_mut_ptr(), NVML_AFFINITY_SCOPE_NODE));
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetMemoryAffinity(device, 16, words.as_mut_ptr(), 9));
    let mut node = 0;
    fails!(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetNumaNodeId(device, &mut node));
}

pub fn how_two_devices_are_connected() {
    if is_ours() {
        set_env("ANYWARP_DEVICES", "2");
    }
    let (one, mut count, mut other) = (first_device(), 0, nvmlDevice_t::NULL);
    ml!(nvmlDeviceGetCount_v2(&mut count));
    if count < 2 {
        skip("one device");
    }
    ml!(nvmlDeviceGetHandleByIndex_v2(1, &mut other));
    let (mut level, mut status, mut same) = (nvmlGpuTopologyLevel_t(99), nvmlGpuP2PStatus_t(99), 9);
    ml!(
        nvmlDeviceGetTopologyCommonAncestor(one, other, &mut level);
        nvmlDeviceGetP2PStatus(one, other, NVML_P2P_CAPS_INDEX_READ, &mut status);
        nvmlDeviceOnSameBoard(one, other, &mut same);
    );
    assert_eq!(status, NVML_P2P_STATUS_OK);
    assert!(level.name().is_some() && same <= 1);
    let (mut near, mut handles) = (64, [nvmlDevice_t::NULL; 64]);
    ml!(nvmlDeviceGetTopologyNearestGpus(one, level, &mut near, handles.as_mut_ptr()));
    assert!(near >= 1 && handles.contains(&other));
    ml!(nvmlDeviceGetP2PStatus(one, one, NVML_P2P_CAPS_INDEX_READ, &mut status));
    assert_eq!(status, NVML_P2P_STATUS_NOT_SUPPORTED, "a device is not its own peer");
    fails!(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetTopologyCommonAncestor(one, one, &mut level));
    fails!(
        NVML_ERROR_INVALID_ARGUMENT,
        nvmlDeviceGetTopologyCommonAncestor(one, nvmlDevice_t::NULL, &mut level)
    );
}

pub fn there_are_no_links() {
    if !is_ours() {
        skip("a GPU may have links");
    }
    let (device, mut state, mut value) = (first_device(), nvmlEnableState_t(9), 0);
    fails!(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetNvLinkState(device, 0, &mut state));
    fails!(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetNvLinkVersion(device, 0, &mut value));
    fails!(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetNvLinkCapability(device, 0, 0, &mut value));
    fails!(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetNvLinkState(device, 99, &mut state));
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlDeviceGetNvLinkCapability(device, 18, 0, &mut value));
    let mut pci = std::mem::MaybeUninit::<nvmlPciInfo_t>::zeroed();
    fails!(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetNvLinkRemotePciInfo_v2(device, 0, pci.as_mut_ptr()));
    fails!(NVML_ERROR_NOT_SUPPORTED, nvmlDeviceGetNvLinkRemotePciInfo(device, 0, pci.as_mut_ptr()));
}
