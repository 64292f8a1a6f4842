//! Graph management: graphs of many nodes. What costs more than the nodes do, one by one, does not end in time.

use super::common::*;

fn nodes_of(graph: CUgraph, count: usize) -> Vec<CUgraphNode> {
    let (mut nodes, mut found) = (vec![CUgraphNode::NULL; count], count);
    cu!(cuGraphGetNodes(graph, nodes.as_mut_ptr(), &mut found));
    assert_eq!(found, count);
    nodes
}

pub fn ten_thousand_nodes_are_captured_and_launched() {
    const NODES: usize = 10_000;
    new_context();
    let (s, mut main) = (stream(CU_STREAM_NON_BLOCKING), CUgraph::NULL);
    let words = alloc_with(&vec![0_u32; NODES]);
    cu!(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    for index in 0..NODES {
        let to = CUdeviceptr(words.0 + 4 * index as u64);
        match index % 4 {
            // Each takes what the one before has left, and the first of four is a number of its own.
            0 => cu!(cuMemsetD32Async(to, index as u32, 1, s)),
            _ => cu!(cuMemcpyDtoDAsync_v2(to, CUdeviceptr(to.0 - 4), 4, s)),
        }
    }
    cu!(cuStreamEndCapture(s, &mut main));
    let executable = instantiate(main);
    nodes_of(main, NODES);
    for _ in 0..3 {
        cu!(cuMemsetD8Async(words, 0xFF, 4 * NODES, s); cuGraphLaunch(executable, s); cuStreamSynchronize(s));
        let expected: Vec<u32> = (0..NODES as u32).map(|index| index / 4 * 4).collect();
        assert_eq!(read::<u32>(words, NODES), expected);
    }
}

pub fn a_large_graph_is_no_dearer_than_its_nodes() {
    // So many that what looks at all of them for each of them would take minutes.
    let many = if is_ours() { 100_000 } else { 10_000 };
    new_context();
    let main = graph();
    let nodes: Vec<_> = (0..many)
        .map(|_| {
            let mut node = CUgraphNode::NULL;
            cu!(cuGraphAddEmptyNode(&mut node, main, null(), 0));
            node
        })
        .collect();
    for pair in nodes.windows(2) {
        cu!(cuGraphAddDependencies(main, &pair[0], &pair[1], 1));
    }
    let executable = instantiate(main);
    let (mut copy, mut failed) = (CUgraph::NULL, CUgraphNode::NULL);
    let mut result = CUgraphExecUpdateResult(99);
    cu!(cuGraphClone(&mut copy, main); cuGraphExecUpdate(executable, copy, &mut failed, &mut result));
    for node in &nodes {
        let (mut before, mut after, mut twin) = (9, 9, CUgraphNode::NULL);
        cu!(
            cuGraphNodeGetDependencies(*node, null_mut(), &mut before);
            cuGraphNodeGetDependentNodes(*node, null_mut(), &mut after);
            cuGraphNodeFindInClone(&mut twin, *node, copy);
        );
        assert!(before < 2 && after < 2 && !twin.is_null());
    }
    let path = std::env::temp_dir().join(format!("conformance-large-graph-{}.dot", std::process::id()));
    let name = CString::new(path.to_str().unwrap()).unwrap();
    cu!(cuGraphDebugDotPrint(main, name.as_ptr(), 0));
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(text.lines().count() >= 2 * many - 1, "a line for each node and edge");
    cu!(cuGraphLaunch(executable, CUstream::NULL); cuCtxSynchronize(); cuGraphExecDestroy(executable));
    // Half of it node by node, the rest at once.
    for node in &nodes[..many / 2] {
        cu!(cuGraphDestroyNode(*node));
    }
    nodes_of(main, many - many / 2);
    cu!(cuGraphDestroy(main); cuGraphDestroy(copy));
}

pub fn each_node_of_a_large_graph_is_changed() {
    let many = if is_ours() { 50_000 } else { 5_000 };
    new_context();
    let (main, word) = (graph(), alloc_with(&[0_u32]));
    let mut fill =
        CUDA_MEMSET_NODE_PARAMS { dst: word, pitch: 0, value: 1, elementSize: 4, width: 1, height: 1 };
    let mut last = CUgraphNode::NULL;
    for index in 0..many {
        let mut node = CUgraphNode::NULL;
        cu!(cuGraphAddMemsetNode(&mut node, main, &last, usize::from(index > 0), &fill, current()));
        last = node;
    }
    let (executable, nodes) = (instantiate(main), nodes_of(main, many));
    fill.value = 7;
    for node in &nodes {
        cu!(
            cuGraphExecMemsetNodeSetParams(executable, *node, &fill, current());
            cuGraphNodeSetEnabled(executable, *node, u32::from(*node == last));
        );
    }
    cu!(cuGraphLaunch(executable, CUstream::NULL); cuCtxSynchronize());
    assert_eq!(read::<u32>(word, 1), [7]);
}

pub fn graphs_are_in_each_other_however_deep() {
    // A driver that calls itself for each level has a stack for some thousands.
    let deep = if is_ours() { 50_000 } else { 500 };
    new_context();
    let (s, word) = (stream(CU_STREAM_NON_BLOCKING), alloc_with(&[1_u32]));
    let context = current();
    let params =
        CUDA_MEMSET_NODE_PARAMS { dst: word, pitch: 0, value: 7, elementSize: 4, width: 1, height: 1 };
    let (mut node, mut inner) = (CUgraphNode::NULL, graph());
    cu!(cuGraphAddMemsetNode(&mut node, inner, null(), 0, &params, context));
    for _ in 0..deep {
        let outer = graph();
        cu!(cuGraphAddChildGraphNode(&mut node, outer, null(), 0, inner); cuGraphDestroy(inner));
        inner = outer;
    }
    // What asks for the graph in the node makes a handle, which goes with the node.
    let mut found = CUgraph::NULL;
    cu!(cuGraphChildGraphNodeGetGraph(node, &mut found));
    let executable = instantiate(inner);
    cu!(cuGraphLaunch(executable, s); cuStreamSynchronize(s));
    assert_eq!(read::<u32>(word, 1), [7]);
    cu!(cuGraphDestroy(inner); cuGraphExecDestroy(executable));
}
