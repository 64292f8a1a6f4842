//! What the launch's shape decides: numbers that can only be one, and branches that can only go one way.
//!
//! After: no integer has a range of one number, no comparison of integers and no branch is decided by ranges, as far as one pass over the
//! function sees. Compilers leave much of this, since they do not know how large a block is: the sign of `tid`, whether a loop in which the
//! threads fill a tile has another iteration.

use std::collections::{HashMap, HashSet};

use kernel_abi::Shape;
use simt_ir::{
    Block, Cfg, Convert, Def, DomTree, Function, Inst, InstData, IntBinary, IntCmp, IntUnary, Op, Terminator,
    Type, Value,
};

use crate::facts::{Facts, Range, signed_limits};
use crate::simplify;

/// Puts constants in place of what the ranges of numbers decide.
pub fn decide(func: &mut Function, shape: &Shape) {
    let cfg = Cfg::new(func);
    let dom = DomTree::new(&cfg);
    let decided = Decided::find(func, &cfg, &dom, shape);
    if decided.is_empty() {
        return;
    }
    for (inst, bits) in decided {
        let data = func.inst_mut(inst);
        data.op = Op::Const(bits);
        data.args.clear();
    }
    for &block in cfg.order() {
        if let Terminator::Branch { cond, then, otherwise, .. } = &func.block(block).term
            && let Some(bits) = func.constant(*cond)
        {
            let target = if bits == 0 { otherwise } else { then };
            func.block_mut(block).term = Terminator::Jump(target.clone());
        }
    }
    simplify::simplify(func);
}

struct Decided<'a> {
    func: &'a Function,
    cfg: &'a Cfg,
    facts: Facts<'a>,
    /// `None` until control gets there.
    ranges: Vec<Option<Range>>,
    /// The edges that control may take.
    taken: HashSet<(Block, Block)>,
}

