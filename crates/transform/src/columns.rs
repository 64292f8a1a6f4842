//! What a block's rows have in common.
//!
//! Where the lanes of a warp cover several rows of a block, what is computed from a thread's x alone is the same in each row: in a product with the
//! transposed, say, the row of the second matrix that a thread reads. Such values are vectors for all lanes nevertheless, which costs nothing where
//! LLVM sees that registers are the same; but of a load by an address in each lane it does not, and there it costs most.

use kernel_abi::{Shape, XLayout};
use simt_ir::{Cfg, Function, Op, Order, Space, Value};

use crate::{LaneShape, Shapes};

/// The values that all rows have in common.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// For each value whether it may differ; nothing if there are no rows, or nothing is known.
    differ: Vec<bool>,
}

impl Columns {
    /// Those of a kernel's values. As long as all lanes are active, that is: of a row whose lanes have gone elsewhere nothing is said.
    pub fn find(func: &Function, cfg: &Cfg, shapes: &Shapes, shape: &Shape) -> Columns {
        let XLayout::Period(period) = shape.x else { return Columns::default() };
        let (period, lanes) = (usize::from(period), shape.lanes() as usize);
        if period >= lanes || shape.dims == 1 {
            return Columns::default();
        }
        let mut differ = vec![false; func.value_count()];
        for param in &func.block(Function::ENTRY).params {
            differ[param.index()] = true;
        }
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for &block in cfg.order() {
                for inst in &func.block(block).insts {
                    let data = func.inst(*inst);
                    let is_own = match data.op {
                        // Each lane has a window of its own.
                        Op::ToGeneric(Space::Local)
                        | Op::FromGeneric(Space::Local)
                        | Op::IsSpace(Space::Local) => true,
                        Op::Load(access) => access.order != Order::Weak || access.space == Space::Local,
                        _ => !data.op.is_pure() || data.args.is_empty(),
                    };
                    let is_different = is_own || data.args.iter().any(|arg| differ[arg.index()]);
                    for result in data.results.iter().filter(|_| is_different) {
                        changed |= differs(shapes, *result, period, &mut differ);
                    }
                }
                for target in func.block(block).term.targets() {
                    for (param, arg) in func.block(target.block).params.iter().zip(&target.args) {
                        if shapes.is_join(target.block) || differ[arg.index()] {
                            changed |= differs(shapes, *param, period, &mut differ);
                        }
                    }
                }
            }
        }
        Columns { differ }
    }

    /// Whether all rows have this value in common.
    pub fn have(&self, value: Value) -> bool {
        self.differ.get(value.index()).is_some_and(|differs| !differs)
    }
}

/// Notes that a value may differ between rows unless its shape says otherwise; whether that was not known.
fn differs(shapes: &Shapes, value: Value, period: usize, differ: &mut [bool]) -> bool {
    let is_common = match shapes.of(value) {
        LaneShape::Uniform => true,
        LaneShape::Affine(offsets) => offsets.chunks(period).all(|row| *row == offsets[..row.len()]),
        LaneShape::Rows(_) | LaneShape::Varying => false,
    };
    !is_common && !std::mem::replace(&mut differ[value.index()], true)
}

#[cfg(test)]
mod tests {
    use simt_ir::{Access, Convert, FunctionBuilder, IntBinary, Signature, SpecialReg, Terminator, Type};

    use super::*;

    /// Whether rows of a block of 16 by 16 have an element in common whose index is computed of a thread's x and y.
    fn is_common(index: impl FnOnce(&mut FunctionBuilder, [Value; 2]) -> Value) -> bool {
        let mut b = FunctionBuilder::new("k", Signature::default());
        let [x, y] = [0, 1].map(|axis| b.inst(Op::SpecialReg(SpecialReg::Tid(axis)), &[], Type::I32));
        let index = index(&mut b, [x, y]);
        let wide = b.inst(Op::Convert(Convert::SExt), &[index], Type::I64);
        let element = b.inst(Op::Load(Access::weak(Space::Global, 0)), &[wide], Type::I32);
        b.effect(Op::Store(Access::weak(Space::Global, 0)), &[wide, element]);
        b.terminate(Terminator::Exit);
        let prepared = crate::prepare(b.finish(), true, &Shape::of([1; 3], [16, 16, 1])).unwrap();
        let mut insts = prepared.cfg.order().iter().flat_map(|block| &prepared.func.block(*block).insts);
        let store = insts.find(|inst| matches!(prepared.func.inst(**inst).op, Op::Store(_))).unwrap();
        let stored = prepared.func.inst(*store).args[1];
        prepared.columns.have(stored)
    }

    #[test]
    fn what_depends_on_x_alone_rows_have_in_common() {
        let square =
            |b: &mut FunctionBuilder, of: Value| b.inst(Op::Int(IntBinary::Mul), &[of, of], Type::I32);
        assert!(is_common(|b, [x, _]| square(b, x)));
        assert!(!is_common(|b, [_, y]| square(b, y)));
        assert!(!is_common(|b, [x, y]| b.inst(Op::Int(IntBinary::Mul), &[x, y], Type::I32)));
        assert!(!is_common(|b, _| b.inst(Op::SpecialReg(SpecialReg::LaneId), &[], Type::I32)));
    }

    #[test]
    fn lanes_have_local_memory_of_their_own() {
        let place = |op: Op| {
            is_common(|b, _| {
                let start = b.inst(Op::LocalBase, &[], Type::I64);
                let place = b.inst(op, &[start], Type::I64);
                b.inst(Op::Convert(Convert::Trunc), &[place], Type::I32)
            })
        };
        assert!(!place(Op::ToGeneric(Space::Local)));
        assert!(place(Op::ToGeneric(Space::Shared)));
    }

    #[test]
    fn a_choice_by_row_is_none_in_common() {
        let chosen = |own: usize| {
            is_common(|b, of| {
                let (result, x) = (b.var(Type::I32), of[0]);
                let square = b.inst(Op::Int(IntBinary::Mul), &[x, x], Type::I32);
                b.write(result, square);
                let limit = b.constant(Type::I32, 3);
                let cond = b.inst(Op::IntCmp(simt_ir::IntCmp::LtS), &[of[own], limit], Type::Pred);
                let (then, end) = (b.block(), b.block());
                let [then_target, end_target] = [then, end].map(simt_ir::Target::new);
                b.terminate(Terminator::Branch {
                    cond,
                    then: then_target,
                    otherwise: end_target.clone(),
                    uniform: false,
                });
                b.switch_to(then);
                let other = b.inst(Op::Int(IntBinary::Mul), &[square, x], Type::I32);
                b.write(result, other);
                b.terminate(Terminator::Jump(end_target));
                b.switch_to(end);
                b.read(result)
            })
        };
        assert!(!chosen(1));
    }
}
