//! Streams, events, host functions.

mod common;
use common::*;
use std::sync::atomic::{AtomicU32, Ordering};

fn stream(flags: u32) -> CUstream {
    let mut stream = CUstream::NULL;
    cu!(cuStreamCreate(out(&mut stream), flags));
    stream
}

fn event(flags: u32) -> CUevent {
    let mut event = CUevent::NULL;
    cu!(cuEventCreate(out(&mut event), flags));
    event
}

#[test]
fn arguments_are_checked() {
    let context = new_context();
    let (mut s, mut e) = (CUstream::NULL, CUevent::NULL);
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(out(&mut s), 77));
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(nowhere(), 0));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy_v2(CUstream::NULL));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy_v2(CU_STREAM_LEGACY));
    fails!(CUDA_ERROR_INVALID_VALUE, cuEventCreate(out(&mut e), 99));
    fails!(CUDA_ERROR_INVALID_VALUE, cuEventCreate(out(&mut e), CU_EVENT_INTERPROCESS));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuEventDestroy_v2(CUevent::NULL));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(CUevent::NULL, CUstream::NULL));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamWaitEvent(CUstream::NULL, CUevent::NULL, 0));
    cu!(cuStreamCreateWithPriority(out(&mut s), 0, 99));
    let mut priority = 1;
    cu!(cuStreamGetPriority(s, out(&mut priority)));
    assert_eq!(priority, 0);
    cu!(cuStreamDestroy_v2(s));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy_v2(s));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery(s));
    cu!(cuCtxDestroy_v2(context));
}

#[test]
fn events_measure_what_was_recorded() {
    let context = new_context();
    let (s, first, second) = (stream(CU_STREAM_NON_BLOCKING), event(0), event(0));
    let mut time = -1f32;
    cu!(cuEventQuery(first); cuEventSynchronize(first));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(out(&mut time), first, second));
    let pointer = alloc(1 << 20);
    cu!(
        cuEventRecord(first, s);
        cuMemsetD8Async(pointer, 1, 1 << 20, s);
        cuEventRecord(second, s);
        cuEventSynchronize(second);
        cuEventElapsedTime(out(&mut time), first, second);
    );
    assert!(time >= 0.0, "{time}");
    let untimed = event(CU_EVENT_DISABLE_TIMING);
    cu!(cuEventRecord(untimed, s); cuEventSynchronize(untimed));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(out(&mut time), first, untimed));
    cu!(cuCtxDestroy_v2(context));
}

unsafe extern "C" fn wait_for_one(flag: *mut c_void) {
    // SAFETY: the tests pass an atomic that outlives the stream's work.
    let flag = unsafe { &*flag.cast::<AtomicU32>() };
    while flag.load(Ordering::Acquire) == 0 {
        std::thread::yield_now();
    }
    flag.store(2, Ordering::Release);
}

#[test]
fn streams_run_in_order_and_beside_each_other() {
    let context = new_context();
    let (held, free) = (stream(CU_STREAM_NON_BLOCKING), stream(CU_STREAM_NON_BLOCKING));
    let (pointer, done, gate) = (alloc_with(&[0u32; 2]), event(0), AtomicU32::new(0));
    cu!(
        cuLaunchHostFunc(held, Some(wait_for_one), (&raw const gate).cast_mut().cast());
        cuMemsetD32Async(pointer, 5, 1, held);
        cuEventRecord(done, held);
        cuMemsetD32Async(CUdeviceptr(pointer.0 + 4), 6, 1, free);
        cuStreamSynchronize(free);
        cuStreamQuery(free);
    );
    fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(held));
    fails!(CUDA_ERROR_NOT_READY, cuEventQuery(done));
    let mut values = [9u32; 2];
    cu!(
        cuMemcpyDtoHAsync_v2(values.as_mut_ptr().cast(), pointer, 8, free);
        cuStreamSynchronize(free);
    );
    assert_eq!(values, [0, 6]);
    cu!(cuStreamWaitEvent(free, done, 0));
    gate.store(1, Ordering::Release);
    cu!(
        cuMemcpyDtoHAsync_v2(values.as_mut_ptr().cast(), pointer, 8, free);
        cuStreamSynchronize(free);
    );
    assert_eq!((values, gate.load(Ordering::Acquire)), ([5, 6], 2));
    cu!(cuEventQuery(done); cuCtxDestroy_v2(context));
}

