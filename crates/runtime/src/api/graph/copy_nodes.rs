//! Nodes that copy or set memory.

use std::mem::MaybeUninit;

use crate::api::memory::symbol::place;
use crate::api::prelude::*;
use crate::context;
use crate::copy::{check_kind_with_device, describe_1d, describe_3d, describe_for_runtime};

/// Adds a copy of a box.
#[entry_point]
fn cudaGraphAddMemcpyNode(
    pGraphNode: Out<cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    pCopyParams: In<cudaMemcpy3DParms>,
) -> CudaResult {
    let copy = box_copy(pCopyParams)?;
    add(pGraphNode, graph, pDependencies, numDependencies, &copy)
}

/// Adds a copy of bytes.
#[entry_point]
fn cudaGraphAddMemcpyNode1D(
    pGraphNode: Out<cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    dst: *mut c_void,
    src: *const c_void,
    count: usize,
    kind: cudaMemcpyKind,
) -> CudaResult {
    let copy = describe_1d(dst, src, count, kind)?;
    add(pGraphNode, graph, pDependencies, numDependencies, &copy)
}

/// Adds a copy into a variable.
#[entry_point]
fn cudaGraphAddMemcpyNodeToSymbol(
    pGraphNode: Out<cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    symbol: *const c_void,
    src: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
) -> CudaResult {
    let copy = to_symbol(symbol, src, count, offset, kind)?;
    add(pGraphNode, graph, pDependencies, numDependencies, &copy)
}

/// Adds a copy out of a variable.
#[entry_point]
fn cudaGraphAddMemcpyNodeFromSymbol(
    pGraphNode: Out<cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    dst: *mut c_void,
    symbol: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
) -> CudaResult {
    let copy = from_symbol(dst, symbol, count, offset, kind)?;
    add(pGraphNode, graph, pDependencies, numDependencies, &copy)
}

/// What a node copies.
#[entry_point]
fn cudaGraphMemcpyNodeGetParams(node: cudaGraphNode_t, pNodeParams: Out<cudaMemcpy3DParms>) -> CudaResult {
    context::ensure_current()?;
    let out = pNodeParams.check()?;
    let mut copy = MaybeUninit::uninit();
    call!(cuGraphMemcpyNodeGetParams(node, copy.as_mut_ptr()))?;
    // SAFETY: the driver said that it wrote the description.
    out.set(describe_for_runtime(unsafe { copy.assume_init_ref() })?)?;
    Ok(())
}

/// Sets what a node copies.
#[entry_point]
fn cudaGraphMemcpyNodeSetParams(node: cudaGraphNode_t, pNodeParams: In<cudaMemcpy3DParms>) -> CudaResult {
    let copy = box_copy(pNodeParams)?;
    call!(cuGraphMemcpyNodeSetParams(node, &copy))
}

/// Sets what a node copies: bytes.
#[entry_point]
fn cudaGraphMemcpyNodeSetParams1D(
    node: cudaGraphNode_t,
    dst: *mut c_void,
    src: *const c_void,
    count: usize,
    kind: cudaMemcpyKind,
) -> CudaResult {
    context::ensure_current()?;
    let copy = describe_1d(dst, src, count, kind)?;
    call!(cuGraphMemcpyNodeSetParams(node, &copy))
}

/// Sets what a node copies: into a variable.
#[entry_point]
fn cudaGraphMemcpyNodeSetParamsToSymbol(
    node: cudaGraphNode_t,
    symbol: *const c_void,
    src: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
) -> CudaResult {
    let copy = to_symbol(symbol, src, count, offset, kind)?;
    call!(cuGraphMemcpyNodeSetParams(node, &copy))
}

/// Sets what a node copies: out of a variable.
#[entry_point]
fn cudaGraphMemcpyNodeSetParamsFromSymbol(
    node: cudaGraphNode_t,
    dst: *mut c_void,
    symbol: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
) -> CudaResult {
    let copy = from_symbol(dst, symbol, count, offset, kind)?;
    call!(cuGraphMemcpyNodeSetParams(node, &copy))
}

/// Sets what a node copies, in an executable graph.
#[entry_point]
fn cudaGraphExecMemcpyNodeSetParams(
    hGraphExec: cudaGraphExec_t,
    node: cudaGraphNode_t,
    pNodeParams: In<cudaMemcpy3DParms>,
) -> CudaResult {
    let copy = box_copy(pNodeParams)?;
    set_in_executable(hGraphExec, node, &copy)
}

