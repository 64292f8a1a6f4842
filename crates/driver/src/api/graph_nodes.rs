//! Graph management: nodes and what they do.

use crate::error::CuResult;
use crate::graphs::{self, find_node};
use crate::node_work::{self, Work};
use cuda_abi::args::{Array, In, Out};
use cuda_abi::driver::*;
use device::graph::Operation;
use entry_macros::entry_point;

#[entry_point]
fn cuGraphAddEmptyNode(
    phGraphNode: Out<CUgraphNode>,
    hGraph: CUgraph,
    dependencies: Array<CUgraphNode>,
    numDependencies: usize,
) -> CuResult {
    graphs::add(phGraphNode, hGraph, dependencies, numDependencies, Operation::Empty.into())?;
    Ok(())
}

#[entry_point]
unsafe fn cuGraphAddKernelNode(
    phGraphNode: Out<CUgraphNode>,
    hGraph: CUgraph,
    dependencies: Array<CUgraphNode>,
    numDependencies: usize,
    nodeParams: In<CUDA_KERNEL_NODE_PARAMS_v1>,
) -> CuResult {
    // SAFETY: the caller's duty.
    let work = unsafe { Work::kernel(&node_work::newer(nodeParams.get()?)) }?;
    graphs::add(phGraphNode, hGraph, dependencies, numDependencies, work)?;
    Ok(())
}

#[entry_point]
unsafe fn cuGraphAddKernelNode_v2(
    phGraphNode: Out<CUgraphNode>,
    hGraph: CUgraph,
    dependencies: Array<CUgraphNode>,
    numDependencies: usize,
    nodeParams: In<CUDA_KERNEL_NODE_PARAMS>,
) -> CuResult {
    // SAFETY: the caller's duty.
    let work = unsafe { Work::kernel(&nodeParams.get()?) }?;
    graphs::add(phGraphNode, hGraph, dependencies, numDependencies, work)?;
    Ok(())
}

#[entry_point]
fn cuGraphKernelNodeGetParams(hNode: CUgraphNode, nodeParams: Out<CUDA_KERNEL_NODE_PARAMS_v1>) -> CuResult {
    let (node, graph) = find_node(hNode)?;
    nodeParams.check()?.set(node_work::older(node.kernel(&graph.operation(node.id)?)?))?;
    Ok(())
}

#[entry_point]
fn cuGraphKernelNodeGetParams_v2(hNode: CUgraphNode, nodeParams: Out<CUDA_KERNEL_NODE_PARAMS>) -> CuResult {
    let (node, graph) = find_node(hNode)?;
    nodeParams.check()?.set(node.kernel(&graph.operation(node.id)?)?)?;
    Ok(())
}

#[entry_point]
unsafe fn cuGraphKernelNodeSetParams(
    hNode: CUgraphNode,
    nodeParams: In<CUDA_KERNEL_NODE_PARAMS_v1>,
) -> CuResult {
    // SAFETY: the caller's duty.
    let work = unsafe { Work::kernel(&node_work::newer(nodeParams.get()?)) }?;
    graphs::set(hNode, work)
}

#[entry_point]
unsafe fn cuGraphKernelNodeSetParams_v2(
    hNode: CUgraphNode,
    nodeParams: In<CUDA_KERNEL_NODE_PARAMS>,
) -> CuResult {
    // SAFETY: the caller's duty.
    let work = unsafe { Work::kernel(&nodeParams.get()?) }?;
    graphs::set(hNode, work)
}

#[entry_point]
unsafe fn cuGraphExecKernelNodeSetParams(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    nodeParams: In<CUDA_KERNEL_NODE_PARAMS_v1>,
) -> CuResult {
    // SAFETY: the caller's duty.
    let work = unsafe { Work::kernel(&node_work::newer(nodeParams.get()?)) }?;
    graphs::set_in_executable(hGraphExec, hNode, work)
}

#[entry_point]
unsafe fn cuGraphExecKernelNodeSetParams_v2(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    nodeParams: In<CUDA_KERNEL_NODE_PARAMS>,
) -> CuResult {
    // SAFETY: the caller's duty.
    let work = unsafe { Work::kernel(&nodeParams.get()?) }?;
    graphs::set_in_executable(hGraphExec, hNode, work)
}

#[entry_point]
unsafe fn cuGraphAddMemcpyNode(
    phGraphNode: Out<CUgraphNode>,
    hGraph: CUgraph,
    dependencies: Array<CUgraphNode>,
    numDependencies: usize,
    copyParams: In<CUDA_MEMCPY3D>,
    _ctx: CUcontext,
) -> CuResult {
    // SAFETY: the caller's duty.
    let work = unsafe { Work::copy(copyParams.get()?) }?;
    graphs::add(phGraphNode, hGraph, dependencies, numDependencies, work)?;
    Ok(())
}

