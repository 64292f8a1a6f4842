//! Traps as operations on the way to where the other threads go.
//!
//! A trap ends its block, and a block that leads nowhere lies behind all loops: lanes that part from their warp to trap wait there until the
//! others have left their loops. That costs the loops nothing, but those may never leave them, if they poll for what a thread that traps
//! would have done.

use std::collections::HashMap;

use simt_ir::{Block, Cfg, Function, IntUnary, Op, Refusal, Target, Terminator, Type, Value};

/// Blocks with more instructions are not copied to each place that leads to them.
const MAX_COPIED: usize = 16;

/// After: where threads see what others do, one that comes to a trap behind a branch traps ([`Op::Refuse`]) on its way to the branch's
/// other side. A trap that only a switch, or branches with traps on both sides lead to still ends its block.
pub fn pass_through(func: &mut Function) {
    if !func.sees_others() {
        return;
    }
    loop {
        let cfg = Cfg::new(func);
        let mut changed = false;
        for &block in cfg.order() {
            if func.block(block).term == Terminator::Trap {
                for &from in cfg.preds(block) {
                    changed |= join(func, &cfg, from, block);
                }
            }
        }
        if !changed {
            return;
        }
    }
}

/// Makes the edge from `from` to the block `trap` part of the way to another block, or the trap the end of `from`. Whether it did.
fn join(func: &mut Function, cfg: &Cfg, from: Block, trap: Block) -> bool {
    let alone = cfg.preds(trap) == [from];
    let fits = alone || func.block(trap).insts.len() <= MAX_COPIED;
    let loc = func.block(trap).term_loc;
    match func.block(from).term.clone() {
        Terminator::Jump(target) if target.block == trap && fits => {
            copy(func, trap, &target.args, from);
            let data = func.block_mut(from);
            (data.term, data.term_loc) = (Terminator::Trap, loc);
            true
        }
        Terminator::Branch { cond, then, otherwise, .. }
            if (then.block == trap) != (otherwise.block == trap) && fits =>
        {
            let traps_if = then.block == trap;
            let (target, other) = if traps_if { (then, otherwise) } else { (otherwise, then) };
            if func.block(trap).insts.is_empty() {
                let cond =
                    if traps_if { cond } else { append(func, from, Op::IntUnary(IntUnary::Not), vec![cond]) };
                func.append(from, Op::Refuse(Refusal::Trap), vec![cond], &[], loc);
                func.block_mut(from).term = Terminator::Jump(other);
                return true;
            }
            // Two that trap would lead to each other.
            if func.block(other.block).term == Terminator::Trap {
                return false;
            }
            let own = func.add_block();
            copy(func, trap, &target.args, own);
            let always = append(func, own, Op::Const(1), vec![]);
            func.append(own, Op::Refuse(Refusal::Trap), vec![always], &[], loc);
            let data = func.block_mut(own);
            (data.term, data.term_loc) = (Terminator::Jump(other), loc);
            for target in func.block_mut(from).term.targets_mut() {
                if target.block == trap {
                    *target = Target::new(own);
                }
            }
            true
        }
        _ => false,
    }
}

/// Appends an instruction with one predicate as its result.
fn append(func: &mut Function, block: Block, op: Op, args: Vec<Value>) -> Value {
    let loc = func.block(block).term_loc;
    func.append_value(block, op, args, Type::Pred, loc)
}

/// Appends copies of a block's instructions to another, with these for the block's parameters.
fn copy(func: &mut Function, block: Block, args: &[Value], to: Block) {
    let params = func.block(block).params.clone();
    let mut copies: HashMap<Value, Value> = params.into_iter().zip(args.iter().copied()).collect();
    for inst in func.block(block).insts.clone() {
        func.append_copy(to, inst, &mut copies);
    }
}

#[cfg(test)]
mod tests {
    use kernel_abi::Shape;
    use simt_ir::{
        Access, FunctionBuilder, IntBinary, IntCmp, Order, Program, Signature, Space, SpecialReg, verify,
    };

    use super::*;
    use crate::prepare;

    /// The function sees what other threads do.
    fn look(b: &mut FunctionBuilder) {
        let address = b.constant(Type::I64, 1024);
        let access = Access { order: Order::Relaxed, ..Access::weak(Space::Shared, 0) };
        b.inst(Op::Load(access), &[address], Type::I32);
    }

