//! Inlining of device functions.
//!
//! After [`inline_calls`] the only direct calls left are to functions that may be on the stack already (those that recurse, or that
//! indirect calls can reach again), and to large ones that are called more than once and could be functions of their own: they
//! neither end threads nor wait for other threads. Where what is left cannot be compiled so, [`inline_all_that_meet`] leaves nothing of that kind but
//! what is to become parts of the kernel.

use std::collections::{BTreeSet, HashMap};

use simt_ir::{
    Block, Cfg, FuncRef, Function, Inst, IntBinary, Op, Order, Program, Target, Terminator, Type, Value,
};

use crate::targets;

/// A function grows no larger than this by inlining.
const MAX_INSTRUCTIONS: usize = 200_000;

/// Nor one in which what pointers lead to is spread, which is compiled only if nothing else can be done.
const MAX_SPREAD: usize = 30_000;

/// A function of more instructions is inlined only where it must be, or where it is called once.
const LARGE: usize = 300;

/// Likewise where functions become parts of the kernel's body: calls of them cost little more than what they keep on the stack.
const SMALL: usize = 40;

/// One of more instructions is not inlined where it is called once either: what LLVM does with a function takes more than in proportion to its size.
const HUGE: usize = 1500;

/// Inlines every call that can be, in all functions. Answers whether the size limit allowed it.
pub fn inline_calls(program: &mut Program) -> bool {
    let must = with_callers(program, program.functions.iter().map(ends_or_waits).collect());
    let kept = kept_calls(program, &must, LARGE);
    inline_all(program, &kept, MAX_INSTRUCTIONS)
}

/// Prepares that the kernel's own body does all that [`belongs_in_kernel`]: calls through pointers to such functions are calls by name, and all calls
/// of them that can be are inlined. Answers which are left, those that recurse among them, to become parts of the kernel
/// ([`routines`](crate::routines)); nothing if that is too large.
pub fn inline_all_that_meet(program: &mut Program) -> Option<Vec<FuncRef>> {
    let own = program.functions.iter().map(belongs_in_kernel).collect();
    let must = with_callers(program, own);
    targets::spread(program, &must);
    let mut inlined = program.clone();
    let recursive = recursive_functions(program);
    let recurses = (0..must.len()).any(|at| recursive[at] && must[at]);
    if !recurses && inline_all(&mut inlined, &kept_calls(program, &must, LARGE), MAX_SPREAD) {
        *program = inlined;
        return Some(Vec::new());
    }
    // Large functions that are called from several places need not be there several times either.
    if !inline_all(program, &kept_calls(program, &[], SMALL), MAX_SPREAD) {
        return None;
    }
    let routines = called(program, &must);
    (size(program, &routines) <= MAX_SPREAD).then_some(routines)
}

/// Those of some functions that the kernel calls, or one of them.
fn called(program: &Program, chosen: &[bool]) -> Vec<FuncRef> {
    let (mut found, mut work) = (BTreeSet::new(), vec![FuncRef(0)]);
    while let Some(at) = work.pop() {
        let callees = direct_calls(program.function(at)).filter(|callee| chosen[callee.index()]);
        work.extend(callees.filter(|callee| found.insert(*callee)));
    }
    found.into_iter().collect()
}

/// Instructions of a kernel and the functions that become parts of it.
pub fn size(program: &Program, routines: &[FuncRef]) -> usize {
    let of = |func: &Function| func.blocks().map(|block| func.block(block).insts.len()).sum::<usize>();
    of(program.kernel()) + routines.iter().map(|routine| of(program.function(*routine))).sum::<usize>()
}

/// Inlines calls of all functions but those that are kept. Answers whether the size limit allowed it.
fn inline_all(program: &mut Program, kept: &[bool], limit: usize) -> bool {
    let callees = targets::callees(program);
    let mut done = vec![false; program.functions.len()];
    let mut order = Vec::new();
    callees_first(&callees, 0, &mut done, &mut order);
    for index in order {
        let mut caller = std::mem::take(&mut program.functions[index]);
        let own_frame = caller.local_bytes;
        while let Some((block, at, callee)) = next_call(&caller, kept) {
            inline_call(&mut caller, block, at, &program.functions[callee.index()], own_frame);
            if caller.inst_count() > limit {
                program.functions[index] = caller;
                return false;
            }
        }
        program.functions[index] = caller;
    }
    true
}

