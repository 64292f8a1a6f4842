//! Graph management: edges that wait for less than the end of a kernel.

use super::common::*;

const BEGUN: CUgraphEdgeData = edge(CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER, CU_GRAPH_DEPENDENCY_TYPE_DEFAULT);
const TRIGGERED: CUgraphEdgeData =
    edge(CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);

const fn edge(from_port: u8, r#type: u8) -> CUgraphEdgeData {
    CUgraphEdgeData { from_port, to_port: 0, r#type, reserved: [0; 5] }
}

/// A graph with kernels that each add to the module's counter, one behind the other; the counter's address.
struct Chain {
    graph: CUgraph,
    nodes: [CUgraphNode; 2],
    counter: CUdeviceptr,
}

fn bump(module: CUmodule, by: &u32) -> (CUDA_KERNEL_NODE_PARAMS, [*mut c_void; 1]) {
    (one_thread(function(module, c"bump"), &mut []), [arg(by)])
}

/// Two kernels between which there is one such edge.
fn chain(data: CUgraphEdgeData) -> Chain {
    let module = load(KERNELS);
    let (mut graph, mut nodes) = (CUgraph::NULL, [CUgraphNode::NULL; 2]);
    let (mut counter, mut size) = (CUdeviceptr(0), 0);
    cu!(cuGraphCreate(&mut graph, 0); cuModuleGetGlobal_v2(&mut counter, &mut size, module, c"counter".as_ptr()));
    for (node, by) in nodes.iter_mut().zip([3_u32, 4]) {
        let (mut params, mut arguments) = bump(module, &by);
        params.kernelParams = arguments.as_mut_ptr();
        cu!(cuGraphAddKernelNode_v2(node, graph, null(), 0, &params));
    }
    cu!(cuGraphAddDependencies_v2(graph, &nodes[0], &nodes[1], &data, 1));
    Chain { graph, nodes, counter }
}

/// The graph's only edge.
fn only_edge(graph: CUgraph) -> (CUgraphNode, CUgraphNode, CUgraphEdgeData) {
    let (mut from, mut to, mut data) = (CUgraphNode::NULL, CUgraphNode::NULL, edge(9, 9));
    let mut count = 1;
    cu!(cuGraphGetEdges_v2(graph, &mut from, &mut to, &mut data, &mut count));
    assert_eq!(count, 1);
    (from, to, data)
}

pub fn what_edges_wait_for_is_told_and_cannot_be_left_out() {
    new_context();
    for data in [BEGUN, TRIGGERED] {
        let Chain { graph, nodes: [first, second], .. } = chain(data);
        assert_eq!(only_edge(graph), (first, second, data));
        let (mut from, mut to, mut count) = (CUgraphNode::NULL, CUgraphNode::NULL, 1);
        let lossy = CUDA_ERROR_LOSSY_QUERY;
        fails!(lossy, cuGraphGetEdges(graph, &mut from, &mut to, &mut count));
        fails!(lossy, cuGraphGetEdges_v2(graph, &mut from, &mut to, null_mut(), &mut count));
        fails!(lossy, cuGraphNodeGetDependencies(second, &mut from, &mut count));
        fails!(lossy, cuGraphNodeGetDependentNodes(first, &mut to, &mut count));
        let mut told = edge(9, 9);
        cu!(cuGraphNodeGetDependencies_v2(second, &mut from, &mut told, &mut count));
        assert_eq!((from, told), (first, data));
        told = edge(9, 9);
        cu!(cuGraphNodeGetDependentNodes_v2(first, &mut to, &mut told, &mut count));
        assert_eq!((to, told), (second, data));
        cu!(cuGraphGetEdges(graph, null_mut(), null_mut(), &mut count));
        assert_eq!(count, 1);
    }
}

pub fn a_clone_has_the_same_edges() {
    new_context();
    let Chain { graph, .. } = chain(TRIGGERED);
    let mut clone = CUgraph::NULL;
    cu!(cuGraphClone(&mut clone, graph));
    assert_eq!(only_edge(clone).2, TRIGGERED);
}

pub fn an_edge_is_removed_whatever_it_waits_for() {
    new_context();
    let Chain { graph, nodes: [first, second], .. } = chain(TRIGGERED);
    cu!(cuGraphRemoveDependencies(graph, &first, &second, 1));
    for data in [BEGUN, TRIGGERED, CUgraphEdgeData::default()] {
        cu!(
            cuGraphAddDependencies_v2(graph, &first, &second, &TRIGGERED, 1);
            cuGraphRemoveDependencies_v2(graph, &first, &second, &data, 1);
        );
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphRemoveDependencies(graph, &first, &second, 1));
    // The next edge between them is a plain one.
    cu!(cuGraphAddDependencies(graph, &first, &second, 1));
    assert_eq!(only_edge(graph).2, CUgraphEdgeData::default());
}

pub fn a_node_comes_with_such_edges() {
    new_context();
    let Chain { graph, nodes: [_, second], .. } = chain(BEGUN);
    let by = 5_u32;
    let (mut kernel, mut arguments) = bump(load(KERNELS), &by);
    kernel.kernelParams = arguments.as_mut_ptr();
    // SAFETY: numbers and a union of them, for which zero is a value.
    let mut params: CUgraphNodeParams = unsafe { std::mem::zeroed() };
    (params.r#type, params.params.kernel) = (CU_GRAPH_NODE_TYPE_KERNEL, kernel);
    let (mut third, mut from, mut data, mut count) = (CUgraphNode::NULL, CUgraphNode::NULL, edge(9, 9), 1);
    cu!(
        cuGraphAddNode_v2(&mut third, graph, &second, &TRIGGERED, 1, &mut params);
        cuGraphNodeGetDependencies_v2(third, &mut from, &mut data, &mut count);
    );
    assert_eq!((from, data), (second, TRIGGERED));
    // What a node has no use for is zero.
    params.r#type = CU_GRAPH_NODE_TYPE_EMPTY;
    let (mut empty, invalid) = (CUgraphNode::NULL, CUDA_ERROR_INVALID_VALUE);
    fails!(invalid, cuGraphAddNode_v2(&mut empty, graph, &third, null(), 1, &mut params));
    // What is no kernel cannot wait by itself, and has no blocks that could begin.
    params.params.reserved1 = [0; 29];
    fails!(invalid, cuGraphAddNode_v2(&mut empty, graph, &third, &TRIGGERED, 1, &mut params));
    cu!(cuGraphAddNode_v2(&mut empty, graph, &third, &BEGUN, 1, &mut params));
    fails!(invalid, cuGraphAddDependencies_v2(graph, &empty, &second, &BEGUN, 1));
    fails!(invalid, cuGraphAddDependencies_v2(graph, &empty, &second, &TRIGGERED, 1));
}

pub fn ports_and_types_go_together() {
    new_context();
    let Chain { graph, nodes: [first, second], .. } = chain(TRIGGERED);
    cu!(cuGraphRemoveDependencies_v2(graph, &first, &second, &TRIGGERED, 1));
    let to_port = CUgraphEdgeData { to_port: 1, ..TRIGGERED };
    let reserved = CUgraphEdgeData { reserved: [0, 0, 1, 0, 0], ..TRIGGERED };
    for wrong in [edge(0, 1), edge(1, 0), edge(3, 0), edge(0, 2), to_port, reserved] {
        fails!(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies_v2(graph, &first, &second, &wrong, 1));
    }
    let mut count = 0;
    cu!(cuGraphGetEdges(graph, null_mut(), null_mut(), &mut count));
    assert_eq!(count, 0);
}

pub fn graphs_with_such_edges_run() {
    new_context();
    let Chain { graph, counter, .. } = chain(TRIGGERED);
    let (mut executable, before) = (CUgraphExec::NULL, read::<u32>(counter, 1)[0]);
    cu!(
        cuGraphInstantiateWithFlags(&mut executable, graph, 0);
        cuGraphLaunch(executable, CUstream::NULL);
        cuCtxSynchronize();
    );
    assert_eq!(read::<u32>(counter, 1), [before + 3 + 4]);
}

pub fn captured_launches_that_may_begin_early_have_such_edges() {
    new_context();
    let (module, s, t) = (load(KERNELS), stream(CU_STREAM_NON_BLOCKING), stream(CU_STREAM_NON_BLOCKING));
    let (f, by, word, fork) = (function(module, c"bump"), 1_u32, alloc(64), event(CU_EVENT_DISABLE_TIMING));
    let (mut counter, mut size) = (CUdeviceptr(0), 0);
    cu!(cuModuleGetGlobal_v2(&mut counter, &mut size, module, c"counter".as_ptr()));
    let launch = |stream: CUstream, early: Option<u32>| {
        // SAFETY: a structure of numbers and handles.
        let mut attribute: CUlaunchAttribute = unsafe { std::mem::zeroed() };
        attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attribute.value.bytes[..4].copy_from_slice(&early.unwrap_or(0).to_ne_bytes());
        let attributes = std::slice::from_mut(&mut attribute);
        let config = one_thread_in(stream, if early.is_some() { attributes } else { &mut [] });
        cu!(cuLaunchKernelEx(&config, f, [arg(&by)].as_mut_ptr(), null_mut()));
    };
    let row = |all: &[Option<u32>]| all.iter().for_each(|early| launch(s, *early));
    let fill = |stream: CUstream| cu!(cuMemsetD8Async(word, 1, 4, stream));
    let captured = |what: &dyn Fn()| {
        let (mut graph, mut count) = (CUgraph::NULL, 4);
        let (mut from, mut to, mut data) = ([CUgraphNode::NULL; 4], [CUgraphNode::NULL; 4], [edge(9, 9); 4]);
        cu!(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
        what();
        cu!(
            cuStreamEndCapture(s, &mut graph);
            cuGraphGetEdges_v2(graph, from.as_mut_ptr(), to.as_mut_ptr(), data.as_mut_ptr(), &mut count);
        );
        // In no order; the least first.
        let mut data = data[..count].to_vec();
        data.sort_by_key(|edge| edge.r#type);
        (graph, data)
    };
    let end = CUgraphEdgeData::default();
    let cases: [(&dyn Fn(), &[CUgraphEdgeData]); 7] = [
        (&|| row(&[None, Some(1)]), &[TRIGGERED]),
        (&|| row(&[None, Some(0)]), &[end]),
        (&|| row(&[Some(1)]), &[]),
        (&|| row(&[None, Some(1), None]), &[end, TRIGGERED]),
        (
            &|| {
                row(&[None, Some(1)]);
                fill(s);
            },
            &[end, TRIGGERED],
        ),
        (
            &|| {
                fill(s);
                launch(s, Some(1));
            },
            &[end],
        ),
        // Behind a kernel and something else.
        (
            &|| {
                cu!(cuEventRecord(fork, s); cuStreamWaitEvent(t, fork, 0));
                fill(t);
                launch(s, None);
                cu!(cuEventRecord(fork, t); cuStreamWaitEvent(s, fork, 0));
                launch(s, Some(1));
            },
            &[end, TRIGGERED],
        ),
    ];
    for (number, (what, expected)) in cases.into_iter().enumerate() {
        let (graph, found) = captured(what);
        assert_eq!(found, expected, "case {number}");
        let (mut executable, before) = (CUgraphExec::NULL, read::<u32>(counter, 1)[0]);
        cu!(
            cuGraphInstantiateWithFlags(&mut executable, graph, 0);
            cuGraphLaunch(executable, s);
            cuStreamSynchronize(s);
        );
        assert!(read::<u32>(counter, 1)[0] > before);
    }
}

/// What waits for an event, what is captured behind it, and what the edge to that is.
type Waiter<'a> = (&'a dyn Fn(), &'a dyn Fn(CUstream), CUgraphEdgeData);

/// What is waited for of a kernel that records an event on its way, by what is captured behind the event.
pub fn events_that_captured_launches_record_have_such_edges() {
    new_context();
    let (f, by, word) = (function(load(KERNELS), c"bump"), 1_u32, alloc(64));
    let [s, t, u] = [(); 3].map(|()| stream(CU_STREAM_NON_BLOCKING));
    let [e, fork] = [(); 2].map(|()| event(CU_EVENT_DISABLE_TIMING));
    let launch = |stream: CUstream, id: CUlaunchAttributeID, words: [u32; 4]| {
        // SAFETY: a structure of numbers and handles.
        let mut attribute: CUlaunchAttribute = unsafe { std::mem::zeroed() };
        attribute.id = id;
        for (bytes, word) in attribute.value.bytes.chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_ne_bytes());
        }
        let config = one_thread_in(stream, std::slice::from_mut(&mut attribute));
        cu!(cuLaunchKernelEx(&config, f, [arg(&by)].as_mut_ptr(), null_mut()));
    };
    let recording = |at: &(CUlaunchAttributeID, u32), event: CUevent| {
        launch(s, at.0, [event.0 as u32, (event.0 as u64 >> 32) as u32, 0, at.1]);
    };
    let plain = |stream| launch(stream, CU_LAUNCH_ATTRIBUTE_IGNORE, [0; 4]);
    let early = |stream| launch(stream, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, [1, 0, 0, 0]);
    let fill = |stream| cu!(cuMemsetD8Async(word, 1, 4, stream));
    let wait = |stream, event| cu!(cuStreamWaitEvent(stream, event, 0));
    let next = |stream| {
        let (mut status, mut nodes, mut data, mut count) = (CU_STREAM_CAPTURE_STATUS_NONE, null(), null(), 0);
        cu!(cuStreamGetCaptureInfo_v3(
            stream,
            &mut status,
            null_mut(),
            null_mut(),
            &mut nodes,
            &mut data,
            &mut count
        ));
        assert_eq!((status, count), (CU_STREAM_CAPTURE_STATUS_ACTIVE, 1));
        // SAFETY: as many as the count says.
        let (node, data): (CUgraphNode, CUgraphEdgeData) = unsafe { (*nodes, *data) };
        (node, data)
    };
    let (end, started) = (
        CUgraphEdgeData::default(),
        edge(CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC),
    );
    for (at, part) in [
        ((CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, 0), TRIGGERED),
        ((CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, 1), started),
        ((CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, 0), BEGUN),
    ] {
        let cases: [Waiter; 7] = [
            (&|| wait(t, e), &plain, part),
            (&|| wait(t, e), &early, TRIGGERED),
            (&|| wait(t, e), &fill, part),
            (
                &|| {
                    wait(u, e);
                    cu!(cuEventRecord(fork, u));
                    wait(t, fork);
                },
                &fill,
                part,
            ),
            // Who waits for all of the kernel too waits for that, in whatever order.
            (
                &|| {
                    cu!(cuEventRecord(fork, s));
                    wait(t, e);
                    wait(t, fork);
                },
                &plain,
                end,
            ),
            (
                &|| {
                    cu!(cuEventRecord(fork, s));
                    wait(t, fork);
                    wait(t, e);
                },
                &fill,
                end,
            ),
            (
                &|| {
                    wait(t, e);
                    let (mut node, _) = next(t);
                    cu!(cuStreamUpdateCaptureDependencies_v2(t, &mut node, &BEGUN, 1, 0));
                },
                &plain,
                part,
            ),
        ];
        for (number, (waits, follows, expected)) in cases.into_iter().enumerate() {
            let (mut graph, mut executable) = (CUgraph::NULL, CUgraphExec::NULL);
            cu!(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
            recording(&at, e);
            assert_eq!(next(s).1, end);
            waits();
            follows(t);
            cu!(cuEventRecord(fork, t); cuStreamWaitEvent(s, fork, 0); cuStreamEndCapture(s, &mut graph));
            assert_eq!(only_edge(graph).2, expected, "case {number} of {at:?}");
            cu!(cuGraphInstantiateWithFlags(&mut executable, graph, 0); cuGraphLaunch(executable, s); cuStreamSynchronize(s));
        }
        // What the stream will wait for is told, where there is a place for it.
        cu!(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
        recording(&at, e);
        wait(t, e);
        assert_eq!(next(t).1, part);
        let (mut status, mut nodes) = (CU_STREAM_CAPTURE_STATUS_NONE, null());
        fails!(
            CUDA_ERROR_LOSSY_QUERY,
            cuStreamGetCaptureInfo_v2(t, &mut status, null_mut(), null_mut(), &mut nodes, null_mut())
        );
        cu!(cuStreamGetCaptureInfo_v2(t, &mut status, null_mut(), null_mut(), null_mut(), null_mut()));
        cu!(cuStreamEndCapture(s, &mut CUgraph(0)));
    }
}

pub fn captures_begin_behind_parts_of_kernels() {
    new_context();
    let Chain { graph, nodes, .. } = chain(TRIGGERED);
    let (s, word) = (stream(CU_STREAM_NON_BLOCKING), alloc(64));
    let begin = |node: &CUgraphNode, data: CUgraphEdgeData| {
        // SAFETY: the test's own graph and places.
        unsafe { cuStreamBeginCaptureToGraph(s, graph, node, &data, 1, CU_STREAM_CAPTURE_MODE_RELAXED) }
    };
    assert_eq!(begin(&nodes[1], BEGUN), CUDA_SUCCESS);
    let mut captured = CUgraph::NULL;
    cu!(cuMemsetD8Async(word, 1, 4, s); cuStreamEndCapture(s, &mut captured));
    let (mut dependents, mut data, mut count) = ([CUgraphNode::NULL; 2], [edge(9, 9); 2], 2);
    cu!(cuGraphNodeGetDependentNodes_v2(nodes[1], dependents.as_mut_ptr(), data.as_mut_ptr(), &mut count));
    assert_eq!((count, data[0]), (1, BEGUN));
    // Only kernels have parts.
    for part in [BEGUN, TRIGGERED] {
        assert_eq!(begin(&dependents[0], part), CUDA_ERROR_INVALID_VALUE);
    }
}
