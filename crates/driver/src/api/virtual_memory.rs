//! Virtual memory management: addresses and memory apart from each other.

use super::memory;
use crate::error::CuResult;
use crate::handle::{Kind, Table};
use crate::platform::{device, platform};
use crate::pools::is_node;
use cuda_abi::args::{Array, In, Out};
use cuda_abi::driver::*;
use cuda_abi::shim::locked;
use device::memory::{Access, Accessor, GRANULARITY, Mapping, MemoryPlace, PhysicalMemory, Purpose};
use entry_macros::entry_point;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::os::fd::{BorrowedFd, IntoRawFd};
use std::sync::{Arc, Mutex, MutexGuard};

static MEMORIES: Table<PhysicalMemory> = Table::new(Kind::PhysicalMemory);

/// Of each memory that has a handle, by its number: the handle, and how often it has yet to be released.
static HOLDS: Mutex<BTreeMap<u64, (usize, u32)>> = Mutex::new(BTreeMap::new());

fn holds() -> MutexGuard<'static, BTreeMap<u64, (usize, u32)>> {
    locked(&HOLDS)
}

pub(super) fn find(handle: CUmemGenericAllocationHandle) -> CuResult<Arc<PhysicalMemory>> {
    MEMORIES.get(handle as usize).map_err(|_| CUDA_ERROR_INVALID_VALUE.into())
}

/// The memory's handle, to be released once more.
fn retain(memory: Arc<PhysicalMemory>) -> CuResult<CUmemGenericAllocationHandle> {
    let mut holds = holds();
    let id = memory.id();
    if let Some((handle, times)) = holds.get_mut(&id) {
        *times += 1;
        return Ok(*handle as CUmemGenericAllocationHandle);
    }
    let handle = MEMORIES.insert(memory).ok_or(CUDA_ERROR_OUT_OF_MEMORY)?;
    holds.insert(id, (handle, 1));
    Ok(handle as CUmemGenericAllocationHandle)
}

