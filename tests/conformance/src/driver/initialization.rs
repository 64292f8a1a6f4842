//! Initialisation, and what works without it.

use super::common::*;

pub fn init_takes_no_flags_and_may_be_repeated() {
    fails!(CUDA_ERROR_INVALID_VALUE, cuInit(1));
    let mut count = 0;
    fails!(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&mut count));
    cu!(cuInit(0); cuInit(0); cuDeviceGetCount(&mut count));
    assert!(count >= 1);
    fails!(CUDA_ERROR_INVALID_VALUE, cuInit(1));
}

pub fn versions_and_texts_need_no_initialisation() {
    let (mut version, mut text) = (0, null());
    cu!(cuDriverGetVersion(&mut version); cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &mut text));
    assert_eq!(text_of(text), "CUDA_ERROR_OUT_OF_MEMORY");
    cu!(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &mut text));
    let mut function = null_mut();
    cu!(cuGetProcAddress_v2(c"cuInit".as_ptr(), &mut function, 13000, 0, null_mut()));
    assert!(!function.is_null());
}

pub fn other_functions_need_initialisation() {
    const NOT_YET: CUresult = CUDA_ERROR_NOT_INITIALIZED;
    let (mut number, mut context, mut pointer) = (0, CUcontext::NULL, CUdeviceptr(0));
    fails!(NOT_YET, cuDeviceGetCount(&mut number));
    fails!(NOT_YET, cuDeviceGetCount(null_mut()));
    fails!(NOT_YET, cuDeviceGet(&mut number, 0));
    fails!(NOT_YET, cuCtxGetCurrent(&mut context));
    fails!(NOT_YET, cuCtxSetCurrent(CUcontext::NULL));
    fails!(NOT_YET, cuCtxCreate_v4(&mut context, null_mut(), 0, 0));
    fails!(NOT_YET, cuCtxSynchronize());
    fails!(NOT_YET, cuMemAlloc_v2(&mut pointer, 4));
    fails!(NOT_YET, cuMemFree_v2(CUdeviceptr(0)));
    let (mut module, mut stream, mut event) = (CUmodule::NULL, CUstream::NULL, CUevent::NULL);
    fails!(NOT_YET, cuModuleLoadData(&mut module, c"".as_ptr().cast()));
    fails!(NOT_YET, cuStreamCreate(&mut stream, 0));
    fails!(NOT_YET, cuEventCreate(&mut event, 0));
}

pub fn a_forked_child_is_not_initialised() {
    new_context();
    // SAFETY: the child makes one call and leaves.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let mut context = CUcontext::NULL;
        // SAFETY: a place for the answer.
        let code = unsafe { cuCtxGetCurrent(&mut context) };
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(code.0 as i32) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "status {status:#x}");
    assert_eq!(CUresult(libc::WEXITSTATUS(status) as u32), CUDA_ERROR_NOT_INITIALIZED);
}

pub fn no_visible_device_is_an_error_of_init() {
    set_env("CUDA_VISIBLE_DEVICES", "");
    fails!(CUDA_ERROR_NO_DEVICE, cuInit(0));
    let mut count = 7;
    fails!(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&mut count));
}

pub fn a_device_is_visible_once() {
    set_env("CUDA_VISIBLE_DEVICES", "0,0");
    fails!(CUDA_ERROR_INVALID_DEVICE, cuInit(0));
}

pub fn visible_devices_are_numbers_whatever_follows_them() {
    set_env("CUDA_VISIBLE_DEVICES", " 0x1,abc,0");
    init();
    let mut count = 0;
    cu!(cuDeviceGetCount(&mut count));
    assert_eq!(count, 1);
}

pub fn an_unknown_visible_device_hides_those_after_it() {
    set_env("CUDA_VISIBLE_DEVICES", "0,99,0");
    init();
    let mut count = 0;
    cu!(cuDeviceGetCount(&mut count));
    assert_eq!(count, 1);
}
