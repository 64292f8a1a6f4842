//! When the processor may flush subnormals.
//!
//! `.ftz` written out costs three instructions an operand. Where every operation of a kernel that could tell wants it, the
//! kernel runs with `MXCSR` set to flush f32 and f64 subnormals instead, which then has the same result: the processor too
//! judges by the result rounded with an unbounded exponent. A few operations that must not be flushed, as `fmodf` has some in programs
//! that flush otherwise, take it back for as long as they last (`emit::unflushed`).

use crate::target::Cpu;
use simt_ir::{
    Approx, AtomicOp, Block, Cfg, Convert, DomTree, FloatMode, FloatUnary, Function, InstData, Op, Program,
    Rounding, Type,
};
use transform::loops::Loops;

/// Operations whose flushing by instructions takes as long as an operation apart does.
const APART: u64 = 16;

/// Rounds of a loop, where nothing tells their number.
const ROUNDS: u64 = 8;

/// Whether `program` may run with subnormals flushed by the processor, and gains by it.
pub fn in_hardware(program: &Program, cpu: &Cpu) -> bool {
    let all = || program.functions.iter().flat_map(|func| effects(func, cpu));
    let any = |wanted| all().any(|(_, effect)| effect == wanted);
    if any(Effect::Differs) || !any(Effect::Gains) {
        return false;
    }
    let (mut gains, mut apart) = (0u64, 0u64);
    for func in &program.functions {
        let loops = loops_of(func);
        for (block, effect) in effects(func, cpu) {
            let sum = match effect {
                Effect::Gains => &mut gains,
                Effect::Apart => &mut apart,
                Effect::Same | Effect::Differs => continue,
            };
            *sum = sum.saturating_add(often(loops.as_ref(), block));
        }
    }
    apart.saturating_mul(APART) <= gains
}

/// Whether flushing by the processor would change an operation on operands of these types, which its code takes back.
pub fn is_apart(op: Op, types: &[Type], result: Type, cpu: &Cpu) -> bool {
    effect(op, types.first().copied(), Some(result), cpu) == Effect::Apart
}

fn loops_of(func: &Function) -> Option<Loops> {
    let cfg = Cfg::new(func);
    Loops::new(&cfg, &DomTree::new(&cfg), func.blocks().len()).ok()
}

/// How often a block runs, as far as its loops tell.
fn often(loops: Option<&Loops>, block: Block) -> u64 {
    let depth = loops.map_or(0, |loops| loops.around(block).count());
    ROUNDS.saturating_pow(depth as u32)
}

/// What becomes of an operation when the processor flushes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// It need not flush by itself.
    Gains,
    /// Nothing.
    Same,
    /// Its result may change, and it depends on its operands alone.
    Apart,
    /// Its result may change.
    Differs,
}

/// What becomes of each operation of a function.
fn effects<'a>(func: &'a Function, cpu: &'a Cpu) -> impl Iterator<Item = (Block, Effect)> + 'a {
    func.blocks().flat_map(move |block| {
        let insts = &func.block(block).insts;
        insts.iter().map(move |inst| (block, effect_in(func, func.inst(*inst), cpu)))
    })
}

fn effect_in(func: &Function, data: &InstData, cpu: &Cpu) -> Effect {
    if let Op::Atomic(AtomicOp::FAdd { ftz }, _) = data.op {
        let same = match data.args.get(1).map(|value| func.ty(*value)) {
            Some(Type::F32) => ftz,
            Some(Type::F16) => half(cpu) == Effect::Same,
            _ => false,
        };
        return if same { Effect::Same } else { Effect::Differs };
    }
    let to = data.results.first().map(|value| func.ty(*value));
    effect(data.op, data.args.first().map(|value| func.ty(*value)), to, cpu)
}

fn effect(op: Op, from: Option<Type>, to: Option<Type>, cpu: &Cpu) -> Effect {
    match op {
        Op::Float(_, mode) | Op::Fma(mode) | Op::FloatUnary(FloatUnary::Sqrt | FloatUnary::Rcp, mode) => {
            arithmetic(to, mode, cpu)
        }
        Op::Approx { ftz, func } => match to {
            // Its steps on AVX2 and below include one that is not the processor's own.
            Some(Type::F32) if ftz => {
                let by_steps = matches!(func, Approx::Sin | Approx::Cos) && !cpu.has_embedded_rounding();
                if by_steps { Effect::Apart } else { Effect::Gains }
            }
            Some(Type::F16) => half(cpu),
            _ => Effect::Apart,
        },
        Op::Mufu(_) => match to {
            Some(Type::F32 | Type::F64) => Effect::Same,
            Some(Type::F16) => half(cpu),
            _ => Effect::Apart,
        },
        // These are made of integer operations, or flush by themselves.
        Op::FloatUnary(FloatUnary::Neg | FloatUnary::Abs, _) | Op::CanonNan => Effect::Same,
        Op::FloatCmp(cmp) => match from {
            Some(Type::F32) => wants(cmp.ftz),
            Some(Type::F16) => half(cpu),
            _ => Effect::Apart,
        },
        Op::MinMax(op) => match to {
            Some(Type::F32) => wants(op.ftz),
            Some(Type::F16 | Type::BF16) => Effect::Same,
            _ => Effect::Apart,
        },
        Op::Convert(convert) => conversion(convert, from, to, cpu),
        _ => Effect::Same,
    }
}

fn arithmetic(ty: Option<Type>, mode: FloatMode, cpu: &Cpu) -> Effect {
    let native = mode.round == Rounding::Nearest || cpu.has_embedded_rounding();
    match ty {
        Some(Type::F32) if mode.ftz && native => Effect::Gains,
        Some(Type::F16) => half(cpu),
        _ => Effect::Apart,
    }
}

