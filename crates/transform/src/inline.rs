//! Inlining of device functions.
//!
//! After [`inline_calls`] the only direct calls left are to functions that may be on the stack already: those that recurse, or that
//! indirect calls can reach again.

use std::collections::HashMap;

use simt_ir::{Block, Cfg, FuncRef, Function, Inst, IntBinary, Op, Program, Target, Terminator, Type, Value};

/// A program grows no larger than this by inlining.
const MAX_INSTRUCTIONS: usize = 400_000;

/// Inlines every call that can be, in all functions. Answers whether the size limit allowed it.
pub fn inline_calls(program: &mut Program) -> bool {
    let recursive = recursive_functions(program);
    let mut done = vec![false; program.functions.len()];
    let mut order = Vec::new();
    for index in 0..program.functions.len() {
        callees_first(program, index, &mut done, &mut order);
    }
    for index in order {
        let mut caller = std::mem::take(&mut program.functions[index]);
        let own_frame = caller.local_bytes;
        while let Some((block, at, callee)) = next_call(&caller, &recursive) {
            inline_call(&mut caller, block, at, &program.functions[callee.index()], own_frame);
            if caller.inst_count() > MAX_INSTRUCTIONS {
                program.functions[index] = caller;
                return false;
            }
        }
        program.functions[index] = caller;
    }
    true
}

/// Functions that direct calls, or indirect calls of any function whose token is taken, can lead back to.
pub fn recursive_functions(program: &Program) -> Vec<bool> {
    let callees: Vec<Vec<usize>> = program.functions.iter().map(|f| callees(program, f)).collect();
    (0..program.functions.len())
        .map(|start| {
            let mut seen = vec![false; callees.len()];
            let mut work = callees[start].clone();
            while let Some(at) = work.pop() {
                if !std::mem::replace(&mut seen[at], true) {
                    work.extend_from_slice(&callees[at]);
                }
            }
            seen[start]
        })
        .collect()
}

fn callees(program: &Program, func: &Function) -> Vec<usize> {
    let mut callees = Vec::new();
    for &block in Cfg::new(func).order() {
        for inst in &func.block(block).insts {
            match func.inst(*inst).op {
                Op::Call(callee) => callees.push(callee.index()),
                Op::CallIndirect(_) => {
                    callees
                        .extend((0..program.functions.len()).filter(|at| program.functions[*at].token != 0));
                }
                _ => {}
            }
        }
    }
    callees
}

fn callees_first(program: &Program, index: usize, done: &mut [bool], order: &mut Vec<usize>) {
    // Depth is bounded by the number of functions: each is entered once.
    if std::mem::replace(&mut done[index], true) {
        return;
    }
    for callee in callees(program, &program.functions[index]) {
        callees_first(program, callee, done, order);
    }
    order.push(index);
}

fn next_call(func: &Function, recursive: &[bool]) -> Option<(Block, usize, FuncRef)> {
    for &block in Cfg::new(func).order() {
        for (at, inst) in func.block(block).insts.iter().enumerate() {
            if let Op::Call(callee) = func.inst(*inst).op
                && !recursive[callee.index()]
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
            let offset = self.caller.append(block, Op::Const(self.frame.into()), vec![], &types, data.loc);
            let offset = self.caller.inst(offset).results[0];
            let sum = self.caller.append(
                block,
                Op::Int(IntBinary::Add),
                vec![results[0], offset],
                &types,
                data.loc,
            );
            results = self.caller.inst(sum).results.clone();
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
