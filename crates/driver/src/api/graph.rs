//! Graph management: graphs and executable graphs.

use super::graph_user_objects::ending_here;
use crate::error::CuResult;
use crate::functions;
use crate::graphs::{self, find, find_executable, find_node, node_handle, node_id, write_nodes};
use crate::streams;
use cuda_abi::args::{Array, In, Out};
use cuda_abi::driver::*;
use cuda_abi::shim::DefaultStream;
use device::graph::{Graph, KernelCall, NodeId, Operation, UpdateFailure};
use entry_macros::entry_point;
use std::ffi::c_char;
use std::sync::Arc;

#[entry_point]
fn cuGraphCreate(phGraph: Out<CUgraph>, flags: u32) -> CuResult {
    phGraph.check()?;
    if flags != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    phGraph.set(graphs::insert(Graph::new())?)?;
    Ok(())
}

#[entry_point]
fn cuGraphDestroy(hGraph: CUgraph) -> CuResult {
    if find(hGraph).is_ok_and(|graph| device::graph::is_captured_into(&graph)) {
        return Err(CUDA_ERROR_ILLEGAL_STATE.into());
    }
    ending_here(|| graphs::destroy(hGraph))
}

#[entry_point]
fn cuGraphClone(phGraphClone: Out<CUgraph>, originalGraph: CUgraph) -> CuResult {
    phGraphClone.check()?.set(graphs::insert(graphs::copy_of(originalGraph)?)?)?;
    Ok(())
}

#[entry_point]
fn cuGraphNodeFindInClone(
    phNode: Out<CUgraphNode>,
    hOriginalNode: CUgraphNode,
    hClonedGraph: CUgraph,
) -> CuResult {
    phNode.check()?;
    let clone = find(hClonedGraph)?;
    let node = clone.find_copy(node_id(hOriginalNode)?)?;
    phNode.set(node_handle(&clone, node)?)?;
    Ok(())
}

#[entry_point]
fn cuGraphGetNodes(hGraph: CUgraph, nodes: Array<CUgraphNode>, numNodes: Out<usize>) -> CuResult {
    let graph = find(hGraph)?;
    write_nodes(&graph, &graph.nodes(), nodes, numNodes)
}

#[entry_point]
fn cuGraphGetRootNodes(hGraph: CUgraph, rootNodes: Array<CUgraphNode>, numRootNodes: Out<usize>) -> CuResult {
    let graph = find(hGraph)?;
    write_nodes(&graph, &graph.roots(), rootNodes, numRootNodes)
}

#[entry_point]
fn cuGraphInstantiate(
    phGraphExec: Out<CUgraphExec>,
    hGraph: CUgraph,
    phErrorNode: Out<CUgraphNode>,
    logBuffer: Array<c_char>,
    bufferSize: usize,
) -> CuResult {
    instantiate_logged(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize)
}

#[entry_point]
fn cuGraphInstantiate_v2(
    phGraphExec: Out<CUgraphExec>,
    hGraph: CUgraph,
    phErrorNode: Out<CUgraphNode>,
    logBuffer: Array<c_char>,
    bufferSize: usize,
) -> CuResult {
    instantiate_logged(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize)
}

fn instantiate_logged(
    place: Out<CUgraphExec>,
    graph: CUgraph,
    error: Out<CUgraphNode>,
    log: Array<c_char>,
    size: usize,
) -> CuResult {
    place.check()?;
    let made = graphs::instantiate(graph, 0);
    error.set_if_wanted(made.as_ref().map_or_else(|unready| unready.node, |_| CUgraphNode::NULL));
    place.set(made?)?;
    if !log.is_null() && size > 0 {
        log.set(0, 0)?;
    }
    Ok(())
}

