//! Memory management: allocation.

use crate::contexts;
use crate::error::CuResult;
use crate::platform::platform;
use cuda_abi::args::Out;
use cuda_abi::driver::*;
use device::memory::{Allocation, Kind, PAGE};
use entry_macros::entry_point;
use std::ffi::c_void;

#[entry_point]
fn cuMemAlloc_v2(dptr: Out<CUdeviceptr>, bytesize: usize) -> CuResult {
    // As NVIDIA's driver, also where there is no memory: programs look at the address instead of the code.
    dptr.set(CUdeviceptr(0))?;
    let address = contexts::current()?.allocate(bytesize as u64)?;
    dptr.set(CUdeviceptr(address))?;
    Ok(())
}

/// Rows begin at multiples of the pitch, which suits elements of `ElementSizeBytes`.
#[entry_point]
fn cuMemAllocPitch_v2(
    dptr: Out<CUdeviceptr>,
    pPitch: Out<usize>,
    WidthInBytes: usize,
    Height: usize,
    ElementSizeBytes: u32,
) -> CuResult {
    pPitch.check()?;
    dptr.set(CUdeviceptr(0))?;
    let context = contexts::current()?;
    // There is none where there is no memory.
    pPitch.set(0)?;
    let (address, pitch) = context.allocate_pitched(WidthInBytes as u64, Height as u64, ElementSizeBytes)?;
    dptr.set(CUdeviceptr(address))?;
    pPitch.set(pitch as usize)?;
    Ok(())
}

/// Managed memory is device memory that the host may use too.
#[entry_point]
fn cuMemAllocManaged(dptr: Out<CUdeviceptr>, bytesize: usize, flags: u32) -> CuResult {
    dptr.set(CUdeviceptr(0))?;
    let attach_host = match flags {
        CU_MEM_ATTACH_GLOBAL => false,
        CU_MEM_ATTACH_HOST => true,
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    };
    let address = contexts::current()?.allocate_managed(bytesize as u64, attach_host)?;
    dptr.set(CUdeviceptr(address))?;
    Ok(())
}

/// Needs no current context: the address tells whose memory it is.
#[entry_point]
fn cuMemFree_v2(dptr: CUdeviceptr) -> CuResult {
    // Also where there is nothing to free.
    if let Ok(context) = contexts::current() {
        context.check()?;
    }
    device::graph::check_unsafe_call()?;
    platform()?.free(dptr.0)?;
    Ok(())
}

#[entry_point]
fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) -> CuResult {
    let (unused, all) = contexts::current()?.memory_info()?;
    free.set_if_wanted(unused as usize);
    total.set_if_wanted(all as usize);
    Ok(())
}

#[entry_point]
fn cuMemGetAddressRange_v2(pbase: Out<CUdeviceptr>, psize: Out<usize>, dptr: CUdeviceptr) -> CuResult {
    contexts::usable()?;
    if pbase.is_null() && psize.is_null() {
        return Ok(());
    }
    let allocation = find_there(dptr.0)?.ok_or(CUDA_ERROR_NOT_FOUND)?;
    pbase.set_if_wanted(CUdeviceptr(allocation.base));
    psize.set_if_wanted(allocation.size as usize);
    Ok(())
}

#[entry_point]
fn cuMemAllocHost_v2(pp: Out<*mut c_void>, bytesize: usize) -> CuResult {
    allocate_host(pp, bytesize, 0)
}

#[entry_point]
fn cuMemHostAlloc(pp: Out<*mut c_void>, bytesize: usize, Flags: u32) -> CuResult {
    allocate_host(pp, bytesize, Flags)
}

fn allocate_host(place: Out<*mut c_void>, size: usize, flags: u32) -> CuResult {
    place.set(std::ptr::null_mut())?;
    const ALL: u32 = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if flags & !ALL != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let address = contexts::current()?.allocate_host(size as u64, flags)?;
    place.set(address as *mut c_void)?;
    Ok(())
}

