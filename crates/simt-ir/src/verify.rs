//! Checks that a program keeps the rules of the IR. Runs between passes in tests, and on what the front end lowers.

use std::fmt;

use crate::{
    Approx, AtomicOp, BarrierKind, Block, Cfg, Convert, Def, DomTree, Function, IntBinary, IntUnary, Mufu,
    Op, Program, Refusal, Signature, Terminator, Type, Value, VoteMode,
};

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyError {
    /// The function.
    pub function: String,
    /// The block.
    pub block: Block,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}: {}", self.function, self.block, self.message)
    }
}

impl std::error::Error for VerifyError {}

/// Checks all functions of a program.
pub fn verify(program: &Program) -> Result<(), VerifyError> {
    for func in &program.functions {
        verify_function(program, func)?;
    }
    let kernel = program.kernel();
    if kernel.signature != Signature::default() {
        return Err(VerifyError {
            function: kernel.name.clone(),
            block: Function::ENTRY,
            message: "a kernel has neither parameters nor results".into(),
        });
    }
    Ok(())
}

/// Checks one function of a program.
pub fn verify_function(program: &Program, func: &Function) -> Result<(), VerifyError> {
    let cfg = Cfg::new(func);
    let dom = DomTree::new(&cfg);
    let mut position = vec![None; func.inst_count()];
    for block in func.blocks() {
        for (at, inst) in func.block(block).insts.iter().enumerate() {
            position[inst.index()] = Some((block, at));
        }
    }
    let check = Check { program, func, dom, position };
    for &block in cfg.order() {
        check.block(block).map_err(|message| VerifyError { function: func.name.clone(), block, message })?;
    }
    let entry = func.block(Function::ENTRY);
    let params: Vec<Type> = entry.params.iter().map(|p| func.ty(*p)).collect();
    let problem = if !cfg.preds(Function::ENTRY).is_empty() {
        "the entry block has predecessors"
    } else if params != func.signature.params {
        "the entry block's parameters are not the function's"
    } else {
        return Ok(());
    };
    Err(VerifyError { function: func.name.clone(), block: Function::ENTRY, message: problem.into() })
}

struct Check<'a> {
    program: &'a Program,
    func: &'a Function,
    dom: DomTree,
    /// Where each instruction stands.
    position: Vec<Option<(Block, usize)>>,
}

