//! Canonical NaNs where their bits can be seen.
//!
//! In the IR, arithmetic on f32, f16 and bf16 yields one NaN only. Processors pass operands' NaNs on. After [`make_canonical`] every
//! such result passes [`Op::CanonNan`] on its way to anything that tells NaNs apart: memory, integer registers, other lanes, or a
//! value on its way there that may also be a NaN from memory, which keeps its bits. Chains of arithmetic stay free of it.

use std::collections::{HashMap, HashSet};

use simt_ir::{
    Cfg, Convert, FloatBinary, FloatUnary, Function, Inst, InstData, MinMax, Op, SourceLoc, Terminator, Type,
    Value,
};

use crate::seen::{Use, seen};

/// What kind of NaN a value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// None.
    Never,
    /// Some NaN that stands for the canonical one.
    Arithmetic,
    /// Exactly the bits it has.
    Exact,
}

/// Inserts [`Op::CanonNan`].
pub fn make_canonical(func: &mut Function) {
    let cfg = Cfg::new(func);
    let exchanged = Exchanged::find(func, &cfg);
    let kinds = kinds(func, &cfg, &exchanged);
    let kind = |value: Value| kinds[value.index()];
    let seen = seen(func, &cfg, |inst, at| use_of_bits(func, inst, at));
    for &block in cfg.order() {
        let mut canonical: HashMap<Value, Value> = HashMap::new();
        let old = std::mem::take(&mut func.block_mut(block).insts);
        let mut new = Vec::with_capacity(old.len());
        for inst in old {
            let data = func.inst(inst);
            let exact = !(ignores_bits(func, inst)
                || exchanged.given.contains(&inst)
                || data.op == Op::Select
                    && (kind(data.results[0]) == Kind::Arithmetic || !seen[data.results[0].index()]));
            if exact {
                let mut args = func.inst(inst).args.clone();
                for arg in &mut args {
                    if kind(*arg) == Kind::Arithmetic {
                        *arg = *canonical.entry(*arg).or_insert_with(|| canonicalised(func, *arg, &mut new));
                    }
                }
                func.inst_mut(inst).args = args;
            }
            new.push(inst);
        }
        let mut term = func.block(block).term.clone();
        let returned = matches!(term, Terminator::Return(_));
        if returned {
            term.map_uses(|value| match kind(value) {
                Kind::Arithmetic => {
                    *canonical.entry(value).or_insert_with(|| canonicalised(func, value, &mut new))
                }
                _ => value,
            });
        }
        for target in term.targets_mut() {
            let params = func.block(target.block).params.clone();
            for (param, arg) in params.into_iter().zip(&mut target.args) {
                if kind(param) == Kind::Exact && seen[param.index()] && kind(*arg) == Kind::Arithmetic {
                    *arg = *canonical.entry(*arg).or_insert_with(|| canonicalised(func, *arg, &mut new));
                }
            }
        }
        let data = func.block_mut(block);
        data.insts = new;
        data.term = term;
    }
}

fn canonicalised(func: &mut Function, value: Value, insts: &mut Vec<Inst>) -> Value {
    func.push_value(insts, Op::CanonNan, vec![value], func.ty(value), SourceLoc::default())
}

/// Floats that lanes give each other as bits, and take for floats again at once: nobody looks at the bits in between.
#[derive(Default)]
struct Exchanged {
    /// The operations that make bits of them.
    given: HashSet<Inst>,
    /// What was given, for each float that is taken.
    taken: HashMap<Value, Value>,
}

impl Exchanged {
    fn find(func: &Function, cfg: &Cfg) -> Exchanged {
        let blocks = || cfg.order().iter().map(|block| func.block(*block));
        let insts = || blocks().flat_map(|block| &block.insts).map(|inst| (*inst, func.inst(*inst)));
        let is_float = |value: Value| func.ty(value) == Type::F32;
        let is_cast = |data: &InstData| data.op == Op::Convert(Convert::Bitcast);
        let is_given = |data: &InstData| is_cast(data) && is_float(data.args[0]);
        let is_shuffle = |data: &InstData| matches!(data.op, Op::Shuffle(_));
        let defined =
            |value: Value, by: &dyn Fn(&InstData) -> bool| func.def_inst(value).filter(|data| by(data));
        // Bits that something else looks at.
        let mut seen: HashSet<Value> = blocks().flat_map(|block| block.term.uses()).collect();
        for (_, data) in insts() {
            let handed_on = match data.op {
                Op::Shuffle(_) => defined(data.args[0], &is_given),
                Op::Convert(Convert::Bitcast) if is_float(data.results[0]) => {
                    defined(data.args[0], &is_shuffle)
                }
                _ => None,
            };
            seen.extend(&data.args[usize::from(handed_on.is_some())..]);
        }
        for (_, data) in insts().filter(|(_, data)| is_shuffle(data)) {
            if seen.contains(&data.results[0]) {
                seen.insert(data.args[0]);
            }
        }
        let is_unseen = |data: &InstData| is_given(data) && !seen.contains(&data.results[0]);
        let mut found = Exchanged::default();
        for (inst, data) in insts() {
            if is_unseen(data) {
                found.given.insert(inst);
            } else if is_cast(data)
                && let Some(shuffle) = defined(data.args[0], &is_shuffle)
                && let Some(cast) = defined(shuffle.args[0], &is_unseen)
            {
                found.taken.insert(data.results[0], cast.args[0]);
            }
        }
        found
    }
}

