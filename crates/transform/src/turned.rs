//! Blocks whose threads are numbered down their columns.
//!
//! The lanes of a warp lie along x. A kernel whose x counts the rows of a matrix has each of them in another row: every access is a gather, where
//! threads that differ in y, or in z, would have what they access side by side. Where nothing in a kernel depends on which threads make up a warp, its
//! x and that axis may as well change places, of threads and of blocks alike: all of it is as before, but that warps are made up of columns.

use kernel_abi::Shape;
use simt_ir::{Block, Function, InstData, Op, Order, Space, SpecialReg};

use crate::permuted::Permutation;
use crate::{LaneShape, Prepared, gang, prepare, within};

/// How many times fewer pieces must be accessed, in halves.
const MARGIN: u64 = 3;
/// Iterations, by which what is in a loop counts for more.
const ITERATIONS: u64 = 8;
/// By which lines count for more whose elements change places in the register.
const SHUFFLED: u64 = 2;
/// The bytes of a line.
const LINE: u64 = 64;
/// Times its size by which the next lane's element may be further on.
const NEAR: i64 = 2;

/// A kernel with x and another axis in each other's place, and the shape of its blocks then, if that pays. It is prepared for the shape that it runs with
/// otherwise.
pub fn turned(kernel: &Function, shape: &Shape, p: &Prepared, chosen: &Shape) -> Option<(Function, Shape)> {
    let mut axes = [1, 2].into_iter().filter(|axis| shape.turned(*axis).is_some()).peekable();
    if axes.peek().is_none() || p.dispatched || !scatters(p, chosen) || !is_possible(kernel) {
        return None;
    }
    let turned = axes.filter_map(|axis| {
        let shape = shape.turned(axis)?;
        let func = exchanged(kernel, axis)?;
        let within = within::split(&func, &shape).unwrap_or_else(|| func.clone());
        let prepared = prepare(within, true, &shape).ok()?;
        Some((pieces(&prepared, &shape), func, shape))
    });
    let (fewest, func, shape) = turned.min_by_key(|(pieces, ..)| *pieces)?;
    (MARGIN * fewest < 2 * pieces(p, chosen)).then_some((func, shape))
}

/// The axis that one is where x and `turned` are in each other's place; as it is where `turned` is x itself.
pub fn other(axis: u8, turned: u8) -> u8 {
    match axis {
        0 => turned,
        axis if axis == turned => 0,
        axis => axis,
    }
}

/// Whether most lanes access other places each where most warps come.
fn scatters(p: &Prepared, shape: &Shape) -> bool {
    let accesses = p.usual_blocks().flat_map(|block| accesses_of(p, block));
    accesses
        .map(|(address, bytes)| pieces_of(address, bytes, shape))
        .any(|pieces| 2 * pieces >= u64::from(shape.lanes()))
}

/// Whether nothing in a kernel tells which threads make up a warp, or in which order they run.
fn is_possible(func: &Function) -> bool {
    insts(func).all(|data| match data.op {
        Op::Load(access) | Op::Store(access) => access.order == Order::Weak,
        Op::Atomic(_, access) => matches!(access.order, Order::Weak | Order::Relaxed),
        Op::Barrier { .. } => gang::is_for_all(func, data),
        Op::SpecialReg(reg) => matches!(
            reg,
            SpecialReg::Tid(_) | SpecialReg::Ntid(_) | SpecialReg::CtaId(_) | SpecialReg::NctaId(_)
        ),
        op => op.is_pure(),
    })
}

fn insts(func: &Function) -> impl Iterator<Item = &InstData> {
    func.blocks().flat_map(|block| &func.block(block).insts).map(|inst| func.inst(*inst))
}

/// With x and this axis in each other's place, if its threads differ in both.
fn exchanged(kernel: &Function, turned: u8) -> Option<Function> {
    let reads = |axis| insts(kernel).any(|data| data.op == Op::SpecialReg(SpecialReg::Tid(axis)));
    if !reads(0) || !reads(turned) {
        return None;
    }
    let mut func = kernel.clone();
    let other = |axis: u8| other(axis, turned);
    for block in func.blocks() {
        for inst in func.block(block).insts.clone() {
            let op = &mut func.inst_mut(inst).op;
            if let Op::SpecialReg(reg) = op {
                *reg = match *reg {
                    SpecialReg::Tid(axis) => SpecialReg::Tid(other(axis)),
                    SpecialReg::Ntid(axis) => SpecialReg::Ntid(other(axis)),
                    SpecialReg::CtaId(axis) => SpecialReg::CtaId(other(axis)),
                    SpecialReg::NctaId(axis) => SpecialReg::NctaId(other(axis)),
                    reg => reg,
                };
            }
        }
    }
    Some(func)
}

