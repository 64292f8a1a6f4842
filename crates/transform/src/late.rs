//! Atomics that may be done later than where they stand.
//!
//! Nobody asks what such an operation found, it orders nothing, and whatever can follow it in its thread neither reads or writes global memory,
//! but by others of its kind, nor lets another thread know that it has come so far. So no thread can tell whether it has been done before the
//! kernel has ended: those that look without waiting may find either, now as before. It is the end of most kernels that add up.

use kernel_abi::late::can_wait;
use simt_ir::{Block, Cfg, Function, Inst, Op, Order, Scope, Space};

use crate::poll::Polling;

/// The operations of a kernel that may be done late, in ascending order.
pub fn find(func: &Function, cfg: &Cfg, polling: &Polling) -> Vec<Inst> {
    // Some thread waits there for what others do.
    if !polling.headers.is_empty() || polling.may_hide {
        return Vec::new();
    }
    let all = || {
        let places = |block: Block| func.block(block).insts.iter().enumerate();
        cfg.order().iter().flat_map(move |block| places(*block).map(|(at, inst)| (*block, at, *inst)))
    };
    let mut late: Vec<(Block, usize, Inst)> = all().filter(|(.., inst)| is_candidate(func, *inst)).collect();
    if late.is_empty() {
        return Vec::new();
    }
    // Who is at a barrier on another way is there with those who have ended after this.
    for (barrier, at, _) in all().filter(|(.., inst)| func.inst(*inst).op.is_barrier()) {
        let after = |block: Block| cfg.succs(block).iter().copied();
        let ahead = cfg.reached(after(barrier), after);
        late.retain(|(block, own, _)| ahead[block.index()] || *block == barrier && *own > at);
    }
    loop {
        let is_late = |inst: Inst| late.iter().any(|(.., other)| *other == inst);
        let ends: Vec<(Block, usize)> = all()
            .filter(|(.., inst)| could_tell(&func.inst(*inst).op) && !is_late(*inst))
            .map(|(block, at, _)| (block, at))
            .collect();
        let before = |block: Block| cfg.preds(block).iter().copied();
        let leads_there = cfg.reached(ends.iter().map(|(block, _)| *block), before);
        let count = late.len();
        late.retain(|(block, at, _)| {
            let follows = |(end, place): &(Block, usize)| end == block && place > at;
            !cfg.succs(*block).iter().any(|next| leads_there[next.index()]) && !ends.iter().any(follows)
        });
        if late.len() == count {
            break;
        }
    }
    let mut late: Vec<Inst> = late.into_iter().map(|(.., inst)| inst).collect();
    late.sort();
    late
}

fn is_candidate(func: &Function, inst: Inst) -> bool {
    let data = func.inst(inst);
    match data.op {
        Op::Atomic(op, access) => {
            data.results.is_empty()
                && access.space == Space::Global
                && access.lanes == 1
                && matches!(access.order, Order::Weak | Order::Relaxed)
                && access.scope != Scope::Sys
                && can_wait(op, func.ty(data.args[1]))
        }
        _ => false,
    }
}

