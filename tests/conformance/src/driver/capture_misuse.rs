//! Stream management: what spoils a capture, or is refused while there is one: each code of captures by each of its causes.

use super::common::*;

const GLOBAL: CUstreamCaptureMode = CU_STREAM_CAPTURE_MODE_GLOBAL;
const THREAD: CUstreamCaptureMode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
const RELAXED: CUstreamCaptureMode = CU_STREAM_CAPTURE_MODE_RELAXED;

type Case<'a> = (&'a str, &'a dyn Fn() -> CUresult, CUresult, CUresult);

fn own_stream() -> CUstream {
    stream(CU_STREAM_NON_BLOCKING)
}

fn plain_event() -> CUevent {
    event(CU_EVENT_DISABLE_TIMING)
}

/// The code of a call.
macro_rules! code {
    ($call:expr) => {
        // SAFETY: the test's own objects and places.
        unsafe { $call }
    };
}

/// What the end of a capture says.
fn ended(stream: CUstream) -> CUresult {
    code!(cuStreamEndCapture(stream, &mut CUgraph(0)))
}

/// Likewise where another thread ends it.
fn ended_elsewhere(stream: CUstream) -> CUresult {
    let context = current();
    let end = move || {
        cu!(cuCtxSetCurrent(context));
        ended(stream)
    };
    std::thread::spawn(end).join().unwrap()
}

/// In captures of their own, calls have these codes, and the captures end with those.
fn each_in_a_capture(mode: CUstreamCaptureMode, s: CUstream, cases: &[Case]) {
    let told = cases.iter().map(|(name, call, ..)| {
        cu!(cuStreamBeginCapture_v2(s, mode));
        (*name, call(), ended(s))
    });
    let expected = cases.iter().map(|(name, _, code, end)| (*name, *code, *end));
    assert_eq!(Vec::from_iter(told), Vec::from_iter(expected));
}

const BAD: CUresult = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
const SPOILED: CUresult = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;

pub fn unsafe_calls_are_unsupported() {
    new_context();
    let (s, other, e, p, descriptor) = (
        own_stream(),
        own_stream(),
        plain_event(),
        alloc(64),
        CUDA_ARRAY_DESCRIPTOR { Width: 8, Height: 8, Format: CU_AD_FORMAT_FLOAT, NumChannels: 1 },
    );
    let (mut array, mut host, own) = (CUarray::NULL, null_mut(), [0_u64; 8]);
    cu!(cuArrayCreate_v2(&mut array, &descriptor); cuMemHostAlloc(&mut host, 64, 0));
    cu!(cuEventRecord(e, other); cuCtxSynchronize());
    for mode in [GLOBAL, THREAD] {
        each_in_a_capture(
            mode,
            s,
            &[
                ("alloc", &|| code!(cuMemAlloc_v2(&mut CUdeviceptr(0), 64)), BAD, SPOILED),
                ("pitch", &|| code!(cuMemAllocPitch_v2(&mut CUdeviceptr(0), &mut 0, 64, 4, 4)), BAD, SPOILED),
                ("host", &|| code!(cuMemHostAlloc(&mut null_mut(), 64, 0)), BAD, SPOILED),
                ("managed", &|| code!(cuMemAllocManaged(&mut CUdeviceptr(0), 64, 1)), BAD, SPOILED),
                (
                    "register",
                    &|| code!(cuMemHostRegister_v2(own.as_ptr().cast_mut().cast(), 64, 0)),
                    BAD,
                    SPOILED,
                ),
                ("array", &|| code!(cuArrayCreate_v2(&mut CUarray(0), &descriptor)), BAD, SPOILED),
                ("stream query", &|| code!(cuStreamQuery(other)), BAD, SPOILED),
                ("stream wait", &|| code!(cuStreamSynchronize(other)), BAD, SPOILED),
                ("event query", &|| code!(cuEventQuery(e)), BAD, SPOILED),
                ("event wait", &|| code!(cuEventSynchronize(e)), BAD, SPOILED),
                ("context", &|| code!(cuCtxSynchronize()), BAD, SPOILED),
                ("queue", &|| code!(cuMemsetD8Async(p, 1, 64, other)), CUDA_SUCCESS, CUDA_SUCCESS),
                ("info", &|| code!(cuMemGetInfo_v2(&mut 0, &mut 0)), CUDA_SUCCESS, CUDA_SUCCESS),
                ("none", &|| CUDA_SUCCESS, CUDA_SUCCESS, CUDA_SUCCESS),
            ],
        );
    }
    cu!(cuCtxSynchronize(); cuMemFree_v2(p); cuArrayDestroy(array); cuMemFreeHost(host));
}

