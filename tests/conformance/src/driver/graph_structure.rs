//! Graph management: nodes, edges and instantiation.

use super::common::*;

/// `add` adds to a word.
const KERNELS: &str = include_str!("conditionals.ptx");

fn empty(graph: CUgraph, after: &[CUgraphNode]) -> CUgraphNode {
    let mut node = CUgraphNode::NULL;
    cu!(cuGraphAddEmptyNode(&mut node, graph, after.as_ptr(), after.len()));
    node
}

/// Two nodes behind one, and one behind both.
fn diamond(graph: CUgraph) -> [CUgraphNode; 4] {
    let top = empty(graph, &[]);
    let (left, right) = (empty(graph, &[top]), empty(graph, &[top]));
    [top, left, right, empty(graph, &[left, right])]
}

/// Edges by the first function that lists them, sorted.
fn edges(graph: CUgraph) -> Vec<(CUgraphNode, CUgraphNode)> {
    let mut count = 0;
    cu!(cuGraphGetEdges(graph, null_mut(), null_mut(), &mut count));
    let (mut from, mut to) = (vec![CUgraphNode::NULL; count], vec![CUgraphNode::NULL; count]);
    cu!(cuGraphGetEdges(graph, from.as_mut_ptr(), to.as_mut_ptr(), &mut count));
    let mut edges: Vec<_> = from.into_iter().zip(to).collect();
    edges.sort();
    edges
}

fn sorted<T: Ord, const N: usize>(mut values: [T; N]) -> [T; N] {
    values.sort();
    values
}

pub fn graphs_are_built_without_a_context_and_made_ready_with_one() {
    new_context();
    let (main, mut executable) = (graph(), CUgraphExec::NULL);
    cu!(cuCtxSetCurrent(CUcontext::NULL));
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuGraphInstantiateWithFlags(&mut executable, main, 0));
    graph();
}