fn conversion(convert: Convert, from: Option<Type>, to: Option<Type>, cpu: &Cpu) -> Effect {
    // Rounding to nearest or towards zero takes a subnormal to zero anyway.
    let vanishes = |round| matches!(round, Rounding::Nearest | Rounding::Zero);
    match convert {
        Convert::FloatToS { round, ftz } | Convert::FloatToU { round, ftz } => match from {
            Some(Type::F32) => wants(ftz || vanishes(round)),
            Some(Type::F16) => half(cpu),
            _ => wants(vanishes(round)),
        },
        Convert::RoundToIntegral(mode) => match to {
            Some(Type::F32) => wants(mode.ftz || vanishes(mode.round)),
            Some(Type::F16) => half(cpu),
            _ => Effect::Apart,
        },
        Convert::FloatToFloat(mode) => match (from, to) {
            (Some(Type::F32), Some(Type::F32 | Type::F64)) => wants(mode.ftz),
            (Some(Type::F32), Some(Type::F16)) => wants(vanishes(mode.round) && cpu.has("f16c")),
            (Some(Type::F16), Some(Type::F16 | Type::F32)) => half(cpu),
            (Some(Type::F64), Some(Type::F32)) => wants(mode.ftz),
            _ => Effect::Apart,
        },
        // Integers give normal numbers, and all else is bits.
        Convert::SToFloat(_) | Convert::UToFloat(_) => match to {
            Some(Type::F32 | Type::F64) => Effect::Same,
            _ => half(cpu),
        },
        Convert::Trunc | Convert::ZExt | Convert::SExt | Convert::Bitcast => Effect::Same,
    }
}

/// The processor's f16 instructions do not flush, and f16 in f32 is never subnormal; without the instructions, f32
/// subnormals are a step on the way.
fn half(cpu: &Cpu) -> Effect {
    wants(cpu.has("f16c"))
}

fn wants(same: bool) -> Effect {
    if same { Effect::Same } else { Effect::Apart }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Level;
    use simt_ir::{FloatBinary, FloatCmp, FloatRel, FunctionBuilder, Signature, Terminator};

    /// Whether a kernel of these operations runs with subnormals flushed on the least CPU of a level.
    fn flushes(level: Level, ops: &[(Op, &[Type], Type)]) -> bool {
        let mut builder = FunctionBuilder::new("k", Signature::default());
        for (op, types, result) in ops {
            let args: Vec<_> = types.iter().map(|ty| builder.constant(*ty, 1)).collect();
            builder.inst(*op, &args, *result);
        }
        builder.terminate(Terminator::Exit);
        let program = Program { functions: vec![builder.finish()], ..Program::default() };
        in_hardware(&program, &Cpu::level_cpu(level))
    }

    fn add(ty: Type, ftz: bool, round: Rounding) -> (Op, &'static [Type], Type) {
        let mode = FloatMode { ftz, round, ..FloatMode::default() };
        let operands: &[Type] = match ty {
            Type::F64 => &[Type::F64; 2],
            Type::F16 => &[Type::F16; 2],
            _ => &[Type::F32; 2],
        };
        (Op::Float(FloatBinary::Add, mode), operands, ty)
    }

    const FTZ: (Op, &[Type], Type) = (
        Op::Float(
            FloatBinary::Mul,
            FloatMode { round: Rounding::Nearest, ftz: true, sat: false, contract: false },
        ),
        &[Type::F32; 2],
        Type::F32,
    );

    #[test]
    fn all_operations_must_want_it() {
        let near = Rounding::Nearest;
        for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
            assert!(flushes(level, &[FTZ, add(Type::F32, true, near)]));
            assert!(!flushes(level, &[FTZ, add(Type::F32, false, near)]), "an f32 sum that keeps subnormals");
            assert!(!flushes(level, &[FTZ, add(Type::F64, false, near)]), "f64 would be flushed too");
        }
    }

    #[test]
    fn a_few_among_many_take_flushing_back() {
        let [keeps, double] =
            [add(Type::F32, false, Rounding::Nearest), add(Type::F64, false, Rounding::Nearest)];
        let among = |count: u64, other| [vec![FTZ; count as usize], vec![other]].concat();
        for other in [keeps, double] {
            assert!(flushes(Level::Avx2, &among(APART, other)));
            assert!(!flushes(Level::Avx2, &among(APART - 1, other)), "not worth it");
        }
    }

    #[test]
    fn nothing_to_gain_is_nothing_to_do() {
        let double = (Op::Convert(Convert::Bitcast), &[Type::F32][..], Type::I32);
        assert!(!flushes(Level::Avx512, &[double]));
    }

    #[test]
    fn what_is_made_of_steps_flushes_by_itself() {
        let down = add(Type::F32, true, Rounding::Down);
        assert!(flushes(Level::Avx512, &[FTZ, down]), "one instruction");
        assert!(!flushes(Level::Avx2, &[FTZ, down]));
        let half = add(Type::F16, false, Rounding::Nearest);
        assert!(flushes(Level::Avx2, &[FTZ, half]));
        assert!(!flushes(Level::Baseline, &[FTZ, half]), "f16 is widened through f32 subnormals");
    }

    #[test]
    fn comparisons_count() {
        let compare = |ftz| {
            let cmp = FloatCmp { rel: FloatRel::Lt, nan: false, ftz };
            (Op::FloatCmp(cmp), &[Type::F32; 2][..], Type::Pred)
        };
        assert!(flushes(Level::Avx2, &[FTZ, compare(true)]));
        assert!(!flushes(Level::Avx2, &[FTZ, compare(false)]));
    }
}