#[entry_point]
fn cuMemFreeHost(p: *mut c_void) -> CuResult {
    platform()?.free_host(p as u64)?;
    Ok(())
}

#[entry_point]
fn cuMemHostRegister_v2(p: *mut c_void, bytesize: usize, Flags: u32) -> CuResult {
    register(p, bytesize, Flags)
}

#[entry_point]
fn cuMemHostRegister(p: *mut c_void, bytesize: usize, Flags: u32) -> CuResult {
    register(p, bytesize, Flags)
}

fn register(start: *mut c_void, size: usize, flags: u32) -> CuResult {
    const ALL: u32 = CU_MEMHOSTREGISTER_PORTABLE
        | CU_MEMHOSTREGISTER_DEVICEMAP
        | CU_MEMHOSTREGISTER_IOMEMORY
        | CU_MEMHOSTREGISTER_READ_ONLY;
    // What a program has mapped here is no device's registers.
    if flags & !ALL != 0 || flags & CU_MEMHOSTREGISTER_IOMEMORY != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let needs_writes = flags & CU_MEMHOSTREGISTER_READ_ONLY == 0;
    contexts::current()?.register_host(start as u64, size as u64, flags, needs_writes)?;
    Ok(())
}

#[entry_point]
fn cuMemHostUnregister(p: *mut c_void) -> CuResult {
    if p.is_null() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    platform()?.unregister_host(p as u64)?;
    Ok(())
}

/// The same address: host and device share one address space.
#[entry_point]
fn cuMemHostGetDevicePointer_v2(pdptr: Out<CUdeviceptr>, p: *mut c_void, Flags: u32) -> CuResult {
    pdptr.set(CUdeviceptr(0))?;
    contexts::usable()?;
    let known = find(p as u64)?.is_some_and(|allocation| allocation.kind.is_host());
    if Flags != 0 || !known {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    pdptr.set(CUdeviceptr(p as u64))?;
    Ok(())
}

/// The flags of `cuMemHostAlloc`, which that the device only reads is none of; with unified addresses all such memory is mapped, and managed
/// memory is.
#[entry_point]
fn cuMemHostGetFlags(pFlags: Out<u32>, p: *mut c_void) -> CuResult {
    pFlags.check()?;
    match find(p as u64)?.map(|allocation| allocation.kind) {
        Some(Kind::Pinned { flags } | Kind::Registered { flags }) => {
            pFlags.set(flags & !CU_MEMHOSTREGISTER_READ_ONLY | CU_MEMHOSTALLOC_DEVICEMAP)?;
            Ok(())
        }
        Some(Kind::Managed { .. }) => Ok(pFlags.set(CU_MEMHOSTALLOC_DEVICEMAP)?),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

/// The one kind of handle is a buffer of the kernel's that other devices reach. Memory of a process is none, and the device
/// says so (`CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED`).
#[entry_point]
unsafe fn cuMemGetHandleForAddressRange(
    handle: *mut c_void,
    dptr: CUdeviceptr,
    size: usize,
    handleType: CUmemRangeHandleType,
    flags: u64,
) -> CuResult {
    let len = size as u64;
    let whole = dptr.0.is_multiple_of(PAGE) && len.is_multiple_of(PAGE) && len > 0;
    if handle.is_null() || !whole || flags & !CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    handleType.name().ok_or(CUDA_ERROR_INVALID_VALUE)?;
    if !platform()?.memory().covers(dptr.0, len) {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    Err(CUDA_ERROR_NOT_SUPPORTED.into())
}

/// The allocation that an address lies in, if there is memory now.
pub(crate) fn find_there(address: u64) -> CuResult<Option<Allocation>> {
    Ok(find(address)?.filter(|found| platform().is_ok_and(|platform| platform.memory().is_there(found))))
}

/// The allocation that an address lies in.
pub(crate) fn find(address: u64) -> CuResult<Option<Allocation>> {
    Ok(platform()?.memory().find(address))
}
