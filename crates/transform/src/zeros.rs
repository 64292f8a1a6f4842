//! Minima and maxima of zeros whose sign nobody sees.
//!
//! Of -0 and +0 the minimum is -0 and the maximum +0. Vector instructions without AVX-512 give either, and it takes as many more to give the right
//! one. But what is compared, has an exponential taken, or has something added that is not zero, may have either; so may what only goes there by way of sums and
//! products. [`ignore_signs`] marks the minima and maxima that may.

use std::collections::HashMap;

use simt_ir::{
    Approx, Cfg, Convert, FloatBinary, FloatUnary, Function, InstData, MinMax, Op, Terminator, Value,
};

/// What an operation makes of the sign of a zero that is its operand.
enum Sign {
    Ignored,
    /// Nothing but the sign of a zero depends on it.
    PassedOn,
    Seen,
}

/// Marks what may be either zero.
pub fn ignore_signs(func: &mut Function) {
    let is_any = |func: &Function, inst| matches!(func.inst(inst).op, Op::MinMax(_));
    if !func.blocks().any(|block| func.block(block).insts.iter().any(|inst| is_any(func, *inst))) {
        return;
    }
    let cfg = Cfg::new(func);
    let seen = seen(func, &cfg);
    for &block in cfg.order() {
        for inst in func.block(block).insts.clone() {
            let data = func.inst_mut(inst);
            if let (Op::MinMax(op), [result]) = (&mut data.op, &data.results[..]) {
                op.any_zero = !op.xorsign_abs && !seen[result.index()];
            }
        }
    }
}

/// Of each value whether the sign that it has as a zero may be seen.
fn seen(func: &Function, cfg: &Cfg) -> Vec<bool> {
    let mut seen = vec![false; func.value_count()];
    let mut passed: HashMap<Value, Vec<Value>> = HashMap::new();
    let mut work: Vec<Value> = Vec::new();
    for &block in cfg.order() {
        let data = func.block(block);
        for target in data.term.targets() {
            for (param, arg) in func.block(target.block).params.iter().zip(&target.args) {
                passed.entry(*param).or_default().push(*arg);
            }
        }
        if let Terminator::Return(values) = &data.term {
            work.extend(values);
        }
        for inst in &data.insts {
            let data = func.inst(*inst);
            for (at, arg) in data.args.iter().enumerate() {
                if matches!(sign(func, data, at), Sign::Seen) {
                    work.push(*arg);
                }
            }
        }
    }
    while let Some(value) = work.pop() {
        if std::mem::replace(&mut seen[value.index()], true) {
            continue;
        }
        match func.def_inst(value) {
            None => work.extend(passed.get(&value).into_iter().flatten()),
            Some(data) => {
                let passes = |at: &usize| matches!(sign(func, data, *at), Sign::PassedOn);
                work.extend((0..data.args.len()).filter(passes).map(|at| data.args[at]));
            }
        }
    }
    seen
}

/// What an operation makes of the sign of this operand.
fn sign(func: &Function, data: &InstData, at: usize) -> Sign {
    match data.op {
        Op::FloatCmp(_) | Op::FloatUnary(FloatUnary::Abs, _) | Op::Approx { func: Approx::Ex2, .. } => {
            Sign::Ignored
        }
        Op::Convert(Convert::FloatToS { .. } | Convert::FloatToU { .. }) => Sign::Ignored,
        // What a zero may be is above zero, or below, as the constant says.
        Op::MinMax(MinMax { max, xorsign_abs: false, .. })
            if func.constant(data.args[1 - at]) == Some(zero(func, data.args[at], !max)) =>
        {
            Sign::Ignored
        }
        Op::MinMax(MinMax { xorsign_abs: true, .. }) => Sign::Seen,
        Op::Float(FloatBinary::Div, _) if at == 1 => Sign::Seen,
        Op::Float(..) | Op::Fma(_) | Op::MinMax(_) | Op::CanonNan => Sign::PassedOn,
        Op::FloatUnary(FloatUnary::Neg | FloatUnary::Sqrt, _) => Sign::PassedOn,
        Op::Convert(Convert::FloatToFloat(_) | Convert::RoundToIntegral(_)) => Sign::PassedOn,
        Op::Select if at == 0 => Sign::Ignored,
        Op::Select => Sign::PassedOn,
        _ => Sign::Seen,
    }
}

/// The bits of a zero of a value's type.
fn zero(func: &Function, value: Value, is_negative: bool) -> u64 {
    u64::from(is_negative) << (func.ty(value).bits() - 1)
}