/// Functions that stay functions of their own, unless they must not.
fn kept_calls(program: &Program, must: &[bool], large: usize) -> Vec<bool> {
    let recursive = recursive_functions(program);
    let mut calls = vec![0usize; program.functions.len()];
    for func in &program.functions {
        for callee in direct_calls(func) {
            calls[callee.index()] += 1;
        }
    }
    (0..program.functions.len())
        .map(|at| {
            let size: usize = {
                let func = &program.functions[at];
                func.blocks().map(|block| func.block(block).insts.len()).sum()
            };
            let must = must.get(at).is_some_and(|must| *must);
            recursive[at] || !must && (size > large && calls[at] > 1 || size > HUGE)
        })
        .collect()
}

/// Whether calls are left in a program whose calls have been inlined.
pub fn has_calls(program: &Program) -> bool {
    let func = program.kernel();
    let mut insts = func.blocks().flat_map(|block| &func.block(block).insts);
    insts.any(|inst| matches!(func.inst(*inst).op, Op::Call(_) | Op::CallIndirect(_)))
}

/// These functions, and all whose calls may lead to one of them.
fn with_callers(program: &Program, mut these: Vec<bool>) -> Vec<bool> {
    let callees = targets::callees(program);
    let mut changed = true;
    while changed {
        changed = false;
        for (index, callees) in callees.iter().enumerate() {
            if !these[index] && callees.iter().any(|callee| these[callee.index()]) {
                these[index] = true;
                changed = true;
            }
        }
    }
    these
}

/// The callees of a function's direct calls, where control can come to them.
fn direct_calls(func: &Function) -> impl Iterator<Item = FuncRef> + '_ {
    let reached = Cfg::new(func).order().to_vec();
    reached.into_iter().flat_map(|block| &func.block(block).insts).filter_map(|inst| {
        match func.inst(*inst).op {
            Op::Call(callee) => Some(callee),
            _ => None,
        }
    })
}

/// Whether a function itself ends threads, meets other threads at a barrier, or looks at memory in a way that waiting may be made of.
fn ends_or_waits(func: &Function) -> bool {
    func.blocks().any(|block| {
        let data = func.block(block);
        let waits = |op: &Op| match op {
            Op::Barrier { .. } | Op::ClusterBarrier(_) | Op::MbarrierArrive { .. } => true,
            Op::AtomicCas(_) | Op::Atomic(..) => true,
            Op::Load(access) => access.order != Order::Weak,
            _ => false,
        };
        matches!(data.term, Terminator::Exit) || data.insts.iter().any(|inst| waits(&func.inst(*inst).op))
    })
}

/// Whether it could be of consequence that a function is not in the kernel's own body: it ends threads, or threads may wait for each other in it.
pub fn belongs_in_kernel(func: &Function) -> bool {
    let meets = |op: &Op| op.is_convergent() && !matches!(op, Op::Call(_) | Op::CallIndirect(_));
    let mut insts = func.blocks().flat_map(|block| &func.block(block).insts);
    ends_or_waits(func) || insts.any(|inst| meets(&func.inst(*inst).op))
}

/// Bytes of local memory along the deepest chain of calls from the kernel, with `call_bytes` for each call, and whether recursion, indirect
/// calls or allocations on the stack make it unbounded.
pub fn stack_need(program: &Program, call_bytes: u32) -> (u64, bool) {
    let recursive = recursive_functions(program);
    let unbounded = (0..program.functions.len()).any(|at| recursive[at])
        || program.functions.iter().any(|func| {
            let mut insts = func.blocks().flat_map(|block| &func.block(block).insts);
            insts.any(|inst| matches!(func.inst(*inst).op, Op::CallIndirect(_) | Op::StackRestore))
        });
    let frames =
        |func: &Function| u64::from(func.local_bytes) + u64::from(func.local_align) + u64::from(call_bytes);
    if unbounded {
        return (program.functions.iter().map(frames).sum(), true);
    }
    let mut done = vec![false; program.functions.len()];
    let mut order = Vec::new();
    callees_first(&targets::callees(program), 0, &mut done, &mut order);
    let mut need = vec![0u64; program.functions.len()];
    for index in order {
        let func = &program.functions[index];
        need[index] = u64::from(func.local_bytes)
            + direct_calls(func)
                .map(|callee| {
                    let callee_func = program.function(callee);
                    need[callee.index()] + u64::from(callee_func.local_align) + u64::from(call_bytes)
                })
                .max()
                .unwrap_or(0);
    }
    (need[0], false)
}

/// Functions that their calls can lead back to.
pub fn recursive_functions(program: &Program) -> Vec<bool> {
    let callees = targets::callees(program);
    (0..program.functions.len())
        .map(|start| {
            let mut seen = vec![false; callees.len()];
            let mut work = callees[start].clone();
            while let Some(at) = work.pop() {
                if !std::mem::replace(&mut seen[at.index()], true) {
                    work.extend_from_slice(&callees[at.index()]);
                }
            }
            seen[start]
        })
        .collect()
}