pub fn what_changes_the_device_is_unsupported() {
    new_context();
    let (s, other, mut main, mut pool) = (own_stream(), own_stream(), CUgraph::NULL, CUmemoryPool::NULL);
    let (mut managed, own) = (CUdeviceptr(0), [0_u64; 8]);
    cu!(
        cuMemAllocManaged(&mut managed, 4096, CU_MEM_ATTACH_GLOBAL);
        cuGraphCreate(&mut main, 0);
        cuDeviceGetDefaultMemPool(&mut pool, 0);
    );
    let near = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_DEVICE, id: 0 };
    for mode in [GLOBAL, THREAD] {
        each_in_a_capture(
            mode,
            s,
            &[
                ("free nothing", &|| code!(cuMemFree_v2(CUdeviceptr(0))), BAD, SPOILED),
                (
                    "advise",
                    &|| code!(cuMemAdvise_v2(managed, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, near)),
                    BAD,
                    SPOILED,
                ),
                ("unregister", &|| code!(cuMemHostUnregister(own.as_ptr().cast_mut().cast())), BAD, SPOILED),
                ("trim", &|| code!(cuMemPoolTrimTo(pool, 0)), BAD, SPOILED),
                ("limit", &|| code!(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048)), BAD, SPOILED),
                ("profile", &|| code!(cuProfilerStart()), BAD, SPOILED),
                (
                    "instantiate",
                    &|| code!(cuGraphInstantiateWithFlags(&mut CUgraphExec(0), main, 0)),
                    BAD,
                    SPOILED,
                ),
                ("elsewhere", &|| code!(cuMemAllocAsync(&mut CUdeviceptr(0), 64, other)), BAD, SPOILED),
            ],
        );
    }
    cu!(cuMemFree_v2(managed));
}

pub fn what_cannot_be_captured_is_refused_in_its_own_way() {
    new_context();
    let (s, blocking) = (own_stream(), stream(CU_STREAM_DEFAULT));
    let (place, mut main, mut executable) = (alloc(64), CUgraph::NULL, CUgraphExec::NULL);
    let function = kernel(c"nothing");
    cu!(cuGraphCreate(&mut main, 0); cuGraphInstantiateWithFlags(&mut executable, main, 0));
    let (e, before) = (event(CU_EVENT_DEFAULT), event(CU_EVENT_DEFAULT));
    cu!(cuEventRecord(before, s); cuStreamSynchronize(s));
    let implicit = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    let elapsed = || {
        cu!(cuEventRecord(e, s));
        code!(cuEventElapsedTime(&mut 0.0, before, e))
    };
    let too_large = || {
        let none = null_mut();
        code!(cuLaunchKernel(function, 1, 1, 1, 2000, 1, 1, 0, s, [none, none].as_mut_ptr(), none.cast()))
    };
    let too_much_memory = || {
        let none = null_mut();
        code!(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 49153, s, [none, none].as_mut_ptr(), none.cast()))
    };
    let peers = || code!(cuMemcpyPeerAsync(place, current(), place, current(), 4, s));
    let alloc_legacy = || code!(cuMemAllocAsync(&mut CUdeviceptr(0), 64, CUstream::NULL));
    for mode in [GLOBAL, THREAD, RELAXED] {
        each_in_a_capture(
            mode,
            s,
            &[
                // What no capture has allocated, none frees.
                ("free", &|| code!(cuMemFreeAsync(place, s)), CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS),
                ("elapsed", &elapsed, CUDA_ERROR_CAPTURED_EVENT, CUDA_SUCCESS),
                ("peers", &peers, BAD, SPOILED),
                ("upload", &|| code!(cuGraphUpload(executable, s)), BAD, SPOILED),
                ("too large", &too_large, CUDA_ERROR_INVALID_VALUE, SPOILED),
                ("too much memory", &too_much_memory, CUDA_ERROR_INVALID_VALUE, SPOILED),
            ],
        );
        each_in_a_capture(
            mode,
            blocking,
            &[
                ("wait", &|| code!(cuStreamSynchronize(CUstream::NULL)), implicit, SPOILED),
                ("query", &|| code!(cuStreamQuery(CU_STREAM_LEGACY)), implicit, SPOILED),
                ("alloc", &alloc_legacy, implicit, SPOILED),
            ],
        );
    }
    cu!(cuMemFree_v2(place));
}

