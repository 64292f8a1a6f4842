//! Nodes that launch kernels.

use std::mem::MaybeUninit;
use std::ptr;

use crate::api::prelude::*;
use crate::{context, kernels, registry};

/// Adds a launch.
#[entry_point]
fn cudaGraphAddKernelNode(
    pGraphNode: Out<cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    pNodeParams: In<cudaKernelNodeParams>,
) -> CudaResult {
    let launch = to_driver(pNodeParams)?;
    let node = pGraphNode.check()?;
    call!(cuGraphAddKernelNode_v2(node.as_ptr(), graph, pDependencies, numDependencies, &launch))
}

/// What a node launches.
#[entry_point]
fn cudaGraphKernelNodeGetParams(node: cudaGraphNode_t, pNodeParams: Out<cudaKernelNodeParams>) -> CudaResult {
    context::ensure_current()?;
    let out = pNodeParams.check()?;
    let mut launch = MaybeUninit::uninit();
    call!(cuGraphKernelNodeGetParams_v2(node, launch.as_mut_ptr()))?;
    // SAFETY: the driver said that it wrote the description.
    out.set(from_driver(unsafe { launch.assume_init_ref() }))?;
    Ok(())
}

/// Sets what a node launches.
#[entry_point]
fn cudaGraphKernelNodeSetParams(node: cudaGraphNode_t, pNodeParams: In<cudaKernelNodeParams>) -> CudaResult {
    let launch = to_driver(pNodeParams)?;
    call!(cuGraphKernelNodeSetParams_v2(node, &launch))
}

/// Sets what a node launches, in an executable graph.
#[entry_point]
fn cudaGraphExecKernelNodeSetParams(
    hGraphExec: cudaGraphExec_t,
    node: cudaGraphNode_t,
    pNodeParams: In<cudaKernelNodeParams>,
) -> CudaResult {
    let launch = to_driver(pNodeParams)?;
    call!(cuGraphExecKernelNodeSetParams_v2(hGraphExec, node, &launch))
}

/// Gives one kernel node another's attributes.
#[entry_point]
fn cudaGraphKernelNodeCopyAttributes(hDst: cudaGraphNode_t, hSrc: cudaGraphNode_t) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphKernelNodeCopyAttributes(hDst, hSrc))
}

/// One of a kernel node's attributes.
#[entry_point]
fn cudaGraphKernelNodeGetAttribute(
    hNode: cudaGraphNode_t,
    attr: cudaLaunchAttributeID,
    value_out: Out<cudaLaunchAttributeValue>,
) -> CudaResult {
    context::ensure_current()?;
    let value = value_out.check()?;
    call!(cuGraphKernelNodeGetAttribute(hNode, attr, value.as_ptr()))
}

/// Sets one of a kernel node's attributes.
#[entry_point]
fn cudaGraphKernelNodeSetAttribute(
    hNode: cudaGraphNode_t,
    attr: cudaLaunchAttributeID,
    value: In<cudaLaunchAttributeValue>,
) -> CudaResult {
    context::ensure_current()?;
    value.get()?;
    // The driver writes to where the value is, of one attribute.
    call!(cuGraphKernelNodeSetAttribute(hNode, attr, value.as_ptr()))
}

fn to_driver(launch: In<cudaKernelNodeParams>) -> CudaResult<CUDA_KERNEL_NODE_PARAMS> {
    context::ensure_current()?;
    launch_to_driver(&launch.get()?)
}

/// A launch in the driver's terms.
pub(super) fn launch_to_driver(launch: &cudaKernelNodeParams) -> CudaResult<CUDA_KERNEL_NODE_PARAMS> {
    Ok(CUDA_KERNEL_NODE_PARAMS {
        func: CUfunction::NULL,
        gridDimX: launch.gridDim.x,
        gridDimY: launch.gridDim.y,
        gridDimZ: launch.gridDim.z,
        blockDimX: launch.blockDim.x,
        blockDimY: launch.blockDim.y,
        blockDimZ: launch.blockDim.z,
        sharedMemBytes: launch.sharedMemBytes,
        kernelParams: launch.kernelParams,
        extra: launch.extra,
        kern: kernels::named(launch.func)?,
        ctx: CUcontext::NULL,
    })
}

/// The runtime's description, with the host function where the kernel is a registered one.
fn from_driver(launch: &CUDA_KERNEL_NODE_PARAMS) -> cudaKernelNodeParams {
    let handle = if launch.func.is_null() { launch.kern.0 } else { launch.func.0 };
    let named = host_function(handle).unwrap_or(handle);
    cudaKernelNodeParams {
        func: ptr::with_exposed_provenance_mut(named),
        gridDim: dim3 { x: launch.gridDimX, y: launch.gridDimY, z: launch.gridDimZ },
        blockDim: dim3 { x: launch.blockDimX, y: launch.blockDimY, z: launch.blockDimZ },
        sharedMemBytes: launch.sharedMemBytes,
        kernelParams: launch.kernelParams,
        extra: launch.extra,
    }
}

/// The host function of a kernel, or of what it is in the current context: the driver may tell of either.
fn host_function(handle: usize) -> Option<usize> {
    let is_it = |kernel: CUkernel| {
        let mut function = CUfunction::NULL;
        kernel.0 == handle
            || call!(cuKernelGetFunction(&mut function, kernel)).is_ok() && function.0 == handle
    };
    registry::host_functions().into_iter().find(|(_, kernel)| is_it(*kernel)).map(|(host, _)| host)
}