/// Puts a function, and all that its calls lead to, in an order in which callees come before their callers.
fn callees_first(callees: &[Vec<FuncRef>], index: usize, done: &mut [bool], order: &mut Vec<usize>) {
    if std::mem::replace(&mut done[index], true) {
        return;
    }
    // Functions that are open, and how many of their callees have been seen to: a program's calls may go deeper than the host's stack.
    let mut open = vec![(index, 0)];
    while let Some((at, seen)) = open.last_mut() {
        let Some(callee) = callees[*at].get(*seen).map(|callee| callee.index()) else {
            order.push(*at);
            open.pop();
            continue;
        };
        *seen += 1;
        if !std::mem::replace(&mut done[callee], true) {
            open.push((callee, 0));
        }
    }
}

fn next_call(func: &Function, kept: &[bool]) -> Option<(Block, usize, FuncRef)> {
    for &block in Cfg::new(func).order() {
        for (at, inst) in func.block(block).insts.iter().enumerate() {
            if let Op::Call(callee) = func.inst(*inst).op
                && !kept[callee.index()]
            {
                return Some((block, at, callee));
            }
        }
    }
    None
}

fn inline_call(caller: &mut Function, block: Block, at: usize, callee: &Function, own_frame: u32) {
    let call = caller.block(block).insts[at];
    let after = caller.split_block(block, at + 1);
    caller.block_mut(block).insts.pop();
    let frame = own_frame.next_multiple_of(callee.local_align.max(1));
    caller.local_bytes = caller.local_bytes.max(frame + callee.local_bytes);
    caller.local_align = caller.local_align.max(callee.local_align);

    let call = caller.inst(call).clone();
    if moves_stack(callee) {
        // What the callee allocates is free again when it returns.
        let saved = caller.append(block, Op::StackSave, vec![], &[Type::I64], call.loc);
        let saved = caller.inst(saved).results.clone();
        let restored = caller.make_inst(Op::StackRestore, saved, &[], call.loc);
        caller.block_mut(after).insts.insert(0, restored);
    }
    let results: HashMap<Value, Value> = call
        .results
        .iter()
        .map(|result| {
            let ty = caller.ty(*result);
            (*result, caller.add_param(after, ty))
        })
        .collect();
    caller.map_uses(|value| results.get(&value).copied().unwrap_or(value));
    let entry = Copy { caller, callee, values: HashMap::new(), frame, after }.blocks();
    let data = caller.block_mut(block);
    data.term = Terminator::Jump(Target { block: entry, args: call.args });
    data.term_loc = call.loc;
}

/// Whether a function allocates on the stack.
fn moves_stack(func: &Function) -> bool {
    let mut insts = func.blocks().flat_map(|block| &func.block(block).insts);
    insts.any(|inst| func.inst(*inst).op == Op::StackRestore)
}

struct Copy<'a> {
    caller: &'a mut Function,
    callee: &'a Function,
    values: HashMap<Value, Value>,
    frame: u32,
    after: Block,
}