#[entry_point]
fn cuGraphMemcpyNodeGetParams(hNode: CUgraphNode, nodeParams: Out<CUDA_MEMCPY3D>) -> CuResult {
    let (node, graph) = find_node(hNode)?;
    nodeParams.check()?.set(node.copy(&graph.operation(node.id)?)?)?;
    Ok(())
}

#[entry_point]
unsafe fn cuGraphMemcpyNodeSetParams(hNode: CUgraphNode, nodeParams: In<CUDA_MEMCPY3D>) -> CuResult {
    // SAFETY: the caller's duty.
    graphs::set(hNode, unsafe { Work::copy(nodeParams.get()?) }?)
}

#[entry_point]
unsafe fn cuGraphExecMemcpyNodeSetParams(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    copyParams: In<CUDA_MEMCPY3D>,
    _ctx: CUcontext,
) -> CuResult {
    // SAFETY: the caller's duty.
    graphs::set_in_executable(hGraphExec, hNode, unsafe { Work::copy(copyParams.get()?) }?)
}

#[entry_point]
fn cuGraphAddMemsetNode(
    phGraphNode: Out<CUgraphNode>,
    hGraph: CUgraph,
    dependencies: Array<CUgraphNode>,
    numDependencies: usize,
    memsetParams: In<CUDA_MEMSET_NODE_PARAMS>,
    ctx: CUcontext,
) -> CuResult {
    let work = Work::fill(&memsetParams.get()?, ctx)?;
    graphs::add(phGraphNode, hGraph, dependencies, numDependencies, work)?;
    Ok(())
}

#[entry_point]
fn cuGraphMemsetNodeGetParams(hNode: CUgraphNode, nodeParams: Out<CUDA_MEMSET_NODE_PARAMS>) -> CuResult {
    let (node, graph) = find_node(hNode)?;
    nodeParams.check()?.set(node_work::fill_params(&graph.operation(node.id)?)?)?;
    Ok(())
}

#[entry_point]
fn cuGraphMemsetNodeSetParams(hNode: CUgraphNode, nodeParams: In<CUDA_MEMSET_NODE_PARAMS>) -> CuResult {
    graphs::set(hNode, Work::fill(&nodeParams.get()?, CUcontext::NULL)?)
}

#[entry_point]
fn cuGraphExecMemsetNodeSetParams(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    memsetParams: In<CUDA_MEMSET_NODE_PARAMS>,
    ctx: CUcontext,
) -> CuResult {
    graphs::set_in_executable(hGraphExec, hNode, Work::fill(&memsetParams.get()?, ctx)?)
}

#[entry_point]
fn cuGraphAddHostNode(
    phGraphNode: Out<CUgraphNode>,
    hGraph: CUgraph,
    dependencies: Array<CUgraphNode>,
    numDependencies: usize,
    nodeParams: In<CUDA_HOST_NODE_PARAMS>,
) -> CuResult {
    graphs::add(phGraphNode, hGraph, dependencies, numDependencies, Work::host(nodeParams.get()?)?)?;
    Ok(())
}

#[entry_point]
fn cuGraphHostNodeGetParams(hNode: CUgraphNode, nodeParams: Out<CUDA_HOST_NODE_PARAMS>) -> CuResult {
    nodeParams.check()?.set(find_node(hNode)?.0.host()?)?;
    Ok(())
}

#[entry_point]
fn cuGraphHostNodeSetParams(hNode: CUgraphNode, nodeParams: In<CUDA_HOST_NODE_PARAMS>) -> CuResult {
    graphs::set(hNode, Work::host(nodeParams.get()?)?)
}

#[entry_point]
fn cuGraphExecHostNodeSetParams(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    nodeParams: In<CUDA_HOST_NODE_PARAMS>,
) -> CuResult {
    graphs::set_in_executable(hGraphExec, hNode, Work::host(nodeParams.get()?)?)
}

/// The graph is taken as it is now.
#[entry_point]
fn cuGraphAddChildGraphNode(
    phGraphNode: Out<CUgraphNode>,
    hGraph: CUgraph,
    dependencies: Array<CUgraphNode>,
    numDependencies: usize,
    childGraph: CUgraph,
) -> CuResult {
    graphs::add(phGraphNode, hGraph, dependencies, numDependencies, Work::child(childGraph)?)?;
    Ok(())
}

#[entry_point]
fn cuGraphChildGraphNodeGetGraph(hNode: CUgraphNode, phGraph: Out<CUgraph>) -> CuResult {
    let (node, graph) = find_node(hNode)?;
    phGraph.check()?.set(node.child(&graph.operation(node.id)?)?)?;
    Ok(())
}

#[entry_point]
fn cuGraphAddEventRecordNode(
    phGraphNode: Out<CUgraphNode>,
    hGraph: CUgraph,
    dependencies: Array<CUgraphNode>,
    numDependencies: usize,
    event: CUevent,
) -> CuResult {
    graphs::add(phGraphNode, hGraph, dependencies, numDependencies, Work::record(event)?)?;
    Ok(())
}

