//! Stream ordered memory allocator.

use crate::contexts;
use crate::error::CuResult;
use crate::platform::{device, platform};
use crate::pools::{self, Sort};
use crate::streams::find;
use cuda_abi::args::{Array, In, Out};
use cuda_abi::driver::*;
use cuda_abi::shim::DefaultStream;
use device::memory::{Kind, Reuse, SharedPointer};
use entry_macros::entry_point;
use std::ffi::c_void;
use std::os::fd::{BorrowedFd, IntoRawFd};

/// Memory for what the stream does from now on.
#[entry_point(ptsz)]
fn cuMemAllocAsync(
    default: DefaultStream,
    dptr: Out<CUdeviceptr>,
    bytesize: usize,
    hStream: CUstream,
) -> CuResult {
    dptr.set(CUdeviceptr(0))?;
    let stream = find(hStream, default)?;
    let address = if bytesize == 0 { 0 } else { stream.allocate(bytesize as u64)? };
    dptr.set(CUdeviceptr(address))?;
    Ok(())
}

/// Freed when the stream has done what it was given before.
#[entry_point(ptsz)]
fn cuMemFreeAsync(default: DefaultStream, dptr: CUdeviceptr, hStream: CUstream) -> CuResult {
    let stream = find(hStream, default)?;
    if dptr.0 != 0 {
        // Managed memory is no stream's to free, unless it is of a pool.
        let found = super::memory::find(dptr.0)?.filter(|found| found.pool.is_none());
        if found.is_some_and(|found| matches!(found.kind, Kind::Managed { .. })) {
            return Err(CUDA_ERROR_NOT_SUPPORTED.into());
        }
        stream.free(dptr.0)?;
    }
    Ok(())
}

/// As `cuMemAllocAsync`, counted in a pool.
#[entry_point(ptsz)]
fn cuMemAllocFromPoolAsync(
    default: DefaultStream,
    dptr: Out<CUdeviceptr>,
    bytesize: usize,
    pool: CUmemoryPool,
    hStream: CUstream,
) -> CuResult {
    dptr.set(CUdeviceptr(0))?;
    let pool = pools::find(pool)?;
    let stream = find(hStream, default)?;
    let address = if bytesize == 0 { 0 } else { stream.allocate_from(&pool, bytesize as u64)? };
    dptr.set(CUdeviceptr(address))?;
    Ok(())
}

#[entry_point]
fn cuMemPoolCreate(pool: Out<CUmemoryPool>, poolProps: In<CUmemPoolProps>) -> CuResult {
    pool.check()?.set(pools::create(&poolProps.get()?)?)?;
    Ok(())
}

#[entry_point]
fn cuMemPoolDestroy(pool: CUmemoryPool) -> CuResult {
    pools::destroy(pool)
}

#[entry_point]
fn cuMemPoolTrimTo(pool: CUmemoryPool, minBytesToKeep: usize) -> CuResult {
    device::graph::check_unsafe_call()?;
    pools::find_own(pool)?.trim(minBytesToKeep as u64);
    Ok(())
}

#[entry_point]
unsafe fn cuMemPoolGetAttribute(
    pool: CUmemoryPool,
    attr: CUmemPool_attribute,
    value: *mut c_void,
) -> CuResult {
    let pool = pools::find_own(pool)?;
    // SAFETY: the manual wants an int for the first three attributes and a 64-bit number for the others.
    let (flag, bytes) = unsafe { (Out::new(value.cast::<i32>()), Out::new(value.cast::<u64>())) };
    match attr {
        CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT => bytes.set(pool.reserved().current)?,
        CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH => bytes.set(pool.reserved().high)?,
        CU_MEMPOOL_ATTR_USED_MEM_CURRENT => bytes.set(pool.used().current)?,
        CU_MEMPOOL_ATTR_USED_MEM_HIGH => bytes.set(pool.used().high)?,
        CU_MEMPOOL_ATTR_RELEASE_THRESHOLD => bytes.set(pool.threshold())?,
        _ => flag.set(pool.allows(reuse(attr)?).into())?,
    }
    Ok(())
}

