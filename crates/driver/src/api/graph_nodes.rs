//! Graph management: nodes and what they do.

use crate::error::CuResult;
use crate::graphs::{self, find, find_executable, find_node, node_id};
use crate::streams;
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
    graphs::add(phGraphNode, hGraph, dependencies, numDependencies, Operation::Empty)?;
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
    let operation = unsafe { graphs::kernel_operation(&graphs::newer(nodeParams.get()?)) }?;
    graphs::add(phGraphNode, hGraph, dependencies, numDependencies, operation)?;
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
    let operation = unsafe { graphs::kernel_operation(&nodeParams.get()?) }?;
    graphs::add(phGraphNode, hGraph, dependencies, numDependencies, operation)?;
    Ok(())
}

#[entry_point]
fn cuGraphKernelNodeGetParams(hNode: CUgraphNode, nodeParams: Out<CUDA_KERNEL_NODE_PARAMS_v1>) -> CuResult {
    let (node, graph) = find_node(hNode)?;
    nodeParams.check()?.set(graphs::older(node.kernel(&graph.operation(node.id)?)?))?;
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
    let operation = unsafe { graphs::kernel_operation(&graphs::newer(nodeParams.get()?)) }?;
    set(hNode, operation)
}

#[entry_point]
unsafe fn cuGraphKernelNodeSetParams_v2(
    hNode: CUgraphNode,
    nodeParams: In<CUDA_KERNEL_NODE_PARAMS>,
) -> CuResult {
    // SAFETY: the caller's duty.
    let operation = unsafe { graphs::kernel_operation(&nodeParams.get()?) }?;
    set(hNode, operation)
}

#[entry_point]
unsafe fn cuGraphExecKernelNodeSetParams(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    nodeParams: In<CUDA_KERNEL_NODE_PARAMS_v1>,
) -> CuResult {
    // SAFETY: the caller's duty.
    let operation = unsafe { graphs::kernel_operation(&graphs::newer(nodeParams.get()?)) }?;
    set_executable(hGraphExec, hNode, operation)
}

#[entry_point]
unsafe fn cuGraphExecKernelNodeSetParams_v2(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    nodeParams: In<CUDA_KERNEL_NODE_PARAMS>,
) -> CuResult {
    // SAFETY: the caller's duty.
    let operation = unsafe { graphs::kernel_operation(&nodeParams.get()?) }?;
    set_executable(hGraphExec, hNode, operation)
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
    let params = copyParams.get()?;
    // SAFETY: the caller's duty.
    let operation = unsafe { graphs::copy_operation(&params) }?;
    graphs::add(phGraphNode, hGraph, dependencies, numDependencies, operation)?.describe_copy(params);
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
    let params = nodeParams.get()?;
    // SAFETY: the caller's duty.
    set(hNode, unsafe { graphs::copy_operation(&params) }?)?;
    find_node(hNode)?.0.describe_copy(params);
    Ok(())
}

#[entry_point]
unsafe fn cuGraphExecMemcpyNodeSetParams(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    copyParams: In<CUDA_MEMCPY3D>,
    _ctx: CUcontext,
) -> CuResult {
    // SAFETY: the caller's duty.
    set_executable(hGraphExec, hNode, unsafe { graphs::copy_operation(&copyParams.get()?) }?)
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
    let operation = graphs::fill_operation(&memsetParams.get()?, Some(ctx))?;
    graphs::add(phGraphNode, hGraph, dependencies, numDependencies, operation)?;
    Ok(())
}

#[entry_point]
fn cuGraphMemsetNodeGetParams(hNode: CUgraphNode, nodeParams: Out<CUDA_MEMSET_NODE_PARAMS>) -> CuResult {
    let (node, graph) = find_node(hNode)?;
    nodeParams.check()?.set(graphs::fill_params(&graph.operation(node.id)?)?)?;
    Ok(())
}

#[entry_point]
fn cuGraphMemsetNodeSetParams(hNode: CUgraphNode, nodeParams: In<CUDA_MEMSET_NODE_PARAMS>) -> CuResult {
    set(hNode, graphs::fill_operation(&nodeParams.get()?, None)?)
}

#[entry_point]
fn cuGraphExecMemsetNodeSetParams(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    memsetParams: In<CUDA_MEMSET_NODE_PARAMS>,
    ctx: CUcontext,
) -> CuResult {
    set_executable(hGraphExec, hNode, graphs::fill_operation(&memsetParams.get()?, Some(ctx))?)
}

