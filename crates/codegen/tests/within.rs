//! Indices that are bounded, at edges and away from them, against the interpreter.

mod launch;

use std::fmt::Write;

use codegen::Text;
use codegen::target::{Cpu, Level};
use launch::Launch;
use simt_ir::*;

/// An index bounded by a width, of 32 or 64 bits.
type Bound = fn(&mut FunctionBuilder, Value, Value) -> Value;

const BOUNDS: [(&str, Bound); 11] = [
    ("nearest", |b, x, width| {
        let (zero, last) = (zero_like(b, x), less_one(b, width));
        let x = int(b, IntBinary::MaxS, x, zero);
        int(b, IntBinary::MinS, x, last)
    }),
    ("nearest from above", |b, x, width| {
        let (zero, last) = (zero_like(b, x), less_one(b, width));
        let x = int(b, IntBinary::MinS, last, x);
        int(b, IntBinary::MaxS, zero, x)
    }),
    ("negative is far", |b, x, width| {
        let last = less_one(b, width);
        int(b, IntBinary::MinU, x, last)
    }),
    ("rest", |b, x, width| {
        let x = int(b, IntBinary::Add, x, width);
        int(b, IntBinary::RemS, x, width)
    }),
    ("rest that may be negative", |b, x, width| {
        let rest = int(b, IntBinary::RemS, x, width);
        let square = int(b, IntBinary::Mul, rest, rest);
        int(b, IntBinary::RemU, square, width)
    }),
    ("unsigned rest", |b, x, width| int(b, IntBinary::RemU, x, width)),
    ("unsigned rest once around", |b, x, width| {
        let three = b.constant(b.func().ty(x), 3);
        let x = int(b, IntBinary::Add, width, x);
        let x = int(b, IntBinary::Add, x, three);
        int(b, IntBinary::RemU, x, width)
    }),
    ("other side", |b, x, width| {
        let (zero, last) = (zero_like(b, x), less_one(b, width));
        let beyond = b.inst(Op::IntCmp(IntCmp::GeS), &[x, width], Type::Pred);
        let ty = b.func().ty(x);
        let x = b.inst(Op::Select, &[beyond, zero, x], ty);
        let before = b.inst(Op::IntCmp(IntCmp::GeS), &[x, zero], Type::Pred);
        b.inst(Op::Select, &[before, x, last], ty)
    }),
    ("at least one", |b, x, width| {
        let (last, two) = (less_one(b, width), b.constant(b.func().ty(x), 2));
        let x = int(b, IntBinary::MaxU, x, two);
        int(b, IntBinary::MinU, x, last)
    }),
    ("rest of a power of two", |b, x, width| {
        let (seven, mask) = (b.constant(b.func().ty(x), 7), b.constant(b.func().ty(x), 63));
        let x = int(b, IntBinary::Add, x, seven);
        let x = int(b, IntBinary::And, x, mask);
        int(b, IntBinary::RemU, x, width)
    }),
    ("row of a power of two", |b, x, width| {
        let (three, six) = (b.constant(b.func().ty(x), 3), b.constant(Type::I32, 6));
        let ty = b.func().ty(x);
        let x = int(b, IntBinary::Sub, x, three);
        let row = b.inst(Op::Shift(Shift::RightS), &[x, six], ty);
        let x = int(b, IntBinary::Add, x, row);
        int(b, IntBinary::RemU, x, width)
    }),
];

fn int(b: &mut FunctionBuilder, op: IntBinary, x: Value, y: Value) -> Value {
    let ty = b.func().ty(x);
    b.inst(Op::Int(op), &[x, y], ty)
}

fn zero_like(b: &mut FunctionBuilder, x: Value) -> Value {
    let ty = b.func().ty(x);
    b.constant(ty, 0)
}

fn less_one(b: &mut FunctionBuilder, x: Value) -> Value {
    let ty = b.func().ty(x);
    let one = b.constant(ty, 1);
    int(b, IntBinary::Sub, x, one)
}