/// What an instruction makes of the bits of a NaN in this operand. Arithmetic does not look at them, whatever it is that it is given.
fn use_of_bits(func: &Function, inst: Inst, at: usize) -> Use {
    match func.inst(inst).op {
        Op::Select if at == 0 => Use::Ignored,
        Op::Select => Use::PassedOn,
        _ if is_copy(func, inst) => Use::PassedOn,
        _ if ignores_bits(func, inst) => Use::Ignored,
        _ => Use::Seen,
    }
}

fn kinds(func: &Function, cfg: &Cfg, exchanged: &Exchanged) -> Vec<Kind> {
    let limits = limits(func, cfg);
    // Optimistic: a parameter that only arithmetic flows into is arithmetic, around loops too.
    let mut kinds = vec![Kind::Never; func.value_count()];
    for param in &func.block(Function::ENTRY).params {
        kinds[param.index()] = Kind::Exact;
    }
    let mut changed = true;
    while changed {
        changed = false;
        let mut set = |kinds: &mut Vec<Kind>, value: Value, kind: Kind| {
            if kinds[value.index()] != kind {
                kinds[value.index()] = kind;
                changed = true;
            }
        };
        for &block in cfg.order() {
            for inst in &func.block(block).insts {
                let data = func.inst(*inst);
                for &result in &data.results {
                    let kind = match data.op {
                        _ if !has_canonical_nan(func.ty(result)) => Kind::Exact,
                        _ if limits[result.index()].is_finite() => Kind::Never,
                        _ if exchanged.taken.contains_key(&result) => kinds[exchanged.taken[&result].index()],
                        Op::Const(bits) if !is_nan(func.ty(result), bits) => Kind::Never,
                        Op::Select => meet(kinds[data.args[1].index()], kinds[data.args[2].index()]),
                        _ if is_copy(func, *inst) => kinds[data.args[0].index()],
                        // Of a number and a NaN the number.
                        Op::MinMax(MinMax { nan: false, .. })
                            if data.args.iter().any(|arg| kinds[arg.index()] == Kind::Never) =>
                        {
                            Kind::Never
                        }
                        _ if is_arithmetic(func, *inst) => Kind::Arithmetic,
                        Op::Convert(Convert::SToFloat(_) | Convert::UToFloat(_)) => Kind::Never,
                        _ => Kind::Exact,
                    };
                    set(&mut kinds, result, kind);
                }
            }
            for target in func.block(block).term.targets() {
                for (param, arg) in func.block(target.block).params.iter().zip(&target.args) {
                    let kind = meet(kinds[param.index()], kinds[arg.index()]);
                    set(&mut kinds, *param, kind);
                }
            }
        }
    }
    kinds
}

/// What the magnitudes of f32 values do not exceed; infinity of what may be anything, a NaN too. Values around loops are that.
fn limits(func: &Function, cfg: &Cfg) -> Vec<f64> {
    let mut limits = vec![f64::INFINITY; func.value_count()];
    for &block in cfg.order() {
        for inst in &func.block(block).insts {
            let data = func.inst(*inst);
            if let [result] = data.results[..]
                && func.ty(result) == Type::F32
            {
                let args: Vec<f64> = data.args.iter().map(|arg| limits[arg.index()]).collect();
                let limit = limit(func, data, &args);
                // Below this no rounding makes an infinity.
                limits[result.index()] = if limit <= 127f64.exp2() { limit } else { f64::INFINITY };
            }
        }
    }
    limits
}

