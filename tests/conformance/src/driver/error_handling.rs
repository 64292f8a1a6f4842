//! Error handling.

use super::common::*;
use crate::facts;

pub fn every_code_has_its_name_and_text() {
    for [number, name, text] in facts::rows(facts::DRIVER_ERRORS) {
        let code = CUresult(number.parse().expect("a number"));
        let (mut answer, mut description) = (null(), null());
        cu!(cuGetErrorName(code, &mut answer); cuGetErrorString(code, &mut description));
        assert_eq!((&*text_of(answer), &*text_of(description)), (name, text), "code {number}");
    }
}

pub fn an_unknown_code_has_neither() {
    let mut text = c"".as_ptr();
    fails!(CUDA_ERROR_INVALID_VALUE, cuGetErrorName(CUresult(12345), &mut text));
    assert!(text.is_null());
    text = c"".as_ptr();
    fails!(CUDA_ERROR_INVALID_VALUE, cuGetErrorString(CUresult(12345), &mut text));
    assert!(text.is_null());
}

pub fn a_place_for_the_text_is_needed() {
    if ours_only("NVIDIA's driver writes to null") {
        fails!(CUDA_ERROR_INVALID_VALUE, cuGetErrorName(CUDA_SUCCESS, null_mut()));
        fails!(CUDA_ERROR_INVALID_VALUE, cuGetErrorString(CUDA_SUCCESS, null_mut()));
    }
}
