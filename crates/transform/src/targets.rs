//! Calls through pointers to functions that are known.
//!
//! A pointer to a function is a token, and a program has all functions whose token its module takes. So what a call through a pointer may
//! lead to is known: what the pointer was computed from, or all functions with its signature where it comes from memory.
//! [`resolve`] has a call name the one function that it can lead to, and [`spread`] makes of a call a choice among several, so
//! that what is called can be inlined: functions that end threads or in which threads wait for others have to be in the kernel's own body.

use std::collections::{BTreeSet, HashMap};

use simt_ir::{
    Block, Cfg, FuncRef, Function, Inst, InstData, IntBinary, IntCmp, IntUnary, Op, Program, Refusal, Target,
    Terminator, Type, Value,
};

/// After: a call through a pointer that leads to one function, whatever happens, is a call of that.
pub fn resolve(program: &mut Program) {
    if !program.functions.iter().any(|func| !indirect_calls(func).is_empty()) {
        return;
    }
    let tokens = Tokens::find(program);
    for index in 0..program.functions.len() {
        for inst in indirect_calls(&program.functions[index]) {
            let Targets { functions, others: false } = tokens.targets(program, index, inst) else { continue };
            if let [only] = functions[..] {
                let data = program.functions[index].inst_mut(inst);
                data.op = Op::Call(only);
                data.args.remove(0);
            }
        }
    }
}

/// After: a call through a pointer that may lead to one of the functions in `chosen` is a choice among calls, of these and of the other functions that
/// it may lead to. A pointer to none of them is refused there.
pub fn spread(program: &mut Program, chosen: &[bool]) {
    let tokens = Tokens::find(program);
    for index in 0..program.functions.len() {
        for inst in indirect_calls(&program.functions[index]) {
            let targets = tokens.targets(program, index, inst);
            if targets.functions.iter().any(|func| chosen[func.index()]) {
                let known =
                    targets.functions.iter().map(|func| (*func, program.function(*func).token)).collect();
                choose(&mut program.functions[index], inst, known, targets.others);
            }
        }
    }
}

/// For each function, those that its calls may lead to.
pub fn callees(program: &Program) -> Vec<Vec<FuncRef>> {
    let tokens = Tokens::find(program);
    let of = |index: usize| {
        let func = &program.functions[index];
        let mut callees = BTreeSet::new();
        for inst in reached(func) {
            match func.inst(inst).op {
                Op::Call(callee) => callees.extend([callee]),
                Op::CallIndirect(_) => callees.extend(tokens.targets(program, index, inst).functions),
                _ => {}
            }
        }
        callees.into_iter().collect()
    };
    (0..program.functions.len()).map(of).collect()
}

/// Where a call may lead.
struct Targets {
    functions: Vec<FuncRef>,
    /// The pointer may be one to none of them.
    others: bool,
}

/// What is known of a pointer.
#[derive(Clone, Default, PartialEq)]
enum Token {
    /// One to any of these functions, or, if `others`, to none.
    Of { functions: BTreeSet<FuncRef>, others: bool },
    /// It may be one to any function.
    #[default]
    Any,
}

impl Token {
    /// Of what is never computed.
    const NEVER: Token = Token::Of { functions: BTreeSet::new(), others: false };

    /// Adds what it may be as well. Whether that is new.
    fn add(&mut self, other: &Token) -> bool {
        let (Token::Of { functions, others }, other) = (&mut *self, other) else { return false };
        match other {
            Token::Any => {
                *self = Token::Any;
                true
            }
            Token::Of { functions: more, others: also } => {
                let before = (functions.len(), *others);
                functions.extend(more);
                *others |= also;
                before != (functions.len(), *others)
            }
        }
    }
}

/// What is known of the pointers in a program.
struct Tokens {
    /// Of each function's values.
    values: Vec<HashMap<Value, Token>>,
    /// Of its results.
    results: Vec<Vec<Token>>,
}

impl Tokens {
    fn find(program: &Program) -> Tokens {
        let of_params = |func: &Function| -> HashMap<Value, Token> {
            // Who has a pointer to a function may pass it anything.
            let known = if func.token == 0 { Token::NEVER } else { Token::Any };
            func.block(Function::ENTRY).params.iter().map(|param| (*param, known.clone())).collect()
        };
        let never = |func: &Function| func.signature.results.iter().map(|_| Token::NEVER).collect::<Vec<_>>();
        let mut tokens = Tokens {
            values: program.functions.iter().map(of_params).collect(),
            results: program.functions.iter().map(never).collect(),
        };
        while (0..program.functions.len())
            .fold(false, |changed, index| tokens.visit(program, index) | changed)
        {}
        tokens
    }

    fn of(&self, index: usize, value: Value) -> Token {
        self.values[index].get(&value).cloned().unwrap_or(Token::NEVER)
    }

    /// Finds out what follows in a function from what is known. Whether that is new.
    fn visit(&mut self, program: &Program, index: usize) -> bool {
        let func = &program.functions[index];
        let mut changed = false;
        for &block in Cfg::new(func).order() {
            let data = func.block(block);
            for inst in &data.insts {
                let data = func.inst(*inst);
                if let Op::Call(callee) = data.op {
                    for (param, arg) in
                        program.function(callee).block(Function::ENTRY).params.iter().zip(&data.args)
                    {
                        let token = self.of(index, *arg);
                        changed |=
                            self.values[callee.index()].entry(*param).or_insert(Token::NEVER).add(&token);
                    }
                }
                for (at, result) in data.results.iter().enumerate() {
                    let token = self.result(program, index, data, at);
                    changed |= self.values[index].entry(*result).or_insert(Token::NEVER).add(&token);
                }
            }
            for target in data.term.targets() {
                for (param, arg) in func.block(target.block).params.iter().zip(&target.args) {
                    let token = self.of(index, *arg);
                    changed |= self.values[index].entry(*param).or_insert(Token::NEVER).add(&token);
                }
            }
            if let Terminator::Return(values) = &data.term {
                for (at, value) in values.iter().enumerate() {
                    let token = self.of(index, *value);
                    changed |= self.results[index][at].add(&token);
                }
            }
        }
        changed
    }

