//! Device management.

use crate::attributes::attribute;
use crate::error::CuResult;
use crate::platform::{device, platform};
use crate::texture_views::most_in_a_row;
use cuda_abi::args::{Array, Out, Text};
use cuda_abi::driver::*;
use entry_macros::entry_point;
use std::ffi::{c_char, c_void};

#[entry_point]
fn cuDeviceGet(device: Out<CUdevice>, ordinal: i32) -> CuResult {
    device.check()?;
    crate::platform::device(ordinal)?;
    device.set(ordinal)?;
    Ok(())
}

#[entry_point]
fn cuDeviceGetCount(count: Out<i32>) -> CuResult {
    count.set(platform()?.devices().len() as i32)?;
    Ok(())
}

/// Writes as much of the name as fits `len` bytes with its NUL.
#[entry_point]
fn cuDeviceGetName(name: Array<c_char>, len: i32, dev: CUdevice) -> CuResult {
    write_text(&device(dev)?.attributes().name, name, len)
}

#[entry_point]
fn cuDeviceGetUuid(uuid: Out<CUuuid>, dev: CUdevice) -> CuResult {
    uuid.check()?.set(CUuuid { bytes: device(dev)?.attributes().uuid })?;
    Ok(())
}

#[entry_point]
fn cuDeviceGetUuid_v2(uuid: Out<CUuuid>, dev: CUdevice) -> CuResult {
    uuid.check()?.set(CUuuid { bytes: device(dev)?.attributes().uuid })?;
    Ok(())
}

#[entry_point]
fn cuDeviceTotalMem_v2(bytes: Out<usize>, dev: CUdevice) -> CuResult {
    bytes.check()?.set(device(dev)?.attributes().total_memory as usize)?;
    Ok(())
}

/// The first version tells 32 bits.
#[entry_point]
fn cuDeviceTotalMem(bytes: Out<u32>, dev: CUdevice) -> CuResult {
    let total = device(dev)?.attributes().total_memory;
    bytes.check()?.set(u32::try_from(total).unwrap_or(u32::MAX))?;
    Ok(())
}

/// Identities of this kind exist on Windows only.
#[entry_point]
fn cuDeviceGetLuid(luid: Array<c_char>, deviceNodeMask: Out<u32>, dev: CUdevice) -> CuResult {
    device(dev)?;
    if luid.is_null() || deviceNodeMask.is_null() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    Err(CUDA_ERROR_NOT_SUPPORTED.into())
}

#[entry_point]
fn cuDeviceGetAttribute(pi: Out<i32>, attrib: CUdevice_attribute, dev: CUdevice) -> CuResult {
    pi.check()?;
    let value = attribute(device(dev)?.attributes(), attrib).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    pi.set(value)?;
    Ok(())
}

