//! Minima and maxima of floats that are no signalling NaNs.
//!
//! Of a number and a NaN the minimum is the number, of whichever kind the NaN is. AVX-512's own instruction for both knows that of quiet NaNs only, so
//! that operands pass another one first, which takes as long. Only memory and integers have signalling NaNs: whatever arithmetic makes is
//! quiet, also by way of other lanes. [`mark`] says of which minima and maxima both operands are.

use simt_ir::{Cfg, Convert, Def, FloatUnary, Function, InstData, MinMax, Op, Type, Value};

use crate::Shapes;

/// Marks those whose operands are both no signalling NaNs, nor are they in the lanes of a vector that another operation makes of them.
pub fn mark(func: &mut Function, cfg: &Cfg, shapes: &Shapes) {
    let insts = || cfg.order().iter().flat_map(|block| &func.block(*block).insts).copied();
    let found: Vec<_> = insts().filter(|inst| matches!(func.inst(*inst).op, Op::MinMax(_))).collect();
    if found.is_empty() {
        return;
    }
    let quiet = quiet(func, cfg, shapes);
    for inst in found {
        let data = func.inst_mut(inst);
        let both = data.args.iter().all(|arg| quiet[arg.index()]);
        if let Op::MinMax(op) = &mut data.op {
            op.quiet = both;
        }
    }
}

/// Of each value whether it surely is no signalling NaN.
fn quiet(func: &Function, cfg: &Cfg, shapes: &Shapes) -> Vec<bool> {
    // Optimistic: a parameter that only quiet ones are passed to is quiet, around loops too.
    let mut quiet = vec![true; func.value_count()];
    for param in &func.block(Function::ENTRY).params {
        quiet[param.index()] = false;
    }
    loop {
        let mut changed = false;
        let mut deny = |quiet: &mut Vec<bool>, value: Value| {
            changed |= std::mem::replace(&mut quiet[value.index()], false);
        };
        for &block in cfg.order() {
            let data = func.block(block);
            for inst in &data.insts {
                let data = func.inst(*inst);
                let is_quiet = |value: Value| quiet[value.index()];
                if !is_result_quiet(func, shapes, data, &is_quiet) {
                    data.results.iter().for_each(|result| deny(&mut quiet, *result));
                }
            }
            for target in data.term.targets() {
                for (param, arg) in func.block(target.block).params.iter().zip(&target.args) {
                    if !quiet[arg.index()] {
                        deny(&mut quiet, *param);
                    }
                }
            }
        }
        if !changed {
            return quiet;
        }
    }
}

fn is_result_quiet(
    func: &Function,
    shapes: &Shapes,
    data: &InstData,
    is_quiet: &dyn Fn(Value) -> bool,
) -> bool {
    let ty = |value: Value| func.ty(value);
    let all = || data.args.iter().all(|arg| is_quiet(*arg));
    match data.op {
        Op::Const(bits) => match ty(data.results[0]) {
            Type::F32 => !f32::from_bits(bits as u32).is_nan(),
            Type::F64 => !f64::from_bits(bits).is_nan(),
            _ => false,
        },
        Op::Float(..) | Op::Fma(_) | Op::Approx { .. } | Op::Mufu(_) | Op::CanonNan => true,
        // One of two signalling NaNs may come out where it is not computed for lanes.
        Op::MinMax(MinMax { nan: false, .. }) if shapes.of(data.results[0]).is_vector() => true,
        Op::MinMax(_) => all(),
        Op::FloatUnary(FloatUnary::Sqrt | FloatUnary::Rcp, _) => true,
        Op::FloatUnary(FloatUnary::Neg | FloatUnary::Abs, _) => all(),
        Op::Select => data.args[1..].iter().all(|arg| is_quiet(*arg)),
        Op::Convert(Convert::SToFloat(_) | Convert::UToFloat(_) | Convert::RoundToIntegral(_)) => true,
        // Bits are moved to a place further up, or stay.
        Op::Convert(Convert::FloatToFloat(_)) if ty(data.args[0]) == Type::BF16 => false,
        Op::Convert(Convert::FloatToFloat(_)) if ty(data.args[0]) == ty(data.results[0]) => all(),
        Op::Convert(Convert::FloatToFloat(_)) => true,
        Op::Convert(Convert::Bitcast) => {
            exchanged(func, data).is_some_and(|given| ty(given) == ty(data.results[0]) && is_quiet(given))
        }
        _ => false,
    }
}

/// The float that lanes gave each other as bits, of which this makes a float again.
fn exchanged(func: &Function, cast: &InstData) -> Option<Value> {
    let Def::Result(shuffle, 0) = func.def(cast.args[0]) else { return None };
    let shuffle = Some(func.inst(shuffle)).filter(|data| matches!(data.op, Op::Shuffle(_)))?;
    let given = func.def_inst(shuffle.args[0]).filter(|data| data.op == Op::Convert(Convert::Bitcast))?;
    Some(given.args[0])
}

