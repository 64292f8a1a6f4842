//! Graph management: nodes that wait for words of memory and store them.

use super::common::*;

const WRITE: CUstreamBatchMemOpType = CU_STREAM_MEM_OP_WRITE_VALUE_32;

fn operation(operation: CUstreamBatchMemOpType, word: CUdeviceptr, value: u64) -> CUstreamBatchMemOpParams {
    CUstreamBatchMemOpParams {
        operation,
        barrierFlags: 0,
        address: word,
        value64: value,
        flags: if operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 { CU_STREAM_WAIT_VALUE_EQ } else { 0 },
        alias: CUdeviceptr(0),
        pad: 0,
    }
}

/// Stores of words, one after the other.
fn writes(first: CUdeviceptr, values: &[u64]) -> Vec<CUstreamBatchMemOpParams> {
    let at = |index: usize| CUdeviceptr(first.0 + 4 * index as u64);
    values.iter().enumerate().map(|(index, value)| operation(WRITE, at(index), *value)).collect()
}

fn batch(list: &mut [CUstreamBatchMemOpParams]) -> CUDA_BATCH_MEM_OP_NODE_PARAMS {
    let (count, array) = (list.len() as u32, list.as_mut_ptr());
    CUDA_BATCH_MEM_OP_NODE_PARAMS { ctx: current(), count, paramArray: array, flags: 0 }
}

fn add(graph: CUgraph, list: &mut [CUstreamBatchMemOpParams]) -> CUgraphNode {
    let mut node = CUgraphNode::NULL;
    cu!(cuGraphAddBatchMemOpNode(&mut node, graph, null(), 0, &batch(list)));
    node
}

fn type_of(node: CUgraphNode) -> CUgraphNodeType {
    let mut kind = CUgraphNodeType(99);
    cu!(cuGraphNodeGetType(node, &mut kind));
    kind
}

