//! Primary contexts.

use super::common::*;

fn retain() -> CUcontext {
    let mut context = CUcontext::NULL;
    cu!(cuDevicePrimaryCtxRetain(&mut context, 0));
    context
}

fn is_active() -> bool {
    let (mut flags, mut active) = (0, 7);
    cu!(cuDevicePrimaryCtxGetState(0, &mut flags, &mut active));
    assert!(matches!(active, 0 | 1), "{active}");
    active == 1
}

pub fn it_is_one_for_all_and_active_while_retained() {
    init();
    assert!(!is_active());
    let first = retain();
    assert_eq!(retain(), first);
    assert!(is_active());
    assert_eq!(current(), CUcontext::NULL);
    cu!(cuCtxSetCurrent(first));
    let pointer = alloc(16);
    cu!(cuDevicePrimaryCtxRelease_v2(0));
    cu!(cuMemFree_v2(pointer));
    alloc(16);
    cu!(cuDevicePrimaryCtxRelease(0));
    assert!(!is_active());
    let mut pointer = CUdeviceptr(0);
    fails!(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc_v2(&mut pointer, 16));
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
    // Its first version takes no offence.
    cu!(cuDevicePrimaryCtxRelease(0));
    assert_eq!(retain(), first);
    alloc(16);
}

pub fn its_memory_ends_with_the_last_release() {
    init();
    let context = retain();
    cu!(cuCtxSetCurrent(context));
    let pointer = alloc(16);
    cu!(cuDevicePrimaryCtxRelease_v2(0));
    retain();
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(pointer));
}

pub fn it_cannot_be_destroyed_otherwise() {
    init();
    let context = retain();
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(context));
    assert!(is_active());
    cu!(cuCtxSetCurrent(context));
    alloc(16);
}

pub fn release_without_retain_is_refused() {
    init();
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
}

pub fn flags_are_kept() {
    init();
    let state = || {
        let (mut flags, mut active) = (99, 0);
        cu!(cuDevicePrimaryCtxGetState(0, &mut flags, &mut active));
        flags
    };
    cu!(cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_SPIN));
    assert_eq!(state(), CU_CTX_SCHED_SPIN);
    cu!(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_BLOCKING_SYNC));
    assert_eq!(state(), CU_CTX_SCHED_BLOCKING_SYNC);
    cu!(cuCtxSetCurrent(retain()));
    let mut flags = 0;
    cu!(cuCtxGetFlags(&mut flags));
    assert_eq!(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_BLOCKING_SYNC);
    // An active context takes new flags too.
    cu!(cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_YIELD); cuCtxGetFlags(&mut flags));
    assert_eq!(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_YIELD);
    fails!(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxSetFlags_v2(0, 0xff00));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxSetFlags_v2(0, 3));
    // They end with its last user.
    assert_eq!(state(), CU_CTX_SCHED_YIELD);
    cu!(cuDevicePrimaryCtxRelease_v2(0));
    assert_eq!(state(), 0);
    cu!(cuCtxSetCurrent(retain()); cuCtxGetFlags(&mut flags));
    assert_eq!((state(), flags), (0, CU_CTX_MAP_HOST));
}

pub fn reset_ends_what_it_has() {
    init();
    let context = retain();
    cu!(cuCtxSetCurrent(context));
    let pointer = alloc(16);
    let module = load(KERNELS);
    cu!(cuDevicePrimaryCtxReset_v2(0));
    assert!(!is_active());
    let mut other = CUdeviceptr(0);
    fails!(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc_v2(&mut other, 16));
    assert_eq!(retain(), context);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(pointer));
    alloc(16);
    if ours_only("NVIDIA's driver follows the module's handle") {
        fails!(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module));
    }
}

pub fn reset_leaves_the_uses_counted() {
    init();
    retain();
    cu!(cuDevicePrimaryCtxReset_v2(0));
    assert!(!is_active());
    cu!(cuDevicePrimaryCtxRelease_v2(0));
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
}

pub fn the_first_version_of_reset_forgets_the_uses() {
    init();
    retain();
    cu!(cuDevicePrimaryCtxReset(0));
    assert!(!is_active());
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
}

pub fn reset_of_an_inactive_one_succeeds() {
    init();
    cu!(cuDevicePrimaryCtxReset_v2(0));
    assert!(!is_active());
}

pub fn another_thread_begins_without_it() {
    init();
    cu!(cuCtxSetCurrent(retain()));
    std::thread::spawn(|| assert_eq!(current(), CUcontext::NULL)).join().expect("the thread's answer");
}

pub fn bad_devices_and_places_are_refused() {
    init();
    let (mut context, mut flags, mut active) = (CUcontext::NULL, 0, 0);
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRetain(&mut context, 99));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxRetain(null_mut(), 0));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRelease_v2(99));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxReset_v2(-1));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxSetFlags_v2(99, 0));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxGetState(99, &mut flags, &mut active));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxGetState(0, null_mut(), &mut active));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxGetState(0, &mut flags, null_mut()));
}
