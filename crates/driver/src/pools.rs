//! Memory pools behind their handles.

use crate::contexts;
use crate::error::CuResult;
use crate::handle::{Kind, Table};
use crate::platform::{device, platform};
use cuda_abi::driver::*;
use device::memory::{Pool, PoolId};
use std::os::fd::OwnedFd;
use std::sync::Arc;

static POOLS: Table<Pool> = Table::new(Kind::MemoryPool);

/// The pool of a handle.
pub fn find(handle: CUmemoryPool) -> CuResult<Arc<Pool>> {
    POOLS.get(handle.0).map_err(|_| CUDA_ERROR_INVALID_VALUE.into())
}

/// The handle of a pool; a new one the first time.
pub fn handle_of(pool: &Arc<Pool>) -> CuResult<CUmemoryPool> {
    let known = POOLS.find_all(|known| known.id() == pool.id());
    match known.first() {
        Some((handle, _)) => Ok(CUmemoryPool(*handle)),
        None => POOLS.insert(pool.clone()).map(CUmemoryPool).ok_or(CUDA_ERROR_OUT_OF_MEMORY.into()),
    }
}

/// The handle of the pool of an allocation; null if it is gone.
pub fn handle_of_id(id: PoolId) -> CUmemoryPool {
    let known = POOLS.find_all(|known| known.id() == id);
    known.first().map_or(CUmemoryPool::NULL, |(handle, _)| CUmemoryPool(*handle))
}

/// Makes a pool of device memory, in this process or for sharing by descriptors.
pub fn create(props: &CUmemPoolProps) -> CuResult<CUmemoryPool> {
    if props.allocType != CU_MEM_ALLOCATION_TYPE_PINNED || props.usage != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    if props.location.r#type != CU_MEM_LOCATION_TYPE_DEVICE {
        return Err(CUDA_ERROR_NOT_SUPPORTED.into());
    }
    let device = device(props.location.id)?;
    handle_of(&match CUmemAllocationHandleType(props.handleTypes) {
        CU_MEM_HANDLE_TYPE_NONE => device.create_pool(),
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR => device.create_shared_pool(props.maxSize as u64)?,
        _ => return Err(CUDA_ERROR_NOT_SUPPORTED.into()),
    })
}

/// Opens another process's pool on the current device.
pub fn import(descriptor: OwnedFd) -> CuResult<CUmemoryPool> {
    let ordinal = contexts::current().map_or(0, |context| context.device());
    handle_of(&device(ordinal as CUdevice)?.import_pool(descriptor)?)
}

/// Makes a pool's handle stale; its allocations stay. A device that uses it goes back to its default pool.
pub fn destroy(handle: CUmemoryPool) -> CuResult {
    let pool = find(handle)?;
    let device = device(pool.device() as CUdevice)?;
    if device.default_pool().id() == pool.id() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    if device.current_pool().id() == pool.id() {
        device.set_current_pool(device.default_pool().clone())?;
    }
    POOLS.remove(handle.0).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    platform()?.memory().close_shared_pool(&pool);
    Ok(())
}

/// The device of a place that pools can be for.
pub fn device_at(
    location: CUmemLocation,
    kind: CUmemAllocationType,
) -> CuResult<&'static Arc<device::Device>> {
    if kind != CU_MEM_ALLOCATION_TYPE_PINNED {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    match location.r#type {
        CU_MEM_LOCATION_TYPE_DEVICE => device(location.id),
        _ => Err(CUDA_ERROR_NOT_SUPPORTED.into()),
    }
}
