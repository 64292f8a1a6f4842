//! Stream management.

use super::common::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

pub fn flags_and_priorities_are_kept() {
    new_context();
    let (mut s, mut flags, mut priority) = (CUstream::NULL, 99, 99);
    for wanted in [CU_STREAM_DEFAULT, CU_STREAM_NON_BLOCKING] {
        cu!(cuStreamCreate(&mut s, wanted); cuStreamGetFlags(s, &mut flags); cuStreamGetPriority(s, &mut priority));
        assert_eq!((flags, priority), (wanted, 0));
        flags = 99;
        cu!(cuStreamGetFlags_ptsz(s, &mut flags); cuStreamGetPriority_ptsz(s, &mut priority));
        assert_eq!((flags, priority), (wanted, 0));
        cu!(cuStreamDestroy_v2(s));
    }
    let (mut least, mut greatest) = (9, 9);
    cu!(cuCtxGetStreamPriorityRange(&mut least, &mut greatest));
    assert!(greatest <= least);
    // Out of range becomes the nearest in it.
    for (wanted, expected) in
        [(0, 0), (greatest, greatest), (99, least), (-99, greatest), (i32::MIN, greatest)]
    {
        cu!(cuStreamCreateWithPriority(&mut s, CU_STREAM_NON_BLOCKING, wanted); cuStreamGetPriority(s, &mut priority));
        assert_eq!(priority, expected, "asked for {wanted}");
        cu!(cuStreamDestroy(s));
    }
    for flags in [2, 77, u32::MAX] {
        fails!(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(&mut s, flags));
        fails!(CUDA_ERROR_INVALID_VALUE, cuStreamCreateWithPriority(&mut s, flags, 0));
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(null_mut(), 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamCreateWithPriority(null_mut(), 0, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamGetFlags(CUstream::NULL, null_mut()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamGetPriority(CUstream::NULL, null_mut()));
}

pub fn default_streams_are_two() {
    let context = new_context();
    let id = |stream| {
        let mut id = 0;
        cu!(cuStreamGetId(stream, &mut id));
        id
    };
    let mut through_variant = 0;
    cu!(cuStreamGetId_ptsz(CUstream::NULL, &mut through_variant));
    assert_eq!(id(CUstream::NULL), id(CU_STREAM_LEGACY));
    assert_eq!(through_variant, id(CU_STREAM_PER_THREAD));
    assert_ne!(id(CU_STREAM_LEGACY), id(CU_STREAM_PER_THREAD));
    let mine = id(CU_STREAM_PER_THREAD);
    let theirs = std::thread::spawn(move || {
        cu!(cuCtxSetCurrent(context));
        let mut id = 0;
        cu!(cuStreamGetId(CU_STREAM_PER_THREAD, &mut id));
        id
    });
    assert_ne!(theirs.join().unwrap(), mine);
    assert_ne!(id(stream(CU_STREAM_DEFAULT)), id(stream(CU_STREAM_DEFAULT)));
    for default in [CUstream::NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD] {
        let (mut flags, mut of, mut device) = (9, CUcontext::NULL, 9);
        cu!(
            cuStreamGetFlags(default, &mut flags);
            cuStreamGetCtx(default, &mut of);
            cuStreamGetDevice(default, &mut device);
            cuStreamQuery(default);
            cuStreamSynchronize(default);
        );
        assert_eq!((flags, of, device), (CU_STREAM_DEFAULT, context, 0));
        fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy_v2(default));
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamGetId(CUstream::NULL, null_mut()));
}

pub fn a_stream_knows_context_and_device() {
    let context = new_context();
    let s = stream(CU_STREAM_NON_BLOCKING);
    create_context();
    let (mut of, mut green, mut device) = (CUcontext::NULL, CUgreenCtx(1), 9);
    cu!(cuStreamGetCtx(s, &mut of));
    assert_eq!(of, context, "not the current one");
    of = CUcontext::NULL;
    cu!(cuStreamGetCtx_ptsz(s, &mut of));
    assert_eq!(of, context);
    of = CUcontext::NULL;
    cu!(cuStreamGetCtx_v2(s, &mut of, &mut green));
    assert_eq!((of, green), (context, CUgreenCtx::NULL));
    (of, green) = (CUcontext::NULL, CUgreenCtx(1));
    cu!(cuStreamGetCtx_v2_ptsz(s, &mut of, &mut green));
    assert_eq!((of, green), (context, CUgreenCtx::NULL));
    cu!(cuStreamGetDevice(s, &mut device));
    assert_eq!(device, 0);
    device = 9;
    cu!(cuStreamGetDevice_ptsz(s, &mut device));
    assert_eq!(device, 0);
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamGetCtx(s, null_mut()));
    let code = differs("the context is what is asked for", CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS);
    fails!(code, cuStreamGetCtx_v2(s, null_mut(), &mut green));
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamGetDevice(s, null_mut()));
}

