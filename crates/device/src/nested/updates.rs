//! Nodes of graphs that kernels change.

use simt_ir::RuntimeFunction;

use super::calls::{dims, word};
use super::codes::Code;
use crate::graph::UpdatableKernel;

/// Most bytes of a kernel's parameters.
const MOST: u64 = crate::limits::MAX_PARAMS as u64;

/// One of the functions that change nodes. Its error is its answer alone.
pub(super) fn perform(function: RuntimeFunction, args: &[u64]) -> Result<(), Code> {
    use RuntimeFunction as F;
    match function {
        F::GraphKernelNodeSetParam => set_parameters(args[0], args[1], args[2], args[3]),
        F::GraphKernelNodeSetEnabled => set_enabled(args[0], args[1] as u32),
        F::GraphKernelNodeSetGridDim => set_grid(args[0], args[1]),
        _ => (0..args[1]).try_for_each(|index| apply(args[0].wrapping_add(index.wrapping_mul(BYTES)))),
    }
}

/// Of a `cudaGraphKernelNodeUpdate`.
const BYTES: u64 = 40;

fn apply(update: u64) -> Result<(), Code> {
    const GRID: u32 = 1;
    const PARAMETER: u32 = 2;
    const ENABLED: u32 = 3;
    let node = word(update, 0)?;
    match word(update, 1)? as u32 {
        GRID => set_grid(node, update.wrapping_add(16)),
        PARAMETER => set_parameters(node, word(update, 3)?, word(update, 2)?, word(update, 4)?),
        ENABLED => set_enabled(node, word(update, 2)? as u32),
        _ => Err(Code::INVALID_VALUE),
    }
}

fn set_parameters(node: u64, offset: u64, value: u64, size: u64) -> Result<(), Code> {
    let node = UpdatableKernel::find(node).ok_or(Code::INVALID_VALUE)?;
    if size > MOST {
        return Err(Code::INVALID_VALUE);
    }
    let byte = |index: u64| {
        // SAFETY: reading memory of the kernel's; what is not there is answered as a fault.
        unsafe { guard::load::<u8>(value.wrapping_add(index)) }.map_err(|_| Code::ILLEGAL_ADDRESS)
    };
    let bytes: Vec<u8> = (0..size).map(byte).collect::<Result<_, _>>()?;
    node.set_parameters(offset, &bytes).map_err(|_| Code::INVALID_VALUE)
}

fn set_enabled(node: u64, enabled: u32) -> Result<(), Code> {
    let node = UpdatableKernel::find(node).ok_or(Code::INVALID_VALUE)?;
    node.set_enabled(enabled != 0).map_err(|_| Code::INVALID_VALUE)
}

fn set_grid(node: u64, grid: u64) -> Result<(), Code> {
    let node = UpdatableKernel::find(node).ok_or(Code::INVALID_VALUE)?;
    node.set_grid(dims(grid)?).map_err(|_| Code::INVALID_VALUE)
}
