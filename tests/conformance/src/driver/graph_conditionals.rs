//! Graph management: conditional nodes.

use super::common::*;

const KERNELS: &str = include_str!("conditionals.ptx");
const IF: CUgraphConditionalNodeType = CU_GRAPH_COND_TYPE_IF;
const WHILE: CUgraphConditionalNodeType = CU_GRAPH_COND_TYPE_WHILE;
const SWITCH: CUgraphConditionalNodeType = CU_GRAPH_COND_TYPE_SWITCH;

/// Kernels, and words that they write.
struct Setup {
    module: CUmodule,
    words: CUdeviceptr,
}

impl Setup {
    fn new() -> Setup {
        new_context();
        Setup { module: load(KERNELS), words: alloc_with(&[0_u32; 8]) }
    }

    fn word(&self, index: u64) -> CUdeviceptr {
        CUdeviceptr(self.words.0 + 4 * index)
    }

    fn kernel<A, B>(&self, name: &CStr, graph: CUgraph, after: &[CUgraphNode], a: A, b: B) -> CUgraphNode {
        let (mut arguments, mut node) = ([arg(&a), arg(&b)], CUgraphNode::NULL);
        let params = one_thread(function(self.module, name), &mut arguments);
        cu!(cuGraphAddKernelNode_v2(&mut node, graph, after.as_ptr(), after.len(), &params));
        node
    }

    /// A node that adds one to a word.
    fn mark(&self, graph: CUgraph, after: &[CUgraphNode], word: u64) -> CUgraphNode {
        self.kernel(c"add", graph, after, self.word(word), 1_u32)
    }

    /// A node that sets a condition.
    fn choose(&self, graph: CUgraph, after: &[CUgraphNode], condition: u64, value: u32) -> CUgraphNode {
        self.kernel(c"choose", graph, after, condition, value)
    }

    /// What the words are after a launch that finds them like this.
    fn launch(&self, executable: CUgraphExec, before: [u32; 8]) -> Vec<u32> {
        let s = stream(CU_STREAM_NON_BLOCKING);
        cu!(
            cuMemcpyHtoD_v2(self.words, before.as_ptr().cast(), 32);
            cuGraphLaunch(executable, s);
            cuStreamSynchronize(s);
            cuStreamDestroy_v2(s);
        );
        read(self.words, 8)
    }
}

/// A condition that launches begin with at this value.
fn condition(graph: CUgraph, default: u32) -> CUgraphConditionalHandle {
    let mut handle = 0;
    cu!(cuGraphConditionalHandleCreate(&mut handle, graph, current(), default, CU_GRAPH_COND_ASSIGN_DEFAULT));
    handle
}

