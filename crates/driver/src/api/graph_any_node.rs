//! Graph management: nodes of any kind by one structure, and nodes that allocate.

use super::graph_conditional::add_conditional;
use super::graph_edges::read_starts;
use crate::contexts;
use crate::error::CuResult;
use crate::graphs::{self, find, find_executable, find_node, node_handle, node_id, read_nodes};
use crate::node_work::Work;
use crate::platform::device;
use cuda_abi::args::{Array, Out};
use cuda_abi::driver::*;
use device::graph::EdgeStart;
use entry_macros::entry_point;

#[entry_point]
unsafe fn cuGraphAddNode(
    phGraphNode: Out<CUgraphNode>,
    hGraph: CUgraph,
    dependencies: Array<CUgraphNode>,
    numDependencies: usize,
    nodeParams: Array<CUgraphNodeParams>,
) -> CuResult {
    // SAFETY: the caller's duty.
    unsafe { add(phGraphNode, hGraph, dependencies, numDependencies, nodeParams) }
}

#[entry_point]
unsafe fn cuGraphAddNode_v2(
    phGraphNode: Out<CUgraphNode>,
    hGraph: CUgraph,
    dependencies: Array<CUgraphNode>,
    dependencyData: Array<CUgraphEdgeData>,
    numDependencies: usize,
    nodeParams: Array<CUgraphNodeParams>,
) -> CuResult {
    let starts = read_starts(dependencyData, numDependencies)?;
    if starts.iter().all(|start| *start == EdgeStart::End) {
        // SAFETY: the caller's duty.
        return unsafe { add(phGraphNode, hGraph, dependencies, numDependencies, nodeParams) };
    }
    // What could be wrong about the edges is, before there is a node.
    let graph = find(hGraph)?;
    let sources = read_nodes(dependencies, numDependencies)?;
    let is_kernel = nodeParams.get(0)?.r#type == CU_GRAPH_NODE_TYPE_KERNEL;
    for (from, start) in sources.iter().zip(&starts) {
        if !start.is_possible(graph.is_kernel(*from)?, is_kernel) {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
    }
    // SAFETY: the caller's duty.
    unsafe { add(phGraphNode, hGraph, dependencies, numDependencies, nodeParams) }?;
    // SAFETY: `add` has just written it.
    let (node, _) = find_node(unsafe { phGraphNode.as_ptr().read_unaligned() })?;
    for (from, start) in sources.into_iter().zip(starts) {
        graph.set_edge_start(from, node.id, start)?;
    }
    Ok(())
}

#[entry_point]
unsafe fn cuGraphNodeSetParams(hNode: CUgraphNode, nodeParams: Array<CUgraphNodeParams>) -> CuResult {
    let params = nodeParams.get(0)?;
    check_unused(&params)?;
    // SAFETY: the caller's duty.
    graphs::set(hNode, unsafe { Work::any(&params) }?)
}

#[entry_point]
unsafe fn cuGraphExecNodeSetParams(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    nodeParams: Array<CUgraphNodeParams>,
) -> CuResult {
    let params = nodeParams.get(0)?;
    check_unused(&params)?;
    // SAFETY: the caller's duty.
    graphs::set_in_executable(hGraphExec, hNode, unsafe { Work::any(&params) }?)
}

#[entry_point]
fn cuGraphExecChildGraphNodeSetParams(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    childGraph: CUgraph,
) -> CuResult {
    find_executable(hGraphExec)?.set_child(node_id(hNode)?, &*find(childGraph)?)?;
    Ok(())
}

/// The address is told at once; the memory lives as long as the graph.
#[entry_point]
unsafe fn cuGraphAddMemAllocNode(
    phGraphNode: Out<CUgraphNode>,
    hGraph: CUgraph,
    dependencies: Array<CUgraphNode>,
    numDependencies: usize,
    nodeParams: Array<CUDA_MEM_ALLOC_NODE_PARAMS>,
) -> CuResult {
    let params = nodeParams.get(0)?;
    // SAFETY: the caller's duty.
    let allocated = unsafe { allocate(phGraphNode, hGraph, dependencies, numDependencies, params) }?;
    nodeParams.set(0, allocated)?;
    Ok(())
}

#[entry_point]
fn cuGraphMemAllocNodeGetParams(hNode: CUgraphNode, params_out: Out<CUDA_MEM_ALLOC_NODE_PARAMS>) -> CuResult {
    let (node, graph) = find_node(hNode)?;
    params_out.check()?.set(node.allocation(&graph.operation(node.id)?)?)?;
    Ok(())
}

/// # Safety
/// Kernel parameters and host memory are as the functions for these nodes ask; lists are as long as their counts say.
unsafe fn add(
    place: Out<CUgraphNode>,
    graph: CUgraph,
    dependencies: Array<CUgraphNode>,
    count: usize,
    params: Array<CUgraphNodeParams>,
) -> CuResult {
    let mut wanted = params.get(0)?;
    check_unused(&wanted)?;
    if wanted.r#type == CU_GRAPH_NODE_TYPE_MEM_ALLOC {
        // SAFETY: the type says that this member is set; the caller's duty.
        let allocated = unsafe { allocate(place, graph, dependencies, count, wanted.params.alloc) }?;
        wanted.params.alloc = allocated;
        params.set(0, wanted)?;
        return Ok(());
    }
    if wanted.r#type == CU_GRAPH_NODE_TYPE_CONDITIONAL {
        // SAFETY: the type says that this member is set.
        let conditional = unsafe { &mut wanted.params.conditional };
        conditional.phGraph_out = add_conditional(place, graph, dependencies, count, conditional)?;
        params.set(0, wanted)?;
        return Ok(());
    }
    // SAFETY: the caller's duty.
    let work = unsafe { Work::any(&wanted) }?;
    graphs::add(place, graph, dependencies, count, work)?;
    Ok(())
}

