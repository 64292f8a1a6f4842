//! Operations on words of memory, as the manual's structures say them.

use crate::error::CuResult;
use cuda_abi::args::Array;
use cuda_abi::driver::*;
use device::stream::{Condition, Width, WordOperation};

/// Most operations of a batch.
const MAX_BATCH: u32 = 255;

/// How a flag compares. Remote writes need no flushing: the flag for it, which the device does not announce, is refused.
pub fn condition(flags: u32) -> CuResult<Condition> {
    match flags {
        CU_STREAM_WAIT_VALUE_GEQ => Ok(Condition::GreaterOrEqual),
        CU_STREAM_WAIT_VALUE_EQ => Ok(Condition::Equal),
        CU_STREAM_WAIT_VALUE_AND => Ok(Condition::And),
        CU_STREAM_WAIT_VALUE_NOR => Ok(Condition::Nor),
        _ if flags & CU_STREAM_WAIT_VALUE_FLUSH != 0 => Err(CUDA_ERROR_NOT_SUPPORTED.into()),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

/// Every write comes behind a barrier, with the flag that asks for none too, which the first version of these functions takes.
pub fn check_write(flags: u32, omits_barrier: bool) -> CuResult {
    match flags {
        CU_STREAM_WRITE_VALUE_DEFAULT => Ok(()),
        CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER if omits_barrier => Ok(()),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

/// The operations of a batch.
pub fn read(
    count: u32,
    operations: Array<CUstreamBatchMemOpParams>,
    with_barriers: bool,
) -> CuResult<Vec<WordOperation>> {
    if count > MAX_BATCH {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    (0..count as usize).map(|index| read_one(&operations.get(index)?, with_barriers)).collect()
}

fn read_one(operation: &CUstreamBatchMemOpParams, with_barriers: bool) -> CuResult<WordOperation> {
    let (address, long) = (operation.address.0, operation.value64);
    let wait = |width, value| {
        let condition = condition(operation.flags)?;
        Ok(WordOperation::Wait { address, width, value, condition })
    };
    let write = |width, value| {
        check_write(operation.flags, !with_barriers)?;
        Ok(WordOperation::Write { address, width, value })
    };
    match operation.operation {
        CU_STREAM_MEM_OP_WAIT_VALUE_32 => wait(Width::Bits32, long & u64::from(u32::MAX)),
        CU_STREAM_MEM_OP_WAIT_VALUE_64 => wait(Width::Bits64, long),
        CU_STREAM_MEM_OP_WRITE_VALUE_32 => write(Width::Bits32, long & u64::from(u32::MAX)),
        CU_STREAM_MEM_OP_WRITE_VALUE_64 => write(Width::Bits64, long),
        // The device does not announce that it can.
        CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES => Err(CUDA_ERROR_NOT_SUPPORTED.into()),
        CU_STREAM_MEM_OP_BARRIER if with_barriers => match operation.barrierFlags {
            CU_STREAM_MEMORY_BARRIER_TYPE_SYS => Ok(WordOperation::Barrier { is_system_wide: true }),
            CU_STREAM_MEMORY_BARRIER_TYPE_GPU => Ok(WordOperation::Barrier { is_system_wide: false }),
            _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
        },
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

/// The structure that says an operation.
pub fn write_one(operation: &WordOperation) -> CUstreamBatchMemOpParams {
    let mut params = CUstreamBatchMemOpParams {
        operation: CU_STREAM_MEM_OP_BARRIER,
        barrierFlags: 0,
        address: CUdeviceptr(0),
        value64: 0,
        flags: 0,
        alias: CUdeviceptr(0),
        pad: 0,
    };
    match *operation {
        WordOperation::Wait { address, width, value, condition } => {
            params.operation = match width {
                Width::Bits32 => CU_STREAM_MEM_OP_WAIT_VALUE_32,
                Width::Bits64 => CU_STREAM_MEM_OP_WAIT_VALUE_64,
            };
            params.flags = match condition {
                Condition::GreaterOrEqual => CU_STREAM_WAIT_VALUE_GEQ,
                Condition::Equal => CU_STREAM_WAIT_VALUE_EQ,
                Condition::And => CU_STREAM_WAIT_VALUE_AND,
                Condition::Nor => CU_STREAM_WAIT_VALUE_NOR,
            };
            (params.address, params.value64) = (CUdeviceptr(address), value);
        }
        WordOperation::Write { address, width, value } => {
            params.operation = match width {
                Width::Bits32 => CU_STREAM_MEM_OP_WRITE_VALUE_32,
                Width::Bits64 => CU_STREAM_MEM_OP_WRITE_VALUE_64,
            };
            (params.address, params.value64) = (CUdeviceptr(address), value);
        }
        WordOperation::Barrier { is_system_wide: true } => {
            params.barrierFlags = CU_STREAM_MEMORY_BARRIER_TYPE_SYS;
        }
        WordOperation::Barrier { is_system_wide: false } => {
            params.barrierFlags = CU_STREAM_MEMORY_BARRIER_TYPE_GPU;
        }
    }
    params
}
