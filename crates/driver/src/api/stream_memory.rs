//! Stream memory operations: words of memory as signals between streams, kernels and the host.

use crate::error::CuResult;
use crate::streams::find;
use cuda_abi::driver::*;
use cuda_abi::shim::DefaultStream;
use device::stream::{Condition, Width};
use entry_macros::entry_point;

// Values of the flags; the manual's names.
const CU_STREAM_WAIT_VALUE_GEQ: u32 = 0;
const CU_STREAM_WAIT_VALUE_EQ: u32 = 1;
const CU_STREAM_WAIT_VALUE_AND: u32 = 2;
const CU_STREAM_WAIT_VALUE_NOR: u32 = 3;
const CU_STREAM_WRITE_VALUE_DEFAULT: u32 = 0;
const CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER: u32 = 1;

fn wait(
    default: DefaultStream,
    stream: CUstream,
    address: CUdeviceptr,
    width: Width,
    value: u64,
    flags: u32,
) -> CuResult {
    // Remote writes need no flushing: the flag for it, which the device does not announce, is refused.
    let condition = match flags {
        CU_STREAM_WAIT_VALUE_GEQ => Condition::GreaterOrEqual,
        CU_STREAM_WAIT_VALUE_EQ => Condition::Equal,
        CU_STREAM_WAIT_VALUE_AND => Condition::And,
        CU_STREAM_WAIT_VALUE_NOR => Condition::Nor,
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    };
    find(stream, default)?.wait_value(address.0, width, value, condition)?;
    Ok(())
}

fn write(
    default: DefaultStream,
    stream: CUstream,
    address: CUdeviceptr,
    width: Width,
    value: u64,
    flags: u32,
) -> CuResult {
    match flags {
        CU_STREAM_WRITE_VALUE_DEFAULT | CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER => {}
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
    find(stream, default)?.write_value(address.0, width, value)?;
    Ok(())
}

#[entry_point(ptsz)]
fn cuStreamWaitValue32_v2(
    default: DefaultStream,
    stream: CUstream,
    addr: CUdeviceptr,
    value: u32,
    flags: u32,
) -> CuResult {
    wait(default, stream, addr, Width::Bits32, value.into(), flags)
}

#[entry_point(ptsz)]
fn cuStreamWriteValue32_v2(
    default: DefaultStream,
    stream: CUstream,
    addr: CUdeviceptr,
    value: u32,
    flags: u32,
) -> CuResult {
    write(default, stream, addr, Width::Bits32, value.into(), flags)
}

#[entry_point(ptsz)]
fn cuStreamWaitValue32(
    default: DefaultStream,
    stream: CUstream,
    addr: CUdeviceptr,
    value: u32,
    flags: u32,
) -> CuResult {
    wait(default, stream, addr, Width::Bits32, value.into(), flags)
}

#[entry_point(ptsz)]
fn cuStreamWriteValue32(
    default: DefaultStream,
    stream: CUstream,
    addr: CUdeviceptr,
    value: u32,
    flags: u32,
) -> CuResult {
    write(default, stream, addr, Width::Bits32, value.into(), flags)
}

#[entry_point(ptsz)]
fn cuStreamWaitValue64_v2(
    default: DefaultStream,
    stream: CUstream,
    addr: CUdeviceptr,
    value: u64,
    flags: u32,
) -> CuResult {
    wait(default, stream, addr, Width::Bits64, value, flags)
}

#[entry_point(ptsz)]
fn cuStreamWriteValue64_v2(
    default: DefaultStream,
    stream: CUstream,
    addr: CUdeviceptr,
    value: u64,
    flags: u32,
) -> CuResult {
    write(default, stream, addr, Width::Bits64, value, flags)
}

#[entry_point(ptsz)]
fn cuStreamWaitValue64(
    default: DefaultStream,
    stream: CUstream,
    addr: CUdeviceptr,
    value: u64,
    flags: u32,
) -> CuResult {
    wait(default, stream, addr, Width::Bits64, value, flags)
}

#[entry_point(ptsz)]
fn cuStreamWriteValue64(
    default: DefaultStream,
    stream: CUstream,
    addr: CUdeviceptr,
    value: u64,
    flags: u32,
) -> CuResult {
    write(default, stream, addr, Width::Bits64, value, flags)
}