/// Bytes that a node of this type has no use for are zero (Driver API, `CUgraphNodeParams`).
fn check_unused(params: &CUgraphNodeParams) -> CuResult {
    let used = match params.r#type {
        CU_GRAPH_NODE_TYPE_KERNEL => size_of::<CUDA_KERNEL_NODE_PARAMS>(),
        CU_GRAPH_NODE_TYPE_MEMCPY => size_of::<CUDA_MEMCPY_NODE_PARAMS>(),
        CU_GRAPH_NODE_TYPE_MEMSET => size_of::<CUDA_MEMSET_NODE_PARAMS_v2>(),
        CU_GRAPH_NODE_TYPE_HOST => size_of::<CUDA_HOST_NODE_PARAMS>(),
        CU_GRAPH_NODE_TYPE_EMPTY => 0,
        // What a GPU's driver answers for the others is not known.
        _ => size_of::<CUgraphNodeParamsUnion>(),
    };
    // SAFETY: the union came from the caller's memory as a whole, and numbers may have any bits.
    let words = unsafe { params.params.reserved1 };
    let is_unused = words[used.div_ceil(size_of::<i64>())..].iter().all(|word| *word == 0);
    if is_unused && params.reserved0 == [0; 3] && params.reserved2 == 0 {
        return Ok(());
    }
    Err(CUDA_ERROR_INVALID_VALUE.into())
}

/// Adds a node that allocates; its description with the address.
///
/// # Safety
/// The list of who may access the memory is as long as its count says.
unsafe fn allocate(
    place: Out<CUgraphNode>,
    graph: CUgraph,
    dependencies: Array<CUgraphNode>,
    count: usize,
    mut params: CUDA_MEM_ALLOC_NODE_PARAMS,
) -> CuResult<CUDA_MEM_ALLOC_NODE_PARAMS> {
    place.check()?;
    let graph = find(graph)?;
    let dependencies = read_nodes(dependencies, count)?;
    let location = params.poolProps.location;
    // What there is, of which little is supported.
    const PLACES: [CUmemLocationType; 3] =
        [CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_HOST_NUMA];
    const HANDLES: [CUmemAllocationHandleType; 3] =
        [CU_MEM_HANDLE_TYPE_NONE, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, CU_MEM_HANDLE_TYPE_FABRIC];
    if params.bytesize == 0
        || params.poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED
        || params.poolProps.reserved.iter().any(|byte| *byte != 0)
        || !HANDLES.contains(&CUmemAllocationHandleType(params.poolProps.handleTypes))
        || !PLACES.contains(&location.r#type)
    {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    // What graphs allocate is a device's, and not shared between processes.
    if params.poolProps.handleTypes != 0 || location.r#type != CU_MEM_LOCATION_TYPE_DEVICE {
        return Err(CUDA_ERROR_NOT_SUPPORTED.into());
    }
    device(location.id).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    let context = contexts::usable()?;
    // SAFETY: the caller's list.
    let access = unsafe { Array::new(params.accessDescs.cast_mut()) };
    let access =
        (0..params.accessDescCount).map(|index| access.get(index)).collect::<Result<Box<[_]>, _>>()?;
    for access in &access {
        device(access.location.id)?;
        // Everything may be done with it.
        if access.flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE.0 {
            return Err(CUDA_ERROR_NOT_SUPPORTED.into());
        }
    }
    let (id, address) = graph.add_allocation(&context, params.bytesize as u64, &dependencies)?;
    let handle = node_handle(&graph, id)?;
    place.set(handle)?;
    params.dptr = CUdeviceptr(address);
    find_node(handle)?.0.describe_allocation(params, access);
    Ok(params)
}
