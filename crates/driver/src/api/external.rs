//! External resource interoperability: memory and semaphores of other APIs, by file descriptors.
//!
//! There is no other driver for graphics or video behind this device. What a descriptor can lead to is an object of the operating
//! system: memory that can be mapped (such as `cuMemExportToShareableHandle` gives, or `memfd_create`), an event counter
//! (`eventfd`) as a semaphore, and memory whose first eight bytes are the number of a timeline semaphore.

use crate::error::CuResult;
use crate::external;
use crate::node_work::Work;
use crate::streams;
use crate::{graphs, graphs::find_node};
use cuda_abi::args::{Array, In, Out};
use cuda_abi::driver::*;
use cuda_abi::shim::DefaultStream;
use device::SemaphoreUse;
use entry_macros::entry_point;

/// Handles of Windows, NVIDIA's own interfaces and `dma_buf` objects are not for this device.
#[entry_point]
unsafe fn cuImportExternalMemory(
    extMem_out: Out<CUexternalMemory>,
    memHandleDesc: In<CUDA_EXTERNAL_MEMORY_HANDLE_DESC>,
) -> CuResult {
    let (place, wanted) = (extMem_out.check()?, memHandleDesc.get()?);
    wanted.r#type.name().ok_or(CUDA_ERROR_INVALID_VALUE)?;
    let dedicated = wanted.flags & CUDA_EXTERNAL_MEMORY_DEDICATED != 0;
    let is_resource = matches!(
        wanted.r#type,
        CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE
            | CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE
            | CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE_KMT
    );
    if wanted.size == 0 || wanted.flags & !CUDA_EXTERNAL_MEMORY_DEDICATED != 0 || (is_resource && !dedicated)
    {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    if wanted.r#type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD {
        return Err(CUDA_ERROR_NOT_SUPPORTED.into());
    }
    // SAFETY: the type says that this member is set; the descriptor is the caller's to give away, by the manual.
    place.set(unsafe { external::import_memory(wanted.handle.fd, wanted.size) }?)?;
    Ok(())
}

#[entry_point]
fn cuDestroyExternalMemory(extMem: CUexternalMemory) -> CuResult {
    external::destroy_memory(extMem)
}

#[entry_point]
fn cuExternalMemoryGetMappedBuffer(
    devPtr: Out<CUdeviceptr>,
    extMem: CUexternalMemory,
    bufferDesc: In<CUDA_EXTERNAL_MEMORY_BUFFER_DESC>,
) -> CuResult {
    let (place, wanted) = (devPtr.check()?, bufferDesc.get()?);
    if wanted.flags != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    place.set(external::map(extMem, wanted.offset, wanted.size)?)?;
    Ok(())
}

/// Levels lie one behind the other, each at a multiple of 512 bytes, texels in rows without gaps.
#[entry_point]
fn cuExternalMemoryGetMappedMipmappedArray(
    mipmap: Out<CUmipmappedArray>,
    extMem: CUexternalMemory,
    mipmapDesc: In<CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC>,
) -> CuResult {
    let (place, wanted) = (mipmap.check()?, mipmapDesc.get()?);
    // To be drawn to by a graphics API makes no difference to texels in rows.
    let mut descriptor = wanted.arrayDesc;
    descriptor.Flags &= !CUDA_ARRAY3D_COLOR_ATTACHMENT;
    if wanted.numLevels == 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    place.set(external::map_mipmapped(extMem, wanted.offset, descriptor, wanted.numLevels)?)?;
    Ok(())
}

#[entry_point]
unsafe fn cuImportExternalSemaphore(
    extSem_out: Out<CUexternalSemaphore>,
    semHandleDesc: In<CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC>,
) -> CuResult {
    let (place, wanted) = (extSem_out.check()?, semHandleDesc.get()?);
    wanted.r#type.name().ok_or(CUDA_ERROR_INVALID_VALUE)?;
    if wanted.flags != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let is_timeline = match wanted.r#type {
        CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD => false,
        CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD => true,
        _ => return Err(CUDA_ERROR_NOT_SUPPORTED.into()),
    };
    // SAFETY: the type says that this member is set.
    if is_timeline && unsafe { wanted.handle.fd } < 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    // SAFETY: as above; the descriptor is the caller's to give away, by the manual.
    place.set(unsafe { external::import_semaphore(wanted.handle.fd, is_timeline) }?)?;
    Ok(())
}

#[entry_point]
fn cuDestroyExternalSemaphore(extSem: CUexternalSemaphore) -> CuResult {
    external::destroy_semaphore(extSem)
}

#[entry_point(ptsz)]
unsafe fn cuSignalExternalSemaphoresAsync(
    default: DefaultStream,
    extSemArray: Array<CUexternalSemaphore>,
    paramsArray: Array<CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS>,
    numExtSems: u32,
    stream: CUstream,
) -> CuResult {
    let stream = streams::find(stream, default)?;
    if numExtSems == 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    // SAFETY: the caller's arrays, as long as the count says.
    let uses = unsafe { read_uses(extSemArray, paramsArray, numExtSems, |each| (each.value, each.flags)) }?;
    stream.signal_semaphores(&uses)?;
    Ok(())
}

