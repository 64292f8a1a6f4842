//! Memory and semaphores of other APIs behind their handles.

use crate::arrays;
use crate::contexts;
use crate::error::{CuResult, Failure};
use crate::handle::{Kind, Table};
use crate::platform::platform;
use cuda_abi::driver::*;
use device::memory::ExternalMemory;
use device::{Error, ExternalSemaphore, SemaphoreUse};
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

static MEMORIES: Table<ExternalMemory> = Table::new(Kind::ExternalMemory);
static SEMAPHORES: Table<ExternalSemaphore> = Table::new(Kind::ExternalSemaphore);

/// Imports memory. The descriptor is the driver's if that succeeds.
///
/// # Safety
/// The descriptor is the caller's to give away.
pub unsafe fn import_memory(descriptor: RawFd, size: u64) -> CuResult<CUexternalMemory> {
    let device = contexts::usable()?.device();
    let memory = ExternalMemory::import(device, copy_of(descriptor)?, size).map_err(unusable)?;
    let handle = MEMORIES.insert(Arc::new(memory)).ok_or(CUDA_ERROR_OUT_OF_MEMORY)?;
    // SAFETY: the caller's duty.
    unsafe { take(descriptor) };
    Ok(CUexternalMemory(handle))
}

/// What a handle is that is of no object: null is a wrong value.
fn unknown(handle: usize) -> Failure {
    if handle == 0 { CUDA_ERROR_INVALID_VALUE.into() } else { CUDA_ERROR_INVALID_HANDLE.into() }
}

/// The memory of a handle.
pub fn find_memory(handle: CUexternalMemory) -> CuResult<Arc<ExternalMemory>> {
    MEMORIES.get(handle.0).map_err(|_| unknown(handle.0))
}

/// Gives the memory up; what is mapped of it stays.
pub fn destroy_memory(handle: CUexternalMemory) -> CuResult {
    MEMORIES.remove(handle.0).map(drop).map_err(|_| unknown(handle.0))
}

/// Maps a part of the memory in the current context.
pub fn map(memory: CUexternalMemory, offset: u64, size: u64) -> CuResult<CUdeviceptr> {
    let (memory, context) = (find_memory(memory)?, contexts::usable()?);
    Ok(CUdeviceptr(platform()?.memory().map_external(&memory, context.id(), offset, size)?))
}

/// Makes a mipmapped array in the memory, in the current context.
pub fn map_mipmapped(
    memory: CUexternalMemory,
    offset: u64,
    descriptor: CUDA_ARRAY3D_DESCRIPTOR,
    levels: u32,
) -> CuResult<CUmipmappedArray> {
    let memory = find_memory(memory)?;
    arrays::create_mipmapped_in(descriptor, levels, |context, layout| {
        Ok(platform()?.memory().map_external_array(&memory, context.id(), offset, layout)?)
    })
}

/// Imports a semaphore. The descriptor is the driver's if that succeeds.
///
/// # Safety
/// As for [`import_memory`].
pub unsafe fn import_semaphore(descriptor: RawFd, is_timeline: bool) -> CuResult<CUexternalSemaphore> {
    contexts::usable()?;
    let copy = copy_of(descriptor)?;
    let semaphore = match is_timeline {
        true => ExternalSemaphore::import_timeline(copy),
        false => ExternalSemaphore::import_binary(copy),
    };
    let semaphore = semaphore.map_err(unusable)?;
    let handle = SEMAPHORES.insert(Arc::new(semaphore)).ok_or(CUDA_ERROR_OUT_OF_MEMORY)?;
    // SAFETY: the caller's duty.
    unsafe { take(descriptor) };
    Ok(CUexternalSemaphore(handle))
}

/// The semaphore of a handle.
pub fn find_semaphore(handle: CUexternalSemaphore) -> CuResult<Arc<ExternalSemaphore>> {
    SEMAPHORES.get(handle.0).map_err(|_| unknown(handle.0))
}

/// Gives a semaphore up; what is queued still uses it.
pub fn destroy_semaphore(handle: CUexternalSemaphore) -> CuResult {
    SEMAPHORES.remove(handle.0).map(drop).map_err(|_| unknown(handle.0))
}

/// The handle of a semaphore; null if the program has destroyed it.
pub fn handle_of(used: &SemaphoreUse) -> CUexternalSemaphore {
    let found = SEMAPHORES.find_all(|known| std::ptr::eq(known, Arc::as_ptr(&used.semaphore)));
    found.first().map_or(CUexternalSemaphore::NULL, |(handle, _)| CUexternalSemaphore(*handle))
}

/// A descriptor of something else is an unknown error, as it is on a GPU.
fn unusable(error: Error) -> Failure {
    match error {
        Error::OperatingSystem(_) => CUDA_ERROR_UNKNOWN.into(),
        other => other.into(),
    }
}

/// A descriptor of the same, while the program's stays its own.
fn copy_of(descriptor: RawFd) -> CuResult<OwnedFd> {
    if descriptor < 0 {
        return Err(CUDA_ERROR_UNKNOWN.into());
    }
    // SAFETY: not negative, and used during the call only; one that is not open fails to be copied.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    borrowed.try_clone_to_owned().map_err(|_| CUDA_ERROR_UNKNOWN.into())
}

/// Closes the program's descriptor, which it has given away.
///
/// # Safety
/// It is the caller's to give away.
unsafe fn take(descriptor: RawFd) {
    // SAFETY: the caller's contract; it was open when it was copied.
    drop(unsafe { OwnedFd::from_raw_fd(descriptor) });
}
