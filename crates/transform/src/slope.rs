//! How values change from one block to the next in x.

use simt_ir::{Convert, Function, IntBinary, Op, Shift, SpecialReg, Value};

/// How far definitions are followed.
const DEPTH: u32 = 16;

/// Whether an integer grows by the same number from each block to the next in x, modulo 2 to its width, all else being equal.
pub fn is_even(func: &Function, value: Value) -> bool {
    change(func, value, DEPTH).is_some()
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    None,
    Even,
}

fn change(func: &Function, value: Value, depth: u32) -> Option<Change> {
    let depth = depth.checked_sub(1)?;
    let data = func.def_inst(value)?;
    let arg = |at: usize| change(func, data.args[at], depth);
    let fixed = |at: usize| arg(at) == Some(Change::None);
    match data.op {
        Op::SpecialReg(SpecialReg::CtaId(0)) => Some(Change::Even),
        // What else tells which block it is.
        Op::SpecialReg(reg) => matches!(
            reg,
            SpecialReg::Tid(_) | SpecialReg::Ntid(_) | SpecialReg::NctaId(_) | SpecialReg::CtaId(_)
        )
        .then_some(Change::None),
        Op::Int(IntBinary::Add | IntBinary::Sub) => Some(arg(0)?.max(arg(1)?)),
        Op::Int(IntBinary::Mul) if fixed(0) => arg(1),
        Op::Int(IntBinary::Mul) | Op::Shift(Shift::Left) if fixed(1) => arg(0),
        Op::Convert(Convert::Trunc) => arg(0),
        Op::Load(access) if access.space == simt_ir::Space::Param => {
            arg(0).filter(|change| *change == Change::None)
        }
        op if op.is_pure() => (0..data.args.len()).all(fixed).then_some(Change::None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use simt_ir::{Access, FunctionBuilder, Signature, Space, Terminator, Type};

    use super::*;

    #[test]
    fn sums_and_products_by_what_is_fixed_are_even() {
        let mut b = FunctionBuilder::new("kernel", Signature::default());
        let special = |b: &mut FunctionBuilder, reg| b.inst(Op::SpecialReg(reg), &[], Type::I32);
        let (x, y) = (special(&mut b, SpecialReg::CtaId(0)), special(&mut b, SpecialReg::CtaId(1)));
        let tid = special(&mut b, SpecialReg::Tid(0));
        let zero = b.constant(Type::I64, 0);
        let width = b.inst(Op::Load(Access::weak(Space::Param, 0)), &[zero], Type::I32);
        let int = |b: &mut FunctionBuilder, op, left, right| b.inst(Op::Int(op), &[left, right], Type::I32);
        let row = int(&mut b, IntBinary::Mul, y, width);
        let column = int(&mut b, IntBinary::Mul, width, x);
        let place = int(&mut b, IntBinary::Add, column, tid);
        let index = int(&mut b, IntBinary::Sub, place, row);
        let square = int(&mut b, IntBinary::Mul, place, place);
        let least = int(&mut b, IntBinary::MinS, place, row);
        let wide = b.inst(Op::Convert(Convert::SExt), &[place], Type::I64);
        let grid = special(&mut b, SpecialReg::GridId);
        let smid = special(&mut b, SpecialReg::SmId);
        b.terminate(Terminator::Exit);
        let func = b.finish();
        let even = [x, y, tid, width, row, column, place, index];
        assert!(even.iter().all(|value| is_even(&func, *value)));
        for value in [square, least, wide, grid, smid] {
            assert!(!is_even(&func, value), "{:?}", func.def_inst(value));
        }
    }
}
