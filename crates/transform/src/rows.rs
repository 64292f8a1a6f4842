//! The row and the column of a number, where most warps lie in one row.
//!
//! Programs number the elements of an array of rows and find each one's row and column by dividing: `i / width` and `i % width`. Where the numbers
//! of a warp's lanes follow each other, most warps lie in one row, whose number one lane's division tells; the column is what is left, and grows from
//! lane to lane as the number does. Of powers of two these are shifts and masks. [`find`] has the kernel compute both so, for [`within`] to take where a test says that they are right.

use std::collections::HashMap;

use simt_ir::{
    Block, Cfg, Convert, Def, DomTree, Function, Inst, InstData, IntBinary, IntCmp, Op, Shift, Type, Value,
};

use crate::{Loops, within};

/// What a quotient or a rest is where a warp lies in one row.
pub struct InRow {
    /// What is divided, and by what.
    pub number: Value,
    pub width: Value,
    /// The quotient, of all lanes, or the rest, of each.
    pub usual: Value,
    /// When it is: comparisons with a value, or with zero.
    pub tests: Vec<(IntCmp, Value, Option<Value>)>,
}

/// Divisors up to which a warp hardly ever lies in one row.
const NARROW: u64 = 32;

/// A quotient or a rest.
struct Division {
    is_signed: bool,
    is_rest: bool,
    number: Value,
    width: Width,
}

/// What is divided by.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Width {
    Value(Value),
    Constant(u64),
}

/// By instruction, what quotients and rests are in a row. After: the kernel computes that too.
pub fn find(func: &mut Function, is_excluded: impl Fn(Inst) -> bool) -> HashMap<Inst, InRow> {
    let mut found = HashMap::new();
    // Quotient and rest of the same numbers have the same row.
    let mut known: HashMap<(bool, Value, Width), [Value; 4]> = HashMap::new();
    for block in func.blocks() {
        known.clear();
        for inst in func.block(block).insts.clone() {
            let Some(division) = division(func, inst).filter(|_| !is_excluded(inst)) else { continue };
            let Division { is_signed, is_rest, number, width } = division;
            let (ty, loc) = (func.ty(number), func.inst(inst).loc);
            let parts = known.entry((is_signed, number, width)).or_insert_with(|| {
                let insts = &func.block(block).insts;
                let mut at = insts.iter().position(|other| *other == inst).expect("it is in its block");
                let mut add = |op, args: Vec<Value>| {
                    at += 1;
                    func.insert(block, at - 1, op, args, ty, loc)
                };
                let width = match width {
                    Width::Value(width) => width,
                    Width::Constant(width) => add(Op::Const(width), vec![]),
                };
                let one = add(Op::AnyLane, vec![number]);
                let divide = if is_signed { IntBinary::DivS } else { IntBinary::DivU };
                let row = add(Op::Int(divide), vec![one, width]);
                let start = add(Op::Int(IntBinary::Mul), vec![row, width]);
                [width, row, start, add(Op::Int(IntBinary::Sub), vec![number, start])]
            });
            let [width, row, start, column] = *parts;
            // Of a number below zero, or that many, the start may have wrapped.
            let tests = match is_signed {
                true => vec![
                    (IntCmp::GtS, width, None),
                    (IntCmp::GeS, number, None),
                    (IntCmp::GeS, number, Some(start)),
                    (IntCmp::LtS, column, Some(width)),
                ],
                false => vec![(IntCmp::GeU, number, Some(start)), (IntCmp::LtU, column, Some(width))],
            };
            found.insert(inst, InRow { number, width, usual: if is_rest { column } else { row }, tests });
        }
    }
    found
}

/// Moves quotients and rests to where others of the same numbers are, from blocks that are come to from there alone: a warp is to be known to lie in one
/// row before anything depends on that, and a kernel computes its row here and its column behind a branch.
pub fn gather(func: &mut Function) {
    let cfg = Cfg::new(func);
    let dom = DomTree::new(&cfg);
    let Ok(loops) = Loops::new(&cfg, &dom, func.blocks().len()) else { return };
    for &block in cfg.order() {
        let &[pred] = cfg.preds(block) else { continue };
        let numbers = |func: &Function, block: Block| -> Vec<Value> {
            let insts = func.block(block).insts.iter();
            insts.filter_map(|inst| division(func, *inst)).map(|division| division.number).collect()
        };
        let before = numbers(func, pred);
        if before.is_empty() || loops.innermost(block) != loops.innermost(pred) {
            continue;
        }
        for inst in func.block(block).insts.clone() {
            let Some(Division { number, .. }) = division(func, inst) else { continue };
            let is_known = before.contains(&number)
                || func
                    .def_inst(number)
                    .is_some_and(|data| data.args.first().is_some_and(|of| before.contains(of)));
            let result = func.inst(inst).results[0];
            if is_known && is_movable(func, block, result, DEPTH) {
                within::bring_forward(func, block, pred, result);
            }
        }
    }
}

