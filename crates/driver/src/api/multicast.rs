//! Multicast objects: memory of several devices written at once by the links between them. There are no such links, and the device
//! says so (`CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED`): no object can be made, so no handle names one.

use crate::error::CuResult;
use crate::platform::device;
use cuda_abi::args::{In, Out};
use cuda_abi::driver::*;
use entry_macros::entry_point;

fn no_object() -> CuResult {
    Err(CUDA_ERROR_NOT_SUPPORTED.into())
}

#[entry_point]
fn cuMulticastCreate(
    mcHandle: Out<CUmemGenericAllocationHandle>,
    prop: In<CUmulticastObjectProp>,
) -> CuResult {
    mcHandle.check()?;
    prop.get()?;
    no_object()
}

#[entry_point]
fn cuMulticastAddDevice(_mcHandle: CUmemGenericAllocationHandle, dev: CUdevice) -> CuResult {
    device(dev)?;
    no_object()
}

#[entry_point]
fn cuMulticastBindMem(
    _mcHandle: CUmemGenericAllocationHandle,
    _mcOffset: usize,
    _memHandle: CUmemGenericAllocationHandle,
    _memOffset: usize,
    _size: usize,
    _flags: u64,
) -> CuResult {
    no_object()
}

/// Of CUDA 13.1, for programs that look for every name of a newer version.
#[entry_point]
fn cuMulticastBindMem_v2(
    _mcHandle: CUmemGenericAllocationHandle,
    dev: CUdevice,
    _mcOffset: usize,
    _memHandle: CUmemGenericAllocationHandle,
    _memOffset: usize,
    _size: usize,
    _flags: u64,
) -> CuResult {
    device(dev)?;
    no_object()
}

/// As above.
#[entry_point]
fn cuMulticastBindAddr_v2(
    _mcHandle: CUmemGenericAllocationHandle,
    dev: CUdevice,
    _mcOffset: usize,
    _memptr: CUdeviceptr,
    _size: usize,
    _flags: u64,
) -> CuResult {
    device(dev)?;
    no_object()
}

#[entry_point]
fn cuMulticastBindAddr(
    _mcHandle: CUmemGenericAllocationHandle,
    _mcOffset: usize,
    _memptr: CUdeviceptr,
    _size: usize,
    _flags: u64,
) -> CuResult {
    no_object()
}

#[entry_point]
fn cuMulticastUnbind(
    _mcHandle: CUmemGenericAllocationHandle,
    dev: CUdevice,
    _mcOffset: usize,
    _size: usize,
) -> CuResult {
    device(dev)?;
    no_object()
}

#[entry_point]
fn cuMulticastGetGranularity(
    granularity: Out<usize>,
    prop: In<CUmulticastObjectProp>,
    option: CUmulticastGranularity_flags,
) -> CuResult {
    granularity.check()?;
    prop.get()?;
    option.name().ok_or(CUDA_ERROR_INVALID_VALUE)?;
    no_object()
}
