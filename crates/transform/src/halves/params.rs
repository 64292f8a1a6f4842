//! Halves that control brings along.

use std::collections::HashMap;

use simt_ir::{Block, Cfg, Convert, Def, Function, Inst, Op, Shift, Type, Value};

use super::{made, origin, truncated, upper_of};

/// Parameters that are halves of the same number wherever control comes from become halves of one parameter, if both halves are passed or the
/// number is anyway.
pub(super) fn merge(func: &mut Function) {
    let cfg = Cfg::new(func);
    for &block in cfg.order().iter().skip(1) {
        // Of each edge the number, and its halves: the lower, and the upper one.
        let mut found: Vec<(Vec<Value>, [Option<Value>; 2])> = Vec::new();
        for &param in func.block(block).params.iter().filter(|param| func.ty(**param) == Type::I32) {
            let passed = incoming(func, &cfg, param);
            let halves = [truncated, |func: &Function, value| upper_of(func, Some(value))];
            for (is_upper, half) in halves.into_iter().enumerate().rev() {
                let Some(numbers) = passed.iter().map(|value| half(func, *value)).collect() else { continue };
                let numbers: Vec<Value> = numbers;
                let origins =
                    |of: &[Value]| of.iter().map(|number| origin(func, *number)).collect::<Vec<_>>();
                let is_same = |other: &[Value]| origins(other) == origins(&numbers);
                match found.iter_mut().find(|(other, _)| is_same(other)) {
                    Some((_, halves)) => halves[is_upper] = Some(param),
                    None => {
                        let mut halves = [None; 2];
                        halves[is_upper] = Some(param);
                        found.push((numbers, halves));
                    }
                }
                break;
            }
        }
        let mut insts = Vec::new();
        let mut replaced: HashMap<Value, Value> = HashMap::new();
        for (numbers, halves) in found {
            let Some(number) = number_of(func, &cfg, block, &numbers, halves, &mut insts) else { continue };
            for (is_upper, half) in halves.into_iter().enumerate() {
                if let Some(half) = half {
                    replaced.insert(half, half_of(func, number, is_upper == 1, &mut insts));
                }
            }
        }
        if !replaced.is_empty() {
            func.block_mut(block).insts.splice(0..0, insts);
            func.map_uses(|value| replaced.get(&value).copied().unwrap_or(value));
        }
    }
}

/// The parameter that is these numbers, for each edge into the block; if there is none, a new one where that replaces both halves.
fn number_of(
    func: &mut Function,
    cfg: &Cfg,
    block: Block,
    numbers: &[Value],
    halves: [Option<Value>; 2],
    insts: &mut Vec<Inst>,
) -> Option<Value> {
    let origins: Vec<Value> = numbers.iter().map(|number| origin(func, *number)).collect();
    for &param in &func.block(block).params {
        let is_same = || {
            let passed = incoming(func, cfg, param);
            passed.iter().map(|value| origin(func, *value)).eq(origins.iter().copied())
        };
        match func.ty(param) {
            Type::I64 if is_same() => return Some(param),
            Type::F64 if is_same() => {
                return Some(made(func, Op::Convert(Convert::Bitcast), vec![param], Type::I64, insts));
            }
            _ => {}
        }
    }
    let [Some(lower), Some(_)] = halves else { return None };
    let Def::Param(_, at) = func.def(lower) else { return None };
    let mut preds = cfg.preds(block).to_vec();
    preds.sort();
    preds.dedup();
    for pred in preds {
        let mut term = func.block(pred).term.clone();
        for target in term.targets_mut().into_iter().filter(|target| target.block == block) {
            target.args.extend(truncated(func, target.args[at as usize]));
        }
        func.block_mut(pred).term = term;
    }
    Some(func.add_param(block, Type::I64))
}

/// What each edge passes for a parameter.
fn incoming(func: &Function, cfg: &Cfg, param: Value) -> Vec<Value> {
    let Def::Param(block, at) = func.def(param) else { return Vec::new() };
    cfg.passed(func, block, at as usize).collect()
}

/// Makes a half of a number.
fn half_of(func: &mut Function, number: Value, is_upper: bool, insts: &mut Vec<Inst>) -> Value {
    let mut number = number;
    if is_upper {
        let amount = made(func, Op::Const(32), Vec::new(), Type::I32, insts);
        number = made(func, Op::Shift(Shift::RightU), vec![number, amount], Type::I64, insts);
    }
    made(func, Op::Convert(Convert::Trunc), vec![number], Type::I32, insts)
}