/// How far what a quotient is computed from is followed.
const DEPTH: u32 = 8;

/// Whether a value can be computed before a block as well as in it.
fn is_movable(func: &Function, block: Block, value: Value, depth: u32) -> bool {
    match func.def(value) {
        Def::Param(of, _) => of != block,
        Def::Result(inst, _) if func.block(block).insts.contains(&inst) => {
            let data = func.inst(inst);
            depth > 0
                && data.op.is_pure()
                && data.args.iter().all(|arg| is_movable(func, block, *arg, depth - 1))
        }
        Def::Result(..) => true,
        Def::Removed => false,
    }
}

/// Whether an instruction tells rows or columns by what takes its time.
pub fn divides(func: &Function, inst: Inst) -> bool {
    let is_bits = matches!(func.inst(inst).op, Op::Int(IntBinary::And) | Op::Shift(_));
    !is_bits && division(func, inst).is_some()
}

/// Whether an instruction tells rows or columns, or may when its mask is known to be of low bits.
pub fn may_divide(func: &Function, inst: Inst) -> bool {
    let data = func.inst(inst);
    let is_masked = data.op == Op::Int(IntBinary::And)
        && with_constant(func, data).is_some_and(|(number, _)| is_sum(func, number));
    is_masked || division(func, inst).is_some()
}

/// What an instruction divides, if a warp may well lie in one row.
fn division(func: &Function, inst: Inst) -> Option<Division> {
    let data = func.inst(inst);
    let (is_signed, is_rest) = match data.op {
        Op::Int(IntBinary::DivS) => (true, false),
        Op::Int(IntBinary::DivU) => (false, false),
        Op::Int(IntBinary::RemS) => (true, true),
        Op::Int(IntBinary::RemU) => (false, true),
        Op::Int(IntBinary::And) | Op::Shift(Shift::RightU | Shift::RightS) => return by_bits(func, data),
        _ => return by_product(func, inst),
    };
    let [number, width] = data.args[..] else { return None };
    let is_narrow = func.constant(width).is_some_and(|width| width <= NARROW);
    // What comes after a number is in the next row at the end of one only.
    let is_next = is_rest
        && func.def_inst(number).is_some_and(|data| {
            data.op == Op::Int(IntBinary::Add) && data.args.iter().any(|arg| func.constant(*arg).is_some())
        });
    let is_index = matches!(func.ty(number), Type::I32 | Type::I64);
    let width = Width::Value(width);
    (is_index && !is_narrow && !is_next).then_some(Division { is_signed, is_rest, number, width })
}

/// Quotient or rest by a power of two: a shift or a mask, of a sum.
fn by_bits(func: &Function, data: &InstData) -> Option<Division> {
    let (number, constant) = match data.op {
        Op::Int(_) => with_constant(func, data)?,
        _ => (data.args[0], func.constant(data.args[1])?),
    };
    let is_rest = matches!(data.op, Op::Int(_));
    let width = match is_rest {
        true => constant.checked_add(1).filter(|width| width.is_power_of_two())?,
        false => 1u64.checked_shl(constant.try_into().ok()?)?,
    };
    let is_index = matches!(func.ty(number), Type::I32 | Type::I64);
    let is_row = (NARROW + 1..1 << 31).contains(&width) && is_index && is_sum(func, number);
    let is_signed = data.op == Op::Shift(Shift::RightS);
    is_row.then_some(Division { is_signed, is_rest, number, width: Width::Constant(width) })
}

/// Whether a value is a sum. Multiples leave a row after a few lanes.
fn is_sum(func: &Function, value: Value) -> bool {
    func.def_inst(value).is_some_and(|data| matches!(data.op, Op::Int(IntBinary::Add | IntBinary::Sub)))
}

