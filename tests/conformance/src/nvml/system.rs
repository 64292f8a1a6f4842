//! The machine as a whole.

use super::common::*;
use crate::driver::functions::cuDriverGetVersion;
use cuda_abi::driver::CUDA_SUCCESS;

pub fn versions_are_those_of_the_driver() {
    ml!(nvmlInit_v2());
    let (mut of_nvml, mut second, mut of_driver) = (0, 0, 0);
    ml!(nvmlSystemGetCudaDriverVersion(&mut of_nvml); nvmlSystemGetCudaDriverVersion_v2(&mut second));
    fails!(CUDA_SUCCESS, cuDriverGetVersion(&mut of_driver));
    assert_eq!((of_nvml, second), (of_driver, of_driver));
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlSystemGetCudaDriverVersion(null_mut()));
    let driver = text(|place, len| ml!(nvmlSystemGetDriverVersion(place, len)));
    let own = text(|place, len| ml!(nvmlSystemGetNVMLVersion(place, len)));
    // Programs compare it as numbers.
    assert!(driver.split('.').all(|part| part.parse::<u32>().is_ok()), "{driver}");
    assert_eq!(own, format!("{}.{driver}", of_driver / 1000));
}

pub fn a_version_needs_room() {
    ml!(nvmlInit_v2());
    let driver = text(|place, len| ml!(nvmlSystemGetDriverVersion(place, len)));
    let (mut buffer, exactly) = ([0; 80], driver.len() as u32 + 1);
    fails!(NVML_ERROR_INSUFFICIENT_SIZE, nvmlSystemGetDriverVersion(buffer.as_mut_ptr(), exactly - 1));
    ml!(nvmlSystemGetDriverVersion(buffer.as_mut_ptr(), exactly));
    assert_eq!(until_nul(&buffer), driver);
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlSystemGetDriverVersion(null_mut(), 80));
}

pub fn a_process_has_a_name() {
    ml!(nvmlInit_v2());
    let name = text(|place, len| ml!(nvmlSystemGetProcessName(std::process::id(), place, len)));
    assert!(name.contains("conformance"), "{name}");
    let mut short = [1; 5];
    ml!(nvmlSystemGetProcessName(std::process::id(), short.as_mut_ptr(), 5));
    assert_eq!(until_nul(&short), &name[..4], "as much as fits");
    fails!(NVML_ERROR_NOT_FOUND, nvmlSystemGetProcessName(0x7fff_fffe, short.as_mut_ptr(), 5));
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlSystemGetProcessName(1, null_mut(), 5));
}

pub fn there_are_no_units() {
    ml!(nvmlInit_v2());
    let mut count = 7;
    ml!(nvmlUnitGetCount(&mut count));
    assert_eq!(count, 0);
    fails!(NVML_ERROR_INVALID_ARGUMENT, nvmlUnitGetCount(null_mut()));
    let mut count = 7;
    ml!(nvmlSystemGetHicVersion(&mut count, null_mut()));
    assert_eq!(count, 0);
}

pub fn the_first_processor_is_near_a_device() {
    ml!(nvmlInit_v2());
    let (mut count, mut all, mut devices) = (0, 0, [nvmlDevice_t::NULL; 64]);
    ml!(nvmlDeviceGetCount_v2(&mut all); nvmlSystemGetTopologyGpuSet(0, &mut count, null_mut()));
    assert!(count >= 1 && count <= all);
    ml!(nvmlSystemGetTopologyGpuSet(0, &mut count, devices.as_mut_ptr()));
    assert!(!devices[0].is_null());
}