pub fn a_destroyed_stream_is_none() {
    new_context();
    let (s, p) = (stream(CU_STREAM_DEFAULT), alloc(64));
    let gate = Gate::new();
    gate.hold(s);
    // Its work goes on.
    cu!(cuMemsetD8Async(p, 7, 64, s); cuStreamDestroy_v2(s));
    gate.open();
    cu!(cuCtxSynchronize());
    assert_eq!(read::<u8>(p, 64), [7; 64]);
    if ours_only("NVIDIA's driver crashes") {
        for none in [s, CUstream(0x1234), CUstream(3)] {
            fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy_v2(none));
            fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy(none));
            fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery(none));
            fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(none));
            fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamWaitEvent(none, event(0), 0));
            fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamGetFlags(none, &mut 0));
            fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamGetId(none, &mut 0));
            fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamGetPriority(none, &mut 0));
            fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamGetDevice(none, &mut 0));
            fails!(CUDA_ERROR_INVALID_HANDLE, cuMemsetD8Async(p, 0, 64, none));
            fails!(CUDA_ERROR_INVALID_HANDLE, cuLaunchHostFunc(none, Some(count), null_mut()));
        }
    }
}

pub fn streams_of_a_destroyed_context_are_gone() {
    let context = new_context();
    let (s, e) = (stream(CU_STREAM_DEFAULT), event(0));
    cu!(cuCtxDestroy_v2(context));
    create_context();
    if ours_only("NVIDIA's driver crashes") {
        fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery(s));
        fails!(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(e));
    }
}

pub fn a_query_tells_whether_work_is_left() {
    new_context();
    let (s, gate) = (stream(CU_STREAM_NON_BLOCKING), Gate::new());
    cu!(cuStreamQuery(s); cuStreamQuery_ptsz(CUstream::NULL));
    gate.hold(s);
    fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
    fails!(CUDA_ERROR_NOT_READY, cuStreamQuery_ptsz(s));
    // A stream of its own does not hold the default stream up.
    cu!(cuStreamQuery(CUstream::NULL));
    gate.open();
    cu!(cuStreamSynchronize(s); cuStreamQuery(s); cuStreamSynchronize_ptsz(s));
}

pub fn the_legacy_stream_tells_of_blocking_streams() {
    let context = new_context();
    let (blocking, own, gate) = (stream(CU_STREAM_DEFAULT), stream(CU_STREAM_NON_BLOCKING), Gate::new());
    let word = alloc_with(&[0_u32]);
    gate.hold(blocking);
    cu!(cuMemsetD32Async(word, 7, 1, blocking));
    for legacy in [CUstream::NULL, CU_STREAM_LEGACY] {
        fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(legacy));
    }
    cu!(cuStreamQuery(own); cuStreamQuery(CU_STREAM_PER_THREAD));
    let waiting = std::thread::spawn(move || {
        cu!(cuCtxSetCurrent(context); cuStreamSynchronize(CUstream::NULL));
        // SAFETY: the stream is there until the context goes.
        unsafe { cuStreamQuery(blocking) }
    });
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(!waiting.is_finished(), "it waits for what the blocking stream does");
    gate.open();
    assert_eq!(waiting.join().unwrap(), CUDA_SUCCESS);
    assert_eq!(read::<u32>(word, 1), [7]);
    cu!(cuStreamQuery(CUstream::NULL));
}

/// A kernel that sleeps for so many milliseconds.
const SLEEPER: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry sleep(.param .u32 count)
{
	.reg .pred %p;
	.reg .b32 %n;
	ld.param.u32 %n, [count];
again:
	setp.eq.u32 %p, %n, 0;
	@%p ret;
	nanosleep.u32 1000000;
	sub.u32 %n, %n, 1;
	bra again;
}
";

pub fn a_launch_does_not_wait_for_a_kernel_that_was_short_before() {
    new_context();
    let (s, sleep) = (stream(CU_STREAM_NON_BLOCKING), function(load(SLEEPER), c"sleep"));
    let go = |count: u32| assert_eq!(launch(sleep, 1, 1, s, &mut [arg(&count)]), CUDA_SUCCESS);
    for _ in 0..20 {
        go(0);
        cu!(cuStreamSynchronize(s));
    }
    go(300);
    fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
    cu!(cuStreamSynchronize(s); cuStreamQuery(s));
}