pub fn a_graph_that_is_captured_is_busy() {
    new_context();
    let (s, other, mut main) = (own_stream(), own_stream(), CUgraph::NULL);
    cu!(
        cuGraphCreate(&mut main, 0);
        cuStreamBeginCaptureToGraph(s, main, null_mut(), null_mut(), 0, GLOBAL);
    );
    let again = code!(cuStreamBeginCaptureToGraph(other, main, null_mut(), null_mut(), 0, GLOBAL));
    assert_eq!([again, code!(cuGraphDestroy(main))], [CUDA_ERROR_ILLEGAL_STATE; 2]);
    assert_eq!(ended(s), CUDA_SUCCESS);
    cu!(cuGraphDestroy(main));
}

pub fn freeing_is_unsupported_too() {
    new_context();
    let (s, descriptor) = (
        own_stream(),
        CUDA_ARRAY_DESCRIPTOR { Width: 8, Height: 8, Format: CU_AD_FORMAT_FLOAT, NumChannels: 1 },
    );
    let (memory, mut array, mut host) = (alloc(64), CUarray::NULL, null_mut());
    cu!(cuArrayCreate_v2(&mut array, &descriptor); cuMemHostAlloc(&mut host, 64, 0));
    each_in_a_capture(
        GLOBAL,
        s,
        &[
            ("memory", &|| code!(cuMemFree_v2(memory)), BAD, SPOILED),
            ("host", &|| code!(cuMemFreeHost(host)), BAD, SPOILED),
            ("array", &|| code!(cuArrayDestroy(array)), BAD, SPOILED),
        ],
    );
    // What was refused was not done.
    cu!(cuMemsetD8_v2(memory, 1, 64); cuMemFree_v2(memory); cuMemFreeHost(host); cuArrayDestroy(array));
}

pub fn what_a_capture_cannot_hold_is_unsupported() {
    unsafe extern "C" fn never(_: CUstream, _: CUresult, _: *mut c_void) {}
    new_context();
    let s = own_stream();
    each_in_a_capture(
        RELAXED,
        s,
        &[
            ("callback", &|| code!(cuStreamAddCallback(s, Some(never), null_mut(), 0)), BAD, SPOILED),
            ("query", &|| code!(cuStreamQuery(s)), BAD, SPOILED),
            ("wait", &|| code!(cuStreamSynchronize(s)), BAD, SPOILED),
            ("context", &|| code!(cuCtxSynchronize()), BAD, SPOILED),
        ],
    );
    let begun = |stream| code!(cuStreamBeginCapture_v2(stream, GLOBAL));
    assert_eq!([begun(CUstream::NULL), begun(CU_STREAM_LEGACY)], [BAD; 2]);
}

