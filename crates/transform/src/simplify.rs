//! Small clean-ups: constants folded, parameters that are always the same value, values nobody reads.

use std::collections::{HashMap, HashSet};

use simt_ir::{
    AtomicOp, Cfg, Convert, Def, Function, Inst, IntBinary, IntUnary, Op, Shift, Terminator, Value, eval,
};

/// Folds integer constants, drops parameters with one possible value, has differences be subtractions, and removes what is never used.
pub fn simplify(func: &mut Function) {
    fold_constants(func);
    drop_trivial_params(func);
    subtract(func);
    remove_unused(func);
}

fn fold_constants(func: &mut Function) {
    let cfg = Cfg::new(func);
    for &block in cfg.order() {
        for inst in func.block(block).insts.clone() {
            if let Some(bits) = folded(func, inst) {
                let data = func.inst_mut(inst);
                data.op = Op::Const(bits);
                data.args.clear();
            }
        }
    }
}

/// `!x` to which something is added becomes `-1 - x`: compilers write `n - 1 - x` as `!x + n`, and how lanes differ is told from differences.
fn subtract(func: &mut Function) {
    let is_negated = |func: &Function, inst: &Inst| func.inst(*inst).op == Op::IntUnary(IntUnary::Not);
    let insts = func.blocks().flat_map(|block| &func.block(block).insts);
    let sums = insts.filter(|inst| func.inst(**inst).op == Op::Int(IntBinary::Add));
    let terms = sums.flat_map(|inst| &func.inst(*inst).args).filter_map(|arg| match func.def(*arg) {
        Def::Result(inst, _) => Some(inst),
        Def::Param(..) | Def::Removed => None,
    });
    let added: HashSet<Inst> = terms.filter(|inst| is_negated(func, inst)).collect();
    for block in func.blocks().filter(|_| !added.is_empty()) {
        for inst in func.block(block).insts.clone().into_iter().filter(|inst| added.contains(inst)) {
            let data = func.inst(inst);
            let (ty, loc) = (func.ty(data.results[0]), data.loc);
            let at = func.block(block).insts.iter().position(|other| *other == inst).unwrap_or(0);
            let ones = func.insert(block, at, Op::Const(ty.mask()), Vec::new(), ty, loc);
            let data = func.inst_mut(inst);
            data.op = Op::Int(IntBinary::Sub);
            data.args.insert(0, ones);
        }
    }
}

/// The result of an integer operation on constants.
fn folded(func: &Function, inst: Inst) -> Option<u64> {
    let data = func.inst(inst);
    let result = func.ty(*data.results.first()?);
    let args: Option<Vec<u64>> = data.args.iter().map(|arg| func.constant(*arg)).collect();
    let args = args.filter(|args| !args.is_empty())?;
    let from = func.ty(data.args[0]);
    let value = match data.op {
        Op::Convert(Convert::Trunc | Convert::ZExt) => args[0],
        Op::Convert(Convert::SExt) => sign_extended(args[0], from.bits()) as u64,
        Op::Convert(Convert::Bitcast) => args[0],
        Op::Convert(Convert::FloatToFloat(_)) => eval::eval(data.op, &args, &[from], result)?,
        Op::Int(IntBinary::Add) => args[0].wrapping_add(args[1]),
        Op::Int(IntBinary::Sub) => args[0].wrapping_sub(args[1]),
        Op::Int(IntBinary::Mul) => args[0].wrapping_mul(args[1]),
        Op::Int(IntBinary::And) => args[0] & args[1],
        Op::Int(IntBinary::Or) => args[0] | args[1],
        Op::Int(IntBinary::Xor) => args[0] ^ args[1],
        Op::Shift(Shift::Left) if args[1] < u64::from(from.bits()) => args[0] << args[1],
        Op::Shift(Shift::RightU) if args[1] < u64::from(from.bits()) => args[0] >> args[1],
        _ => return None,
    };
    Some(value & result.mask())
}

/// The low `bits` bits as a signed number.
pub fn sign_extended(value: u64, bits: u32) -> i64 {
    let shift = 64 - bits;
    ((value << shift) as i64) >> shift
}

/// A parameter to which all predecessors pass the same value, or itself, is that value.
fn drop_trivial_params(func: &mut Function) {
    loop {
        let cfg = Cfg::new(func);
        let mut incoming: HashMap<Value, Option<Value>> = HashMap::new();
        for &block in cfg.order() {
            for target in func.block(block).term.targets() {
                for (param, arg) in func.block(target.block).params.iter().zip(&target.args) {
                    if arg != param {
                        incoming
                            .entry(*param)
                            .and_modify(|known| *known = known.filter(|known| known == arg))
                            .or_insert(Some(*arg));
                    }
                }
            }
        }
        let replaced: HashMap<Value, Value> =
            incoming.into_iter().filter_map(|(param, value)| Some((param, value?))).collect();
        if replaced.is_empty() {
            return;
        }
        func.map_uses(|value| {
            let mut at = value;
            // A cycle of parameters that only pass each other on has no value; any of them will do.
            for _ in 0..=replaced.len() {
                match replaced.get(&at) {
                    Some(next) => at = *next,
                    None => return at,
                }
            }
            value
        });
        func.retain_params(|_, param| !replaced.contains_key(&param));
    }
}