pub fn the_legacy_stream_is_in_order_with_blocking_streams() {
    let context = new_context();
    let word = alloc_with(&[0u32; 4]);
    let at = |index: u64| CUdeviceptr(word.0 + 4 * index);
    let (first, second, own) =
        (stream(CU_STREAM_DEFAULT), stream(CU_STREAM_DEFAULT), stream(CU_STREAM_NON_BLOCKING));
    let gate = Gate::new();
    gate.hold(first);
    // The legacy stream waits for the first, and the second for the legacy stream; a stream of its own waits for none.
    cu!(
        cuMemsetD32Async(at(0), 1, 1, CU_STREAM_LEGACY);
        cuMemsetD32Async(at(1), 2, 1, second);
        cuMemsetD32Async(at(2), 3, 1, own);
        cuMemsetD32Async(at(3), 4, 1, CU_STREAM_PER_THREAD);
        cuStreamSynchronize(own);
    );
    for waiting in [CU_STREAM_LEGACY, CUstream::NULL, second, CU_STREAM_PER_THREAD] {
        fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(waiting));
    }
    let seen = std::thread::spawn(move || {
        cu!(cuCtxSetCurrent(context));
        let mut seen = [9u32; 4];
        cu!(cuMemcpyDtoHAsync_v2(seen.as_mut_ptr().cast(), word, 16, own); cuStreamSynchronize(own));
        seen
    });
    assert_eq!(seen.join().unwrap(), [0, 0, 3, 0]);
    gate.open();
    cu!(cuStreamSynchronize(second); cuStreamSynchronize(CU_STREAM_PER_THREAD));
    assert_eq!(read::<u32>(word, 4), [1, 2, 3, 4]);
}

pub fn a_stream_waits_for_an_event() {
    new_context();
    let (held, waiting) = (stream(CU_STREAM_NON_BLOCKING), stream(CU_STREAM_NON_BLOCKING));
    let (word, done, gate) = (alloc_with(&[0u32; 1]), event(CU_EVENT_DISABLE_TIMING), Gate::new());
    // An event that was never recorded is nothing to wait for.
    cu!(cuStreamWaitEvent(waiting, done, 0); cuStreamSynchronize(waiting));
    gate.hold(held);
    cu!(
        cuMemsetD32Async(word, 1, 1, held);
        cuEventRecord(done, held);
        cuStreamWaitEvent(waiting, done, CU_EVENT_WAIT_DEFAULT);
        cuMemsetD32Async(word, 2, 1, waiting);
    );
    fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(waiting));
    // What is recorded or destroyed later does not matter.
    let other = stream(CU_STREAM_NON_BLOCKING);
    cu!(cuEventRecord(done, other); cuEventSynchronize(done); cuEventDestroy_v2(done));
    fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(waiting));
    gate.open();
    cu!(cuStreamSynchronize(waiting));
    assert_eq!(read::<u32>(word, 1), [2]);
    let again = event(0);
    cu!(cuEventRecord(again, held); cuStreamWaitEvent_ptsz(CUstream::NULL, again, 0); cuStreamSynchronize_ptsz(CUstream::NULL));
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamWaitEvent(waiting, again, 77));
    fails!(CUDA_ERROR_ILLEGAL_STATE, cuStreamWaitEvent(waiting, again, CU_EVENT_WAIT_EXTERNAL));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamWaitEvent(waiting, CUevent::NULL, 0));
}

pub fn an_event_of_another_context_can_be_waited_for() {
    let first = new_context();
    let (s, e, gate) = (stream(CU_STREAM_NON_BLOCKING), event(0), Gate::new());
    gate.hold(s);
    cu!(cuEventRecord(e, s));
    let second = create_context();
    let t = stream(CU_STREAM_NON_BLOCKING);
    cu!(cuStreamWaitEvent(t, e, 0));
    fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(t));
    // But an event is recorded in streams of its own context only.
    fails!(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(e, t));
    gate.open();
    cu!(cuStreamSynchronize(t); cuCtxDestroy_v2(second); cuCtxSetCurrent(first); cuCtxSynchronize());
}

unsafe extern "C" fn count(counter: *mut c_void) {
    // SAFETY: the tests pass an atomic that outlives the stream's work, or null.
    if let Some(counter) = unsafe { counter.cast::<AtomicU32>().as_ref() } {
        counter.fetch_add(1, Ordering::AcqRel);
    }
}

pub fn host_functions_run_in_order() {
    new_context();
    let (s, counter) = (stream(CU_STREAM_NON_BLOCKING), AtomicU32::new(0));
    let place = std::ptr::from_ref(&counter).cast_mut().cast::<c_void>();
    for _ in 0..100 {
        cu!(cuLaunchHostFunc(s, Some(count), place); cuLaunchHostFunc_ptsz(s, Some(count), place));
    }
    cu!(cuStreamSynchronize(s));
    assert_eq!(counter.load(Ordering::Acquire), 200);
    fails!(CUDA_ERROR_INVALID_VALUE, cuLaunchHostFunc(s, None, place));
}

/// What a callback saw.
static SEEN: Mutex<Vec<(usize, u32, usize)>> = Mutex::new(Vec::new());