pub fn a_spoiled_capture_takes_nothing_more() {
    new_context();
    let (s, t, p, e) = (own_stream(), own_stream(), alloc(64), plain_event());
    let kernel = kernel(c"nothing");
    let spoil = || {
        cu!(cuStreamBeginCapture_v2(s, RELAXED));
        assert_eq!(code!(cuStreamSynchronize(s)), BAD);
    };
    spoil();
    let told = [
        code!(cuMemsetD8Async(p, 1, 64, s)),
        code!(cuMemcpyDtoDAsync_v2(p, CUdeviceptr(p.0 + 32), 16, s)),
        launch(kernel, 1, 1, s, &mut []),
        code!(cuEventRecord(e, s)),
    ];
    assert_eq!(told, [SPOILED; 4]);
    // That comes before what is wrong with a graph.
    assert_eq!(code!(cuGraphLaunch(CUgraphExec::NULL, s)), BAD);
    let (mut status, mut id) = (CUstreamCaptureStatus(9), 0);
    cu!(cuStreamIsCapturing(s, &mut status));
    assert_eq!(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    cu!(cuStreamGetCaptureInfo(s, &mut status, &mut id));
    assert_eq!(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    assert_eq!(ended(s), SPOILED);
    // Where it began it is over now, and elsewhere too.
    cu!(
        cuStreamBeginCapture_v2(s, RELAXED);
        cuEventRecord(e, s);
        cuStreamWaitEvent(t, e, 0);
    );
    assert_eq!(code!(cuStreamSynchronize(t)), BAD);
    assert_eq!([code!(cuMemsetD8Async(p, 1, 64, s)), code!(cuMemsetD8Async(p, 1, 64, t))], [SPOILED; 2]);
    assert_eq!(ended(s), SPOILED);
    cu!(cuMemsetD8Async(p, 1, 64, t); cuStreamSynchronize(t));
}

pub fn captures_do_not_merge_by_any_stream() {
    new_context();
    let streams = || (own_stream(), own_stream(), own_stream());
    // By a stream that began the other, and by one that takes part in it.
    for by_part in [false, true] {
        let ((s, t, u), e, f) = (streams(), plain_event(), plain_event());
        cu!(cuStreamBeginCapture_v2(s, RELAXED); cuStreamBeginCapture_v2(t, RELAXED); cuEventRecord(e, s));
        let waits = if by_part {
            cu!(cuEventRecord(f, t); cuStreamWaitEvent(u, f, 0));
            u
        } else {
            t
        };
        assert_eq!(code!(cuStreamWaitEvent(waits, e, 0)), CUDA_ERROR_STREAM_CAPTURE_MERGE);
        assert_eq!([ended(s), ended(t)], [SPOILED; 2], "{by_part}");
    }
}

pub fn a_capture_is_ended_where_it_began() {
    new_context();
    let (s, t, e) = (own_stream(), own_stream(), plain_event());
    cu!(cuStreamBeginCapture_v2(s, GLOBAL); cuEventRecord(e, s); cuStreamWaitEvent(t, e, 0));
    assert_eq!(ended(t), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    assert_eq!(ended(s), SPOILED);
    // What captures nothing has nothing to end.
    assert_eq!(ended(own_stream()), CUDA_ERROR_ILLEGAL_STATE);
}

pub fn all_of_a_capture_must_have_been_joined() {
    new_context();
    let (s, t, p) = (own_stream(), own_stream(), alloc(64));
    let (fork, join) = (plain_event(), plain_event());
    let begin = || {
        cu!(
            cuStreamBeginCapture_v2(s, GLOBAL);
            cuEventRecord(fork, s);
            cuStreamWaitEvent(t, fork, 0);
            cuMemsetD8Async(p, 1, 64, t);
        )
    };
    let unjoined = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    // Never.
    begin();
    assert_eq!(ended(s), unjoined);
    // Before its last work.
    begin();
    cu!(cuEventRecord(join, t); cuMemsetD8Async(p, 1, 64, t); cuStreamWaitEvent(s, join, 0));
    assert_eq!(ended(s), unjoined);
    // Recorded, but not waited for.
    begin();
    cu!(cuEventRecord(join, t));
    assert_eq!(ended(s), unjoined);
    // A stream that has had nothing to do since needs no joining.
    cu!(cuStreamBeginCapture_v2(s, GLOBAL); cuEventRecord(fork, s); cuStreamWaitEvent(t, fork, 0));
    assert_eq!(ended(s), CUDA_SUCCESS);
    begin();
    cu!(cuEventRecord(join, t); cuStreamWaitEvent(s, join, 0));
    assert_eq!(ended(s), CUDA_SUCCESS);
    // The streams capture no more, whatever the end was.
    cu!(cuMemsetD8Async(p, 1, 64, t); cuStreamSynchronize(t); cuStreamSynchronize(s));
}

pub fn captured_work_does_not_wait_for_other_work() {
    new_context();
    let (s, t, u) = (own_stream(), own_stream(), own_stream());
    let isolation = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    let outside = plain_event();
    cu!(cuEventRecord(outside, u); cuCtxSynchronize());
    cu!(cuStreamBeginCapture_v2(s, GLOBAL));
    assert_eq!(code!(cuStreamWaitEvent(s, outside, 0)), isolation);
    assert_eq!(ended(s), SPOILED);
    // Nor does a stream that has come to take part.
    let fork = plain_event();
    cu!(cuStreamBeginCapture_v2(s, GLOBAL); cuEventRecord(fork, s); cuStreamWaitEvent(t, fork, 0));
    assert_eq!(code!(cuStreamWaitEvent(t, outside, 0)), isolation);
    assert_eq!(ended(s), SPOILED);
    // An event of nothing is nothing to wait for.
    cu!(cuStreamBeginCapture_v2(s, GLOBAL); cuStreamWaitEvent(s, plain_event(), 0));
    assert_eq!(ended(s), CUDA_SUCCESS);
}

pub fn the_legacy_stream_waits_for_no_capture() {
    new_context();
    let (s, p, e) = (stream(CU_STREAM_DEFAULT), alloc(64), plain_event());
    let (kernel, host) = (kernel(c"nothing"), [0u8; 64]);
    let implicit = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    let null = CUstream::NULL;
    for mode in [GLOBAL, RELAXED] {
        each_in_a_capture(
            mode,
            s,
            &[
                ("copy", &|| code!(cuMemcpyHtoD_v2(p, host.as_ptr().cast(), 64)), implicit, SPOILED),
                ("set", &|| code!(cuMemsetD8_v2(p, 1, 64)), implicit, SPOILED),
                ("set later", &|| code!(cuMemsetD8Async(p, 1, 64, null)), implicit, SPOILED),
                ("kernel", &|| launch(kernel, 1, 1, null, &mut []), implicit, SPOILED),
                ("kernel by name", &|| launch(kernel, 1, 1, CU_STREAM_LEGACY, &mut []), implicit, SPOILED),
                ("record", &|| code!(cuEventRecord(e, null)), implicit, SPOILED),
            ],
        );
    }
}

pub fn the_legacy_stream_does_not_tell_while_it_is_held() {
    new_context();
    let (own, blocking) = (own_stream(), stream(CU_STREAM_DEFAULT));
    let (mut status, mut id) = (CU_STREAM_CAPTURE_STATUS_ACTIVE, 0);
    cu!(
        cuStreamBeginCapture_v2(own, GLOBAL);
        cuStreamIsCapturing(CUstream::NULL, &mut status);
        cuStreamBeginCapture_v2(blocking, RELAXED);
    );
    assert_eq!(status, CU_STREAM_CAPTURE_STATUS_NONE);
    fails!(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamIsCapturing(CUstream::NULL, &mut status));
    fails!(
        CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
        cuStreamGetCaptureInfo_v2(CUstream::NULL, &mut status, &mut id, null_mut(), null_mut(), null_mut())
    );
    // Asking spoils nothing.
    assert_eq!((ended(blocking), ended(own)), (CUDA_SUCCESS, CUDA_SUCCESS));
    cu!(cuStreamIsCapturing(CUstream::NULL, &mut status));
}

pub fn captured_events_are_not_asked_for() {
    new_context();
    let (s, captured, before) = (own_stream(), event(0), event(0));
    cu!(cuEventRecord(before, s); cuCtxSynchronize());
    let record = || cu!(cuEventRecord(captured, s));
    let refused = CUDA_ERROR_CAPTURED_EVENT;
    let after = |call: &dyn Fn() -> CUresult| {
        record();
        call()
    };
    each_in_a_capture(
        RELAXED,
        s,
        &[
            ("query", &|| after(&|| code!(cuEventQuery(captured))), refused, SPOILED),
            ("wait", &|| after(&|| code!(cuEventSynchronize(captured))), refused, SPOILED),
        ],
    );
    // After the capture it stands for nothing; recorded in earnest, it is an event like any other.
    fails!(CUDA_ERROR_INVALID_VALUE, cuEventQuery(captured));
    fails!(CUDA_ERROR_INVALID_VALUE, cuEventSynchronize(captured));
    for waiting in [s, CUstream::NULL] {
        fails!(CUDA_ERROR_INVALID_VALUE, cuStreamWaitEvent(waiting, captured, 0));
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuEventElapsedTime_v2(&mut 0.0, captured, captured));
    let wait = || code!(cuStreamWaitEvent(s, captured, 0));
    each_in_a_capture(RELAXED, s, &[("wait of a stream", &wait, CUDA_ERROR_INVALID_VALUE, SPOILED)]);
    cu!(cuEventRecord(captured, s); cuEventSynchronize(captured));
}

pub fn a_capture_is_ended_by_its_thread() {
    new_context();
    for mode in [GLOBAL, THREAD] {
        let s = own_stream();
        cu!(cuStreamBeginCapture_v2(s, mode));
        assert_eq!(ended_elsewhere(s), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "{mode:?}");
    }
    let s = own_stream();
    cu!(cuStreamBeginCapture_v2(s, RELAXED));
    assert_eq!(ended_elsewhere(s), CUDA_SUCCESS);
}

pub fn a_spoiled_capture_is_ended_by_any_thread() {
    new_context();
    for mode in [GLOBAL, THREAD] {
        let (s, recorded) = (own_stream(), plain_event());
        cu!(cuStreamBeginCapture_v2(s, mode); cuEventRecord(recorded, s));
        fails!(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(recorded));
        assert_eq!(ended_elsewhere(s), SPOILED, "{mode:?}");
        let mut status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
        cu!(cuStreamIsCapturing(s, &mut status));
        assert_eq!(status, CU_STREAM_CAPTURE_STATUS_NONE);
    }
}

pub fn an_event_of_a_spoiled_capture_stands_for_nothing() {
    new_context();
    let (s, e) = (own_stream(), plain_event());
    cu!(cuStreamBeginCapture_v2(s, THREAD); cuEventRecord(e, s));
    fails!(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(s));
    fails!(CUDA_ERROR_INVALID_VALUE, cuEventSynchronize(e));
    fails!(CUDA_ERROR_INVALID_VALUE, cuEventQuery(e));
    assert_eq!(ended(s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

pub fn the_legacy_stream_waits_for_no_event_while_others_capture() {
    new_context();
    let (s, e) = (stream(0), plain_event());
    cu!(cuEventRecord(e, s); cuStreamSynchronize(s));
    cu!(cuStreamBeginCapture_v2(s, RELAXED));
    fails!(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamWaitEvent(CUstream::NULL, e, 0));
    assert_eq!(ended(s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

pub fn nodes_of_a_capture_are_not_destroyed() {
    new_context();
    let (s, nothing) = (own_stream(), kernel(c"nothing"));
    cu!(cuStreamBeginCapture_v2(s, RELAXED));
    assert_eq!(launch(nothing, 1, 1, s, &mut []), CUDA_SUCCESS);
    let (mut status, mut count) = (CUstreamCaptureStatus(0), 0);
    let (mut graph, mut nodes): (_, *const CUgraphNode) = (CUgraph::NULL, null());
    cu!(cuStreamGetCaptureInfo_v2(s, &mut status, null_mut(), &mut graph, &mut nodes, &mut count));
    assert_eq!(count, 1);
    fails!(CUDA_ERROR_ILLEGAL_STATE, cuGraphDestroyNode(*nodes));
    assert_eq!(launch(nothing, 1, 1, s, &mut []), CUDA_SUCCESS);
    assert_eq!(ended(s), CUDA_SUCCESS);
}
