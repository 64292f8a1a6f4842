//! Stream memory operations: words of memory as signals between streams, kernels and the host.

use crate::error::CuResult;
use crate::streams::find;
use crate::words::{self, check_write, condition};
use cuda_abi::args::Array;
use cuda_abi::driver::*;
use cuda_abi::shim::DefaultStream;
use device::stream::Width;
use entry_macros::entry_point;

fn wait(
    default: DefaultStream,
    stream: CUstream,
    address: CUdeviceptr,
    width: Width,
    value: u64,
    flags: u32,
) -> CuResult {
    let condition = condition(flags)?;
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
    omits_barrier: bool,
) -> CuResult {
    check_write(flags, omits_barrier)?;
    find(stream, default)?.write_value(address.0, width, value)?;
    Ok(())
}

/// All operations, or none if one of them is wrong.
fn batch(
    default: DefaultStream,
    stream: CUstream,
    count: u32,
    operations: Array<CUstreamBatchMemOpParams>,
    flags: u32,
    with_barriers: bool,
) -> CuResult {
    if flags != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let operations = words::read(count, operations, with_barriers)?;
    find(stream, default)?.word_operations(&operations)?;
    Ok(())
}

#[entry_point(ptsz)]
fn cuStreamBatchMemOp(
    default: DefaultStream,
    stream: CUstream,
    count: u32,
    paramArray: Array<CUstreamBatchMemOpParams>,
    flags: u32,
) -> CuResult {
    batch(default, stream, count, paramArray, flags, false)
}

#[entry_point(ptsz)]
fn cuStreamBatchMemOp_v2(
    default: DefaultStream,
    stream: CUstream,
    count: u32,
    paramArray: Array<CUstreamBatchMemOpParams>,
    flags: u32,
) -> CuResult {
    batch(default, stream, count, paramArray, flags, true)
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
    write(default, stream, addr, Width::Bits32, value.into(), flags, false)
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
    write(default, stream, addr, Width::Bits32, value.into(), flags, true)
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
    write(default, stream, addr, Width::Bits64, value, flags, false)
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
    write(default, stream, addr, Width::Bits64, value, flags, true)
}
