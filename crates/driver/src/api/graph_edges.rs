//! Graph management: edges, and what of a node they wait for.

use crate::error::CuResult;
use crate::graphs::{find, find_node, read_nodes, write_nodes};
use cuda_abi::args::{Array, Out};
use cuda_abi::driver::*;
use device::graph::{EdgeStart, Graph, NodeId, Tip};
use entry_macros::entry_point;
use std::sync::Arc;

#[entry_point]
fn cuGraphGetEdges(
    hGraph: CUgraph,
    from: Array<CUgraphNode>,
    to: Array<CUgraphNode>,
    numEdges: Out<usize>,
) -> CuResult {
    edges(hGraph, from, to, no_data(), numEdges)
}

#[entry_point]
fn cuGraphGetEdges_v2(
    hGraph: CUgraph,
    from: Array<CUgraphNode>,
    to: Array<CUgraphNode>,
    edgeData: Array<CUgraphEdgeData>,
    numEdges: Out<usize>,
) -> CuResult {
    edges(hGraph, from, to, edgeData, numEdges)
}

fn edges(
    graph: CUgraph,
    from: Array<CUgraphNode>,
    to: Array<CUgraphNode>,
    data: Array<CUgraphEdgeData>,
    count: Out<usize>,
) -> CuResult {
    let graph = find(graph)?;
    let edges = graph.edges();
    let place = count.check()?.as_ptr();
    if from.is_null() != to.is_null() || from.is_null() && !data.is_null() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    // SAFETY: not null; the manual wants the arrays' length in it.
    let room = if from.is_null() { 0 } else { unsafe { place.read_unaligned() } };
    write_starts(&graph, &edges, data, room)?;
    let (sources, targets): (Vec<_>, Vec<_>) = edges.into_iter().unzip();
    write_nodes(&graph, &sources, from, count)?;
    if !to.is_null() {
        count.set(room)?;
        write_nodes(&graph, &targets, to, count)?;
    }
    Ok(())
}

#[entry_point]
fn cuGraphAddDependencies(
    hGraph: CUgraph,
    from: Array<CUgraphNode>,
    to: Array<CUgraphNode>,
    numDependencies: usize,
) -> CuResult {
    add_edges(hGraph, from, to, no_data(), numDependencies)
}

#[entry_point]
fn cuGraphAddDependencies_v2(
    hGraph: CUgraph,
    from: Array<CUgraphNode>,
    to: Array<CUgraphNode>,
    edgeData: Array<CUgraphEdgeData>,
    numDependencies: usize,
) -> CuResult {
    add_edges(hGraph, from, to, edgeData, numDependencies)
}

fn add_edges(
    graph: CUgraph,
    from: Array<CUgraphNode>,
    to: Array<CUgraphNode>,
    data: Array<CUgraphEdgeData>,
    count: usize,
) -> CuResult {
    let graph = find(graph)?;
    let starts = read_starts(data, count)?;
    let pairs = read_nodes(from, count)?.into_iter().zip(read_nodes(to, count)?);
    for ((from, to), start) in pairs.zip(starts) {
        graph.add_edge(from, to)?;
        graph.set_edge_start(from, to, start).or_else(|impossible| {
            graph.remove_edge(from, to)?;
            Err(impossible)
        })?;
    }
    Ok(())
}

#[entry_point]
fn cuGraphRemoveDependencies(
    hGraph: CUgraph,
    from: Array<CUgraphNode>,
    to: Array<CUgraphNode>,
    numDependencies: usize,
) -> CuResult {
    remove_edges(hGraph, from, to, no_data(), numDependencies)
}

#[entry_point]
fn cuGraphRemoveDependencies_v2(
    hGraph: CUgraph,
    from: Array<CUgraphNode>,
    to: Array<CUgraphNode>,
    edgeData: Array<CUgraphEdgeData>,
    numDependencies: usize,
) -> CuResult {
    remove_edges(hGraph, from, to, edgeData, numDependencies)
}

/// What the edges are said to wait for does not matter. A graph that allocates keeps its edges.
fn remove_edges(
    graph: CUgraph,
    from: Array<CUgraphNode>,
    to: Array<CUgraphNode>,
    data: Array<CUgraphEdgeData>,
    count: usize,
) -> CuResult {
    let graph = find(graph)?;
    read_starts(data, count)?;
    if graph.has_memory_nodes() {
        return Err(CUDA_ERROR_NOT_SUPPORTED.into());
    }
    for (from, to) in read_nodes(from, count)?.into_iter().zip(read_nodes(to, count)?) {
        graph.remove_edge(from, to)?;
    }
    Ok(())
}

#[entry_point]
fn cuGraphNodeGetDependencies(
    hNode: CUgraphNode,
    dependencies: Array<CUgraphNode>,
    numDependencies: Out<usize>,
) -> CuResult {
    dependencies_of(hNode, dependencies, no_data(), numDependencies)
}

#[entry_point]
fn cuGraphNodeGetDependencies_v2(
    hNode: CUgraphNode,
    dependencies: Array<CUgraphNode>,
    edgeData: Array<CUgraphEdgeData>,
    numDependencies: Out<usize>,
) -> CuResult {
    dependencies_of(hNode, dependencies, edgeData, numDependencies)
}

