//! Nodes that signal and wait for semaphores of other APIs. They are described as the driver's are.

use crate::api::prelude::*;
use crate::context;

/// Adds the signalling of semaphores.
#[entry_point]
fn cudaGraphAddExternalSemaphoresSignalNode(
    pGraphNode: Out<cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    nodeParams: *const cudaExternalSemaphoreSignalNodeParams,
) -> CudaResult {
    context::ensure_current()?;
    let node = pGraphNode.check()?.as_ptr();
    call!(cuGraphAddExternalSemaphoresSignalNode(node, graph, pDependencies, numDependencies, nodeParams))
}

/// The semaphores that a node signals.
#[entry_point]
fn cudaGraphExternalSemaphoresSignalNodeGetParams(
    hNode: cudaGraphNode_t,
    params_out: *mut cudaExternalSemaphoreSignalNodeParams,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphExternalSemaphoresSignalNodeGetParams(hNode, params_out))
}

/// Sets the semaphores that a node signals.
#[entry_point]
fn cudaGraphExternalSemaphoresSignalNodeSetParams(
    hNode: cudaGraphNode_t,
    nodeParams: *const cudaExternalSemaphoreSignalNodeParams,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphExternalSemaphoresSignalNodeSetParams(hNode, nodeParams))
}

/// Sets the semaphores that a node signals, in an executable graph.
#[entry_point]
fn cudaGraphExecExternalSemaphoresSignalNodeSetParams(
    hGraphExec: cudaGraphExec_t,
    hNode: cudaGraphNode_t,
    nodeParams: *const cudaExternalSemaphoreSignalNodeParams,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphExecExternalSemaphoresSignalNodeSetParams(hGraphExec, hNode, nodeParams))
}

/// Adds the wait for semaphores.
#[entry_point]
fn cudaGraphAddExternalSemaphoresWaitNode(
    pGraphNode: Out<cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    nodeParams: *const cudaExternalSemaphoreWaitNodeParams,
) -> CudaResult {
    context::ensure_current()?;
    let node = pGraphNode.check()?.as_ptr();
    call!(cuGraphAddExternalSemaphoresWaitNode(node, graph, pDependencies, numDependencies, nodeParams))
}

/// The semaphores that a node waits for.
#[entry_point]
fn cudaGraphExternalSemaphoresWaitNodeGetParams(
    hNode: cudaGraphNode_t,
    params_out: *mut cudaExternalSemaphoreWaitNodeParams,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphExternalSemaphoresWaitNodeGetParams(hNode, params_out))
}

/// Sets the semaphores that a node waits for.
#[entry_point]
fn cudaGraphExternalSemaphoresWaitNodeSetParams(
    hNode: cudaGraphNode_t,
    nodeParams: *const cudaExternalSemaphoreWaitNodeParams,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphExternalSemaphoresWaitNodeSetParams(hNode, nodeParams))
}

/// Sets the semaphores that a node waits for, in an executable graph.
#[entry_point]
fn cudaGraphExecExternalSemaphoresWaitNodeSetParams(
    hGraphExec: cudaGraphExec_t,
    hNode: cudaGraphNode_t,
    nodeParams: *const cudaExternalSemaphoreWaitNodeParams,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphExecExternalSemaphoresWaitNodeSetParams(hGraphExec, hNode, nodeParams))
}
