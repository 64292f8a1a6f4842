//! Graph management: conditional nodes.

use crate::contexts;
use crate::error::CuResult;
use crate::graphs::{destroy_node, find, find_node, node_handle, read_nodes};
use cuda_abi::args::{Array, Out};
use cuda_abi::driver::*;
use device::graph::ConditionalKind;
use entry_macros::entry_point;

/// The handle is the condition itself: kernels set it with a store.
#[entry_point]
fn cuGraphConditionalHandleCreate(
    pHandle_out: Out<CUgraphConditionalHandle>,
    hGraph: CUgraph,
    ctx: CUcontext,
    defaultLaunchValue: u32,
    flags: u32,
) -> CuResult {
    pHandle_out.check()?;
    let graph = find(hGraph)?;
    if flags & !CU_GRAPH_COND_ASSIGN_DEFAULT != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let context = contexts::find(ctx)?;
    let default = (flags & CU_GRAPH_COND_ASSIGN_DEFAULT != 0).then_some(defaultLaunchValue);
    pHandle_out.set(graph.add_condition(&context, default)?)?;
    Ok(())
}

/// Adds a conditional node; answers the array of the graphs that it chooses from.
pub fn add_conditional(
    place: Out<CUgraphNode>,
    graph: CUgraph,
    dependencies: Array<CUgraphNode>,
    count: usize,
    params: &CUDA_CONDITIONAL_NODE_PARAMS,
) -> CuResult<*mut CUgraph> {
    place.check()?;
    let graph = find(graph)?;
    let dependencies = read_nodes(dependencies, count)?;
    let kind = match params.r#type {
        CU_GRAPH_COND_TYPE_IF => ConditionalKind::If,
        CU_GRAPH_COND_TYPE_WHILE => ConditionalKind::While,
        CU_GRAPH_COND_TYPE_SWITCH => ConditionalKind::Switch,
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    };
    contexts::find(params.ctx)?.check()?;
    let bodies = params.size as usize;
    let (node, conditional) = graph.add_conditional(kind, params.handle, bodies, &dependencies)?;
    let handle = node_handle(&graph, node)?;
    place.set(handle)?;
    find_node(handle)?.0.describe_bodies(conditional.bodies()).inspect_err(|_| {
        let _ = destroy_node(handle);
    })
}
