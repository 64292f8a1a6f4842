//! Stream management: capture, and what other functions do meanwhile.

use super::common::*;

const GLOBAL: CUstreamCaptureMode = CU_STREAM_CAPTURE_MODE_GLOBAL;
const THREAD: CUstreamCaptureMode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
const RELAXED: CUstreamCaptureMode = CU_STREAM_CAPTURE_MODE_RELAXED;

/// Ends a capture that was spoiled.
fn ends_spoiled(stream: CUstream) {
    let mut graph = CUgraph(1);
    fails!(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &mut graph));
    assert_eq!(graph, CUgraph::NULL);
    // It is over now.
    cu!(cuStreamQuery(stream));
}

/// Ends a capture that was not; answers the number of nodes.
fn ends_well(stream: CUstream) -> usize {
    let (mut graph, mut nodes) = (CUgraph::NULL, 0);
    cu!(cuStreamEndCapture(stream, &mut graph); cuGraphGetNodes(graph, null_mut(), &mut nodes); cuGraphDestroy(graph));
    nodes
}

pub fn what_is_queued_becomes_nodes() {
    new_context();
    let (s, p, mut host) = (stream(CU_STREAM_NON_BLOCKING), alloc_with(&[0u32; 4]), [0u32; 4]);
    let (mut graph, mut exec, mut nodes) = (CUgraph::NULL, CUgraphExec::NULL, 0);
    cu!(
        cuStreamBeginCapture_v2(s, GLOBAL);
        cuMemsetD32Async(p, 5, 4, s);
        cuMemcpyDtoHAsync_v2(host.as_mut_ptr().cast(), p, 16, s);
        cuStreamEndCapture_ptsz(s, &mut graph);
        cuGraphGetNodes(graph, null_mut(), &mut nodes);
        cuGraphInstantiateWithFlags(&mut exec, graph, 0);
    );
    assert_eq!((nodes, host), (2, [0; 4]), "nothing has run");
    assert_eq!(read::<u32>(p, 4), [0; 4]);
    cu!(cuGraphLaunch(exec, s); cuStreamSynchronize(s));
    assert_eq!(host, [5; 4]);
}

pub fn captured_copies_tell_what_their_ends_are() {
    new_context();
    let (s, place, mut host) = (stream(CU_STREAM_NON_BLOCKING), alloc(1024), null_mut());
    cu!(cuMemHostAlloc(&mut host, 1024, 0));
    let other = CUdeviceptr(place.0 + 512);
    let rows = |kind| {
        // SAFETY: numbers, handles and pointers, for which zero is a value.
        let nothing: CUDA_MEMCPY2D = unsafe { std::mem::zeroed() };
        CUDA_MEMCPY2D {
            srcMemoryType: kind,
            srcHost: host,
            srcDevice: other,
            srcPitch: 64,
            dstMemoryType: CU_MEMORYTYPE_DEVICE,
            dstDevice: place,
            dstPitch: 128,
            WidthInBytes: 32,
            Height: 4,
            ..nothing
        }
    };
    let told = |queue: &dyn Fn()| {
        let (mut main, mut node) = (CUgraph::NULL, CUgraphNode::NULL);
        // SAFETY: as above.
        let mut copy: CUDA_MEMCPY3D = unsafe { std::mem::zeroed() };
        cu!(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
        queue();
        cu!(
            cuStreamEndCapture(s, &mut main);
            cuGraphGetNodes(main, &mut node, &mut 1);
            cuGraphMemcpyNodeGetParams(node, &mut copy);
        );
        assert_eq!((copy.srcHeight, copy.dstHeight, copy.Depth), (0, 0, 1));
        (copy.srcMemoryType, copy.dstMemoryType, copy.srcPitch, copy.dstPitch, copy.Height)
    };
    let (here, there, any) = (CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_UNIFIED);
    let up = || cu!(cuMemcpyHtoDAsync_v2(place, host, 100, s));
    assert_eq!(told(&up), (there, here, 0, 0, 1));
    assert_eq!(told(&|| cu!(cuMemcpyDtoHAsync_v2(host, place, 100, s))), (here, there, 0, 0, 1));
    assert_eq!(told(&|| cu!(cuMemcpyDtoDAsync_v2(place, other, 100, s))), (here, here, 0, 0, 1));
    let unified = CUdeviceptr(host as u64);
    assert_eq!(told(&|| cu!(cuMemcpyAsync(place, unified, 100, s))), (any, any, 0, 0, 1));
    assert_eq!(told(&|| cu!(cuMemcpy2DAsync_v2(&rows(there), s))), (there, here, 64, 128, 4));
    assert_eq!(told(&|| cu!(cuMemcpy2DAsync_v2(&rows(here), s))), (here, here, 64, 128, 4));
}

pub fn every_begin_begins_and_every_end_ends() {
    new_context();
    let s = stream(CU_STREAM_NON_BLOCKING);
    cu!(cuStreamBeginCapture(s));
    assert_eq!(ends_well(s), 0);
    cu!(cuStreamBeginCapture_ptsz(s));
    assert_eq!(ends_well(s), 0);
    cu!(cuStreamBeginCapture_v2_ptsz(CUstream::NULL, RELAXED));
    assert_eq!(ends_well(CU_STREAM_PER_THREAD), 0);
    let mut graph = CUgraph::NULL;
    fails!(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(s, &mut graph));
    fails!(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture_v2(CUstream::NULL, GLOBAL));
    fails!(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture_v2(CU_STREAM_LEGACY, GLOBAL));
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamBeginCapture_v2(s, CUstreamCaptureMode(9)));
    cu!(cuStreamBeginCapture_v2(s, RELAXED));
    fails!(CUDA_ERROR_ILLEGAL_STATE, cuStreamBeginCapture_v2(s, RELAXED));
    ends_well(s);
}

