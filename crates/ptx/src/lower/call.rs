//! Calls: parameters that are numbers travel as values, aggregates by their address in the local window of the thread.
//! The caller also provides the memory of a returned aggregate: its address precedes the parameters.

use simt_ir::{Op, RuntimeFunction, Signature, Space, Syscall, Terminator, Type, Value};

use super::body::Body;
use super::place::{Place, is_aggregate, value_type};
use crate::ast::{Function, StateSpace, Variable};
use crate::isa::Problem;
use crate::resolve::{Instruction, Operand, OperandKind, Parameter, Symbol};
use crate::{LoadErrorKind, Span};

/// How a function of these parameters is called.
pub(crate) fn signature_of(returns: &[Variable<'_>], params: &[Variable<'_>]) -> Signature {
    let passed = |v: &Variable<'_>| if is_aggregate(v) { Type::I64 } else { value_type(v) };
    let (by_address, by_value): (Vec<_>, Vec<_>) = returns.iter().partition(|v| is_aggregate(v));
    Signature {
        params: by_address.iter().map(|_| Type::I64).chain(params.iter().map(passed)).collect(),
        results: by_value.into_iter().map(value_type).collect(),
    }
}

/// How a device function is called.
pub(crate) fn signature(function: &Function<'_>) -> Signature {
    signature_of(&function.returns, &function.params)
}

/// Functions that the device itself provides, if the module only declares them.
pub(crate) fn syscall(name: &str) -> Option<Syscall> {
    Some(match name {
        "vprintf" => Syscall::Vprintf,
        "__assertfail" => Syscall::AssertFail,
        "malloc" => Syscall::Malloc,
        "free" => Syscall::Free,
        _ => Syscall::Runtime(RuntimeFunction::by_name(name)?),
    })
}

/// The operands of `call` by their parts.
struct Parts<'r> {
    returns: &'r [Operand<'r, 'r>],
    callee: &'r Operand<'r, 'r>,
    args: &'r [Operand<'r, 'r>],
    how: Option<&'r Operand<'r, 'r>>,
}

fn parts<'r>(operands: &'r [Operand<'r, 'r>]) -> Option<Parts<'r>> {
    let (returns, rest) = match operands {
        [Operand { kind: OperandKind::List(returns), .. }, rest @ ..] => (&returns[..], rest),
        rest => (&[][..], rest),
    };
    let (callee, rest) = rest.split_first()?;
    let (args, rest) = match rest {
        [Operand { kind: OperandKind::List(args), .. }, rest @ ..] => (&args[..], rest),
        rest => (&[][..], rest),
    };
    match rest {
        [] => Some(Parts { returns, callee, args, how: None }),
        [how] => Some(Parts { returns, callee, args, how: Some(how) }),
        _ => None,
    }
}

impl<'r> Body<'r> {
    /// Takes over the parameters that the caller passed.
    pub fn receive_params(&mut self) {
        if self.is_kernel() {
            return;
        }
        let func = self.func;
        let aggregates = func.returns.iter().zip(&func.function.returns).filter(|(_, v)| is_aggregate(v));
        let params = func.params.iter().zip(&func.function.params);
        for (index, (parameter, variable)) in aggregates.chain(params).enumerate() {
            let value = self.b.param(index);
            match *parameter {
                Parameter::Register(id) => self.write(id, 0, value, false, None),
                Parameter::Variable(id) => match self.places.get(id) {
                    Place::Value(var) | Place::Passed(var) => self.b.write(var, value),
                    Place::Frame(at) => {
                        let base = self.b.inst(Op::LocalBase, &[], Type::I64);
                        self.store_local(base, i64::from(at), value);
                    }
                    Place::KernelParam(_) | Place::Shared(_) => {
                        self.fail(Problem::mismatch(variable.span, "not a parameter of a function"));
                    }
                },
            }
        }
    }

