//! Virtual memory management: addresses and memory apart from each other.

use crate::error::CuResult;
use crate::handle::{Kind, Table};
use crate::platform::{device, platform};
use crate::pools::is_node;
use cuda_abi::args::{Array, In, Out};
use cuda_abi::driver::*;
use device::memory::{Access, GRANULARITY, MemoryPlace, PhysicalMemory, Purpose};
use entry_macros::entry_point;
use std::ffi::c_void;
use std::os::fd::{BorrowedFd, IntoRawFd};
use std::sync::Arc;

static MEMORIES: Table<PhysicalMemory> = Table::new(Kind::PhysicalMemory);

pub(super) fn find(handle: CUmemGenericAllocationHandle) -> CuResult<Arc<PhysicalMemory>> {
    MEMORIES.get(handle as usize).map_err(|_| CUDA_ERROR_INVALID_VALUE.into())
}

fn insert(memory: Arc<PhysicalMemory>) -> CuResult<CUmemGenericAllocationHandle> {
    let handle = MEMORIES.insert(memory).ok_or(CUDA_ERROR_OUT_OF_MEMORY)?;
    Ok(handle as CUmemGenericAllocationHandle)
}

/// What properties ask for: memory of a device, or of the host, which goes with the first; shared by descriptors or not at all.
fn wanted(prop: &CUmemAllocationProp) -> CuResult<(usize, Purpose)> {
    if prop.r#type != CU_MEM_ALLOCATION_TYPE_PINNED {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let (location, shared) = (prop.location, prop.requestedHandleTypes);
    if ![CU_MEM_HANDLE_TYPE_NONE, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR].contains(&shared) {
        return Err(CUDA_ERROR_NOT_SUPPORTED.into());
    }
    let (device, place) = match location.r#type {
        CU_MEM_LOCATION_TYPE_DEVICE => (device(location.id)?.ordinal(), MemoryPlace::Device),
        CU_MEM_LOCATION_TYPE_HOST => (0, MemoryPlace::Host),
        CU_MEM_LOCATION_TYPE_HOST_NUMA if is_node(location.id) => (0, MemoryPlace::Node(location.id as u32)),
        CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT => (0, MemoryPlace::Node(0)),
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    };
    Ok((device, Purpose { place, tiles: prop.usage & CU_MEM_CREATE_USAGE_TILE_POOL != 0 }))
}

#[entry_point]
fn cuMemGetAllocationGranularity(
    granularity: Out<usize>,
    prop: In<CUmemAllocationProp>,
    option: CUmemAllocationGranularity_flags,
) -> CuResult {
    granularity.check()?;
    option.name().ok_or(CUDA_ERROR_INVALID_VALUE)?;
    wanted(&prop.get()?)?;
    granularity.set(GRANULARITY as usize)?;
    Ok(())
}

#[entry_point]
fn cuMemAddressReserve(
    ptr: Out<CUdeviceptr>,
    size: usize,
    alignment: usize,
    _addr: CUdeviceptr,
    flags: u64,
) -> CuResult {
    ptr.check()?;
    if flags != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    ptr.set(CUdeviceptr(platform()?.memory().reserve(0, size as u64, alignment as u64)?))?;
    Ok(())
}

#[entry_point]
fn cuMemAddressFree(ptr: CUdeviceptr, size: usize) -> CuResult {
    platform()?.memory().unreserve(ptr.0, size as u64)?;
    Ok(())
}

#[entry_point]
fn cuMemCreate(
    handle: Out<CUmemGenericAllocationHandle>,
    size: usize,
    prop: In<CUmemAllocationProp>,
    flags: u64,
) -> CuResult {
    handle.check()?;
    let prop = prop.get()?;
    let (device, purpose) = wanted(&prop)?;
    if flags != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let shareable = prop.requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE;
    handle.set(insert(platform()?.create_memory(device, size as u64, shareable, purpose)?)?)?;
    Ok(())
}

/// What is mapped of it stays.
#[entry_point]
fn cuMemRelease(handle: CUmemGenericAllocationHandle) -> CuResult {
    MEMORIES.remove(handle as usize).map(drop).map_err(|_| CUDA_ERROR_INVALID_VALUE.into())
}

#[entry_point]
fn cuMemMap(
    ptr: CUdeviceptr,
    size: usize,
    offset: usize,
    handle: CUmemGenericAllocationHandle,
    flags: u64,
) -> CuResult {
    if flags != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    platform()?.memory().map(ptr.0, size as u64, offset as u64, find(handle)?)?;
    Ok(())
}

#[entry_point]
fn cuMemUnmap(ptr: CUdeviceptr, size: usize) -> CuResult {
    platform()?.memory().unmap(ptr.0, size as u64)?;
    Ok(())
}

