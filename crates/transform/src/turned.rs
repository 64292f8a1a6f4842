//! Blocks whose threads are numbered down their columns.
//!
//! The lanes of a warp lie along x. A kernel whose x counts the rows of a matrix has each of them in another row: every access is a gather, where
//! threads that differ in y would have what they access side by side. Where nothing in a kernel depends on which threads make up a warp, its x and y
//! may as well change places, of threads and of blocks alike: all of it is as before, but that warps are made up of columns.

use kernel_abi::Shape;
use simt_ir::{Function, Op, Order, Space, SpecialReg};

use crate::{LaneShape, Prepared, gang, prepare};

/// How many times fewer lines of the caches must be accessed.
const MARGIN: u64 = 2;
/// Iterations, by which what is in a loop counts for more.
const ITERATIONS: u64 = 8;
/// The bytes of a line.
const LINE: i64 = 64;

/// A kernel with x and y in each other's place, and the shape of its blocks then, if that pays. It is prepared for the shape that it runs with otherwise.
pub fn turned(kernel: &Function, shape: &Shape, p: &Prepared, chosen: &Shape) -> Option<(Function, Shape)> {
    let turned_shape = shape.turned()?;
    if p.dispatched || !scatters(p) || !is_possible(kernel) {
        return None;
    }
    let func = exchanged(kernel);
    let turned = prepare(func.clone(), true, &turned_shape).ok()?;
    let pays = MARGIN * lines(&turned, &turned_shape) < lines(p, chosen);
    pays.then_some((func, turned_shape))
}

/// Whether lanes access other places each where most warps come.
fn scatters(p: &Prepared) -> bool {
    p.usual_blocks().flat_map(|block| &p.func.block(block).insts).any(|inst| {
        let data = p.func.inst(*inst);
        data.op.access().is_some() && p.shapes.of(data.args[0]).is_vector()
    })
}

/// Whether nothing in a kernel tells which threads make up a warp, or in which order they run; whether its threads differ in x and y at all.
fn is_possible(func: &Function) -> bool {
    let insts = || func.blocks().flat_map(|block| &func.block(block).insts).map(|inst| func.inst(*inst));
    let reads = |axis| insts().any(|data| data.op == Op::SpecialReg(SpecialReg::Tid(axis)));
    reads(0)
        && reads(1)
        && insts().all(|data| match data.op {
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

/// With x and y in each other's place.
fn exchanged(kernel: &Function) -> Function {
    let mut func = kernel.clone();
    let other = |axis: u8| if axis < 2 { 1 - axis } else { axis };
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
    func
}

/// The lines that a thousand lanes access, roughly: how often loops run is not known.
fn lines(p: &Prepared, shape: &Shape) -> u64 {
    let mut sum = 0;
    for block in p.usual_blocks() {
        let often = p.often(block, ITERATIONS);
        for inst in &p.func.block(block).insts {
            let data = p.func.inst(*inst);
            if let Some(access) = data.op.access()
                && !matches!(access.space, Space::Param | Space::Const)
            {
                sum += often * lines_of(p.shapes.of(data.args[0]), shape);
            }
        }
    }
    1024 * sum / u64::from(shape.lanes())
}

fn lines_of(address: &LaneShape, shape: &Shape) -> u64 {
    let lanes = shape.lanes() as usize;
    let spanned = |offsets: &[i64]| {
        let first = offsets.iter().copied().min().unwrap_or(0);
        let mut lines: Vec<i64> = offsets.iter().map(|offset| (offset - first) / LINE).collect();
        lines.sort_unstable();
        lines.dedup();
        lines.len() as u64
    };
    match address {
        LaneShape::Uniform => 1,
        LaneShape::Affine(offsets) => spanned(offsets),
        LaneShape::Rows(offsets) => {
            let row = shape.row_lanes() as usize;
            offsets.chunks(row.clamp(1, lanes)).map(spanned).sum()
        }
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

    fn turns(func: &Function, block: [u32; 3]) -> bool {
        let shape = Shape::of([64, 64, 1], block);
        let p = prepare(func.clone(), true, &shape).unwrap();
        turned(func, &shape, &p, &shape).is_some()
    }

    #[test]
    fn rows_along_x_are_turned() {
        for block in [[16, 16, 1], [32, 8, 1], [8, 32, 1], [10, 16, 1]] {
            assert!(turns(&copy(0, 1, None), block), "{block:?}");
            assert!(!turns(&copy(1, 0, None), block), "{block:?}: they lie as they should");
        }
    }

    #[test]
    fn what_tells_of_warps_is_not_turned() {
        assert!(!turns(&copy(0, 1, Some(Op::SpecialReg(SpecialReg::LaneId))), [16, 16, 1]));
        assert!(!turns(&copy(0, 1, None), [16, 5, 1]), "a column is no part of a warp");
        assert!(!turns(&copy(0, 1, None), [16, 16, 2]));
    }
}
