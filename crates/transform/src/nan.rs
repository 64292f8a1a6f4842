//! Canonical NaNs where their bits can be seen.
//!
//! In the IR, arithmetic on f32, f16 and bf16 yields one NaN only. Processors pass operands' NaNs on. After [`make_canonical`] every
//! such result passes [`Op::CanonNan`] on its way to anything that tells NaNs apart: memory, integer registers, other lanes, or a
//! value that may also be a NaN from memory, which keeps its bits. Chains of arithmetic stay free of it.

use std::collections::HashMap;

use simt_ir::{Cfg, Convert, FloatUnary, Function, Inst, Op, SourceLoc, Type, Value};

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
    let kinds = kinds(func, &cfg);
    let kind = |value: Value| kinds[value.index()];
    for &block in cfg.order() {
        let mut canonical: HashMap<Value, Value> = HashMap::new();
        let old = std::mem::take(&mut func.block_mut(block).insts);
        let mut new = Vec::with_capacity(old.len());
        for inst in old {
            let data = func.inst(inst);
            let exact = !(ignores_bits(func, inst)
                || data.op == Op::Select && kind(data.results[0]) == Kind::Arithmetic);
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
        let returned = matches!(term, simt_ir::Terminator::Return(_));
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
                if kind(param) == Kind::Exact && kind(*arg) == Kind::Arithmetic {
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
    let inst = func.make_inst(Op::CanonNan, vec![value], &[func.ty(value)], SourceLoc::default());
    insts.push(inst);
    func.inst(inst).results[0]
}

fn kinds(func: &Function, cfg: &Cfg) -> Vec<Kind> {
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
                        Op::Const(bits) if !is_nan(func.ty(result), bits) => Kind::Never,
                        Op::Select => meet(kinds[data.args[1].index()], kinds[data.args[2].index()]),
                        _ if is_copy(func, *inst) => kinds[data.args[0].index()],
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
            !is_copy(func, inst) && !matches!(types, (Type::BF16 | Type::F64, Type::F32))
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
        _ if is_copy(func, inst) => true,
        _ => is_arithmetic(func, inst) && has_canonical_nan(func.ty(data.results[0])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simt_ir::{Access, FloatBinary, FloatMode, FunctionBuilder, Signature, Space, Terminator};

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
}
