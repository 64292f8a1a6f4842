//! Unions of numbers that have no bit in common: compilers write sums so, and how lanes differ is told from sums.
//!
//! What addresses are computed of from threads' places only: elsewhere a union packs data, which other passes look for.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use kernel_abi::Shape;
use simt_ir::{Cfg, Convert, DomTree, Function, IntBinary, Op, Shift, Type, Value};

use crate::facts::Facts;

/// How far definitions are followed.
const DEPTH: u32 = 16;

/// Makes sums of what addresses are computed of as unions without common bits, and masks of low bits of masks that leave out bits that are not there.
pub fn sums(func: &mut Function, shape: &Shape) {
    let unites = |op: &Op| matches!(op, Op::Int(IntBinary::Or | IntBinary::Xor | IntBinary::And));
    let places = places(func);
    let found: Vec<_> = {
        let cfg = Cfg::new(func);
        let dom = DomTree::new(&cfg);
        let bits = Bits::new(func, Facts::new(func, &cfg, &dom, shape));
        let blocks = cfg.order().iter();
        let insts = blocks.flat_map(|block| func.block(*block).insts.iter().map(move |inst| (*block, *inst)));
        let insts = insts.filter(|(_, inst)| {
            let data = func.inst(*inst);
            unites(&data.op) && places.contains(&data.results[0]) && tells_of_threads(func, &data.args)
        });
        insts.filter_map(|(block, inst)| Some((block, inst, bits.better(inst)?))).collect()
    };
    for (block, inst, better) in found {
        match better {
            Better::Sum => func.inst_mut(inst).op = Op::Int(IntBinary::Add),
            Better::Mask(at, mask) => {
                let data = func.inst(inst);
                let (ty, loc) = (func.ty(data.results[0]), data.loc);
                let place = func.block(block).insts.iter().position(|other| *other == inst);
                let mask =
                    func.insert(block, place.expect("it is in its block"), Op::Const(mask), vec![], ty, loc);
                func.inst_mut(inst).args[at] = mask;
            }
        }
    }
}

/// The integers that addresses are computed of.
fn places(func: &Function) -> HashSet<Value> {
    let insts = func.blocks().flat_map(|block| &func.block(block).insts).map(|inst| func.inst(*inst));
    let mut work: Vec<Value> =
        insts.filter(|data| data.op.access().is_some()).map(|data| data.args[0]).collect();
    let mut places = HashSet::new();
    while let Some(value) = work.pop() {
        if !matches!(func.ty(value), Type::I32 | Type::I64) || !places.insert(value) {
            continue;
        }
        if let Some(data) = func.def_inst(value).filter(|data| data.op.is_pure()) {
            work.extend(&data.args);
        }
    }
    places
}

/// Whether some of these values is computed from a thread's place, not only from what has been loaded.
fn tells_of_threads(func: &Function, values: &[Value]) -> bool {
    let (mut work, mut seen) = (values.to_vec(), HashSet::new());
    while let Some(value) = work.pop() {
        let Some(data) = func.def_inst(value).filter(|data| data.op.is_pure()) else { continue };
        if matches!(data.op, Op::SpecialReg(_)) {
            return true;
        }
        work.extend(data.args.iter().copied().filter(|arg| seen.insert(*arg)));
    }
    false
}

/// What says the same.
enum Better {
    Sum,
    /// This in the place of an argument.
    Mask(usize, u64),
}

/// The bits of numbers that may be set in some lane.
pub struct Bits<'a> {
    func: &'a Function,
    facts: Facts<'a>,
    known: RefCell<HashMap<Value, u64>>,
}

impl<'a> Bits<'a> {
    /// Of a function, of which these are facts.
    pub fn new(func: &'a Function, facts: Facts<'a>) -> Bits<'a> {
        Bits { func, facts, known: RefCell::default() }
    }

    fn better(&self, inst: simt_ir::Inst) -> Option<Better> {
        let data = self.func.inst(inst);
        let [a, b] = data.args[..] else { return None };
        if data.op != Op::Int(IntBinary::And) {
            return (self.of(a) & self.of(b) == 0).then_some(Better::Sum);
        }
        let (at, number, mask) = match (self.func.constant(a), self.func.constant(b)) {
            (None, Some(mask)) => (1, a, mask),
            (Some(mask), None) => (0, b, mask),
            _ => return None,
        };
        let low = u64::MAX >> mask.leading_zeros().min(63);
        let is_low = mask != 0 && mask != low && (low & !mask & self.of(number)) == 0;
        is_low.then_some(Better::Mask(at, low))
    }

    /// Those of a value.
    pub fn of(&self, value: Value) -> u64 {
        self.found(value, DEPTH)
    }

    fn found(&self, value: Value, depth: u32) -> u64 {
        let all = self.func.ty(value).mask();
        if depth == 0 {
            return all;
        }
        if let Some(known) = self.known.borrow().get(&value) {
            return *known;
        }
        let bits = self.computed(value, depth).unwrap_or(all) & all;
        self.known.borrow_mut().insert(value, bits);
        bits
    }

    fn computed(&self, value: Value, depth: u32) -> Option<u64> {
        let data = self.func.def_inst(value)?;
        let width = self.func.ty(value).bits();
        let of = |at: usize| self.found(data.args[at], depth - 1);
        let constant = |at: usize| self.func.constant(data.args[at]);
        Some(match data.op {
            Op::Const(bits) => bits,
            Op::SpecialReg(_) => {
                let (least, most) = self.facts.range(value);
                if least < 0 {
                    return None;
                }
                up_to(most as u64)
            }
            Op::Int(IntBinary::And) => of(0) & of(1),
            Op::Int(IntBinary::Or | IntBinary::Xor) => of(0) | of(1),
            Op::Int(IntBinary::Add) => {
                let (a, b) = (of(0), of(1));
                from(a.trailing_zeros().min(b.trailing_zeros())) & up_to(a.checked_add(b)?)
            }
            Op::Int(IntBinary::Mul) => {
                let (a, b) = (of(0), of(1));
                if let Some(factor) = constant(1).filter(|factor| factor.is_power_of_two()) {
                    return Some(a << factor.trailing_zeros());
                }
                let zeros = from(a.trailing_zeros().saturating_add(b.trailing_zeros()));
                zeros & a.checked_mul(b).map_or(u64::MAX, up_to)
            }
            Op::Select => of(1) | of(2),
            Op::Convert(Convert::ZExt | Convert::Trunc) => of(0),
            // A sign that is never set.
            Op::Convert(Convert::SExt) if of(0) <= self.func.ty(data.args[0]).mask() >> 1 => of(0),
            Op::Shift(op) => match constant(1) {
                Some(by) if by < u64::from(width) => match op {
                    Shift::Left => of(0) << by,
                    Shift::RightU => of(0) >> by,
                    Shift::RightS if of(0) <= self.func.ty(value).mask() >> 1 => of(0) >> by,
                    Shift::RightS => return None,
                },
                _ => return None,
            },
            _ => return None,
        })
    }
}