/// The limit of an operation's result by those of its operands; NaN if they say nothing.
fn limit(func: &Function, data: &InstData, args: &[f64]) -> f64 {
    match data.op {
        Op::Const(bits) => f64::from(f32::from_bits(bits as u32)).abs(),
        // Between 0 and 1; of a NaN 0.
        Op::Float(_, mode) | Op::Fma(mode) | Op::FloatUnary(_, mode) if mode.sat => 1.0,
        Op::Convert(Convert::FloatToFloat(mode) | Convert::RoundToIntegral(mode)) if mode.sat => 1.0,
        Op::Float(FloatBinary::Add | FloatBinary::Sub, _) => args[0] + args[1],
        Op::Float(FloatBinary::Mul, _) => args[0] * args[1],
        Op::Fma(_) => args[0] * args[1] + args[2],
        Op::FloatUnary(FloatUnary::Neg | FloatUnary::Abs, _) => args[0],
        Op::MinMax(_) => args[0].max(args[1]),
        Op::Select => args[1].max(args[2]),
        Op::Convert(Convert::FloatToFloat(_)) if func.ty(data.args[0]) == Type::F32 => args[0],
        Op::Convert(Convert::SToFloat(_) | Convert::UToFloat(_)) => 65f64.exp2(),
        _ => f64::INFINITY,
    }
}

fn meet(a: Kind, b: Kind) -> Kind {
    match (a, b) {
        (Kind::Exact, _) | (_, Kind::Exact) => Kind::Exact,
        (Kind::Arithmetic, _) | (_, Kind::Arithmetic) => Kind::Arithmetic,
        (Kind::Never, Kind::Never) => Kind::Never,
    }
}

fn has_canonical_nan(ty: Type) -> bool {
    matches!(ty, Type::F32 | Type::F16 | Type::BF16)
}

fn is_nan(ty: Type, bits: u64) -> bool {
    let (magnitude, infinity) = match ty {
        Type::F16 => (bits & 0x7fff, 0x7c00),
        Type::BF16 => (bits & 0x7fff, 0x7f80),
        _ => (bits & 0x7fff_ffff, 0x7f80_0000),
    };
    magnitude > infinity
}

/// A conversion to the same type, which leaves NaNs as they are.
fn is_copy(func: &Function, inst: Inst) -> bool {
    let data = func.inst(inst);
    matches!(data.op, Op::Convert(Convert::FloatToFloat(_)))
        && func.ty(data.args[0]) == func.ty(data.results[0])
}

/// Operations whose NaN result is canonical by definition and may be another NaN on the processor.
fn is_arithmetic(func: &Function, inst: Inst) -> bool {
    let data = func.inst(inst);
    match data.op {
        Op::Float(..) | Op::Fma(_) | Op::MinMax(_) | Op::FloatUnary(..) | Op::Approx { .. } | Op::Mufu(_) => {
            true
        }
        Op::Convert(Convert::RoundToIntegral(_)) => true,
        Op::Convert(Convert::FloatToFloat(_)) => {
            // These keep the payload of a NaN.
            let types = (func.ty(data.args[0]), func.ty(data.results[0]));
            !is_copy(func, inst) && !matches!(types, (Type::BF16, Type::F32) | (Type::F64, _))
        }
        _ => false,
    }
}

