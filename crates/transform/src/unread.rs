//! Parameters that only lanes read that came one way.
//!
//! `float sum = 0; if (p) sum = a[i] + a[i + 1]; __syncthreads(); if (p) a[i] = sum;` merges a zero into every lane that does not hold `p`, which
//! none of them reads: all that read it are where `p` holds as well. Where a block runs for all lanes at once such a merge costs a choice for
//! each lane, and the zeros registers.

use simt_ir::{Block, Cfg, Def, DomTree, Function, IntBinary, IntUnary, Op, Terminator, Type, Value};

/// Conditions that are followed from a block to those before it, and parts of them.
const MOST: usize = 24;

/// For each parameter of several ways, the one that all lanes came that read it, if there is such.
#[derive(Debug, Default)]
pub struct Unread(Vec<Option<Block>>);

impl Unread {
    /// Finds them in a function in normal form.
    pub fn find(func: &Function, cfg: &Cfg, dom: &DomTree, def_block: &[Option<Block>]) -> Unread {
        let facts = Facts { func, cfg, dom };
        let mut found = Unread(vec![None; func.value_count()]);
        let mut readers = None;
        for &block in cfg.order() {
            let params = &func.block(block).params;
            let ways = cfg.preds(block);
            if params.is_empty() || ways.len() < 2 {
                continue;
            }
            // A condition that is computed again on the way is another one.
            let is_older = |fact: &(Value, bool)| {
                def_block[fact.0.index()].is_some_and(|at| at != block && dom.dominates(at, block))
            };
            let known: Vec<Vec<_>> =
                ways.iter().map(|way| facts.on(*way, block).into_iter().filter(is_older).collect()).collect();
            if known.iter().filter(|facts| facts.is_empty()).count() > 1 {
                continue;
            }
            let readers = readers.get_or_insert_with(|| readers_of(func, cfg));
            for param in params {
                let read_under: Vec<_> = readers[param.index()].iter().map(|at| facts.at(*at)).collect();
                let is_read = |known: &Vec<(Value, bool)>| {
                    let contradicts = |(value, holds): &(Value, bool)| {
                        read_under.iter().all(|facts| facts.contains(&(*value, !*holds)))
                    };
                    !known.iter().any(contradicts)
                };
                let mut read =
                    ways.iter().zip(&known).filter(|(_, known)| is_read(known)).map(|(way, _)| *way);
                if let (Some(way), None) = (read.next(), read.next()) {
                    found.0[param.index()] = Some(way);
                }
            }
        }
        found
    }

    /// The block from which all lanes came to a parameter's block that read it, if that is only one of those before.
    pub fn only_way(&self, param: Value) -> Option<Block> {
        self.0.get(param.index()).copied().flatten()
    }
}

/// The blocks that read each value.
fn readers_of(func: &Function, cfg: &Cfg) -> Vec<Vec<Block>> {
    let mut readers = vec![Vec::new(); func.value_count()];
    for &block in cfg.order() {
        let data = func.block(block);
        let mut read = |value: Value| {
            let readers: &mut Vec<Block> = &mut readers[value.index()];
            if readers.last() != Some(&block) {
                readers.push(block);
            }
        };
        data.insts.iter().flat_map(|inst| &func.inst(*inst).args).for_each(|arg| read(*arg));
        data.term.uses().into_iter().for_each(&mut read);
    }
    readers
}

/// Finds what is known where.
struct Facts<'a> {
    func: &'a Function,
    cfg: &'a Cfg,
    dom: &'a DomTree,
}