pub fn a_batch_is_a_node() {
    new_context();
    let (p, main) = (alloc_with(&[0_u32; 4]), graph());
    let node = add(main, &mut writes(p, &[1, 2]));
    assert_eq!(type_of(node), CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    let executable = instantiate(main);
    launch_graph(executable);
    assert_eq!(read::<u32>(p, 4), [1, 2, 0, 0]);
    // A wait in a launched graph holds up what comes behind it.
    let held = graph();
    let wait = operation(CU_STREAM_MEM_OP_WAIT_VALUE_32, p, 7);
    add(held, &mut [wait, operation(WRITE, CUdeviceptr(p.0 + 8), 3)]);
    let (s, other) = (stream(CU_STREAM_NON_BLOCKING), stream(CU_STREAM_NON_BLOCKING));
    cu!(cuGraphLaunch(instantiate(held), s));
    fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
    cu!(cuStreamWriteValue32_v2(other, p, 7, 0); cuStreamSynchronize(s));
    assert_eq!(read::<u32>(p, 3), [7, 2, 3]);
}

pub fn a_batch_is_told_again_and_exchanged() {
    new_context();
    let (p, main) = (alloc_with(&[0_u32; 4]), graph());
    let mut list = writes(p, &[1, 2]);
    let node = add(main, &mut list);
    // The list was copied.
    list.clear();
    let told = |node| {
        let mut told = batch(&mut []);
        cu!(cuGraphBatchMemOpNodeGetParams(node, &mut told));
        // SAFETY: the driver's list, of which it tells the length.
        let list = unsafe { std::slice::from_raw_parts(told.paramArray, told.count as usize) };
        (
            told.ctx,
            list.iter().map(|one| (one.operation, one.address, one.value64 as u32)).collect::<Vec<_>>(),
        )
    };
    let at = |index: u64| CUdeviceptr(p.0 + 4 * index);
    assert_eq!(told(node), (current(), vec![(WRITE, at(0), 1), (WRITE, at(1), 2)]));
    let executable = instantiate(main);
    cu!(cuGraphBatchMemOpNodeSetParams(node, &batch(&mut writes(p, &[5, 6]))));
    assert_eq!(told(node).1, [(WRITE, at(0), 5), (WRITE, at(1), 6)]);
    launch_graph(executable);
    assert_eq!(read::<u32>(p, 2), [1, 2], "instantiated before");
    cu!(cuGraphExecBatchMemOpNodeSetParams(executable, node, &batch(&mut writes(at(2), &[8, 9]))));
    launch_graph(executable);
    assert_eq!(read::<u32>(p, 4), [1, 2, 8, 9]);
    assert_eq!(told(node).1[0], (WRITE, at(0), 5), "the graph itself stays");
    // In what is instantiated neither number nor sort of the operations can change.
    let wait = || operation(CU_STREAM_MEM_OP_WAIT_VALUE_32, p, 1);
    for mut list in [writes(p, &[1]), writes(p, &[1, 2, 3]), vec![wait(), wait()]] {
        fails!(
            CUDA_ERROR_INVALID_VALUE,
            cuGraphExecBatchMemOpNodeSetParams(executable, node, &batch(&mut list))
        );
    }
}

pub fn a_captured_batch_is_a_node_too() {
    new_context();
    let (p, s) = (alloc_with(&[0_u32; 4]), stream(CU_STREAM_NON_BLOCKING));
    let mut list = writes(p, &[1, 2]);
    let (mut main, mut count) = (CUgraph::NULL, 0);
    cu!(
        cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
        cuStreamBatchMemOp_v2(s, 2, list.as_mut_ptr(), 0);
        cuStreamWriteValue32_v2(s, CUdeviceptr(p.0 + 8), 3, 0);
        cuStreamEndCapture(s, &mut main);
        cuGraphGetNodes(main, null_mut(), &mut count);
    );
    let mut nodes = vec![CUgraphNode::NULL; count];
    cu!(cuGraphGetNodes(main, nodes.as_mut_ptr(), &mut count));
    let kinds: Vec<_> = nodes.into_iter().map(type_of).collect();
    assert_eq!(kinds, [CU_GRAPH_NODE_TYPE_BATCH_MEM_OP; 2]);
    assert_eq!(read::<u32>(p, 3), [0, 0, 0]);
    launch_graph(instantiate(main));
    assert_eq!(read::<u32>(p, 3), [1, 2, 3]);
}

pub fn the_function_for_any_node_takes_batches() {
    new_context();
    let (p, main) = (alloc_with(&[0_u32; 4]), graph());
    let mut list = writes(p, &[4, 5]);
    // SAFETY: numbers and a union of them, for which zero is a value.
    let mut any: CUgraphNodeParams = unsafe { std::mem::zeroed() };
    any.r#type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
    any.params.words = batch(&mut list);
    let mut node = CUgraphNode::NULL;
    cu!(cuGraphAddNode_v2(&mut node, main, null(), null(), 0, &mut any));
    launch_graph(instantiate(main));
    assert_eq!(read::<u32>(p, 2), [4, 5]);
}

pub fn an_update_keeps_the_form_of_batches() {
    new_context();
    let p = alloc_with(&[0_u32; 4]);
    let (first, same, longer) = (graph(), graph(), graph());
    add(first, &mut writes(p, &[1]));
    add(same, &mut writes(p, &[2]));
    add(longer, &mut writes(p, &[3, 4]));
    let executable = instantiate(first);
    let mut info = CUgraphExecUpdateResultInfo {
        result: CUgraphExecUpdateResult(99),
        errorNode: CUgraphNode::NULL,
        errorFromNode: CUgraphNode::NULL,
    };
    cu!(cuGraphExecUpdate_v2(executable, same, &mut info));
    launch_graph(executable);
    assert_eq!(read::<u32>(p, 2), [2, 0]);
    fails!(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(executable, longer, &mut info));
    assert_eq!(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);
}

/// What is at the addresses shows when the graph is launched, and nothing at all is a batch too.
pub fn addresses_are_looked_at_when_the_graph_is_launched() {
    new_context();
    let (p, main) = (alloc_with(&[0_u32; 4]), graph());
    let node = add(main, &mut []);
    add(main, &mut [operation(CU_STREAM_MEM_OP_BARRIER, CUdeviceptr(0), 0)]);
    launch_graph(instantiate(main));
    cu!(cuGraphBatchMemOpNodeSetParams(node, &batch(&mut writes(p, &[1]))));
    launch_graph(instantiate(main));
    assert_eq!(read::<u32>(p, 1), [1]);
    add(main, &mut writes(CUdeviceptr(0), &[1]));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(instantiate(main), CUstream::NULL));
    cu!(cuCtxSynchronize());
}