#[entry_point]
unsafe fn cuMemPoolSetAttribute(
    pool: CUmemoryPool,
    attr: CUmemPool_attribute,
    value: *mut c_void,
) -> CuResult {
    let pool = pools::find_own(pool)?;
    // SAFETY: as for `cuMemPoolGetAttribute`.
    let (flag, bytes) = unsafe { (In::new(value.cast::<i32>()), In::new(value.cast::<u64>())) };
    match attr {
        CU_MEMPOOL_ATTR_RELEASE_THRESHOLD => pool.set_threshold(bytes.get()?),
        // High marks can be reset only.
        CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH if bytes.get()? == 0 => pool.reset_most_reserved(),
        CU_MEMPOOL_ATTR_USED_MEM_HIGH if bytes.get()? == 0 => pool.reset_most_used(),
        _ => pool.set_allowed(reuse(attr)?, flag.get()? != 0),
    }
    Ok(())
}

fn reuse(attribute: CUmemPool_attribute) -> CuResult<Reuse> {
    match attribute {
        CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES => Ok(Reuse::FollowEventDependencies),
        CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC => Ok(Reuse::AllowOpportunistic),
        CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES => Ok(Reuse::AllowInternalDependencies),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

/// Nothing changes where one of the places is none.
#[entry_point]
fn cuMemPoolSetAccess(pool: CUmemoryPool, map: Array<CUmemAccessDesc>, count: usize) -> CuResult {
    let pool = pools::find(pool)?;
    if map.is_null() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    for is_checked_only in [true, false] {
        for index in 0..count {
            pools::set_access(&pool, &map.get(index)?, is_checked_only)?;
        }
    }
    Ok(())
}

#[entry_point]
unsafe fn cuMemPoolGetAccess(
    flags: Out<CUmemAccess_flags>,
    memPool: CUmemoryPool,
    location: Out<CUmemLocation>,
) -> CuResult {
    flags.check()?;
    let pool = pools::find(memPool)?;
    // SAFETY: not null; the manual wants a place to be named there.
    let place = unsafe { location.check()?.as_ptr().read_unaligned() };
    flags.set(match pools::has_access(&pool, place)? {
        true => CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        false => CU_MEM_ACCESS_FLAGS_PROT_NONE,
    })?;
    Ok(())
}

#[entry_point]
fn cuDeviceGetDefaultMemPool(pool_out: Out<CUmemoryPool>, dev: CUdevice) -> CuResult {
    pool_out.check()?.set(pools::default_of(Sort::Device(dev))?)?;
    Ok(())
}

/// For the current pool, a device that is not there is a wrong argument like any other, as on NVIDIA's driver.
#[entry_point]
fn cuDeviceGetMemPool(pool: Out<CUmemoryPool>, dev: CUdevice) -> CuResult {
    let place = pool.check()?;
    device(dev).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    place.set(pools::current_of(Sort::Device(dev))?)?;
    Ok(())
}

/// As for `cuDeviceGetMemPool`.
#[entry_point]
fn cuDeviceSetMemPool(dev: CUdevice, pool: CUmemoryPool) -> CuResult {
    device(dev).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    pools::set_current_of_device(dev, pool)
}

/// The sort of memory that a place and a type name.
///
/// # Errors
/// As NVIDIA's driver answers: [`CUDA_ERROR_NOT_SUPPORTED`] for places that are none of memory.
///
/// # Safety
/// The location is null or that of a place.
unsafe fn sort(location: Out<CUmemLocation>, kind: CUmemAllocationType) -> CuResult<Sort> {
    // SAFETY: not null; the manual wants a place to be named there.
    let place = unsafe { location.check()?.as_ptr().read_unaligned() };
    match place.r#type {
        CU_MEM_LOCATION_TYPE_NONE
        | CU_MEM_LOCATION_TYPE_DEVICE
        | CU_MEM_LOCATION_TYPE_HOST
        | CU_MEM_LOCATION_TYPE_HOST_NUMA => Sort::of(place, kind),
        _ => Err(CUDA_ERROR_NOT_SUPPORTED.into()),
    }
}

#[entry_point]
unsafe fn cuMemGetDefaultMemPool(
    pool_out: Out<CUmemoryPool>,
    location: Out<CUmemLocation>,
    r#type: CUmemAllocationType,
) -> CuResult {
    // SAFETY: the manual's contract.
    let sort = unsafe { sort(location, r#type) }?;
    pool_out.check()?.set(pools::default_of(sort)?)?;
    Ok(())
}

#[entry_point]
unsafe fn cuMemGetMemPool(
    pool: Out<CUmemoryPool>,
    location: Out<CUmemLocation>,
    r#type: CUmemAllocationType,
) -> CuResult {
    // SAFETY: as above.
    let sort = unsafe { sort(location, r#type) }?;
    pool.check()?.set(pools::current_of(sort)?)?;
    Ok(())
}

#[entry_point]
unsafe fn cuMemSetMemPool(
    location: Out<CUmemLocation>,
    r#type: CUmemAllocationType,
    pool: CUmemoryPool,
) -> CuResult {
    // SAFETY: as above.
    let sort = unsafe { sort(location, r#type) }?;
    pools::set_current_of(sort, pool)
}

/// The descriptor is the caller's to close.
#[entry_point]
unsafe fn cuMemPoolExportToShareableHandle(
    handle_out: *mut c_void,
    pool: CUmemoryPool,
    handleType: CUmemAllocationHandleType,
    flags: u64,
) -> CuResult {
    // SAFETY: a place for a descriptor, which is what handles of the one supported type are.
    let place = unsafe { Out::new(handle_out.cast::<i32>()) }.check()?;
    let pool = pools::find(pool)?;
    if flags != 0 || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    place.set(platform()?.memory().export_shared_pool(&pool)?.into_raw_fd())?;
    Ok(())
}

/// The descriptor stays the caller's.
#[entry_point]
unsafe fn cuMemPoolImportFromShareableHandle(
    pool_out: Out<CUmemoryPool>,
    handle: *mut c_void,
    handleType: CUmemAllocationHandleType,
    flags: u64,
) -> CuResult {
    pool_out.check()?;
    if flags != 0 || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let descriptor = i32::try_from(handle as usize).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    // SAFETY: the manual wants an open descriptor; it is used during the call only.
    let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let descriptor = descriptor.try_clone_to_owned().map_err(|_| CUDA_ERROR_UNKNOWN)?;
    pool_out.set(pools::import(descriptor)?)?;
    Ok(())
}

/// What names an allocation begins with.
const POINTER_MAGIC: u64 = 0x6177_706f_6f6c_7074;

#[entry_point]
fn cuMemPoolExportPointer(shareData_out: Out<CUmemPoolPtrExportData>, ptr: CUdeviceptr) -> CuResult {
    shareData_out.check()?;
    let SharedPointer { identity, offset, size } = platform()?.memory().export_pointer(ptr.0)?;
    let mut data = CUmemPoolPtrExportData { reserved: [0; 64] };
    for (place, number) in data.reserved.chunks_exact_mut(8).zip([POINTER_MAGIC, identity, offset, size]) {
        place.copy_from_slice(&number.to_ne_bytes());
    }
    shareData_out.set(data)?;
    Ok(())
}

#[entry_point]
unsafe fn cuMemPoolImportPointer(
    ptr_out: Out<CUdeviceptr>,
    pool: CUmemoryPool,
    shareData: *mut CUmemPoolPtrExportData,
) -> CuResult {
    ptr_out.check()?;
    // SAFETY: null, or what `cuMemPoolExportPointer` has written.
    let data = unsafe { In::new(shareData) }.get()?;
    let pool = pools::find(pool)?;
    let number = |index: usize| {
        let bytes = &data.reserved[8 * index..8 * index + 8];
        bytes.try_into().map_or(0, u64::from_ne_bytes)
    };
    if number(0) != POINTER_MAGIC {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let pointer = SharedPointer { identity: number(1), offset: number(2), size: number(3) };
    let context = contexts::usable()?;
    ptr_out.set(CUdeviceptr(platform()?.memory().import_pointer(context.id(), &pool, &pointer)?))?;
    Ok(())
}
