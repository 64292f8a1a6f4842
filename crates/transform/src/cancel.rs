//! Afterwards no sum has a term that another takes away again.
//!
//! A loop in which the threads of a block fill a tile often counts its elements and finds the row and the column of each: the quotient and the
//! rest of its number. The element's address has both, and the quotient twice: so many times as the row's bytes, and as many times less, in the
//! rest. What is left is a multiple of the number itself, whose lanes lie side by side. Integers wrap, so that this holds for all of them.

use std::collections::{BTreeMap, HashMap};

use simt_ir::{Block, Cfg, Function, Inst, IntBinary, Op, Shift, Type, Value};

/// The terms of a sum beyond which it is one by itself.
const MOST: usize = 6;

/// A sum of multiples of values and a constant, modulo 2 to their width.
#[derive(Clone, Default, PartialEq)]
struct Sum {
    factors: BTreeMap<Value, u64>,
    constant: u64,
}

impl Sum {
    fn plus(&self, other: &Sum, factor: u64, mask: u64) -> Sum {
        let mut sum = self.clone();
        for (value, more) in &other.factors {
            let known = sum.factors.entry(*value).or_default();
            *known = known.wrapping_add(more.wrapping_mul(factor)) & mask;
        }
        sum.constant = sum.constant.wrapping_add(other.constant.wrapping_mul(factor)) & mask;
        sum
    }

    /// Without terms that are nothing; answers whether there were any.
    fn clean(&mut self) -> bool {
        let before = self.factors.len();
        self.factors.retain(|_, factor| *factor != 0);
        self.factors.len() < before
    }
}

/// Makes sums whose terms cancel of what is left.
pub fn cancel(func: &mut Function) {
    let cfg = Cfg::new(func);
    let mut sums: HashMap<Value, Sum> = HashMap::new();
    for &block in cfg.order() {
        for inst in func.block(block).insts.clone() {
            let data = func.inst(inst);
            let &[result] = &data.results[..] else { continue };
            if !matches!(func.ty(result), Type::I32 | Type::I64) {
                continue;
            }
            let Some(mut sum) = sum_of(func, inst, &sums) else { continue };
            // A product by a power of two may leave nothing of a term as well: that is no other term's doing.
            let cancels = sum.clean() && matches!(data.op, Op::Int(IntBinary::Add | IntBinary::Sub));
            if cancels && sum.factors.len() <= 2 {
                rewrite(func, block, inst, &sum);
            }
            if sum.factors.len() <= MOST {
                sums.insert(result, sum);
            }
        }
    }
}

/// What an instruction computes as a sum, terms that are nothing included.
fn sum_of(func: &Function, inst: Inst, sums: &HashMap<Value, Sum>) -> Option<Sum> {
    let data = func.inst(inst);
    let mask = func.ty(data.results[0]).mask();
    let of = |at: usize| {
        let value = data.args[at];
        let single = || Sum { factors: BTreeMap::from([(value, 1)]), constant: 0 };
        match func.constant(value) {
            Some(constant) => Sum { constant, ..Sum::default() },
            None => sums.get(&value).cloned().unwrap_or_else(single),
        }
    };
    let times = |at: usize, factor: u64| Sum::default().plus(&of(at), factor, mask);
    match data.op {
        Op::Int(IntBinary::Add) => Some(of(0).plus(&of(1), 1, mask)),
        Op::Int(IntBinary::Sub) => Some(of(0).plus(&of(1), u64::MAX, mask)),
        Op::Int(IntBinary::Mul) => match (func.constant(data.args[0]), func.constant(data.args[1])) {
            (_, Some(factor)) => Some(times(0, factor)),
            (Some(factor), _) => Some(times(1, factor)),
            _ => None,
        },
        Op::Shift(Shift::Left) => {
            let bits = u64::from(func.ty(data.results[0]).bits());
            let amount = func.constant(data.args[1]).filter(|amount| *amount < bits)?;
            Some(times(0, 1 << amount))
        }
        _ => None,
    }
}

