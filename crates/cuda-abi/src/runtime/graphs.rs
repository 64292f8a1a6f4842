//! What graphs are made of. Most of it is the driver's own.
#![allow(missing_docs, reason = "fields are the manual's; the structures say what they are for")]

use super::*;
use crate::driver::*;
use core::ffi::c_void;

/// What a node does.
pub type cudaGraphNodeType = CUgraphNodeType;
/// What can be asked about the memory that graphs allocate on a device.
pub type cudaGraphMemAttributeType = CUgraphMem_attribute;
/// Setting rows of elements.
pub type cudaMemsetParams = CUDA_MEMSET_NODE_PARAMS;
/// A call of a host function.
pub type cudaHostNodeParams = CUDA_HOST_NODE_PARAMS;
/// An allocation.
pub type cudaMemAllocNodeParams = CUDA_MEM_ALLOC_NODE_PARAMS;
/// What an edge waits for.
pub type cudaGraphEdgeData = CUgraphEdgeData;
/// How the update of an executable graph ended, and where it failed.
pub type cudaGraphExecUpdateResultInfo = CUgraphExecUpdateResultInfo;
/// How to instantiate a graph, and how that ended.
pub type cudaGraphInstantiateParams = CUDA_GRAPH_INSTANTIATE_PARAMS;

/// The condition of a conditional node, which kernels set.
pub type cudaGraphConditionalHandle = CUgraphConditionalHandle;

/// Graphs that run as a condition says. The library gives the array of graphs.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaConditionalNodeParams {
    pub handle: cudaGraphConditionalHandle,
    pub r#type: CUgraphConditionalNodeType,
    pub size: u32,
    pub phGraph_out: *mut cudaGraph_t,
}

/// A launch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaKernelNodeParams {
    pub func: *mut c_void,
    pub gridDim: dim3,
    pub blockDim: dim3,
    pub sharedMemBytes: u32,
    pub kernelParams: *mut *mut c_void,
    pub extra: *mut *mut c_void,
}

/// Any node: the member of `params` that `type` names.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct cudaGraphNodeParams {
    pub r#type: cudaGraphNodeType,
    pub reserved0: [i32; 3],
    pub params: cudaGraphNodeParamsUnion,
    pub reserved2: i64,
}

/// What a node of a [`cudaGraphNodeParams`] does.
#[repr(C)]
#[derive(Clone, Copy)]
pub union cudaGraphNodeParamsUnion {
    pub reserved1: [i64; 29],
    pub kernel: cudaKernelNodeParams,
    pub memcpy: cudaMemcpyNodeParams,
    pub memset: cudaMemsetParams,
    pub host: cudaHostNodeParams,
    pub graph: CUDA_CHILD_GRAPH_NODE_PARAMS,
    pub event: cudaEvent_t,
    pub alloc: cudaMemAllocNodeParams,
    pub free: CUdeviceptr,
    pub conditional: cudaConditionalNodeParams,
}

impl core::fmt::Debug for cudaGraphNodeParams {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        // As for the driver's.
        f.debug_struct("cudaGraphNodeParams").field("type", &self.r#type).finish_non_exhaustive()
    }
}

/// A copy.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cudaMemcpyNodeParams {
    pub flags: i32,
    pub reserved: [i32; 3],
    pub copyParams: cudaMemcpy3DParms,
}