/// Sets what a node copies, in an executable graph: bytes.
#[entry_point]
fn cudaGraphExecMemcpyNodeSetParams1D(
    hGraphExec: cudaGraphExec_t,
    node: cudaGraphNode_t,
    dst: *mut c_void,
    src: *const c_void,
    count: usize,
    kind: cudaMemcpyKind,
) -> CudaResult {
    let copy = describe_1d(dst, src, count, kind)?;
    set_in_executable(hGraphExec, node, &copy)
}

/// Sets what a node copies, in an executable graph: into a variable.
#[entry_point]
fn cudaGraphExecMemcpyNodeSetParamsToSymbol(
    hGraphExec: cudaGraphExec_t,
    node: cudaGraphNode_t,
    symbol: *const c_void,
    src: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
) -> CudaResult {
    let copy = to_symbol(symbol, src, count, offset, kind)?;
    set_in_executable(hGraphExec, node, &copy)
}

/// Sets what a node copies, in an executable graph: out of a variable.
#[entry_point]
fn cudaGraphExecMemcpyNodeSetParamsFromSymbol(
    hGraphExec: cudaGraphExec_t,
    node: cudaGraphNode_t,
    dst: *mut c_void,
    symbol: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
) -> CudaResult {
    let copy = from_symbol(dst, symbol, count, offset, kind)?;
    set_in_executable(hGraphExec, node, &copy)
}

/// Adds the setting of memory.
#[entry_point]
fn cudaGraphAddMemsetNode(
    pGraphNode: Out<cudaGraphNode_t>,
    graph: cudaGraph_t,
    pDependencies: *const cudaGraphNode_t,
    numDependencies: usize,
    pMemsetParams: *const cudaMemsetParams,
) -> CudaResult {
    let context = context::current()?;
    let node = pGraphNode.check()?.as_ptr();
    call!(cuGraphAddMemsetNode(node, graph, pDependencies, numDependencies, pMemsetParams, context))
}

/// What a node sets.
#[entry_point]
fn cudaGraphMemsetNodeGetParams(node: cudaGraphNode_t, pNodeParams: *mut cudaMemsetParams) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphMemsetNodeGetParams(node, pNodeParams))
}

/// Sets what a node sets.
#[entry_point]
fn cudaGraphMemsetNodeSetParams(node: cudaGraphNode_t, pNodeParams: *const cudaMemsetParams) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphMemsetNodeSetParams(node, pNodeParams))
}

/// Sets what a node sets, in an executable graph.
#[entry_point]
fn cudaGraphExecMemsetNodeSetParams(
    hGraphExec: cudaGraphExec_t,
    node: cudaGraphNode_t,
    pNodeParams: *const cudaMemsetParams,
) -> CudaResult {
    let context = context::current()?;
    call!(cuGraphExecMemsetNodeSetParams(hGraphExec, node, pNodeParams, context))
}

fn add(
    node: Out<cudaGraphNode_t>,
    graph: cudaGraph_t,
    dependencies: *const cudaGraphNode_t,
    count: usize,
    copy: &CUDA_MEMCPY3D,
) -> CudaResult {
    let context = context::current()?;
    call!(cuGraphAddMemcpyNode(node.check()?.as_ptr(), graph, dependencies, count, copy, context))
}

fn set_in_executable(graph: cudaGraphExec_t, node: cudaGraphNode_t, copy: &CUDA_MEMCPY3D) -> CudaResult {
    let context = context::current()?;
    call!(cuGraphExecMemcpyNodeSetParams(graph, node, copy, context))
}

/// A copy of a box, which in a graph must not be empty.
fn box_copy(parameters: In<cudaMemcpy3DParms>) -> CudaResult<CUDA_MEMCPY3D> {
    context::ensure_current()?;
    describe_3d(&parameters.get()?)?.ok_or(cudaErrorInvalidValue)
}

fn to_symbol(
    symbol: *const c_void,
    src: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
) -> CudaResult<CUDA_MEMCPY3D> {
    let dst = place(symbol, offset, count)?;
    check_kind_with_device(kind, cudaMemcpyHostToDevice)?;
    describe_1d(dst, src, count, kind)
}

fn from_symbol(
    dst: *mut c_void,
    symbol: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
) -> CudaResult<CUDA_MEMCPY3D> {
    let src = place(symbol, offset, count)?;
    check_kind_with_device(kind, cudaMemcpyDeviceToHost)?;
    describe_1d(dst, src, count, kind)
}