/// Whether a thread that has come here could tell that something before it has not been done, or tell others that it has.
fn could_tell(op: &Op) -> bool {
    match op {
        Op::Load(access) => !access.invariant && matches!(access.space, Space::Generic | Space::Global),
        Op::Store(access) | Op::Atomic(_, access) | Op::AtomicCas(access) => {
            matches!(access.space, Space::Generic | Space::Global)
                || !matches!(access.order, Order::Weak | Order::Relaxed | Order::Volatile)
        }
        Op::MbarrierArrive { .. }
        | Op::Bulk(_)
        | Op::Fence { .. }
        | Op::WarpSync
        | Op::Barrier { .. }
        | Op::ClusterBarrier(_)
        | Op::Call(_)
        | Op::CallIndirect(_)
        | Op::Syscall(_)
        | Op::Texture(_)
        | Op::Nanosleep => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use kernel_abi::Shape;
    use simt_ir::{
        Access, AtomicOp, BarrierKind, FunctionBuilder, Signature, SpecialReg, Target, Terminator, Type,
        Value,
    };

    use crate::prepare;

    fn barrier(b: &mut FunctionBuilder) {
        let id = b.constant(Type::I32, 0);
        b.effect(Op::Barrier { kind: BarrierKind::Sync, count: false }, &[id]);
    }

    fn count(b: &mut FunctionBuilder, place: Value, access: Access) {
        let one = b.constant(Type::I32, 1);
        b.effect(Op::Atomic(AtomicOp::Add, access), &[place, one]);
    }

    const GLOBAL: Access = Access::weak(Space::Global, 0);

    use super::*;

    /// How many of a kernel's atomics are late. It does something, in some of its threads something else that goes on with what follows or ends the
    /// thread, and something at last.
    fn late(
        first: impl FnOnce(&mut FunctionBuilder, Value),
        aside: impl FnOnce(&mut FunctionBuilder, Value),
        aside_ends: bool,
        last: impl FnOnce(&mut FunctionBuilder, Value),
    ) -> usize {
        let mut b = FunctionBuilder::new("k", Signature::default());
        let zero = b.constant(Type::I64, 0);
        let place = b.inst(Op::Load(Access::weak(Space::Param, 0)), &[zero], Type::I64);
        first(&mut b, place);
        let (other, join) = (b.block(), b.block());
        let lane = b.inst(Op::SpecialReg(SpecialReg::LaneId), &[], Type::I32);
        let zero = b.constant(Type::I32, 0);
        let cond = b.inst(Op::IntCmp(simt_ir::IntCmp::Eq), &[lane, zero], Type::Pred);
        let (then, otherwise) = (Target::new(other), Target::new(join));
        b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
        b.switch_to(other);
        aside(&mut b, place);
        b.terminate(if aside_ends { Terminator::Exit } else { Terminator::Jump(Target::new(join)) });
        b.switch_to(join);
        last(&mut b, place);
        b.terminate(Terminator::Exit);
        prepare(b.finish(), true, &Shape::of([1; 3], [32, 1, 1])).unwrap().late.len()
    }

    fn nothing(_: &mut FunctionBuilder, _: Value) {}

    fn adds(b: &mut FunctionBuilder, place: Value) {
        count(b, place, GLOBAL);
    }

    #[test]
    fn sums_at_the_end_are_late() {
        assert_eq!(late(|b, _| barrier(b), adds, false, adds), 2);
        assert_eq!(
            late(
                adds,
                |b, place| b.effect(Op::Store(Access::weak(Space::Shared, 0)), &[place, place]),
                false,
                nothing
            ),
            1
        );
    }

    #[test]
    fn what_could_tell_stands_in_the_way() {
        let load = |b: &mut FunctionBuilder, place| {
            let value = b.inst(Op::Load(GLOBAL), &[place], Type::I32);
            b.effect(Op::Store(Access::weak(Space::Shared, 0)), &[place, value]);
        };
        assert_eq!(late(adds, load, false, adds), 1, "one comes before a load, in some lanes");
        assert_eq!(late(adds, nothing, false, |b, _| barrier(b)), 0);
        let fence = Op::Fence { order: Order::SeqCst, scope: Scope::Gpu };
        assert_eq!(late(|b, _| b.effect(fence, &[]), adds, false, |b, _| b.effect(fence, &[])), 0);
        let release = Access { order: Order::Release, ..GLOBAL };
        assert_eq!(late(adds, |b, place| count(b, place, release), true, nothing), 0);
    }

    #[test]
    fn who_ends_lets_a_barrier_go() {
        assert_eq!(late(nothing, adds, true, |b, _| barrier(b)), 0);
        assert_eq!(late(|b, _| barrier(b), adds, true, nothing), 1);
    }

    #[test]
    fn what_is_asked_for_or_for_others_to_see_is_not_late() {
        let asked = |b: &mut FunctionBuilder, place| {
            let one = b.constant(Type::I32, 1);
            let old = b.inst(Op::Atomic(AtomicOp::Add, GLOBAL), &[place, one], Type::I32);
            b.effect(Op::Store(Access::weak(Space::Shared, 0)), &[place, old]);
        };
        assert_eq!(late(nothing, asked, false, nothing), 0);
        assert_eq!(
            late(nothing, |b, place| count(b, place, Access { scope: Scope::Sys, ..GLOBAL }), false, nothing),
            0
        );
        assert_eq!(
            late(nothing, |b, place| count(b, place, Access::weak(Space::Generic, 0)), false, nothing),
            0
        );
    }
}
