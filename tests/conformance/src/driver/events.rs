//! Event management.

use super::common::*;

pub fn flags_are_checked() {
    new_context();
    let mut e = CUevent::NULL;
    let all = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
    for flags in
        [CU_EVENT_DEFAULT, CU_EVENT_BLOCKING_SYNC, CU_EVENT_DISABLE_TIMING, all, all | CU_EVENT_INTERPROCESS]
    {
        cu!(cuEventCreate(&mut e, flags); cuEventDestroy_v2(e));
    }
    cu!(cuEventCreate(&mut e, 0); cuEventDestroy(e));
    for flags in [8, 99, CU_EVENT_INTERPROCESS, u32::MAX] {
        fails!(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&mut e, flags));
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuEventCreate(null_mut(), 0));
}

pub fn null_is_no_event() {
    new_context();
    let none = CUevent::NULL;
    fails!(CUDA_ERROR_INVALID_HANDLE, cuEventDestroy_v2(none));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(none));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuEventSynchronize(none));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(none, CUstream::NULL));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuEventRecordWithFlags(none, CUstream::NULL, 0));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&mut 0.0, none, none));
    if ours_only("NVIDIA's driver crashes") {
        let destroyed = event(0);
        cu!(cuEventDestroy_v2(destroyed));
        for none in [destroyed, CUevent(0x1234), CUevent(stream(0).0)] {
            fails!(CUDA_ERROR_INVALID_HANDLE, cuEventDestroy_v2(none));
            fails!(CUDA_ERROR_INVALID_HANDLE, cuEventDestroy(none));
            fails!(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(none));
            fails!(CUDA_ERROR_INVALID_HANDLE, cuEventSynchronize(none));
            fails!(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(none, CUstream::NULL));
            fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamWaitEvent(CUstream::NULL, none, 0));
        }
        fails!(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(event(0), CUstream(0x1234)));
    }
}

pub fn an_event_stands_for_what_was_queued_before() {
    new_context();
    let (s, gate, e) = (stream(CU_STREAM_NON_BLOCKING), Gate::new(), event(0));
    // Unrecorded, it stands for nothing.
    cu!(cuEventQuery(e); cuEventSynchronize(e));
    cu!(cuEventRecord(e, s); cuEventSynchronize(e); cuEventQuery(e));
    gate.hold(s);
    cu!(cuEventQuery(e));
    for record in [cuEventRecord, cuEventRecord_ptsz] {
        assert_eq!(unsafe_record(record, e, s), CUDA_SUCCESS);
        fails!(CUDA_ERROR_NOT_READY, cuEventQuery(e));
    }
    cu!(cuEventRecordWithFlags(e, s, CU_EVENT_RECORD_DEFAULT));
    cu!(cuEventRecordWithFlags_ptsz(e, s, 0));
    fails!(CUDA_ERROR_NOT_READY, cuEventQuery(e));
    fails!(CUDA_ERROR_INVALID_VALUE, cuEventRecordWithFlags(e, s, 77));
    fails!(CUDA_ERROR_ILLEGAL_STATE, cuEventRecordWithFlags(e, s, CU_EVENT_RECORD_EXTERNAL));
    gate.open();
    cu!(cuEventSynchronize(e); cuEventQuery(e));
    // The variants' stream 0 is the thread's own.
    let held = Gate::new();
    held.hold(CU_STREAM_PER_THREAD);
    cu!(cuEventRecord_ptsz(e, CUstream::NULL));
    fails!(CUDA_ERROR_NOT_READY, cuEventQuery(e));
    held.open();
    cu!(cuEventSynchronize(e));
}

fn unsafe_record(record: unsafe fn(CUevent, CUstream) -> CUresult, e: CUevent, s: CUstream) -> CUresult {
    // SAFETY: handles that the test made.
    unsafe { record(e, s) }
}

pub fn an_event_may_go_while_it_is_waited_for() {
    new_context();
    let (s, gate) = (stream(CU_STREAM_NON_BLOCKING), Gate::new());
    gate.hold(s);
    for _ in 0..100 {
        let e = event(0);
        cu!(cuEventRecord(e, s); cuStreamWaitEvent(CUstream::NULL, e, 0); cuEventDestroy_v2(e));
    }
    fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(CUstream::NULL));
    gate.open();
    cu!(cuCtxSynchronize());
}

