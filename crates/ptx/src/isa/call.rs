//! What is passed to a function and what receives its results: things of the types that its declaration or a prototype says.

use super::{Context, Kind, Problem, Ty};
use crate::ast::{StateSpace, Variable};
use crate::resolve::{Instruction, Operand, OperandKind, Symbol};

/// Checks a call whose operands are otherwise as they must be.
pub(super) fn check(inst: &Instruction<'_, '_>, context: &Context<'_>) -> Result<(), Problem> {
    let lists = inst.operands.iter().filter_map(|operand| match &operand.kind {
        OperandKind::List(list) => Some(list.as_slice()),
        _ => None,
    });
    let lists: Vec<&[Operand<'_, '_>]> = lists.collect();
    let first_is_results = inst.operands.first().is_some_and(|o| matches!(o.kind, OperandKind::List(_)));
    let (results, arguments) = match (&lists[..], first_is_results) {
        ([results, arguments], _) => (*results, *arguments),
        ([results], true) => (*results, &[][..]),
        ([arguments], false) => (&[][..], *arguments),
        _ => (&[][..], &[][..]),
    };
    for (returns, params) in declared(inst, context) {
        if returns.len() != results.len() || params.len() != arguments.len() {
            return Err(wrong(inst.syntax.span, "the number of parameters is not the callee's"));
        }
        for (formal, result) in returns.iter().zip(results) {
            if !matches!(result.kind, OperandKind::Sink) {
                fits(formal, result, context)?;
            }
        }
        for (formal, argument) in params.iter().zip(arguments) {
            fits(formal, argument, context)?;
        }
    }
    Ok(())
}

type Parameters<'c> = (&'c [Variable<'c>], &'c [Variable<'c>]);

/// The results and parameters of what may be called.
fn declared<'c>(inst: &'c Instruction<'_, '_>, context: &'c Context<'_>) -> Vec<Parameters<'c>> {
    let mut found: Vec<Parameters<'c>> = Vec::new();
    for operand in &inst.operands {
        match operand.kind {
            OperandKind::Symbol(Symbol::Function(function), _) => {
                found.push((&function.returns, &function.params));
            }
            OperandKind::Prototype(id) => {
                let prototype = context.prototypes[id.0 as usize];
                found.push((&prototype.returns, &prototype.params));
            }
            OperandKind::CallTargets(id) => {
                let targets = context.call_targets[id.0 as usize].iter();
                found.extend(targets.map(|function| (&function.returns[..], &function.params[..])));
            }
            _ => {}
        }
    }
    found
}

/// Whether a thing may stand for a parameter.
fn fits(formal: &Variable<'_>, actual: &Operand<'_, '_>, context: &Context<'_>) -> Result<(), Problem> {
    let name = formal.name.text;
    let other_type = || Err(wrong(actual.span, &format!("the type is not that of the parameter '{name}'")));
    let Some(ty) = Ty::from_name(formal.ty.name()) else { return other_type() };
    let is_array = !formal.dimensions.is_empty();
    if !is_array && ty == Ty::Pred {
        return Err(wrong(actual.span, "predicates are not passed"));
    }
    match &actual.kind {
        OperandKind::Register(id) => {
            let register = context.register(*id);
            let same = !is_array && register.vector == formal.vector && ty.accepts(register.ty, false);
            if same { Ok(()) } else { other_type() }
        }
        OperandKind::Immediate(value) => match (ty.kind(), value.integer()) {
            _ if is_array || formal.vector.is_some() => other_type(),
            (Kind::Float, Some(_)) | (Kind::Signed | Kind::Unsigned, None) => other_type(),
            _ => Ok(()),
        },
        OperandKind::Symbol(Symbol::Local(id), offset) => {
            let variable = context.variables[id.0 as usize].declaration;
            if variable.space != StateSpace::Param || *offset != 0 {
                return Err(wrong(actual.span, "a whole variable in .param is required"));
            }
            let open = matches!(formal.dimensions.first(), Some(None | Some(0)));
            let lengths = formal.dimensions.len() == variable.dimensions.len()
                && (open || formal.dimensions == variable.dimensions);
            if !lengths || !ty.accepts(variable.ty, false) || is_array && formal.space != StateSpace::Param {
                return other_type();
            }
            if formal.alignment() != variable.alignment() {
                let what = format!("the alignment is not that of the parameter '{name}'");
                return Err(wrong(actual.span, &what));
            }
            Ok(())
        }
        _ => Err(wrong(actual.span, "a register, a constant or a variable in .param is required")),
    }
}

fn wrong(span: crate::span::Span, what: &str) -> Problem {
    Problem::mismatch(span, format!("arguments mismatch for instruction 'call': {what}"))
}
