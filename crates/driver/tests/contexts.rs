//! Contexts: the stack, destruction, primary contexts.

mod common;
use common::*;

#[test]
fn the_stack_is_the_threads_own() {
    let a = new_context();
    let b = new_context();
    assert_eq!(current(), b);
    let mut popped = CUcontext::NULL;
    cu!(cuCtxPopCurrent_v2(out(&mut popped)));
    assert_eq!((popped, current()), (b, a));
    std::thread::spawn(move || {
        assert_eq!(current(), CUcontext::NULL);
        let mut pointer = CUdeviceptr(0);
        fails!(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc_v2(out(&mut pointer), 16));
        cu!(cuCtxPushCurrent_v2(b); cuCtxPushCurrent_v2(a); cuCtxSetCurrent(b));
        assert_eq!(current(), b);
        cu!(cuCtxPopCurrent_v2(nowhere()); cuCtxSetCurrent(CUcontext::NULL));
        assert_eq!(current(), CUcontext::NULL);
        fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent_v2(nowhere()));
    })
    .join()
    .unwrap();
    cu!(cuCtxDestroy_v2(a); cuCtxDestroy_v2(b));
    assert_eq!(current(), CUcontext::NULL);
}

#[test]
fn arguments_are_checked() {
    init();
    let mut context = CUcontext::NULL;
    fails!(CUDA_ERROR_INVALID_DEVICE, cuCtxCreate_v4(out(&mut context), null_mut(), 0, 99));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxCreate_v4(out(&mut context), null_mut(), 0xffff_0000, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxCreate_v4(nowhere(), null_mut(), 0, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxPushCurrent_v2(CUcontext::NULL));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxDestroy_v2(CUcontext::NULL));
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(CUcontext(0x1234_5670)));
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent_v2(CUcontext(0x1234_5670)));
    assert_eq!(current(), CUcontext::NULL);
}

#[test]
fn a_destroyed_context_is_known_as_such() {
    let keep = new_context();
    let doomed = new_context();
    std::thread::spawn(move || cu!(cuCtxDestroy_v2(doomed))).join().unwrap();
    assert_eq!(current(), doomed);
    let mut pointer = CUdeviceptr(0);
    fails!(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc_v2(out(&mut pointer), 16));
    fails!(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
    let mut device = -1;
    cu!(cuCtxGetDevice(out(&mut device)));
    assert_eq!(device, 0);
    let mut version = 0;
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetApiVersion(doomed, out(&mut version)));
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(doomed));
    cu!(cuCtxPushCurrent_v2(doomed); cuCtxPopCurrent_v2(nowhere()); cuCtxPopCurrent_v2(nowhere()));
    assert_eq!(current(), keep);
    cu!(cuCtxDestroy_v2(keep));
}

#[test]
fn what_belongs_to_a_context_goes_with_it() {
    let context = new_context();
    let (pointer, module) = (alloc(256), load(KERNELS));
    let kernel = function(module, "nothing");
    let (mut stream, mut event) = (CUstream::NULL, CUevent::NULL);
    cu!(cuStreamCreate(out(&mut stream), CU_STREAM_NON_BLOCKING); cuEventCreate(out(&mut event), 0));
    cu!(cuCtxDestroy_v2(context));
    let keep = new_context();
    let mut of = CUcontext::NULL;
    let of_place = (&raw mut of).cast();
    fails!(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(of_place, CU_POINTER_ATTRIBUTE_CONTEXT, pointer));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(pointer));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(event));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module));
    assert_eq!(launch(kernel, 1, 1, CUstream::NULL, &mut []), CUDA_ERROR_INVALID_HANDLE);
    cu!(cuCtxDestroy_v2(keep));
}

#[test]
fn attached_contexts_die_with_the_last_detach() {
    let context = new_context();
    let mut again = CUcontext::NULL;
    cu!(cuCtxAttach(out(&mut again), 0));
    assert_eq!(again, context);
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxAttach(out(&mut again), 1));
    cu!(cuCtxDetach(context));
    assert_eq!(current(), context);
    cu!(cuCtxDetach(context));
    assert_eq!(current(), CUcontext::NULL);
}

#[test]
fn the_primary_context_keeps_its_handle() {
    init();
    let state = || {
        let (mut flags, mut active) = (0, 0);
        cu!(cuDevicePrimaryCtxGetState(0, out(&mut flags), out(&mut active)));
        active
    };
    assert_eq!(state(), 0);
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
    let (mut first, mut second) = (CUcontext::NULL, CUcontext::NULL);
    cu!(cuDevicePrimaryCtxRetain(out(&mut first), 0); cuDevicePrimaryCtxRetain(out(&mut second), 0));
    assert_eq!((first, state()), (second, 1));
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(first));
    cu!(cuCtxSetCurrent(first));
    let pointer = alloc(16);
    cu!(cuDevicePrimaryCtxRelease_v2(0); cuMemsetD8_v2(pointer, 1, 16); cuDevicePrimaryCtxRelease_v2(0));
    assert_eq!(state(), 0);
    let mut other = CUdeviceptr(0);
    fails!(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc_v2(out(&mut other), 16));
    cu!(cuDevicePrimaryCtxRetain(out(&mut second), 0));
    assert_eq!(first, second);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(pointer));
    cu!(cuMemAlloc_v2(out(&mut other), 16); cuDevicePrimaryCtxReset_v2(0));
    fails!(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc_v2(out(&mut other), 16));
    cu!(cuCtxSetCurrent(CUcontext::NULL));
}

#[test]
fn limits_have_their_defaults_and_bounds() {
    let context = new_context();
    let limit = |which| {
        let mut value = 0;
        cu!(cuCtxGetLimit(out(&mut value), which));
        value
    };
    assert_eq!(limit(CU_LIMIT_STACK_SIZE), 1024);
    assert_eq!(limit(CU_LIMIT_PRINTF_FIFO_SIZE), 8650752);
    assert_eq!(limit(CU_LIMIT_MALLOC_HEAP_SIZE), 8 << 20);
    cu!(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1000));
    assert_eq!(limit(CU_LIMIT_STACK_SIZE), 1008);
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1 << 30));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxSetLimit(CUlimit(99), 1));
    fails!(CUDA_ERROR_UNSUPPORTED_LIMIT, cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 1));
    cu!(cuCtxDestroy_v2(context));
}
