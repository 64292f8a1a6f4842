//! Powers and logarithms of halves, which are made in single precision: an operand is widened, perhaps multiplied by a constant, given to
//! `ex2.approx.ftz.f32` or `lg2.approx.ftz.f32`, and the result, perhaps multiplied, is rounded to a half.
//!
//! Of so few operands programs know which ones the hardware's errors round to the wrong half, and put those right themselves, as
//! CUDA's header for halves does in `hexp` and its like. With other errors, however small, the repair is the damage: so these are computed
//! with the hardware's bits, whichever way others are. Other functions in single precision lead to the same halves both ways.
//!
//! Before: a function as it was read. After: the same, with [`Op::Mufu`] in place of such powers and logarithms.

use simt_ir::{Approx, Convert, Def, FloatBinary, Function, Inst, Mufu, Op, Rounding, Type, Value};

/// More operations than this lie on neither side of a function.
const STEPS: usize = 8;

/// Gives functions of halves the hardware's bits.
pub(super) fn as_hardware_does(func: &mut Function) {
    let insts: Vec<Inst> = func.blocks().flat_map(|block| func.block(block).insts.iter().copied()).collect();
    for inst in insts {
        if !is_rounded_to_half(func, inst) {
            continue;
        }
        let Def::Result(function, _) = func.def(behind_constants(func, func.inst(inst).args[0])) else {
            continue;
        };
        let Some(unit) = unit_of(&func.inst(function).op) else { continue };
        let operand = behind_constants(func, func.inst(function).args[0]);
        if is_widened_half(func, operand) {
            func.inst_mut(function).op = Op::Mufu(unit);
        }
    }
}

fn is_rounded_to_half(func: &Function, inst: Inst) -> bool {
    let data = func.inst(inst);
    matches!(data.op, Op::Convert(Convert::FloatToFloat(mode)) if mode.round == Rounding::Nearest)
        && func.ty(data.args[0]) == Type::F32
        && data.results.iter().all(|result| func.ty(*result) == Type::F16)
}

fn is_widened_half(func: &Function, value: Value) -> bool {
    func.def_inst(value).is_some_and(|data| {
        matches!(data.op, Op::Convert(Convert::FloatToFloat(_))) && func.ty(data.args[0]) == Type::F16
    })
}

/// What the hardware has for a function whose ways differ once rounded to a half. With `hardware` they are that already.
fn unit_of(op: &Op) -> Option<Mufu> {
    match op {
        Op::Approx { func: Approx::Ex2, ftz: true } => Some(Mufu::Ex2),
        Op::Approx { func: Approx::Lg2, ftz: true } => Some(Mufu::Lg2),
        _ => None,
    }
}

/// The value that this one is made of with products, sums and constants alone.
fn behind_constants(func: &Function, mut value: Value) -> Value {
    for _ in 0..STEPS {
        let Some(data) = func.def_inst(value) else { break };
        if !matches!(
            data.op,
            Op::Convert(Convert::Bitcast)
                | Op::Float(FloatBinary::Mul | FloatBinary::Add | FloatBinary::Sub, _)
                | Op::Fma(_)
        ) {
            break;
        }
        let mut others = data.args.iter().copied().filter(|arg| !is_constant(func, *arg));
        let Some(first) = others.next() else { break };
        if others.any(|other| other != first) {
            break;
        }
        value = first;
    }
    value
}

fn is_constant(func: &Function, value: Value) -> bool {
    let bits = func.def_inst(value).filter(|data| data.op == Op::Convert(Convert::Bitcast));
    func.constant(bits.map_or(value, |data| data.args[0])).is_some()
}