/// Widest one-dimensional texture on linear memory, in elements.
#[entry_point]
fn cuDeviceGetTexture1DLinearMaxWidth(
    maxWidthInElements: Out<usize>,
    format: CUarray_format,
    numChannels: u32,
    dev: CUdevice,
) -> CuResult {
    maxWidthInElements.check()?;
    let device = device(dev)?;
    if format.name().is_none() || !matches!(numChannels, 1 | 2 | 4) {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let channel = match format {
        CU_AD_FORMAT_UNSIGNED_INT8 | CU_AD_FORMAT_SIGNED_INT8 => 1,
        CU_AD_FORMAT_UNSIGNED_INT16 | CU_AD_FORMAT_SIGNED_INT16 | CU_AD_FORMAT_HALF => 2,
        _ => 4,
    };
    let most = most_in_a_row(device.attributes(), channel * u64::from(numChannels));
    maxWidthInElements.set(most as usize)?;
    Ok(())
}

/// Deprecated: major and minor compute capability.
#[entry_point]
fn cuDeviceComputeCapability(major: Out<i32>, minor: Out<i32>, dev: CUdevice) -> CuResult {
    minor.check()?;
    let capability = device(dev)?.attributes().compute_capability;
    major.set(capability.0 as i32)?;
    minor.set(capability.1 as i32)?;
    Ok(())
}

/// Deprecated: some attributes at once.
#[entry_point]
fn cuDeviceGetProperties(prop: Out<CUdevprop>, dev: CUdevice) -> CuResult {
    prop.check()?;
    let device = device(dev)?.attributes();
    let get = |name| attribute(device, name).unwrap_or(0);
    prop.set(CUdevprop {
        maxThreadsPerBlock: get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        maxThreadsDim: [
            get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
            get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
            get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z),
        ],
        maxGridSize: [
            get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
            get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
            get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z),
        ],
        sharedMemPerBlock: get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
        totalConstantMemory: get(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
        SIMDWidth: get(CU_DEVICE_ATTRIBUTE_WARP_SIZE),
        memPitch: get(CU_DEVICE_ATTRIBUTE_MAX_PITCH),
        regsPerBlock: get(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
        clockRate: get(CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
        textureAlign: get(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT),
    })?;
    Ok(())
}

/// Writes `domain:bus:device.function`.
#[entry_point]
fn cuDeviceGetPCIBusId(pciBusId: Array<c_char>, len: i32, dev: CUdevice) -> CuResult {
    let bus = device(dev)?.attributes().pci_bus;
    let id = format!("0000:{bus:02x}:00.0");
    // Unlike a name, part of it is of no use.
    if usize::try_from(len).is_ok_and(|len| len <= id.len()) {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    write_text(&id, pciBusId, len)
}

/// Reads `domain:bus:device[.function]` or `bus:device.function`, all hexadecimal.
#[entry_point]
fn cuDeviceGetByPCIBusId(dev: Out<CUdevice>, pciBusId: Text) -> CuResult {
    dev.check()?;
    let text = pciBusId.get()?.to_str().map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    let wanted = parse_pci(text).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    let mut devices = platform()?.devices().iter();
    let found = devices.position(|device| wanted == (0, device.attributes().pci_bus, 0));
    let index = found.ok_or(CUDA_ERROR_INVALID_DEVICE)?;
    dev.set(index as i32)?;
    Ok(())
}

/// No limit on multiprocessors can be asked for.
#[entry_point]
fn cuDeviceGetExecAffinitySupport(pi: Out<i32>, _type: CUexecAffinityType, dev: CUdevice) -> CuResult {
    pi.check()?;
    device(dev)?;
    pi.set(0)?;
    Ok(())
}

/// Host and device have the same memory and the same atomic instructions.
#[entry_point]
fn cuDeviceGetHostAtomicCapabilities(
    capabilities: Array<u32>,
    operations: *const CUatomicOperation,
    count: u32,
    dev: CUdevice,
) -> CuResult {
    check_atomics(capabilities, operations, count)?;
    device(dev)?;
    atomic_capabilities(capabilities, operations, count)
}

/// Devices too have the same memory. A device is not its own peer.
#[entry_point]
fn cuDeviceGetP2PAtomicCapabilities(
    capabilities: Array<u32>,
    operations: *const CUatomicOperation,
    count: u32,
    srcDevice: CUdevice,
    dstDevice: CUdevice,
) -> CuResult {
    check_atomics(capabilities, operations, count)?;
    device(srcDevice)?;
    device(dstDevice)?;
    if srcDevice == dstDevice {
        return Err(CUDA_ERROR_INVALID_DEVICE.into());
    }
    atomic_capabilities(capabilities, operations, count)
}

/// Something is asked, and there is room for the answers.
fn check_atomics(capabilities: Array<u32>, operations: *const CUatomicOperation, count: u32) -> CuResult {
    if capabilities.is_null() || operations.is_null() || count == 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    Ok(())
}

fn atomic_capabilities(
    capabilities: Array<u32>,
    operations: *const CUatomicOperation,
    count: u32,
) -> CuResult {
    // SAFETY: the manual wants null, which is refused, or `count` operations.
    let operations = unsafe { operations.as_ref() }.ok_or(CUDA_ERROR_INVALID_VALUE)?;
    for index in 0..count as usize {
        // SAFETY: `index` is below the caller's count.
        let operation = unsafe { std::ptr::from_ref(operations).add(index).read() };
        capabilities.set(index, host_atomics(operation).ok_or(CUDA_ERROR_INVALID_VALUE)?)?;
    }
    Ok(())
}

/// How an atomic operation of a kernel can be done on memory that the host uses too.
fn host_atomics(operation: CUatomicOperation) -> Option<u32> {
    const INTEGERS: u32 =
        CU_ATOMIC_CAPABILITY_SIGNED | CU_ATOMIC_CAPABILITY_UNSIGNED | CU_ATOMIC_CAPABILITY_SCALAR_32;
    const BOTH: u32 = INTEGERS | CU_ATOMIC_CAPABILITY_SCALAR_64;
    Some(match operation {
        CU_ATOMIC_OPERATION_INTEGER_INCREMENT | CU_ATOMIC_OPERATION_INTEGER_DECREMENT => {
            CU_ATOMIC_CAPABILITY_UNSIGNED | CU_ATOMIC_CAPABILITY_SCALAR_32
        }
        CU_ATOMIC_OPERATION_INTEGER_ADD
        | CU_ATOMIC_OPERATION_INTEGER_MIN
        | CU_ATOMIC_OPERATION_INTEGER_MAX => BOTH | CU_ATOMIC_CAPABILITY_REDUCTION,
        CU_ATOMIC_OPERATION_AND | CU_ATOMIC_OPERATION_OR | CU_ATOMIC_OPERATION_XOR => {
            BOTH | CU_ATOMIC_CAPABILITY_REDUCTION
        }
        CU_ATOMIC_OPERATION_EXCHANGE | CU_ATOMIC_OPERATION_CAS => BOTH,
        CU_ATOMIC_OPERATION_FLOAT_ADD => {
            CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_SCALAR_64 | CU_ATOMIC_CAPABILITY_REDUCTION
        }
        // There are no such operations on single numbers.
        CU_ATOMIC_OPERATION_FLOAT_MIN | CU_ATOMIC_OPERATION_FLOAT_MAX => 0,
        _ => return None,
    })
}

/// Domain, bus and device.
fn parse_pci(text: &str) -> Option<(u32, u32, u32)> {
    let number = |text: &str| u32::from_str_radix(text, 16).ok();
    let (text, has_function) = match text.rsplit_once('.') {
        Some((rest, function)) => (number(function).map(|_| rest)?, true),
        None => (text, false),
    };
    let parts: Vec<&str> = text.split(':').collect();
    match parts[..] {
        [bus, device] if has_function => Some((0, number(bus)?, number(device)?)),
        [domain, bus, device] => Some((number(domain)?, number(bus)?, number(device)?)),
        _ => None,
    }
}

/// Writes as much of a text as fits `len` bytes with its NUL.
fn write_text(text: &str, place: Array<c_char>, len: i32) -> CuResult {
    let room =
        usize::try_from(len).ok().and_then(|len| len.checked_sub(1)).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    let bytes = &text.as_bytes()[..text.len().min(room)];
    for (index, byte) in bytes.iter().enumerate() {
        place.set(index, *byte as c_char)?;
    }
    place.set(bytes.len(), 0)?;
    Ok(())
}

/// NvSciSync synchronises the parts of NVIDIA's embedded systems: the device has none, which its attributes say too.
#[entry_point]
fn cuDeviceGetNvSciSyncAttributes(nvSciSyncAttrList: *mut c_void, dev: CUdevice, flags: i32) -> CuResult {
    if nvSciSyncAttrList.is_null() {
        return Err(CUDA_ERROR_INVALID_HANDLE.into());
    }
    device(dev)?;
    if !(CUDA_NVSCISYNC_ATTR_SIGNAL..=CUDA_NVSCISYNC_ATTR_SIGNAL | CUDA_NVSCISYNC_ATTR_WAIT).contains(&flags)
    {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    Err(CUDA_ERROR_NOT_SUPPORTED.into())
}

/// Whatever writes to device memory writes to the machine's memory, which all processors see alike: there is nothing to flush.
#[entry_point]
fn cuFlushGPUDirectRDMAWrites(
    target: CUflushGPUDirectRDMAWritesTarget,
    scope: CUflushGPUDirectRDMAWritesScope,
) -> CuResult {
    target.name().and(scope.name()).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    crate::contexts::usable()?;
    Ok(())
}
