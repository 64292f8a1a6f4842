//! Warps of a gang whose lanes exchange, or that meet at many barriers, against the interpreter.

mod kernel;
mod launch;

use codegen::Choice;
use kernel::Kernel;
use launch::Launch;
use simt_ir::*;

/// Between barriers the lanes of each warp vote, all of them and those whose number has its second bit, reduce, and ask for what tells them apart. The
/// number of each thread of a block, and then what comes of it, lie at the beginning of memory.
fn votes(rounds: u32) -> Program {
    let mut k = Kernel { b: FunctionBuilder::new("kernel", Signature::default()) };
    let data = k.param(0, Type::I64);
    let shared = Access::weak(Space::Shared, 0);
    let tid = k.reg(SpecialReg::Tid(0));
    let [zero, one, two, last] = [0, 1, 2, 31].map(|number| k.i32(number));
    let all = k.i32(u32::MAX);
    let place = k.element(data, zero, zero, tid);
    let number = k.b.inst(Op::Load(Access::weak(Space::Global, 0)), &[place], Type::I32);
    let (sum, at) = (k.b.var(Type::I32), k.b.var(Type::I32));
    k.b.write(sum, number);
    k.b.write(at, zero);
    let add = |k: &mut Kernel, more: Value| {
        let so_far = k.b.read(sum);
        let thrice = k.i32(3);
        let so_far = k.int(IntBinary::Mul, so_far, thrice);
        let next = k.int(IntBinary::Add, so_far, more);
        k.b.write(sum, next);
    };
    let vote = |k: &mut Kernel, args: &[Value]| {
        for mode in [VoteMode::All, VoteMode::Any, VoteMode::Uni] {
            let answer = k.b.inst(Op::Vote(mode), args, Type::Pred);
            let answer = k.b.inst(Op::Select, &[answer, one, two], Type::I32);
            add(k, answer);
        }
        let ballot = k.b.inst(Op::Vote(VoteMode::Ballot), args, Type::I32);
        add(k, ballot);
    };
    let (head, done) = (k.b.block(), k.b.block());
    k.b.terminate(Terminator::Jump(Target::new(head)));
    k.b.switch_to(head);
    let round = k.b.read(at);
    let bits = k.b.inst(Op::Shift(Shift::RightU), &[number, round], Type::I32);
    let [first, second] = [one, two].map(|bit| {
        let bit = k.int(IntBinary::And, bits, bit);
        k.b.inst(Op::IntCmp(IntCmp::Ne), &[bit, zero], Type::Pred)
    });
    vote(&mut k, &[first, all]);
    k.when(second, |k| vote(k, &[first]));
    use IntBinary::{Add, And, MaxS, MaxU, MinS, MinU, Or, Xor};
    for op in [Add, And, Or, Xor, MinS, MinU, MaxS, MaxU] {
        let so_far = k.b.read(sum);
        let of_all = k.b.inst(Op::Redux(op), &[so_far, all], Type::I32);
        add(&mut k, of_all);
    }
    k.b.effect(Op::WarpSync, &[all]);
    // Each lane reads what the one in the other place of its warp wrote.
    let lane = k.reg(SpecialReg::LaneId);
    let of_warp = k.int(IntBinary::Sub, tid, lane);
    let four_of = |k: &mut Kernel, lane: Value| {
        let thread = k.int(IntBinary::Add, of_warp, lane);
        k.b.inst(Op::Shift(Shift::Left), &[thread, two], Type::I32)
    };
    let own = four_of(&mut k, lane);
    let so_far = k.b.read(sum);
    k.b.effect(Op::Store(shared), &[own, so_far]);
    k.b.effect(Op::WarpSync, &[all]);
    let other = k.int(IntBinary::Sub, last, lane);
    let other = four_of(&mut k, other);
    let other = k.b.inst(Op::Load(shared), &[other], Type::I32);
    add(&mut k, other);
    for reg in [
        SpecialReg::LanemaskEq,
        SpecialReg::LanemaskLt,
        SpecialReg::LanemaskLe,
        SpecialReg::LanemaskGt,
        SpecialReg::LanemaskGe,
    ] {
        let mask = k.reg(reg);
        add(&mut k, mask);
    }
    k.barrier();
    let next = k.int(IntBinary::Add, round, one);
    k.b.write(at, next);
    let end = k.i32(rounds);
    let cond = k.b.inst(Op::IntCmp(IntCmp::LtU), &[next, end], Type::Pred);
    let (then, otherwise) = (Target::new(head), Target::new(done));
    k.b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
    k.b.switch_to(done);
    let sum = k.b.read(sum);
    k.b.effect(Op::Store(Access::weak(Space::Global, 0)), &[place, sum]);
    k.b.terminate(Terminator::Exit);
    k.program(8, 4096)
}

