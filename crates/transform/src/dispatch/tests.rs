//! What becomes of kernels whose lanes rely on each other.

use kernel_abi::Shape;
use simt_ir::{Access, BarrierKind, Order, Program, Signature, SpecialReg, verify};

use super::*;
use crate::{in_step, prepare, prepare_kernel};

fn verified(func: Function) {
    let program = Program { functions: vec![func], ..Program::default() };
    verify::verify(&program).unwrap();
}

fn special(b: &mut FunctionBuilder, reg: SpecialReg) -> Value {
    b.inst(Op::SpecialReg(reg), &[], Type::I32)
}

fn branch(b: &mut FunctionBuilder, cond: Value, then: Block, otherwise: Block) {
    let (then, otherwise) = (Target::new(then), Target::new(otherwise));
    b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
}

/// A lane takes a lock, adds its index to a word and gives the lock back.
fn locking() -> (Function, Block) {
    let mut b = FunctionBuilder::new("k", Signature::default());
    let zero = b.constant(Type::I64, 0);
    let lock = b.inst(Op::Load(Access::weak(Space::Param, 0)), &[zero], Type::I64);
    let lane = special(&mut b, SpecialReg::LaneId);
    let (attempt, taken) = (b.block(), b.block());
    b.terminate(Terminator::Jump(Target::new(attempt)));
    b.switch_to(attempt);
    let access = Access { order: Order::Relaxed, ..Access::weak(Space::Global, 0) };
    let (free, held) = (b.constant(Type::I32, 0), b.constant(Type::I32, 1));
    let old = b.inst(Op::AtomicCas(access), &[lock, free, held], Type::I32);
    let missed = b.inst(Op::IntCmp(IntCmp::Ne), &[old, free], Type::Pred);
    branch(&mut b, missed, attempt, taken);
    b.switch_to(taken);
    let word = Access { offset: 4, ..access };
    let count = b.inst(Op::Load(word), &[lock], Type::I32);
    let count = b.inst(Op::Int(IntBinary::Add), &[count, lane], Type::I32);
    b.effect(Op::Store(word), &[lock, count]);
    b.effect(Op::Store(access), &[lock, free]);
    b.terminate(Terminator::Exit);
    (b.finish(), attempt)
}

#[test]
fn what_depends_on_the_launch_alone_is_computed_once() {
    let (func, attempt) = locking();
    let dispatched = dispatch(&func, &[attempt]).unwrap();
    let entry = &dispatched.func.block(Function::ENTRY).insts;
    let has = |wanted: &dyn Fn(&Op) -> bool| entry.iter().any(|inst| wanted(&dispatched.func.inst(*inst).op));
    assert!(has(&|op| matches!(op, Op::Load(_))), "the parameter");
    assert!(has(&|op| matches!(op, Op::SpecialReg(SpecialReg::LaneId))));
    assert!(matches!(dispatched.func.block(dispatched.pause).term, Terminator::Jump(_)));
    verified(dispatched.func);
}

#[test]
fn a_kernel_runs_in_step_unless_lanes_wait_for_each_other() {
    let shape = Shape::of([1; 3], [32, 1, 1]);
    let (func, _) = locking();
    let in_step = prepare(func.clone(), true, &shape).unwrap();
    assert!(in_step::obstacle(&in_step).is_some());
    let prepared = prepare_kernel(&func, &shape).unwrap();
    assert!(prepared.dispatched && prepared.polling.yields.len() == 1);
    verified(prepared.func);
    let one_thread = Shape { whole_warps: false, ..shape };
    assert!(
        prepare_kernel(&func, &one_thread).unwrap().dispatched,
        "the shape does not say how many threads"
    );
}