#[entry_point(ptsz)]
unsafe fn cuWaitExternalSemaphoresAsync(
    default: DefaultStream,
    extSemArray: Array<CUexternalSemaphore>,
    paramsArray: Array<CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS>,
    numExtSems: u32,
    stream: CUstream,
) -> CuResult {
    let stream = streams::find(stream, default)?;
    if numExtSems == 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    // SAFETY: the caller's arrays, as long as the count says.
    let uses = unsafe { read_uses(extSemArray, paramsArray, numExtSems, |each| (each.value, each.flags)) }?;
    stream.wait_for_semaphores(&uses)?;
    Ok(())
}

#[entry_point]
unsafe fn cuGraphAddExternalSemaphoresSignalNode(
    phGraphNode: Out<CUgraphNode>,
    hGraph: CUgraph,
    dependencies: Array<CUgraphNode>,
    numDependencies: usize,
    nodeParams: In<CUDA_EXT_SEM_SIGNAL_NODE_PARAMS>,
) -> CuResult {
    // SAFETY: the caller's duty.
    let work = unsafe { Work::signal(&nodeParams.get()?) }?;
    graphs::add(phGraphNode, hGraph, dependencies, numDependencies, work)?;
    Ok(())
}

#[entry_point]
fn cuGraphExternalSemaphoresSignalNodeGetParams(
    hNode: CUgraphNode,
    params_out: Out<CUDA_EXT_SEM_SIGNAL_NODE_PARAMS>,
) -> CuResult {
    let (node, graph) = find_node(hNode)?;
    params_out.check()?.set(node.signals(&graph.operation(node.id)?)?)?;
    Ok(())
}

#[entry_point]
unsafe fn cuGraphExternalSemaphoresSignalNodeSetParams(
    hNode: CUgraphNode,
    nodeParams: In<CUDA_EXT_SEM_SIGNAL_NODE_PARAMS>,
) -> CuResult {
    // SAFETY: the caller's duty.
    graphs::set(hNode, unsafe { Work::signal(&nodeParams.get()?) }?)
}

/// The number of semaphores stays.
#[entry_point]
unsafe fn cuGraphExecExternalSemaphoresSignalNodeSetParams(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    nodeParams: In<CUDA_EXT_SEM_SIGNAL_NODE_PARAMS>,
) -> CuResult {
    // SAFETY: the caller's duty.
    graphs::set_in_executable(hGraphExec, hNode, unsafe { Work::signal(&nodeParams.get()?) }?)
}

#[entry_point]
unsafe fn cuGraphAddExternalSemaphoresWaitNode(
    phGraphNode: Out<CUgraphNode>,
    hGraph: CUgraph,
    dependencies: Array<CUgraphNode>,
    numDependencies: usize,
    nodeParams: In<CUDA_EXT_SEM_WAIT_NODE_PARAMS>,
) -> CuResult {
    // SAFETY: the caller's duty.
    let work = unsafe { Work::await_semaphores(&nodeParams.get()?) }?;
    graphs::add(phGraphNode, hGraph, dependencies, numDependencies, work)?;
    Ok(())
}

#[entry_point]
fn cuGraphExternalSemaphoresWaitNodeGetParams(
    hNode: CUgraphNode,
    params_out: Out<CUDA_EXT_SEM_WAIT_NODE_PARAMS>,
) -> CuResult {
    let (node, graph) = find_node(hNode)?;
    params_out.check()?.set(node.waits(&graph.operation(node.id)?)?)?;
    Ok(())
}

#[entry_point]
unsafe fn cuGraphExternalSemaphoresWaitNodeSetParams(
    hNode: CUgraphNode,
    nodeParams: In<CUDA_EXT_SEM_WAIT_NODE_PARAMS>,
) -> CuResult {
    // SAFETY: the caller's duty.
    graphs::set(hNode, unsafe { Work::await_semaphores(&nodeParams.get()?) }?)
}

/// The number of semaphores stays.
#[entry_point]
unsafe fn cuGraphExecExternalSemaphoresWaitNodeSetParams(
    hGraphExec: CUgraphExec,
    hNode: CUgraphNode,
    nodeParams: In<CUDA_EXT_SEM_WAIT_NODE_PARAMS>,
) -> CuResult {
    // SAFETY: the caller's duty.
    graphs::set_in_executable(hGraphExec, hNode, unsafe { Work::await_semaphores(&nodeParams.get()?) }?)
}

/// The semaphores of a list and what is to be done with each, as signals and waits have it, whose value and flags `read` takes out.
///
/// # Safety
/// The arrays are null or as long as the count says.
pub unsafe fn read_uses<P: Copy>(
    semaphores: Array<CUexternalSemaphore>,
    params: Array<P>,
    count: u32,
    read: impl Fn(&P) -> (u64, u32),
) -> CuResult<Vec<SemaphoreUse>> {
    // Both lists must be there, empty ones too.
    if semaphores.is_null() || params.is_null() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let used = |index| -> CuResult<SemaphoreUse> {
        // What is no list of semaphores is noticed at its first, before more is read.
        let semaphore = external::find_semaphore(semaphores.get(index)?)?;
        let (value, flags) = read(&params.get(index)?);
        // Flags are for semaphores of another sort.
        if flags == 0 { Ok(SemaphoreUse { semaphore, value }) } else { Err(CUDA_ERROR_INVALID_VALUE.into()) }
    };
    (0..count as usize).map(used).collect()
}