    /// `ret`: back to the caller with the results; a kernel's thread ends.
    pub fn leave_function(&mut self) {
        let func = self.func;
        let mut results = Vec::new();
        for (parameter, variable) in func.returns.iter().zip(&func.function.returns) {
            if is_aggregate(variable) {
                continue;
            }
            let ty = value_type(variable);
            let value = match *parameter {
                Parameter::Register(id) => {
                    let value = self.read(id, 0);
                    self.fit(value, ty)
                }
                Parameter::Variable(id) => match self.places.get(id) {
                    Place::Value(var) => self.b.read(var),
                    Place::Frame(at) => {
                        let base = self.b.inst(Op::LocalBase, &[], Type::I64);
                        self.load_local(base, i64::from(at), ty)
                    }
                    _ => self.b.constant(ty, 0),
                },
            };
            results.push(value);
        }
        self.end(Terminator::Return(results));
    }

    /// `call`
    pub fn call(&mut self, inst: &'r Instruction<'r, 'r>) {
        let span = inst.syntax.span;
        let Some(parts) = parts(&inst.operands) else {
            return self.fail(Problem::mismatch(span, "arguments mismatch for instruction 'call'"));
        };
        match &parts.callee.kind {
            OperandKind::Symbol(Symbol::Function(function), 0) => {
                self.call_function(function, &parts, span);
            }
            OperandKind::Register(id) => {
                let Some((returns, params)) = self.indirect_parameters(parts.how) else {
                    let message = "an indirect call needs a prototype or a list of targets";
                    return self.fail(Problem::mismatch(span, message));
                };
                let token = self.read(*id, 0);
                let token = self.fit_token(token);
                let sig = self.links.signature(signature_of(returns, params));
                self.call_with(Op::CallIndirect(sig), vec![token], returns, params, &parts, span);
            }
            _ => self.fail(Problem::mismatch(parts.callee.span, "a function or a register is called")),
        }
    }

    fn fit_token(&mut self, token: Value) -> Value {
        if self.b.func().ty(token).bits() < 64 {
            let token = self.as_int(token);
            return self.b.inst(Op::Convert(simt_ir::Convert::ZExt), &[token], Type::I64);
        }
        self.fit(token, Type::I64)
    }

