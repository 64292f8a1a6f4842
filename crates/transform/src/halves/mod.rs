//! Halves of numbers of 64 bits that are computed with where they are.
//!
//! The mathematics of doubles takes numbers apart: it adds to the exponent in the upper half, tests the upper half for what is special, and puts
//! a number together again. A thread of a GPU has its 64 bits in two registers, and all that costs nothing; in vectors a half has lanes of another
//! width, and each step between the two takes several instructions that only one unit of the processor does. After [`halves`], a number that is
//! put together of what was computed with halves is computed of whole numbers, and an upper half that only comparisons ask for is compared in place.

mod compared;
mod params;
mod sink;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use simt_ir::{Cfg, Convert, Function, Inst, IntBinary, Op, Shift, SourceLoc, Type, Value};

use crate::simplify;

const LOW: u64 = 0xffff_ffff;
/// Operations beyond which halves are left as they are.
const MOST: usize = 16;
/// How many operations after each other are looked through.
const DEEPEST: u32 = 5;

/// Computes with halves of numbers in place, where that saves taking them out.
pub fn halves(func: &mut Function) {
    let takes_apart = |inst: &Inst| upper_of(func, func.inst(*inst).results.first().copied()).is_some();
    if !func.blocks().any(|block| func.block(block).insts.iter().any(takes_apart)) {
        return;
    }
    params::merge(func);
    simplify::remove_unused(func);
    each_inst(func, |func, inst, before| {
        put_together(func, inst).map(|whole| whole.make(func, inst, before))
    });
    simplify::remove_unused(func);
    compared::compare_in_place(func);
    simplify::remove_unused(func);
    sink::sink(func);
    simplify::remove_unused(func);
}

/// Goes over all instructions. What `change` makes comes before the instruction, whose result is from then on what `change` answers, if anything.
fn each_inst(
    func: &mut Function,
    mut change: impl FnMut(&mut Function, Inst, &mut Vec<Inst>) -> Option<Value>,
) {
    let cfg = Cfg::new(func);
    let mut replaced: HashMap<Value, Value> = HashMap::new();
    for &block in cfg.order() {
        let mut insts = Vec::new();
        for inst in std::mem::take(&mut func.block_mut(block).insts) {
            if let Some(value) = change(func, inst, &mut insts) {
                replaced.insert(func.inst(inst).results[0], value);
            }
            insts.push(inst);
        }
        func.block_mut(block).insts = insts;
    }
    func.map_uses(|value| replaced.get(&value).copied().unwrap_or(value));
}

/// Makes an operation on 64 bits before another instruction, in its name.
fn make(func: &mut Function, op: Op, args: Vec<Value>, of: Inst, before: &mut Vec<Inst>) -> Value {
    let loc = func.inst(of).loc;
    func.push_value(before, op, args, Type::I64, loc)
}

/// Makes an operation, to be put where these go.
pub(crate) fn made(func: &mut Function, op: Op, args: Vec<Value>, ty: Type, insts: &mut Vec<Inst>) -> Value {
    func.push_value(insts, op, args, ty, SourceLoc::default())
}

/// The number whose upper half a value is.
fn upper_of(func: &Function, value: Option<Value>) -> Option<Value> {
    let shifted = func.def_inst(truncated(func, value?)?)?;
    let is_half = matches!(shifted.op, Op::Shift(Shift::RightU | Shift::RightS))
        && func.constant(shifted.args[1]) == Some(32);
    is_half.then(|| shifted.args[0])
}

/// The 64 bits of which a value is the lower half.
fn truncated(func: &Function, value: Value) -> Option<Value> {
    let data = func.def_inst(value)?;
    let is_lower = data.op == Op::Convert(Convert::Trunc)
        && func.ty(value) == Type::I32
        && func.ty(data.args[0]) == Type::I64;
    is_lower.then(|| data.args[0])
}

/// The double whose bits a number is, or itself: each taking apart has bits of its own.
fn origin(func: &Function, number: Value) -> Value {
    let cast = func.def_inst(number).filter(|data| data.op == Op::Convert(Convert::Bitcast));
    cast.map_or(number, |data| data.args[0])
}

/// What the lower half of a number is whose upper half is computed with.
#[derive(Clone, Copy, PartialEq)]
enum Rest {
    Zero,
    /// That of this number, or of the double with this value's bits.
    Of(Value),
    Anything,
}