/// Makes an instruction one that computes this sum, and puts what it takes before it.
fn rewrite(func: &mut Function, block: Block, inst: Inst, sum: &Sum) {
    let (ty, loc) = (func.ty(func.inst(inst).results[0]), func.inst(inst).loc);
    let mut before = Vec::new();
    let mut make =
        |func: &mut Function, op: Op, args: Vec<Value>| func.push_value(&mut before, op, args, ty, loc);
    let mut terms = Vec::new();
    for (value, factor) in &sum.factors {
        terms.push(match factor {
            1 => *value,
            factor => {
                let factor = make(func, Op::Const(*factor), Vec::new());
                make(func, Op::Int(IntBinary::Mul), vec![*value, factor])
            }
        });
    }
    if sum.constant != 0 || terms.len() < 2 {
        terms.push(make(func, Op::Const(sum.constant), Vec::new()));
    }
    if let [first, second, third] = terms[..] {
        terms = vec![make(func, Op::Int(IntBinary::Add), vec![first, second]), third];
    }
    let data = func.inst_mut(inst);
    (data.op, data.args) = match terms[..] {
        [_] => (Op::Const(sum.constant), Vec::new()),
        _ => (Op::Int(IntBinary::Add), terms),
    };
    let insts = &mut func.block_mut(block).insts;
    let at = insts.iter().position(|at| *at == inst).expect("it is in its block");
    insts.splice(at..at, before);
}

#[cfg(test)]
mod tests {
    use super::*;
    use simt_ir::{FunctionBuilder, InstData, Signature, Terminator};

    /// What becomes of a sum of multiples of a number's third and of the rest: the operation, and how often its operands have the number.
    fn cancelled(row: u64, of_rest: u64) -> (Op, Vec<Option<u64>>) {
        let signature = Signature { params: vec![Type::I32, Type::I32], results: vec![Type::I32] };
        let mut b = FunctionBuilder::new("f", signature);
        let (number, other) = (b.param(0), b.param(1));
        let three = b.constant(Type::I32, 3);
        let third = b.inst(Op::Int(IntBinary::DivU), &[number, three], Type::I32);
        let back = b.inst(Op::Int(IntBinary::Mul), &[third, three], Type::I32);
        let rest = b.inst(Op::Int(IntBinary::Sub), &[number, back], Type::I32);
        let [row, of_rest] = [row, of_rest].map(|factor| b.constant(Type::I32, factor));
        let start = b.inst(Op::Int(IntBinary::Mul), &[row, third], Type::I32);
        let start = b.inst(Op::Int(IntBinary::Add), &[start, other], Type::I32);
        let along = b.inst(Op::Int(IntBinary::Mul), &[rest, of_rest], Type::I32);
        let place = b.inst(Op::Int(IntBinary::Add), &[start, along], Type::I32);
        b.terminate(Terminator::Return(vec![place]));
        let mut func = b.finish();
        cancel(&mut func);
        let data = func.def_inst(place).expect("it is a result");
        let factor = |value: &Value| {
            let is_product = |data: &&InstData| data.op == Op::Int(IntBinary::Mul) && data.args[0] == number;
            let data = func.def_inst(*value).filter(is_product)?;
            func.constant(data.args[1])
        };
        (data.op, data.args.iter().map(factor).collect())
    }

    #[test]
    fn of_a_quotient_and_its_rest_the_number_stays() {
        let (op, factors) = cancelled(12, 4);
        assert_eq!(op, Op::Int(IntBinary::Add));
        assert_eq!(factors, [Some(4), None]);
    }

    #[test]
    fn what_does_not_cancel_stays() {
        let (_, factors) = cancelled(16, 4);
        assert_eq!(factors, [None, None]);
    }

    #[test]
    fn a_difference_of_equals_is_a_constant() {
        let signature = Signature { params: vec![Type::I64], results: vec![Type::I64] };
        let mut b = FunctionBuilder::new("f", signature);
        let number = b.param(0);
        let five = b.constant(Type::I64, 5);
        let more = b.inst(Op::Int(IntBinary::Add), &[number, five], Type::I64);
        let five_again = b.inst(Op::Int(IntBinary::Sub), &[more, number], Type::I64);
        b.terminate(Terminator::Return(vec![five_again]));
        let mut func = b.finish();
        cancel(&mut func);
        assert_eq!(func.constant(five_again), Some(5));
    }
}
