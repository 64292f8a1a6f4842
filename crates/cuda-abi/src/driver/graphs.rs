//! What graphs are made of.
#![allow(missing_docs, reason = "fields are the manual's; the structures say what they are for")]

use super::*;
use core::ffi::c_void;

c_enum! {
    /// What a node does.
    CUgraphNodeType {
        CU_GRAPH_NODE_TYPE_KERNEL = 0,
        CU_GRAPH_NODE_TYPE_MEMCPY = 1,
        CU_GRAPH_NODE_TYPE_MEMSET = 2,
        CU_GRAPH_NODE_TYPE_HOST = 3,
        CU_GRAPH_NODE_TYPE_GRAPH = 4,
        CU_GRAPH_NODE_TYPE_EMPTY = 5,
        CU_GRAPH_NODE_TYPE_WAIT_EVENT = 6,
        CU_GRAPH_NODE_TYPE_EVENT_RECORD = 7,
        CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL = 8,
        CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT = 9,
        CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10,
        CU_GRAPH_NODE_TYPE_MEM_FREE = 11,
        CU_GRAPH_NODE_TYPE_BATCH_MEM_OP = 12,
        CU_GRAPH_NODE_TYPE_CONDITIONAL = 13,
    }
}

c_enum! {
    /// How the update of an executable graph ended.
    CUgraphExecUpdateResult {
        CU_GRAPH_EXEC_UPDATE_SUCCESS = 0,
        CU_GRAPH_EXEC_UPDATE_ERROR = 1,
        CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED = 2,
        CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED = 3,
        CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED = 4,
        CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED = 5,
        CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED = 6,
        CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE = 7,
        CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED = 8,
    }
}

c_enum! {
    /// How an instantiation ended.
    CUgraphInstantiateResult {
        CUDA_GRAPH_INSTANTIATE_SUCCESS = 0,
        CUDA_GRAPH_INSTANTIATE_ERROR = 1,
        CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE = 2,
        CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED = 3,
        CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED = 4,
        CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED = 5,
    }
}

c_enum! {
    /// What can be asked about the memory that graphs allocate on a device.
    CUgraphMem_attribute {
        CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT = 0,
        CU_GRAPH_MEM_ATTR_USED_MEM_HIGH = 1,
        CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT = 2,
        CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH = 3,
    }
}

c_enum! {
    /// How the condition of a conditional node chooses what runs.
    CUgraphConditionalNodeType {
        CU_GRAPH_COND_TYPE_IF = 0,
        CU_GRAPH_COND_TYPE_WHILE = 1,
        CU_GRAPH_COND_TYPE_SWITCH = 2,
    }
}

/// The condition of a conditional node, which kernels set.
pub type CUgraphConditionalHandle = u64;

/// Graphs that run as a condition says. The driver gives the array of graphs.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_CONDITIONAL_NODE_PARAMS {
    pub handle: CUgraphConditionalHandle,
    pub r#type: CUgraphConditionalNodeType,
    pub size: u32,
    pub phGraph_out: *mut CUgraph,
    pub ctx: CUcontext,
}

/// Names one attribute of a kernel node.
pub type CUkernelNodeAttrID = CUlaunchAttributeID;
/// A kernel node attribute's value.
pub type CUkernelNodeAttrValue = CUlaunchAttributeValue;

/// A kernel node as it was before version 12: the beginning of a [`CUDA_KERNEL_NODE_PARAMS`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_KERNEL_NODE_PARAMS_v1 {
    pub func: CUfunction,
    pub gridDimX: u32,
    pub gridDimY: u32,
    pub gridDimZ: u32,
    pub blockDimX: u32,
    pub blockDimY: u32,
    pub blockDimZ: u32,
    pub sharedMemBytes: u32,
    pub kernelParams: *mut *mut c_void,
    pub extra: *mut *mut c_void,
}

/// A launch. `kern` and `ctx` count if `func` is null.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_KERNEL_NODE_PARAMS {
    pub func: CUfunction,
    pub gridDimX: u32,
    pub gridDimY: u32,
    pub gridDimZ: u32,
    pub blockDimX: u32,
    pub blockDimY: u32,
    pub blockDimZ: u32,
    pub sharedMemBytes: u32,
    pub kernelParams: *mut *mut c_void,
    pub extra: *mut *mut c_void,
    pub kern: CUkernel,
    pub ctx: CUcontext,
}

/// Setting rows of elements of 1, 2 or 4 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_MEMSET_NODE_PARAMS {
    pub dst: CUdeviceptr,
    pub pitch: usize,
    pub value: u32,
    pub elementSize: u32,
    pub width: usize,
    pub height: usize,
}

