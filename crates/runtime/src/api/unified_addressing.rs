//! Unified addressing.

use std::ptr::null_mut;

use super::prelude::*;
use crate::context;
use crate::copy::device_pointer;

/// What a pointer leads to. Memory that the driver does not know is "unregistered": the host's, for all one can tell.
#[entry_point]
fn cudaPointerGetAttributes(attributes: Out<cudaPointerAttributes>, ptr: *const c_void) -> CudaResult {
    context::ensure_current()?;
    let out = attributes.check()?;
    out.set(attributes_of(ptr)?)?;
    Ok(())
}

/// The same, to be handed out in the structure of any version.
pub(super) fn attributes_of(ptr: *const c_void) -> CudaResult<cudaPointerAttributes> {
    let mut kind = CUmemorytype(0);
    let (mut managed, mut ordinal) = (0u32, 0i32);
    let mut device_address = null_mut::<c_void>();
    let mut host_address = null_mut::<c_void>();
    let mut wanted = [
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CU_POINTER_ATTRIBUTE_HOST_POINTER,
    ];
    let mut values: [*mut c_void; 5] = [
        (&raw mut kind).cast(),
        (&raw mut managed).cast(),
        (&raw mut ordinal).cast(),
        (&raw mut device_address).cast(),
        (&raw mut host_address).cast(),
    ];
    // The call for several attributes succeeds for a pointer that the driver does not know.
    let count = wanted.len() as u32;
    call!(cuPointerGetAttributes(count, wanted.as_mut_ptr(), values.as_mut_ptr(), device_pointer(ptr)))?;

    let kind = match kind {
        _ if managed != 0 => cudaMemoryTypeManaged,
        CU_MEMORYTYPE_HOST => cudaMemoryTypeHost,
        CU_MEMORYTYPE_DEVICE => cudaMemoryTypeDevice,
        _ => cudaMemoryTypeUnregistered,
    };
    let known = kind != cudaMemoryTypeUnregistered;
    Ok(cudaPointerAttributes {
        r#type: kind,
        device: if known { ordinal } else { cudaInvalidDeviceId },
        devicePointer: if known { device_address } else { null_mut() },
        hostPointer: if known { host_address } else { ptr.cast_mut() },
        reserved: [0; 8],
    })
}