#[test]
fn the_warps_of_a_gang_vote_by_themselves() {
    let program = votes(20);
    for threads in [64, 256, 1024] {
        let launch = Launch { grid: [1, 1, 1], block: [threads, 1, 1] };
        let mut start: Vec<u32> = (0..threads).map(|i| i.wrapping_mul(0x9e37_79b9) >> 3).collect();
        // A warp that agrees.
        start[32..64].fill(0x0f0f_0f0f);
        let mut expected = start.clone();
        launch.interpret(&program, &[expected.as_mut_ptr() as u64]).unwrap();
        for cpu in launch::cpus() {
            let always = launch.compile_in_gangs(&program, &cpu, Choice::Always).unwrap();
            if cpu.registers().bytes == 64 {
                assert!(always.info.gang > 1, "{threads} threads on {}", cpu.name());
            }
            for compiled in [launch.compile(&program, &cpu).unwrap(), always] {
                let mut got = start.clone();
                launch.run(&compiled, &[got.as_mut_ptr() as u64]).unwrap();
                let gang = compiled.info.gang;
                assert!(got == expected, "{threads} threads in gangs of {gang} on {}", cpu.name());
            }
        }
    }
}

/// Each thread leaves what it has, and takes what another one left behind a barrier, round by round.
fn exchanges() -> Program {
    let mut k = Kernel { b: FunctionBuilder::new("kernel", Signature::default()) };
    let data = k.param(0, Type::I64);
    let shared = Access::weak(Space::Shared, 0);
    let tid = k.reg(SpecialReg::Tid(0));
    let [zero, one, two, last] = [0, 1, 2, 20].map(|number| k.i32(number));
    let place = k.element(data, zero, zero, tid);
    let number = k.b.inst(Op::Load(Access::weak(Space::Global, 0)), &[place], Type::I32);
    let threads = k.reg(SpecialReg::Ntid(0));
    let highest = k.int(IntBinary::Sub, threads, one);
    let other = k.int(IntBinary::Sub, highest, tid);
    let [own, other] = [tid, other].map(|thread| k.b.inst(Op::Shift(Shift::Left), &[thread, two], Type::I32));
    let (sum, at) = (k.b.var(Type::I32), k.b.var(Type::I32));
    k.b.write(sum, number);
    k.b.write(at, zero);
    let (head, done) = (k.b.block(), k.b.block());
    k.b.terminate(Terminator::Jump(Target::new(head)));
    k.b.switch_to(head);
    let so_far = k.b.read(sum);
    k.b.effect(Op::Store(shared), &[own, so_far]);
    k.barrier();
    let left = k.b.inst(Op::Load(shared), &[other], Type::I32);
    let three = k.i32(3);
    let so_far = k.int(IntBinary::Mul, so_far, three);
    let both = k.int(IntBinary::Add, so_far, left);
    k.b.write(sum, both);
    k.barrier();
    let round = k.b.read(at);
    let next = k.int(IntBinary::Add, round, one);
    k.b.write(at, next);
    let cond = k.b.inst(Op::IntCmp(IntCmp::LtU), &[next, last], Type::Pred);
    let (then, otherwise) = (Target::new(head), Target::new(done));
    k.b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
    k.b.switch_to(done);
    let sum = k.b.read(sum);
    k.b.effect(Op::Store(Access::weak(Space::Global, 0)), &[place, sum]);
    k.b.terminate(Terminator::Exit);
    k.program(8, 2048)
}

#[test]
fn warps_between_barriers_that_are_near_run_in_gangs() {
    let program = exchanges();
    for threads in [64, 256, 512] {
        let launch = Launch { grid: [1, 1, 1], block: [threads, 1, 1] };
        let start: Vec<u32> = (0..threads).map(|i| i.wrapping_mul(0x9e37_79b9) >> 5).collect();
        let mut expected = start.clone();
        launch.interpret(&program, &[expected.as_mut_ptr() as u64]).unwrap();
        for cpu in launch::cpus() {
            let compiled = launch.compile(&program, &cpu).unwrap();
            if cpu.registers().bytes == 64 {
                assert_eq!(compiled.info.gang, (threads / 32).min(8), "{threads} threads on {}", cpu.name());
            }
            let mut got = start.clone();
            launch.run(&compiled, &[got.as_mut_ptr() as u64]).unwrap();
            assert!(got == expected, "{threads} threads on {}", cpu.name());
        }
    }
}
