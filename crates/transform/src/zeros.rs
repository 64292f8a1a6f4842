//! Minima and maxima of zeros whose sign nobody sees.
//!
//! Of -0 and +0 the minimum is -0 and the maximum +0. Vector instructions without AVX-512 give either, and it takes as many more to give the right
//! one. But what is compared, has an exponential taken, or becomes an integer may have either; so may what only goes there by way of sums and products. [`ignore_signs`] marks the minima and maxima that may.

use simt_ir::{Approx, Cfg, Convert, FloatBinary, FloatUnary, Function, InstData, MinMax, Op, Value};

use crate::seen::{Use, seen};

/// Marks what may be either zero.
pub fn ignore_signs(func: &mut Function) {
    let mut insts = func.blocks().flat_map(|block| &func.block(block).insts);
    if !insts.any(|inst| matches!(func.inst(*inst).op, Op::MinMax(_))) {
        return;
    }
    let cfg = Cfg::new(func);
    let seen = seen(func, &cfg, |inst, at| use_of_sign(func, func.inst(inst), at));
    for &block in cfg.order() {
        for inst in func.block(block).insts.clone() {
            let data = func.inst_mut(inst);
            if let (Op::MinMax(op), [result]) = (&mut data.op, &data.results[..]) {
                op.any_zero = !op.xorsign_abs && !seen[result.index()];
            }
        }
    }
}

/// What an operation makes of the sign of a zero that is this operand.
fn use_of_sign(func: &Function, data: &InstData, at: usize) -> Use {
    match data.op {
        Op::FloatCmp(_) | Op::FloatUnary(FloatUnary::Abs, _) | Op::Approx { func: Approx::Ex2, .. } => {
            Use::Ignored
        }
        Op::Convert(Convert::FloatToS { .. } | Convert::FloatToU { .. }) => Use::Ignored,
        // What a zero may be is above zero, or below, as the constant says.
        Op::MinMax(MinMax { max, xorsign_abs: false, .. })
            if func.constant(data.args[1 - at]) == Some(zero(func, data.args[at], !max)) =>
        {
            Use::Ignored
        }
        Op::MinMax(MinMax { xorsign_abs: true, .. }) => Use::Seen,
        Op::Float(FloatBinary::Div, _) if at == 1 => Use::Seen,
        Op::Float(..) | Op::Fma(_) | Op::MinMax(_) | Op::CanonNan => Use::PassedOn,
        Op::FloatUnary(FloatUnary::Neg | FloatUnary::Sqrt, _) => Use::PassedOn,
        Op::Convert(Convert::FloatToFloat(_) | Convert::RoundToIntegral(_)) => Use::PassedOn,
        Op::Select if at == 0 => Use::Ignored,
        Op::Select => Use::PassedOn,
        _ => Use::Seen,
    }
}

/// The bits of a zero of a value's type.
fn zero(func: &Function, value: Value, is_negative: bool) -> u64 {
    u64::from(is_negative) << (func.ty(value).bits() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use simt_ir::{FloatCmp, FloatMode, FloatRel, FunctionBuilder, Signature, Terminator, Type};

    /// Whether a maximum of two parameters may be either zero where this is done with it.
    fn may_be_any(results: Vec<Type>, then: impl FnOnce(&mut FunctionBuilder, Value) -> Value) -> bool {
        let mut b = FunctionBuilder::new("f", Signature { params: vec![Type::F32; 2], results });
        let (x, y) = (b.param(0), b.param(1));
        let max = MinMax { max: true, ..MinMax::default() };
        let value = b.inst(Op::MinMax(max), &[x, y], Type::F32);
        let end = then(&mut b, value);
        b.terminate(Terminator::Return(vec![end]));
        let mut func = b.finish();
        ignore_signs(&mut func);
        let inst = func.block(Function::ENTRY).insts[0];
        matches!(func.inst(inst).op, Op::MinMax(op) if op.any_zero)
    }

    #[test]
    fn what_ends_in_a_comparison_has_no_sign() {
        let less = FloatCmp { rel: FloatRel::Lt, nan: false, ftz: false };
        let compared = |b: &mut FunctionBuilder, value: Value| {
            let y = b.param(1);
            let sum = b.inst(Op::Float(FloatBinary::Add, FloatMode::default()), &[value, y], Type::F32);
            b.inst(Op::FloatCmp(less), &[sum, y], Type::Pred)
        };
        assert!(may_be_any(vec![Type::Pred], compared));
    }

    #[test]
    fn who_divides_by_a_zero_sees_its_sign() {
        let divided = |at: usize| {
            move |b: &mut FunctionBuilder, value: Value| {
                let y = b.param(1);
                let args = if at == 0 { [value, y] } else { [y, value] };
                let quotient = b.inst(Op::Float(FloatBinary::Div, FloatMode::default()), &args, Type::F32);
                let mode = FloatMode::default();
                b.inst(Op::FloatUnary(FloatUnary::Abs, mode), &[quotient], Type::F32)
            }
        };
        assert!(may_be_any(vec![Type::F32], divided(0)));
        assert!(
            !may_be_any(vec![Type::F32], divided(1)),
            "that is one infinity or the other, and a NaN of two of them"
        );
    }

    #[test]
    fn what_is_returned_or_stored_as_bits_has_one() {
        assert!(!may_be_any(vec![Type::F32], |_, value| value));
        let bits = |b: &mut FunctionBuilder, value: Value| {
            b.inst(Op::Convert(Convert::Bitcast), &[value], Type::I32)
        };
        assert!(!may_be_any(vec![Type::I32], bits));
        let clamped = |b: &mut FunctionBuilder, value: Value| {
            let zero = b.constant(Type::F32, 0);
            let max = MinMax { max: true, nan: false, ..MinMax::default() };
            b.inst(Op::MinMax(max), &[value, zero], Type::F32)
        };
        assert!(may_be_any(vec![Type::F32], clamped), "the greater of a zero and +0 is +0");
    }
}