pub fn edges_and_roots_are_listed() {
    new_context();
    let main = graph();
    let [top, left, right, bottom] = diamond(main);
    let expected = sorted([(top, left), (top, right), (left, bottom), (right, bottom)]);
    assert_eq!(edges(main), expected);
    let (mut from, mut to, mut count) = ([CUgraphNode::NULL; 4], [CUgraphNode::NULL; 4], 4);
    let mut data = [CUgraphEdgeData { r#type: 77, ..Default::default() }; 4];
    cu!(cuGraphGetEdges_v2(main, from.as_mut_ptr(), to.as_mut_ptr(), data.as_mut_ptr(), &mut count));
    // By what they lead from.
    assert_eq!(from, [top, top, left, right]);
    let mut listed: Vec<_> = from.into_iter().zip(to).collect();
    listed.sort();
    assert_eq!((count, listed, data), (4, expected.to_vec(), [CUgraphEdgeData::default(); 4]));
    let (mut roots, mut count) = ([CUgraphNode(1); 3], 3);
    cu!(cuGraphGetRootNodes(main, roots.as_mut_ptr(), &mut count));
    // What is left of the array becomes null.
    assert_eq!((count, roots), (1, [top, CUgraphNode::NULL, CUgraphNode::NULL]));
    count = 9;
    cu!(cuGraphGetRootNodes(main, null_mut(), &mut count));
    assert_eq!(count, 1);
}

pub fn neighbours_are_told_with_their_edges() {
    new_context();
    let main = graph();
    let [top, left, right, bottom] = diamond(main);
    let (mut nodes, mut count) = ([CUgraphNode::NULL; 2], 2);
    let mut data = [CUgraphEdgeData { r#type: 77, ..Default::default() }; 2];
    cu!(cuGraphNodeGetDependencies_v2(bottom, nodes.as_mut_ptr(), data.as_mut_ptr(), &mut count));
    assert_eq!((sorted(nodes), data), (sorted([left, right]), [CUgraphEdgeData::default(); 2]));
    data[1].r#type = 77;
    cu!(cuGraphNodeGetDependentNodes_v2(top, nodes.as_mut_ptr(), data.as_mut_ptr(), &mut count));
    assert_eq!((sorted(nodes), data), (sorted([left, right]), [CUgraphEdgeData::default(); 2]));
}

pub fn edges_come_and_go() {
    new_context();
    let main = graph();
    let [top, left, right, bottom] = diamond(main);
    cu!(cuGraphRemoveDependencies(main, [top, left].as_ptr(), [left, bottom].as_ptr(), 2));
    assert_eq!(edges(main), sorted([(top, right), (right, bottom)]));
    cu!(cuGraphRemoveDependencies_v2(main, &right, &bottom, null(), 1));
    assert_eq!(edges(main), [(top, right)]);
    let plain = CUgraphEdgeData::default();
    cu!(cuGraphAddDependencies_v2(
        main,
        [top, left].as_ptr(),
        [bottom, bottom].as_ptr(),
        [plain; 2].as_ptr(),
        2
    ));
    assert_eq!(edges(main), sorted([(top, right), (top, bottom), (left, bottom)]));
    let invalid = CUDA_ERROR_INVALID_VALUE;
    fails!(invalid, cuGraphAddDependencies_v2(main, &top, &bottom, null(), 1));
    fails!(invalid, cuGraphRemoveDependencies(main, &right, &bottom, 1));
    fails!(invalid, cuGraphRemoveDependencies_v2(main, &right, &bottom, null(), 1));
    cu!(cuGraphAddDependencies_v2(main, null(), null(), null(), 0));
    // A circle shows when the graph is to be launched.
    cu!(cuGraphAddDependencies(main, &bottom, &top, 1));
    let (mut made, mut node) = (CUgraphExec::NULL, CUgraphNode::NULL);
    fails!(invalid, cuGraphInstantiate_v2(&mut made, main, &mut node, null_mut(), 0));
    if ours_only("NVIDIA's driver names no node of the circle") {
        assert!(!node.is_null());
    }
    fails!(invalid, cuGraphAddDependencies(main, &left, &left, 1));
}

pub fn graphs_are_instantiated_by_every_function() {
    new_context();
    let (main, p) = (graph(), alloc_with(&[0_u32]));
    let (function, one) = (function(load(KERNELS), c"add"), 1_u32);
    let mut arguments = [arg(&p), arg(&one)];
    let mut node = CUgraphNode::NULL;
    cu!(cuGraphAddKernelNode(&mut node, main, null(), 0, &one_thread_v1(function, &mut arguments)));
    let (mut made, mut failed, mut log) = (CUgraphExec::NULL, CUgraphNode(1), [1 as c_char; 16]);
    let mut expected = 0;
    let mut launched = |executable| {
        expected += 1;
        cu!(cuGraphUpload(executable, CUstream::NULL); cuGraphLaunch_ptsz(executable, CU_STREAM_PER_THREAD));
        cu!(cuCtxSynchronize(); cuGraphUpload_ptsz(executable, CUstream::NULL));
        assert_eq!(read::<u32>(p, 1), [expected]);
        cu!(cuGraphExecDestroy(executable));
    };
    cu!(cuGraphInstantiate(&mut made, main, &mut failed, log.as_mut_ptr(), log.len()));
    assert_eq!((failed, log[0]), (CUgraphNode::NULL, 0));
    launched(made);
    cu!(cuGraphInstantiate_v2(&mut made, main, null_mut(), null_mut(), 0));
    launched(made);
    let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS {
        flags: 0,
        hUploadStream: CUstream::NULL,
        hErrNode_out: CUgraphNode(1),
        result_out: CUgraphInstantiateResult(99),
    };
    cu!(cuGraphInstantiateWithParams_ptsz(&mut made, main, &mut params));
    assert_eq!((params.result_out, params.hErrNode_out), (CUDA_GRAPH_INSTANTIATE_SUCCESS, CUgraphNode::NULL));
    launched(made);
}

fn one_thread_v1(func: CUfunction, arguments: &mut [*mut c_void]) -> CUDA_KERNEL_NODE_PARAMS_v1 {
    CUDA_KERNEL_NODE_PARAMS_v1 {
        func,
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        kernelParams: arguments.as_mut_ptr(),
        extra: null_mut(),
    }
}

pub fn kernels_of_nodes_are_told_and_exchanged() {
    new_context();
    let (main, words) = (graph(), alloc_with(&[0_u32; 4]));
    let at = |index: u64| CUdeviceptr(words.0 + 4 * index);
    let (function, one, targets) = (function(load(KERNELS), c"add"), 1_u32, [at(0), at(1), at(2)]);
    let mut node = CUgraphNode::NULL;
    cu!(cuGraphAddKernelNode(
        &mut node,
        main,
        null(),
        0,
        &one_thread_v1(function, &mut [arg(&targets[0]), arg(&one)])
    ));
    let executable = instantiate(main);
    launch_graph(executable);
    // SAFETY: zeros are a description.
    let (mut old, mut new): (CUDA_KERNEL_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS) =
        unsafe { std::mem::zeroed() };
    cu!(cuGraphKernelNodeGetParams(node, &mut old); cuGraphKernelNodeGetParams_v2(node, &mut new));
    assert_eq!((old.func, new.func, old.blockDimX, new.gridDimX), (function, function, 1, 1));
    // SAFETY: pointers to the parameters, which hold as long as the node is not changed.
    assert_eq!(unsafe { new.kernelParams.read().cast::<CUdeviceptr>().read_unaligned() }, targets[0]);
    cu!(
        cuGraphExecKernelNodeSetParams(executable, node, &one_thread_v1(function, &mut [arg(&targets[1]), arg(&one)]));
        cuGraphKernelNodeSetParams(node, &one_thread_v1(function, &mut [arg(&targets[2]), arg(&one)]));
    );
    launch_graph(executable);
    launch_graph(instantiate(main));
    assert_eq!(read::<u32>(words, 4), [1, 1, 1, 0]);
}

unsafe extern "C" fn add_one(word: *mut c_void) {
    // SAFETY: the test's counter.
    unsafe { &*word.cast::<std::sync::atomic::AtomicU32>() }
        .fetch_add(1, std::sync::atomic::Ordering::SeqCst);
}

pub fn host_functions_of_nodes_are_told_and_exchanged() {
    use std::sync::atomic::{AtomicU32, Ordering};
    new_context();
    let (main, counts) = (graph(), [const { AtomicU32::new(0) }; 3]);
    let call = |index: usize| CUDA_HOST_NODE_PARAMS { r#fn: Some(add_one), userData: arg(&counts[index]) };
    let (mut node, mut told) = (CUgraphNode::NULL, call(2));
    cu!(cuGraphAddHostNode(&mut node, main, null(), 0, &call(0)); cuGraphHostNodeGetParams(node, &mut told));
    assert_eq!(told.userData, call(0).userData);
    let executable = instantiate(main);
    launch_graph(executable);
    cu!(cuGraphExecHostNodeSetParams(executable, node, &call(1)); cuGraphHostNodeSetParams(node, &call(2)));
    launch_graph(executable);
    launch_graph(instantiate(main));
    assert_eq!(counts.each_ref().map(|count| count.load(Ordering::SeqCst)), [1; 3]);
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphAddHostNode(&mut node, main, null(), 0, null()));
    cu!(cuGraphAddEmptyNode(&mut node, main, null(), 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphHostNodeGetParams(node, &mut told));
    // Those of captures are told too.
    let (s, mut captured, mut count) = (stream(CU_STREAM_NON_BLOCKING), CUgraph::NULL, 1);
    cu!(
        cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
        cuLaunchHostFunc(s, Some(add_one), arg(&counts[1]));
        cuStreamEndCapture(s, &mut captured);
        cuGraphGetNodes(captured, &mut node, &mut count);
        cuGraphHostNodeGetParams(node, &mut told);
    );
    assert_eq!((told.r#fn.is_some(), told.userData), (true, arg(&counts[1])));
}

pub fn events_of_nodes_are_told_and_exchanged() {
    new_context();
    let (main, p, s) = (graph(), alloc_with(&[0_u32; 2]), stream(CU_STREAM_NON_BLOCKING));
    let events =
        [event(CU_EVENT_DISABLE_TIMING), event(CU_EVENT_DISABLE_TIMING), event(CU_EVENT_DISABLE_TIMING)];
    let (mut waits, mut filled, mut records) = (CUgraphNode::NULL, CUgraphNode::NULL, CUgraphNode::NULL);
    let fill = CUDA_MEMSET_NODE_PARAMS { dst: p, pitch: 0, value: 5, elementSize: 4, width: 1, height: 1 };
    cu!(
        cuGraphAddEventWaitNode(&mut waits, main, null(), 0, events[0]);
        cuGraphAddMemsetNode(&mut filled, main, &waits, 1, &fill, current());
        cuGraphAddEventRecordNode(&mut records, main, &filled, 1, events[1]);
    );
    let (mut waited, mut recorded) = (CUevent::NULL, CUevent::NULL);
    cu!(cuGraphEventWaitNodeGetEvent(waits, &mut waited); cuGraphEventRecordNodeGetEvent(records, &mut recorded));
    assert_eq!((waited, recorded), (events[0], events[1]));
    // The launch waits for what the first event stands for then.
    let (executable, gate, held) = (instantiate(main), Gate::new(), stream(CU_STREAM_NON_BLOCKING));
    gate.hold(held);
    cu!(cuEventRecord(events[0], held); cuGraphLaunch(executable, s));
    fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
    gate.open();
    cu!(cuEventSynchronize(events[0]); cuStreamSynchronize(s); cuEventSynchronize(events[1]));
    assert_eq!(read::<u32>(p, 1), [5]);
    // Another event in the place of each.
    let gate = Gate::new();
    gate.hold(held);
    cu!(
        cuEventRecord(events[2], held);
        cuGraphExecEventWaitNodeSetEvent(executable, waits, events[2]);
        cuGraphExecEventRecordNodeSetEvent(executable, records, events[0]);
        cuGraphLaunch(executable, s);
    );
    fails!(CUDA_ERROR_NOT_READY, cuEventQuery(events[0]));
    gate.open();
    cu!(
        cuEventSynchronize(events[0]);
        cuGraphEventWaitNodeSetEvent(waits, events[2]);
        cuGraphEventRecordNodeSetEvent(records, events[0]);
        cuGraphEventWaitNodeGetEvent(waits, &mut waited);
        cuGraphEventRecordNodeGetEvent(records, &mut recorded);
    );
    assert_eq!((waited, recorded), (events[2], events[0]));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphEventWaitNodeGetEvent(waits, null_mut()));
    // Each node has its own functions, and an event.
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphEventWaitNodeGetEvent(records, &mut waited));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphEventRecordNodeGetEvent(waits, &mut waited));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphEventRecordNodeSetEvent(records, CUevent::NULL));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphAddEventWaitNode(&mut waits, main, null(), 0, CUevent::NULL));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphEventRecordNodeGetEvent(records, null_mut()));
}

pub fn copies_and_fills_of_nodes_are_exchanged() {
    new_context();
    let (main, words) = (graph(), alloc_with(&[1_u32, 2, 3, 0, 0, 0]));
    let at = |index: u64| CUdeviceptr(words.0 + 4 * index);
    // SAFETY: zeros are a description.
    let nothing: CUDA_MEMCPY3D = unsafe { std::mem::zeroed() };
    let copy = |to: u64, from: u64| CUDA_MEMCPY3D {
        srcMemoryType: CU_MEMORYTYPE_DEVICE,
        srcDevice: at(from),
        dstMemoryType: CU_MEMORYTYPE_DEVICE,
        dstDevice: at(to),
        WidthInBytes: 4,
        Height: 1,
        Depth: 1,
        ..nothing
    };
    let fill =
        |value| CUDA_MEMSET_NODE_PARAMS { dst: at(5), pitch: 0, value, elementSize: 4, width: 1, height: 1 };
    let (mut copied, mut filled, mut enabled) = (CUgraphNode::NULL, CUgraphNode::NULL, 9);
    cu!(
        cuGraphAddMemcpyNode(&mut copied, main, null(), 0, &copy(3, 0), current());
        cuGraphAddMemsetNode(&mut filled, main, &copied, 1, &fill(7), current());
    );
    let executable = instantiate(main);
    launch_graph(executable);
    assert_eq!(read::<u32>(words, 6), [1, 2, 3, 1, 0, 7]);
    cu!(
        cuGraphExecMemcpyNodeSetParams(executable, copied, &copy(3, 1), current());
        cuGraphNodeSetEnabled(executable, filled, 0);
        cuGraphNodeGetEnabled(executable, filled, &mut enabled);
        cuGraphMemcpyNodeSetParams(copied, &copy(4, 2));
        cuGraphMemsetNodeSetParams(filled, &fill(8));
    );
    launch_graph(executable);
    assert_eq!((read::<u32>(words, 6), enabled), (vec![1, 2, 3, 2, 0, 7], 0));
    // What is no kernel, copy or fill is always there.
    let joined = graph();
    let joint = empty(joined, &[]);
    let empty_graph = instantiate(joined);
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetEnabled(empty_graph, joint, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetEnabled(empty_graph, joint, &mut enabled));
    launch_graph(instantiate(main));
    assert_eq!(read::<u32>(words, 6), [1, 2, 3, 2, 3, 8]);
    // SAFETY: zeros are a description.
    let mut memory: CUDA_MEM_ALLOC_NODE_PARAMS = unsafe { std::mem::zeroed() };
    memory.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    memory.poolProps.location = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_DEVICE, id: 0 };
    memory.bytesize = 64;
    let (mut allocated, mut freed, mut address) = (CUgraphNode::NULL, CUgraphNode::NULL, CUdeviceptr(0));
    cu!(
        cuGraphAddMemAllocNode(&mut allocated, main, null(), 0, &mut memory);
        cuGraphAddMemFreeNode(&mut freed, main, &allocated, 1, memory.dptr);
        cuGraphMemFreeNodeGetParams(freed, &mut address);
    );
    assert_eq!(address, memory.dptr);
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphMemFreeNodeGetParams(allocated, &mut address));
}

pub fn what_a_node_does_goes_with_the_node() {
    new_context();
    let [mut outer, mut main, mut inside] = [CUgraph::NULL; 3];
    cu!(cuGraphCreate(&mut outer, 0); cuGraphCreate(&mut main, 0));
    empty(main, &[]);
    let (mut node, mut count) = (CUgraphNode::NULL, 0);
    cu!(cuGraphAddChildGraphNode(&mut node, outer, null(), 0, main); cuGraphChildGraphNodeGetGraph(node, &mut inside));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(inside));
    cu!(cuGraphGetNodes(inside, null_mut(), &mut count));
    assert_eq!(count, 1);
    cu!(cuGraphDestroy(main); cuGraphDestroy(outer));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphGetNodes(inside, null_mut(), &mut count));
}