fn element(b: &mut FunctionBuilder, base: Value, index: Value) -> Value {
    let index = match b.func().ty(index) {
        Type::I64 => index,
        _ => b.inst(Op::Convert(Convert::SExt), &[index], Type::I64),
    };
    let four = b.constant(Type::I64, 4);
    let bytes = int(b, IntBinary::Mul, index, four);
    int(b, IntBinary::Add, base, bytes)
}

/// Each thread of a picture's pixels makes a number of its row's elements left of it, at it and right of it.
fn kernel(bound: Bound, ty: Type, looped: bool) -> Program {
    let mut b = FunctionBuilder::new("kernel", Signature::default());
    let zero = b.constant(Type::I64, 0);
    let param = |b: &mut FunctionBuilder, at: i64, ty: Type| {
        b.inst(Op::Load(Access::weak(Space::Param, at)), &[zero], ty)
    };
    let (data, out) = (param(&mut b, 0, Type::I64), param(&mut b, 8, Type::I64));
    let (width, height) = (param(&mut b, 16, Type::I32), param(&mut b, 20, Type::I32));
    let place = |b: &mut FunctionBuilder, axis: u8| {
        let reg = |b: &mut FunctionBuilder, reg| b.inst(Op::SpecialReg(reg), &[], Type::I32);
        let (cta, ntid) = (reg(b, SpecialReg::CtaId(axis)), reg(b, SpecialReg::Ntid(axis)));
        let (start, tid) = (int(b, IntBinary::Mul, cta, ntid), reg(b, SpecialReg::Tid(axis)));
        int(b, IntBinary::Add, start, tid)
    };
    let (x, y) = (place(&mut b, 0), place(&mut b, 1));
    let inside = |b: &mut FunctionBuilder, a, limit| b.inst(Op::IntCmp(IntCmp::LtS), &[a, limit], Type::Pred);
    let (in_row, in_column) = (inside(&mut b, x, width), inside(&mut b, y, height));
    let cond = b.inst(Op::Int(IntBinary::And), &[in_row, in_column], Type::Pred);
    let (some, end) = (b.block(), b.block());
    let (then, otherwise) = (Target::new(some), Target::new(end));
    b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
    b.switch_to(some);
    let row = int(&mut b, IntBinary::Mul, y, width);
    let widened = |b: &mut FunctionBuilder, value: Value| match ty {
        Type::I32 => value,
        _ => b.inst(Op::Convert(Convert::SExt), &[value], ty),
    };
    let (row, x, width) = (widened(&mut b, row), widened(&mut b, x), widened(&mut b, width));
    let taken = |b: &mut FunctionBuilder, sum: Value, step: Value| {
        let at = int(b, IntBinary::Add, x, step);
        let at = bound(b, at, width);
        let at = int(b, IntBinary::Add, row, at);
        let from = element(b, data, at);
        let value = b.inst(Op::Load(Access::weak(Space::Global, 0)), &[from], Type::I32);
        let three = b.constant(Type::I32, 3);
        let sum = int(b, IntBinary::Mul, sum, three);
        int(b, IntBinary::Add, sum, value)
    };
    let (mut sum, first) = (b.constant(Type::I32, 1), b.constant(ty, -1i64 as u64 & ty.mask()));
    if looped {
        let (step, total) = (b.var(ty), b.var(Type::I32));
        b.write(step, first);
        b.write(total, sum);
        let (body, after) = (b.block(), b.block());
        b.terminate(Terminator::Jump(Target::new(body)));
        b.switch_to(body);
        let (at, before, one) = (b.read(step), b.read(total), b.constant(ty, 1));
        let sum_here = taken(&mut b, before, at);
        b.write(total, sum_here);
        let next = int(&mut b, IntBinary::Add, at, one);
        b.write(step, next);
        let more = b.inst(Op::IntCmp(IntCmp::LeS), &[next, one], Type::Pred);
        let (then, otherwise) = (Target::new(body), Target::new(after));
        b.terminate(Terminator::Branch { cond: more, then, otherwise, uniform: false });
        b.switch_to(after);
        sum = b.read(total);
    } else {
        for step in -1i64..=1 {
            let step = b.constant(ty, step as u64 & ty.mask());
            sum = taken(&mut b, sum, step);
        }
    }
    let at = int(&mut b, IntBinary::Add, row, x);
    let to = element(&mut b, out, at);
    b.effect(Op::Store(Access::weak(Space::Global, 0)), &[to, sum]);
    b.terminate(Terminator::Jump(Target::new(end)));
    b.switch_to(end);
    b.terminate(Terminator::Exit);
    let functions = vec![b.finish()];
    let program = Program { functions, param_bytes: 24, ..Program::default() };
    verify(&program).expect("the kernel is well formed");
    program
}

