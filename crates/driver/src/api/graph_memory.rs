//! Graph management: the memory that nodes allocate.

use crate::error::CuResult;
use crate::platform::device;
use crate::platform::platform;
use cuda_abi::args::{In, Out};
use cuda_abi::driver::*;
use entry_macros::entry_point;
use std::ffi::c_void;

#[entry_point]
unsafe fn cuDeviceGetGraphMemAttribute(
    device: CUdevice,
    attr: CUgraphMem_attribute,
    value: *mut c_void,
) -> CuResult {
    // SAFETY: null, or a place for a number of 64 bits, which is what all attributes are.
    let place = unsafe { Out::new(value.cast::<u64>()) };
    let usage = platform()?.memory().graph_usage(self::device(device)?.ordinal());
    place.check()?.set(match attr {
        // What is free and not trimmed counts as used, as on a GPU.
        CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT => usage.used,
        CU_GRAPH_MEM_ATTR_USED_MEM_HIGH => usage.used_high,
        CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT => usage.reserved,
        CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH => usage.reserved_high,
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    })?;
    Ok(())
}

/// The highest values so far can be set to zero, which makes them the current ones.
#[entry_point]
unsafe fn cuDeviceSetGraphMemAttribute(
    device: CUdevice,
    attr: CUgraphMem_attribute,
    value: *mut c_void,
) -> CuResult {
    let ordinal = self::device(device)?.ordinal();
    // SAFETY: null, or a number of 64 bits, which is what all attributes are.
    let value = unsafe { In::new(value.cast::<u64>().cast_const()) }.get()?;
    let of_reserved = match attr {
        CU_GRAPH_MEM_ATTR_USED_MEM_HIGH => false,
        CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH => true,
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    };
    if value != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    platform()?.memory().reset_graph_high(ordinal, of_reserved);
    Ok(())
}

#[entry_point]
fn cuDeviceGraphMemTrim(device: CUdevice) -> CuResult {
    platform()?.memory().trim_graph_memory(self::device(device)?.ordinal());
    Ok(())
}