#[entry_point]
fn cuGraphInstantiateWithFlags(phGraphExec: Out<CUgraphExec>, hGraph: CUgraph, flags: u64) -> CuResult {
    check_flags(flags)?;
    // There is no stream to upload in.
    if flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    device::graph::check_unsafe_call()?;
    phGraphExec.check()?.set(graphs::instantiate(hGraph, flags)?)?;
    Ok(())
}

#[entry_point(ptsz)]
fn cuGraphInstantiateWithParams(
    default: DefaultStream,
    phGraphExec: Out<CUgraphExec>,
    hGraph: CUgraph,
    instantiateParams: Out<CUDA_GRAPH_INSTANTIATE_PARAMS>,
) -> CuResult {
    phGraphExec.check()?;
    // SAFETY: not null; the manual wants a structure that holds the wishes and gets the outcome.
    let mut params = unsafe { instantiateParams.check()?.as_ptr().read_unaligned() };
    if let Err(error) = check_flags(params.flags) {
        params.result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
        instantiateParams.set(params)?;
        return Err(error);
    }
    if params.flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD != 0 {
        // There is nothing to upload, and nothing to wait for.
        streams::find(params.hUploadStream, default)?;
    }
    device::graph::check_unsafe_call()?;
    let made = graphs::instantiate(hGraph, params.flags);
    (params.result_out, params.hErrNode_out) = match &made {
        Ok(_) => (CUDA_GRAPH_INSTANTIATE_SUCCESS, CUgraphNode::NULL),
        Err(unready) => (unready.reason, unready.node),
    };
    instantiateParams.set(params)?;
    phGraphExec.set(made?)?;
    Ok(())
}

