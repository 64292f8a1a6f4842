//! Initialisation, and what works without it.

use super::common::*;

pub fn before_init_only_versions_and_texts_work() {
    let mut version = 0;
    cu!(cuDriverGetVersion(&mut version));
    assert!(version >= 13000, "version {version}");
    let mut text = null();
    cu!(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &mut text));
    assert_eq!(text_of(text), "CUDA_ERROR_OUT_OF_MEMORY");
    let mut count = 0;
    fails!(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&mut count));
}
