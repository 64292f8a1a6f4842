//! Initialisation and errors.

use super::common::*;

pub fn nothing_works_before_initialisation() {
    let (mut count, mut buffer) = (7, [0; 96]);
    fails!(NVML_ERROR_UNINITIALIZED, nvmlDeviceGetCount_v2(&mut count));
    fails!(NVML_ERROR_UNINITIALIZED, nvmlSystemGetDriverVersion(buffer.as_mut_ptr(), 96));
    fails!(NVML_ERROR_UNINITIALIZED, nvmlDeviceGetName(nvmlDevice_t::NULL, buffer.as_mut_ptr(), 96));
    fails!(NVML_ERROR_UNINITIALIZED, nvmlShutdown());
    let mut version = 7;
    fails!(NVML_ERROR_UNINITIALIZED, nvmlSystemGetCudaDriverVersion(&mut version));
    assert_eq!((count, version), (7, 7));
    ml!(nvmlSystemGetNVMLVersion(buffer.as_mut_ptr(), 96));
}

pub fn users_are_counted() {
    let mut count = 0;
    ml!(nvmlInit_v2(); nvmlInit(); nvmlInitWithFlags(NVML_INIT_FLAG_NO_GPUS); nvmlShutdown(); nvmlShutdown());
    ml!(nvmlDeviceGetCount_v2(&mut count); nvmlShutdown());
    fails!(NVML_ERROR_UNINITIALIZED, nvmlDeviceGetCount_v2(&mut count));
    fails!(NVML_ERROR_UNINITIALIZED, nvmlShutdown());
    ml!(nvmlInit_v2(); nvmlDeviceGetCount_v2(&mut count));
    assert!(count >= 1);
}

pub fn errors_have_texts() {
    // SAFETY: any number may be asked about, and the texts live for ever.
    let text = |code| unsafe { CStr::from_ptr(nvmlErrorString(code)) }.to_str().expect("ASCII");
    assert_eq!(text(NVML_SUCCESS), "Success");
    assert_eq!(text(NVML_ERROR_NOT_SUPPORTED), "Not Supported");
    assert_eq!(text(NVML_ERROR_NOT_READY), "System is not in ready state");
    assert_eq!(text(nvmlReturn_t(31)), "Unknown Error");
    assert_eq!(text(nvmlReturn_t(12345)), text(NVML_ERROR_UNKNOWN));
}
