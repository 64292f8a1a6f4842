//! One test for all blocks of a call: whether the indices that the code assumes not to wrap are too small to.
//!
//! What a warp's index is tested for ([`wraps`](super::wraps)) may be as much work as what the warp does with it: each access of a stencil has an index
//! of its own. Each is computed here of bounds instead of numbers, from the least and the greatest `ctaid` and `tid` that there are. Where no operation on the
//! way leaves 32 bits, no thread's index does.

use std::collections::HashMap;

use kernel_abi::CompileError;
use simt_ir::{Function, IntBinary, Op, Shift, SpecialReg, Type as IrType, Value as IrValue};
use transform::Prepared;

use super::Unit;
use super::entry::{kernel_emitter, placed_function};
use super::function::Emitter;
use crate::llvm::{self, IntPredicate, Value};

/// How far definitions are followed.
const DEPTH: u32 = 24;

/// A function that tells whether surely no index wraps in so many blocks side by side, if bounds of all of them can be computed.
pub(super) fn bounded_function<'c>(
    unit: Unit<'_, 'c>,
    kernel: &Prepared,
) -> Result<Option<llvm::Function<'c>>, CompileError> {
    let assumed = kernel.shapes.assumed();
    if !assumed.iter().all(|assumption| has_bounds(&kernel.func, assumption.index, DEPTH)) {
        return Ok(None);
    }
    let b = unit.b;
    let (function, place) = placed_function(unit, kernel, "bounded", &[unit.types.i32], unit.types.bit);
    function.add_attribute("alwaysinline");
    let length = function.param(function.param_count() - 1);
    let ctaid = place.ctaid;
    let emitter = kernel_emitter(unit, kernel, place);
    let mut all = Bounds { emitter, ctaid, length, known: HashMap::new(), holds: unit.types.bit.all_ones() };
    for assumption in assumed {
        let [low, _] = all.of(assumption.index)?;
        if assumption.unsigned {
            all.require(IntPredicate::Sge, low, low.ty().zero());
        }
    }
    b.ret(all.holds);
    Ok(Some(function))
}

/// Whether a number is the same in all threads of a launch.
fn is_fixed(func: &Function, value: IrValue, depth: u32) -> bool {
    let Some(data) = func.def_inst(value).filter(|_| depth > 0) else { return false };
    match data.op {
        Op::Const(_) | Op::SpecialReg(SpecialReg::Ntid(_) | SpecialReg::NctaId(_)) => true,
        Op::SpecialReg(_) => false,
        Op::Load(access) => {
            access.space == simt_ir::Space::Param
                && data.results.len() == 1
                && func.constant(data.args[0]).is_some()
        }
        Op::Int(_) | Op::Shift(_) | Op::Convert(_) | Op::IntUnary(_) => {
            data.args.iter().all(|arg| is_fixed(func, *arg, depth - 1))
        }
        _ => false,
    }
}

fn has_bounds(func: &Function, value: IrValue, depth: u32) -> bool {
    if func.ty(value) != IrType::I32 || depth == 0 {
        return false;
    }
    if is_fixed(func, value, depth) {
        return true;
    }
    let Some(data) = func.def_inst(value) else { return false };
    let all = || data.args.iter().all(|arg| has_bounds(func, *arg, depth - 1));
    match data.op {
        Op::SpecialReg(SpecialReg::Tid(_) | SpecialReg::CtaId(_)) => true,
        Op::Int(IntBinary::Add | IntBinary::Sub | IntBinary::Mul | IntBinary::MinS | IntBinary::MaxS) => {
            all()
        }
        Op::Shift(Shift::Left | Shift::RightS) => {
            func.constant(data.args[1]).is_some_and(|by| by < 32) && has_bounds(func, data.args[0], depth - 1)
        }
        _ => false,
    }
}