/// Where the lanes access memory in a block, and how many bytes each.
fn accesses_of(p: &Prepared, block: Block) -> impl Iterator<Item = (&LaneShape, i64)> {
    p.func.block(block).insts.iter().filter_map(|inst| {
        let data = p.func.inst(*inst);
        let access = data.op.access()?;
        let bytes = data.elements().iter().map(|element| i64::from(p.func.ty(*element).bits() / 8)).sum();
        let is_memory = !matches!(access.space, Space::Param | Space::Const);
        is_memory.then(|| (p.shapes.of(data.args[0]), bytes))
    })
}

/// The pieces that a thousand lanes access at once, roughly: how often loops run is not known.
fn pieces(p: &Prepared, shape: &Shape) -> u64 {
    let of_block =
        |block| accesses_of(p, block).map(|(address, bytes)| pieces_of(address, bytes, shape)).sum::<u64>();
    let sum: u64 = p.usual_blocks().map(|block| p.often(block, ITERATIONS) * of_block(block)).sum();
    1024 * sum / u64::from(shape.lanes())
}

/// Lines where lanes lie beside the ones before them, or nearly, or do in another order; elsewhere lanes, each of which is accessed by itself, whatever lies in one line.
fn pieces_of(address: &LaneShape, bytes: i64, shape: &Shape) -> u64 {
    let lanes = shape.lanes() as usize;
    let spanned = |offsets: &[i64]| {
        let runs = offsets.chunk_by(|one, next| (next - one).abs() <= NEAR * bytes);
        let lines = |run: &[i64]| 1 + (run[0] - run[run.len() - 1]).unsigned_abs() / LINE;
        runs.map(lines).sum::<u64>()
    };
    let in_rows = |offsets: &[i64], row: usize| match Permutation::of(offsets, row, bytes, false) {
        Some(found) => {
            SHUFFLED * found.runs() as u64 * (found.run as u64 * bytes.unsigned_abs()).div_ceil(LINE)
        }
        None => offsets.chunks(row).map(spanned).sum(),
    };
    match address {
        LaneShape::Uniform => 1,
        LaneShape::Affine(offsets) => in_rows(offsets, lanes),
        LaneShape::Rows(offsets) => in_rows(offsets, (shape.row_lanes() as usize).clamp(1, lanes)),
        LaneShape::Varying => lanes as u64,
    }
}

#[cfg(test)]
mod tests {
    use simt_ir::{Access, FunctionBuilder, IntBinary, Signature, Terminator, Type};

    use super::*;

    /// `out[x * n + y] = in[x * n + y]`, or with x and y the other way.
    fn copy(rows: u8, columns: u8, more: Option<Op>) -> Function {
        let mut b = FunctionBuilder::new("k", Signature::default());
        let zero = b.constant(Type::I64, 0);
        let [from, to] =
            [0, 8].map(|at| b.inst(Op::Load(Access::weak(Space::Param, at)), &[zero], Type::I64));
        let n = b.inst(Op::Load(Access::weak(Space::Param, 16)), &[zero], Type::I32);
        let [row, column] = [rows, columns].map(|axis| {
            let [block, size, thread] =
                [SpecialReg::CtaId(axis), SpecialReg::Ntid(axis), SpecialReg::Tid(axis)]
                    .map(|reg| b.inst(Op::SpecialReg(reg), &[], Type::I32));
            let first = b.inst(Op::Int(IntBinary::Mul), &[block, size], Type::I32);
            b.inst(Op::Int(IntBinary::Add), &[first, thread], Type::I32)
        });
        let start = b.inst(Op::Int(IntBinary::Mul), &[row, n], Type::I32);
        let index = b.inst(Op::Int(IntBinary::Add), &[start, column], Type::I32);
        let wide = b.inst(Op::Convert(simt_ir::Convert::SExt), &[index], Type::I64);
        let two = b.constant(Type::I32, 2);
        let bytes = b.inst(Op::Shift(simt_ir::Shift::Left), &[wide, two], Type::I64);
        let [from, to] = [from, to].map(|base| b.inst(Op::Int(IntBinary::Add), &[base, bytes], Type::I64));
        let access = Access::weak(Space::Global, 0);
        let mut value = b.inst(Op::Load(access), &[from], Type::I32);
        if let Some(op) = more {
            let lane = b.inst(op, &[], Type::I32);
            value = b.inst(Op::Int(IntBinary::Add), &[value, lane], Type::I32);
        }
        b.effect(Op::Store(access), &[to, value]);
        b.terminate(Terminator::Exit);
        b.finish()
    }

