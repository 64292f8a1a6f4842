//! Unified addressing: what is known of an address.

use super::memory::find_there;
use super::virtual_memory::{access_code, handle_types};
use crate::contexts;
use crate::error::CuResult;
use crate::platform::platform;
use crate::pools;
use cuda_abi::args::{Array, In};
use cuda_abi::driver::*;
use device::memory::{Access, Allocation, GRANULARITY, Kind, Mapping, MemoryPlace, PAGE};
use entry_macros::entry_point;
use std::ffi::c_void;
use std::ops::Range;

/// Writes the attribute's value, of the type that the manual gives it.
#[entry_point]
unsafe fn cuPointerGetAttribute(
    data: *mut c_void,
    attribute: CUpointer_attribute,
    ptr: CUdeviceptr,
) -> CuResult {
    if data.is_null() || attribute.name().is_none() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let allocation = find_there(ptr.0)?.ok_or(CUDA_ERROR_INVALID_VALUE)?;
    let value = value(attribute, ptr, &allocation)?;
    // SAFETY: not null, and the manual wants a place for a value of the attribute's type.
    unsafe { value.write(data) };
    Ok(())
}

/// Several attributes at once; of an unknown address all are 0.
#[entry_point]
unsafe fn cuPointerGetAttributes(
    numAttributes: u32,
    attributes: Array<CUpointer_attribute>,
    data: Array<*mut c_void>,
    ptr: CUdeviceptr,
) -> CuResult {
    let allocation = find_there(ptr.0)?;
    if numAttributes == 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    for index in 0..numAttributes as usize {
        let (attribute, place) = (attributes.get(index)?, data.get(index)?);
        if place.is_null() || attribute.name().is_none() {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
        let known = allocation.as_ref().and_then(|allocation| value(attribute, ptr, allocation).ok());
        // SAFETY: not null, and the manual wants a place for a value of the attribute's type.
        unsafe { known.unwrap_or_else(|| untold(attribute, ptr, allocation.is_some())).write(place) };
    }
    Ok(())
}

/// The only attribute that can be set has synchronous calls on the allocation wait until they are done.
#[entry_point]
unsafe fn cuPointerSetAttribute(
    value: *const c_void,
    attribute: CUpointer_attribute,
    ptr: CUdeviceptr,
) -> CuResult {
    // SAFETY: null, or a 32-bit number, which is what the manual gives the attribute.
    let value = unsafe { In::new(value.cast::<u32>()) }.get()?;
    match attribute {
        CU_POINTER_ATTRIBUTE_SYNC_MEMOPS => Ok(platform()?.memory().set_synchronous(ptr.0, value != 0)?),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

/// A value with the size that the driver writes: of what is true or false four bytes.
enum Value {
    Word(u32),
    Long(u64),
    Two(u64, u64),
}

impl Value {
    /// # Safety
    /// The place is writable for the value's size.
    unsafe fn write(self, place: *mut c_void) {
        // SAFETY: the caller's duty; the place may have any alignment.
        unsafe {
            match self {
                Value::Word(value) => place.cast::<u32>().write_unaligned(value),
                Value::Long(value) => place.cast::<u64>().write_unaligned(value),
                Value::Two(first, second) => place.cast::<[u64; 2]>().write_unaligned([first, second]),
            }
        }
    }
}

fn value(attribute: CUpointer_attribute, pointer: CUdeviceptr, allocation: &Allocation) -> CuResult<Value> {
    let managed = matches!(allocation.kind, Kind::Managed { .. });
    // Of memory that the program has mapped itself, allocation and range are different things.
    let mapping = match allocation.kind {
        Kind::Mapped => platform()?.memory().mapping(pointer.0).ok(),
        _ => None,
    };
    let at_host = |mapping: &Mapping| mapping.memory.purpose().place != MemoryPlace::Device;
    let is_host = allocation.kind.is_host() || mapping.as_ref().is_some_and(at_host);
    let whole = allocation.base..allocation.end();
    let mapped = mapping.as_ref().map_or_else(|| pages_of(allocation), |mapping| mapping.mapped.clone());
    let range = mapping.as_ref().map_or(whole, |mapping| mapping.reserved.clone());
    Ok(match attribute {
        // Memory of a pool is the device's, no context's.
        CU_POINTER_ATTRIBUTE_CONTEXT if allocation.pool.is_some() => Value::Long(0),
        CU_POINTER_ATTRIBUTE_CONTEXT => Value::Long(contexts::handle_of(allocation.owner).0 as u64),
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE => {
            Value::Word(if is_host { CU_MEMORYTYPE_HOST.0 } else { CU_MEMORYTYPE_DEVICE.0 })
        }
        // Host memory of a pool has none for a device that was not given access.
        CU_POINTER_ATTRIBUTE_DEVICE_POINTER if is_out_of_reach(allocation) => {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
        CU_POINTER_ATTRIBUTE_DEVICE_POINTER => Value::Long(pointer.0),
        CU_POINTER_ATTRIBUTE_HOST_POINTER if is_host || managed => Value::Long(pointer.0),
        CU_POINTER_ATTRIBUTE_SYNC_MEMOPS => Value::Word(allocation.synchronous.into()),
        CU_POINTER_ATTRIBUTE_BUFFER_ID => Value::Long(allocation.id),
        CU_POINTER_ATTRIBUTE_IS_MANAGED => Value::Word(managed.into()),
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => Value::Word(allocation.device as u32),
        // What `cuIpcGetMemHandle` takes.
        CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE => {
            Value::Word((allocation.kind == Kind::Device).into())
        }
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR => Value::Long(range.start),
        CU_POINTER_ATTRIBUTE_RANGE_SIZE => Value::Long(range.end - range.start),
        CU_POINTER_ATTRIBUTE_MAPPED => Value::Word(1),
        CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES => {
            let types = match mapping {
                Some(mapping) => handle_types(&mapping.memory),
                None if is_of_shared_pool(allocation)? => CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                None => CU_MEM_HANDLE_TYPE_NONE,
            };
            Value::Long(types.0.into())
        }
        CU_POINTER_ATTRIBUTE_ACCESS_FLAGS => {
            let access = mapping.map_or(Access::ReadWrite, |mapping| mapping.access);
            Value::Word(access_code(access).0)
        }
        CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE => {
            let pool = allocation.pool.map_or(Ok(CUmemoryPool::NULL), pools::handle_of_id)?;
            Value::Long(pool.0 as u64)
        }
        CU_POINTER_ATTRIBUTE_MAPPING_SIZE => Value::Long(mapped.end - mapped.start),
        CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR => Value::Long(mapped.start),
        // Memory of mappings has numbers of its own, far from those of allocations.
        CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID => {
            Value::Long(mapping.map_or(allocation.id, |mapping| mapping.memory.id() | 1 << 63))
        }
        CU_POINTER_ATTRIBUTE_HOST_POINTER | CU_POINTER_ATTRIBUTE_P2P_TOKENS => {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
        other => unknown(other),
    })
}

/// The pages that an allocation lies in, which others may share.
fn pages_of(allocation: &Allocation) -> Range<u64> {
    let grain = if matches!(allocation.kind, Kind::Registered { .. }) { PAGE } else { GRANULARITY };
    allocation.base & !(grain - 1)..allocation.end().next_multiple_of(grain)
}

/// Whether other processes may be given the allocation's pool.
fn is_of_shared_pool(allocation: &Allocation) -> CuResult<bool> {
    let Some((_, pool)) = allocation.pool.and_then(pools::of_id) else { return Ok(false) };
    let memory = platform()?.memory();
    Ok(memory.is_shared(&pool) && !memory.is_imported(&pool))
}

/// Whether this is host memory of a pool to which the current device has not been given access.
fn is_out_of_reach(allocation: &Allocation) -> bool {
    let device = contexts::current().map_or(0, |context| context.device());
    let pool = allocation.pool.filter(|_| allocation.kind == Kind::PooledHost).and_then(pools::of_id);
    pool.is_some_and(|(_, pool)| !pool.access().of_device(device))
}

/// What is told of an address where there is nothing to tell. An address of nothing that is known is the host's, as far as is known.
fn untold(attribute: CUpointer_attribute, pointer: CUdeviceptr, is_known: bool) -> Value {
    match attribute {
        CU_POINTER_ATTRIBUTE_HOST_POINTER if !is_known => Value::Long(pointer.0),
        _ => unknown(attribute),
    }
}

/// The value that says nothing.
fn unknown(attribute: CUpointer_attribute) -> Value {
    match attribute {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE | CU_POINTER_ATTRIBUTE_ACCESS_FLAGS => Value::Word(0),
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => Value::Word(CU_DEVICE_INVALID as u32),
        CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
        | CU_POINTER_ATTRIBUTE_IS_MANAGED
        | CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE
        | CU_POINTER_ATTRIBUTE_MAPPED
        | CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE
        | CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE => Value::Word(0),
        CU_POINTER_ATTRIBUTE_P2P_TOKENS => Value::Two(0, 0),
        _ => Value::Long(0),
    }
}
