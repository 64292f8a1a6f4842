//! Nodes of any kind by one structure.

use super::kernel_nodes::launch_to_driver;
use crate::api::prelude::*;
use crate::context;
use crate::copy::describe_3d;

/// Adds a node. What the driver tells of it, the address of an allocation or the handle of a graph, goes back into the
/// structure.
#[entry_point]
fn cudaGraphAddNode(
    pGraphNode: Out<cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    dependencyData: *const cudaGraphEdgeData,
    numDependencies: usize,
    nodeParams: Array<cudaGraphNodeParams>,
) -> CudaResult {
    let (node, mut params) = (pGraphNode.check()?, to_driver(nodeParams)?);
    call!(cuGraphAddNode_v2(
        node.as_ptr(),
        graph,
        pDependencies,
        dependencyData,
        numDependencies,
        &mut params
    ))?;
    give_back(&params, nodeParams)
}

/// Makes a condition in the current context, for a conditional node of a graph.
#[entry_point]
fn cudaGraphConditionalHandleCreate(
    pHandle_out: Out<cudaGraphConditionalHandle>,
    graph: cudaGraph_t,
    defaultLaunchValue: u32,
    flags: u32,
) -> CudaResult {
    context::ensure_current()?;
    let handle = pHandle_out.check()?;
    call!(cuGraphConditionalHandleCreate(
        handle.as_ptr(),
        graph,
        context::current()?,
        defaultLaunchValue,
        flags
    ))
}

/// The same without the data of edges, as CUDA 12 has it.
#[entry_point]
fn cudaGraphAddNode_cuda12(
    pGraphNode: Out<cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    nodeParams: Array<cudaGraphNodeParams>,
) -> CudaResult {
    let (node, mut params) = (pGraphNode.check()?, to_driver(nodeParams)?);
    call!(cuGraphAddNode(node.as_ptr(), graph, pDependencies, numDependencies, &mut params))?;
    give_back(&params, nodeParams)
}

/// Sets what a node does.
#[entry_point]
fn cudaGraphNodeSetParams(node: cudaGraphNode_t, nodeParams: Array<cudaGraphNodeParams>) -> CudaResult {
    let mut params = to_driver(nodeParams)?;
    call!(cuGraphNodeSetParams(node, &mut params))
}

/// Sets what a node does in an executable graph.
#[entry_point]
fn cudaGraphExecNodeSetParams(
    graphExec: cudaGraphExec_t,
    node: cudaGraphNode_t,
    nodeParams: Array<cudaGraphNodeParams>,
) -> CudaResult {
    let mut params = to_driver(nodeParams)?;
    call!(cuGraphExecNodeSetParams(graphExec, node, &mut params))
}

/// The driver's description of a node.
fn to_driver(parameters: Array<cudaGraphNodeParams>) -> CudaResult<CUgraphNodeParams> {
    context::ensure_current()?;
    let (node, current) = (parameters.get(0)?, context::current()?);
    let mut params = CUgraphNodeParamsUnion { reserved1: [0; 29] };
    // No member reaches as far.
    // SAFETY: the union came from the caller's memory as a whole, and numbers may have any bits.
    if unsafe { node.params.reserved1 }[28] != 0 {
        return Err(cudaErrorInvalidValue);
    }
    // SAFETY: each member is read where the type says that it is set; every bit pattern of it is a value.
    unsafe {
        match node.r#type {
            CU_GRAPH_NODE_TYPE_KERNEL => params.kernel = launch_to_driver(&node.params.kernel)?,
            CU_GRAPH_NODE_TYPE_MEMCPY => {
                let copy = node.params.memcpy;
                params.memcpy = CUDA_MEMCPY_NODE_PARAMS {
                    flags: copy.flags,
                    reserved: 0,
                    copyCtx: CUcontext::NULL,
                    copyParams: describe_3d(&copy.copyParams)?.ok_or(cudaErrorInvalidValue)?,
                };
            }
            CU_GRAPH_NODE_TYPE_MEMSET => {
                let fill = node.params.memset;
                params.memset = CUDA_MEMSET_NODE_PARAMS_v2 {
                    dst: fill.dst,
                    pitch: fill.pitch,
                    value: fill.value,
                    elementSize: fill.elementSize,
                    width: fill.width,
                    height: fill.height,
                    ctx: CUcontext::NULL,
                };
            }
            CU_GRAPH_NODE_TYPE_CONDITIONAL => {
                let cudaConditionalNodeParams { handle, r#type, size, .. } = node.params.conditional;
                params.conditional = CUDA_CONDITIONAL_NODE_PARAMS {
                    handle,
                    r#type,
                    size,
                    phGraph_out: std::ptr::null_mut(),
                    ctx: current,
                };
            }
            // The rest is laid out alike.
            _ => params.reserved1 = node.params.reserved1,
        }
    }
    Ok(CUgraphNodeParams {
        r#type: node.r#type,
        reserved0: node.reserved0,
        params,
        reserved2: node.reserved2,
    })
}

fn give_back(added: &CUgraphNodeParams, parameters: Array<cudaGraphNodeParams>) -> CudaResult {
    let mut node = parameters.get(0)?;
    // SAFETY: these members are laid out alike, and the type says which is set.
    unsafe {
        match node.r#type {
            CU_GRAPH_NODE_TYPE_MEM_ALLOC => node.params.alloc.dptr = added.params.alloc.dptr,
            CU_GRAPH_NODE_TYPE_CONDITIONAL => {
                node.params.conditional.phGraph_out = added.params.conditional.phGraph_out;
            }
            CU_GRAPH_NODE_TYPE_GRAPH => node.params.graph.graph = added.params.graph.graph,
            _ => return Ok(()),
        }
    }
    parameters.set(0, node)?;
    Ok(())
}