/// A quotient by a constant, as compilers compute it: the high part of a product, shifted; one more of what is below zero.
fn by_product(func: &Function, inst: Inst) -> Option<Division> {
    let data = func.inst(inst);
    let shifted = |value: Value, by: Shift| {
        let data = func.def_inst(value).filter(|data| data.op == Op::Shift(by))?;
        Some((data.args[0], func.constant(data.args[1])?))
    };
    let (is_signed, number, factor, shift) = match data.op {
        Op::Int(IntBinary::Add) if func.ty(data.results[0]) == Type::I32 => {
            let [first, second] = data.args[..] else { return None };
            let sign = |value| shifted(value, Shift::RightU).filter(|(_, by)| *by == 31);
            let ((product, _), rest) = match (sign(first), sign(second)) {
                (Some(sign), _) => (sign, second),
                (None, Some(sign)) => (sign, first),
                _ => return None,
            };
            let (high, shift) = shifted(rest, Shift::RightS).unwrap_or((rest, 0));
            let mul = func.def_inst(product).filter(|data| data.op == Op::Int(IntBinary::MulHiS))?;
            let (number, factor) = with_constant(func, mul)?;
            (high == product && factor >> 31 == 0).then_some((true, number, factor, 32 + shift))?
        }
        Op::Convert(Convert::Trunc) if func.ty(data.results[0]) == Type::I32 => {
            let (product, shift) = shifted(data.args[0], Shift::RightU)?;
            let mul = func.def_inst(product).filter(|data| data.op == Op::Int(IntBinary::Mul))?;
            let (wide, factor) = with_constant(func, mul)?;
            let number = func.def_inst(wide).filter(|data| data.op == Op::Convert(Convert::ZExt))?.args[0];
            let is_word = func.ty(number) == Type::I32 && factor >> 32 == 0;
            (is_word && shift >= 32).then_some((false, number, factor, shift))?
        }
        _ => return None,
    };
    let width = divisor(factor, shift.try_into().ok()?, if is_signed { 31 } else { 32 })?;
    let width = Width::Constant(width);
    (func.ty(number) == Type::I32).then_some(Division { is_signed, is_rest: false, number, width })
}

/// A value and the constant that it is an operation's operand with.
fn with_constant(func: &Function, data: &InstData) -> Option<(Value, u64)> {
    let [first, second] = data.args[..] else { return None };
    match (func.constant(first), func.constant(second)) {
        (None, Some(constant)) => Some((first, constant)),
        (Some(constant), None) => Some((second, constant)),
        _ => None,
    }
}

/// What numbers of so many bits are divided by if they are multiplied by a factor and shifted to the right.
fn divisor(factor: u64, shift: u32, bits: u32) -> Option<u64> {
    let one = 1u128.checked_shl(shift).filter(|_| factor != 0)?;
    let divisor = one.div_ceil(factor.into());
    let error = divisor * u128::from(factor) - one;
    let is_exact = error << bits <= one;
    (is_exact && (u128::from(NARROW) + 1..1 << 31).contains(&divisor)).then_some(divisor as u64)
}

#[cfg(test)]
mod tests {
    use super::divisor;

    #[test]
    fn factors_that_divide_exactly_tell_by_what() {
        // As compilers have them: for 100, signed and unsigned, and for 1000.
        assert_eq!(divisor(1_374_389_535, 37, 31), Some(100));
        assert_eq!(divisor(1_374_389_535, 37, 32), Some(100));
        assert_eq!(divisor(274_877_907, 38, 31), Some(1000));
        assert_eq!(divisor(1_374_389_534, 37, 31), None, "it is too small");
        assert_eq!(divisor(1_374_389_600, 37, 31), None, "it is too large");
        assert_eq!(divisor(858_993_459, 33, 31), None, "narrower than a warp");
        assert_eq!([divisor(0, 37, 31), divisor(3, 200, 31)], [None; 2]);
        for factor in [274_877_907u64, 1_374_389_535] {
            let (shift, width) = if factor < 1 << 30 { (38, 1000) } else { (37, 100) };
            for number in (0..u32::MAX >> 1).step_by(99_991).chain([width as u32 * 7 - 1, i32::MAX as u32]) {
                assert_eq!((u64::from(number) * factor) >> shift, u64::from(number) / width);
            }
        }
    }
}
