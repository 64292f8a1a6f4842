//! What the tests of the management library share.
#![allow(dead_code, unused_imports, reason = "each test file uses some of it")]

pub use crate::answers::{differs, is_ours, ours_only, set_env, skip};
pub use crate::nvml::functions::*;
pub use cuda_abi::nvml::*;
pub use std::ffi::{CStr, CString, c_char};
pub use std::ptr::{null, null_mut};

/// Initialises the library; the first device.
pub fn first_device() -> nvmlDevice_t {
    let mut device = nvmlDevice_t::NULL;
    ml!(nvmlInit_v2(); nvmlDeviceGetHandleByIndex_v2(0, &mut device));
    device
}

/// A text that a function writes.
pub fn text(write: impl FnOnce(*mut c_char, u32)) -> String {
    let mut buffer = [0x7f as c_char; 256];
    write(buffer.as_mut_ptr(), buffer.len() as u32);
    until_nul(&buffer)
}

/// What stands before the NUL.
pub fn until_nul(buffer: &[c_char]) -> String {
    let bytes: Vec<u8> = buffer.iter().map(|c| *c as u8).take_while(|byte| *byte != 0).collect();
    assert!(bytes.len() < buffer.len(), "the text ends");
    String::from_utf8(bytes).expect("ASCII")
}