impl Facts<'_> {
    /// Predicates that are known of the lanes in a block, and whether they hold.
    fn at(&self, block: Block) -> Vec<(Value, bool)> {
        let mut facts = Vec::new();
        let mut at = Some(block);
        while let Some(block) = at.filter(|_| facts.len() < MOST) {
            if let [before] = self.cfg.preds(block) {
                self.branch(*before, block, &mut facts);
            }
            at = self.dom.idom(block);
        }
        facts
    }

    /// Likewise of those that go from one block to the next.
    fn on(&self, from: Block, to: Block) -> Vec<(Value, bool)> {
        let mut facts = self.at(from);
        self.branch(from, to, &mut facts);
        facts
    }

    /// Adds what a branch from a block to another one says.
    fn branch(&self, from: Block, to: Block, facts: &mut Vec<(Value, bool)>) {
        if let Terminator::Branch { cond, then, otherwise, .. } = &self.func.block(from).term
            && then.block != otherwise.block
        {
            self.add(*cond, then.block == to, facts);
        }
    }

    fn add(&self, cond: Value, holds: bool, facts: &mut Vec<(Value, bool)>) {
        if facts.len() >= MOST {
            return;
        }
        facts.push((cond, holds));
        let Def::Result(inst, _) = self.func.def(cond) else { return };
        let data = self.func.inst(inst);
        if data.args.iter().any(|arg| self.func.ty(*arg) != Type::Pred) {
            return;
        }
        match data.op {
            Op::IntUnary(IntUnary::Not) => self.add(data.args[0], !holds, facts),
            Op::Int(IntBinary::And) if holds => data.args.iter().for_each(|arg| self.add(*arg, true, facts)),
            Op::Int(IntBinary::Or) if !holds => data.args.iter().for_each(|arg| self.add(*arg, false, facts)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel_abi::Shape;
    use simt_ir::{Access, FunctionBuilder, IntCmp, Signature, Space, SpecialReg, Target};

    use super::*;

    /// How many parameters of a kernel only lanes read that came one way.
    fn found(b: FunctionBuilder) -> usize {
        let p = crate::prepare(b.finish(), true, &Shape::of([1; 3], [32, 1, 1])).unwrap();
        let params = p.cfg.order().iter().flat_map(|block| &p.func.block(*block).params);
        params.filter(|param| p.unread.only_way(**param).is_some()).count()
    }

    /// Of what is loaded where the first of two predicates holds, and is zero elsewhere, whether all lanes came one way that read it where what is built
    /// stores it.
    fn has_only_way(build: impl FnOnce(&mut FunctionBuilder, [Value; 2], Value)) -> bool {
        let mut b = FunctionBuilder::new("kernel", Signature::default());
        let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
        let conds = [5, 7].map(|limit| below(&mut b, tid, limit));
        let merged = b.var(Type::I32);
        let zero = b.constant(Type::I32, 0);
        b.write(merged, zero);
        where_holds(&mut b, conds[0], true, |b| {
            let loaded = b.inst(Op::Load(Access::weak(Space::Shared, 0)), &[zero], Type::I32);
            b.write(merged, loaded);
        });
        let merged = b.read(merged);
        build(&mut b, conds, merged);
        b.terminate(Terminator::Exit);
        found(b) == 1
    }

    fn below(b: &mut FunctionBuilder, value: Value, limit: u64) -> Value {
        let limit = b.constant(Type::I32, limit);
        b.inst(Op::IntCmp(IntCmp::LtU), &[value, limit], Type::Pred)
    }

    fn where_holds(
        b: &mut FunctionBuilder,
        cond: Value,
        holds: bool,
        body: impl FnOnce(&mut FunctionBuilder),
    ) {
        let [inside, after] = [(); 2].map(|()| b.block());
        let (then, otherwise) = if holds { (inside, after) } else { (after, inside) };
        let (then, otherwise) = (Target::new(then), Target::new(otherwise));
        b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
        b.switch_to(inside);
        body(b);
        b.terminate(Terminator::Jump(Target::new(after)));
        b.switch_to(after);
    }

    fn store_where(b: &mut FunctionBuilder, cond: Value, holds: bool, value: Value) {
        where_holds(b, cond, holds, |b| {
            let place = b.constant(Type::I32, 64);
            b.effect(Op::Store(Access::weak(Space::Shared, 0)), &[place, value]);
        });
    }

    #[test]
    fn what_is_read_where_the_same_condition_holds_comes_one_way() {
        assert!(has_only_way(|b, [cond, _], merged| store_where(b, cond, true, merged)));
    }

    #[test]
    fn a_part_of_a_condition_is_enough() {
        assert!(has_only_way(|b, conds, merged| {
            let both = b.inst(Op::Int(IntBinary::And), &conds, Type::Pred);
            store_where(b, both, true, merged);
        }));
        assert!(has_only_way(|b, [cond, _], merged| {
            let not = b.inst(Op::IntUnary(IntUnary::Not), &[cond], Type::Pred);
            store_where(b, not, false, merged);
        }));
    }

    #[test]
    fn what_others_read_too_comes_both_ways() {
        assert!(!has_only_way(|b, [_, other], merged| store_where(b, other, true, merged)));
        assert!(!has_only_way(|b, [cond, other], merged| {
            store_where(b, cond, true, merged);
            store_where(b, other, true, merged);
        }));
        assert!(!has_only_way(|b, conds, merged| {
            let either = b.inst(Op::Int(IntBinary::Or), &conds, Type::Pred);
            store_where(b, either, true, merged);
        }));
    }

    /// Whoever reads it where the condition does not hold reads the zero alone.
    #[test]
    fn what_is_read_where_the_condition_fails_comes_the_other_way() {
        assert!(has_only_way(|b, [cond, _], merged| store_where(b, cond, false, merged)));
    }

    /// In the next iteration the condition is another one, and the value still that of the last.
    #[test]
    fn a_condition_of_another_iteration_says_nothing() {
        let mut b = FunctionBuilder::new("kernel", Signature::default());
        let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
        let [step, kept] = [(); 2].map(|()| b.var(Type::I32));
        let zero = b.constant(Type::I32, 0);
        b.write(step, zero);
        b.write(kept, zero);
        let [header, after] = [(); 2].map(|()| b.block());
        b.terminate(Terminator::Jump(Target::new(header)));
        b.switch_to(header);
        let at = b.read(step);
        let cond = b.inst(Op::IntCmp(IntCmp::LtU), &[tid, at], Type::Pred);
        let last = b.read(kept);
        store_where(&mut b, cond, true, last);
        where_holds(&mut b, cond, false, |b| {
            let loaded = b.inst(Op::Load(Access::weak(Space::Shared, 0)), &[zero], Type::I32);
            b.write(kept, loaded);
        });
        let one = b.constant(Type::I32, 1);
        let next = b.inst(Op::Int(IntBinary::Add), &[at, one], Type::I32);
        b.write(step, next);
        let goes_on = below(&mut b, next, 9);
        let (then, otherwise) = (Target::new(header), Target::new(after));
        b.terminate(Terminator::Branch { cond: goes_on, then, otherwise, uniform: false });
        b.switch_to(after);
        b.terminate(Terminator::Exit);
        assert_eq!(found(b), 0);
    }
}
