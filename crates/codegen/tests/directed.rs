//! Directed sums of constants and fractions, against the interpreter.

mod launch;

use codegen::Text;
use codegen::target::{Cpu, Level};
use launch::Launch;
use simt_ir::*;

const THREADS: u32 = 64;

/// `fma(sat(x), y, z)` of each thread's element, in a direction.
fn kernel(mode: FloatMode, y: f32, z: f32, saturates: bool) -> Program {
    let mut b = FunctionBuilder::new("kernel", Signature::default());
    let zero = b.constant(Type::I64, 0);
    let data = b.inst(Op::Load(Access::weak(Space::Param, 0)), &[zero], Type::I64);
    let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
    let wide = b.inst(Op::Convert(Convert::ZExt), &[tid], Type::I64);
    let four = b.constant(Type::I64, 4);
    let bytes = b.inst(Op::Int(IntBinary::Mul), &[wide, four], Type::I64);
    let place = b.inst(Op::Int(IntBinary::Add), &[data, bytes], Type::I64);
    let x = b.inst(Op::Load(Access::weak(Space::Global, 0)), &[place], Type::F32);
    let sat = FloatMode { sat: saturates, ..FloatMode::default() };
    let x = b.inst(Op::Convert(Convert::FloatToFloat(sat)), &[x], Type::F32);
    let [y, z] = [y, z].map(|value| b.constant(Type::F32, value.to_bits().into()));
    let sum = b.inst(Op::Fma(mode), &[x, y, z], Type::F32);
    b.effect(Op::Store(Access::weak(Space::Global, 0)), &[place, sum]);
    b.terminate(Terminator::Exit);
    let program = Program { functions: vec![b.finish()], param_bytes: 8, ..Program::default() };
    verify(&program).expect("the kernel is well formed");
    program
}

/// The constants of `expf`, and others at the limits of what they may be.
const CONSTANTS: [(f32, f32); 7] = [
    (252.0, 12582913.0),
    (-252.0, -12582913.0),
    (1.0, 1.0),
    (0.5, 2.0),
    (8388607.0, 8388608.0),
    (-3.0, 12.0),
    (1e38, 2e38),
];

#[test]
fn directed_sums_are_the_interpreter_s() {
    let launch = Launch { grid: [1, 1, 1], block: [THREADS, 1, 1] };
    let mut seed = 1u32;
    for (y, z) in CONSTANTS {
        for round in [Rounding::Down, Rounding::Up, Rounding::Zero] {
            for (ftz, saturates) in [(false, true), (true, true)] {
                let mode = FloatMode { round, ftz, ..FloatMode::default() };
                let program = kernel(mode, y, z, saturates);
                let mut words = vec![0, 1, 0x007f_ffff, 0x0080_0000, 0x3f7f_ffff, 0x3f80_0000, 0x7fc0_0000];
                words.extend([0x8000_0000, 0x8000_0001, 0x7f80_0000, 0xff80_0000, 0x3300_0000, 0x3280_0000]);
                while words.len() < THREADS as usize {
                    seed = seed.wrapping_mul(0x9e37_79b1).wrapping_add(0x7f4a_7c15);
                    // Exact, halfway and other products.
                    let x = match words.len() % 3 {
                        0 => (seed >> 24) as f32 / 252.0,
                        1 => (seed >> 20) as f32 / 4096.0,
                        _ => (seed >> 8) as f32 / (1 << 24) as f32,
                    };
                    words.push(x.to_bits());
                }
                let mut expected = words.clone();
                launch.interpret(&program, &[expected.as_mut_ptr() as u64]).unwrap();
                for cpu in launch::cpus() {
                    let mut got = words.clone();
                    launch.run(&launch.compile(&program, &cpu).unwrap(), &[got.as_mut_ptr() as u64]).unwrap();
                    assert_eq!(got, expected, "{y} {z} {mode:?} on {}", cpu.name());
                }
            }
        }
    }
}

#[test]
fn where_the_exponent_stays_no_doubles_are_needed() {
    let shape = kernel_abi::Shape::of([1; 3], [THREADS, 1, 1]);
    let mode = FloatMode { round: Rounding::Down, ..FloatMode::default() };
    let cpu = Cpu::level_cpu(Level::Avx2);
    let doubles = |y: f32, z: f32, saturates: bool| {
        let program = kernel(mode, y, z, saturates);
        codegen::emit_text(&program, &shape, &cpu, Text::Ir).unwrap().contains("x double>")
    };
    assert!(!doubles(252.0, 12582913.0, true));
    assert!(doubles(252.0, 12582913.0, false), "the product may be anything");
    assert!(doubles(4e6, 16777215.0, true), "it may have the next exponent");
    assert!(doubles(-252.0, 12582913.0, true));
}