/// A number of 64 bits to be computed.
#[derive(Clone)]
enum Whole {
    Value(Value),
    /// A number of 32 bits with zeros above it.
    Extended(Value),
    Const(u64),
    Binary(IntBinary, Box<[Whole; 2]>),
    Left(Box<Whole>, u64),
    Select(Value, Box<[Whole; 2]>),
}

impl Whole {
    fn op(op: IntBinary, left: Whole, right: Whole) -> Whole {
        Whole::Binary(op, Box::new([left, right]))
    }

    fn and(self, mask: u64) -> Whole {
        Whole::op(IntBinary::And, self, Whole::Const(mask))
    }

    fn left(self, amount: u64) -> Whole {
        Whole::Left(Box::new(self), amount)
    }

    /// Operations, and numbers that are extended for them.
    fn cost(&self) -> (usize, usize) {
        let (operations, extended) = match self {
            Whole::Value(_) | Whole::Const(_) => return (0, 0),
            Whole::Extended(_) => (0, 1),
            Whole::Left(number, _) => number.cost(),
            Whole::Binary(_, parts) | Whole::Select(_, parts) => {
                let [left, right] = [parts[0].cost(), parts[1].cost()];
                (left.0 + right.0, left.1 + right.1)
            }
        };
        (operations + 1, extended)
    }

    fn make(&self, func: &mut Function, of: Inst, before: &mut Vec<Inst>) -> Value {
        match self {
            Whole::Value(value) => *value,
            Whole::Const(bits) => make(func, Op::Const(*bits), Vec::new(), of, before),
            Whole::Extended(value) => make(func, Op::Convert(Convert::ZExt), vec![*value], of, before),
            Whole::Binary(op, parts) => {
                let args = parts.iter().map(|part| part.make(func, of, before)).collect();
                make(func, Op::Int(*op), args, of, before)
            }
            Whole::Left(number, amount) => {
                let number = number.make(func, of, before);
                let loc = func.inst(of).loc;
                let amount = func.push_value(before, Op::Const(*amount), Vec::new(), Type::I32, loc);
                make(func, Op::Shift(Shift::Left), vec![number, amount], of, before)
            }
            Whole::Select(condition, parts) => {
                let [then, otherwise] = [&parts[0], &parts[1]].map(|part| part.make(func, of, before));
                make(func, Op::Select, vec![*condition, then, otherwise], of, before)
            }
        }
    }
}

/// A number whose lower half is this value; its upper half may be anything.
fn lower(func: &Function, value: Value, depth: u32) -> Whole {
    if let Some(bits) = func.constant(value) {
        return Whole::Const(bits);
    }
    if let Some(number) = truncated(func, value) {
        return Whole::Value(number);
    }
    let extended = Whole::Extended(value);
    let Some(data) = func.def_inst(value).filter(|_| depth > 0) else { return extended };
    let whole = match data.op {
        Op::Int(op @ (IntBinary::Add | IntBinary::Sub | IntBinary::And | IntBinary::Or | IntBinary::Xor)) => {
            let [left, right] = [data.args[0], data.args[1]].map(|arg| lower(func, arg, depth - 1));
            Whole::op(op, left, right)
        }
        Op::Shift(Shift::Left) => match func.constant(data.args[1]) {
            Some(amount @ 0..32) => lower(func, data.args[0], depth - 1).left(amount),
            _ => return extended,
        },
        _ => return extended,
    };
    // One step from the number to the half is as good as two.
    if whole.cost().1 == 0 { whole } else { extended }
}

