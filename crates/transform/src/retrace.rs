//! Kernels whose way can be traced again.
//!
//! Where a thread goes and what it accesses may follow from the parameters and the thread's place alone: what memory holds is only computed with. A
//! second run of a block then comes to the same bad access as the first, whatever either has written. Code of such a kernel need not keep where it is at all
//! times, which is a store or two for each warp.

use simt_ir::{Op, Space, Terminator, Value};

use crate::{Prepared, stride};

/// Whether every run of a kernel goes the same way.
pub fn is_possible(p: &Prepared) -> bool {
    if !stride::has_no_order(p) {
        return false;
    }
    let read = from_memory(p);
    let is_read = |value: &Value| read[value.index()];
    p.cfg.order().iter().all(|block| {
        let data = p.func.block(*block);
        let way = match &data.term {
            Terminator::Branch { cond, .. } => Some(cond),
            Terminator::Switch { index, .. } => Some(index),
            _ => None,
        };
        let insts = data.insts.iter().map(|inst| p.func.inst(*inst));
        let mut addresses = insts.filter(|data| data.op.access().is_some()).map(|data| &data.args[0]);
        !way.is_some_and(is_read) && !addresses.any(is_read)
    })
}

/// Which values depend on what memory holds, but for the parameters.
fn from_memory(p: &Prepared) -> Vec<bool> {
    let mut read = vec![false; p.func.value_count()];
    // Around loops until nothing changes.
    while spreads(p, &mut read) {}
    read
}

/// Marks what depends on marked values, and what is loaded. Answers whether that is more than before.
fn spreads(p: &Prepared, read: &mut [bool]) -> bool {
    let mut more = false;
    let mut mark =
        |read: &mut [bool], value: Value| more |= !std::mem::replace(&mut read[value.index()], true);
    for block in p.cfg.order() {
        let data = p.func.block(*block);
        for inst in data.insts.iter().map(|inst| p.func.inst(*inst)) {
            let loads = matches!(inst.op, Op::Load(access) if access.space != Space::Param);
            if loads || inst.args.iter().any(|arg| read[arg.index()]) {
                inst.results.iter().for_each(|result| mark(read, *result));
            }
        }
        for target in data.term.targets() {
            for (param, arg) in p.func.block(target.block).params.iter().zip(&target.args) {
                if read[arg.index()] {
                    mark(read, *param);
                }
            }
        }
    }
    more
}

#[cfg(test)]
mod tests {
    use kernel_abi::Shape;
    use simt_ir::{Access, Convert, FunctionBuilder, IntBinary, IntCmp, Signature, SpecialReg, Target, Type};

    use super::*;
    use crate::prepare;

    /// Whether it can be said of a kernel that has an address, which follows from the thread's number, and a number from there.
    fn is_possible_if_it(then: impl FnOnce(&mut FunctionBuilder, Value, Value)) -> bool {
        let mut b = FunctionBuilder::new("kernel", Signature::default());
        let zero = b.constant(Type::I64, 0);
        let base = b.inst(Op::Load(Access::weak(Space::Param, 3)), &[zero], Type::I64);
        let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
        let tid = b.inst(Op::Convert(Convert::ZExt), &[tid], Type::I64);
        let address = add(&mut b, base, tid);
        let number = b.inst(Op::Load(Access::weak(Space::Global, 0)), &[address], Type::I64);
        then(&mut b, address, number);
        b.terminate(Terminator::Exit);
        let prepared =
            prepare(b.finish(), true, &Shape::of([4, 1, 1], [32, 1, 1])).expect("its loops are loops");
        is_possible(&prepared)
    }

    fn add(b: &mut FunctionBuilder, left: Value, right: Value) -> Value {
        b.inst(Op::Int(IntBinary::Add), &[left, right], Type::I64)
    }

    fn store(b: &mut FunctionBuilder, address: Value, value: Value) {
        b.effect(Op::Store(Access::weak(Space::Global, 0)), &[address, value]);
    }

    /// Goes to a block that stores, or past it.
    fn branch(b: &mut FunctionBuilder, on: Value, address: Value) {
        let zero = b.constant(Type::I64, 0);
        let cond = b.inst(Op::IntCmp(IntCmp::Eq), &[on, zero], Type::Pred);
        let [then, after] = [b.block(), b.block()];
        let [to_then, to_after] = [then, after].map(Target::new);
        b.terminate(Terminator::Branch { cond, then: to_then, otherwise: to_after.clone(), uniform: false });
        b.switch_to(then);
        store(b, address, on);
        b.terminate(Terminator::Jump(to_after));
        b.switch_to(after);
    }

    #[test]
    fn what_is_loaded_may_be_computed_with() {
        assert!(is_possible_if_it(|b, address, number| {
            let twice = add(b, number, number);
            store(b, address, twice);
            branch(b, address, address);
        }));
    }

    #[test]
    fn what_is_loaded_is_no_address() {
        assert!(!is_possible_if_it(|b, address, number| {
            let further = add(b, address, number);
            store(b, further, address);
        }));
        assert!(!is_possible_if_it(|b, address, number| {
            let other = add(b, number, address);
            let found = b.inst(Op::Load(Access::weak(Space::Global, 0)), &[other], Type::I64);
            store(b, address, found);
        }));
    }

    #[test]
    fn what_is_loaded_decides_no_branch() {
        assert!(!is_possible_if_it(|b, address, number| branch(b, number, address)));
    }

    #[test]
    fn what_a_loop_carries_is_followed() {
        let with_loop = |of_number: bool| {
            is_possible_if_it(|b, address, number| {
                let place = b.var(Type::I64);
                b.write(place, address);
                let [body, after] = [b.block(), b.block()];
                b.terminate(Terminator::Jump(Target::new(body)));
                b.switch_to(body);
                let at = b.read(place);
                store(b, at, number);
                let next = add(b, at, if of_number { number } else { address });
                b.write(place, next);
                let zero = b.constant(Type::I64, 0);
                let cond = b.inst(Op::IntCmp(IntCmp::Eq), &[address, zero], Type::Pred);
                b.terminate(Terminator::Branch {
                    cond,
                    then: Target::new(body),
                    otherwise: Target::new(after),
                    uniform: false,
                });
                b.switch_to(after);
            })
        };
        assert!(with_loop(false));
        assert!(!with_loop(true));
    }

    #[test]
    fn what_others_see_comes_once() {
        assert!(!is_possible_if_it(|b, address, _| {
            b.effect(
                Op::Store(Access { order: simt_ir::Order::Relaxed, ..Access::weak(Space::Global, 0) }),
                &[address, address],
            );
        }));
    }
}
