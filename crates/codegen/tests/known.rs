//! Branches on the place of a lane in its warp: which lanes go where is known when the kernel is compiled. Against the interpreter.

mod launch;

use codegen::target::{Cpu, Level};
use codegen::{Choice, Plan, Text};
use launch::Launch;
use simt_ir::*;

const THREADS: u32 = 256;
const LAUNCH: Launch = Launch { grid: [1, 1, 1], block: [THREADS, 1, 1] };

/// A condition on the place of a lane.
type Condition = fn(&mut FunctionBuilder, Value) -> Value;

fn compare(b: &mut FunctionBuilder, cmp: IntCmp, place: Value, with: u64) -> Value {
    let with = b.constant(Type::I32, with);
    b.inst(Op::IntCmp(cmp), &[place, with], Type::Pred)
}

const CONDITIONS: [Condition; 6] = [
    |b, place| compare(b, IntCmp::Eq, place, 0),
    |b, place| compare(b, IntCmp::Eq, place, 31),
    |b, place| compare(b, IntCmp::GeU, place, 17),
    |b, place| compare(b, IntCmp::LtS, place, 0),
    // Bits of a number that says which lanes.
    |b, place| {
        let lanes = b.constant(Type::I32, 0x8421_0f00);
        let bits = b.inst(Op::Shift(Shift::RightU), &[lanes, place], Type::I32);
        let one = b.constant(Type::I32, 1);
        let bit = b.inst(Op::Int(IntBinary::And), &[bits, one], Type::I32);
        compare(b, IntCmp::Ne, bit, 0)
    },
    |b, place| {
        let (low, high) = (compare(b, IntCmp::LtU, place, 4), compare(b, IntCmp::GtU, place, 27));
        let either = b.inst(Op::Int(IntBinary::Or), &[low, high], Type::Pred);
        b.inst(Op::IntUnary(IntUnary::Not), &[either], Type::Pred)
    },
];

/// The place of a thread in its warp.
const IN_WARP: u32 = 31;

/// Each thread loads its number. The conditions are on the bits of its index in `bits`. Where both conditions hold it leaves it for its warp, where only the first does, for itself.
fn kernel(first: Condition, second: Condition, bits: u32) -> Program {
    let mut b = FunctionBuilder::new("kernel", Signature::default());
    let zero = b.constant(Type::I64, 0);
    let data = b.inst(Op::Load(Access::weak(Space::Param, 0)), &[zero], Type::I64);
    let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
    let element = |b: &mut FunctionBuilder, number: Value| {
        let number = b.inst(Op::Convert(Convert::ZExt), &[number], Type::I64);
        let four = b.constant(Type::I64, 4);
        let bytes = b.inst(Op::Int(IntBinary::Mul), &[number, four], Type::I64);
        b.inst(Op::Int(IntBinary::Add), &[data, bytes], Type::I64)
    };
    let own = element(&mut b, tid);
    let number = b.inst(Op::Load(Access::weak(Space::Global, 0)), &[own], Type::I32);
    let bits = b.constant(Type::I32, bits.into());
    let place = b.inst(Op::Int(IntBinary::And), &[tid, bits], Type::I32);
    let (outer, inner, alone, after) = (b.block(), b.block(), b.block(), b.block());
    let branch = |b: &mut FunctionBuilder, cond: Value, then: Block, otherwise: Block| {
        let (then, otherwise) = (Target::new(then), Target::new(otherwise));
        b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
    };
    let cond = first(&mut b, place);
    branch(&mut b, cond, outer, after);
    b.switch_to(outer);
    let cond = second(&mut b, place);
    branch(&mut b, cond, inner, alone);
    b.switch_to(inner);
    let five = b.constant(Type::I32, 5);
    let warp = b.inst(Op::Shift(Shift::RightU), &[tid, five], Type::I32);
    let common = element(&mut b, warp);
    b.effect(Op::Store(Access::weak(Space::Global, 4 * i64::from(THREADS))), &[common, number]);
    b.terminate(Terminator::Jump(Target::new(after)));
    b.switch_to(alone);
    b.effect(Op::Store(Access::weak(Space::Global, 8 * i64::from(THREADS))), &[own, number]);
    b.terminate(Terminator::Jump(Target::new(after)));
    b.switch_to(after);
    b.terminate(Terminator::Exit);
    let program = Program { functions: vec![b.finish()], param_bytes: 8, ..Program::default() };
    verify(&program).expect("the kernel is well formed");
    program
}