impl Decided<'_> {
    /// The instructions whose results are known, and what they are.
    ///
    /// Control is followed only where it may go: a loop whose end is decided in its first iteration is none. A parameter whose range grows
    /// when control comes back may be anything, so two more rounds are enough for each.
    fn find(func: &Function, cfg: &Cfg, dom: &DomTree, shape: &Shape) -> HashMap<Inst, u64> {
        let facts = Facts::new(func, cfg, dom, shape);
        let ranges = vec![None; func.value_count()];
        let mut this = Decided { func, cfg, facts, ranges, taken: HashSet::new() };
        while this.round() {}
        let mut decided = HashMap::new();
        for inst in cfg.order().iter().flat_map(|block| &func.block(*block).insts) {
            let data = func.inst(*inst);
            if let [result] = data.results[..]
                && !matches!(data.op, Op::Const(_))
                && let Some((low, high)) = this.ranges[result.index()]
                && low == high
            {
                decided.insert(*inst, low as u64 & func.ty(result).mask());
            }
        }
        decided
    }

    /// Follows control once; whether it may go anywhere new, or a parameter may be something new.
    fn round(&mut self) -> bool {
        let (func, cfg) = (self.func, self.cfg);
        let mut changed = false;
        for &block in cfg.order() {
            let reached = |pred: &Block| self.taken.contains(&(*pred, block));
            if block != Function::ENTRY && !cfg.preds(block).iter().any(reached) {
                continue;
            }
            for &param in &func.block(block).params {
                let hull = self.hull(block, param);
                let known = &mut self.ranges[param.index()];
                if known.is_some_and(|(low, high)| hull.0 < low || high < hull.1) {
                    *known = Some(signed_limits(func.ty(param)));
                    changed = true;
                } else {
                    known.get_or_insert(hull);
                }
            }
            for &inst in &func.block(block).insts {
                let data = func.inst(inst);
                let [result] = data.results[..] else { continue };
                if is_integer(func.ty(result)) && self.is_followed(data) {
                    self.ranges[result.index()] = Some(match data.op {
                        Op::IntCmp(cmp) => self.compared(cmp, data),
                        _ => self.facts.result_range(data, result, |arg| self.of(arg)),
                    });
                }
            }
            let targets: Vec<Block> = match &func.block(block).term {
                Terminator::Branch { cond, then, otherwise, .. } => match self.of(*cond) {
                    (0, 0) => vec![otherwise.block],
                    (-1, -1) => vec![then.block],
                    _ => vec![then.block, otherwise.block],
                },
                term => term.targets().iter().map(|target| target.block).collect(),
            };
            for target in targets {
                changed |= self.taken.insert((block, target));
            }
        }
        changed
    }

    fn of(&self, value: Value) -> Range {
        self.ranges[value.index()].unwrap_or(signed_limits(self.func.ty(value)))
    }

    /// Whether the result follows from the operands' ranges alone.
    fn is_followed(&self, data: &InstData) -> bool {
        match data.op {
            Op::Const(_) | Op::SpecialReg(_) | Op::Shift(_) | Op::Select => true,
            Op::Int(op) => !matches!(op, IntBinary::AddSatS | IntBinary::SubSatS),
            Op::IntUnary(op) => matches!(op, IntUnary::PopCount | IntUnary::LeadingZeros),
            Op::IntCmp(_) => is_integer(self.func.ty(data.args[0])),
            Op::Convert(Convert::SExt | Convert::ZExt | Convert::Trunc) => {
                is_integer(self.func.ty(data.args[0]))
            }
            _ => false,
        }
    }

    /// The hull of what is passed for a parameter.
    fn hull(&self, block: Block, param: Value) -> Range {
        let full = signed_limits(self.func.ty(param));
        let Def::Param(_, index) = self.func.def(param) else { return full };
        if block == Function::ENTRY {
            return full;
        }
        let mut hull: Option<Range> = None;
        for &pred in self.cfg.preds(block).iter().filter(|pred| self.taken.contains(&(**pred, block))) {
            for target in self.func.block(pred).term.targets() {
                if target.block == block {
                    let (low, high) = self.of(target.args[index as usize]);
                    hull = Some(hull.map_or((low, high), |(l, h)| (l.min(low), h.max(high))));
                }
            }
        }
        hull.unwrap_or(full)
    }

    /// A predicate as a signed number of one bit.
    fn compared(&self, cmp: IntCmp, data: &InstData) -> Range {
        let (mut a, mut b) = (self.of(data.args[0]), self.of(data.args[1]));
        let signed = a.0 >= 0 && b.0 >= 0;
        let holds = match cmp {
            IntCmp::Eq if a == b && a.0 == a.1 => Some(true),
            IntCmp::Eq => (a.1 < b.0 || b.1 < a.0).then_some(false),
            IntCmp::Ne if a == b && a.0 == a.1 => Some(false),
            IntCmp::Ne => (a.1 < b.0 || b.1 < a.0).then_some(true),
            IntCmp::LtU | IntCmp::LeU | IntCmp::GtU | IntCmp::GeU if !signed => None,
            _ => {
                if matches!(cmp, IntCmp::GtS | IntCmp::GtU | IntCmp::LeS | IntCmp::LeU) {
                    (a, b) = (b, a);
                }
                // Now `a < b`, or its opposite.
                let less = if a.1 < b.0 { Some(true) } else { (a.0 >= b.1).then_some(false) };
                let opposite = matches!(cmp, IntCmp::LeS | IntCmp::LeU | IntCmp::GeS | IntCmp::GeU);
                less.map(|less| less != opposite)
            }
        };
        holds.map_or((-1, 0), |holds| if holds { (-1, -1) } else { (0, 0) })
    }
}

fn is_integer(ty: Type) -> bool {
    matches!(ty, Type::Pred | Type::I8 | Type::I16 | Type::I32 | Type::I64)
}

#[cfg(test)]
mod tests {
    use simt_ir::{Access, FunctionBuilder, Shift, Signature, Space, SpecialReg, Target};

    use super::*;

    /// What is stored by `store(tid.x)` in blocks of so many threads, if it is a constant.
    fn stored(threads: u32, value: impl FnOnce(&mut FunctionBuilder, Value) -> Value) -> Option<u64> {
        stored_in([threads, 1, 1], 0, value)
    }