#[cfg(test)]
mod tests {
    use kernel_abi::Shape;
    use simt_ir::{
        Access, FloatMode, FunctionBuilder, IntBinary, ShuffleMode, Signature, Space, SpecialReg, Target,
        Terminator,
    };

    use super::*;

    /// Of each maximum of what is built, with the address of an element of each thread's own, whether its operands are quiet.
    fn marked(build: impl FnOnce(&mut FunctionBuilder, Value)) -> Vec<bool> {
        let mut b = FunctionBuilder::new("kernel", Signature::default());
        let zero = b.constant(Type::I64, 0);
        let base = b.inst(Op::Load(Access::weak(Space::Param, 0)), &[zero], Type::I64);
        let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
        let tid = b.inst(Op::Convert(Convert::ZExt), &[tid], Type::I64);
        let four = b.constant(Type::I64, 4);
        let offset = b.inst(Op::Int(IntBinary::Mul), &[tid, four], Type::I64);
        let address = b.inst(Op::Int(IntBinary::Add), &[base, offset], Type::I64);
        build(&mut b, address);
        b.terminate(Terminator::Exit);
        let p = crate::prepare(b.finish(), true, &Shape::of([1; 3], [32, 1, 1])).unwrap();
        let insts = p.cfg.order().iter().flat_map(|block| &p.func.block(*block).insts);
        let quiet = |data: &InstData| match data.op {
            Op::MinMax(op) => Some(op.quiet),
            _ => None,
        };
        insts.filter_map(|inst| quiet(p.func.inst(*inst))).collect()
    }

    fn load(b: &mut FunctionBuilder, address: Value, ty: Type) -> Value {
        b.inst(Op::Load(Access::weak(Space::Global, 0)), &[address], ty)
    }

    fn max(b: &mut FunctionBuilder, x: Value, y: Value) -> Value {
        b.inst(Op::MinMax(MinMax { max: true, ..MinMax::default() }), &[x, y], Type::F32)
    }

    fn store(b: &mut FunctionBuilder, address: Value, value: Value) {
        b.effect(Op::Store(Access::weak(Space::Global, 0)), &[address, value]);
    }

    #[test]
    fn what_memory_has_may_signal() {
        let found = marked(|b, address| {
            let x = load(b, address, Type::F32);
            let magnitude = b.inst(Op::FloatUnary(FloatUnary::Abs, FloatMode::default()), &[x], Type::F32);
            let sum = b.inst(Op::Float(simt_ir::FloatBinary::Add, FloatMode::default()), &[x, x], Type::F32);
            let first = max(b, magnitude, sum);
            let second = max(b, first, sum);
            store(b, address, second);
        });
        assert_eq!(found, [false, true], "a magnitude is what it is of, a sum and a maximum are not");
    }

    #[test]
    fn halves_as_floats_are_quiet_but_those_of_brains_are_not() {
        for (ty, is_quiet) in [(Type::F16, true), (Type::BF16, false)] {
            let found = marked(|b, address| {
                let x = load(b, address, ty);
                let convert = Op::Convert(Convert::FloatToFloat(FloatMode::default()));
                let wide = b.inst(convert, &[x], Type::F32);
                let one = b.constant(Type::F32, 1f32.to_bits().into());
                let result = max(b, wide, one);
                store(b, address, result);
            });
            assert_eq!(found, [is_quiet], "{ty:?}");
        }
    }

    #[test]
    fn greatest_of_a_loop_that_lanes_exchange_are_quiet() {
        let found = marked(|b, address| {
            let greatest = b.var(Type::F32);
            let zero = b.constant(Type::F32, 0);
            b.write(greatest, zero);
            let (body, end) = (b.block(), b.block());
            b.terminate(Terminator::Jump(Target::new(body)));
            b.switch_to(body);
            let (x, before) = (load(b, address, Type::F32), b.read(greatest));
            let integral =
                b.inst(Op::Float(simt_ir::FloatBinary::Mul, FloatMode::default()), &[x, x], Type::F32);
            let next = max(b, before, integral);
            b.write(greatest, next);
            let cond = b.constant(Type::Pred, 0);
            let (then, otherwise) = (Target::new(body), Target::new(end));
            b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
            b.switch_to(end);
            let own = b.read(greatest);
            let bits = b.inst(Op::Convert(Convert::Bitcast), &[own], Type::I32);
            let [distance, clamp] = [16, 31].map(|number| b.constant(Type::I32, number));
            let shuffle = Op::Shuffle(ShuffleMode::Bfly);
            let others = b.insts(shuffle, &[bits, distance, clamp], &[Type::I32, Type::Pred])[0];
            let other = b.inst(Op::Convert(Convert::Bitcast), &[others], Type::F32);
            let both = max(b, own, other);
            store(b, address, both);
        });
        assert_eq!(found, [true, true]);
    }
}
