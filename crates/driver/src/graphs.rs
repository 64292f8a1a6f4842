//! Graphs, their nodes and executable graphs behind their handles.
//!
//! A node's handle leads to its graph. Nodes that a capture made have no handle until somebody asks for it.

use crate::error::CuResult;
use crate::functions;
use crate::handle::{Kind, Table};
use crate::node_work::Work;
use crate::transfers;
use cuda_abi::args::{Array, Out};
use cuda_abi::driver::*;
use device::graph::{ExecutableGraph, Graph, NodeId, Operation};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

static GRAPHS: Table<Owned> = Table::new(Kind::Graph);
static NODES: Table<Node> = Table::new(Kind::GraphNode);
static EXECUTABLES: Table<ExecutableGraph> = Table::new(Kind::GraphExec);

/// A graph of the program's, or the graph of a child node, which goes with its node.
struct Owned {
    graph: Arc<Graph>,
}

/// A node that has a handle.
pub struct Node {
    /// Its identity.
    pub id: NodeId,
    /// Its graph.
    graph: Weak<Graph>,
    /// What the program described it by, to be given back.
    described: Mutex<Option<Description>>,
    /// Attributes of a kernel that the program set.
    attributes: Mutex<HashMap<CUlaunchAttributeID, CUlaunchAttributeValue>>,
}

/// What only the program's own structures tell.
pub enum Description {
    Copy(CUDA_MEMCPY3D),
    Host(CUDA_HOST_NODE_PARAMS),
    Event(CUevent),
    Child(CUgraph),
    /// An allocation; the pointer in it leads to the list beside it.
    Allocation {
        params: CUDA_MEM_ALLOC_NODE_PARAMS,
        _access: Box<[CUmemAccessDesc]>,
    },
    /// Parameters of a kernel, and the pointers to them that the program was given.
    Pointers {
        _block: Box<[u8]>,
        pointers: Box<[*mut c_void]>,
    },
}

// SAFETY: the pointers are the program's or lead to the block beside them; nobody here follows them.
unsafe impl Send for Description {}