/// A number whose upper half is this value, and what its lower half is.
fn upper(func: &Function, value: Value, depth: u32) -> (Whole, Rest) {
    if let Some(bits) = func.constant(value) {
        return (Whole::Const(bits << 32), Rest::Zero);
    }
    if let Some(number) = upper_of(func, Some(value)) {
        return (Whole::Value(number), Rest::Of(origin(func, number)));
    }
    let moved = || (lower(func, value, depth).left(32), Rest::Zero);
    let Some(data) = func.def_inst(value).filter(|_| depth > 0) else { return moved() };
    match data.op {
        Op::Int(op @ (IntBinary::And | IntBinary::Or | IntBinary::Xor | IntBinary::Add | IntBinary::Sub)) => {
            let constants = [func.constant(data.args[0]), func.constant(data.args[1])];
            if let (IntBinary::And, [Some(mask), None] | [None, Some(mask)]) = (op, constants) {
                let (number, rest) = upper(func, data.args[usize::from(constants[0].is_some())], depth - 1);
                return (number.and(mask << 32 | LOW), rest);
            }
            let [(left, of_left), (right, of_right)] =
                [data.args[0], data.args[1]].map(|arg| upper(func, arg, depth - 1));
            let rest = match (op, of_left, of_right) {
                (IntBinary::And, Rest::Zero, _) | (IntBinary::And, _, Rest::Zero) => Rest::Zero,
                (IntBinary::And, ..) => Rest::Anything,
                (_, rest, Rest::Zero) => rest,
                (IntBinary::Add | IntBinary::Or | IntBinary::Xor, Rest::Zero, rest) => rest,
                (IntBinary::Or | IntBinary::Xor, ..) => Rest::Anything,
                // The lower halves could carry.
                _ => return moved(),
            };
            (Whole::op(op, left, right), rest)
        }
        Op::Shift(Shift::Left) => match func.constant(data.args[1]) {
            Some(amount @ 0..32) => (lower(func, data.args[0], depth - 1).left(32 + amount), Rest::Zero),
            _ => moved(),
        },
        Op::Select => {
            let [(then, of_then), (otherwise, of_otherwise)] =
                [data.args[1], data.args[2]].map(|arg| upper(func, arg, depth - 1));
            let rest = if of_then == of_otherwise { of_then } else { Rest::Anything };
            (Whole::Select(data.args[0], Box::new([then, otherwise])), rest)
        }
        _ => moved(),
    }
}

/// What an instruction puts together: the lower half, or its constant, and the upper one.
fn parts(func: &Function, inst: Inst) -> Option<[Result<Value, u64>; 2]> {
    let data = func.inst(inst);
    let extended = |value: Value| {
        let data = func.def_inst(value).filter(|data| data.op == Op::Convert(Convert::ZExt))?;
        (func.ty(data.args[0]) == Type::I32).then(|| data.args[0])
    };
    let low = |value: Value| match func.constant(value) {
        Some(bits) => (bits <= LOW).then_some(Err(bits)),
        None => extended(value).map(Ok),
    };
    let high = |value: Value| match func.constant(value) {
        Some(bits) => (bits & LOW == 0).then_some(Err(bits)),
        None => {
            let data = func.def_inst(value).filter(|data| data.op == Op::Shift(Shift::Left))?;
            extended(data.args[0]).filter(|_| func.constant(data.args[1]) == Some(32)).map(Ok)
        }
    };
    if data.op != Op::Int(IntBinary::Or) || func.ty(data.results[0]) != Type::I64 {
        return None;
    }
    let [left, right] = data.args[..] else { return None };
    let of = |left: Value, right: Value| Some([low(left)?, high(right)?]);
    of(left, right).or_else(|| of(right, left))
}

/// A number that is put together of halves, computed with the numbers that they come from; if that is less to do.
fn put_together(func: &Function, inst: Inst) -> Option<Whole> {
    let [low, high] = parts(func, inst)?;
    let (above, rest) = match high {
        Ok(value) => upper(func, value, DEEPEST),
        Err(bits) => (Whole::Const(bits), Rest::Zero),
    };
    let of_low = low.ok().and_then(|value| truncated(func, value));
    let is_same = matches!(rest, Rest::Of(number) if of_low.is_some_and(|low| origin(func, low) == number));
    let number = if is_same {
        above
    } else {
        let below = match low.map_or_else(Whole::Const, |value| lower(func, value, DEEPEST)) {
            below @ (Whole::Const(_) | Whole::Extended(_)) => below,
            below => below.and(LOW),
        };
        let above = if rest == Rest::Zero { above } else { above.and(!LOW) };
        Whole::op(IntBinary::Or, below, above)
    };
    let (operations, extended) = number.cost();
    // As it is, halves are cut out and extended again.
    let comes_from_half = of_low.is_some() || rest != Rest::Zero;
    (operations <= MOST && (extended == 0 || extended == 1 && comes_from_half)).then_some(number)
}
