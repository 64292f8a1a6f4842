//! Addresses that loops move on, in blocks of several rows to a warp, against the interpreter.

mod launch;

use launch::Launch;
use simt_ir::*;

#[derive(Clone, Copy, Debug)]
struct Walk {
    /// Threads of lower rows leave sooner.
    parted: bool,
    /// All meet in each round of the outer loop.
    meets: bool,
    /// The inner loop adds twice each time, in two blocks.
    twice: bool,
    /// What rows move by is not the same for all of them.
    uneven: bool,
}

fn int(b: &mut FunctionBuilder, op: IntBinary, x: Value, y: Value) -> Value {
    let ty = b.func().ty(x);
    b.inst(Op::Int(op), &[x, y], ty)
}

/// Goes on with a loop while `cond` holds; afterwards the builder stands behind it.
fn repeat(b: &mut FunctionBuilder, body: Block, cond: Value) {
    let after = b.block();
    let (then, otherwise) = (Target::new(body), Target::new(after));
    b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
    b.switch_to(after);
}

/// Each thread adds up elements of the matrix from its own on: some in its row, then further down, for some rounds. It stores the sum and how far it got.
fn kernel(walk: Walk) -> Program {
    let mut b = FunctionBuilder::new("kernel", Signature::default());
    let zero = b.constant(Type::I64, 0);
    let param = |b: &mut FunctionBuilder, at: i64, ty: Type| {
        b.inst(Op::Load(Access::weak(Space::Param, at)), &[zero], ty)
    };
    let (data, out) = (param(&mut b, 0, Type::I64), param(&mut b, 8, Type::I64));
    let (width, rounds) = (param(&mut b, 16, Type::I32), param(&mut b, 20, Type::I32));
    let reg = |b: &mut FunctionBuilder, reg| b.inst(Op::SpecialReg(reg), &[], Type::I32);
    let (x, y, ntid) =
        (reg(&mut b, SpecialReg::Tid(0)), reg(&mut b, SpecialReg::Tid(1)), reg(&mut b, SpecialReg::Ntid(0)));
    let element = |b: &mut FunctionBuilder, base: Value, index: Value| {
        let wide = b.inst(Op::Convert(Convert::SExt), &[index], Type::I64);
        let four = b.constant(Type::I64, 4);
        let bytes = int(b, IntBinary::Mul, wide, four);
        int(b, IntBinary::Add, base, bytes)
    };
    let row = int(&mut b, IntBinary::Mul, y, width);
    let index = int(&mut b, IntBinary::Add, row, x);
    let start = element(&mut b, data, index);
    let pitch = element(&mut b, zero, width);
    let rest = match walk.uneven {
        true => {
            let odd = b.inst(Op::Convert(Convert::ZExt), &[y], Type::I64);
            let four = b.constant(Type::I64, 4);
            int(&mut b, IntBinary::Mul, odd, four)
        }
        false => zero,
    };
    let (at, round, sum) = (b.var(Type::I64), b.var(Type::I32), b.var(Type::I32));
    let (one, eight) = (b.constant(Type::I32, 1), b.constant(Type::I64, 8));
    let none = b.constant(Type::I32, 0);
    b.write(at, start);
    b.write(round, none);
    b.write(sum, one);
    let body = b.block();
    b.terminate(Terminator::Jump(Target::new(body)));
    b.switch_to(body);
    if walk.meets {
        b.effect(Op::Barrier { kind: BarrierKind::Sync, count: false }, &[none]);
    }
    let step = b.var(Type::I32);
    b.write(step, none);
    let inner = b.block();
    b.terminate(Terminator::Jump(Target::new(inner)));
    b.switch_to(inner);
    let here = b.read(at);
    let value = b.inst(Op::Load(Access::weak(Space::Global, 4)), &[here], Type::I32);
    let (before, three) = (b.read(sum), b.constant(Type::I32, 3));
    let more = int(&mut b, IntBinary::Mul, before, three);
    let more = int(&mut b, IntBinary::Add, more, value);
    b.write(sum, more);
    let mut next = int(&mut b, IntBinary::Add, here, eight);
    if walk.twice {
        b.write(at, next);
        let second = b.block();
        b.terminate(Terminator::Jump(Target::new(second)));
        b.switch_to(second);
        let here = b.read(at);
        next = int(&mut b, IntBinary::Add, eight, here);
    }
    b.write(at, next);
    let count = b.read(step);
    let count = int(&mut b, IntBinary::Add, count, one);
    b.write(step, count);
    let go_on = b.inst(Op::IntCmp(IntCmp::LtS), &[count, three], Type::Pred);
    repeat(&mut b, inner, go_on);
    let here = b.read(at);
    let down = int(&mut b, IntBinary::Add, here, pitch);
    let down = int(&mut b, IntBinary::Add, down, rest);
    b.write(at, down);
    let count = b.read(round);
    let count = int(&mut b, IntBinary::Add, count, one);
    b.write(round, count);
    let limit = if walk.parted { int(&mut b, IntBinary::Add, rounds, y) } else { rounds };
    let go_on = b.inst(Op::IntCmp(IntCmp::LtS), &[count, limit], Type::Pred);
    repeat(&mut b, body, go_on);
    let place = int(&mut b, IntBinary::Mul, y, ntid);
    let place = int(&mut b, IntBinary::Add, place, x);
    let place = int(&mut b, IntBinary::Add, place, place);
    let to = element(&mut b, out, place);
    let (total, end) = (b.read(sum), b.read(at));
    let way = int(&mut b, IntBinary::Sub, end, data);
    let way = b.inst(Op::Convert(Convert::Trunc), &[way], Type::I32);
    b.effect(Op::Store(Access::weak(Space::Global, 0)), &[to, total]);
    b.effect(Op::Store(Access::weak(Space::Global, 4)), &[to, way]);
    b.terminate(Terminator::Exit);
    let program = Program { functions: vec![b.finish()], param_bytes: 24, ..Program::default() };
    verify(&program).expect("the kernel is well formed");
    program
}

#[test]
fn walks_over_a_matrix_come_to_the_same() {
    const ROUNDS: u32 = 3;
    let flags = [false, true];
    for (number, block) in [[8, 8, 1], [16, 16, 1], [4, 16, 1], [16, 4, 2]].into_iter().enumerate() {
        for code in 0..16usize {
            let flag = |bit: usize| flags[code >> bit & 1];
            let walk = Walk { parted: flag(0), meets: flag(1), twice: flag(2), uneven: flag(3) };
            // Threads that have left meet nobody.
            if walk.parted && walk.meets || (code + number) % 2 == 0 {
                continue;
            }
            let program = kernel(walk);
            let width = 50 + number as u32;
            // Rows from the first to the last, and what goes on behind a row's end.
            let count = u64::from(width * (2 * block[1] + ROUNDS + 2) + 200).next_multiple_of(2);
            let threads = u64::from(block.iter().product::<u32>());
            let words: Vec<u64> = (0..count / 2 + threads).map(|at| at * 0x9e37_79b9_7f4a).collect();
            let params = |words: &mut [u64]| {
                let start = words.as_mut_ptr() as u64;
                [start, start + 4 * count, u64::from(width) | u64::from(ROUNDS) << 32]
            };
            let launch = Launch { grid: [1, 1, 1], block };
            launch.must_agree(&program, &words, params, format_args!("{walk:?} in {block:?}"));
        }
    }
}