pub fn wrong_batches_are_refused() {
    new_context();
    const WRONG: CUresult = CUDA_ERROR_INVALID_VALUE;
    let (p, main, mut node) = (alloc_with(&[0_u32; 4]), graph(), CUgraphNode::NULL);
    let one = || writes(p, &[1]);
    let refused = |params: &CUDA_BATCH_MEM_OP_NODE_PARAMS| {
        let mut node = CUgraphNode::NULL;
        fails!(WRONG, cuGraphAddBatchMemOpNode(&mut node, main, null(), 0, params));
    };
    refused(&batch(&mut writes(p, &[1; 256])));
    refused(&CUDA_BATCH_MEM_OP_NODE_PARAMS { flags: 1, ..batch(&mut one()) });
    refused(&batch(&mut [operation(CUstreamBatchMemOpType(77), p, 1)]));
    refused(&batch(&mut [operation(WRITE, CUdeviceptr(p.0 + 1), 1)]));
    refused(&CUDA_BATCH_MEM_OP_NODE_PARAMS { ctx: CUcontext::NULL, ..batch(&mut one()) });
    refused(&CUDA_BATCH_MEM_OP_NODE_PARAMS { paramArray: null_mut(), ..batch(&mut one()) });
    let mut flush = operation(CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES, CUdeviceptr(0), 0);
    let flush = batch(std::slice::from_mut(&mut flush));
    fails!(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddBatchMemOpNode(&mut node, main, null(), 0, &flush));
    let mut count = 9;
    cu!(cuGraphGetNodes(main, null_mut(), &mut count));
    assert_eq!(count, 0);
    let mut told = batch(&mut []);
    cu!(cuGraphAddEmptyNode(&mut node, main, null(), 0));
    fails!(WRONG, cuGraphBatchMemOpNodeGetParams(node, &mut told));
    fails!(WRONG, cuGraphBatchMemOpNodeSetParams(node, &batch(&mut one())));
    fails!(WRONG, cuGraphExecBatchMemOpNodeSetParams(instantiate(main), node, &batch(&mut one())));
    let mut list = one();
    fails!(WRONG, cuGraphAddBatchMemOpNode(null_mut(), main, null(), 0, &batch(&mut list)));
    fails!(WRONG, cuGraphAddBatchMemOpNode(&mut node, main, null(), 0, null()));
    fails!(WRONG, cuGraphAddBatchMemOpNode(&mut node, CUgraph::NULL, null(), 0, &batch(&mut list)));
    if ours_only("NVIDIA's driver may follow these") {
        let stale = CUDA_BATCH_MEM_OP_NODE_PARAMS { ctx: CUcontext(0x1234), ..batch(&mut list) };
        fails!(CUDA_ERROR_INVALID_CONTEXT, cuGraphAddBatchMemOpNode(&mut node, main, null(), 0, &stale));
        let batch = add(main, &mut one());
        fails!(WRONG, cuGraphBatchMemOpNodeGetParams(batch, null_mut()));
        fails!(WRONG, cuGraphBatchMemOpNodeSetParams(batch, null()));
        fails!(WRONG, cuGraphExecBatchMemOpNodeSetParams(instantiate(main), batch, null()));
    }
}