#[test]
fn what_lives_across_regions_costs_no_region_anything() {
    let mut b = FunctionBuilder::new("k", Signature::default());
    let lane = special(&mut b, SpecialReg::LaneId);
    let everyone = b.constant(Type::I32, EVERYONE);
    let access = Access { order: Order::Relaxed, ..Access::weak(Space::Global, 0) };
    let address = b.constant(Type::I64, 64);
    // Each of these is computed in a region of its own and read at the end.
    let seen: Vec<Value> = (0..100)
        .map(|_| {
            let sum = b.inst(Op::Redux(IntBinary::Add), &[lane, everyone], Type::I32);
            b.inst(Op::Atomic(simt_ir::AtomicOp::Add, access), &[address, sum], Type::I32)
        })
        .collect();
    seen.into_iter().for_each(|value| b.effect(Op::Store(access), &[address, value]));
    b.terminate(Terminator::Exit);
    let func = dispatch(&b.finish(), &[]).unwrap().func;
    assert!(func.cells.len() > 100);
    let count = |of: &dyn Fn(&simt_ir::BlockData) -> usize| {
        func.blocks().map(|block| of(func.block(block))).sum::<usize>()
    };
    let (insts, params) = (count(&|data| data.insts.len()), count(&|data| data.params.len()));
    assert!(params < 10, "{params} values go around the loop");
    assert!(insts < 100 * 25, "{insts} instructions");
    verified(func);
}

#[test]
fn lanes_that_come_together_meet_without_another_turn() {
    let mut b = FunctionBuilder::new("k", Signature::default());
    let lane = special(&mut b, SpecialReg::LaneId);
    let everyone = b.constant(Type::I32, EVERYONE);
    let (own, barrier) = (Op::Redux(IntBinary::Xor), Op::Barrier { kind: BarrierKind::Sync, count: false });
    let sums = [(); 2].map(|()| b.inst(own, &[lane, everyone], Type::I32));
    let none = b.constant(Type::I32, 0);
    b.effect(barrier, &[none]);
    let (address, sum) = (b.constant(Type::I64, 64), b.inst(own, &sums, Type::I32));
    b.effect(Op::Store(Access::weak(Space::Global, 0)), &[address, sum]);
    b.terminate(Terminator::Exit);
    let func = dispatch(&b.finish(), &[]).unwrap().func;
    let count = |wanted: Op| {
        let insts = func.blocks().flat_map(|block| &func.block(block).insts);
        insts.filter(|inst| func.inst(**inst).op == wanted).count()
    };
    assert_eq!(count(own), 3 + 1, "each at once, and one place for lanes that come one by one");
    assert_eq!(count(barrier), 1, "there the warp arrives as one");
    verified(func);
}

#[test]
fn sides_that_meet_at_one_operation_run_independently() {
    let meet = |masks: [u64; 2]| {
        let mut b = FunctionBuilder::new("k", Signature::default());
        let lane = special(&mut b, SpecialReg::LaneId);
        let half = b.constant(Type::I32, 16);
        let upper = b.inst(Op::IntCmp(IntCmp::GeU), &[lane, half], Type::Pred);
        let (sides, end) = ([b.block(), b.block()], b.block());
        branch(&mut b, upper, sides[0], sides[1]);
        let sum = b.var(Type::I32);
        for (side, mask) in sides.into_iter().zip(masks) {
            b.switch_to(side);
            let members = b.constant(Type::I32, mask);
            let total = b.inst(Op::Redux(IntBinary::Add), &[lane, members], Type::I32);
            b.write(sum, total);
            b.terminate(Terminator::Jump(Target::new(end)));
        }
        b.switch_to(end);
        let (address, sum) = (b.constant(Type::I64, 64), b.read(sum));
        b.effect(Op::Store(Access::weak(Space::Global, 0)), &[address, sum]);
        b.terminate(Terminator::Exit);
        let prepared = prepare_kernel(&b.finish(), &Shape::of([1; 3], [32, 1, 1])).unwrap();
        verified(prepared.func);
        prepared.dispatched
    };
    assert!(!meet([0xffff_0000, 0x0000_ffff]), "each side has members of its own");
    assert!(meet([0xffff_ffff, 0xffff_ffff]));
}