fn params(
    handle: CUgraphConditionalHandle,
    r#type: CUgraphConditionalNodeType,
    size: u32,
) -> CUgraphNodeParams {
    let mut params = CUgraphNodeParamsUnion { reserved1: [0; 29] };
    params.conditional =
        CUDA_CONDITIONAL_NODE_PARAMS { handle, r#type, size, phGraph_out: null_mut(), ctx: current() };
    CUgraphNodeParams { r#type: CU_GRAPH_NODE_TYPE_CONDITIONAL, reserved0: [0; 3], params, reserved2: 0 }
}

/// Adds a conditional node; answers what it chooses from too.
fn add(
    graph: CUgraph,
    after: &[CUgraphNode],
    handle: CUgraphConditionalHandle,
    kind: CUgraphConditionalNodeType,
    size: u32,
) -> (CUgraphNode, Vec<CUgraph>) {
    let (mut params, mut node) = (params(handle, kind, size), CUgraphNode::NULL);
    cu!(cuGraphAddNode(&mut node, graph, after.as_ptr(), after.len(), &mut params));
    // SAFETY: the driver has given an array of as many graphs.
    let bodies = unsafe { std::slice::from_raw_parts(params.params.conditional.phGraph_out, size as usize) };
    (node, bodies.to_vec())
}

pub fn a_condition_chooses_between_two_graphs() {
    let setup = Setup::new();
    for (default, set) in [(0, None), (1, None), (7, None), (0, Some(3)), (3, Some(0))] {
        let main = graph();
        let handle = condition(main, default);
        let before: Vec<_> = set.map(|value| setup.choose(main, &[], handle, value)).into_iter().collect();
        let (node, bodies) = add(main, &before, handle, IF, 2);
        setup.mark(bodies[0], &[], 0);
        setup.mark(bodies[1], &[], 1);
        setup.mark(main, &[node], 2);
        let executable = instantiate(main);
        let holds = u32::from(set.unwrap_or(default) != 0);
        for _ in 0..2 {
            assert_eq!(setup.launch(executable, [0; 8])[..3], [holds, 1 - holds, 1], "{default} {set:?}");
        }
    }
}

pub fn a_graph_without_an_alternative_runs_or_not() {
    let setup = Setup::new();
    for default in [0, 1] {
        let main = graph();
        let (_, bodies) = add(main, &[], condition(main, default), IF, 1);
        setup.mark(bodies[0], &[], 0);
        assert_eq!(setup.launch(instantiate(main), [0; 8])[0], default);
    }
}

pub fn a_loop_runs_until_its_condition_is_zero() {
    let setup = Setup::new();
    let main = graph();
    let handle = condition(main, 1);
    let (node, bodies) = add(main, &[], handle, WHILE, 1);
    let marked = setup.mark(bodies[0], &[], 0);
    setup.kernel(c"count_down", bodies[0], &[marked], handle, setup.word(7));
    setup.mark(main, &[node], 1);
    let executable = instantiate(main);
    for rounds in [1, 5, 1000] {
        let words = setup.launch(executable, [0, 0, 0, 0, 0, 0, 0, rounds]);
        assert_eq!((words[0], words[1], words[7]), (rounds, 1, 0));
    }
}

pub fn a_switch_runs_the_graph_of_a_number() {
    let setup = Setup::new();
    for value in [0, 1, 2, 3, u32::MAX] {
        let main = graph();
        let (_, bodies) = add(main, &[], condition(main, value), SWITCH, 3);
        for (word, body) in (0..).zip(&bodies) {
            setup.mark(*body, &[], word);
        }
        let words = setup.launch(instantiate(main), [0; 8]);
        let expected: Vec<u32> = (0..3).map(|body| u32::from(body == value)).collect();
        assert_eq!(words[..3], expected, "{value}");
    }
}

/// Sets a condition from a launch of its own, after so many of its graph.
fn set_outside(launches: u32) {
    let setup = Setup::new();
    let graph = graph();
    let chosen = condition(graph, 1);
    add(graph, &[], chosen, IF, 1);
    let executable = instantiate(graph);
    (0..launches).for_each(|_| drop(setup.launch(executable, [0; 8])));
    let kernel = function(setup.module, c"choose");
    let arguments = &mut [arg(&chosen), arg(&1_u32)];
    assert_eq!(launch(kernel, 1, 1, CUstream::NULL, arguments), CUDA_SUCCESS);
    fails!(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
}

pub fn conditions_are_not_set_before_their_graph_runs() {
    set_outside(0);
}

pub fn conditions_are_not_set_after_their_graph_ran() {
    set_outside(1);
}

pub fn conditional_nodes_nest() {
    let setup = Setup::new();
    let main = graph();
    let (outer, inner) = (condition(main, 1), condition(main, 0));
    let (_, bodies) = add(main, &[], outer, WHILE, 1);
    // In every round: the condition of what is inside becomes the number of rounds left.
    let counted = setup.kernel(c"count_down", bodies[0], &[], outer, setup.word(7));
    let own = condition(bodies[0], 2);
    let chosen = setup.choose(bodies[0], &[counted], own, 1);
    let (node, choices) = add(bodies[0], &[chosen], own, SWITCH, 2);
    setup.mark(choices[0], &[], 0);
    setup.mark(choices[1], &[], 1);
    setup.mark(bodies[0], &[node], 2);
    add(main, &[], inner, IF, 1);
    let words = setup.launch(instantiate(main), [0, 0, 0, 0, 0, 0, 0, 4]);
    assert_eq!(words, [0, 4, 4, 0, 0, 0, 0, 0]);
}

pub fn bodies_hold_fills_copies_and_graphs() {
    let setup = Setup::new();
    let (main, child) = (graph(), graph());
    let (_, bodies) = add(main, &[], condition(main, 1), IF, 1);
    let (mut filled, mut copied, mut node) = (CUgraphNode::NULL, CUgraphNode::NULL, CUgraphNode::NULL);
    let fill = CUDA_MEMSET_NODE_PARAMS {
        dst: setup.word(0),
        pitch: 0,
        value: 9,
        elementSize: 4,
        width: 2,
        height: 1,
    };
    setup.mark(child, &[], 3);
    // SAFETY: zeros are a description.
    let nothing: CUDA_MEMCPY3D = unsafe { std::mem::zeroed() };
    let copy = CUDA_MEMCPY3D {
        srcMemoryType: CU_MEMORYTYPE_DEVICE,
        srcDevice: setup.word(0),
        dstMemoryType: CU_MEMORYTYPE_DEVICE,
        dstDevice: setup.word(2),
        WidthInBytes: 4,
        Height: 1,
        Depth: 1,
        ..nothing
    };
    cu!(
        cuGraphAddMemsetNode(&mut filled, bodies[0], null(), 0, &fill, current());
        cuGraphAddMemcpyNode(&mut copied, bodies[0], &filled, 1, &copy, current());
        cuGraphAddEmptyNode(&mut node, bodies[0], &copied, 1);
        cuGraphAddChildGraphNode(&mut node, bodies[0], &copied, 1, child);
    );
    assert_eq!(setup.launch(instantiate(main), [0; 8])[..4], [9, 9, 9, 1]);
}

pub fn a_capture_fills_a_body() {
    let setup = Setup::new();
    let (main, s, mut captured) = (graph(), stream(CU_STREAM_NON_BLOCKING), CUgraph::NULL);
    let (_, bodies) = add(main, &[], condition(main, 1), IF, 1);
    cu!(
        cuStreamBeginCaptureToGraph(s, bodies[0], null(), null(), 0, CU_STREAM_CAPTURE_MODE_RELAXED);
        cuMemsetD32Async(setup.words, 6, 1, s);
        cuStreamEndCapture(s, &mut captured);
    );
    assert_eq!(captured, bodies[0]);
    assert_eq!(setup.launch(instantiate(main), [0; 8])[0], 6);
}

pub fn a_capture_may_hold_a_conditional_node() {
    let setup = Setup::new();
    let (s, mut main, mut captured) = (stream(CU_STREAM_NON_BLOCKING), CUgraph::NULL, CUgraph::NULL);
    let (mut status, mut id) = (CUstreamCaptureStatus(9), 0);
    cu!(
        cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED);
        cuStreamGetCaptureInfo_v2(s, &mut status, &mut id, &mut main, null_mut(), null_mut());
    );
    let (mut node, bodies) = add(main, &[], condition(main, 1), IF, 1);
    setup.mark(bodies[0], &[], 0);
    const SET: u32 = 1;
    cu!(
        cuStreamUpdateCaptureDependencies(s, &mut node, 1, SET);
        cuMemsetD32Async(setup.word(1), 6, 1, s);
        cuStreamEndCapture(s, &mut captured);
    );
    assert_eq!(setup.launch(instantiate(captured), [0; 8])[..2], [1, 6]);
}

pub fn nodes_of_bodies_are_exchanged() {
    let setup = Setup::new();
    let main = graph();
    let handle = condition(main, 1);
    let (_, bodies) = add(main, &[], handle, IF, 1);
    let node = setup.mark(bodies[0], &[], 0);
    let executable = instantiate(main);
    let (word, five) = (setup.word(1), 5_u32);
    let mut arguments = [arg(&word), arg(&five)];
    let other = one_thread(function(setup.module, c"add"), &mut arguments);
    cu!(cuGraphExecKernelNodeSetParams_v2(executable, node, &other));
    assert_eq!(setup.launch(executable, [0; 8])[..2], [0, 5]);
    // A graph of the same form takes its place, with its own condition.
    let (second, mut result) = (graph(), unset_result());
    let (_, bodies) = add(second, &[], condition(second, 1), IF, 1);
    setup.mark(bodies[0], &[], 2);
    cu!(cuGraphExecUpdate_v2(executable, second, &mut result));
    assert_eq!(setup.launch(executable, [0; 8])[..3], [0, 0, 1]);
    // One that chooses otherwise, and one with a longer body, do not.
    let (third, fourth) = (graph(), graph());
    let (_, bodies) = add(third, &[], condition(third, 1), SWITCH, 1);
    setup.mark(bodies[0], &[], 2);
    fails!(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(executable, third, &mut result));
    assert_eq!(result.result, CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED);
    let (_, bodies) = add(fourth, &[], condition(fourth, 1), IF, 1);
    let first = setup.mark(bodies[0], &[], 2);
    setup.mark(bodies[0], &[first], 2);
    fails!(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(executable, fourth, &mut result));
    assert_eq!(result.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    assert_eq!(setup.launch(executable, [0; 8])[..3], [0, 0, 1], "as before");
}

fn unset_result() -> CUgraphExecUpdateResultInfo {
    CUgraphExecUpdateResultInfo {
        result: CUgraphExecUpdateResult(99),
        errorNode: CUgraphNode::NULL,
        errorFromNode: CUgraphNode::NULL,
    }
}

pub fn there_is_one_of_a_graph_with_conditional_nodes() {
    let setup = Setup::new();
    let (main, parent) = (graph(), graph());
    let (node, bodies) = add(main, &[], condition(main, 1), IF, 1);
    setup.mark(bodies[0], &[], 0);
    let (mut copy, mut executable, mut child) = (CUgraph::NULL, CUgraphExec::NULL, CUgraphNode::NULL);
    let unsupported = CUDA_ERROR_NOT_SUPPORTED;
    fails!(unsupported, cuGraphClone(&mut copy, main));
    fails!(unsupported, cuGraphAddChildGraphNode(&mut child, parent, null(), 0, main));
    let first = instantiate(main);
    fails!(unsupported, cuGraphInstantiateWithFlags(&mut executable, main, 0));
    // That kernels cannot launch such a graph comes first.
    let by_kernels = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(&mut executable, main, by_kernels));
    cu!(cuGraphExecDestroy(first));
    assert_eq!(setup.launch(instantiate(main), [0; 8])[0], 1);
    let mut kind = CUgraphNodeType(99);
    cu!(cuGraphNodeGetType(node, &mut kind));
    assert_eq!(kind, CU_GRAPH_NODE_TYPE_CONDITIONAL);
}

pub fn conditions_are_of_the_outermost_graph() {
    let setup = Setup::new();
    let main = graph();
    let (first, bodies) = add(main, &[], condition(main, 1), IF, 1);
    setup.mark(bodies[0], &[], 0);
    let of_body = condition(bodies[0], 1);
    let (_, others) = add(main, &[first], of_body, IF, 1);
    setup.mark(others[0], &[], 1);
    let (mut again, mut node) = (params(of_body, IF, 1), CUgraphNode::NULL);
    let invalid = CUDA_ERROR_INVALID_VALUE;
    fails!(invalid, cuGraphAddNode(&mut node, bodies[0], null(), 0, &mut again));
    assert_eq!(setup.launch(instantiate(main), [0; 8])[..2], [1, 1]);
}

pub fn a_body_copies_memory_that_the_device_knows() {
    let setup = Setup::new();
    let (mut pinned, mut own) = (null_mut(), [0_u32; 4]);
    cu!(cuMemHostAlloc(&mut pinned, 64, 0));
    for (host, code) in
        [(pinned, CUDA_SUCCESS), (own.as_mut_ptr().cast::<c_void>(), CUDA_ERROR_INVALID_VALUE)]
    {
        let (main, mut node, mut executable) = (graph(), CUgraphNode::NULL, CUgraphExec::NULL);
        let (_, bodies) = add(main, &[], condition(main, 1), IF, 1);
        // SAFETY: numbers, handles and pointers, for which zero is a value.
        let nothing: CUDA_MEMCPY3D = unsafe { std::mem::zeroed() };
        let copy = CUDA_MEMCPY3D {
            srcMemoryType: CU_MEMORYTYPE_DEVICE,
            srcDevice: setup.words,
            dstMemoryType: CU_MEMORYTYPE_HOST,
            dstHost: host,
            WidthInBytes: 4,
            Height: 1,
            Depth: 1,
            ..nothing
        };
        cu!(cuGraphAddMemcpyNode(&mut node, bodies[0], null(), 0, &copy, current()));
        // SAFETY: a place for the answer; the memory is the test's.
        assert_eq!(unsafe { cuGraphInstantiateWithFlags(&mut executable, main, 0) }, code);
    }
}

pub fn a_graph_that_had_conditions_has_no_copies() {
    let setup = Setup::new();
    let main = graph();
    let (node, bodies) = add(main, &[], condition(main, 1), IF, 1);
    setup.mark(bodies[0], &[], 0);
    cu!(cuGraphDestroyNode(node));
    // Its condition has no node any more.
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(&mut CUgraphExec(0), main, 0));
    fails!(CUDA_ERROR_NOT_SUPPORTED, cuGraphClone(&mut CUgraph(0), main));
}

pub fn what_a_conditional_node_cannot_be() {
    let setup = Setup::new();
    let (main, other) = (graph(), graph());
    let (mut handle, mut node) = (0, CUgraphNode::NULL);
    let invalid = CUDA_ERROR_INVALID_VALUE;
    let context = current();
    fails!(invalid, cuGraphConditionalHandleCreate(null_mut(), main, context, 0, 0));
    fails!(invalid, cuGraphConditionalHandleCreate(&mut handle, CUgraph::NULL, context, 0, 0));
    fails!(invalid, cuGraphConditionalHandleCreate(&mut handle, main, context, 0, 2));
    let without = CUDA_ERROR_INVALID_CONTEXT;
    fails!(without, cuGraphConditionalHandleCreate(&mut handle, main, CUcontext::NULL, 0, 0));
    let mut foreign = params(condition(other, 1), IF, 1);
    fails!(invalid, cuGraphAddNode(&mut node, main, null(), 0, &mut foreign));
    let main = graph();
    let mut refused = |handle, kind, size| {
        let mut params = params(handle, kind, size);
        fails!(invalid, cuGraphAddNode(&mut node, main, null(), 0, &mut params));
    };
    if ours_only("which numbers are handles is the driver's own") {
        refused(0, IF, 1);
    }
    let handle = condition(main, 1);
    for (kind, size) in
        [(IF, 0), (IF, 3), (WHILE, 0), (WHILE, 2), (SWITCH, 0), (CUgraphConditionalNodeType(9), 1)]
    {
        refused(handle, kind, size);
    }
    let mut wrong = params(handle, IF, 1);
    wrong.reserved0[0] = 1;
    fails!(invalid, cuGraphAddNode(&mut node, main, null(), 0, &mut wrong));
    let mut wrong = params(handle, IF, 1);
    wrong.params.conditional.ctx = CUcontext::NULL;
    fails!(without, cuGraphAddNode(&mut node, main, null(), 0, &mut wrong));
    let (conditional, bodies) = add(main, &[], handle, IF, 1);
    let mut again = params(handle, IF, 1);
    fails!(invalid, cuGraphAddNode(&mut node, main, null(), 0, &mut again));
    setup.mark(bodies[0], &[], 0);
    // It stays what it is, and so do its bodies.
    let (unsupported, executable) = (CUDA_ERROR_NOT_SUPPORTED, instantiate(main));
    let (mut enabled, mut copy, mut made) = (9, CUgraph::NULL, CUgraphExec::NULL);
    fails!(unsupported, cuGraphNodeSetParams(conditional, &mut again));
    fails!(unsupported, cuGraphExecNodeSetParams(executable, conditional, &mut again));
    fails!(invalid, cuGraphNodeSetEnabled(executable, conditional, 0));
    fails!(invalid, cuGraphNodeGetEnabled(executable, conditional, &mut enabled));
    fails!(invalid, cuGraphDestroy(bodies[0]));
    fails!(unsupported, cuGraphClone(&mut copy, bodies[0]));
    fails!(unsupported, cuGraphInstantiateWithFlags(&mut made, bodies[0], 0));
    let mut count = 9;
    cu!(cuGraphDestroyNode(conditional));
    fails!(invalid, cuGraphGetNodes(bodies[0], null_mut(), &mut count));
}

pub fn what_a_node_chooses_from_is_drawn() {
    let setup = Setup::new();
    let main = graph();
    let (_, bodies) = add(main, &[], condition(main, 1), SWITCH, 2);
    setup.mark(bodies[1], &[], 0);
    let path = std::env::temp_dir().join(format!("conformance-conditional-{}.dot", std::process::id()));
    let name = CString::new(path.to_str().unwrap()).unwrap();
    cu!(cuGraphDebugDotPrint(main, name.as_ptr(), 0));
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(text.contains("CONDITIONAL") && text.contains("add"), "{text}");
    assert_eq!(text.matches("subgraph").count(), 3, "{text}");
}

/// How an instantiation fails, and whether at a node.
fn failure(graph: CUgraph) -> (CUgraphInstantiateResult, bool) {
    let mut made = CUgraphExec::NULL;
    let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS {
        flags: 0,
        hUploadStream: CUstream::NULL,
        hErrNode_out: CUgraphNode::NULL,
        result_out: CUgraphInstantiateResult(99),
    };
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithParams(&mut made, graph, &mut params));
    (params.result_out, !params.hErrNode_out.is_null())
}

