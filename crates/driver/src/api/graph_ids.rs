//! Graph management: numbers by which tools tell graphs and nodes apart. CUDA 13.1 added them: they are there for programs that look for
//! every name of a newer version, and `cuGetProcAddress` does not tell of them.

use crate::error::CuResult;
use crate::graphs::{find, find_executable, find_node, handle_of};
use cuda_abi::args::Out;
use cuda_abi::driver::*;
use entry_macros::entry_point;

/// No other graph that lives has it.
#[entry_point]
fn cuGraphGetId(hGraph: CUgraph, graphId: Out<u32>) -> CuResult {
    graphId.check()?;
    find(hGraph)?;
    graphId.set(number_of(hGraph.0))?;
    Ok(())
}

/// No other executable graph that lives has it.
#[entry_point]
fn cuGraphExecGetId(hGraphExec: CUgraphExec, graphId: Out<u32>) -> CuResult {
    graphId.check()?;
    find_executable(hGraphExec)?;
    graphId.set(number_of(hGraphExec.0))?;
    Ok(())
}

/// The part of a handle that differs between objects of one kind.
pub(super) fn number_of(handle: usize) -> u32 {
    handle as u32
}

/// The number that `cuGraphDebugDotPrint` draws the node with.
#[entry_point]
fn cuGraphNodeGetLocalId(hNode: CUgraphNode, nodeId: Out<u32>) -> CuResult {
    nodeId.check()?;
    let (node, graph) = find_node(hNode)?;
    nodeId.set(graph.local_number(node.id)?)?;
    Ok(())
}

/// No other node of the process has it.
#[entry_point]
fn cuGraphNodeGetToolsId(hNode: CUgraphNode, toolsNodeId: Out<u64>) -> CuResult {
    toolsNodeId.check()?;
    let (node, _) = find_node(hNode)?;
    toolsNodeId.set(node.id.number())?;
    Ok(())
}

#[entry_point]
fn cuGraphNodeGetContainingGraph(hNode: CUgraphNode, phGraph: Out<CUgraph>) -> CuResult {
    phGraph.check()?;
    let (_, graph) = find_node(hNode)?;
    phGraph.set(handle_of(&graph)?)?;
    Ok(())
}
