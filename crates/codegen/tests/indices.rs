//! Places in shared memory that each lane computes by itself, against the interpreter.

mod launch;

use codegen::Text;
use codegen::target::{Cpu, Level};
use launch::Launch;
use simt_ir::*;

const THREADS: u32 = 64;
const LAUNCH: Launch = Launch { grid: [1, 1, 1], block: [THREADS, 1, 1] };

/// What a thread of [`kernel_of`] has: its number's place in bytes, the number, the last thread, and four.
struct Thread {
    bytes: Value,
    number: Value,
    last: Value,
    four: Value,
}

/// A kernel in which each thread loads a number of its own, does something with words of shared memory, and keeps the word at its place.
fn kernel_of(body: impl FnOnce(&mut FunctionBuilder, Thread)) -> Program {
    let mut b = FunctionBuilder::new("kernel", Signature::default());
    let zero = b.constant(Type::I64, 0);
    let data = b.inst(Op::Load(Access::weak(Space::Param, 0)), &[zero], Type::I64);
    let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
    let (four, last) = (b.constant(Type::I32, 4), b.constant(Type::I32, u64::from(THREADS) - 1));
    let bytes = b.inst(Op::Int(IntBinary::Mul), &[tid, four], Type::I32);
    let wide = b.inst(Op::Convert(Convert::ZExt), &[bytes], Type::I64);
    let own = b.inst(Op::Int(IntBinary::Add), &[data, wide], Type::I64);
    let number = b.inst(Op::Load(Access::weak(Space::Global, 0)), &[own], Type::I32);
    body(&mut b, Thread { bytes, number, last, four });
    let id = b.constant(Type::I32, 0);
    b.effect(Op::Barrier { kind: BarrierKind::Sync, count: false }, &[id]);
    let result = b.inst(Op::Load(Access::weak(Space::Shared, 16)), &[bytes], Type::I32);
    b.effect(Op::Store(Access::weak(Space::Global, 0)), &[own, result]);
    b.terminate(Terminator::Exit);
    let functions = vec![b.finish()];
    let program =
        Program { functions, param_bytes: 8, shared_bytes: 512, shared_align: 16, ..Program::default() };
    verify(&program).expect("the kernel is well formed");
    program
}

/// Each thread leaves the high half of its number's product at a place that the number says, and takes what comes to lie at its own.
fn kernel(high: IntBinary, factor: u32) -> Program {
    kernel_of(|b, Thread { number, last, four, .. }| {
        let factor = b.constant(Type::I32, factor.into());
        let product = b.inst(Op::Int(high), &[number, factor], Type::I32);
        let place = b.inst(Op::Int(IntBinary::And), &[number, last], Type::I32);
        let place = b.inst(Op::Int(IntBinary::Mul), &[place, four], Type::I32);
        b.effect(Op::Store(Access::weak(Space::Shared, 16)), &[place, product]);
    })
}

#[test]
fn high_halves_come_to_their_places() {
    // Each number's lowest bits are another's, in no order.
    let number = |i: u64| (i * 37 % 64) | (i.wrapping_mul(0x9e37_79b9) << 6 & 0xffff_ffff);
    let words: Vec<u64> = (0..32).map(|i| number(2 * i) | number(2 * i + 1) << 32).collect();
    for high in [IntBinary::MulHiS, IntBinary::MulHiU] {
        for factor in [780_903_145, 3_435_973_837, 1, u32::MAX] {
            let what = format!("{high:?} by {factor}");
            LAUNCH.must_agree(&kernel(high, factor), &words, |words| [words.as_mut_ptr() as u64], what);
        }
    }
}

#[test]
fn both_take_whole_registers() {
    let cpu = Cpu::level_cpu(Level::Avx512);
    for high in [IntBinary::MulHiS, IntBinary::MulHiU] {
        let text = codegen::emit_text(&kernel(high, 780_903_145), &LAUNCH.shape(), &cpu, Text::Assembly);
        let text = text.expect("it compiles");
        assert!(text.contains("vpscatterdd") && !text.contains("vpscatterqd"), "{text}");
        let multiplied =
            text.lines().filter(|line| line.contains("\tvpmul") && line.contains("dq\t")).count();
        // Even and odd elements of each register.
        assert_eq!((multiplied, text.contains("vpmov")), (2 * THREADS as usize / 16, false), "{text}");
    }
}

/// Each thread adds its number's lowest byte to a counter that the number says, and takes what comes to be counted at its own place.
fn counting() -> Program {
    kernel_of(|b, Thread { bytes, number, last, four }| {
        let none = b.constant(Type::I32, 0);
        b.effect(Op::Store(Access::weak(Space::Shared, 16)), &[bytes, none]);
        let id = b.constant(Type::I32, 0);
        b.effect(Op::Barrier { kind: BarrierKind::Sync, count: false }, &[id]);
        let place = b.inst(Op::Int(IntBinary::And), &[number, last], Type::I32);
        let place = b.inst(Op::Int(IntBinary::Mul), &[place, four], Type::I32);
        let byte = b.constant(Type::I32, 255);
        let more = b.inst(Op::Int(IntBinary::And), &[number, byte], Type::I32);
        b.effect(Op::Atomic(AtomicOp::Add, Access::weak(Space::Shared, 16)), &[place, more]);
    })
}

#[test]
fn counters_are_found_lane_by_lane() {
    for factor in [0x9e37_79b9_u64, 3, 0, u64::MAX] {
        let words: Vec<u64> = (0..32).map(|i: u64| i.wrapping_mul(factor) ^ i << 40).collect();
        LAUNCH.must_agree(&counting(), &words, |words| [words.as_mut_ptr() as u64], factor);
    }
}

#[test]
fn a_counter_takes_no_vector_of_addresses() {
    let cpu = Cpu::level_cpu(Level::Avx512);
    let text = codegen::emit_text(&counting(), &LAUNCH.shape(), &cpu, Text::Assembly).unwrap();
    // Places of 32 bits, each extended where it is used, at a distance that the instruction has.
    assert!(!text.contains("vpmovsxdq") && !text.contains("vpmovzxdq"), "{text}");
    let lines = |is: &dyn Fn(&str) -> bool| text.lines().filter(|line| is(line)).count();
    let low = lines(&|line| line.contains("\tmovslq\t") && !line.contains('('));
    let high = lines(&|line| line.contains("\tsarq\t$32,"));
    assert!(low >= 4 && high >= 4 && !text.contains("\torl\t$1,"), "{text}");
    // Those of several lanes are loaded before the first of them stores; only lanes of a mask go one by one.
    assert!(lines(&|line| line.contains("\tmovslq\t") && line.contains('(')) <= 1, "{text}");
}
