//! Control flow.

use simt_ir::{Op, Target, Terminator, Type};

use super::{Form, form};
use crate::lower::expander::Expander;
use crate::resolve::{Operand, OperandKind, Symbol};

pub(super) const FORMS: &[Form] = &[
    form("bra.uni? target:label", bra).guards_itself(),
    form("brx.idx.uni? index:u32, targets:list", brx).effect().since(6, 0, 30),
    form("call.uni? ...", |x| {
        let inst = x.inst;
        x.body.call(inst);
    })
    .effect()
    .only_with(call_operands),
    form("ret.uni?", |x| x.body.leave_function()).effect(),
    form("exit", |x| x.body.end(Terminator::Exit)).effect(),
    form("trap", |x| x.body.end(Terminator::Trap)).effect(),
    // Without a debugger that it would stop in, an H100 ends the kernel as a trap does.
    form("brkpt", |x| x.body.end(Terminator::Trap)).effect().since(1, 1, 11),
    form("nanosleep.u32 t:u32", |x| {
        let t = x.src("t");
        x.body.b.effect(Op::Nanosleep, &[t]);
    })
    .effect()
    .since(6, 3, 70),
];

fn bra(x: &mut Expander<'_, '_>) {
    let Some(OperandKind::Label(label)) = x.operand("target").map(|o| &o.kind) else { return };
    let target = x.body.label(*label);
    match x.inst.guard {
        None => x.body.end(Terminator::Jump(Target::new(target))),
        Some(guard) => {
            let cond = x.body.guard(guard);
            let next = x.body.b.block();
            let uniform = x.has("uni");
            x.body.branch(cond, target, next, uniform);
            x.body.continue_in(next);
        }
    }
}

fn brx(x: &mut Expander<'_, '_>) {
    let index = x.src_as("index", Type::I32);
    let Some(operand) = x.operand("targets") else { return };
    let OperandKind::BranchTargets(list) = operand.kind else { return };
    let labels = &x.body.func.branch_targets[list.0 as usize];
    let targets: Vec<Target> = labels.iter().map(|label| Target::new(x.body.label(*label))).collect();
    if targets.is_empty() {
        return x.refuse(operand, "the list of targets is empty");
    }
    x.body.end(Terminator::Switch { index, targets });
}

/// `(results), callee, (arguments), prototype or list`: all but the callee may be left out.
fn call_operands(operands: &[Operand<'_, '_>]) -> Result<(), &'static str> {
    let is_list = |o: Option<&Operand<'_, '_>>| matches!(o, Some(Operand { kind: OperandKind::List(_), .. }));
    let length = |o: &Operand<'_, '_>| match &o.kind {
        OperandKind::List(list) => list.len(),
        _ => 0,
    };
    let (mut rest, mut returns, mut arguments) = (operands, 0, 0);
    if is_list(rest.first()) {
        returns = length(&rest[0]);
        rest = &rest[1..];
    }
    let Some((callee, mut rest)) = rest.split_first() else { return Err("nothing is called") };
    if is_list(rest.first()) {
        arguments = length(&rest[0]);
        rest = &rest[1..];
    }
    let prototype = match rest {
        [] => false,
        [Operand { kind: OperandKind::Prototype(_) | OperandKind::CallTargets(_), .. }] => true,
        _ => return Err("a prototype or a list of targets is required"),
    };
    match &callee.kind {
        OperandKind::Symbol(Symbol::Function(function), 0) => {
            if function.is_entry {
                Err("a kernel cannot be called")
            } else if (function.returns.len(), function.params.len()) != (returns, arguments) {
                Err("the number of parameters is not the callee's")
            } else {
                Ok(())
            }
        }
        OperandKind::Register(_) if prototype => Ok(()),
        OperandKind::Register(_) => Err("an indirect call needs a prototype or a list of targets"),
        _ => Err("a function or a register is called"),
    }
}