pub fn time_is_measured_between_two_records() {
    new_context();
    let (s, first, second) = (stream(CU_STREAM_NON_BLOCKING), event(0), event(0));
    let mut time = -1f32;
    fails!(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&mut time, first, second));
    cu!(cuEventRecord(first, s); cuEventSynchronize(first));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&mut time, first, second));
    let sleeping = Gate::new();
    sleeping.hold(s);
    cu!(cuEventRecord(second, s));
    fails!(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&mut time, first, second));
    fails!(CUDA_ERROR_NOT_READY, cuEventElapsedTime_v2(&mut time, first, second));
    std::thread::sleep(std::time::Duration::from_millis(20));
    sleeping.open();
    cu!(cuEventSynchronize(second); cuEventElapsedTime(&mut time, first, second));
    assert!(time >= 20.0, "{time} ms although the stream was held for 20");
    let mut back = 0f32;
    cu!(cuEventElapsedTime_v2(&mut back, second, first));
    assert_eq!(back, -time);
    cu!(cuEventElapsedTime_v2(&mut back, first, first));
    assert_eq!(back, 0.0);
    let code = differs("null is no event", CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_HANDLE);
    fails!(code, cuEventElapsedTime(null_mut(), first, second));
    let untimed = event(CU_EVENT_DISABLE_TIMING);
    cu!(cuEventRecord(untimed, s); cuEventSynchronize(untimed));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&mut time, first, untimed));
    let context = current();
    create_context();
    let theirs = event(CU_EVENT_DEFAULT);
    cu!(cuEventRecord(theirs, CUstream::NULL); cuCtxSynchronize());
    fails!(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&mut time, first, theirs));
    cu!(cuCtxSetCurrent(context));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&mut time, untimed, first));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime_v2(&mut time, untimed, first));
}

pub fn a_capture_records_events_as_nodes_if_asked_to() {
    new_context();
    let (s, e, word) =
        (stream(CU_STREAM_NON_BLOCKING), event(CU_EVENT_DISABLE_TIMING), alloc_with(&[0u32; 1]));
    let (mut graph, mut exec, mut nodes) = (CUgraph::NULL, CUgraphExec::NULL, 0);
    let other = event(CU_EVENT_DISABLE_TIMING);
    cu!(
        cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED);
        cuStreamWaitEvent(s, other, CU_EVENT_WAIT_EXTERNAL);
        cuMemsetD32Async(word, 1, 1, s);
        cuEventRecordWithFlags(e, s, CU_EVENT_RECORD_EXTERNAL);
        cuStreamEndCapture(s, &mut graph);
        cuGraphGetNodes(graph, null_mut(), &mut nodes);
        cuGraphInstantiateWithFlags(&mut exec, graph, 0);
    );
    assert_eq!(nodes, 3);
    let (gate, held) = (Gate::new(), stream(CU_STREAM_NON_BLOCKING));
    gate.hold(held);
    // The launch waits for what the event stands for now, and the other event for the launch.
    cu!(cuEventRecord(other, held); cuGraphLaunch(exec, s));
    fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
    fails!(CUDA_ERROR_NOT_READY, cuEventQuery(e));
    gate.open();
    cu!(cuEventSynchronize(e); cuStreamSynchronize(s));
    assert_eq!(read::<u32>(word, 1), [1]);
}

pub fn a_capture_refuses_to_ask_for_its_events() {
    new_context();
    let (s, e) = (stream(CU_STREAM_NON_BLOCKING), event(0));
    let mut graph = CUgraph::NULL;
    cu!(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED); cuEventRecord(e, s));
    fails!(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(e));
    fails!(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &mut graph));
    assert_eq!(graph, CUgraph::NULL);
    cu!(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED); cuEventRecord(e, s));
    fails!(CUDA_ERROR_CAPTURED_EVENT, cuEventSynchronize(e));
    fails!(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &mut graph));
}