/// The bits that numbers up to this may have.
fn up_to(most: u64) -> u64 {
    if most == 0 { 0 } else { u64::MAX >> most.leading_zeros() }
}

/// All bits from this one on.
fn from(bit: u32) -> u64 {
    u64::MAX.checked_shl(bit).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use simt_ir::{Access, FunctionBuilder, Signature, Space, SpecialReg, Terminator};

    use super::*;

    /// What becomes of the operation that an index of elements ends with, and the constants that it has.
    fn ends_with(index: impl FnOnce(&mut FunctionBuilder, Value) -> Value) -> (Op, Vec<u64>) {
        let mut b = FunctionBuilder::new("k", Signature::default());
        let zero = b.constant(Type::I64, 0);
        let base = b.inst(Op::Load(Access::weak(Space::Param, 0)), &[zero], Type::I64);
        let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
        let index = index(&mut b, tid);
        let wide = b.inst(Op::Convert(Convert::ZExt), &[index], Type::I64);
        let address = b.inst(Op::Int(IntBinary::Add), &[base, wide], Type::I64);
        b.inst(Op::Load(Access::weak(Space::Global, 0)), &[address], Type::I8);
        b.terminate(Terminator::Exit);
        let mut func = b.finish();
        sums(&mut func, &Shape::of([8, 1, 1], [128, 1, 1]));
        let data = func.def_inst(index).unwrap();
        (data.op, data.args.iter().filter_map(|arg| func.constant(*arg)).collect())
    }

    fn with_constant(b: &mut FunctionBuilder, op: Op, value: Value, constant: u64) -> Value {
        let constant = b.constant(Type::I32, constant);
        b.inst(op, &[value, constant], Type::I32)
    }

    #[test]
    fn a_union_without_common_bits_is_a_sum() {
        let block = |shift: u64| {
            ends_with(|b, tid| {
                let block = b.inst(Op::SpecialReg(SpecialReg::CtaId(1)), &[], Type::I32);
                let start = with_constant(b, Op::Shift(Shift::Left), block, shift);
                b.inst(Op::Int(IntBinary::Or), &[start, tid], Type::I32)
            })
        };
        assert_eq!(block(7).0, Op::Int(IntBinary::Add));
        assert_eq!(block(6).0, Op::Int(IntBinary::Or), "64 is in both");
    }

    #[test]
    fn what_is_read_in_parts_stays_as_it_is() {
        let union = ends_with(|b, _| {
            let zero = b.constant(Type::I64, 0);
            let [low, high] = [0, 1].map(|at| {
                let byte = b.inst(Op::Load(Access::weak(Space::Global, at)), &[zero], Type::I8);
                b.inst(Op::Convert(Convert::ZExt), &[byte], Type::I32)
            });
            let high = with_constant(b, Op::Shift(Shift::Left), high, 8);
            b.inst(Op::Int(IntBinary::Or), &[low, high], Type::I32)
        });
        assert_eq!(union.0, Op::Int(IntBinary::Or));
    }

    #[test]
    fn bits_that_are_not_there_need_no_mask() {
        let masked = |factor: u64, mask: u64| {
            ends_with(|b, tid| {
                let four = with_constant(b, Op::Int(IntBinary::Mul), tid, factor);
                let further = with_constant(b, Op::Int(IntBinary::Add), four, 932);
                with_constant(b, Op::Int(IntBinary::And), further, mask)
            })
        };
        assert_eq!(masked(4, 1020).1, [1023]);
        assert_eq!(masked(2, 1020).1, [1020], "some end in 2");
        assert_eq!(masked(4, 511 << 3).1, [511 << 3]);
    }

    #[test]
    fn sums_and_products_have_the_bits_of_the_most() {
        let low = |limit: u64| {
            ends_with(|b, tid| {
                let product = with_constant(b, Op::Int(IntBinary::Mul), tid, 3);
                let sum = with_constant(b, Op::Int(IntBinary::Add), product, 100);
                with_constant(b, Op::Int(IntBinary::Xor), sum, limit)
            })
        };
        assert_eq!(low(1024).0, Op::Int(IntBinary::Add), "nine bits and seven are ten at most");
        assert_eq!(low(512).0, Op::Int(IntBinary::Xor));
    }
}