/// A call of a host function.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_HOST_NODE_PARAMS {
    pub r#fn: CUhostFn,
    pub userData: *mut c_void,
}

/// An allocation, whose address is known when the node is made.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_MEM_ALLOC_NODE_PARAMS {
    pub poolProps: CUmemPoolProps,
    pub accessDescs: *const CUmemAccessDesc,
    pub accessDescCount: usize,
    pub bytesize: usize,
    pub dptr: CUdeviceptr,
}

/// What an edge waits for.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CUgraphEdgeData {
    pub from_port: u8,
    pub to_port: u8,
    pub r#type: u8,
    pub reserved: [u8; 5],
}

/// How the update of an executable graph ended, and where it failed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUgraphExecUpdateResultInfo {
    pub result: CUgraphExecUpdateResult,
    pub errorNode: CUgraphNode,
    pub errorFromNode: CUgraphNode,
}

/// How to instantiate a graph, and how that ended.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_GRAPH_INSTANTIATE_PARAMS {
    pub flags: u64,
    pub hUploadStream: CUstream,
    pub hErrNode_out: CUgraphNode,
    pub result_out: CUgraphInstantiateResult,
}

c_consts! {
    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH: u64 = 1;
    CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD: u64 = 2;
    CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH: u64 = 4;
    CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY: u64 = 8;
}

/// Any node: the member of `params` that `type` names.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CUgraphNodeParams {
    pub r#type: CUgraphNodeType,
    pub reserved0: [i32; 3],
    pub params: CUgraphNodeParamsUnion,
    pub reserved2: i64,
}

/// What a node of a [`CUgraphNodeParams`] does.
#[repr(C)]
#[derive(Clone, Copy)]
pub union CUgraphNodeParamsUnion {
    pub reserved1: [i64; 29],
    pub kernel: CUDA_KERNEL_NODE_PARAMS,
    pub memcpy: CUDA_MEMCPY_NODE_PARAMS,
    pub memset: CUDA_MEMSET_NODE_PARAMS_v2,
    pub host: CUDA_HOST_NODE_PARAMS,
    pub graph: CUDA_CHILD_GRAPH_NODE_PARAMS,
    pub event: CUevent,
    pub alloc: CUDA_MEM_ALLOC_NODE_PARAMS,
    pub free: CUdeviceptr,
    pub words: CUDA_BATCH_MEM_OP_NODE_PARAMS,
    pub conditional: CUDA_CONDITIONAL_NODE_PARAMS,
    pub signal: CUDA_EXT_SEM_SIGNAL_NODE_PARAMS,
    pub wait: CUDA_EXT_SEM_WAIT_NODE_PARAMS,
}

impl core::fmt::Debug for CUgraphNodeParams {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        // Which member of the union counts is the type's business, so only that is shown.
        f.debug_struct("CUgraphNodeParams").field("type", &self.r#type).finish_non_exhaustive()
    }
}

/// A batch of operations on words of memory, in a context.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_BATCH_MEM_OP_NODE_PARAMS {
    pub ctx: CUcontext,
    pub count: u32,
    pub paramArray: *mut CUstreamBatchMemOpParams,
    pub flags: u32,
}

/// A copy in a context.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_MEMCPY_NODE_PARAMS {
    pub flags: i32,
    pub reserved: i32,
    pub copyCtx: CUcontext,
    pub copyParams: CUDA_MEMCPY3D,
}

/// Setting rows of elements in a context.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_MEMSET_NODE_PARAMS_v2 {
    pub dst: CUdeviceptr,
    pub pitch: usize,
    pub value: u32,
    pub elementSize: u32,
    pub width: usize,
    pub height: usize,
    pub ctx: CUcontext,
}

/// A graph as a node.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CUDA_CHILD_GRAPH_NODE_PARAMS {
    pub graph: CUgraph,
    pub ownership: CUgraphChildGraphNodeOwnership,
}

c_enum! {
    /// Whether a node gets a copy of a graph or the graph itself.
    CUgraphChildGraphNodeOwnership {
        CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE = 0,
        CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE = 1,
    }
}

c_consts! {
    CU_GRAPH_DEPENDENCY_TYPE_DEFAULT: u8 = 0;
    CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC: u8 = 1;
    CU_GRAPH_KERNEL_NODE_PORT_DEFAULT: u8 = 0;
    CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC: u8 = 1;
    CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER: u8 = 2;
}

c_consts! {
    CU_GRAPH_COND_ASSIGN_DEFAULT: u32 = 1;
    CU_USER_OBJECT_NO_DESTRUCTOR_SYNC: u32 = 1;
    CU_GRAPH_USER_OBJECT_MOVE: u32 = 1;
}