/// The widest access that is given to any place counts: all share the machine's pages.
#[entry_point]
fn cuMemSetAccess(ptr: CUdeviceptr, size: usize, desc: Array<CUmemAccessDesc>, count: usize) -> CuResult {
    let mut access = Access::None;
    for index in 0..count {
        let wanted = desc.get(index)?;
        check_place(wanted.location)?;
        match CUmemAccess_flags(wanted.flags) {
            CU_MEM_ACCESS_FLAGS_PROT_NONE => {}
            CU_MEM_ACCESS_FLAGS_PROT_READ if access == Access::None => access = Access::Read,
            CU_MEM_ACCESS_FLAGS_PROT_READ => {}
            CU_MEM_ACCESS_FLAGS_PROT_READWRITE => access = Access::ReadWrite,
            _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
        }
    }
    if count == 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    platform()?.memory().set_access(ptr.0, size as u64, access)?;
    Ok(())
}

#[entry_point]
fn cuMemGetAccess(flags: Out<u64>, location: In<CUmemLocation>, ptr: CUdeviceptr) -> CuResult {
    flags.check()?;
    check_place(location.get()?)?;
    flags.set(access_code(platform()?.memory().mapping(ptr.0)?.access).0.into())?;
    Ok(())
}

pub(super) fn access_code(access: Access) -> CUmemAccess_flags {
    match access {
        Access::None => CU_MEM_ACCESS_FLAGS_PROT_NONE,
        Access::Read => CU_MEM_ACCESS_FLAGS_PROT_READ,
        Access::ReadWrite => CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    }
}

/// Whether this is a place that accesses memory.
fn check_place(location: CUmemLocation) -> CuResult {
    match location.r#type {
        CU_MEM_LOCATION_TYPE_DEVICE => device(location.id).map(drop),
        CU_MEM_LOCATION_TYPE_HOST
        | CU_MEM_LOCATION_TYPE_HOST_NUMA
        | CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT => Ok(()),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

#[entry_point]
fn cuMemGetAllocationPropertiesFromHandle(
    prop: Out<CUmemAllocationProp>,
    handle: CUmemGenericAllocationHandle,
) -> CuResult {
    let memory = find(handle)?;
    let Purpose { place, tiles } = memory.purpose();
    let location = match place {
        MemoryPlace::Device => {
            CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_DEVICE, id: memory.device() as i32 }
        }
        MemoryPlace::Host => CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_HOST, id: 0 },
        MemoryPlace::Node(node) => CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_HOST_NUMA, id: node as i32 },
    };
    prop.check()?.set(CUmemAllocationProp {
        r#type: CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: handle_types(&memory),
        location,
        win32HandleMetaData: std::ptr::null_mut(),
        compressionType: 0,
        gpuDirectRDMACapable: 0,
        usage: if tiles { CU_MEM_CREATE_USAGE_TILE_POOL } else { 0 },
        reserved: [0; 4],
    })?;
    Ok(())
}

/// How memory can be handed to other processes.
pub(super) fn handle_types(memory: &PhysicalMemory) -> CUmemAllocationHandleType {
    match memory.is_shareable() {
        true => CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        false => CU_MEM_HANDLE_TYPE_NONE,
    }
}

#[entry_point]
fn cuMemRetainAllocationHandle(handle: Out<CUmemGenericAllocationHandle>, addr: *mut c_void) -> CuResult {
    handle.check()?.set(insert(platform()?.memory().mapping(addr as u64)?.memory)?)?;
    Ok(())
}

/// The descriptor is the caller's to close.
#[entry_point]
unsafe fn cuMemExportToShareableHandle(
    shareableHandle: *mut c_void,
    handle: CUmemGenericAllocationHandle,
    handleType: CUmemAllocationHandleType,
    flags: u64,
) -> CuResult {
    // SAFETY: a place for a descriptor, which is what handles of the one supported type are.
    let place = unsafe { Out::new(shareableHandle.cast::<i32>()) }.check()?;
    if flags != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    if handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR {
        return Err(CUDA_ERROR_NOT_SUPPORTED.into());
    }
    place.set(find(handle)?.export()?.into_raw_fd())?;
    Ok(())
}

/// The descriptor stays the caller's.
#[entry_point]
unsafe fn cuMemImportFromShareableHandle(
    handle: Out<CUmemGenericAllocationHandle>,
    osHandle: *mut c_void,
    shHandleType: CUmemAllocationHandleType,
) -> CuResult {
    handle.check()?;
    if shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR {
        return Err(CUDA_ERROR_NOT_SUPPORTED.into());
    }
    let descriptor = i32::try_from(osHandle as usize).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    // SAFETY: the manual wants an open descriptor; it is used during the call only.
    let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let descriptor = descriptor.try_clone_to_owned().map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    handle.set(insert(PhysicalMemory::import(0, descriptor)?)?)?;
    Ok(())
}
