//! External resource interoperability: memory and semaphores of other APIs.

use super::memory::array::describe;
use super::prelude::*;
use crate::context;
use crate::streams::resolve;

/// Imports memory that another API has exported.
#[entry_point]
fn cudaImportExternalMemory(
    extMem_out: Out<cudaExternalMemory_t>,
    memHandleDesc: In<cudaExternalMemoryHandleDesc>,
) -> CudaResult {
    context::ensure_current()?;
    let memory = extMem_out.check()?;
    let cudaExternalMemoryHandleDesc { r#type, handle, size, flags } = memHandleDesc.get()?;
    let described = CUDA_EXTERNAL_MEMORY_HANDLE_DESC { r#type, handle, size, flags, reserved: [0; 16] };
    call!(cuImportExternalMemory(memory.as_ptr(), &described))
}

/// Gives imported memory up.
#[entry_point]
fn cudaDestroyExternalMemory(extMem: cudaExternalMemory_t) -> CudaResult {
    context::ensure_current()?;
    call!(cuDestroyExternalMemory(extMem))
}

/// Maps a part of imported memory. `cudaFree` takes the mapping back.
#[entry_point]
fn cudaExternalMemoryGetMappedBuffer(
    devPtr: Out<*mut c_void>,
    extMem: cudaExternalMemory_t,
    bufferDesc: In<cudaExternalMemoryBufferDesc>,
) -> CudaResult {
    context::ensure_current()?;
    let address = devPtr.check()?;
    let cudaExternalMemoryBufferDesc { offset, size, flags } = bufferDesc.get()?;
    let described = CUDA_EXTERNAL_MEMORY_BUFFER_DESC { offset, size, flags, reserved: [0; 16] };
    call!(cuExternalMemoryGetMappedBuffer(address.as_ptr().cast(), extMem, &described))
}

/// Makes an array with mipmap levels in imported memory.
#[entry_point]
fn cudaExternalMemoryGetMappedMipmappedArray(
    mipmap: Out<cudaMipmappedArray_t>,
    extMem: cudaExternalMemory_t,
    mipmapDesc: In<cudaExternalMemoryMipmappedArrayDesc>,
) -> CudaResult {
    context::ensure_current()?;
    let array = mipmap.check()?;
    let wanted = mipmapDesc.get()?;
    let described = CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC {
        offset: wanted.offset,
        arrayDesc: describe(&wanted.formatDesc, wanted.extent, wanted.flags)?,
        numLevels: wanted.numLevels,
        reserved: [0; 16],
    };
    call!(cuExternalMemoryGetMappedMipmappedArray(array.as_ptr().cast(), extMem, &described))
}

/// Imports a semaphore that another API has exported.
#[entry_point]
fn cudaImportExternalSemaphore(
    extSem_out: Out<cudaExternalSemaphore_t>,
    semHandleDesc: In<cudaExternalSemaphoreHandleDesc>,
) -> CudaResult {
    context::ensure_current()?;
    let semaphore = extSem_out.check()?;
    let cudaExternalSemaphoreHandleDesc { r#type, handle, flags } = semHandleDesc.get()?;
    let described = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC { r#type, handle, flags, reserved: [0; 16] };
    call!(cuImportExternalSemaphore(semaphore.as_ptr(), &described))
}

/// Gives an imported semaphore up.
#[entry_point]
fn cudaDestroyExternalSemaphore(extSem: cudaExternalSemaphore_t) -> CudaResult {
    context::ensure_current()?;
    call!(cuDestroyExternalSemaphore(extSem))
}

/// Signals semaphores when the work before is done.
#[entry_point(ptsz)]
fn cudaSignalExternalSemaphoresAsync(
    default: DefaultStream,
    extSemArray: *const cudaExternalSemaphore_t,
    paramsArray: *const cudaExternalSemaphoreSignalParams,
    numExtSems: u32,
    stream: cudaStream_t,
) -> CudaResult {
    context::ensure_current()?;
    let stream = resolve(default, stream);
    call!(cuSignalExternalSemaphoresAsync(extSemArray, paramsArray, numExtSems, stream))
}

/// The work after waits for semaphores.
#[entry_point(ptsz)]
fn cudaWaitExternalSemaphoresAsync(
    default: DefaultStream,
    extSemArray: *const cudaExternalSemaphore_t,
    paramsArray: *const cudaExternalSemaphoreWaitParams,
    numExtSems: u32,
    stream: cudaStream_t,
) -> CudaResult {
    context::ensure_current()?;
    let stream = resolve(default, stream);
    call!(cuWaitExternalSemaphoresAsync(extSemArray, paramsArray, numExtSems, stream))
}