impl Check<'_> {
    fn block(&self, block: Block) -> Result<(), String> {
        let data = self.func.block(block);
        for (at, inst) in data.insts.iter().enumerate() {
            let inst = self.func.inst(*inst);
            for arg in &inst.args {
                self.available(*arg, block, at)?;
            }
            self.types(inst.op, &inst.args, &inst.results)
                .map_err(|rule| format!("{}: {rule}", crate::text::inst(self.func, inst)))?;
        }
        for value in data.term.uses() {
            self.available(value, block, data.insts.len())?;
        }
        self.terminator(&data.term)
    }

    /// The definition of a value comes before position `at` of `block` on every path.
    fn available(&self, value: Value, block: Block, at: usize) -> Result<(), String> {
        if value.index() >= self.func.value_count() {
            return Err(format!("there is no {value}"));
        }
        let ok = match self.func.def(value) {
            Def::Param(home, index) => {
                self.func.block(home).params.get(index as usize) == Some(&value)
                    && self.dom.dominates(home, block)
            }
            Def::Result(inst, _) => match self.position[inst.index()] {
                Some((home, place)) if home == block => place < at,
                Some((home, _)) => self.dom.dominates(home, block),
                None => return Err(format!("{value} is used, but its instruction is in no block")),
            },
            Def::Removed => return Err(format!("{value} is used, but was removed")),
        };
        if ok { Ok(()) } else { Err(format!("{value} is used where it is not defined")) }
    }

    fn terminator(&self, term: &Terminator) -> Result<(), String> {
        for target in term.targets() {
            if target.block.index() >= self.func.blocks().len() {
                return Err(format!("there is no {}", target.block));
            }
            let params = &self.func.block(target.block).params;
            let given: Vec<Type> = target.args.iter().map(|v| self.func.ty(*v)).collect();
            let wanted: Vec<Type> = params.iter().map(|v| self.func.ty(*v)).collect();
            if given != wanted {
                return Err(format!("{} takes {wanted:?} and gets {given:?}", target.block));
            }
        }
        let fits = match term {
            Terminator::Branch { cond, .. } => self.func.ty(*cond) == Type::Pred,
            Terminator::Switch { index, targets } => self.func.ty(*index) == Type::I32 && !targets.is_empty(),
            Terminator::Return(values) => {
                values.iter().map(|v| self.func.ty(*v)).eq(self.func.signature.results.iter().copied())
            }
            Terminator::Jump(_) | Terminator::Exit | Terminator::Trap => true,
        };
        if fits { Ok(()) } else { Err("the terminator's operands have the wrong types".into()) }
    }

    /// Operand and result types are those that [`Op`] lists.
    fn types(&self, op: Op, args: &[Value], results: &[Value]) -> Result<(), &'static str> {
        let arg: Vec<Type> = args.iter().map(|v| self.func.ty(*v)).collect();
        let res: Vec<Type> = results.iter().map(|v| self.func.ty(*v)).collect();
        let rule = |holds: bool, rule: &'static str| if holds { Ok(()) } else { Err(rule) };
        use Type::{BF16, F16, F32, F64, I32, I64, Pred};
        let integral = |ty: Type| ty.is_int() || ty == Pred;
        match op {
            Op::Const(bits) => rule(
                arg.is_empty() && res.len() == 1 && bits & !res[0].mask() == 0,
                "a constant fits its type",
            ),
            Op::Int(op) => {
                let logic = matches!(op, IntBinary::And | IntBinary::Or | IntBinary::Xor);
                let fits = |ty: Type| ty.is_int() || logic && ty == Pred;
                rule(same(&arg, 2, &res) && fits(arg[0]), "(T, T) → T, integer")
            }
            Op::IntUnary(op) => {
                let result = match op {
                    IntUnary::LeadingZeros | IntUnary::PopCount => Some(I32),
                    _ => arg.first().copied(),
                };
                let fits = |ty: Type| ty.is_int() || op == IntUnary::Not && ty == Pred;
                rule(arg.len() == 1 && fits(arg[0]) && res.first().copied() == result, "(T) → T or i32")
            }
            Op::Shift(_) => {
                rule(arg.len() == 2 && arg[0].is_int() && arg[1] == I32 && res == [arg[0]], "(T, i32) → T")
            }
            Op::FunnelShift { .. } | Op::Prmt | Op::DotBytes { .. } => {
                rule(arg == [I32; 3] && res == [I32], "(i32, i32, i32) → i32")
            }
            Op::IntCmp(_) => rule(
                arg.len() == 2 && arg[0] == arg[1] && integral(arg[0]) && res == [Pred],
                "(T, T) → pred, integer",
            ),
            Op::FloatCmp(_) => rule(
                arg.len() == 2 && arg[0] == arg[1] && arg[0].is_float() && res == [Pred],
                "(T, T) → pred, float",
            ),
            Op::Select => rule(
                arg.len() == 3 && arg[0] == Pred && arg[1] == arg[2] && res == [arg[1]],
                "(pred, T, T) → T",
            ),
            Op::Float(..) | Op::MinMax(_) => {
                rule(same(&arg, 2, &res) && arg[0].is_float(), "(T, T) → T, float")
            }
            Op::Fma(_) => rule(same(&arg, 3, &res) && arg[0].is_float(), "(T, T, T) → T, float"),
            Op::FloatUnary(..) | Op::CanonNan => {
                rule(same(&arg, 1, &res) && arg[0].is_float(), "(T) → T, float")
            }
            Op::Unanimous => rule(arg == [Pred] && res == [Pred], "(pred) → pred"),
            Op::AnyLane | Op::FirstLane => rule(same(&arg, 1, &res), "(T) → T"),
            Op::FewLanes(_) => rule(arg.is_empty() && res == [Pred], "() → pred"),
            Op::Approx { func, .. } => {
                let count = if matches!(func, Approx::Div | Approx::DivFull) { 2 } else { 1 };
                rule(same(&arg, count, &res) && arg[0].is_float(), "(T) or (T, T) → T, float")
            }
            Op::Mufu(func) => {
                let types: &[Type] = match func {
                    Mufu::Ex2 | Mufu::Tanh => &[F32, F16, BF16],
                    Mufu::Rcp | Mufu::Rsqrt => &[F32, F64],
                    Mufu::Sqrt | Mufu::Lg2 | Mufu::Sin | Mufu::Cos => &[F32],
                };
                rule(
                    same(&arg, 1, &res) && types.contains(&arg[0]),
                    "(T) → T, a float that the unit has it for",
                )
            }
            Op::Convert(op) => {
                let [from, to] = match (&arg[..], &res[..]) {
                    ([from], [to]) => [*from, *to],
                    _ => return Err("(T) → U"),
                };
                let fits = match op {
                    Convert::Trunc => integral(to) && from.is_int() && to.bits() < from.bits(),
                    Convert::ZExt | Convert::SExt => integral(from) && to.is_int() && from.bits() < to.bits(),
                    Convert::Bitcast => from.bits() == to.bits(),
                    Convert::FloatToS { .. } | Convert::FloatToU { .. } => from.is_float() && to.is_int(),
                    Convert::SToFloat(_) | Convert::UToFloat(_) => from.is_int() && to.is_float(),
                    Convert::FloatToFloat(_) => from.is_float() && to.is_float(),
                    Convert::RoundToIntegral(_) => from.is_float() && to == from,
                };
                rule(fits, "types that the conversion is between")
            }
            Op::SpecialReg(reg) => rule(arg.is_empty() && res == [reg.ty()], "() → the register's type"),
            Op::GlobalAddr(global) => rule(
                arg.is_empty() && res == [I64] && global.index() < self.program.globals.len(),
                "() → i64, a known variable",
            ),
            Op::FuncToken(func) => rule(
                arg.is_empty()
                    && res == [I64]
                    && self.program.functions.get(func.index()).is_some_and(|f| f.token != 0),
                "() → i64, a function with a token",
            ),
            Op::LocalBase => rule(arg.is_empty() && res == [I64], "() → i64"),
            Op::StackSave => rule(arg.is_empty() && res == [I64], "() → i64"),
            Op::Keep(cell) => {
                let ty = self.func.cells.get(cell.index()).copied();
                rule(ty.is_some() && arg.len() == 1 && Some(arg[0]) == ty && res.is_empty(), "(T) → ()")
            }
            Op::Recall(cell) => {
                let ty = self.func.cells.get(cell.index()).copied();
                rule(ty.is_some() && arg.is_empty() && res.len() == 1 && Some(res[0]) == ty, "() → T")
            }
            Op::StackRestore => rule(arg == [I64] && res.is_empty(), "(i64) → ()"),
            Op::ToGeneric(_) | Op::FromGeneric(_) => rule(arg == [I64] && res == [I64], "(i64) → i64"),
            Op::IsSpace(_) => rule(arg == [I64] && res == [Pred], "(i64) → pred"),
            Op::Load(access) => rule(
                arg.len() == 1
                    && is_address(arg[0])
                    && res.len() == usize::from(access.lanes)
                    && uniform(&res)
                    && matches!(access.lanes, 1 | 2 | 4 | 8)
                    && res[0] != Pred,
                "(address) → T × lanes",
            ),
            Op::Store(access) => rule(
                arg.len() == 1 + usize::from(access.lanes)
                    && is_address(arg[0])
                    && uniform(&arg[1..])
                    && matches!(access.lanes, 1 | 2 | 4 | 8)
                    && arg[1] != Pred
                    && res.is_empty(),
                "(address, T × lanes) → ()",
            ),
            Op::Atomic(op, access) => {
                let lanes = usize::from(access.lanes);
                rule(
                    arg.len() == 1 + lanes
                        && is_address(arg[0])
                        && arg[1] != Pred
                        && (lanes == 1 || op == AtomicOp::Exch && arg[1..] == [I64; 2])
                        && (res.is_empty() || res == arg[1..]),
                    "(address, T × lanes) → T × lanes or ()",
                )
            }
            Op::AtomicCas(access) => {
                let lanes = usize::from(access.lanes);
                rule(
                    arg.len() == 1 + 2 * lanes
                        && is_address(arg[0])
                        && uniform(&arg[1..])
                        && (lanes == 1 || lanes == 2 && arg[1] == I64)
                        && (res.is_empty() || res == arg[1..=lanes]),
                    "(address, T × lanes, T × lanes) → T × lanes or ()",
                )
            }
            Op::MbarrierArrive { together: true, .. } => rule(
                matches!(arg[..], [_, I32, I32]) && is_address(arg[0]) && res == [I64, Pred],
                "(address, i32, i32) → (i64, pred)",
            ),
            Op::MbarrierArrive { .. } => rule(
                matches!(arg[..], [_, I32, I32]) && is_address(arg[0]) && (res.is_empty() || res == [I64]),
                "(address, i32, i32) → i64 or ()",
            ),
            Op::Bulk(op) => rule(arg == op.operands() && res.is_empty(), "as the operation says → ()"),
            Op::Fence { .. } => rule(arg.is_empty() && res.is_empty(), "() → ()"),
            Op::Shuffle(_) => rule(
                matches!(arg[..], [I32 | I64, I32, I32] | [I32 | I64, I32, I32, I32])
                    && res == [arg[0], Pred],
                "(i32 or i64, i32, i32, [i32]) → (of the first, pred)",
            ),
            Op::Vote(mode) => {
                let result = if mode == VoteMode::Ballot { I32 } else { Pred };
                rule((arg == [Pred] || arg == [Pred, I32]) && res == [result], "(pred, [i32]) → pred or i32")
            }
            Op::MatchAny => rule(is_match(&arg) && res == [I32], "(i32 or i64, i32) → i32"),
            Op::MatchAll => rule(is_match(&arg) && res == [I32, Pred], "(i32 or i64, i32) → (i32, pred)"),
            Op::Redux(_) => rule(arg == [I32, I32] && res == [I32], "(i32, i32) → i32"),
            Op::MatrixMultiply(op) => {
                rule(arg == op.operands() && res == op.results(), "(a, b, c, [i32]) → d, as the shape says")
            }
            Op::Texture(op) => rule(arg == op.operands() && res == op.results(), "as the operation says"),
            Op::ActiveMask => rule(arg.is_empty() && res == [I32], "() → i32"),
            Op::Elect => rule(arg == [I32] && res == [I32, Pred], "(i32) → (i32, pred)"),
            Op::Refuse(Refusal::NoFunction) => rule(arg == [Pred, I64] && res.is_empty(), "(pred, i64) → ()"),
            Op::Refuse(_) => rule(arg == [Pred] && res.is_empty(), "(pred) → ()"),
            Op::WarpSync | Op::Nanosleep => rule(arg == [I32] && res.is_empty(), "(i32) → ()"),
            Op::Barrier { kind, count } => {
                let mut wanted = vec![I32; 1 + usize::from(count)];
                let result: &[Type] = match kind {
                    BarrierKind::Sync | BarrierKind::Arrive => &[],
                    BarrierKind::RedPopc => &[I32],
                    BarrierKind::RedAnd | BarrierKind::RedOr => &[Pred],
                };
                if !result.is_empty() {
                    wanted.push(Pred);
                }
                rule(arg == wanted && res == result, "(i32, [i32], [pred]) → result of the kind")
            }
            Op::ClusterBarrier(_) | Op::GiveWay => rule(arg.is_empty() && res.is_empty(), "() → ()"),
            Op::Call(func) => {
                let Some(callee) = self.program.functions.get(func.index()) else {
                    return Err("the callee exists");
                };
                rule(
                    arg == callee.signature.params && res == callee.signature.results,
                    "the callee's signature",
                )
            }
            Op::CallIndirect(sig) => {
                let Some(sig) = self.program.signatures.get(sig.index()) else {
                    return Err("the signature exists");
                };
                rule(
                    arg.first() == Some(&I64) && arg[1..] == sig.params && res == sig.results,
                    "(token i64, parameters) → results",
                )
            }
            Op::Syscall(call) => {
                let wanted = call.signature();
                rule(arg == wanted.params && res == wanted.results, "the service's signature")
            }
        }
    }
}

