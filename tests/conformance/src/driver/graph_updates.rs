//! Graph management: what stands in the way of an executable graph that is to do what another graph does.

use super::common::*;

fn fill_with(graph: CUgraph, after: &[CUgraphNode], place: CUdeviceptr, value: u32) -> CUgraphNode {
    let params =
        CUDA_MEMSET_NODE_PARAMS { dst: place, pitch: 64, value, elementSize: 4, width: 4, height: 1 };
    let mut node = CUgraphNode::NULL;
    cu!(cuGraphAddMemsetNode(&mut node, graph, after.as_ptr(), after.len(), &params, current()));
    node
}

fn fill(graph: CUgraph, after: &[CUgraphNode], place: CUdeviceptr, rows: usize) -> CUgraphNode {
    let params =
        CUDA_MEMSET_NODE_PARAMS { dst: place, pitch: 64, value: 9, elementSize: 4, width: 4, height: rows };
    let mut node = CUgraphNode::NULL;
    cu!(cuGraphAddMemsetNode(&mut node, graph, after.as_ptr(), after.len(), &params, current()));
    node
}

/// Two fills, one after the other.
fn two(place: CUdeviceptr) -> (CUgraph, CUgraphNode) {
    let main = graph();
    let first = fill(main, &[], place, 1);
    let second = fill(main, &[first], place, 1);
    (main, second)
}

/// What an update tells: reasons by both functions, and the node that the second names. The first one of NVIDIA's driver may name another.
fn refusal(main: CUgraph, other: CUgraph) -> ([CUgraphExecUpdateResult; 2], CUgraphNode) {
    let mut executable = CUgraphExec::NULL;
    cu!(cuGraphInstantiateWithFlags(&mut executable, main, 0));
    let (mut node, mut result) = (CUgraphNode::NULL, CUgraphExecUpdateResult(99));
    fails!(
        CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
        cuGraphExecUpdate(executable, other, &mut node, &mut result)
    );
    let mut info = CUgraphExecUpdateResultInfo {
        result: CUgraphExecUpdateResult(99),
        errorNode: CUgraphNode::NULL,
        errorFromNode: CUgraphNode::NULL,
    };
    fails!(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(executable, other, &mut info));
    assert!(!is_ours() || info.errorNode == node);
    cu!(cuGraphExecDestroy(executable));
    ([result, info.result], info.errorNode)
}

pub fn an_update_tells_what_differs() {
    new_context();
    let place = alloc_with(&[0_u32; 256]);
    let (main, _) = two(place);

    // Another number of nodes has two names, and no node.
    let (more, last) = two(place);
    fill(more, &[last], place, 1);
    let counts = [CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED];
    assert_eq!(refusal(main, more), (counts, CUgraphNode::NULL));
    assert_eq!(refusal(more, main), (counts, CUgraphNode::NULL));

    let apart = graph();
    let first = fill(apart, &[], place, 1);
    fill(apart, &[], place, 1);
    let (reasons, node) = refusal(main, apart);
    assert_eq!(reasons, [CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED; 2]);
    assert_eq!(node, first);
    let ([_, reason], node) = refusal(apart, main);
    assert_eq!((reason, node), (CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, CUgraphNode::NULL));

    let in_rows = graph();
    let first = fill(in_rows, &[], place, 1);
    let second = fill(in_rows, &[first], place, 2);
    assert_eq!(refusal(main, in_rows), ([CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED; 2], second));

    let sorts = graph();
    let (mut empty, first) = (CUgraphNode::NULL, fill(sorts, &[], place, 1));
    cu!(cuGraphAddEmptyNode(&mut empty, sorts, &first, 1));
    assert_eq!(refusal(main, sorts), ([CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED; 2], empty));
}

/// A graph of fills: what each of them depends on.
fn fills<const N: usize>(place: CUdeviceptr, after: [&[usize]; N]) -> (CUgraph, [CUgraphNode; N]) {
    let (main, mut nodes) = (graph(), [CUgraphNode::NULL; N]);
    for (at, after) in after.into_iter().enumerate() {
        let after: Vec<_> = after.iter().map(|node| nodes[*node]).collect();
        nodes[at] = fill(main, &after, place, 1);
    }
    (main, nodes)
}