/// Handles of nodes by identity.
fn handles() -> &'static Mutex<HashMap<NodeId, CUgraphNode>> {
    static HANDLES: OnceLock<Mutex<HashMap<NodeId, CUgraphNode>>> = OnceLock::new();
    HANDLES.get_or_init(Mutex::default)
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The graph of a handle.
pub fn find(handle: CUgraph) -> CuResult<Arc<Graph>> {
    match GRAPHS.get(handle.0) {
        Ok(found) => Ok(found.graph.clone()),
        Err(_) => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

/// Gives a graph a handle.
pub fn insert(graph: Arc<Graph>) -> CuResult<CUgraph> {
    GRAPHS.insert(Arc::new(Owned { graph })).map(CUgraph).ok_or(CUDA_ERROR_OUT_OF_MEMORY.into())
}

/// The handle of a graph that has one, or a new one.
pub fn handle_of(graph: &Arc<Graph>) -> CuResult<CUgraph> {
    let known = GRAPHS.find_all(|owned| Arc::ptr_eq(&owned.graph, graph));
    known.first().map_or_else(|| insert(graph.clone()), |(handle, _)| Ok(CUgraph(*handle)))
}

/// Makes the handles of a graph and its nodes stale.
pub fn destroy(handle: CUgraph) -> CuResult {
    let owned = GRAPHS.remove(handle.0).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    for node in owned.graph.nodes() {
        forget_node(node);
    }
    Ok(())
}

/// The executable graph of a handle.
pub fn find_executable(handle: CUgraphExec) -> CuResult<Arc<ExecutableGraph>> {
    EXECUTABLES.get(handle.0).map_err(|_| CUDA_ERROR_INVALID_VALUE.into())
}

/// Makes a graph ready to be launched.
pub fn instantiate(handle: CUgraph) -> CuResult<CUgraphExec> {
    let executable = Arc::new(ExecutableGraph::new(&*find(handle)?));
    EXECUTABLES.insert(executable).map(CUgraphExec).ok_or(CUDA_ERROR_OUT_OF_MEMORY.into())
}

/// Makes the handle of an executable graph stale; launches go on.
pub fn destroy_executable(handle: CUgraphExec) -> CuResult {
    EXECUTABLES.remove(handle.0).map(drop).map_err(|_| CUDA_ERROR_INVALID_VALUE.into())
}

/// The node of a handle, and its graph.
pub fn find_node(handle: CUgraphNode) -> CuResult<(Arc<Node>, Arc<Graph>)> {
    let node = NODES.get(handle.0).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    let graph = node.graph.upgrade().ok_or(CUDA_ERROR_INVALID_VALUE)?;
    Ok((node, graph))
}

/// The identity behind a node's handle; the graph may be gone, as it may when an executable graph is updated.
pub fn node_id(handle: CUgraphNode) -> CuResult<NodeId> {
    Ok(NODES.get(handle.0).map_err(|_| CUDA_ERROR_INVALID_VALUE)?.id)
}

/// The handle of a node.
pub fn node_handle(graph: &Arc<Graph>, id: NodeId) -> CuResult<CUgraphNode> {
    let mut handles = locked(handles());
    if let Some(handle) = handles.get(&id) {
        return Ok(*handle);
    }
    let node =
        Node { id, graph: Arc::downgrade(graph), described: Mutex::new(None), attributes: Mutex::default() };
    let handle = NODES.insert(Arc::new(node)).map(CUgraphNode).ok_or(CUDA_ERROR_OUT_OF_MEMORY)?;
    handles.insert(id, handle);
    Ok(handle)
}

/// Removes a node from its graph and makes its handle stale.
pub fn destroy_node(handle: CUgraphNode) -> CuResult {
    let (node, graph) = find_node(handle)?;
    graph.remove(node.id)?;
    forget_node(node.id);
    Ok(())
}

fn forget_node(id: NodeId) {
    if let Some(handle) = locked(handles()).remove(&id) {
        let _ = NODES.remove(handle.0);
    }
}

/// The identities behind an array of handles.
pub fn read_nodes(nodes: Array<CUgraphNode>, count: usize) -> CuResult<Vec<NodeId>> {
    if count > 0 && nodes.is_null() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    (0..count).map(|index| node_id(nodes.get(index)?)).collect()
}

/// Writes nodes as the listing functions do: without an array only their number; what is left of the array becomes null.
pub fn write_nodes(
    graph: &Arc<Graph>,
    nodes: &[NodeId],
    array: Array<CUgraphNode>,
    count: Out<usize>,
) -> CuResult {
    let place = count.check()?.as_ptr();
    if array.is_null() {
        count.set(nodes.len())?;
        return Ok(());
    }
    // SAFETY: not null; the manual wants the array's length in it.
    let room = unsafe { place.read_unaligned() };
    for index in 0..room {
        let handle = nodes.get(index).map_or(Ok(CUgraphNode::NULL), |node| node_handle(graph, *node))?;
        array.set(index, handle)?;
    }
    count.set(room.min(nodes.len()))?;
    Ok(())
}

/// Adds a node to a graph.
pub fn add(
    place: Out<CUgraphNode>,
    graph: CUgraph,
    dependencies: Array<CUgraphNode>,
    count: usize,
    work: Work,
) -> CuResult<Arc<Node>> {
    place.check()?;
    let graph = find(graph)?;
    let dependencies = read_nodes(dependencies, count)?;
    let id = graph.add(work.operation, &dependencies)?;
    let handle = node_handle(&graph, id)?;
    place.set(handle)?;
    let (node, _) = find_node(handle)?;
    *locked(&node.described) = work.described;
    Ok(node)
}

/// Sets what a node does.
pub fn set(handle: CUgraphNode, work: Work) -> CuResult {
    let (node, graph) = find_node(handle)?;
    graph.set_operation(node.id, work.operation)?;
    *locked(&node.described) = work.described;
    Ok(())
}

/// Sets what a node does in an executable graph.
pub fn set_in_executable(executable: CUgraphExec, node: CUgraphNode, work: Work) -> CuResult {
    let executable = find_executable(executable)?;
    match work.operation {
        Operation::Child(graph) => executable.set_child(node_id(node)?, &graph)?,
        operation => executable.set_operation(node_id(node)?, operation)?,
    }
    Ok(())
}

impl Node {
    fn describe(&self, description: Description) {
        *locked(&self.described) = Some(description);
    }

    /// Remembers an allocation's structure, with a copy of its list.
    pub fn describe_allocation(
        &self,
        mut params: CUDA_MEM_ALLOC_NODE_PARAMS,
        access: Box<[CUmemAccessDesc]>,
    ) {
        params.accessDescs = if access.is_empty() { std::ptr::null() } else { access.as_ptr() };
        self.describe(Description::Allocation { params, _access: access });
    }

    /// The allocation as the program described it.
    pub fn allocation(&self) -> CuResult<CUDA_MEM_ALLOC_NODE_PARAMS> {
        match &*locked(&self.described) {
            Some(Description::Allocation { params, .. }) => Ok(*params),
            _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
        }
    }

    /// Remembers an attribute.
    pub fn set_attribute(&self, attribute: CUlaunchAttributeID, value: CUlaunchAttributeValue) {
        locked(&self.attributes).insert(attribute, value);
    }

    /// An attribute that was set.
    pub fn attribute(&self, attribute: CUlaunchAttributeID) -> Option<CUlaunchAttributeValue> {
        locked(&self.attributes).get(&attribute).copied()
    }

    /// Takes another node's attributes.
    pub fn copy_attributes(&self, other: &Node) {
        let attributes = locked(&other.attributes).clone();
        *locked(&self.attributes) = attributes;
    }

    /// A copy as the program described it, or in the plainest form.
    pub fn copy(&self, operation: &Operation) -> CuResult<CUDA_MEMCPY3D> {
        if let Some(Description::Copy(copy)) = &*locked(&self.described) {
            return Ok(*copy);
        }
        match operation {
            Operation::Copy(transfer) => Ok(transfers::to_3d(transfer)),
            _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
        }
    }

    /// The host function as the program described it; that of a capture is not known any more.
    pub fn host(&self) -> CuResult<CUDA_HOST_NODE_PARAMS> {
        match &*locked(&self.described) {
            Some(Description::Host(call)) => Ok(*call),
            _ => Err(CUDA_ERROR_NOT_SUPPORTED.into()),
        }
    }

    /// The event the program named.
    pub fn event(&self) -> CuResult<CUevent> {
        match &*locked(&self.described) {
            Some(Description::Event(event)) => Ok(*event),
            _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
        }
    }

    /// The child graph, by a handle that lives as long as the node.
    pub fn child(&self, operation: &Operation) -> CuResult<CUgraph> {
        let Operation::Child(graph) = operation else { return Err(CUDA_ERROR_INVALID_VALUE.into()) };
        let mut described = locked(&self.described);
        if let Some(Description::Child(handle)) = &*described {
            return Ok(*handle);
        }
        let handle = handle_of(graph)?;
        *described = Some(Description::Child(handle));
        Ok(handle)
    }

    /// The launch, with pointers to the parameters that hold until the node changes.
    pub fn kernel(&self, operation: &Operation) -> CuResult<CUDA_KERNEL_NODE_PARAMS> {
        let Operation::Kernel(call) = operation else { return Err(CUDA_ERROR_INVALID_VALUE.into()) };
        let mut block: Box<[u8]> = call.params.clone().into();
        let base = block.as_mut_ptr();
        let entry = call.function.kernel().entry();
        let pointers: Box<[*mut c_void]> =
            entry.params.iter().map(|param| base.wrapping_add(param.offset as usize).cast()).collect();
        let mut described = locked(&self.described);
        let described = described.insert(Description::Pointers { _block: block, pointers });
        let Description::Pointers { pointers, .. } = described else { unreachable!("just put there") };
        let (grid, block) = (call.launch.grid, call.launch.block);
        Ok(CUDA_KERNEL_NODE_PARAMS {
            func: functions::handle_of(&call.function)?,
            gridDimX: grid[0],
            gridDimY: grid[1],
            gridDimZ: grid[2],
            blockDimX: block[0],
            blockDimY: block[1],
            blockDimZ: block[2],
            sharedMemBytes: call.launch.dynamic_shared,
            kernelParams: pointers.as_mut_ptr(),
            extra: std::ptr::null_mut(),
            kern: CUkernel::NULL,
            ctx: CUcontext::NULL,
        })
    }
}

/// What sort of node an operation is.
pub fn node_type(operation: &Operation) -> CUgraphNodeType {
    match operation {
        Operation::Empty => CU_GRAPH_NODE_TYPE_EMPTY,
        Operation::Kernel(_) => CU_GRAPH_NODE_TYPE_KERNEL,
        Operation::Copy(_) => CU_GRAPH_NODE_TYPE_MEMCPY,
        Operation::Fill(_) => CU_GRAPH_NODE_TYPE_MEMSET,
        Operation::Host(_) => CU_GRAPH_NODE_TYPE_HOST,
        Operation::Record(_) => CU_GRAPH_NODE_TYPE_EVENT_RECORD,
        Operation::Wait(_) => CU_GRAPH_NODE_TYPE_WAIT_EVENT,
        Operation::WaitValue { .. } | Operation::WriteValue { .. } => CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
        Operation::Child(_) => CU_GRAPH_NODE_TYPE_GRAPH,
        Operation::Allocate { .. } => CU_GRAPH_NODE_TYPE_MEM_ALLOC,
        Operation::Free { .. } => CU_GRAPH_NODE_TYPE_MEM_FREE,
    }
}