    fn result(&self, program: &Program, index: usize, data: &InstData, at: usize) -> Token {
        match data.op {
            Op::FuncToken(func) => Token::Of { functions: BTreeSet::from([func]), others: false },
            Op::Const(bits) => {
                let meant = (0..).zip(&program.functions).filter(|(_, func)| bits != 0 && func.token == bits);
                let functions: BTreeSet<FuncRef> = meant.map(|(number, _)| FuncRef(number)).collect();
                let others = functions.is_empty();
                Token::Of { functions, others }
            }
            Op::Select => {
                let mut token = self.of(index, data.args[1]);
                token.add(&self.of(index, data.args[2]));
                token
            }
            Op::Call(callee) => self.results[callee.index()][at].clone(),
            _ => Token::Any,
        }
    }

    /// Where a call through a pointer may lead.
    fn targets(&self, program: &Program, index: usize, inst: Inst) -> Targets {
        let data = program.functions[index].inst(inst);
        let Op::CallIndirect(sig) = data.op else {
            return Targets { functions: Vec::new(), others: true };
        };
        let signature = &program.signatures[sig.index()];
        let fits = |func: &FuncRef| {
            let func = program.function(*func);
            func.token != 0 && func.signature == *signature
        };
        match self.of(index, data.args[0]) {
            Token::Of { functions, others } => {
                let count = functions.len();
                let functions: Vec<FuncRef> = functions.into_iter().filter(fits).collect();
                Targets { others: others || functions.len() < count, functions }
            }
            Token::Any => {
                let all = (0..program.functions.len() as u32).map(FuncRef);
                Targets { functions: all.filter(fits).collect(), others: true }
            }
        }
    }
}

/// Instructions that control can come to.
fn reached(func: &Function) -> Vec<Inst> {
    Cfg::new(func).order().iter().flat_map(|block| func.block(*block).insts.clone()).collect()
}

fn indirect_calls(func: &Function) -> Vec<Inst> {
    let is_one = |inst: &Inst| matches!(func.inst(*inst).op, Op::CallIndirect(_));
    // Most programs have none.
    let mut all = func.blocks().flat_map(|block| &func.block(block).insts);
    if all.any(is_one) { reached(func).into_iter().filter(is_one).collect() } else { Vec::new() }
}

/// Makes a call through a pointer a choice among these functions, which their tokens tell.
fn choose(func: &mut Function, inst: Inst, known: Vec<(FuncRef, u64)>, others: bool) {
    let place = func.blocks().find_map(|block| {
        let at = func.block(block).insts.iter().position(|other| *other == inst)?;
        Some((block, at))
    });
    let Some((block, at)) = place else { return };
    let after = func.split_block(block, at + 1);
    func.block_mut(block).insts.pop();
    let InstData { args, results, loc, .. } = func.inst(inst).clone();
    let types: Vec<Type> = results.iter().map(|result| func.ty(*result)).collect();
    let new: HashMap<Value, Value> =
        results.iter().zip(&types).map(|(result, ty)| (*result, func.add_param(after, *ty))).collect();
    func.map_uses(|value| new.get(&value).copied().unwrap_or(value));
    let args: Vec<Value> = args.iter().map(|arg| new.get(arg).copied().unwrap_or(*arg)).collect();

    let mut append = |op: Op, args: Vec<Value>, ty: Type| func.append_value(block, op, args, ty, loc);
    let mut tests = Vec::new();
    for (_, token) in &known {
        let token = append(Op::Const(*token), vec![], Type::I64);
        tests.push(append(Op::IntCmp(IntCmp::Eq), vec![args[0], token], Type::Pred));
    }
    if others || known.is_empty() {
        let mut any = append(Op::Const(0), vec![], Type::Pred);
        for test in &tests {
            any = append(Op::Int(IntBinary::Or), vec![any, *test], Type::Pred);
        }
        let none = append(Op::IntUnary(IntUnary::Not), vec![any], Type::Pred);
        func.append(block, Op::Refuse(Refusal::NoFunction), vec![none, args[0]], &[], loc);
    }
    let mut here = block;
    for (number, (callee, _)) in known.iter().enumerate() {
        let last = number + 1 == known.len();
        let own = if last { here } else { func.add_block() };
        let call = func.append(own, Op::Call(*callee), args[1..].to_vec(), &types, loc);
        let results = func.inst(call).results.clone();
        end(func, own, Terminator::Jump(Target { block: after, args: results }), loc);
        if !last {
            let next = func.add_block();
            let (then, otherwise) = (Target::new(own), Target::new(next));
            let term = Terminator::Branch { cond: tests[number], then, otherwise, uniform: false };
            end(func, here, term, loc);
            here = next;
        }
    }
    if known.is_empty() {
        let results =
            types.iter().map(|ty| func.append_value(block, Op::Const(0), vec![], *ty, loc)).collect();
        end(func, block, Terminator::Jump(Target { block: after, args: results }), loc);
    }
}

fn end(func: &mut Function, block: Block, term: Terminator, loc: simt_ir::SourceLoc) {
    let data = func.block_mut(block);
    (data.term, data.term_loc) = (term, loc);
}