#[test]
fn lanes_go_where_their_places_say() {
    let words: Vec<u64> = (0..3 * u64::from(THREADS) / 2)
        .map(|at| if at < u64::from(THREADS) / 2 { at.wrapping_mul(0x9e37_79b9_1234_5677) } else { 0 })
        .collect();
    for (first, outer) in CONDITIONS.into_iter().enumerate() {
        for (second, inner) in CONDITIONS.into_iter().enumerate() {
            let program = kernel(outer, inner, IN_WARP);
            LAUNCH.must_agree(
                &program,
                &words,
                |words| [words.as_mut_ptr() as u64],
                format!("{first}, {second}"),
            );
            let mut expected = words.clone();
            LAUNCH.interpret(&program, &[expected.as_mut_ptr() as u64]).unwrap();
            for cpu in launch::cpus() {
                let compiled = LAUNCH.compile_in_gangs(&program, &cpu, Choice::Always).unwrap();
                let mut got = words.clone();
                LAUNCH.run(&compiled, &[got.as_mut_ptr() as u64]).unwrap();
                assert!(got == expected, "{first}, {second}, in gangs on {}", cpu.name());
            }
        }
    }
}

#[test]
fn what_one_lane_of_a_warp_or_block_stores_takes_no_loop() {
    for level in [Level::Avx2, Level::Avx512] {
        let cpu = Cpu::level_cpu(level);
        let shape = LAUNCH.shape();
        // With short vectors a gang is less than the block.
        let in_block = (level == Level::Avx512).then_some((shape, u32::MAX));
        for (shape, bits) in [(shape.alone(), IN_WARP), (shape, IN_WARP)].into_iter().chain(in_block) {
            let program = kernel(CONDITIONS[0], CONDITIONS[0], bits);
            let plan = Plan::in_gangs(Choice::Always);
            let text = codegen::emit_text_as(&program, &shape, &cpu, plan, Text::OptimizedIr).unwrap();
            for what in ["ctlz", "lanes", "masked.store"] {
                assert!(!text.contains(what), "{what} on {level:?}, by {bits:x}: {text}");
            }
        }
    }
}

/// Conditions on the place of a thread in its block.
const IN_BLOCK: [Condition; 3] = [
    |b, place| compare(b, IntCmp::LtU, place, 40),
    |b, place| compare(b, IntCmp::Eq, place, 100),
    |b, place| {
        let five = b.constant(Type::I32, 5);
        let warp = b.inst(Op::Shift(Shift::RightU), &[place, five], Type::I32);
        compare(b, IntCmp::Ne, warp, 1)
    },
];

#[test]
fn threads_of_a_block_that_is_a_gang_go_where_their_places_say() {
    // Also where a gang is half of the block.
    for block in [64, THREADS, 2 * THREADS] {
        let launch = Launch { grid: [1, 1, 1], block: [block, 1, 1] };
        for (number, condition) in IN_BLOCK.into_iter().enumerate() {
            let program = kernel(condition, IN_BLOCK[2], u32::MAX);
            let words: Vec<u32> =
                (0..3 * THREADS + 2 * block).map(|at| at.wrapping_mul(0x9e37_79b9)).collect();
            let mut expected = words.clone();
            launch.interpret(&program, &[expected.as_mut_ptr() as u64]).unwrap();
            for cpu in launch::cpus() {
                let compiled = launch.compile_in_gangs(&program, &cpu, Choice::Always).unwrap();
                let mut got = words.clone();
                launch.run(&compiled, &[got.as_mut_ptr() as u64]).unwrap();
                assert!(got == expected, "{number} in blocks of {block} on {}", cpu.name());
            }
            let cpu = Cpu::level_cpu(Level::Avx512);
            let plan = Plan::in_gangs(Choice::Always);
            let text =
                codegen::emit_text_as(&program, &launch.shape(), &cpu, plan, Text::OptimizedIr).unwrap();
            let lanes = block.min(THREADS);
            let compares =
                text.lines().any(|line| line.contains("icmp") && line.contains(&format!("<{lanes} x")));
            assert_eq!(compares, block > THREADS, "{number} in blocks of {block}: {text}");
        }
    }
}
