//! Graphs, their nodes and executable graphs behind their handles.
//!
//! A node's handle leads to its graph. Nodes that a capture made have no handle until somebody asks for it.

use crate::contexts;
use crate::error::{CuResult, Failure};
use crate::external;
use crate::functions;
use crate::handle::{Kind, Table};
use crate::node_work::Work;
use crate::platform::platform;
use crate::transfers;
use crate::words;
use cuda_abi::args::{Array, Out};
use cuda_abi::driver::*;
use cuda_abi::shim::locked;
use device::graph::{CaptureStatus, ExecutableGraph, Graph, NodeId, Operation};
use device::{SemaphoreUse, Stream};
use std::collections::HashMap;
use std::ffi::c_void;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

static GRAPHS: Table<Owned> = Table::new(Kind::Graph);
static NODES: Table<Node> = Table::new(Kind::GraphNode);
static EXECUTABLES: Table<Executable> = Table::new(Kind::GraphExec);

/// A graph made ready to be launched, as programs know it.
pub struct Executable {
    graph: Arc<ExecutableGraph>,
    /// What it was made with.
    pub flags: u64,
}

impl Deref for Executable {
    type Target = Arc<ExecutableGraph>;

    fn deref(&self) -> &Self::Target {
        &self.graph
    }
}