    /// Each thread goes around a loop as often as its lane's number says, and traps in it behind a branch; `stores` words before that.
    fn loop_that_traps(stores: u64) -> Function {
        let mut b = FunctionBuilder::new("k", Signature::default());
        let lane = b.inst(Op::SpecialReg(SpecialReg::LaneId), &[], Type::I32);
        let count = b.var(Type::I32);
        let zero = b.constant(Type::I32, 0);
        b.write(count, zero);
        let [again, traps, goes_on, end] = [(); 4].map(|()| b.block());
        b.terminate(Terminator::Jump(Target::new(again)));
        b.switch_to(again);
        let (so_far, limit) = (b.read(count), b.constant(Type::I32, 17));
        look(&mut b);
        let over = b.inst(Op::IntCmp(IntCmp::GtS), &[so_far, limit], Type::Pred);
        let branch = |cond: Value, then: Block, otherwise: Block| {
            let (then, otherwise) = (Target::new(then), Target::new(otherwise));
            Terminator::Branch { cond, then, otherwise, uniform: false }
        };
        b.terminate(branch(over, traps, goes_on));
        b.switch_to(traps);
        for word in 0..stores {
            let address = b.constant(Type::I64, 4 * word);
            b.effect(Op::Store(Access::weak(Space::Shared, 0)), &[address, so_far]);
        }
        b.terminate(Terminator::Trap);
        b.switch_to(goes_on);
        let one = b.constant(Type::I32, 1);
        let next = b.inst(Op::Int(IntBinary::Add), &[so_far, one], Type::I32);
        b.write(count, next);
        let more = b.inst(Op::IntCmp(IntCmp::LtS), &[next, lane], Type::Pred);
        b.terminate(branch(more, again, end));
        b.switch_to(end);
        b.terminate(Terminator::Exit);
        b.finish()
    }

    fn refusals(func: &Function) -> usize {
        let cfg = Cfg::new(func);
        let insts = cfg.order().iter().flat_map(|block| &func.block(*block).insts);
        insts.filter(|inst| func.inst(**inst).op == Op::Refuse(Refusal::Trap)).count()
    }

    #[test]
    fn a_trap_in_a_loop_stays_in_it() {
        for (stores, branches) in [(0, 1), (3, 2), (100, 2)] {
            let mut func = loop_that_traps(stores);
            pass_through(&mut func);
            let shape = Shape::of([1; 3], [32, 1, 1]);
            let prepared = prepare(func.clone(), true, &shape).unwrap();
            assert_eq!(refusals(&prepared.func), 1);
            let id = prepared.loops.ids().next().unwrap();
            let refuses = |block: &Block| {
                let mut insts = prepared.func.block(*block).insts.iter();
                insts.any(|inst| matches!(prepared.func.inst(*inst).op, Op::Refuse(_)))
            };
            let place = prepared.cfg.order().iter().find(|block| refuses(block)).unwrap();
            assert!(prepared.loops.contains(id, *place), "{stores} stores");
            let parting = prepared.cfg.order().iter().filter(|block| prepared.cfg.succs(**block).len() > 1);
            assert_eq!(parting.count(), branches, "{stores} stores");
            verify::verify(&Program { functions: vec![func], ..Program::default() }).unwrap();
        }
    }

    #[test]
    fn a_trap_in_several_places_is_copied_if_it_is_short() {
        for (stores, kept) in [(2, 0), (100, 1)] {
            let mut b = FunctionBuilder::new("k", Signature::default());
            let lane = b.inst(Op::SpecialReg(SpecialReg::LaneId), &[], Type::I32);
            look(&mut b);
            let traps = b.block();
            for limit in [5, 7] {
                let (limit, next) = (b.constant(Type::I32, limit), b.block());
                let cond = b.inst(Op::IntCmp(IntCmp::Eq), &[lane, limit], Type::Pred);
                let (then, otherwise) = (Target::new(next), Target::new(traps));
                b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
                b.switch_to(next);
            }
            b.terminate(Terminator::Exit);
            b.switch_to(traps);
            for word in 0..stores {
                let address = b.constant(Type::I64, 4 * word);
                b.effect(Op::Store(Access::weak(Space::Shared, 0)), &[address, lane]);
            }
            b.terminate(Terminator::Trap);
            let mut func = b.finish();
            pass_through(&mut func);
            verify::verify(&Program { functions: vec![func.clone()], ..Program::default() }).unwrap();
            let cfg = Cfg::new(&func);
            let ends = cfg.order().iter().filter(|block| func.block(**block).term == Terminator::Trap);
            assert_eq!(ends.count(), kept, "{stores} stores");
            assert_eq!(refusals(&func), 2 * (1 - kept));
        }
    }
}
