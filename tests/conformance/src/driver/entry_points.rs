//! Entry point access.

use super::common::*;
use cuda_abi::functions::{self, Api};

type Query = CUdriverProcAddressQueryResult;

/// The address and the status.
fn ask(name: &str, version: i32, flags: u64) -> (*mut c_void, Query) {
    let (mut address, mut status) = (null_mut(), CUdriverProcAddressQueryResult(99));
    let name = CString::new(name).expect("no NUL inside");
    cu!(cuGetProcAddress_v2(name.as_ptr(), &mut address, version, flags, &mut status));
    (address, status)
}

fn exported(name: &str) -> *mut c_void {
    let name = CString::new(name).expect("no NUL inside");
    crate::library::driver().symbol(&name).map_or(null_mut(), |address| address.as_ptr())
}

pub fn every_name_and_version_leads_to_a_function() {
    for function in functions::all().iter().filter(|function| function.api == Api::Driver) {
        for lookup in &function.lookups {
            let flags = match lookup.per_thread {
                true => CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                false => CU_GET_PROC_ADDRESS_LEGACY_STREAM,
            };
            let (address, status) = ask(lookup.base, lookup.since, flags);
            assert_eq!(status, CU_GET_PROC_ADDRESS_SUCCESS, "{lookup:?}");
            assert!(!address.is_null(), "{lookup:?}");
            // NVIDIA's answers need not be the exported addresses.
            if is_ours() {
                assert_eq!(address, exported(function.name), "{lookup:?}");
            }
        }
    }
}

pub fn versions_of_a_name_are_different_functions() {
    let at = |name, version| ask(name, version, 0).0;
    for (name, earlier, later) in [
        ("cuCtxGetDevice", 12080, 13000),
        ("cuCtxSynchronize", 12080, 13000),
        ("cuEventElapsedTime", 12000, 12080),
        ("cuMemAdvise", 12010, 12020),
        ("cuCtxCreate", 3020, 11040),
        ("cuMemAlloc", 3010, 3020),
    ] {
        assert!(!at(name, earlier).is_null(), "{name} {earlier}");
        assert_ne!(at(name, earlier), at(name, later), "{name}");
    }
}

pub fn the_default_stream_can_be_each_threads_own() {
    let [default, legacy, own, both] = [
        CU_GET_PROC_ADDRESS_DEFAULT,
        CU_GET_PROC_ADDRESS_LEGACY_STREAM,
        CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
    ]
    .map(|flags| ask("cuMemcpyHtoDAsync", 13000, flags).0);
    assert_eq!(default, legacy);
    assert_ne!(own, legacy);
    assert_eq!(both, own);
    // A function without streams has one variant.
    let [legacy, own] =
        [0, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM].map(|flags| ask("cuInit", 13000, flags).0);
    assert_eq!(own, legacy);
}

pub fn a_found_function_works() {
    let (address, _) = ask("cuDriverGetVersion", 13000, 0);
    // SAFETY: the function of this name has this signature.
    let version: unsafe extern "C" fn(*mut i32) -> CUresult = unsafe { std::mem::transmute(address) };
    let (mut found, mut exported) = (0, 0);
    // SAFETY: a place for the answer.
    assert_eq!(unsafe { version(&mut found) }, CUDA_SUCCESS);
    cu!(cuDriverGetVersion(&mut exported));
    assert_eq!(found, exported);
}

pub fn unknown_names_and_versions_have_a_status() {
    assert_eq!(ask("cuNoSuchFunction", 13000, 0), (null_mut(), CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND));
    assert_eq!(ask("cuLibraryLoadData", 11000, 0), (null_mut(), CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT));
    let mut address = null_mut();
    cu!(cuGetProcAddress_v2(c"cuNoSuchFunction".as_ptr(), &mut address, 13000, 0, null_mut()));
    assert!(address.is_null());
}

pub fn the_first_version_has_no_status() {
    let mut address = null_mut();
    cu!(cuGetProcAddress(c"cuInit".as_ptr(), &mut address, 12000, 0));
    assert!(!address.is_null());
    if ours_only("NVIDIA's driver follows null") {
        fails!(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress(c"cuInit".as_ptr(), null_mut(), 12000, 0));
        fails!(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress(null(), &mut address, 12000, 0));
    }
    fails!(CUDA_ERROR_NOT_FOUND, cuGetProcAddress(c"cuNoSuchFunction".as_ptr(), &mut address, 12000, 0));
}

pub fn bad_arguments_are_refused() {
    let (mut address, mut status) = (null_mut(), CUdriverProcAddressQueryResult(99));
    // The driver's own version is the last that it knows.
    let mut newest = 0;
    cu!(cuDriverGetVersion(&mut newest));
    cu!(cuGetProcAddress_v2(c"cuInit".as_ptr(), &mut address, newest, 0, null_mut()));
    for later in [newest + 10, 99000] {
        fails!(
            CUDA_ERROR_INVALID_VALUE,
            cuGetProcAddress_v2(c"cuInit".as_ptr(), &mut address, later, 0, &mut status)
        );
    }
    assert_eq!(status, CUdriverProcAddressQueryResult(99));
    if ours_only("NVIDIA's driver follows null") {
        fails!(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress_v2(null(), &mut address, 13000, 0, &mut status));
        fails!(
            CUDA_ERROR_INVALID_VALUE,
            cuGetProcAddress_v2(c"cuInit".as_ptr(), null_mut(), 13000, 0, &mut status)
        );
    }
    for flags in [4, 7, 99, 1 << 32, u64::MAX] {
        fails!(
            CUDA_ERROR_INVALID_VALUE,
            cuGetProcAddress_v2(c"cuInit".as_ptr(), &mut address, 13000, flags, &mut status)
        );
    }
}

pub fn a_made_up_table_of_exports_is_not_there() {
    let mut table = null();
    let id = CUuuid { bytes: *b"no such table!!!" };
    // SAFETY: a place for the answer and an identity to ask for.
    let code = unsafe { cuGetExportTable(&mut table, &id) };
    assert_ne!(code, CUDA_SUCCESS);
    assert!(table.is_null());
}