impl Copy<'_> {
    /// Copies the callee's blocks and returns its entry.
    fn blocks(mut self) -> Block {
        let cfg = Cfg::new(self.callee);
        let mut blocks: HashMap<Block, Block> = HashMap::new();
        for &old in cfg.order() {
            let new = self.caller.add_block();
            blocks.insert(old, new);
            for &param in &self.callee.block(old).params {
                let value = self.caller.add_param(new, self.callee.ty(param));
                self.values.insert(param, value);
            }
        }
        // In reverse post-order a definition comes before its uses, but for block parameters, which are there already.
        for &old in cfg.order() {
            for inst in &self.callee.block(old).insts {
                self.inst(blocks[&old], *inst);
            }
        }
        for &old in cfg.order() {
            let mut term = self.callee.block(old).term.clone();
            term.map_uses(|value| self.values[&value]);
            for target in term.targets_mut() {
                target.block = blocks[&target.block];
            }
            if let Terminator::Return(args) = term {
                term = Terminator::Jump(Target { block: self.after, args });
            }
            let data = self.caller.block_mut(blocks[&old]);
            data.term = term;
            data.term_loc = self.callee.block(old).term_loc;
        }
        blocks[&Function::ENTRY]
    }

    fn inst(&mut self, block: Block, inst: Inst) {
        let data = self.callee.inst(inst);
        let args = data.args.iter().map(|arg| self.values[arg]).collect();
        let types: Vec<Type> = data.results.iter().map(|result| self.callee.ty(*result)).collect();
        let new = self.caller.append(block, data.op, args, &types, data.loc);
        let mut results = self.caller.inst(new).results.clone();
        if data.op == Op::LocalBase && self.frame != 0 {
            // The callee's frame lies above the caller's own variables.
            let mut append = |op, args| self.caller.append_value(block, op, args, types[0], data.loc);
            let offset = append(Op::Const(self.frame.into()), vec![]);
            results = vec![append(Op::Int(IntBinary::Add), vec![results[0], offset])];
        }
        self.values.extend(data.results.iter().copied().zip(results));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simt_ir::{FunctionBuilder, Signature};

    #[test]
    fn a_call_becomes_the_body_with_its_frame_above() {
        let mut b =
            FunctionBuilder::new("g", Signature { params: vec![Type::I64], results: vec![Type::I64] });
        let base = b.inst(Op::LocalBase, &[], Type::I64);
        let x = b.param(0);
        let sum = b.inst(Op::Int(IntBinary::Add), &[base, x], Type::I64);
        b.terminate(Terminator::Return(vec![sum]));
        let mut callee = b.finish();
        (callee.local_bytes, callee.local_align) = (24, 16);

        let mut b = FunctionBuilder::new("k", Signature::default());
        let seven = b.constant(Type::I64, 7);
        b.insts(Op::Call(FuncRef(1)), &[seven], &[Type::I64]);
        b.terminate(Terminator::Exit);
        let mut kernel = b.finish();
        kernel.local_bytes = 4;
        let mut program = Program { functions: vec![kernel, callee], ..Program::default() };

        assert!(inline_calls(&mut program));
        let kernel = program.kernel();
        assert_eq!(kernel.local_bytes, 16 + 24);
        let calls = kernel.blocks().flat_map(|block| kernel.block(block).insts.clone());
        assert!(calls.map(|inst| kernel.inst(inst).op).all(|op| !matches!(op, Op::Call(_))));
    }

    #[test]
    fn calls_may_go_deeper_than_the_stack_of_the_host() {
        let count = 300_000;
        let callees: Vec<Vec<FuncRef>> =
            (1..=count).map(|next| if next < count { vec![FuncRef(next)] } else { vec![] }).collect();
        let (mut done, mut order) = (vec![false; callees.len()], Vec::new());
        callees_first(&callees, 0, &mut done, &mut order);
        assert!(order.iter().rev().copied().eq(0..callees.len()));
    }

    #[test]
    fn a_large_function_called_twice_stays_one() {
        let program = |length: usize, ends: bool| {
            let mut b =
                FunctionBuilder::new("g", Signature { params: vec![Type::I32], results: vec![Type::I32] });
            let mut x = b.param(0);
            for _ in 0..length {
                x = b.inst(Op::Int(IntBinary::Mul), &[x, x], Type::I32);
            }
            b.terminate(if ends { Terminator::Exit } else { Terminator::Return(vec![x]) });
            let mut callee = b.finish();
            (callee.local_bytes, callee.local_align) = (40, 8);
            let mut b = FunctionBuilder::new("k", Signature::default());
            let one = b.constant(Type::I32, 1);
            let x = b.inst(Op::Call(FuncRef(1)), &[one], Type::I32);
            b.insts(Op::Call(FuncRef(1)), &[x], &[Type::I32]);
            b.terminate(Terminator::Exit);
            let mut program = Program { functions: vec![b.finish(), callee], ..Program::default() };
            assert!(inline_calls(&mut program));
            program
        };
        let calls = |program: &Program| direct_calls(program.kernel()).count();
        let large = program(LARGE + 1, false);
        assert_eq!(calls(&large), 2);
        assert_eq!(stack_need(&large, 16), (40 + 8 + 16, false));
        assert_eq!(calls(&program(10, false)), 0);
        assert_eq!(calls(&program(LARGE + 1, true)), 0, "what ends threads must be in the kernel");
    }

    #[test]
    fn recursion_stays_a_call() {
        let mut b = FunctionBuilder::new("k", Signature::default());
        b.insts(Op::Call(FuncRef(1)), &[], &[]);
        b.terminate(Terminator::Exit);
        let kernel = b.finish();
        let mut b = FunctionBuilder::new("g", Signature::default());
        b.insts(Op::Call(FuncRef(1)), &[], &[]);
        b.terminate(Terminator::Return(vec![]));
        let mut program = Program { functions: vec![kernel, b.finish()], ..Program::default() };
        assert_eq!(recursive_functions(&program), [false, true]);
        assert!(inline_calls(&mut program));
        let entry = program.kernel().block(Function::ENTRY);
        assert_eq!(program.kernel().inst(entry.insts[0]).op, Op::Call(FuncRef(1)));
    }
}
