//! Several devices, chosen by the environment, which is read once: a process of its own.

mod common;
use common::*;

/// Devices 2 and 0 of three. Every test comes here first.
fn init_devices() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: every test of this process waits here until it is done, and nothing has read the environment before.
        unsafe {
            std::env::set_var("ANYWARP_DEVICES", "3");
            std::env::set_var("CUDA_VISIBLE_DEVICES", "2,0");
        }
        init();
    });
}

fn attribute(which: CUdevice_attribute, device: CUdevice) -> i32 {
    let mut value = -1;
    cu!(cuDeviceGetAttribute(out(&mut value), which, device));
    value
}

/// A text that a function writes into a buffer of `N` bytes.
fn text_of<const N: usize>(write: impl FnOnce(Array<std::ffi::c_char>, i32)) -> String {
    let mut buffer = [1u8 as std::ffi::c_char; N];
    write(array(&mut buffer), N as i32);
    let bytes = buffer.map(|byte| byte as u8);
    std::ffi::CStr::from_bytes_until_nul(&bytes).unwrap().to_str().unwrap().to_owned()
}

#[test]
fn the_chosen_devices_are_there() {
    init_devices();
    let mut count = 0;
    cu!(cuDeviceGetCount(out(&mut count)));
    assert_eq!(count, 2);
    let (mut device, mut ids) = (-1, [CUuuid::default(); 2]);
    for ordinal in 0..2 {
        cu!(cuDeviceGet(out(&mut device), ordinal));
        cu!(cuDeviceGetUuid_v2(out(&mut ids[ordinal as usize]), device));
        let bus = text_of::<32>(|place, len| cu!(cuDeviceGetPCIBusId(place, len, device)));
        let mut back = -1;
        cu!(cuDeviceGetByPCIBusId(out(&mut back), any_text(&bus)));
        assert_eq!(back, device, "{bus}");
        assert_eq!(bus, format!("0000:{:02x}:00.0", attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, device)));
    }
    assert_ne!(ids[0], ids[1]);
    for wrong in [-1, 2, 99] {
        fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(out(&mut device), wrong));
    }
    for wrong in [c"0000:77:00.0", c"0000:00:00.0"] {
        fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetByPCIBusId(out(&mut device), text(wrong)));
    }
    for wrong in [c"", c"nonsense", c"1:2:3:4", c"0000:01:00.x"] {
        fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetByPCIBusId(out(&mut device), text(wrong)));
    }
}

#[test]
fn names_are_cut_to_the_buffer() {
    init_devices();
    let name = text_of::<256>(|place, len| cu!(cuDeviceGetName(place, len, 0)));
    assert!(name.starts_with("Anywarp"), "{name}");
    assert_eq!(text_of::<4>(|place, len| cu!(cuDeviceGetName(place, len, 0))), name[..3]);
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetName(no_array(), 10, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetName(array(&mut [1, 1]), 0, 0));
}

#[test]
fn every_attribute_has_a_value_and_nothing_else_has() {
    init_devices();
    for (_, which) in CUdevice_attribute::NAMES {
        attribute(*which, 0);
    }
    assert_eq!(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 1), 9);
    assert_eq!(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1), 32);
    let mut value = 0;
    for wrong in [0, 148, 100_000] {
        let which = CUdevice_attribute(wrong);
        fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(out(&mut value), which, 0));
    }
    fails!(
        CUDA_ERROR_INVALID_DEVICE,
        cuDeviceGetAttribute(out(&mut value), CU_DEVICE_ATTRIBUTE_WARP_SIZE, 2)
    );
}

#[test]
fn peers_reach_each_others_memory() {
    init_devices();
    let mut can = -1;
    cu!(cuDeviceCanAccessPeer(out(&mut can), 0, 1));
    assert_eq!(can, 1);
    cu!(cuDeviceCanAccessPeer(out(&mut can), 1, 1));
    assert_eq!(can, 0);
    let contexts = [0, 1].map(|device| {
        let mut context = CUcontext::NULL;
        cu!(cuCtxCreate_v4(out(&mut context), null_mut(), 0, device));
        context
    });
    let there = alloc_with(&[1u32, 2, 3]);
    let mut device = -1;
    cu!(cuCtxGetDevice(out(&mut device)));
    assert_eq!(device, 1);
    cu!(cuCtxSetCurrent(contexts[0]));
    fails!(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, cuCtxEnablePeerAccess(contexts[0], 0));
    fails!(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(contexts[1]));
    cu!(cuCtxEnablePeerAccess(contexts[1], 0));
    fails!(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(contexts[1], 0));
    let here = alloc(12);
    cu!(cuMemcpyPeer(here, contexts[0], there, contexts[1], 12));
    assert_eq!(read::<u32>(here, 3), [1, 2, 3]);
    cu!(cuCtxDisablePeerAccess(contexts[1]); cuCtxDestroy_v2(contexts[0]); cuCtxDestroy_v2(contexts[1]));
}