pub fn unsafe_calls_spoil_a_global_capture() {
    new_context();
    let (s, other, e) = (stream(CU_STREAM_NON_BLOCKING), stream(CU_STREAM_NON_BLOCKING), event(0));
    let (mut p, mut host) = (CUdeviceptr(0), null_mut());
    let unsupported = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    for mode in [GLOBAL, THREAD] {
        let begin = || cu!(cuStreamBeginCapture_v2(s, mode));
        begin();
        fails!(unsupported, cuMemAlloc_v2(&mut p, 64));
        ends_spoiled(s);
        begin();
        fails!(unsupported, cuMemAllocHost_v2(&mut host, 64));
        ends_spoiled(s);
        begin();
        fails!(unsupported, cuStreamQuery(other));
        ends_spoiled(s);
        begin();
        fails!(unsupported, cuEventQuery(e));
        ends_spoiled(s);
    }
}

pub fn the_capturing_stream_cannot_be_waited_for() {
    new_context();
    let (s, p) = (stream(CU_STREAM_NON_BLOCKING), alloc(64));
    for mode in [GLOBAL, RELAXED] {
        cu!(cuStreamBeginCapture_v2(s, mode));
        fails!(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(s));
        // Whatever is asked of it now tells so.
        fails!(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuMemsetD8Async(p, 1, 64, s));
        ends_spoiled(s);
        cu!(cuStreamBeginCapture_v2(s, mode));
        fails!(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamQuery(s));
        ends_spoiled(s);
        cu!(cuStreamBeginCapture_v2(s, mode));
        fails!(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxSynchronize());
        ends_spoiled(s);
    }
}

pub fn a_relaxed_capture_allows_allocation() {
    new_context();
    let (s, other, mut p) = (stream(CU_STREAM_NON_BLOCKING), stream(CU_STREAM_NON_BLOCKING), CUdeviceptr(0));
    let before = alloc(64);
    cu!(cuStreamBeginCapture_v2(s, RELAXED); cuMemAlloc_v2(&mut p, 64); cuStreamQuery(other); cuStreamSynchronize(other));
    cu!(cuMemsetD8Async(p, 1, 64, s); cuMemFree_v2(before));
    assert_eq!(ends_well(s), 1);
}

pub fn the_legacy_stream_spoils_captures_of_blocking_streams() {
    new_context();
    let (s, p, host) = (stream(CU_STREAM_DEFAULT), alloc(64), [0u8; 64]);
    let implicit = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    for mode in [GLOBAL, RELAXED] {
        cu!(cuStreamBeginCapture_v2(s, mode));
        fails!(implicit, cuMemcpyHtoD_v2(p, host.as_ptr().cast(), 64));
        ends_spoiled(s);
        cu!(cuStreamBeginCapture_v2(s, mode));
        fails!(implicit, cuMemsetD8Async(p, 0, 64, CUstream::NULL));
        ends_spoiled(s);
    }
    // A stream of its own has nothing to do with it.
    let own = stream(CU_STREAM_NON_BLOCKING);
    cu!(cuStreamBeginCapture_v2(own, RELAXED); cuMemsetD8Async(p, 0, 64, CUstream::NULL));
    assert_eq!(ends_well(own), 0);
}