    /// What is stored by `store(tid)` of an axis.
    fn stored_in(
        block: [u32; 3],
        axis: u8,
        value: impl FnOnce(&mut FunctionBuilder, Value) -> Value,
    ) -> Option<u64> {
        let mut b = FunctionBuilder::new("k", Signature::default());
        let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(axis)), &[], Type::I32);
        let value = value(&mut b, tid);
        let zero = b.constant(Type::I64, 0);
        b.effect(Op::Store(Access::weak(Space::Global, 0)), &[zero, value]);
        b.terminate(Terminator::Exit);
        let mut func = b.finish();
        simplify::simplify(&mut func);
        decide(&mut func, &Shape::of([1; 3], block));
        let cfg = Cfg::new(&func);
        let mut insts = cfg.order().iter().flat_map(|block| &func.block(*block).insts);
        let store = insts.find(|inst| matches!(func.inst(**inst).op, Op::Store(_))).expect("it is kept");
        func.constant(func.inst(*store).args[1])
    }

    #[test]
    fn an_index_has_no_sign_and_no_high_bits() {
        let shifted = |op: Shift, by: u32| {
            move |b: &mut FunctionBuilder, tid: Value| {
                let by = b.constant(Type::I32, by.into());
                b.inst(Op::Shift(op), &[tid, by], Type::I32)
            }
        };
        assert_eq!(stored(1024, shifted(Shift::RightS, 31)), Some(0));
        assert_eq!(stored(200, shifted(Shift::RightU, 8)), Some(0));
        assert_eq!(stored(257, shifted(Shift::RightU, 8)), None, "one thread has that bit");
        // What follows from a number that there is only one of.
        let low_bits = |b: &mut FunctionBuilder, tid: Value| {
            let (by, five) = (b.constant(Type::I32, 10), b.constant(Type::I32, 5));
            let zero = b.inst(Op::Shift(Shift::RightU), &[tid, by], Type::I32);
            let sum = b.inst(Op::Int(IntBinary::Add), &[zero, five], Type::I32);
            let three = b.constant(Type::I32, 3);
            b.inst(Op::Int(IntBinary::And), &[sum, three], Type::I32)
        };
        assert_eq!(stored(1024, low_bits), Some(1));
    }

    #[test]
    fn a_block_is_as_wide_and_as_high_as_it_is() {
        let above = |limit: u64| {
            move |b: &mut FunctionBuilder, tid: Value| {
                let limit = b.constant(Type::I32, limit);
                b.inst(Op::Int(IntBinary::MaxS), &[tid, limit], Type::I32)
            }
        };
        for (axis, block) in [(0, [16, 4, 1]), (0, [8, 8, 1]), (1, [2, 16, 1]), (1, [32, 8, 1])] {
            let threads = u64::from(block[axis as usize]);
            assert_eq!(stored_in(block, axis, above(threads - 1)), Some(threads - 1));
            assert_eq!(stored_in(block, axis, above(threads - 2)), None);
        }
        assert_eq!(stored_in([32, 12, 1], 1, above(12)), None, "code does not know of it");
    }

    #[test]
    fn a_loop_that_ends_at_once_is_none() {
        let first = |threads: u32| {
            stored(threads, |b, tid| {
                let (at, count) = (b.var(Type::I32), b.var(Type::I32));
                let (zero, one) = (b.constant(Type::I32, 0), b.constant(Type::I32, 1));
                b.write(at, tid);
                b.write(count, zero);
                let (body, end) = (b.block(), b.block());
                b.terminate(Terminator::Jump(Target::new(body)));
                b.switch_to(body);
                let (from, so_far) = (b.read(at), b.read(count));
                let (step, limit) = (b.constant(Type::I32, 256), b.constant(Type::I32, 512));
                let next = b.inst(Op::Int(IntBinary::Add), &[from, step], Type::I32);
                b.write(at, next);
                let sum = b.inst(Op::Int(IntBinary::Add), &[so_far, one], Type::I32);
                b.write(count, sum);
                let more = b.inst(Op::IntCmp(IntCmp::GeS), &[next, limit], Type::Pred);
                let (then, otherwise) = (Target::new(body), Target::new(end));
                b.terminate(Terminator::Branch { cond: more, then, otherwise, uniform: false });
                b.switch_to(end);
                b.read(count)
            })
        };
        assert_eq!(first(256), Some(1));
        assert_eq!(first(257), None);
    }

    #[test]
    fn a_branch_that_no_thread_takes_is_gone() {
        for (limit, cmp, threads, expected) in [
            (256, IntCmp::LtS, 256, Some(1)),
            (256, IntCmp::LtU, 512, None),
            (255, IntCmp::LtS, 256, None),
            (256, IntCmp::GeU, 256, Some(2)),
            (255, IntCmp::LeS, 256, Some(1)),
            (255, IntCmp::GtU, 256, Some(2)),
            (256, IntCmp::Eq, 256, Some(2)),
            (300, IntCmp::Ne, 256, Some(1)),
            (255, IntCmp::Ne, 256, None),
        ] {
            let found = stored(threads, |b, tid| {
                let limit = b.constant(Type::I32, limit);
                let cond = b.inst(Op::IntCmp(cmp), &[tid, limit], Type::Pred);
                let chosen = b.var(Type::I32);
                let (left, right, after) = (b.block(), b.block(), b.block());
                let (then, otherwise) = (Target::new(left), Target::new(right));
                b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
                for (side, number) in [(left, 1), (right, 2)] {
                    b.switch_to(side);
                    let number = b.constant(Type::I32, number);
                    b.write(chosen, number);
                    b.terminate(Terminator::Jump(Target::new(after)));
                }
                b.switch_to(after);
                b.read(chosen)
            });
            assert_eq!(found, expected, "{cmp:?} {limit} of {threads}");
        }
    }
}