/// Whether an operation treats all NaN operands alike, or hands them on to a result that is watched itself.
fn ignores_bits(func: &Function, inst: Inst) -> bool {
    let data = func.inst(inst);
    match data.op {
        Op::CanonNan | Op::FloatCmp(_) | Op::Convert(Convert::FloatToS { .. } | Convert::FloatToU { .. }) => {
            true
        }
        Op::FloatUnary(FloatUnary::Neg | FloatUnary::Abs, _) => has_canonical_nan(func.ty(data.results[0])),
        // It looks at the operands' signs.
        Op::MinMax(MinMax { xorsign_abs: true, .. }) => false,
        _ if is_copy(func, inst) => true,
        _ => is_arithmetic(func, inst) && has_canonical_nan(func.ty(data.results[0])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simt_ir::{Access, FloatMode, FunctionBuilder, ShuffleMode, Signature, Space, Terminator};

    #[test]
    fn only_what_is_stored_is_made_canonical() {
        let mut b = FunctionBuilder::new("k", Signature { params: vec![Type::I64], results: vec![] });
        let address = b.param(0);
        let access = Access::weak(Space::Global, 0);
        let x = b.inst(Op::Load(access), &[address], Type::F32);
        let add = Op::Float(FloatBinary::Add, FloatMode::default());
        let y = b.inst(add, &[x, x], Type::F32);
        let z = b.inst(add, &[y, y], Type::F32);
        b.effect(Op::Store(access), &[address, x]);
        b.effect(Op::Store(access), &[address, z]);
        b.terminate(Terminator::Return(vec![]));
        let mut func = b.finish();
        make_canonical(&mut func);
        let insts = &func.block(Function::ENTRY).insts;
        let canon: Vec<&Inst> = insts.iter().filter(|i| func.inst(**i).op == Op::CanonNan).collect();
        assert_eq!(canon.len(), 1);
        assert_eq!(func.inst(*canon[0]).args, [z]);
        assert_eq!(func.inst(insts[insts.len() - 1]).args, [address, func.inst(*canon[0]).results[0]]);
    }

    #[test]
    fn sums_that_lanes_exchange_are_made_canonical_once() {
        let mut b = FunctionBuilder::new("k", Signature { params: vec![Type::I64], results: vec![] });
        let address = b.param(0);
        let access = Access::weak(Space::Global, 0);
        let add = Op::Float(FloatBinary::Add, FloatMode::default());
        let x = b.inst(Op::Load(access), &[address], Type::F32);
        let mut sum = b.inst(add, &[x, x], Type::F32);
        let mut bits = None;
        for distance in [16, 8, 4] {
            let cast = b.inst(Op::Convert(Convert::Bitcast), &[sum], Type::I32);
            let [distance, clamp] = [distance, 31].map(|number| b.constant(Type::I32, number));
            let shuffle = Op::Shuffle(ShuffleMode::Bfly);
            let others = b.insts(shuffle, &[cast, distance, clamp], &[Type::I32, Type::Pred])[0];
            let other = b.inst(Op::Convert(Convert::Bitcast), &[others], Type::F32);
            sum = b.inst(add, &[sum, other], Type::F32);
            bits = Some((cast, others));
        }
        // The last exchange is looked at.
        let (given, others) = bits.unwrap();
        b.effect(Op::Store(access), &[address, sum]);
        b.effect(Op::Store(access), &[address, others]);
        b.terminate(Terminator::Return(vec![]));
        let mut func = b.finish();
        make_canonical(&mut func);
        let insts = &func.block(Function::ENTRY).insts;
        let canonical = insts.iter().map(|inst| func.inst(*inst)).filter(|data| data.op == Op::CanonNan);
        let canonical: Vec<Value> = canonical.map(|data| data.results[0]).collect();
        assert_eq!(canonical.len(), 2);
        assert_eq!(func.def_inst(given).unwrap().args, [canonical[0]]);
        assert_eq!(func.inst(insts[insts.len() - 2]).args, [address, canonical[1]]);
    }

    #[test]
    fn what_is_within_limits_is_no_nan() {
        let mut b = FunctionBuilder::new("k", Signature { params: vec![Type::I64], results: vec![] });
        let address = b.param(0);
        let access = Access::weak(Space::Global, 0);
        let x = b.inst(Op::Load(access), &[address], Type::F32);
        let (scale, large) = (252f32.to_bits().into(), f32::MAX.to_bits().into());
        let (scale, large) = (b.constant(Type::F32, scale), b.constant(Type::F32, large));
        let add = |sat| Op::Float(FloatBinary::Add, FloatMode { sat, ..FloatMode::default() });
        let between_0_and_1 = b.inst(add(true), &[x, x], Type::F32);
        let limited = b.inst(Op::Fma(FloatMode::default()), &[between_0_and_1, scale, scale], Type::F32);
        let maybe_infinite = b.inst(add(false), &[limited, large], Type::F32);
        let difference = b.inst(add(false), &[maybe_infinite, x], Type::F32);
        for value in [limited, difference] {
            b.effect(Op::Store(access), &[address, value]);
        }
        b.terminate(Terminator::Return(vec![]));
        let mut func = b.finish();
        make_canonical(&mut func);
        let insts = &func.block(Function::ENTRY).insts;
        let canonical = insts.iter().map(|inst| func.inst(*inst)).filter(|data| data.op == Op::CanonNan);
        assert_eq!(canonical.flat_map(|data| data.args.clone()).collect::<Vec<_>>(), [difference]);
    }
    #[test]
    fn what_only_arithmetic_looks_at_need_not_be_canonical() {
        for is_stored in [false, true] {
            let mut b =
                FunctionBuilder::new("k", Signature { params: vec![Type::I64, Type::Pred], results: vec![] });
            let (address, cond) = (b.param(0), b.param(1));
            let access = Access::weak(Space::Global, 0);
            let add = Op::Float(FloatBinary::Add, FloatMode::default());
            let x = b.inst(Op::Load(access), &[address], Type::F32);
            let sum = b.inst(add, &[x, x], Type::F32);
            let either = b.inst(Op::Select, &[cond, sum, x], Type::F32);
            let result = b.inst(add, &[either, x], Type::F32);
            b.effect(Op::Store(access), &[address, if is_stored { either } else { result }]);
            b.terminate(Terminator::Return(vec![]));
            let mut func = b.finish();
            make_canonical(&mut func);
            let insts = func.block(Function::ENTRY).insts.iter().map(|inst| func.inst(*inst));
            let canonical = insts.filter(|data| data.op == Op::CanonNan).flat_map(|data| data.args.clone());
            assert_eq!(canonical.collect::<Vec<_>>(), [if is_stored { sum } else { result }]);
        }
    }
}
