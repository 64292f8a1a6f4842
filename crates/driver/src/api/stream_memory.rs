//! Stream memory operations: words of memory as signals between streams, kernels and the host.

use crate::error::CuResult;
use crate::streams::find;
use cuda_abi::args::Array;
use cuda_abi::driver::*;
use cuda_abi::shim::DefaultStream;
use device::stream::{Condition, Width, WordOperation};
use entry_macros::entry_point;

/// How a flag compares. Remote writes need no flushing: the flag for it, which the device does not announce, is refused.
fn condition(flags: u32) -> CuResult<Condition> {
    match flags {
        CU_STREAM_WAIT_VALUE_GEQ => Ok(Condition::GreaterOrEqual),
        CU_STREAM_WAIT_VALUE_EQ => Ok(Condition::Equal),
        CU_STREAM_WAIT_VALUE_AND => Ok(Condition::And),
        CU_STREAM_WAIT_VALUE_NOR => Ok(Condition::Nor),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

/// Every write comes behind a barrier, with the flag that asks for none too.
fn check_write(flags: u32) -> CuResult {
    match flags {
        CU_STREAM_WRITE_VALUE_DEFAULT | CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER => Ok(()),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

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
) -> CuResult {
    check_write(flags)?;
    find(stream, default)?.write_value(address.0, width, value)?;
    Ok(())
}

/// Most operations of a batch.
const MAX_BATCH: u32 = 255;

/// All operations, or none if one of them is wrong.
fn batch(
    default: DefaultStream,
    stream: CUstream,
    count: u32,
    operations: Array<CUstreamBatchMemOpParams>,
    flags: u32,
    with_barriers: bool,
) -> CuResult {
    if count > MAX_BATCH || flags != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let read = (0..count as usize).filter_map(|index| match operations.get(index) {
        Ok(operation) => read_operation(&operation, with_barriers).transpose(),
        Err(null) => Some(Err(null.into())),
    });
    let operations = read.collect::<CuResult<Vec<_>>>()?;
    find(stream, default)?.word_operations(&operations)?;
    Ok(())
}

/// An operation on a word; `None` for a barrier, which the order of the stream already is.
fn read_operation(
    operation: &CUstreamBatchMemOpParams,
    with_barriers: bool,
) -> CuResult<Option<WordOperation>> {
    let (address, long) = (operation.address.0, operation.value64);
    let wait = |width, value| {
        let condition = condition(operation.flags)?;
        Ok(Some(WordOperation::Wait { address, width, value, condition }))
    };
    let write = |width, value| {
        check_write(operation.flags)?;
        Ok(Some(WordOperation::Write { address, width, value }))
    };
    match operation.operation {
        CU_STREAM_MEM_OP_WAIT_VALUE_32 => wait(Width::Bits32, long & u64::from(u32::MAX)),
        CU_STREAM_MEM_OP_WAIT_VALUE_64 => wait(Width::Bits64, long),
        CU_STREAM_MEM_OP_WRITE_VALUE_32 => write(Width::Bits32, long & u64::from(u32::MAX)),
        CU_STREAM_MEM_OP_WRITE_VALUE_64 => write(Width::Bits64, long),
        // The device does not announce that it can.
        CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES => Err(CUDA_ERROR_NOT_SUPPORTED.into()),
        CU_STREAM_MEM_OP_BARRIER if with_barriers => match operation.barrierFlags {
            CU_STREAM_MEMORY_BARRIER_TYPE_SYS | CU_STREAM_MEMORY_BARRIER_TYPE_GPU => Ok(None),
            _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
        },
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
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