    /// Return and other parameters of an indirect call: of its prototype, or of the first function in its list of targets.
    fn indirect_parameters(
        &self,
        how: Option<&Operand<'r, 'r>>,
    ) -> Option<(&'r [Variable<'r>], &'r [Variable<'r>])> {
        match how?.kind {
            OperandKind::Prototype(id) => {
                let prototype = self.func.prototypes[id.0 as usize];
                Some((&prototype.returns, &prototype.params))
            }
            OperandKind::CallTargets(id) => {
                let function = self.func.call_targets[id.0 as usize].first()?;
                Some((&function.returns, &function.params))
            }
            _ => None,
        }
    }

    fn call_function(&mut self, function: &'r Function<'r>, parts: &Parts<'r>, span: Span) {
        let name = function.name.text;
        let op = match (self.links.function(name), syscall(name)) {
            (Some(func), _) => Op::Call(func),
            (None, Some(call)) => {
                let (declared, own) = (signature(function), call.signature());
                // Compilers that have no use for the result declare none.
                let left_out = declared.results.is_empty();
                if declared.params != own.params || !(left_out || declared.results == own.results) {
                    let message = format!("'{name}' is declared with other parameters than the device's own");
                    return self.fail(Problem::mismatch(span, message));
                }
                Op::Syscall(call)
            }
            (None, None) => {
                let message = format!("Unresolved extern function '{name}'");
                return self.fail(Problem::new(LoadErrorKind::Unresolved, span, message));
            }
        };
        self.call_with(op, Vec::new(), &function.returns, &function.params, parts, span);
    }

    fn call_with(
        &mut self,
        op: Op,
        mut args: Vec<Value>,
        returns: &'r [Variable<'r>],
        params: &'r [Variable<'r>],
        parts: &Parts<'r>,
        span: Span,
    ) {
        if parts.returns.len() != returns.len() || parts.args.len() != params.len() {
            let message = "the number of parameters is not the callee's, for instruction 'call'";
            return self.fail(Problem::mismatch(span, message));
        }
        let aggregates = returns.iter().zip(parts.returns).filter(|(v, _)| is_aggregate(v));
        for (variable, operand) in aggregates.chain(params.iter().zip(parts.args)) {
            let mut arg = self.argument(variable, operand);
            if matches!(op, Op::Syscall(_)) && is_aggregate(variable) {
                // The host knows no windows.
                arg = self.b.inst(Op::ToGeneric(Space::Local), &[arg], Type::I64);
            }
            args.push(arg);
        }
        let (results, targets): (Vec<Type>, Vec<&'r Operand<'r, 'r>>) = returns
            .iter()
            .zip(parts.returns)
            .filter(|(v, _)| !is_aggregate(v))
            .map(|(v, operand)| (value_type(v), operand))
            .unzip();
        let results = match op {
            Op::Syscall(call) => call.signature().results,
            _ => results,
        };
        let values = self.b.insts(op, &args, &results);
        for (operand, value) in targets.into_iter().zip(values) {
            self.receive(operand, value);
        }
    }

    fn argument(&mut self, variable: &Variable<'r>, operand: &'r Operand<'r, 'r>) -> Value {
        let ty = if is_aggregate(variable) { Type::I64 } else { value_type(variable) };
        match &operand.kind {
            OperandKind::Register(id)
                if !is_aggregate(variable) && self.register_ty(*id).bits() >= ty.bits() =>
            {
                let value = self.read(*id, 0);
                self.fit(value, ty)
            }
            OperandKind::Immediate(value) if !is_aggregate(variable) => {
                let bits = match *value {
                    crate::ast::Immediate::F32(bits) => u64::from(bits),
                    crate::ast::Immediate::F64(bits) => bits,
                    other => other.integer().unwrap_or(0),
                };
                self.b.constant(ty, bits)
            }
            OperandKind::Symbol(symbol @ Symbol::Local(id), offset)
                if self.func.variables[id.0 as usize].declaration.space == StateSpace::Param =>
            {
                match (self.places.get(*id), is_aggregate(variable)) {
                    (Place::Value(var), false) => self.read_value(var, *offset, ty, 1)[0],
                    (Place::Frame(_) | Place::Passed(_), true) => self.address_of(*symbol, *offset, operand),
                    (Place::Frame(at), false) => {
                        let base = self.b.inst(Op::LocalBase, &[], Type::I64);
                        self.load_local(base, i64::from(at).wrapping_add(*offset), ty)
                    }
                    _ => self.bad_argument(operand, ty),
                }
            }
            _ => self.bad_argument(operand, ty),
        }
    }

    fn bad_argument(&mut self, operand: &Operand<'_, '_>, ty: Type) -> Value {
        self.fail(Problem::mismatch(operand.span, "this argument does not fit the callee's parameter"));
        self.b.constant(ty, 0)
    }

    fn receive(&mut self, operand: &'r Operand<'r, 'r>, value: Value) {
        match &operand.kind {
            OperandKind::Sink => {}
            OperandKind::Register(id) => self.write(*id, 0, value, false, None),
            OperandKind::Symbol(Symbol::Local(id), offset) => match self.places.get(*id) {
                Place::Value(var) => self.write_value(var, *offset, &[value]),
                Place::Frame(at) => {
                    let base = self.b.inst(Op::LocalBase, &[], Type::I64);
                    self.store_local(base, i64::from(at).wrapping_add(*offset), value);
                }
                _ => self.fail(Problem::mismatch(operand.span, "this cannot receive a result")),
            },
            _ => self.fail(Problem::mismatch(operand.span, "this cannot receive a result")),
        }
    }
}