/// Removes instructions without effect and block parameters whose values nothing needs.
pub fn remove_unused(func: &mut Function) {
    let cfg = Cfg::new(func);
    let mut needed = vec![false; func.value_count()];
    let mut work: Vec<Value> = Vec::new();
    for &block in cfg.order() {
        let data = func.block(block);
        match &data.term {
            Terminator::Branch { cond, .. } => work.push(*cond),
            Terminator::Switch { index, .. } => work.push(*index),
            Terminator::Return(values) => work.extend_from_slice(values),
            Terminator::Jump(_) | Terminator::Exit | Terminator::Trap => {}
        }
        for inst in &data.insts {
            let data = func.inst(*inst);
            if !is_removable(&data.op) {
                work.extend_from_slice(&data.args);
                for result in data.results.iter().filter(|_| !is_reduction(&data.op)) {
                    needed[result.index()] = true;
                }
            }
        }
    }
    let mut passed: HashMap<Value, Vec<Value>> = HashMap::new();
    for &block in cfg.order() {
        for target in func.block(block).term.targets() {
            for (param, arg) in func.block(target.block).params.iter().zip(&target.args) {
                passed.entry(*param).or_default().push(*arg);
            }
        }
    }
    while let Some(value) = work.pop() {
        if std::mem::replace(&mut needed[value.index()], true) {
            continue;
        }
        if let Some(data) = func.def_inst(value) {
            work.extend_from_slice(&data.args);
        }
        work.extend(passed.get(&value).into_iter().flatten());
    }
    for &block in cfg.order() {
        let mut insts = func.block(block).insts.clone();
        insts.retain(|inst| {
            let data = func.inst(*inst);
            !is_removable(&data.op) || data.results.iter().any(|result| needed[result.index()])
        });
        for inst in &insts {
            let data = func.inst_mut(*inst);
            if is_reduction(&data.op) && data.results.iter().all(|result| !needed[result.index()]) {
                data.results.clear();
            }
        }
        func.block_mut(block).insts = insts;
    }
    func.retain_params(|block, param| {
        needed[param.index()] || block == Function::ENTRY || !cfg.is_reachable(block)
    });
}

/// Atomics that need not answer what was there.
fn is_reduction(op: &Op) -> bool {
    matches!(op, Op::Atomic(op, access) if *op != AtomicOp::Exch && access.lanes == 1)
}

/// Pure operations, looks at cells, and weak loads: a load whose value is not used need not fault.
fn is_removable(op: &Op) -> bool {
    op.is_pure()
        || matches!(op, Op::Recall(_))
        || matches!(op, Op::Load(access) if access.order == simt_ir::Order::Weak)
}

#[cfg(test)]
mod tests {
    use super::*;
    use simt_ir::{Access, FunctionBuilder, Signature, Space, Target, Type};

    #[test]
    fn an_atomic_that_nobody_asks_answers_nothing() {
        let signature = Signature { params: vec![Type::I64, Type::I32], results: vec![Type::I32] };
        let mut b = FunctionBuilder::new("f", signature);
        let (address, value) = (b.param(0), b.param(1));
        let access = Access::weak(Space::Global, 0);
        for op in [AtomicOp::Add, AtomicOp::Exch] {
            b.inst(Op::Atomic(op, access), &[address, value], Type::I32);
        }
        let asked = b.inst(Op::Atomic(AtomicOp::Add, access), &[address, value], Type::I32);
        b.terminate(Terminator::Return(vec![asked]));
        let mut func = b.finish();
        simplify(&mut func);
        let insts = &func.block(Function::ENTRY).insts;
        let results: Vec<usize> = insts.iter().map(|inst| func.inst(*inst).results.len()).collect();
        assert_eq!(results, [0, 1, 1], "an exchange is no reduction");
    }

    #[test]
    fn a_parameter_with_one_possible_value_disappears() {
        let mut b =
            FunctionBuilder::new("f", Signature { params: vec![Type::Pred], results: vec![Type::I64] });
        let cond = b.param(0);
        let small = b.constant(Type::I32, 0xffff_fffe);
        let wide = b.inst(Op::Convert(Convert::SExt), &[small], Type::I64);
        let (left, right, join) = (b.block(), b.block(), b.block());
        let to_join = Terminator::Jump(Target { block: join, args: vec![wide] });
        b.terminate(Terminator::Branch {
            cond,
            then: Target::new(left),
            otherwise: Target::new(right),
            uniform: false,
        });
        b.switch_to(left);
        b.terminate(to_join.clone());
        b.switch_to(right);
        b.terminate(to_join);
        b.switch_to(join);
        let mut func = b.finish();
        let param = func.add_param(join, Type::I64);
        func.block_mut(join).term = Terminator::Return(vec![param]);
        simplify(&mut func);
        assert!(func.block(join).params.is_empty());
        let Terminator::Return(values) = &func.block(join).term else { panic!("the end is kept") };
        assert_eq!(func.constant(values[0]), Some(-2i64 as u64), "and the constant is folded");
    }
}
