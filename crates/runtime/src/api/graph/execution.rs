//! Executable graphs.

use crate::api::prelude::*;
use crate::context;
use crate::streams::resolve;

/// Makes a graph ready for launching.
#[entry_point]
fn cudaGraphInstantiate(pGraphExec: Out<cudaGraphExec_t>, graph: cudaGraph_t, flags: u64) -> CudaResult {
    instantiate(pGraphExec, graph, flags)
}

/// Makes a graph ready for launching.
#[entry_point]
fn cudaGraphInstantiateWithFlags(
    pGraphExec: Out<cudaGraphExec_t>,
    graph: cudaGraph_t,
    flags: u64,
) -> CudaResult {
    instantiate(pGraphExec, graph, flags)
}

/// Makes a graph ready for launching, and tells what was wrong if it cannot be.
#[entry_point(ptsz)]
fn cudaGraphInstantiateWithParams(
    _default: DefaultStream,
    pGraphExec: Out<cudaGraphExec_t>,
    graph: cudaGraph_t,
    instantiateParams: *mut cudaGraphInstantiateParams,
) -> CudaResult {
    context::ensure_current()?;
    let executable = pGraphExec.check()?;
    call!(cuGraphInstantiateWithParams(executable.as_ptr(), graph, instantiateParams))
}

/// Launches a graph.
#[entry_point(ptsz)]
fn cudaGraphLaunch(default: DefaultStream, graphExec: cudaGraphExec_t, stream: cudaStream_t) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphLaunch(graphExec, resolve(default, stream)))
}

/// Prepares the first launch of a graph.
#[entry_point(ptsz)]
fn cudaGraphUpload(default: DefaultStream, graphExec: cudaGraphExec_t, stream: cudaStream_t) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphUpload(graphExec, resolve(default, stream)))
}

/// Destroys an executable graph.
#[entry_point]
fn cudaGraphExecDestroy(graphExec: cudaGraphExec_t) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphExecDestroy(graphExec))
}

/// The flags that an executable graph was made with.
#[entry_point]
fn cudaGraphExecGetFlags(graphExec: cudaGraphExec_t, flags: Out<u64>) -> CudaResult {
    context::ensure_current()?;
    let flags = flags.check()?;
    call!(cuGraphExecGetFlags(graphExec, flags.as_ptr()))
}

/// Gives an executable graph the parameters of a graph of the same shape.
#[entry_point]
fn cudaGraphExecUpdate(
    hGraphExec: cudaGraphExec_t,
    hGraph: cudaGraph_t,
    resultInfo: *mut cudaGraphExecUpdateResultInfo,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphExecUpdate_v2(hGraphExec, hGraph, resultInfo))
}

/// Whether a node of an executable graph does its work.
#[entry_point]
fn cudaGraphNodeGetEnabled(
    hGraphExec: cudaGraphExec_t,
    hNode: cudaGraphNode_t,
    isEnabled: Out<u32>,
) -> CudaResult {
    context::ensure_current()?;
    let enabled = isEnabled.check()?;
    call!(cuGraphNodeGetEnabled(hGraphExec, hNode, enabled.as_ptr()))
}

/// Has a node of an executable graph do its work or not.
#[entry_point]
fn cudaGraphNodeSetEnabled(
    hGraphExec: cudaGraphExec_t,
    hNode: cudaGraphNode_t,
    isEnabled: u32,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphNodeSetEnabled(hGraphExec, hNode, isEnabled))
}

fn instantiate(executable: Out<cudaGraphExec_t>, graph: cudaGraph_t, flags: u64) -> CudaResult {
    context::ensure_current()?;
    let executable = executable.check()?;
    call!(cuGraphInstantiateWithFlags(executable.as_ptr(), graph, flags))
}