unsafe extern "C" fn call_back_in(code: *mut c_void) {
    // SAFETY: the test passes a place for a code.
    unsafe { code.cast::<CUresult>().write(cuCtxSynchronize()) };
}

#[test]
fn host_functions_may_not_call_the_driver() {
    let context = new_context();
    let mut code = CUresult(12345);
    cu!(cuLaunchHostFunc(CUstream::NULL, Some(call_back_in), (&raw mut code).cast()); cuCtxSynchronize());
    assert_eq!(code, CUDA_ERROR_NOT_PERMITTED);
    cu!(cuCtxDestroy_v2(context));
}

#[test]
fn words_of_memory_are_signals() {
    let context = new_context();
    let (waiting, writing) = (stream(CU_STREAM_NON_BLOCKING), stream(CU_STREAM_NON_BLOCKING));
    let word = alloc_with(&[0u32; 4]);
    let last = CUdeviceptr(word.0 + 12);
    const EQUAL: u32 = 1;
    cu!(
        cuStreamWaitValue32_v2(waiting, word, 7, EQUAL);
        cuStreamWriteValue32_v2(waiting, last, 9, 0);
    );
    fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(waiting));
    cu!(cuStreamWriteValue32_v2(writing, word, 7, 0); cuStreamSynchronize(waiting));
    assert_eq!(read::<u32>(word, 4), [7, 0, 0, 9]);
    let odd = CUdeviceptr(word.0 + 2);
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32_v2(writing, odd, 1, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32_v2(writing, word, 7, 77));
    cu!(cuCtxDestroy_v2(context));
}

#[test]
fn memory_is_allocated_and_freed_in_order() {
    let context = new_context();
    let s = stream(CU_STREAM_NON_BLOCKING);
    let (mut pointer, mut values) = (CUdeviceptr(0), [0u32; 8]);
    cu!(
        cuMemAllocAsync(out(&mut pointer), 32, s);
        cuMemsetD32Async(pointer, 3, 8, s);
        cuMemcpyDtoHAsync_v2(values.as_mut_ptr().cast(), pointer, 32, s);
        cuMemFreeAsync(pointer, s);
        cuStreamSynchronize(s);
    );
    assert_eq!(values, [3; 8]);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(pointer));
    cu!(cuCtxDestroy_v2(context));
}

#[test]
fn default_streams_are_two() {
    let context = new_context();
    let id = |stream| {
        let mut id = 0;
        cu!(cuStreamGetId(stream, out(&mut id)));
        id
    };
    let mut through_variant = 0;
    cu!(cuStreamGetId_ptsz(CUstream::NULL, out(&mut through_variant)));
    assert_eq!(id(CUstream::NULL), id(CU_STREAM_LEGACY));
    assert_eq!(through_variant, id(CU_STREAM_PER_THREAD));
    assert_ne!(id(CU_STREAM_LEGACY), id(CU_STREAM_PER_THREAD));
    let mine = id(CU_STREAM_PER_THREAD);
    let theirs = std::thread::spawn(move || {
        cu!(cuCtxSetCurrent(context));
        id(CU_STREAM_PER_THREAD)
    });
    assert_ne!(theirs.join().unwrap(), mine);
    let mut of = CUcontext::NULL;
    cu!(cuStreamGetCtx(CU_STREAM_PER_THREAD, out(&mut of)));
    assert_eq!(of, context);
    cu!(cuCtxDestroy_v2(context));
}