fn dependencies_of(
    node: CUgraphNode,
    array: Array<CUgraphNode>,
    data: Array<CUgraphEdgeData>,
    count: Out<usize>,
) -> CuResult {
    let (node, graph) = find_node(node)?;
    let nodes = graph.dependencies(node.id)?;
    let edges: Vec<_> = nodes.iter().map(|from| (*from, node.id)).collect();
    write_ends(&graph, &edges, &nodes, array, data, count)
}

#[entry_point]
fn cuGraphNodeGetDependentNodes(
    hNode: CUgraphNode,
    dependentNodes: Array<CUgraphNode>,
    numDependentNodes: Out<usize>,
) -> CuResult {
    dependents_of(hNode, dependentNodes, no_data(), numDependentNodes)
}

#[entry_point]
fn cuGraphNodeGetDependentNodes_v2(
    hNode: CUgraphNode,
    dependentNodes: Array<CUgraphNode>,
    edgeData: Array<CUgraphEdgeData>,
    numDependentNodes: Out<usize>,
) -> CuResult {
    dependents_of(hNode, dependentNodes, edgeData, numDependentNodes)
}

fn dependents_of(
    node: CUgraphNode,
    array: Array<CUgraphNode>,
    data: Array<CUgraphEdgeData>,
    count: Out<usize>,
) -> CuResult {
    let (node, graph) = find_node(node)?;
    let nodes = graph.dependents(node.id)?;
    let edges: Vec<_> = nodes.iter().map(|to| (node.id, *to)).collect();
    write_ends(&graph, &edges, &nodes, array, data, count)
}

/// Writes the nodes at one end of edges, and what the edges wait for.
fn write_ends(
    graph: &Arc<Graph>,
    edges: &[(NodeId, NodeId)],
    nodes: &[NodeId],
    array: Array<CUgraphNode>,
    data: Array<CUgraphEdgeData>,
    count: Out<usize>,
) -> CuResult {
    let place = count.check()?.as_ptr();
    // SAFETY: not null; the manual wants the array's length in it.
    let room = if array.is_null() { 0 } else { unsafe { place.read_unaligned() } };
    write_starts(graph, edges, data, room)?;
    write_nodes(graph, nodes, array, count)
}

/// Writes what edges wait for, as many as there is room for; without a place for it that must be the end of a node.
fn write_starts(
    graph: &Graph,
    edges: &[(NodeId, NodeId)],
    data: Array<CUgraphEdgeData>,
    room: usize,
) -> CuResult {
    for (index, (from, to)) in edges.iter().take(room).enumerate() {
        let start = graph.edge_start(*from, *to)?;
        match data.is_null() {
            true if start == EdgeStart::End => {}
            true => return Err(CUDA_ERROR_LOSSY_QUERY.into()),
            false => data.set(index, data_of(start))?,
        }
    }
    Ok(())
}

/// An array of edge data that nobody gave.
pub fn no_data() -> Array<CUgraphEdgeData> {
    // SAFETY: null is allowed.
    unsafe { Array::new(std::ptr::null_mut()) }
}

/// What edges wait for; without data it is the end of a node.
pub fn read_starts(data: Array<CUgraphEdgeData>, count: usize) -> CuResult<Vec<EdgeStart>> {
    if data.is_null() {
        return Ok(vec![EdgeStart::End; count]);
    }
    (0..count).map(|index| start_of(data.get(index)?)).collect()
}

fn start_of(data: CUgraphEdgeData) -> CuResult<EdgeStart> {
    if data.to_port != 0 || data.reserved != [0; 5] {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    match (data.from_port, data.r#type) {
        (CU_GRAPH_KERNEL_NODE_PORT_DEFAULT, CU_GRAPH_DEPENDENCY_TYPE_DEFAULT) => Ok(EdgeStart::End),
        (CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER, CU_GRAPH_DEPENDENCY_TYPE_DEFAULT) => {
            Ok(EdgeStart::Begun { programmatic: false })
        }
        (CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC) => {
            Ok(EdgeStart::Begun { programmatic: true })
        }
        (CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC) => {
            Ok(EdgeStart::Triggered)
        }
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

/// As the manual says it.
pub fn data_of(start: EdgeStart) -> CUgraphEdgeData {
    let (from_port, r#type) = match start {
        EdgeStart::End => (CU_GRAPH_KERNEL_NODE_PORT_DEFAULT, CU_GRAPH_DEPENDENCY_TYPE_DEFAULT),
        EdgeStart::Begun { programmatic: false } => {
            (CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER, CU_GRAPH_DEPENDENCY_TYPE_DEFAULT)
        }
        EdgeStart::Begun { programmatic: true } => {
            (CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)
        }
        EdgeStart::Triggered => {
            (CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)
        }
    };
    CUgraphEdgeData { from_port, r#type, ..CUgraphEdgeData::default() }
}

/// Nodes that what is captured next depends on, and what of them. Only kernels have parts that can be waited for; anything may wait.
pub fn read_tips(
    graph: &Graph,
    nodes: Array<CUgraphNode>,
    data: Array<CUgraphEdgeData>,
    count: usize,
) -> CuResult<Vec<Tip>> {
    let nodes = read_nodes(nodes, count)?;
    let tips = nodes.into_iter().zip(read_starts(data, count)?).map(|(node, start)| Tip { node, start });
    let tips: Vec<_> = tips.collect();
    for tip in &tips {
        if !tip.start.is_possible(graph.is_kernel(tip.node)?, true) {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
    }
    Ok(tips)
}