fn same(args: &[Type], count: usize, results: &[Type]) -> bool {
    args.len() == count && uniform(args) && results.len() == 1 && results[0] == args[0]
}

fn uniform(types: &[Type]) -> bool {
    types.windows(2).all(|pair| pair[0] == pair[1])
}

fn is_address(ty: Type) -> bool {
    matches!(ty, Type::I32 | Type::I64)
}

fn is_match(args: &[Type]) -> bool {
    matches!(args, [Type::I32 | Type::I64, Type::I32])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FunctionBuilder, Target};

    fn program(build: impl FnOnce(&mut FunctionBuilder)) -> Program {
        let mut b = FunctionBuilder::new("kernel", Signature::default());
        build(&mut b);
        Program { functions: vec![b.finish()], ..Program::default() }
    }

    #[test]
    fn a_sound_kernel_passes() {
        let program = program(|b| {
            let x = b.constant(Type::I32, 5);
            b.inst(Op::Int(IntBinary::Add), &[x, x], Type::I32);
            b.terminate(Terminator::Return(vec![]));
        });
        assert_eq!(verify(&program), Ok(()));
    }

    #[test]
    fn wrong_types_are_found() {
        let program = program(|b| {
            let (x, y) = (b.constant(Type::I32, 5), b.constant(Type::I64, 5));
            b.inst(Op::Int(IntBinary::Add), &[x, y], Type::I32);
            b.terminate(Terminator::Return(vec![]));
        });
        let error = verify(&program).unwrap_err();
        assert!(error.message.contains("(T, T) → T"), "{error}");
    }

    #[test]
    fn a_use_before_its_definition_is_found() {
        let program = program(|b| {
            let next = b.block();
            b.terminate(Terminator::Jump(Target::new(next)));
            b.switch_to(next);
            let late = b.constant(Type::I32, 1);
            b.terminate(Terminator::Return(vec![]));
            b.switch_to(Function::ENTRY);
            b.inst(Op::IntUnary(IntUnary::Neg), &[late], Type::I32);
        });
        let error = verify(&program).unwrap_err();
        assert!(error.message.contains("not defined"), "{error}");
    }
}