/// Bounds of integers of 32 bits, as integers of 64.
struct Bounds<'a, 'c> {
    emitter: Emitter<'a, 'c>,
    /// The first of so many blocks side by side.
    ctaid: [Value<'c>; 3],
    length: Value<'c>,
    known: HashMap<IrValue, [Value<'c>; 2]>,
    /// Whether what the bounds are computed of did not leave 32 bits.
    holds: Value<'c>,
}

impl<'c> Bounds<'_, 'c> {
    fn require(&mut self, predicate: IntPredicate, one: Value<'c>, other: Value<'c>) {
        let b = self.emitter.unit.b;
        self.holds = b.and(self.holds, b.icmp(predicate, one, other));
    }

    fn of(&mut self, value: IrValue) -> Result<[Value<'c>; 2], CompileError> {
        if let Some(known) = self.known.get(&value) {
            return Ok(*known);
        }
        let p = self.emitter.p;
        let (b, i64) = (self.emitter.unit.b, self.emitter.unit.types.i64);
        let bounds = if is_fixed(&p.func, value, DEPTH) {
            let number = b.sext(self.emitter.entry_value(value)?, i64);
            [number; 2]
        } else {
            let data = p.func.def_inst(value).expect("what has bounds is computed");
            let bounds = match data.op {
                Op::SpecialReg(reg) => self.of_place(reg),
                Op::Shift(op) => {
                    let by = i64.int_const(p.func.constant(data.args[1]).unwrap_or_default());
                    let own = self.of(data.args[0])?;
                    own.map(|bound| if op == Shift::Left { b.shl(bound, by) } else { b.ashr(bound, by) })
                }
                Op::Int(op) => {
                    let (one, other) = (self.of(data.args[0])?, self.of(data.args[1])?);
                    self.computed(op, one, other)
                }
                _ => unreachable!("nothing else has bounds"),
            };
            let [low, high] = bounds;
            self.require(IntPredicate::Sge, low, i64.int_const(i64::from(i32::MIN) as u64));
            self.require(IntPredicate::Sle, high, i64.int_const(i64::from(i32::MAX) as u64));
            bounds
        };
        self.known.insert(value, bounds);
        Ok(bounds)
    }

    fn of_place(&mut self, reg: SpecialReg) -> [Value<'c>; 2] {
        let unit = self.emitter.unit;
        let (b, i64) = (unit.b, unit.types.i64);
        match reg {
            SpecialReg::Tid(axis) => {
                let size = b.zext(self.emitter.special(SpecialReg::Ntid(axis)), i64);
                // Lanes behind the last thread are computed with.
                let behind = if unit.shape.whole_warps { 0 } else { u64::from(unit.lanes) };
                [i64.zero(), b.add(size, i64.int_const(behind.wrapping_sub(1)))]
            }
            SpecialReg::CtaId(axis) => {
                let axis = usize::from(unit.axis(axis));
                let first = b.zext(self.ctaid[axis], i64);
                let others = b.sub(b.zext(self.length, i64), i64.int_const(1));
                [first, if axis == 0 { b.add(first, others) } else { first }]
            }
            _ => unreachable!("nothing else tells a thread's place"),
        }
    }

    /// Bounds of what has no more than 33 bits.
    fn computed(&self, op: IntBinary, one: [Value<'c>; 2], other: [Value<'c>; 2]) -> [Value<'c>; 2] {
        let b = self.emitter.unit.b;
        let least = |x, y| b.select(b.icmp(IntPredicate::Slt, x, y), x, y);
        let most = |x, y| b.select(b.icmp(IntPredicate::Slt, x, y), y, x);
        let both =
            |of: &dyn Fn(Value<'c>, Value<'c>) -> Value<'c>| [of(one[0], other[0]), of(one[1], other[1])];
        match op {
            IntBinary::Add => both(&|x, y| b.add(x, y)),
            IntBinary::Sub => [b.sub(one[0], other[1]), b.sub(one[1], other[0])],
            IntBinary::MinS => both(&least),
            IntBinary::MaxS => both(&most),
            IntBinary::Mul => {
                let corners = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(x, y)| b.mul(one[x], other[y]));
                let [p, q, r, s] = corners;
                [least(least(p, q), least(r, s)), most(most(p, q), most(r, s))]
            }
            _ => unreachable!("nothing else has bounds"),
        }
    }
}
