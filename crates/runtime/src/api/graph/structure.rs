//! Graphs, their nodes and edges.

use crate::api::prelude::*;
use crate::context;

/// Makes an empty graph.
#[entry_point]
fn cudaGraphCreate(pGraph: Out<cudaGraph_t>, flags: u32) -> CudaResult {
    context::ensure_current()?;
    let graph = pGraph.check()?;
    call!(cuGraphCreate(graph.as_ptr(), flags))
}

/// Makes a copy of a graph.
#[entry_point]
fn cudaGraphClone(pGraphClone: Out<cudaGraph_t>, originalGraph: cudaGraph_t) -> CudaResult {
    context::ensure_current()?;
    let graph = pGraphClone.check()?;
    call!(cuGraphClone(graph.as_ptr(), originalGraph))
}

/// Destroys a graph and its nodes.
#[entry_point]
fn cudaGraphDestroy(graph: cudaGraph_t) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphDestroy(graph))
}

/// Destroys a node and its edges.
#[entry_point]
fn cudaGraphDestroyNode(node: cudaGraphNode_t) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphDestroyNode(node))
}

/// The node of a copied graph that was made from `originalNode`.
#[entry_point]
fn cudaGraphNodeFindInClone(
    pNode: Out<cudaGraphNode_t>,
    originalNode: cudaGraphNode_t,
    clonedGraph: cudaGraph_t,
) -> CudaResult {
    context::ensure_current()?;
    let node = pNode.check()?;
    call!(cuGraphNodeFindInClone(node.as_ptr(), originalNode, clonedGraph))
}

/// What a node does.
#[entry_point]
fn cudaGraphNodeGetType(node: cudaGraphNode_t, pType: Out<cudaGraphNodeType>) -> CudaResult {
    context::ensure_current()?;
    let kind = pType.check()?;
    call!(cuGraphNodeGetType(node, kind.as_ptr()))
}

/// The nodes of a graph, as many as there is room for; without an array, their number.
#[entry_point]
fn cudaGraphGetNodes(graph: cudaGraph_t, nodes: *mut cudaGraphNode_t, numNodes: *mut usize) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphGetNodes(graph, nodes, numNodes))
}

/// The nodes that wait for no other.
#[entry_point]
fn cudaGraphGetRootNodes(
    graph: cudaGraph_t,
    pRootNodes: *mut cudaGraphNode_t,
    pNumRootNodes: *mut usize,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphGetRootNodes(graph, pRootNodes, pNumRootNodes))
}

/// The edges of a graph.
#[entry_point]
fn cudaGraphGetEdges(
    graph: cudaGraph_t,
    from: *mut cudaGraphNode_t,
    to: *mut cudaGraphNode_t,
    edgeData: *mut cudaGraphEdgeData,
    numEdges: *mut usize,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphGetEdges_v2(graph, from, to, edgeData, numEdges))
}

/// The nodes that a node waits for.
#[entry_point]
fn cudaGraphNodeGetDependencies(
    node: cudaGraphNode_t,
    pDependencies: *mut cudaGraphNode_t,
    edgeData: *mut cudaGraphEdgeData,
    pNumDependencies: *mut usize,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphNodeGetDependencies_v2(node, pDependencies, edgeData, pNumDependencies))
}

/// The nodes that wait for a node.
#[entry_point]
fn cudaGraphNodeGetDependentNodes(
    node: cudaGraphNode_t,
    pDependentNodes: *mut cudaGraphNode_t,
    edgeData: *mut cudaGraphEdgeData,
    pNumDependentNodes: *mut usize,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphNodeGetDependentNodes_v2(node, pDependentNodes, edgeData, pNumDependentNodes))
}

/// Adds edges.
#[entry_point]
fn cudaGraphAddDependencies(
    graph: cudaGraph_t,
    from: *const cudaGraphNode_t,
    to: *const cudaGraphNode_t,
    edgeData: *const cudaGraphEdgeData,
    numDependencies: usize,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphAddDependencies_v2(graph, from, to, edgeData, numDependencies))
}

/// Removes edges.
#[entry_point]
fn cudaGraphRemoveDependencies(
    graph: cudaGraph_t,
    from: *const cudaGraphNode_t,
    to: *const cudaGraphNode_t,
    edgeData: *const cudaGraphEdgeData,
    numDependencies: usize,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphRemoveDependencies_v2(graph, from, to, edgeData, numDependencies))
}

/// `CU_GRAPH_DEBUG_DOT_FLAGS_RUNTIME_TYPES`.
const RUNTIME_TYPES: u32 = 1 << 1;

/// Writes a drawing of a graph to a file.
#[entry_point]
fn cudaGraphDebugDotPrint(graph: cudaGraph_t, path: Text, flags: u32) -> CudaResult {
    context::ensure_current()?;
    // The Runtime API's own view of copies has no flag in it: it is always asked for.
    call!(cuGraphDebugDotPrint(graph, path.get()?.as_ptr(), flags | RUNTIME_TYPES))
}