unsafe extern "C" fn note(stream: CUstream, code: CUresult, datum: *mut c_void) {
    SEEN.lock().unwrap().push((stream.0, code.0, datum as usize));
}

pub fn callbacks_are_told_stream_and_state() {
    new_context();
    let (s, gate) = (stream(CU_STREAM_NON_BLOCKING), Gate::new());
    gate.hold(s);
    for datum in 1..=3usize {
        cu!(cuStreamAddCallback(s, Some(note), datum as *mut c_void, 0));
    }
    cu!(cuStreamAddCallback_ptsz(s, Some(note), 4 as *mut c_void, 0));
    assert!(SEEN.lock().unwrap().is_empty());
    gate.open();
    cu!(cuStreamSynchronize(s));
    assert_eq!(*SEEN.lock().unwrap(), [(s.0, 0, 1), (s.0, 0, 2), (s.0, 0, 3), (s.0, 0, 4)]);
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamAddCallback(s, None, null_mut(), 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamAddCallback(s, Some(note), null_mut(), 1));
}

pub fn callbacks_are_called_after_a_failure_and_host_functions_are_not() {
    new_context();
    let (s, counter) = (stream(CU_STREAM_NON_BLOCKING), AtomicU32::new(0));
    let (poke, address) = (kernel(c"poke"), 16u64);
    assert_eq!(launch(poke, 1, 1, s, &mut [arg(&address)]), CUDA_SUCCESS);
    // The failure may be known by now.
    // SAFETY: the counter lives until the context is gone, or as long as the process.
    unsafe {
        let _ = cuLaunchHostFunc(s, Some(count), std::ptr::from_ref(&counter).cast_mut().cast());
    }
    fails!(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(s));
    assert_eq!(counter.load(Ordering::Acquire), 0);
}

static CODES: Mutex<Vec<CUresult>> = Mutex::new(Vec::new());

unsafe extern "C" fn call_back_in(datum: *mut c_void) {
    let (mut pointer, mut free, mut total) = (CUdeviceptr(0), 0, 0);
    // SAFETY: calls with places for their answers.
    let codes = unsafe {
        [
            cuCtxSynchronize(),
            cuMemAlloc_v2(&mut pointer, 64),
            cuMemGetInfo_v2(&mut free, &mut total),
            cuStreamQuery(CUstream(datum as usize)),
            cuLaunchHostFunc(CUstream(datum as usize), Some(count), null_mut()),
        ]
    };
    CODES.lock().unwrap().extend(codes);
}

pub fn host_functions_may_not_call_the_driver() {
    new_context();
    let s = stream(CU_STREAM_NON_BLOCKING);
    cu!(cuLaunchHostFunc(s, Some(call_back_in), s.0 as *mut c_void); cuStreamSynchronize(s));
    let codes = CODES.lock().unwrap().clone();
    assert_eq!(codes[..3], [CUDA_ERROR_NOT_PERMITTED; 3]);
    let others = [CUDA_ERROR_NOT_READY, CUDA_SUCCESS];
    let others = differs("the manual permits no call", [CUDA_ERROR_NOT_PERMITTED; 2], others);
    assert_eq!(codes[3..], others);
    // And the stream goes on.
    cu!(cuMemsetD8Async(alloc(64), 1, 64, s); cuCtxSynchronize());
}

pub fn many_held_streams_do_not_stop_another() {
    new_context();
    let word = alloc_with(&[0u32; 1]);
    let count =
        differs("NVIDIA's streams share a few queues, where one that is held holds those behind it", 32, 4);
    let held: Vec<CUstream> = (0..count).map(|_| stream(CU_STREAM_NON_BLOCKING)).collect();
    for s in &held {
        cu!(cuStreamWaitValue32_v2(*s, word, 7, CU_STREAM_WAIT_VALUE_EQ));
    }
    let free = stream(CU_STREAM_NON_BLOCKING);
    cu!(cuMemsetD32Async(word, 7, 1, free));
    for s in &held {
        cu!(cuStreamSynchronize(*s));
    }
}

pub fn work_of_many_threads_and_streams_is_all_done() {
    let context = new_context();
    let word = alloc_with(&[0u32; 64]);
    let threads: Vec<_> = (0..8u64)
        .map(|thread| {
            std::thread::spawn(move || {
                cu!(cuCtxSetCurrent(context));
                let streams: Vec<CUstream> = (0..8).map(|_| stream(CU_STREAM_NON_BLOCKING)).collect();
                for round in 1..=100 {
                    for (index, s) in streams.iter().enumerate() {
                        let at = CUdeviceptr(word.0 + 4 * (thread * 8 + index as u64));
                        cu!(cuMemsetD32Async(at, round, 1, *s));
                    }
                }
                for s in streams {
                    cu!(cuStreamSynchronize(s); cuStreamDestroy_v2(s));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(read::<u32>(word, 64), [100; 64]);
}