unsafe extern "C" fn never(_: *mut c_void) {}

pub fn what_cannot_be_in_a_body() {
    let setup = Setup::new();
    let (main, child) = (graph(), graph());
    let unused = condition(main, 1);
    assert_eq!(failure(main), (CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED, false));
    let (_, bodies) = add(main, &[], unused, IF, 1);
    let (mut node, e) = (CUgraphNode::NULL, event(CU_EVENT_DISABLE_TIMING));
    let call = CUDA_HOST_NODE_PARAMS { r#fn: Some(never), userData: null_mut() };
    let misplaced = (CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED, true);
    cu!(cuGraphAddHostNode(&mut node, bodies[0], null(), 0, &call));
    assert_eq!(failure(main), misplaced);
    cu!(cuGraphDestroyNode(node); cuGraphAddEventRecordNode(&mut node, bodies[0], null(), 0, e));
    assert_eq!(failure(main), misplaced);
    cu!(cuGraphDestroyNode(node); cuGraphAddHostNode(&mut node, child, null(), 0, &call));
    cu!(cuGraphAddChildGraphNode(&mut node, bodies[0], null(), 0, child));
    assert_eq!(failure(main), misplaced);
    cu!(cuGraphDestroyNode(node));
    // In a body of a body too.
    let (_, inner) = add(bodies[0], &[], condition(bodies[0], 1), IF, 1);
    cu!(cuGraphAddHostNode(&mut node, inner[0], null(), 0, &call));
    assert_eq!(failure(main), misplaced);
    cu!(cuGraphDestroyNode(node));
    setup.mark(inner[0], &[], 0);
    assert_eq!(setup.launch(instantiate(main), [0; 8])[0], 1);
}