    /// The axis that x changes places with.
    fn turns(func: &Function, block: [u32; 3]) -> Option<u8> {
        let shape = Shape::of([64, 64, 64], block);
        let p = prepare(func.clone(), true, &shape).unwrap();
        turned(func, &shape, &p, &shape).map(|(_, shape)| shape.turned)
    }

    #[test]
    fn rows_along_x_are_turned() {
        for block in [[16, 16, 1], [32, 8, 1], [8, 32, 1], [10, 16, 1], [4, 64, 1], [2, 16, 2]] {
            assert_eq!(turns(&copy(0, 1, None), block), Some(1), "{block:?}");
            assert_eq!(turns(&copy(1, 0, None), block), None, "{block:?}: they lie as they should");
        }
        for block in [[16, 1, 16], [2, 2, 8], [2, 4, 32]] {
            assert_eq!(turns(&copy(0, 2, None), block), Some(2), "{block:?}");
            assert_eq!(turns(&copy(2, 0, None), block), None, "{block:?}: they lie as they should");
        }
    }

    /// `out[4096 * x + 16 * y] = in[...]`, of 16 bytes each, or with x and y the other way.
    fn copy_of_rows(rows: u8, columns: u8) -> Function {
        let mut b = FunctionBuilder::new("k", Signature::default());
        let zero = b.constant(Type::I64, 0);
        let [from, to] =
            [0, 8].map(|at| b.inst(Op::Load(Access::weak(Space::Param, at)), &[zero], Type::I64));
        let [row, column] = [(rows, 4096), (columns, 16)].map(|(axis, bytes)| {
            let thread = b.inst(Op::SpecialReg(SpecialReg::Tid(axis)), &[], Type::I32);
            let wide = b.inst(Op::Convert(simt_ir::Convert::ZExt), &[thread], Type::I64);
            let bytes = b.constant(Type::I64, bytes);
            b.inst(Op::Int(IntBinary::Mul), &[wide, bytes], Type::I64)
        });
        let bytes = b.inst(Op::Int(IntBinary::Add), &[row, column], Type::I64);
        let [from, to] = [from, to].map(|base| b.inst(Op::Int(IntBinary::Add), &[base, bytes], Type::I64));
        let access = Access { lanes: 4, ..Access::weak(Space::Global, 0) };
        let values = b.insts(Op::Load(access), &[from], &[Type::F32; 4]);
        b.effect(Op::Store(access), &[&[to][..], &values].concat());
        b.terminate(Terminator::Exit);
        b.finish()
    }

    /// Four lanes of a warp have each line, but none is beside the one before it.
    #[test]
    fn lanes_that_share_lines_far_from_each_other_are_turned() {
        for block in [[8, 16, 1], [16, 8, 1], [4, 32, 1]] {
            assert_eq!(turns(&copy_of_rows(0, 1), block), Some(1), "{block:?}");
            assert_eq!(turns(&copy_of_rows(1, 0), block), None, "{block:?}: they lie as they should");
        }
    }

    #[test]
    fn what_tells_of_warps_is_not_turned() {
        assert_eq!(turns(&copy(0, 1, Some(Op::SpecialReg(SpecialReg::LaneId))), [16, 16, 1]), None);
        assert_eq!(turns(&copy(0, 1, None), [16, 5, 1]), None, "a column is no part of a warp");
        assert_eq!(turns(&copy(0, 2, None), [16, 2, 5]), None, "a column is no part of a warp");
    }
}
