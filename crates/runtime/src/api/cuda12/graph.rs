//! Graphs whose edges have no data.

use crate::api::prelude::*;
use crate::context;

/// The edges of a graph.
#[entry_point]
fn cudaGraphGetEdges_cuda12(
    graph: cudaGraph_t,
    from: *mut cudaGraphNode_t,
    to: *mut cudaGraphNode_t,
    numEdges: *mut usize,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphGetEdges(graph, from, to, numEdges))
}

/// The nodes that a node waits for.
#[entry_point]
fn cudaGraphNodeGetDependencies_cuda12(
    node: cudaGraphNode_t,
    pDependencies: *mut cudaGraphNode_t,
    pNumDependencies: *mut usize,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphNodeGetDependencies(node, pDependencies, pNumDependencies))
}

/// The nodes that wait for a node.
#[entry_point]
fn cudaGraphNodeGetDependentNodes_cuda12(
    node: cudaGraphNode_t,
    pDependentNodes: *mut cudaGraphNode_t,
    pNumDependentNodes: *mut usize,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphNodeGetDependentNodes(node, pDependentNodes, pNumDependentNodes))
}

/// Adds edges.
#[entry_point]
fn cudaGraphAddDependencies_cuda12(
    graph: cudaGraph_t,
    from: *const cudaGraphNode_t,
    to: *const cudaGraphNode_t,
    numDependencies: usize,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphAddDependencies(graph, from, to, numDependencies))
}

/// Removes edges.
#[entry_point]
fn cudaGraphRemoveDependencies_cuda12(
    graph: cudaGraph_t,
    from: *const cudaGraphNode_t,
    to: *const cudaGraphNode_t,
    numDependencies: usize,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphRemoveDependencies(graph, from, to, numDependencies))
}