/// What properties ask for: memory of a device, or of the host, which goes with the first; shared by descriptors or not at all.
fn wanted(prop: &CUmemAllocationProp) -> CuResult<(usize, Purpose)> {
    let (location, shared) = (prop.location, prop.requestedHandleTypes);
    let of_device = location.r#type == CU_MEM_LOCATION_TYPE_DEVICE;
    let ordinal = if of_device { device(location.id)?.ordinal() } else { 0 };
    if prop.r#type != CU_MEM_ALLOCATION_TYPE_PINNED {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let (device, place) = match location.r#type {
        CU_MEM_LOCATION_TYPE_DEVICE => (ordinal, MemoryPlace::Device),
        // Host memory is shared where its node is said.
        CU_MEM_LOCATION_TYPE_HOST if shared == CU_MEM_HANDLE_TYPE_NONE => (0, MemoryPlace::Node(0)),
        CU_MEM_LOCATION_TYPE_HOST_NUMA if is_node(location.id) => (0, MemoryPlace::Node(location.id as u32)),
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    };
    match shared {
        CU_MEM_HANDLE_TYPE_NONE | CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR => {}
        CU_MEM_HANDLE_TYPE_WIN32 | CU_MEM_HANDLE_TYPE_WIN32_KMT => {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
        // There are no handles for other machines.
        _ => return Err(CUDA_ERROR_NOT_SUPPORTED.into()),
    }
    let tiles = prop.usage & CU_MEM_CREATE_USAGE_TILE_POOL != 0;
    // Memory for tiles is a device's, and this process's.
    if tiles && (place != MemoryPlace::Device || shared != CU_MEM_HANDLE_TYPE_NONE) {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    Ok((device, Purpose { place, tiles }))
}

/// All memory has the same, whatever the properties say.
#[entry_point]
fn cuMemGetAllocationGranularity(
    granularity: Out<usize>,
    prop: In<CUmemAllocationProp>,
    option: CUmemAllocationGranularity_flags,
) -> CuResult {
    granularity.check()?;
    option.name().ok_or(CUDA_ERROR_INVALID_VALUE)?;
    prop.get()?;
    granularity.set(GRANULARITY as usize)?;
    Ok(())
}

/// Where the program would like the addresses to be is a wish, granted where they are free.
#[entry_point]
fn cuMemAddressReserve(
    ptr: Out<CUdeviceptr>,
    size: usize,
    alignment: usize,
    addr: CUdeviceptr,
    flags: u64,
) -> CuResult {
    ptr.check()?;
    if flags != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let (size, alignment) = (size as u64, alignment as u64);
    ptr.set(CUdeviceptr(platform()?.memory().reserve(0, size, alignment, addr.0)?))?;
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
    // There are two sorts of compression: none, and the usual one. What another system's handles need there is not.
    if flags != 0
        || !prop.win32HandleMetaData.is_null()
        || prop.compressionType > 1
        || prop.reserved != [0; 4]
    {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let shareable = prop.requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE;
    handle.set(retain(platform()?.create_memory(device, size as u64, shareable, purpose)?)?)?;
    Ok(())
}

/// What is mapped of it stays.
#[entry_point]
fn cuMemRelease(handle: CUmemGenericAllocationHandle) -> CuResult {
    let mut holds = holds();
    let id = find(handle)?.id();
    if let Some((_, times)) = holds.get_mut(&id).filter(|(_, times)| *times > 1) {
        *times -= 1;
        return Ok(());
    }
    holds.remove(&id);
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
    let memory = find(handle)?;
    // Tiles are of arrays.
    if memory.purpose().tiles {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    // Of memory that is not of arrays all is mapped, or nothing.
    if size == 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    if offset != 0 || size as u64 != memory.size() {
        return Err(CUDA_ERROR_NOT_SUPPORTED.into());
    }
    platform()?.memory().map(ptr.0, size as u64, offset as u64, memory)?;
    Ok(())
}

#[entry_point]
fn cuMemUnmap(ptr: CUdeviceptr, size: usize) -> CuResult {
    platform()?.memory().unmap(ptr.0, size as u64)?;
    Ok(())
}

/// The host has access to its own memory only. Nothing changes where one of the places is none.
#[entry_point]
fn cuMemSetAccess(ptr: CUdeviceptr, size: usize, desc: Array<CUmemAccessDesc>, count: usize) -> CuResult {
    if count == 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let memory = platform()?.memory();
    let is_of_device = |mapping: Mapping| mapping.memory.purpose().place == MemoryPlace::Device;
    let is_of_device = memory.mapping(ptr.0).is_ok_and(is_of_device);
    let mut given = Vec::new();
    for index in 0..count {
        let wanted = desc.get(index)?;
        let access = match CUmemAccess_flags(wanted.flags) {
            CU_MEM_ACCESS_FLAGS_PROT_NONE => Access::None,
            CU_MEM_ACCESS_FLAGS_PROT_READ => Access::Read,
            CU_MEM_ACCESS_FLAGS_PROT_READWRITE => Access::ReadWrite,
            _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
        };
        let accessor = accessor(wanted.location).ok_or(CUDA_ERROR_INVALID_VALUE)?;
        if accessor == Accessor::Host && access != Access::None && is_of_device {
            return Err(CUDA_ERROR_NOT_SUPPORTED.into());
        }
        given.push((accessor, access));
    }
    platform()?.set_access(ptr.0, size as u64, &given)?;
    Ok(())
}

#[entry_point]
fn cuMemGetAccess(flags: Out<u64>, location: In<CUmemLocation>, ptr: CUdeviceptr) -> CuResult {
    flags.check()?;
    let accessor = accessor(location.get()?).ok_or(CUDA_ERROR_INVALID_DEVICE)?;
    let access = match platform()?.memory().mapping(ptr.0) {
        Ok(mapping) => mapping.accessors.get(&accessor).copied().unwrap_or(Access::None),
        // What the program has not mapped itself nobody has been given access to: it may be used as it is.
        Err(_) => memory::find(ptr.0)?.map(|_| Access::None).ok_or(CUDA_ERROR_INVALID_VALUE)?,
    };
    flags.set(access_code(access).0.into())?;
    Ok(())
}

pub(super) fn access_code(access: Access) -> CUmemAccess_flags {
    match access {
        Access::None => CU_MEM_ACCESS_FLAGS_PROT_NONE,
        Access::Read => CU_MEM_ACCESS_FLAGS_PROT_READ,
        Access::ReadWrite => CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    }
}

/// Who accesses memory from a place; `None` if it is none.
fn accessor(location: CUmemLocation) -> Option<Accessor> {
    match location.r#type {
        CU_MEM_LOCATION_TYPE_DEVICE => Some(Accessor::Device(device(location.id).ok()?.ordinal())),
        CU_MEM_LOCATION_TYPE_HOST => Some(Accessor::Host),
        CU_MEM_LOCATION_TYPE_HOST_NUMA if is_node(location.id) => Some(Accessor::Host),
        _ => None,
    }
}

#[entry_point]
fn cuMemGetAllocationPropertiesFromHandle(
    prop: Out<CUmemAllocationProp>,
    handle: CUmemGenericAllocationHandle,
) -> CuResult {
    let memory = find(handle)?;
    let location = match memory.purpose().place {
        MemoryPlace::Device => {
            CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_DEVICE, id: memory.device() as i32 }
        }
        MemoryPlace::Node(node) => CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_HOST_NUMA, id: node as i32 },
    };
    prop.check()?.set(CUmemAllocationProp {
        r#type: CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: handle_types(&memory),
        location,
        win32HandleMetaData: std::ptr::null_mut(),
        compressionType: 0,
        gpuDirectRDMACapable: 0,
        usage: 0,
        reserved: [0; 4],
    })?;
    Ok(())
}

/// How memory was made to be handed to other processes. Of what came from one nothing is told.
pub(super) fn handle_types(memory: &PhysicalMemory) -> CUmemAllocationHandleType {
    match memory.is_shareable() {
        true => CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        false => CU_MEM_HANDLE_TYPE_NONE,
    }
}

#[entry_point]
fn cuMemRetainAllocationHandle(handle: Out<CUmemGenericAllocationHandle>, addr: *mut c_void) -> CuResult {
    handle.check()?.set(retain(platform()?.memory().mapping(addr as u64)?.memory)?)?;
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
    if flags != 0 || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
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
    match shHandleType {
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR if osHandle.is_null() => {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR => {}
        CU_MEM_HANDLE_TYPE_NONE => return Err(CUDA_ERROR_INVALID_VALUE.into()),
        _ => return Err(CUDA_ERROR_NOT_SUPPORTED.into()),
    }
    let descriptor = i32::try_from(osHandle as usize).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    // SAFETY: the manual wants an open descriptor; it is used during the call only.
    let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let memory = descriptor.try_clone_to_owned().ok().and_then(|owned| PhysicalMemory::import(0, owned).ok());
    // What is no memory of ours gets the answer that it gets on an H200.
    handle.set(retain(memory.ok_or(CUDA_ERROR_UNKNOWN)?)?)?;
    Ok(())
}