pub fn a_thread_can_leave_the_checks() {
    new_context();
    let (s, mut p, mut mode) = (stream(CU_STREAM_NON_BLOCKING), CUdeviceptr(0), RELAXED);
    cu!(cuThreadExchangeStreamCaptureMode(&mut mode));
    assert_eq!(mode, GLOBAL, "as every thread begins");
    cu!(cuStreamBeginCapture_v2(s, GLOBAL); cuMemAlloc_v2(&mut p, 64));
    cu!(cuThreadExchangeStreamCaptureMode(&mut mode));
    assert_eq!(mode, RELAXED);
    fails!(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc_v2(&mut p, 64));
    ends_spoiled(s);
    if !ours_only("NVIDIA's driver takes a mode that is none") {
        return;
    }
    mode = CUstreamCaptureMode(9);
    fails!(CUDA_ERROR_INVALID_VALUE, cuThreadExchangeStreamCaptureMode(&mut mode));
    fails!(CUDA_ERROR_INVALID_VALUE, cuThreadExchangeStreamCaptureMode(null_mut()));
}

pub fn another_thread_is_bound_by_a_global_capture_only() {
    let context = new_context();
    let s = stream(CU_STREAM_NON_BLOCKING);
    let elsewhere = move || {
        std::thread::spawn(move || {
            cu!(cuCtxSetCurrent(context));
            let mut p = CUdeviceptr(0);
            // SAFETY: a place for the pointer.
            unsafe { cuMemAlloc_v2(&mut p, 64) }
        })
        .join()
        .unwrap()
    };
    cu!(cuStreamBeginCapture_v2(s, THREAD));
    assert_eq!(elsewhere(), CUDA_SUCCESS);
    assert_eq!(ends_well(s), 0);
    cu!(cuStreamBeginCapture_v2(s, GLOBAL));
    assert_eq!(elsewhere(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ends_spoiled(s);
    // A capture is ended by the thread that began it; that another one tries is its end, too.
    cu!(cuStreamBeginCapture_v2(s, GLOBAL));
    let ended = std::thread::spawn(move || {
        cu!(cuCtxSetCurrent(context));
        // SAFETY: a place for the graph.
        unsafe { cuStreamEndCapture(s, &mut CUgraph(0)) }
    });
    assert_eq!(ended.join().unwrap(), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    fails!(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(s, &mut CUgraph(0)));
    assert_eq!(elsewhere(), CUDA_SUCCESS);
}

pub fn a_graph_that_nobody_wants_is_not_asked_for() {
    new_context();
    let s = stream(CU_STREAM_NON_BLOCKING);
    fails!(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(s, null_mut()));
    cu!(
        cuStreamBeginCapture_v2(s, RELAXED);
        cuMemsetD8Async(alloc(64), 1, 64, s);
        cuStreamEndCapture(s, null_mut());
        cuStreamQuery(s);
    );
    fails!(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(s, null_mut()));
    cu!(cuStreamBeginCapture_v2(s, RELAXED));
    fails!(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(s));
    fails!(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, null_mut()));
    cu!(cuStreamQuery(s));
}

pub fn captures_spread_by_events_and_must_join() {
    new_context();
    let (s, t, p) = (stream(CU_STREAM_NON_BLOCKING), stream(CU_STREAM_NON_BLOCKING), alloc(64));
    let (fork, join) = (event(CU_EVENT_DISABLE_TIMING), event(CU_EVENT_DISABLE_TIMING));
    let spread = || {
        cu!(
            cuStreamBeginCapture_v2(s, GLOBAL);
            cuEventRecord(fork, s);
            cuStreamWaitEvent(t, fork, 0);
            cuMemsetD8Async(p, 1, 64, t);
        )
    };
    spread();
    let mut status = CUstreamCaptureStatus(9);
    cu!(cuStreamIsCapturing(t, &mut status));
    assert_eq!(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    fails!(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(t, &mut CUgraph(0)));
    // To end it in another stream than its own spoils it.
    ends_spoiled(s);
    spread();
    fails!(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(s, &mut CUgraph(0)));
    spread();
    cu!(cuEventRecord(join, t); cuStreamWaitEvent(s, join, 0));
    assert_eq!(ends_well(s), 1);
    cu!(cuStreamIsCapturing_ptsz(t, &mut status));
    assert_eq!(status, CU_STREAM_CAPTURE_STATUS_NONE);
    // Captured work cannot wait for work that is not.
    let outside = event(CU_EVENT_DISABLE_TIMING);
    cu!(cuEventRecord(outside, t); cuStreamBeginCapture_v2(s, GLOBAL));
    fails!(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(s, outside, 0));
    ends_spoiled(s);
}

pub fn captures_do_not_merge() {
    new_context();
    let (s, t, fork) =
        (stream(CU_STREAM_NON_BLOCKING), stream(CU_STREAM_NON_BLOCKING), event(CU_EVENT_DISABLE_TIMING));
    cu!(
        cuStreamBeginCapture_v2(s, RELAXED);
        cuStreamBeginCapture_v2(t, RELAXED);
        cuEventRecord(fork, s);
    );
    fails!(CUDA_ERROR_STREAM_CAPTURE_MERGE, cuStreamWaitEvent(t, fork, 0));
    ends_spoiled(s);
    ends_spoiled(t);
}

pub fn every_question_about_a_capture_is_answered() {
    new_context();
    let (s, p) = (stream(CU_STREAM_NON_BLOCKING), alloc(64));
    let (mut status, mut id, mut same) = (CUstreamCaptureStatus(9), 0, 0);
    let (mut graph, mut nodes, mut edges, mut count) = (CUgraph::NULL, null(), null(), 9);
    cu!(cuStreamGetCaptureInfo(s, &mut status, &mut id));
    assert_eq!(status, CU_STREAM_CAPTURE_STATUS_NONE);
    cu!(
        cuStreamBeginCapture_v2(s, RELAXED);
        cuMemsetD8Async(p, 1, 64, s);
        cuStreamGetCaptureInfo(s, &mut status, &mut id);
        cuStreamGetCaptureInfo_ptsz(s, &mut status, &mut same);
    );
    assert_eq!((status, id), (CU_STREAM_CAPTURE_STATUS_ACTIVE, same));
    cu!(cuStreamGetCaptureInfo_v2(s, &mut status, &mut same, &mut graph, &mut nodes, &mut count));
    assert_eq!((same, count), (id, 1));
    assert!(!graph.is_null() && !nodes.is_null());
    // SAFETY: as many nodes as were counted.
    let node = unsafe { nodes.read() };
    count = 9;
    cu!(cuStreamGetCaptureInfo_v2_ptsz(s, &mut status, &mut same, &mut graph, &mut nodes, &mut count));
    assert_eq!((same, count), (id, 1));
    count = 9;
    cu!(cuStreamGetCaptureInfo_v3(s, &mut status, &mut same, &mut graph, &mut nodes, &mut edges, &mut count));
    assert_eq!((same, count), (id, 1));
    count = 9;
    cu!(cuStreamGetCaptureInfo_v3_ptsz(
        s,
        &mut status,
        &mut same,
        &mut graph,
        &mut nodes,
        &mut edges,
        &mut count
    ));
    assert_eq!((same, count), (id, 1));
    // What comes next depends on nothing, and then on the first node again.
    const SET: u32 = 1;
    const ADD: u32 = 0;
    let mut first = [node];
    let depends = |on: usize| {
        let (mut count, mut status) = (9, CUstreamCaptureStatus(9));
        cu!(cuStreamGetCaptureInfo_v2(s, &mut status, null_mut(), null_mut(), null_mut(), &mut count));
        assert_eq!(count, on);
    };
    cu!(cuStreamUpdateCaptureDependencies(s, null_mut(), 0, SET));
    depends(0);
    cu!(cuStreamUpdateCaptureDependencies_ptsz(s, first.as_mut_ptr(), 1, ADD));
    depends(1);
    cu!(cuStreamUpdateCaptureDependencies_v2(s, null_mut(), null(), 0, SET));
    depends(0);
    cu!(cuStreamUpdateCaptureDependencies_v2_ptsz(s, first.as_mut_ptr(), null(), 1, ADD));
    depends(1);
    assert_eq!(ends_well(s), 1);
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamIsCapturing(s, null_mut()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamGetCaptureInfo(s, null_mut(), &mut id));
}

pub fn a_capture_goes_to_a_graph_that_is_there() {
    new_context();
    let (s, p, mut graph) = (stream(CU_STREAM_NON_BLOCKING), alloc(64), CUgraph::NULL);
    let (mut first, mut nodes, mut ended) = (CUgraphNode::NULL, 0, CUgraph::NULL);
    cu!(cuGraphCreate(&mut graph, 0); cuGraphAddEmptyNode(&mut first, graph, null(), 0));
    for round in 1..=2 {
        match round {
            1 => cu!(cuStreamBeginCaptureToGraph(s, graph, &first, null(), 1, RELAXED)),
            _ => cu!(cuStreamBeginCaptureToGraph_ptsz(s, graph, &first, null(), 1, RELAXED)),
        }
        cu!(cuMemsetD8Async(p, 1, 64, s); cuStreamEndCapture(s, &mut ended); cuGraphGetNodes(graph, null_mut(), &mut nodes));
        assert_eq!((ended, nodes), (graph, 1 + round));
    }
}

pub fn what_cannot_be_a_node_is_refused() {
    unsafe extern "C" fn never(_: CUstream, _: CUresult, _: *mut c_void) {}
    new_context();
    let s = stream(CU_STREAM_NON_BLOCKING);
    cu!(cuStreamBeginCapture_v2(s, RELAXED));
    fails!(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamAddCallback(s, Some(never), null_mut(), 0));
    ends_spoiled(s);
}