#[test]
fn elements_are_those_within_bounds() {
    const HEIGHT: u32 = 4;
    let blocks =
        [([64, 1, 1], [3, 4, 1]), ([32, 2, 1], [5, 2, 1]), ([16, 4, 1], [9, 1, 1]), ([10, 4, 1], [13, 1, 1])];
    for (at, (name, bound)) in BOUNDS.into_iter().enumerate() {
        for (number, (block, grid)) in blocks.into_iter().enumerate() {
            let looped = (at + number) % 2 == 0;
            let ty = if (at / 2 + number) % 2 == 0 { Type::I32 } else { Type::I64 };
            let launch = Launch { grid, block };
            let program = kernel(bound, ty, looped);
            for width in [3u32, 64, 130] {
                let count = u64::from(width * HEIGHT);
                let words: Vec<u64> = (0..count).map(|at| at * 0x9e37_79b9_7f4a).collect();
                let params = |words: &mut [u64]| {
                    let start = words.as_mut_ptr() as u64;
                    [start, start + 4 * count, u64::from(width) | u64::from(HEIGHT) << 32]
                };
                launch.must_agree(
                    &program,
                    &words,
                    params,
                    format_args!("{name}, {ty}, in {block:?}, {width} wide"),
                );
            }
        }
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn warps_at_edges_do_not_part_those_away_from_them() {
    // The largest of nine bytes. At an edge each has an address in every lane, and all nine come first.
    let (mut places, mut loads) = (String::new(), String::new());
    for at in 0..9 {
        writeln!(places, "add.s32 %c, %x, {}; max.s32 %c, %c, 0; min.s32 %c, %c, %last;", at - 4).unwrap();
        writeln!(places, "cvt.s64.s32 %p{at}, %c; add.s64 %p{at}, %in, %p{at};").unwrap();
        writeln!(loads, "ld.global.u8 %h1, [%p{at}]; max.u16 %h0, %h0, %h1;").unwrap();
    }
    let source = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n\
         .visible .entry kernel(.param .u64 in, .param .u64 out, .param .u32 width)\n{{\n\
         .reg .b16 %h<2>;\n.reg .b32 %x, %b, %n, %c, %last;\n.reg .b64 %in, %out, %p<9>;\n\
         ld.param.u64 %in, [in];\nld.param.u64 %out, [out];\nld.param.u32 %last, [width];\n\
         mov.u32 %x, %tid.x;\nmov.u32 %b, %ctaid.x;\nmov.u32 %n, %ntid.x;\nmad.lo.s32 %x, %b, %n, %x;\n\
         sub.s32 %last, %last, 1;\nmov.b16 %h0, 0;\n{places}{loads}\
         cvt.s64.s32 %p0, %x;\nadd.s64 %out, %out, %p0;\nst.global.u8 [%out], %h0;\nret;\n}}"
    );
    let program = launch::kernel_of(&source);
    let launch = Launch { grid: [2, 1, 1], block: [64, 1, 1] };
    let text = codegen::emit_text(&program, &launch.shape(), &Cpu::level_cpu(Level::Avx2), Text::Assembly);
    let text = text.unwrap();
    assert!(text.lines().any(|line| line.contains("vpmaxub") && line.contains("%ymm")), "{text}");
    let words: Vec<u64> = (0..32).map(|at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let params = |words: &mut [u64]| [words.as_ptr() as u64, words[16..].as_mut_ptr() as u64, 128];
    launch.must_agree(&program, &words, params, "the largest of nine");
}
