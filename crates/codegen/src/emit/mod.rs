//! Emission of SIMD code: one LLVM value for the 32 lanes of a warp.
//!
//! * [`function`][]: control flow, masks, and where values are kept;
//! * [`value`][]: instructions that compute from their operands; thread indices;
//! * [`memory`][]: loads and stores by the shape of their addresses;
//! * [`masked`][]: accesses by some lanes;
//! * [`atomic`][]: what goes lane by lane;
//! * [`warp`][]: exchange between lanes;
//! * [`suspend`][]: barriers;
//! * [`call`][]: device functions that are not inlined;
//! * [`host`][]: faults and services of the host;
//! * [`entry`][]: the loops over blocks and warps.

mod atomic;
mod call;
mod entry;
mod function;
mod host;
mod masked;
mod matrix;
mod memory;
mod suspend;
mod value;
mod warp;

use std::cell::RefCell;

use kernel_abi::{CompileError, Shape};
use simt_ir::{FuncRef, Function, Op, Program, SourceLoc};
use transform::Prepared;

use crate::llvm::{self, Builder, Context, Type};
use crate::math::Lowering;
use crate::target::Machine;

/// Lanes of a warp.
const LANES: u32 = kernel_abi::WARP;

/// What all functions of a module share.
#[derive(Clone, Copy)]
struct Unit<'a, 'c> {
    b: &'a Builder<'c>,
    program: &'a Program,
    shape: &'a Shape,
    machine: &'a Machine,
    types: Types<'c>,
    raise: llvm::Function<'c>,
    /// Device functions called so far.
    callees: &'a RefCell<Vec<(FuncRef, llvm::Function<'c>)>>,
    /// The processor flushes subnormals.
    flushing: bool,
}

/// The types used most.
#[derive(Clone, Copy)]
struct Types<'c> {
    bit: Type<'c>,
    i32: Type<'c>,
    i64: Type<'c>,
    ptr: Type<'c>,
    /// One bit a lane.
    mask: Type<'c>,
}

impl<'a, 'c> Unit<'a, 'c> {
    fn context(&self) -> &'c Context {
        self.b.context()
    }

    /// Lanes of a warp that lie in one row of the block.
    fn row_lanes(&self) -> u32 {
        match self.shape.x {
            kernel_abi::XLayout::Period(period) if self.shape.dims > 1 => period.into(),
            _ => LANES,
        }
    }

    fn math(&self) -> Lowering<'a, 'c> {
        Lowering::new(self.b, self.machine.cpu()).flushing(self.flushing)
    }
}

/// Emits a kernel and all it calls. Answers the bytes of state that each warp keeps while suspended, if the kernel has suspension
/// points.
pub fn module(
    b: &Builder<'_>,
    program: &Program,
    shape: &Shape,
    machine: &Machine,
    flushing: bool,
) -> Result<Option<u32>, CompileError> {
    let context = b.context();
    let types = Types {
        bit: context.int(1),
        i32: context.int(32),
        i64: context.int(64),
        ptr: context.ptr(),
        mask: context.int(1).vector(LANES),
    };
    let raise = host::raise_function(b, machine);
    let callees = RefCell::new(Vec::new());
    let unit = Unit { b, program, shape, machine, types, raise, callees: &callees, flushing };
    let kernel = prepare(program.kernel(), true, shape)?;
    if let Some(id) = kernel.polling.lanes_wait.first() {
        let loc = kernel.func.block(kernel.loops.get(*id).header).term_loc;
        return Err(unsupported("a loop in which threads of a warp may wait for each other", loc));
    }
    let state_bytes = if suspends(&kernel) {
        Some(entry::warp_entry(unit, &kernel)?)
    } else {
        entry::blocks_entry(unit, &kernel)?;
        None
    };
    call::functions(unit)?;
    Ok(state_bytes)
}

fn prepare(func: &Function, is_kernel: bool, shape: &Shape) -> Result<Prepared, CompileError> {
    transform::prepare(func.clone(), is_kernel, shape).map_err(|irreducible| {
        let line = func.block(irreducible.0).term_loc.ptx_line;
        CompileError::unsupported(format!(
            "{}: control flow enters a loop in more than one place, near line {line}",
            func.name
        ))
    })
}

fn suspends(kernel: &Prepared) -> bool {
    let mut insts = kernel.cfg.order().iter().flat_map(|block| kernel.func.block(*block).insts.iter());
    !kernel.polling.yields.is_empty()
        || insts.any(|inst| matches!(kernel.func.inst(*inst).op, Op::Barrier { .. }))
}

fn unsupported(what: &str, loc: SourceLoc) -> CompileError {
    CompileError::unsupported(format!("{what} is not supported in SIMD code (line {})", loc.ptx_line))
}