/// The node that an update names whose dependencies differ.
fn topology(main: CUgraph, other: CUgraph) -> CUgraphNode {
    let ([_, reason], node) = refusal(main, other);
    assert_eq!(reason, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    node
}

/// Nodes are paired from the last ones, the newest first.
pub fn an_update_names_the_node_whose_dependencies_differ() {
    new_context();
    let place = alloc_with(&[0_u32; 256]);
    let (two_rows, _) = fills(place, [&[], &[], &[0], &[1]]);
    let (in_line, nodes) = fills(place, [&[], &[], &[0], &[2]]);
    assert_eq!(topology(two_rows, in_line), nodes[1]);
    let (chain, _) = fills(place, [&[], &[0], &[1], &[], &[1, 2, 3]]);
    let (shorter, nodes) = fills(place, [&[], &[0], &[1], &[], &[1, 3]]);
    assert_eq!(topology(chain, shorter), nodes[2]);
    let (main, _) = fills(place, [&[], &[], &[1], &[], &[0]]);
    let (more, nodes) = fills(place, [&[], &[], &[1], &[], &[0, 1]]);
    assert_eq!(topology(main, more), nodes[4]);
}

pub fn an_update_names_an_edge_between_paired_nodes() {
    new_context();
    let place = alloc_with(&[0_u32; 256]);
    let (main, _) = fills(place, [&[], &[], &[1], &[0], &[0, 1]]);
    let (other, nodes) = fills(place, [&[], &[0], &[1], &[1], &[0, 1]]);
    let mut executable = CUgraphExec::NULL;
    cu!(cuGraphInstantiateWithFlags(&mut executable, main, 0));
    let mut info = CUgraphExecUpdateResultInfo {
        result: CUgraphExecUpdateResult(99),
        errorNode: CUgraphNode::NULL,
        errorFromNode: CUgraphNode::NULL,
    };
    fails!(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(executable, other, &mut info));
    assert_eq!((info.errorNode, info.errorFromNode), (nodes[3], nodes[1]));
}

pub fn nodes_added_in_another_order_are_found() {
    new_context();
    let place = alloc_with(&[0_u32; 256]);
    let at = |offset| CUdeviceptr(place.0 + offset);
    // One fill behind another, and one for itself: which is the first, and what it does, is exchanged.
    let make = |alone: usize, value: u32| {
        let (main, mut nodes) = (graph(), [CUgraphNode::NULL; 2]);
        for (number, node) in nodes.iter_mut().enumerate() {
            let place = if number == alone { at(64) } else { at(0) };
            *node = fill_with(main, &[], place, value + number as u32);
        }
        fill_with(main, &nodes[1 - alone..2 - alone], at(128), value + 2);
        main
    };
    let (mut executable, mut info) = (
        CUgraphExec::NULL,
        CUgraphExecUpdateResultInfo {
            result: CUgraphExecUpdateResult(99),
            errorNode: CUgraphNode::NULL,
            errorFromNode: CUgraphNode::NULL,
        },
    );
    cu!(
        cuGraphInstantiateWithFlags(&mut executable, make(1, 10), 0);
        cuGraphExecUpdate_v2(executable, make(0, 20), &mut info);
        cuGraphLaunch(executable, CUstream::NULL);
        cuStreamSynchronize(CUstream::NULL);
    );
    assert_eq!(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    let words: Vec<u32> = read(place, 33);
    assert_eq!((words[0], words[16], words[32]), (21, 20, 22));
}

pub fn what_has_several_rows_keeps_its_shape() {
    new_context();
    let place = alloc_with(&[0_u32; 256]);
    let rows =
        CUDA_MEMSET_NODE_PARAMS { dst: place, pitch: 64, value: 9, elementSize: 4, width: 4, height: 2 };
    let row = CUDA_MEMSET_NODE_PARAMS { height: 1, ..rows };
    let set = |from: &CUDA_MEMSET_NODE_PARAMS, to: &CUDA_MEMSET_NODE_PARAMS| {
        let (main, mut node, mut executable) = (graph(), CUgraphNode::NULL, CUgraphExec::NULL);
        cu!(
            cuGraphAddMemsetNode(&mut node, main, null(), 0, from, current());
            cuGraphInstantiateWithFlags(&mut executable, main, 0);
        );
        // SAFETY: parameters and the graph are the test's.
        unsafe { cuGraphExecMemsetNodeSetParams(executable, node, to, current()) }
    };
    let elsewhere = CUdeviceptr(place.0 + 256);
    for (from, to) in [
        (rows, CUDA_MEMSET_NODE_PARAMS { dst: elsewhere, value: 1, ..rows }),
        (row, CUDA_MEMSET_NODE_PARAMS { dst: elsewhere, value: 1, elementSize: 1, width: 9, ..row }),
    ] {
        assert_eq!(set(&from, &to), CUDA_SUCCESS);
    }
    for to in [
        row,
        CUDA_MEMSET_NODE_PARAMS { height: 3, ..rows },
        CUDA_MEMSET_NODE_PARAMS { width: 3, ..rows },
        CUDA_MEMSET_NODE_PARAMS { pitch: 128, ..rows },
        CUDA_MEMSET_NODE_PARAMS { elementSize: 1, width: 16, ..rows },
    ] {
        assert_eq!(set(&rows, &to), CUDA_ERROR_INVALID_VALUE);
    }
    assert_eq!(set(&row, &rows), CUDA_ERROR_INVALID_VALUE);
    // The same with a whole graph.
    let of_rows = |height| {
        let graph = graph();
        (graph, fill(graph, &[], place, height))
    };
    let (two, (three, node)) = (of_rows(2).0, of_rows(3));
    assert_eq!(refusal(two, three), ([CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED; 2], node));
}

pub fn copies_of_several_rows_stay_as_they_are() {
    new_context();
    let (from, to) = (alloc_with(&[7_u32; 256]), alloc(1024));
    let copy = |width, height, start| {
        // Field by field: NVIDIA's driver compares the bytes between them as well.
        // SAFETY: numbers, handles and pointers, for which zero is a value.
        let mut copy: CUDA_MEMCPY3D = unsafe { std::mem::zeroed() };
        copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.srcDevice = from;
        copy.srcPitch = 64;
        copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.dstDevice = CUdeviceptr(to.0 + start);
        copy.dstPitch = 64;
        copy.WidthInBytes = width;
        copy.Height = height;
        copy.Depth = 1;
        copy
    };
    let set = |before: CUDA_MEMCPY3D, after: CUDA_MEMCPY3D| {
        let (main, mut node, mut executable) = (graph(), CUgraphNode::NULL, CUgraphExec::NULL);
        cu!(
            cuGraphAddMemcpyNode(&mut node, main, null(), 0, &before, current());
            cuGraphInstantiateWithFlags(&mut executable, main, 0);
        );
        // SAFETY: parameters and the graph are the test's.
        unsafe { cuGraphExecMemcpyNodeSetParams(executable, node, &after, current()) }
    };
    assert_eq!(set(copy(64, 1, 0), copy(32, 1, 64)), CUDA_SUCCESS);
    assert_eq!(set(copy(64, 2, 0), copy(64, 2, 0)), CUDA_SUCCESS);
    for (before, after) in [
        (copy(64, 2, 0), copy(64, 2, 64)),
        (copy(64, 2, 0), copy(32, 2, 0)),
        (copy(64, 2, 0), copy(64, 4, 0)),
        (copy(64, 2, 0), copy(64, 1, 0)),
        (copy(64, 1, 0), copy(64, 2, 0)),
    ] {
        assert_eq!(set(before, after), CUDA_ERROR_INVALID_VALUE);
    }
}

pub fn a_copied_row_stays_in_memory_of_its_kinds() {
    new_context();
    let (place, mut host) = (alloc_with(&[7_u32; 256]), null_mut());
    cu!(cuMemHostAlloc(&mut host, 1024, 0));
    let copied = |from: CUmemorytype, to: CUmemorytype| {
        // SAFETY: numbers, handles and pointers, for which zero is a value.
        let nothing: CUDA_MEMCPY3D = unsafe { std::mem::zeroed() };
        let params = CUDA_MEMCPY3D {
            srcMemoryType: from,
            srcHost: host,
            srcDevice: place,
            dstMemoryType: to,
            dstHost: host,
            dstDevice: CUdeviceptr(place.0 + 512),
            WidthInBytes: 64,
            Height: 1,
            Depth: 1,
            ..nothing
        };
        let (main, mut node) = (graph(), CUgraphNode::NULL);
        cu!(cuGraphAddMemcpyNode(&mut node, main, null(), 0, &params, current()));
        (main, node)
    };
    let (device, any) = (CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_UNIFIED);
    let ends = [(device, device), (device, CU_MEMORYTYPE_HOST), (CU_MEMORYTYPE_HOST, device), (any, any)];
    for before in ends {
        for after in ends.into_iter().filter(|after| *after != before) {
            let ((main, _), (other, node)) = (copied(before.0, before.1), copied(after.0, after.1));
            assert_eq!(refusal(main, other), ([CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED; 2], node));
        }
    }
}

pub fn graphs_in_graphs_are_compared_by_themselves() {
    new_context();
    let place = alloc_with(&[0_u32; 256]);
    let around = |inner: CUgraph| {
        let (main, mut node) = (graph(), CUgraphNode::NULL);
        cu!(cuGraphAddChildGraphNode(&mut node, main, null(), 0, inner));
        main
    };
    let one = || {
        let graph = graph();
        fill(graph, &[], place, 1);
        graph
    };
    let (alone, of_two) = (around(one()), around(two(place).0));
    let sort = |main, other| refusal(main, other).0[1];
    assert_eq!(sort(one(), alone), CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
    assert_eq!(sort(alone, one()), CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
    assert_eq!(sort(one(), of_two), CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
    assert_eq!(sort(alone, of_two), CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    // One without nodes is a graph too.
    assert_eq!(sort(alone, around(graph())), CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    let (empty, mut node) = (graph(), CUgraphNode::NULL);
    cu!(cuGraphAddEmptyNode(&mut node, empty, null(), 0));
    assert_eq!(sort(empty, around(graph())), CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
}

pub fn the_first_update_function_need_not_tell() {
    new_context();
    let place = alloc_with(&[0_u32; 256]);
    let (main, _) = two(place);
    let mut executable = CUgraphExec::NULL;
    cu!(
        cuGraphInstantiateWithFlags(&mut executable, main, 0);
        cuGraphExecUpdate(executable, main, null_mut(), null_mut());
    );
    fails!(
        CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
        cuGraphExecUpdate(executable, graph(), null_mut(), null_mut())
    );
}
