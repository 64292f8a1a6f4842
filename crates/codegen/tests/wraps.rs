//! Tests of many blocks at once whether an index wraps, against each thread's index.

mod launch;

use codegen::Text;
use codegen::target::Cpu;
use launch::Launch;
use simt_ir::*;

const BLOCKS: u32 = 7;
const THREADS: u32 = 64;
const LAUNCH: Launch = Launch { grid: [BLOCKS, 2, 1], block: [THREADS, 1, 1] };

/// What a block has in the place of `ctaid.x`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Of {
    Block,
    Square,
    /// Twice the one before, none of them before the second or behind the fifth.
    Clamped,
}

impl Of {
    fn of(self, x: i32) -> i32 {
        match self {
            Of::Block => x,
            Of::Square => x * x,
            Of::Clamped => (x - 1).clamp(1, 4) << 1,
        }
    }
}

/// A thread stores at the index `x × pitch + tid + start`, if it is told to.
fn program(of: Of) -> Program {
    let mut b = FunctionBuilder::new("kernel", Signature::default());
    let zero = b.constant(Type::I64, 0);
    let param = |b: &mut FunctionBuilder, at: i64, ty: Type| {
        b.inst(Op::Load(Access::weak(Space::Param, at)), &[zero], ty)
    };
    let out = param(&mut b, 0, Type::I64);
    let [pitch, start, stores] = [8, 16, 24].map(|at| param(&mut b, at, Type::I32));
    let int = |b: &mut FunctionBuilder, op, left, right| b.inst(Op::Int(op), &[left, right], Type::I32);
    let mut x = b.inst(Op::SpecialReg(SpecialReg::CtaId(0)), &[], Type::I32);
    let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
    match of {
        Of::Block => {}
        Of::Square => x = int(&mut b, IntBinary::Mul, x, x),
        Of::Clamped => {
            let [one, four] = [1, 4].map(|number| b.constant(Type::I32, number));
            x = int(&mut b, IntBinary::Sub, x, one);
            x = int(&mut b, IntBinary::MaxS, x, one);
            x = int(&mut b, IntBinary::MinS, x, four);
            x = b.inst(Op::Shift(Shift::Left), &[x, one], Type::I32);
        }
    }
    let first = int(&mut b, IntBinary::Mul, x, pitch);
    let own = int(&mut b, IntBinary::Add, first, tid);
    let index = int(&mut b, IntBinary::Add, own, start);
    let (body, end) = (b.block(), b.block());
    let none = b.constant(Type::I32, 0);
    let cond = b.inst(Op::IntCmp(IntCmp::Ne), &[stores, none], Type::Pred);
    let (then, otherwise) = (Target::new(body), Target::new(end));
    b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
    b.switch_to(body);
    let wide = b.inst(Op::Convert(Convert::SExt), &[index], Type::I64);
    let four = b.constant(Type::I64, 4);
    let distance = b.inst(Op::Int(IntBinary::Mul), &[wide, four], Type::I64);
    let place = b.inst(Op::Int(IntBinary::Add), &[out, distance], Type::I64);
    b.effect(Op::Store(Access::weak(Space::Global, 0)), &[place, tid]);
    b.terminate(Terminator::Jump(Target::new(end)));
    b.switch_to(end);
    b.terminate(Terminator::Exit);
    let program = Program { functions: vec![b.finish()], param_bytes: 28, ..Program::default() };
    verify(&program).expect("the kernel is well formed");
    program
}

#[test]
fn one_test_for_many_blocks_finds_what_one_for_each_does() {
    let (most, least) = (i32::MAX, i32::MIN);
    let pitches = [
        0,
        1,
        64,
        -1,
        -64,
        1 << 30,
        (1 << 30) + 16,
        most / 6,
        most / 6 + 1,
        most - 10,
        most,
        least,
        least + 64,
    ];
    let last = (BLOCKS - 1) as i32 * 64;
    let starts = [
        0,
        -1,
        -32,
        most,
        most - 31,
        most - 63,
        most - 64,
        most - 63 - last,
        most - 62 - last,
        least,
        least + 5,
        least + last,
    ];
    for of in [Of::Block, Of::Square, Of::Clamped] {
        let compiled = LAUNCH.compile(&program(of), &Cpu::native().unwrap()).unwrap();
        for (pitch, start) in pitches.into_iter().flat_map(|pitch| starts.map(|start| (pitch, start))) {
            let wraps = (0..BLOCKS as i32).any(|x| {
                let first =
                    |warp: i32| of.of(x).wrapping_mul(pitch).wrapping_add(start).wrapping_add(32 * warp);
                (0..2).any(|warp| first(warp) > most - 31)
            });
            let params = [0, u64::from(pitch as u32), u64::from(start as u32), 0];
            let given_up = LAUNCH.gives_up(&compiled, &params);
            assert_eq!(given_up, wraps, "{pitch} and {start}, {of:?}");
        }
    }
}

#[test]
fn only_what_grows_evenly_has_one_test_but_for_that_of_bounds() {
    let text =
        |of| codegen::emit_text(&program(of), &LAUNCH.shape(), &Cpu::native().unwrap(), Text::Ir).unwrap();
    assert!(text(Of::Block).contains("@stays(") && !text(Of::Square).contains("@stays("));
    for of in [Of::Block, Of::Square, Of::Clamped] {
        assert!(text(of).contains("@bounded("), "bounds of all blocks are known");
    }
}
