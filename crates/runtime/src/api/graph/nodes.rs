//! Nodes that are neither kernels nor copies.

use crate::api::prelude::*;
use crate::context;
use crate::copy::device_pointer;

/// Adds a node that does nothing.
#[entry_point]
fn cudaGraphAddEmptyNode(
    pGraphNode: Out<cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
) -> CudaResult {
    context::ensure_current()?;
    let node = pGraphNode.check()?;
    call!(cuGraphAddEmptyNode(node.as_ptr(), graph, pDependencies, numDependencies))
}

/// Adds a call of a host function.
#[entry_point]
fn cudaGraphAddHostNode(
    pGraphNode: Out<cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    pNodeParams: *const cudaHostNodeParams,
) -> CudaResult {
    context::ensure_current()?;
    let node = pGraphNode.check()?;
    call!(cuGraphAddHostNode(node.as_ptr(), graph, pDependencies, numDependencies, pNodeParams))
}

/// A host node's function.
#[entry_point]
fn cudaGraphHostNodeGetParams(node: cudaGraphNode_t, pNodeParams: *mut cudaHostNodeParams) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphHostNodeGetParams(node, pNodeParams))
}

/// Sets a host node's function.
#[entry_point]
fn cudaGraphHostNodeSetParams(node: cudaGraphNode_t, pNodeParams: *const cudaHostNodeParams) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphHostNodeSetParams(node, pNodeParams))
}

/// Sets a host node's function in an executable graph.
#[entry_point]
fn cudaGraphExecHostNodeSetParams(
    hGraphExec: cudaGraphExec_t,
    node: cudaGraphNode_t,
    pNodeParams: *const cudaHostNodeParams,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphExecHostNodeSetParams(hGraphExec, node, pNodeParams))
}

/// Adds a whole graph as a node.
#[entry_point]
fn cudaGraphAddChildGraphNode(
    pGraphNode: Out<cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    childGraph: cudaGraph_t,
) -> CudaResult {
    context::ensure_current()?;
    let node = pGraphNode.check()?;
    call!(cuGraphAddChildGraphNode(node.as_ptr(), graph, pDependencies, numDependencies, childGraph))
}

/// The graph that a node is.
#[entry_point]
fn cudaGraphChildGraphNodeGetGraph(node: cudaGraphNode_t, pGraph: Out<cudaGraph_t>) -> CudaResult {
    context::ensure_current()?;
    let graph = pGraph.check()?;
    call!(cuGraphChildGraphNodeGetGraph(node, graph.as_ptr()))
}

/// Sets what the graph that is a node does, in an executable graph.
#[entry_point]
fn cudaGraphExecChildGraphNodeSetParams(
    hGraphExec: cudaGraphExec_t,
    node: cudaGraphNode_t,
    childGraph: cudaGraph_t,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphExecChildGraphNodeSetParams(hGraphExec, node, childGraph))
}

/// Adds the recording of an event.
#[entry_point]
fn cudaGraphAddEventRecordNode(
    pGraphNode: Out<cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    event: cudaEvent_t,
) -> CudaResult {
    context::ensure_current()?;
    let node = pGraphNode.check()?;
    call!(cuGraphAddEventRecordNode(node.as_ptr(), graph, pDependencies, numDependencies, event))
}

/// The event that a node records.
#[entry_point]
fn cudaGraphEventRecordNodeGetEvent(node: cudaGraphNode_t, event_out: Out<cudaEvent_t>) -> CudaResult {
    context::ensure_current()?;
    let event = event_out.check()?;
    call!(cuGraphEventRecordNodeGetEvent(node, event.as_ptr()))
}

/// Sets the event that a node records.
#[entry_point]
fn cudaGraphEventRecordNodeSetEvent(node: cudaGraphNode_t, event: cudaEvent_t) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphEventRecordNodeSetEvent(node, event))
}

/// Sets the event that a node records, in an executable graph.
#[entry_point]
fn cudaGraphExecEventRecordNodeSetEvent(
    hGraphExec: cudaGraphExec_t,
    hNode: cudaGraphNode_t,
    event: cudaEvent_t,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphExecEventRecordNodeSetEvent(hGraphExec, hNode, event))
}

/// Adds the wait for an event.
#[entry_point]
fn cudaGraphAddEventWaitNode(
    pGraphNode: Out<cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    event: cudaEvent_t,
) -> CudaResult {
    context::ensure_current()?;
    let node = pGraphNode.check()?;
    call!(cuGraphAddEventWaitNode(node.as_ptr(), graph, pDependencies, numDependencies, event))
}

/// The event that a node waits for.
#[entry_point]
fn cudaGraphEventWaitNodeGetEvent(node: cudaGraphNode_t, event_out: Out<cudaEvent_t>) -> CudaResult {
    context::ensure_current()?;
    let event = event_out.check()?;
    call!(cuGraphEventWaitNodeGetEvent(node, event.as_ptr()))
}

/// Sets the event that a node waits for.
#[entry_point]
fn cudaGraphEventWaitNodeSetEvent(node: cudaGraphNode_t, event: cudaEvent_t) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphEventWaitNodeSetEvent(node, event))
}

/// Sets the event that a node waits for, in an executable graph.
#[entry_point]
fn cudaGraphExecEventWaitNodeSetEvent(
    hGraphExec: cudaGraphExec_t,
    hNode: cudaGraphNode_t,
    event: cudaEvent_t,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphExecEventWaitNodeSetEvent(hGraphExec, hNode, event))
}

/// Adds an allocation; its address is known at once.
#[entry_point]
fn cudaGraphAddMemAllocNode(
    pGraphNode: Out<cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    nodeParams: *mut cudaMemAllocNodeParams,
) -> CudaResult {
    context::ensure_current()?;
    let node = pGraphNode.check()?;
    call!(cuGraphAddMemAllocNode(node.as_ptr(), graph, pDependencies, numDependencies, nodeParams))
}

/// What a node allocates.
#[entry_point]
fn cudaGraphMemAllocNodeGetParams(
    node: cudaGraphNode_t,
    params_out: *mut cudaMemAllocNodeParams,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphMemAllocNodeGetParams(node, params_out))
}

/// Adds the freeing of what a graph allocated.
#[entry_point]
fn cudaGraphAddMemFreeNode(
    pGraphNode: Out<cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    dptr: *mut c_void,
) -> CudaResult {
    context::ensure_current()?;
    let node = pGraphNode.check()?;
    let address = device_pointer(dptr);
    call!(cuGraphAddMemFreeNode(node.as_ptr(), graph, pDependencies, numDependencies, address))
}

/// What a node frees.
#[entry_point]
fn cudaGraphMemFreeNodeGetParams(node: cudaGraphNode_t, dptr_out: *mut c_void) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphMemFreeNodeGetParams(node, dptr_out.cast()))
}