#[entry_point]
fn cuGraphAddHostNode(
    phGraphNode: Out<CUgraphNode>,
    hGraph: CUgraph,
    dependencies: Array<CUgraphNode>,
    numDependencies: usize,
    nodeParams: In<CUDA_HOST_NODE_PARAMS>,
) -> CuResult {
    let params = nodeParams.get()?;
    let operation = graphs::host_operation(&params)?;
    graphs::add(phGraphNode, hGraph, dependencies, numDependencies, operation)?.describe_host(params);
    Ok(())
}

#[entry_point]
fn cuGraphHostNodeGetParams(hNode: CUgraphNode, nodeParams: Out<CUDA_HOST_NODE_PARAMS>) -> CuResult {
    nodeParams.check()?.set(find_node(hNode)?.0.host()?)?;
    Ok(())
}

#[entry_point]
fn cuGraphHostNodeSetParams(hNode: CUgraphNode, nodeParams: In<CUDA_HOST_NODE_PARAMS>) -> CuResult {
    let params = nodeParams.get()?;
    set(hNode, graphs::host_operation(&params)?)?;
    find_node(hNode)?.0.describe_host(params);
    Ok(())
}

#[entry_point]
fn cuGraphExecHostNodeSetParams(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    nodeParams: In<CUDA_HOST_NODE_PARAMS>,
) -> CuResult {
    set_executable(hGraphExec, hNode, graphs::host_operation(&nodeParams.get()?)?)
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
    let child = find(childGraph)?.duplicate();
    graphs::add(phGraphNode, hGraph, dependencies, numDependencies, Operation::Child(child))?;
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
    let operation = Operation::Record(streams::find_event(event)?);
    graphs::add(phGraphNode, hGraph, dependencies, numDependencies, operation)?.describe_event(event);
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
    let operation = Operation::Wait(streams::find_event(event)?);
    graphs::add(phGraphNode, hGraph, dependencies, numDependencies, operation)?.describe_event(event);
    Ok(())
}

#[entry_point]
fn cuGraphEventRecordNodeGetEvent(hNode: CUgraphNode, event_out: Out<CUevent>) -> CuResult {
    event_out.check()?.set(find_node(hNode)?.0.event()?)?;
    Ok(())
}

#[entry_point]
fn cuGraphEventWaitNodeGetEvent(hNode: CUgraphNode, event_out: Out<CUevent>) -> CuResult {
    event_out.check()?.set(find_node(hNode)?.0.event()?)?;
    Ok(())
}

#[entry_point]
fn cuGraphEventRecordNodeSetEvent(hNode: CUgraphNode, event: CUevent) -> CuResult {
    set(hNode, Operation::Record(streams::find_event(event)?))?;
    find_node(hNode)?.0.describe_event(event);
    Ok(())
}

#[entry_point]
fn cuGraphEventWaitNodeSetEvent(hNode: CUgraphNode, event: CUevent) -> CuResult {
    set(hNode, Operation::Wait(streams::find_event(event)?))?;
    find_node(hNode)?.0.describe_event(event);
    Ok(())
}

#[entry_point]
fn cuGraphExecEventRecordNodeSetEvent(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    event: CUevent,
) -> CuResult {
    set_executable(hGraphExec, hNode, Operation::Record(streams::find_event(event)?))
}

#[entry_point]
fn cuGraphExecEventWaitNodeSetEvent(hGraphExec: CUgraphExec, hNode: CUgraphNode, event: CUevent) -> CuResult {
    set_executable(hGraphExec, hNode, Operation::Wait(streams::find_event(event)?))
}

#[entry_point]
fn cuGraphAddMemFreeNode(
    phGraphNode: Out<CUgraphNode>,
    hGraph: CUgraph,
    dependencies: Array<CUgraphNode>,
    numDependencies: usize,
    dptr: CUdeviceptr,
) -> CuResult {
    let operation = Operation::Free { address: dptr.0 };
    graphs::add(phGraphNode, hGraph, dependencies, numDependencies, operation)?;
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

fn set(node: CUgraphNode, operation: Operation) -> CuResult {
    let (node, graph) = find_node(node)?;
    graph.set_operation(node.id, operation)?;
    Ok(())
}

fn set_executable(executable: CUgraphExec, node: CUgraphNode, operation: Operation) -> CuResult {
    find_executable(executable)?.set_operation(node_id(node)?, operation)?;
    Ok(())
}