/// A graph of the program's, or the graph of a child node, which goes with its node.
struct Owned {
    graph: Arc<Graph>,
    /// It is what a node does, and goes with the node.
    is_child: AtomicBool,
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
    /// What a conditional node chooses from, by handles that go with it.
    Bodies(Box<[CUgraph]>),
    /// An allocation; the pointer in it leads to the list beside it.
    Allocation {
        params: CUDA_MEM_ALLOC_NODE_PARAMS,
        _access: Box<[CUmemAccessDesc]>,
    },
    /// Operations on words, in a context; the list is what the program was given a pointer to.
    Words {
        context: CUcontext,
        list: Box<[CUstreamBatchMemOpParams]>,
    },
    /// Semaphores and how they are signalled: the lists are what the program was given pointers to.
    Signals {
        _semaphores: Box<[CUexternalSemaphore]>,
        _params: Box<[CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS]>,
    },
    /// Semaphores and how they are waited for, likewise.
    Waits {
        _semaphores: Box<[CUexternalSemaphore]>,
        _params: Box<[CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS]>,
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

/// The graph of a handle.
pub fn find(handle: CUgraph) -> CuResult<Arc<Graph>> {
    match GRAPHS.get(handle.0) {
        Ok(found) => Ok(found.graph.clone()),
        Err(_) => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

/// A copy of a graph. One with memory nodes is not copied: both would use the same addresses. Nor is one with conditional
/// nodes: both would have the same conditions.
pub fn copy_of(handle: CUgraph) -> CuResult<Arc<Graph>> {
    let graph = find(handle)?;
    if is_one_of_its_kind(&graph) { Err(CUDA_ERROR_NOT_SUPPORTED.into()) } else { Ok(graph.duplicate()) }
}

/// Whether nodes of a graph have what there is once: addresses, or conditions. What a conditional node chooses from is its
/// own.
fn is_one_of_its_kind(graph: &Graph) -> bool {
    graph.has_memory_nodes() || graph.has_conditions() || graph.has_updatable_nodes() || graph.is_body()
}

/// Why a graph cannot be made ready.
pub struct Unready {
    /// What the call answers.
    pub code: CUresult,
    /// What it says beyond that, and of which node.
    pub reason: CUgraphInstantiateResult,
    pub node: CUgraphNode,
}

impl From<CUresult> for Unready {
    fn from(code: CUresult) -> Self {
        Unready { code, reason: CUDA_GRAPH_INSTANTIATE_ERROR, node: CUgraphNode::NULL }
    }
}

impl From<Failure> for Unready {
    fn from(Failure(code): Failure) -> Self {
        code.into()
    }
}

impl From<Unready> for Failure {
    fn from(unready: Unready) -> Self {
        Failure(unready.code)
    }
}

/// Whether a graph can be made ready as it is built.
fn check_structure(graph: &Arc<Graph>) -> Result<(), Unready> {
    let code = CUDA_ERROR_INVALID_VALUE;
    if let Some(node) = graph.circle() {
        let (reason, node) = (CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, node_handle(graph, node)?);
        return Err(Unready { code, reason, node });
    }
    if graph.has_unused_conditions() {
        let reason = CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
        return Err(Unready { code, reason, node: CUgraphNode::NULL });
    }
    if let Some((body, node)) = graph.misplaced_in_bodies(platform()?.memory()) {
        let reason = CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
        return Err(Unready { code, reason, node: node_handle(&body, node)? });
    }
    Ok(())
}

/// Gives a graph a handle.
pub fn insert(graph: Arc<Graph>) -> CuResult<CUgraph> {
    GRAPHS
        .insert(Arc::new(Owned { graph, is_child: AtomicBool::new(false) }))
        .map(CUgraph)
        .ok_or(CUDA_ERROR_OUT_OF_MEMORY.into())
}

/// The handle of a graph that has one, or a new one.
pub fn handle_of(graph: &Arc<Graph>) -> CuResult<CUgraph> {
    let known = GRAPHS.find_all(|owned| Arc::ptr_eq(&owned.graph, graph));
    known.first().map_or_else(|| insert(graph.clone()), |(handle, _)| Ok(CUgraph(*handle)))
}

/// Whether it is what a node does.
fn is_child(handle: CUgraph) -> bool {
    GRAPHS.get(handle.0).is_ok_and(|owned| owned.is_child.load(Ordering::Relaxed))
}

/// Makes the handles of a graph and its nodes stale. What a node does, or a conditional node chooses from, goes with the node alone.
pub fn destroy(handle: CUgraph) -> CuResult {
    if find(handle)?.is_body() || is_child(handle) {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    forget(handle)
}

fn forget(handle: CUgraph) -> CuResult {
    let owned = GRAPHS.remove(handle.0).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    forget_nodes(owned.graph.nodes());
    Ok(())
}

/// The executable graph of a handle.
pub fn find_executable(handle: CUgraphExec) -> CuResult<Arc<Executable>> {
    EXECUTABLES.get(handle.0).map_err(|_| CUDA_ERROR_INVALID_VALUE.into())
}

/// Executables of graphs that have one at a time.
static ONES_OF_THEIR_KIND: Mutex<Vec<(Weak<Graph>, CUgraphExec)>> = Mutex::new(Vec::new());

/// Whether a graph that has one executable at a time has it.
fn has_the_one(graph: &Arc<Graph>, known: &mut Vec<(Weak<Graph>, CUgraphExec)>) -> bool {
    known.retain(|(_, executable)| EXECUTABLES.get(executable.0).is_ok());
    known.iter().any(|(other, _)| std::ptr::eq(other.as_ptr(), &**graph))
}

/// Makes a graph ready to be launched. Of a graph with memory nodes there is one executable at a time: all would use the
/// same addresses; so it is with conditional nodes and their conditions.
pub fn instantiate(handle: CUgraph, flags: u64) -> Result<CUgraphExec, Unready> {
    let graph = find(handle)?;
    if graph.is_body() {
        return Err(CUDA_ERROR_NOT_SUPPORTED.into());
    }
    contexts::usable()?;
    check_structure(&graph)?;
    let launching = match flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH {
        0 => None,
        _ => Some(contexts::current()?),
    };
    let make = || {
        let reuses_memory = flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH != 0;
        let made = ExecutableGraph::with_memory(&graph, reuses_memory);
        if let Some(context) = &launching
            && let Err(node) = made.check_for_kernels(context.memory())
        {
            // Of a graph of nothing there is nothing to tell.
            let (reason, node) = match node {
                None => (CUDA_GRAPH_INSTANTIATE_ERROR, CUgraphNode::NULL),
                Some(node) => {
                    (CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED, node_handle(&graph, node)?)
                }
            };
            return Err(Unready { code: CUDA_ERROR_INVALID_VALUE, reason, node });
        }
        if flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD != 0 {
            made.upload();
        }
        let executable = Executable { graph: made.clone(), flags };
        let handle = EXECUTABLES.insert(Arc::new(executable)).ok_or(CUDA_ERROR_OUT_OF_MEMORY)?;
        if graph.has_memory_nodes() {
            graph.note_left_allocated();
        }
        if let Some(context) = &launching {
            made.let_kernels_launch(context, handle as u64);
        }
        Ok::<_, Unready>(CUgraphExec(handle))
    };
    if !is_one_of_its_kind(&graph) {
        return make();
    }
    // Two threads that make one at the same time: the second is too late.
    let mut others = locked(&ONES_OF_THEIR_KIND);
    let executable = make()?;
    if has_the_one(&graph, &mut others) {
        destroy_executable(executable)?;
        return Err(CUDA_ERROR_NOT_SUPPORTED.into());
    }
    others.push((Arc::downgrade(&graph), executable));
    Ok(executable)
}

/// If the stream captures: its newest node calls this.
pub fn describe_captured_host(stream: &Stream, call: CUDA_HOST_NODE_PARAMS) -> CuResult {
    if !stream.is_capturing() {
        return Ok(());
    }
    let (status, Some(info)) = stream.capture_status()? else { return Ok(()) };
    if status == CaptureStatus::Active {
        for tip in &info.dependencies {
            find_node(node_handle(&info.graph, tip.node)?)?.0.describe_host(call);
        }
    }
    Ok(())
}

/// An executable is of another graph from now on: that one has it, and the one that it was made of can have another.
pub fn note_update(executable: CUgraphExec, graph: &Arc<Graph>) {
    let mut known = locked(&ONES_OF_THEIR_KIND);
    if let Some((of, _)) = known.iter_mut().find(|(_, known)| *known == executable) {
        *of = Arc::downgrade(graph);
    }
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
    if device::graph::is_captured_into(&graph) {
        return Err(CUDA_ERROR_ILLEGAL_STATE.into());
    }
    let is_updatable = graph.operation(node.id)?.updatable().is_some();
    if graph.has_memory_nodes() || is_updatable {
        return Err(CUDA_ERROR_NOT_SUPPORTED.into());
    }
    graph.remove(node.id)?;
    forget_nodes(vec![node.id]);
    Ok(())
}

/// Makes the handles of nodes stale, and of the graphs that they are or choose from, however deep those are in each other.
fn forget_nodes(mut left: Vec<NodeId>) {
    while let Some(id) = left.pop() {
        let handle = locked(handles()).remove(&id);
        let Some(node) = handle.and_then(|handle| NODES.remove(handle.0).ok()) else { continue };
        let described = locked(&node.described).take();
        let graphs = match described {
            Some(Description::Child(graph)) => vec![graph],
            Some(Description::Bodies(bodies)) => bodies.into_vec(),
            _ => Vec::new(),
        };
        for graph in graphs {
            if let Ok(owned) = GRAPHS.remove(graph.0) {
                left.extend(owned.graph.nodes());
            }
        }
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
    if room == 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
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
    work.operation.check_clusters()?;
    // What an executable leaves allocated is not freed by a later version of its graph.
    if let Operation::Free { address } = work.operation
        && graph.was_left_allocated(address)
    {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
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
    let operation = work.operation.with_attributes_of(&graph.operation(node.id)?);
    operation.check_clusters()?;
    graph.set_operation(node.id, operation)?;
    *locked(&node.described) = work.described;
    Ok(())
}

/// Sets what a node does in an executable graph.
pub fn set_in_executable(executable: CUgraphExec, node: CUgraphNode, work: Work) -> CuResult {
    let executable = find_executable(executable)?;
    match work.operation {
        Operation::Child(graph) => executable.set_child(node_id(node)?, &graph)?,
        operation => {
            let node = node_id(node)?;
            let before = executable.operation(node)?;
            let operation = operation.with_attributes_of(&before);
            operation.check_clusters()?;
            executable.set_operation(node, operation)?;
        }
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

    /// The allocation as the program described it; as a description would be for one that was captured.
    pub fn allocation(&self, operation: &Operation) -> CuResult<CUDA_MEM_ALLOC_NODE_PARAMS> {
        if let Some(Description::Allocation { params, .. }) = &*locked(&self.described) {
            return Ok(*params);
        }
        let Operation::Allocate { address, size } = operation else {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        };
        let device = platform()?.memory().find(*address).map_or(0, |found| found.device);
        let location = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_DEVICE, id: device as i32 };
        Ok(CUDA_MEM_ALLOC_NODE_PARAMS {
            poolProps: CUmemPoolProps {
                allocType: CU_MEM_ALLOCATION_TYPE_PINNED,
                handleTypes: CU_MEM_HANDLE_TYPE_NONE.0,
                location,
                win32SecurityAttributes: std::ptr::null_mut(),
                maxSize: 0,
                usage: 0,
                reserved: [0; 54],
            },
            accessDescs: std::ptr::null(),
            accessDescCount: 0,
            bytesize: *size as usize,
            dptr: CUdeviceptr(*address),
        })
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

    /// The host function as the program described it.
    pub fn host(&self) -> CuResult<CUDA_HOST_NODE_PARAMS> {
        match &*locked(&self.described) {
            Some(Description::Host(call)) => Ok(*call),
            _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
        }
    }

    /// Remembers the host function of a node that was captured.
    pub fn describe_host(&self, call: CUDA_HOST_NODE_PARAMS) {
        *locked(&self.described) = Some(Description::Host(call));
    }

    /// The batch of operations on words, with a list of them that holds until the node changes. That of a capture names no
    /// context.
    pub fn words(&self, operation: &Operation) -> CuResult<CUDA_BATCH_MEM_OP_NODE_PARAMS> {
        let Operation::Words(words) = operation else { return Err(CUDA_ERROR_INVALID_VALUE.into()) };
        let mut described = locked(&self.described);
        let context = match &*described {
            Some(Description::Words { context, .. }) => *context,
            _ => CUcontext::NULL,
        };
        let list = words.iter().map(words::write_one).collect();
        let described = described.insert(Description::Words { context, list });
        let Description::Words { list, .. } = described else { unreachable!("just put there") };
        let (count, array) = (list.len() as u32, list.as_mut_ptr());
        Ok(CUDA_BATCH_MEM_OP_NODE_PARAMS { ctx: context, count, paramArray: array, flags: 0 })
    }

    /// The semaphores that the node signals, in lists that hold until it changes.
    pub fn signals(&self, operation: &Operation) -> CuResult<CUDA_EXT_SEM_SIGNAL_NODE_PARAMS> {
        let Operation::Signal(semaphores) = operation else { return Err(CUDA_ERROR_INVALID_VALUE.into()) };
        let mut handles: Box<[_]> = semaphores.iter().map(external::handle_of).collect();
        let params = |used: &SemaphoreUse| CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS {
            value: used.value,
            nvSciSync: 0,
            key: 0,
            reserved0: [0; 12],
            flags: 0,
            reserved: [0; 16],
        };
        let list: Box<[_]> = semaphores.iter().map(params).collect();
        let given = CUDA_EXT_SEM_SIGNAL_NODE_PARAMS {
            extSemArray: handles.as_mut_ptr(),
            paramsArray: list.as_ptr(),
            numExtSems: handles.len() as u32,
        };
        self.describe(Description::Signals { _semaphores: handles, _params: list });
        Ok(given)
    }

    /// The semaphores that the node waits for, in lists that hold until it changes.
    pub fn waits(&self, operation: &Operation) -> CuResult<CUDA_EXT_SEM_WAIT_NODE_PARAMS> {
        let Operation::AwaitSemaphores(semaphores) = operation else {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        };
        let mut handles: Box<[_]> = semaphores.iter().map(external::handle_of).collect();
        let params = |used: &SemaphoreUse| CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS {
            value: used.value,
            nvSciSync: 0,
            key: 0,
            timeoutMs: 0,
            pad: 0,
            reserved0: [0; 10],
            flags: 0,
            reserved: [0; 16],
        };
        let list: Box<[_]> = semaphores.iter().map(params).collect();
        let given = CUDA_EXT_SEM_WAIT_NODE_PARAMS {
            extSemArray: handles.as_mut_ptr(),
            paramsArray: list.as_ptr(),
            numExtSems: handles.len() as u32,
        };
        self.describe(Description::Waits { _semaphores: handles, _params: list });
        Ok(given)
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
        if let Ok(owned) = GRAPHS.get(handle.0) {
            owned.is_child.store(true, Ordering::Relaxed);
        }
        *described = Some(Description::Child(handle));
        Ok(handle)
    }

    /// Gives what a conditional node chooses from handles; their array holds as long as the node.
    pub fn describe_bodies(&self, bodies: &[Arc<Graph>]) -> CuResult<*mut CUgraph> {
        let mut handles = bodies.iter().cloned().map(insert).collect::<CuResult<Box<[_]>>>()?;
        let array = handles.as_mut_ptr();
        self.describe(Description::Bodies(handles));
        Ok(array)
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
        Operation::Words(_) => CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
        Operation::Signal(_) => CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL,
        Operation::AwaitSemaphores(_) => CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT,
        Operation::Child(_) => CU_GRAPH_NODE_TYPE_GRAPH,
        Operation::Conditional(_) => CU_GRAPH_NODE_TYPE_CONDITIONAL,
        Operation::Allocate { .. } => CU_GRAPH_NODE_TYPE_MEM_ALLOC,
        Operation::Free { .. } => CU_GRAPH_NODE_TYPE_MEM_FREE,
    }
}