fn check_flags(flags: u64) -> CuResult {
    let hints = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
        | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD
        | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH
        | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    // The device, which would launch it, cannot free what a launch left allocated.
    let apart = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
    match flags {
        flags if flags & apart == apart => Err(CUDA_ERROR_INVALID_VALUE.into()),
        flags if flags & !hints == 0 => Ok(()),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

#[entry_point]
fn cuGraphExecDestroy(hGraphExec: CUgraphExec) -> CuResult {
    ending_here(|| graphs::destroy_executable(hGraphExec))
}

#[entry_point]
fn cuGraphExecGetFlags(hGraphExec: CUgraphExec, flags: Out<u64>) -> CuResult {
    // The others are about how it is made.
    let kept = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
    flags.check()?.set(find_executable(hGraphExec)?.flags & kept)?;
    Ok(())
}

/// Kernels can launch it from then on, if they may.
#[entry_point(ptsz)]
fn cuGraphUpload(default: DefaultStream, hGraphExec: CUgraphExec, hStream: CUstream) -> CuResult {
    let executable = find_executable(hGraphExec)?;
    streams::find(hStream, default)?.check_not_capturing()?;
    executable.upload();
    Ok(())
}

#[entry_point(ptsz)]
fn cuGraphLaunch(default: DefaultStream, hGraphExec: CUgraphExec, hStream: CUstream) -> CuResult {
    let stream = streams::find(hStream, default)?;
    // That a stream captures is told before what is wrong with the graph.
    stream.check_not_capturing()?;
    find_executable(hGraphExec)?.launch(&stream)?;
    Ok(())
}

#[entry_point]
fn cuGraphExecUpdate(
    hGraphExec: CUgraphExec,
    hGraph: CUgraph,
    hErrorNode_out: Out<CUgraphNode>,
    updateResult_out: Out<CUgraphExecUpdateResult>,
) -> CuResult {
    let (result, node, _) = update(hGraphExec, hGraph)?;
    // As NVIDIA's driver has it since it has the other form: that names a topology without a node, this does not.
    let told = match result {
        CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED if node == CUgraphNode::NULL => {
            CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED
        }
        _ => result,
    };
    hErrorNode_out.set_if_wanted(node);
    updateResult_out.set_if_wanted(told);
    update_code(result)
}

#[entry_point]
fn cuGraphExecUpdate_v2(
    hGraphExec: CUgraphExec,
    hGraph: CUgraph,
    resultInfo: Out<CUgraphExecUpdateResultInfo>,
) -> CuResult {
    let (result, errorNode, errorFromNode) = update(hGraphExec, hGraph)?;
    let info = CUgraphExecUpdateResultInfo { result, errorNode, errorFromNode };
    resultInfo.set_if_wanted(info);
    update_code(result)
}

/// How an update ends, the node that is why, and the one that this should not depend on.
fn update(
    executable: CUgraphExec,
    graph: CUgraph,
) -> CuResult<(CUgraphExecUpdateResult, CUgraphNode, CUgraphNode)> {
    let graph = find(graph)?;
    let executable_graph = find_executable(executable)?;
    // What kernels change is not exchanged.
    if graph.has_updatable_nodes() || executable_graph.has_updatable_nodes() {
        return Err(CUDA_ERROR_NOT_SUPPORTED.into());
    }
    let Err(failure) = executable_graph.update(&graph) else {
        graphs::note_update(executable, &graph);
        return Ok((CU_GRAPH_EXEC_UPDATE_SUCCESS, CUgraphNode::NULL, CUgraphNode::NULL));
    };
    let (result, node, from) = match failure {
        UpdateFailure::CountChanged => (CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, None, None),
        UpdateFailure::TopologyChanged(node, from) => {
            (CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, Some(node), from)
        }
        UpdateFailure::AttributesChanged(node) => {
            (CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED, Some(node), None)
        }
        UpdateFailure::NodeTypeChanged(node) => {
            (CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, Some(node), None)
        }
        UpdateFailure::ParametersChanged(node) => {
            (CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, Some(node), None)
        }
        UpdateFailure::NotSupported(node) => (CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, Some(node), None),
    };
    let handle = |node: Option<_>| node.map_or(Ok(CUgraphNode::NULL), |node| node_handle(&graph, node));
    Ok((result, handle(node)?, handle(from)?))
}

fn update_code(result: CUgraphExecUpdateResult) -> CuResult {
    match result {
        CU_GRAPH_EXEC_UPDATE_SUCCESS => Ok(()),
        _ => Err(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE.into()),
    }
}

#[entry_point]
fn cuGraphNodeSetEnabled(hGraphExec: CUgraphExec, hNode: CUgraphNode, isEnabled: u32) -> CuResult {
    find_executable(hGraphExec)?.set_enabled(node_id(hNode)?, isEnabled != 0)?;
    Ok(())
}

#[entry_point]
fn cuGraphNodeGetEnabled(hGraphExec: CUgraphExec, hNode: CUgraphNode, isEnabled: Out<u32>) -> CuResult {
    isEnabled.check()?.set(find_executable(hGraphExec)?.is_enabled(node_id(hNode)?)?.into())?;
    Ok(())
}

#[entry_point]
fn cuGraphNodeGetType(hNode: CUgraphNode, r#type: Out<CUgraphNodeType>) -> CuResult {
    let (node, graph) = find_node(hNode)?;
    r#type.check()?.set(graphs::node_type(&graph.operation(node.id)?))?;
    Ok(())
}

#[entry_point]
fn cuGraphDestroyNode(hNode: CUgraphNode) -> CuResult {
    graphs::destroy_node(hNode)
}

#[entry_point]
fn cuGraphKernelNodeSetAttribute(
    hNode: CUgraphNode,
    attr: CUkernelNodeAttrID,
    value: In<CUkernelNodeAttrValue>,
) -> CuResult {
    let attribute = CUlaunchAttribute { id: attr, pad: [0; 4], value: value.get()? };
    check_of_nodes(attr)?;
    // SAFETY: one attribute, which is ours.
    let asked = unsafe { functions::asked(&attribute, 1) }?;
    let (node, graph) = find_node(hNode)?;
    let mut call = kernel_call(&graph, node.id)?;
    // Once kernels can change a node, they can as long as it lives. The program is told what they know it by.
    if attr == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE {
        if asked.updatable {
            let told = functions::updatable_value(graph.let_kernels_change(node.id)?.handle());
            // SAFETY: not null; the manual has the node written there.
            unsafe { value.as_ptr().cast_mut().write_unaligned(told) };
            return Ok(());
        }
        return if call.updatable.is_some() { Err(CUDA_ERROR_NOT_SUPPORTED.into()) } else { Ok(()) };
    }
    // The others are hints.
    match attr {
        CU_LAUNCH_ATTRIBUTE_COOPERATIVE => call.launch.cooperative = asked.cooperative,
        CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION => call.launch.cluster = asked.cluster,
        _ => {}
    }
    let operation = Operation::Kernel(call);
    operation.check_clusters()?;
    graph.set_operation(node.id, operation)?;
    node.set_attribute(attr, functions::kept(attr, attribute.value));
    Ok(())
}

/// Refuses the attributes of launches and of streams alone.
fn check_of_nodes(attribute: CUkernelNodeAttrID) -> CuResult {
    let of_others = matches!(
        attribute,
        CU_LAUNCH_ATTRIBUTE_IGNORE
            | CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY
            | CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            | CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT
            | CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION
            | CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT
    );
    if of_others || attribute.name().is_none() { Err(CUDA_ERROR_INVALID_VALUE.into()) } else { Ok(()) }
}

/// What a node has that nobody has set: zero, but for the domains of memory, of which remote accesses are in the second.
fn attribute_unset(attribute: CUkernelNodeAttrID) -> CUkernelNodeAttrValue {
    let mut bytes = [0; 64];
    bytes[1] = u8::from(attribute == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP);
    CUkernelNodeAttrValue { bytes }
}

#[entry_point]
fn cuGraphKernelNodeGetAttribute(
    hNode: CUgraphNode,
    attr: CUkernelNodeAttrID,
    value_out: Out<CUkernelNodeAttrValue>,
) -> CuResult {
    let value = value_out.check()?;
    let (node, graph) = find_node(hNode)?;
    let call = kernel_call(&graph, node.id)?;
    check_of_nodes(attr)?;
    // It can be set, and is not told.
    if attr == CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let mut known = node.attribute(attr).unwrap_or_else(|| attribute_unset(attr));
    if let (CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, Some(kernel)) = (attr, &call.updatable) {
        known = functions::updatable_value(kernel.handle());
    }
    if attr == CU_LAUNCH_ATTRIBUTE_COOPERATIVE {
        known.bytes[..4].copy_from_slice(&u32::from(call.launch.cooperative).to_ne_bytes());
    }
    if let (CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, Some(cluster)) = (attr, call.launch.cluster) {
        for (bytes, blocks) in known.bytes.chunks_exact_mut(4).zip(cluster) {
            bytes.copy_from_slice(&blocks.to_ne_bytes());
        }
    }
    value.set(known)?;
    Ok(())
}

#[entry_point]
fn cuGraphKernelNodeCopyAttributes(dst: CUgraphNode, src: CUgraphNode) -> CuResult {
    let ((to, to_graph), (from, from_graph)) = (find_node(dst)?, find_node(src)?);
    let source = kernel_call(&from_graph, from.id)?;
    let mut call = kernel_call(&to_graph, to.id)?;
    if source.updatable.is_some() || call.updatable.is_some() {
        return Err(CUDA_ERROR_NOT_SUPPORTED.into());
    }
    call.launch.cooperative = source.launch.cooperative;
    call.launch.cluster = source.launch.cluster;
    to_graph.set_operation(to.id, Operation::Kernel(call))?;
    if !Arc::ptr_eq(&to, &from) {
        to.copy_attributes(&from);
    }
    Ok(())
}

fn kernel_call(graph: &Graph, node: NodeId) -> CuResult<KernelCall> {
    match graph.operation(node)? {
        Operation::Kernel(call) => Ok(call),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}
