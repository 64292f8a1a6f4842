//! Tiles accessed by their columns, as in transpositions, against the interpreter.

mod launch;

use codegen::target::{Cpu, Level};
use codegen::{Choice, Plan, Text};
use launch::Launch;
use simt_ir::*;

const THREADS: u32 = 256;
const LAUNCH: Launch = Launch { grid: [1, 1, 1], block: [THREADS, 1, 1] };

/// Where the threads' elements lie.
#[derive(Clone, Copy, Debug)]
struct Tile {
    ty: Type,
    rows: u32,
    /// Elements from one row to the next.
    pitch: i64,
    /// Elements from one column to the next.
    step: i64,
    /// Whether the tile is stored to; otherwise it is loaded from.
    is_stored: bool,
}

const TILE: Tile = Tile { ty: Type::I32, rows: 32, pitch: 33, step: 1, is_stored: false };

/// Threads below a limit copy between a tile, whose first element has the address of the first parameter, and where they lie side by side, of the
/// second. The limit is the third; or all threads do.
fn kernel(tile: Tile, is_limited: bool) -> Program {
    let mut b = FunctionBuilder::new("kernel", Signature::default());
    let zero = b.constant(Type::I64, 0);
    let param = |b: &mut FunctionBuilder, at: i64, ty: Type| {
        b.inst(Op::Load(Access::weak(Space::Param, at)), &[zero], ty)
    };
    let (first, own) = (param(&mut b, 0, Type::I64), param(&mut b, 8, Type::I64));
    let limit = param(&mut b, 16, Type::I32);
    let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
    let (copy, after) = (b.block(), b.block());
    let (then, otherwise) = (Target::new(copy), Target::new(after));
    if is_limited {
        let cond = b.inst(Op::IntCmp(IntCmp::LtU), &[tid, limit], Type::Pred);
        b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
    } else {
        b.terminate(Terminator::Jump(then));
    }
    b.switch_to(copy);
    let last = b.constant(Type::I32, u64::from(tile.rows - 1));
    let bits = b.constant(Type::I32, tile.rows.trailing_zeros().into());
    let row = b.inst(Op::Int(IntBinary::And), &[tid, last], Type::I32);
    let column = b.inst(Op::Shift(Shift::RightU), &[tid, bits], Type::I32);
    let bytes = i64::from(tile.ty.bits() / 8);
    let further = |b: &mut FunctionBuilder, from: Value, number: Value, step: i64| {
        let number = b.inst(Op::Convert(Convert::ZExt), &[number], Type::I64);
        let step = b.constant(Type::I64, (step * bytes) as u64);
        let distance = b.inst(Op::Int(IntBinary::Mul), &[number, step], Type::I64);
        b.inst(Op::Int(IntBinary::Add), &[from, distance], Type::I64)
    };
    let down = further(&mut b, first, row, tile.pitch);
    let in_tile = further(&mut b, down, column, tile.step);
    let own = further(&mut b, own, tid, 1);
    let (from, to) = if tile.is_stored { (own, in_tile) } else { (in_tile, own) };
    let global = Access::weak(Space::Global, 0);
    let value = b.inst(Op::Load(global), &[from], tile.ty);
    b.effect(Op::Store(global), &[to, value]);
    b.terminate(Terminator::Jump(Target::new(after)));
    b.switch_to(after);
    b.terminate(Terminator::Exit);
    let program = Program { functions: vec![b.finish()], param_bytes: 20, ..Program::default() };
    verify(&program).expect("the kernel is well formed");
    program
}

fn agrees(tile: Tile) {
    // The tile goes up or down from the first third of the memory.
    let words: Vec<u64> = (0..8192_u64).map(|at| at.wrapping_mul(0x9e37_79b9_1234_5677)).collect();
    let run = |limit: u32, run: &dyn Fn(&[u64])| {
        let mut words = words.clone();
        let start = words.as_mut_ptr() as u64;
        run(&[start + 8 * 3000, start + 8 * 7000, limit.into()]);
        words
    };
    for limits in [&[THREADS][..], &[THREADS, THREADS - 1, 37, 0]] {
        let program = kernel(tile, limits.len() > 1);
        for cpu in launch::cpus() {
            let compiled = LAUNCH.compile_in_gangs(&program, &cpu, Choice::Always).unwrap();
            for limit in limits {
                let expected = run(*limit, &|params| LAUNCH.interpret(&program, params).unwrap());
                let got = run(*limit, &|params| LAUNCH.run(&compiled, params).unwrap());
                assert!(got == expected, "{tile:?} below {limit} on {}", cpu.name());
            }
        }
    }
}

#[test]
fn tiles_are_transposed() {
    for is_stored in [false, true] {
        for (ty, rows) in [(Type::I8, 16), (Type::I16, 32), (Type::I32, 64), (Type::I32, 32), (Type::I64, 4)]
        {
            agrees(Tile { ty, rows, pitch: i64::from(THREADS / rows) + 1, step: 1, is_stored });
        }
    }
    // Rows without a gap between them, and from the last to the first.
    agrees(Tile { pitch: 8, ..TILE });
    agrees(Tile { pitch: -9, is_stored: true, ..TILE });
}

#[test]
fn what_is_no_tile_is_not_taken_for_one() {
    // Columns apart, in the other order, or the same; rows that overlap.
    for (pitch, step) in [(17, 2), (33, -1), (33, 0), (4, 1), (0, 1)] {
        agrees(Tile { pitch, step, ..TILE });
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn whole_tiles_are_not_gathered_or_scattered() {
    let cpu = Cpu::level_cpu(Level::Avx512);
    for is_stored in [false, true] {
        for (pitch, gathers) in [(33, false), (-33, false), (8, false), (7, true)] {
            let program = kernel(Tile { is_stored, pitch, ..TILE }, false);
            let plan = Plan::in_gangs(Choice::Always);
            let text =
                codegen::emit_text_as(&program, &LAUNCH.shape(), &cpu, plan, Text::OptimizedIr).unwrap();
            let found = ["masked.gather", "masked.scatter"].iter().any(|what| text.contains(what));
            assert_eq!(found, gathers, "{pitch}, {is_stored}: {text}");
        }
    }
}
