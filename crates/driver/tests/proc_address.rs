//! `cuGetProcAddress`: names, versions, variants.

use cuda_abi::args::{Out, Text};
use cuda_abi::driver::*;
use driver::api::cuGetProcAddress_v2;
use std::ffi::{CString, c_void};

/// The answer, as the symbol's address and the status.
fn find(name: &str, version: i32, flags: u64) -> (usize, CUdriverProcAddressQueryResult) {
    let name = CString::new(name).unwrap();
    let (mut pointer, mut status) = (std::ptr::null_mut::<c_void>(), CUdriverProcAddressQueryResult(99));
    // SAFETY: the pointers are to live locals.
    let code = unsafe {
        cuGetProcAddress_v2(
            Text::new(name.as_ptr()),
            Out::new(&raw mut pointer),
            version,
            flags,
            Out::new(&raw mut status),
        )
    };
    assert_eq!(code, CUDA_SUCCESS);
    (pointer as usize, status)
}

#[test]
fn versions_choose_between_variants() {
    let (old, status) = find("cuGetProcAddress", 11030, 0);
    assert_eq!(status, CU_GET_PROC_ADDRESS_SUCCESS);
    let (new, _) = find("cuGetProcAddress", 12000, 0);
    assert_eq!(new, cuGetProcAddress_v2 as *const () as usize);
    assert_ne!(old, new);
    for name in ["cuCtxGetDevice", "cuCtxSynchronize"] {
        assert_ne!(find(name, 2000, 0).0, find(name, 13000, 0).0, "{name}");
    }
    assert_ne!(find("cuEventElapsedTime", 12070, 0).0, find("cuEventElapsedTime", 12080, 0).0);
}

#[test]
fn flags_choose_the_default_stream() {
    let legacy = find("cuMemcpyHtoD", 7000, CU_GET_PROC_ADDRESS_LEGACY_STREAM).0;
    assert_eq!(legacy, find("cuMemcpyHtoD", 7000, 0).0);
    let flag = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    assert_ne!(legacy, find("cuMemcpyHtoD", 7000, flag).0);
    // No variant of its own, or none yet: the usual one.
    assert_eq!(find("cuInit", 13000, flag).0, find("cuInit", 13000, 0).0);
    assert_eq!(find("cuMemcpyHtoD", 4000, flag).0, legacy);
}

#[test]
fn what_is_not_there_is_told_by_the_status() {
    assert_eq!(find("cuNoSuchThing", 13000, 0), (0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND));
    assert_eq!(find("cuGetProcAddress", 11020, 0), (0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT));
}