#[entry_point]
fn cuGraphAddEventWaitNode(
    phGraphNode: Out<CUgraphNode>,
    hGraph: CUgraph,
    dependencies: Array<CUgraphNode>,
    numDependencies: usize,
    event: CUevent,
) -> CuResult {
    graphs::add(phGraphNode, hGraph, dependencies, numDependencies, Work::wait(event)?)?;
    Ok(())
}

#[entry_point]
fn cuGraphEventRecordNodeGetEvent(hNode: CUgraphNode, event_out: Out<CUevent>) -> CuResult {
    event_out.check()?;
    let (node, graph) = find_node(hNode)?;
    let Operation::Record(_) = graph.operation(node.id)? else { return Err(CUDA_ERROR_INVALID_VALUE.into()) };
    event_out.set(node.event()?)?;
    Ok(())
}

#[entry_point]
fn cuGraphEventWaitNodeGetEvent(hNode: CUgraphNode, event_out: Out<CUevent>) -> CuResult {
    event_out.check()?;
    let (node, graph) = find_node(hNode)?;
    let Operation::Wait(_) = graph.operation(node.id)? else { return Err(CUDA_ERROR_INVALID_VALUE.into()) };
    event_out.set(node.event()?)?;
    Ok(())
}

#[entry_point]
fn cuGraphEventRecordNodeSetEvent(hNode: CUgraphNode, event: CUevent) -> CuResult {
    graphs::set(hNode, Work::record(event)?)
}

#[entry_point]
fn cuGraphEventWaitNodeSetEvent(hNode: CUgraphNode, event: CUevent) -> CuResult {
    graphs::set(hNode, Work::wait(event)?)
}

#[entry_point]
fn cuGraphExecEventRecordNodeSetEvent(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    event: CUevent,
) -> CuResult {
    graphs::set_in_executable(hGraphExec, hNode, Work::record(event)?)
}

#[entry_point]
fn cuGraphExecEventWaitNodeSetEvent(hGraphExec: CUgraphExec, hNode: CUgraphNode, event: CUevent) -> CuResult {
    graphs::set_in_executable(hGraphExec, hNode, Work::wait(event)?)
}

#[entry_point]
unsafe fn cuGraphAddBatchMemOpNode(
    phGraphNode: Out<CUgraphNode>,
    hGraph: CUgraph,
    dependencies: Array<CUgraphNode>,
    numDependencies: usize,
    nodeParams: In<CUDA_BATCH_MEM_OP_NODE_PARAMS>,
) -> CuResult {
    // SAFETY: the caller's duty.
    let work = unsafe { Work::words(&nodeParams.get()?) }?;
    graphs::add(phGraphNode, hGraph, dependencies, numDependencies, work)?;
    Ok(())
}

#[entry_point]
fn cuGraphBatchMemOpNodeGetParams(
    hNode: CUgraphNode,
    nodeParams_out: Out<CUDA_BATCH_MEM_OP_NODE_PARAMS>,
) -> CuResult {
    let (node, graph) = find_node(hNode)?;
    nodeParams_out.check()?.set(node.words(&graph.operation(node.id)?)?)?;
    Ok(())
}

#[entry_point]
unsafe fn cuGraphBatchMemOpNodeSetParams(
    hNode: CUgraphNode,
    nodeParams: In<CUDA_BATCH_MEM_OP_NODE_PARAMS>,
) -> CuResult {
    // SAFETY: the caller's duty.
    graphs::set(hNode, unsafe { Work::words(&nodeParams.get()?) }?)
}

/// Number and sorts of the operations stay; addresses, values and comparisons may be others.
#[entry_point]
unsafe fn cuGraphExecBatchMemOpNodeSetParams(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    nodeParams: In<CUDA_BATCH_MEM_OP_NODE_PARAMS>,
) -> CuResult {
    // SAFETY: the caller's duty.
    graphs::set_in_executable(hGraphExec, hNode, unsafe { Work::words(&nodeParams.get()?) }?)
}

#[entry_point]
fn cuGraphAddMemFreeNode(
    phGraphNode: Out<CUgraphNode>,
    hGraph: CUgraph,
    dependencies: Array<CUgraphNode>,
    numDependencies: usize,
    dptr: CUdeviceptr,
) -> CuResult {
    graphs::add(phGraphNode, hGraph, dependencies, numDependencies, Work::free(dptr)?)?;
    Ok(())
}

#[entry_point]
fn cuGraphMemFreeNodeGetParams(hNode: CUgraphNode, dptr_out: Out<CUdeviceptr>) -> CuResult {
    let (node, graph) = find_node(hNode)?;
    let Operation::Free { address } = graph.operation(node.id)? else {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    };
    dptr_out.check()?.set(CUdeviceptr(address))?;
    Ok(())
}
