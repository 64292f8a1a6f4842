//! The reference back end: slow, obvious, and independent of the compiler.
//!
//! Every thread of a block is interpreted by itself ([`thread`]), so divergence needs no masks: threads only meet where an
//! operation says so. [`block`] runs the threads of a block in turn and lets them meet at warp operations ([`warp`])
//! and barriers, [`cluster`] the blocks of a cluster. What it computes is what generated code must compute.

mod block;
mod cluster;
mod memory;
mod texture;
mod thread;
mod warp;

use std::sync::Arc;

use kernel_abi::{
    BlockFrame, CompileError, CompileRequest, CompiledKernel, EntryKind, Fault, KernelBackend, KernelInfo,
};
use simt_ir::{Approximations, Op, Program};

/// Runs every kernel by interpretation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interpreter {
    /// Instructions a block may execute in all its threads before it is given up as a deadlock; none means no end. For replays of
    /// launches that have failed already, which must not hang.
    pub budget: Option<u64>,
    /// What `.approx` instructions become.
    pub approximations: Approximations,
}

impl KernelBackend for Interpreter {
    fn name(&self) -> &'static str {
        "interp"
    }

    fn compile(&self, request: &CompileRequest<'_>) -> Result<Arc<dyn CompiledKernel>, CompileError> {
        let mut kernel = InterpretedKernel::new((request.program)(self.approximations)?);
        kernel.budget = self.budget;
        Ok(Arc::new(kernel))
    }

    fn replayer(&self) -> Option<Arc<dyn KernelBackend>> {
        // A second or two of interpretation.
        Some(Arc::new(Interpreter { budget: Some(20_000_000), ..*self }))
    }
}

/// A kernel to interpret.
pub struct InterpretedKernel {
    program: Arc<Program>,
    info: KernelInfo,
    budget: Option<u64>,
}

impl InterpretedKernel {
    /// Prepares a verified program.
    pub fn new(program: Arc<Program>) -> InterpretedKernel {
        let info = info(&program);
        InterpretedKernel { program, info, budget: None }
    }
}

impl CompiledKernel for InterpretedKernel {
    fn info(&self) -> &KernelInfo {
        &self.info
    }

    unsafe fn run(&self, frame: &mut BlockFrame, first: u64, count: u64) -> Result<(), Fault> {
        // SAFETY: the launch outlives the run, by the contract of `CompiledKernel::run`.
        let launch = unsafe { &*frame.launch };
        for index in first..first.saturating_add(count) {
            frame.ctaid = launch.ctaid(index);
            // SAFETY: as promised to us, for a block within the grid.
            unsafe { cluster::run(&self.program, std::slice::from_mut(frame), self.budget)? };
        }
        Ok(())
    }

    unsafe fn run_clusters(&self, frames: &mut [BlockFrame], first: u64, count: u64) -> Result<(), Fault> {
        for number in first..first.saturating_add(count) {
            for (rank, frame) in (0..).zip(frames.iter_mut()) {
                // SAFETY: as above.
                frame.ctaid = unsafe { &*frame.launch }.ctaid_of_rank(number, rank);
            }
            // SAFETY: as promised to us, for a cluster within the grid.
            unsafe { cluster::run(&self.program, frames, self.budget)? };
        }
        Ok(())
    }

    fn takes_turns(&self) -> bool {
        true
    }

    unsafe fn run_in_turns(&self, frames: &mut [BlockFrame], first: u64) -> Result<(), Fault> {
        for (block, frame) in (first..).zip(frames.iter_mut()) {
            // SAFETY: as above.
            frame.ctaid = unsafe { &*frame.launch }.ctaid(block);
        }
        // SAFETY: as promised to us, for blocks within the grid.
        unsafe { cluster::run(&self.program, frames, self.budget) }
    }
}

/// What the device must provide for a program, as far as it does not depend on how it is compiled.
fn info(program: &Program) -> KernelInfo {
    let (local_bytes, unbounded_stack) = stack_need(program);
    KernelInfo {
        param_bytes: program.param_bytes,
        shared_bytes: program.shared_bytes,
        shared_align: program.shared_align,
        local_bytes,
        stack_limits: unbounded_stack.into(),
        stack_bytes: 0,
        state_bytes: 0,
        globals: program.globals.clone(),
        flush_subnormals: false,
        waits: program.functions.iter().any(|function| function.sees_others()),
        may_wait: false,
        gang: 1,
        retraced: false,
        tiled: false,
        walks: false,
        turned: 0,
        aligned: Vec::new(),
        entry: EntryKind::Blocks,
    }
}

/// Bytes of local memory along the deepest chain of calls, and whether recursion or indirect calls make it unbounded.
fn stack_need(program: &Program) -> (u32, bool) {
    // For each function: not visited, on the current path, or done with its need.
    #[derive(Clone, Copy)]
    enum Mark {
        New,
        Open,
        Done(u32),
    }
    // A function whose callees are being looked at.
    struct Frame {
        index: usize,
        callees: Vec<usize>,
        deepest: u32,
    }
    struct Walk<'a> {
        program: &'a Program,
        marks: Vec<Mark>,
        unbounded: bool,
    }
    impl Walk<'_> {
        fn enter(&mut self, index: usize) -> Frame {
            self.marks[index] = Mark::Open;
            let func = &self.program.functions[index];
            let mut frame = Frame { index, callees: Vec::new(), deepest: 0 };
            for inst in func.blocks().flat_map(|block| &func.block(block).insts) {
                match func.inst(*inst).op {
                    Op::Call(callee) => frame.callees.push(callee.index()),
                    Op::CallIndirect(_) | Op::StackRestore => self.unbounded = true,
                    _ => {}
                }
            }
            frame
        }

        /// Not by calls of its own: a program's may go deeper than the host's stack.
        fn need(&mut self, index: usize) -> u32 {
            if let Mark::Done(bytes) = self.marks[index] {
                return bytes;
            }
            let mut open = vec![self.enter(index)];
            let mut need = 0;
            while let Some(frame) = open.last_mut() {
                if let Some(callee) = frame.callees.pop() {
                    match self.marks[callee] {
                        Mark::Done(bytes) => frame.deepest = frame.deepest.max(bytes),
                        Mark::Open => self.unbounded = true,
                        Mark::New => open.push(self.enter(callee)),
                    }
                    continue;
                }
                let func = &self.program.functions[frame.index];
                let own =
                    func.local_bytes.saturating_add(func.local_align).saturating_add(kernel_abi::CALL_BYTES);
                need = frame.deepest.saturating_add(own);
                self.marks[frame.index] = Mark::Done(need);
                open.pop();
                if let Some(caller) = open.last_mut() {
                    caller.deepest = caller.deepest.max(need);
                }
            }
            need
        }
    }
    let mut walk = Walk { program, marks: vec![Mark::New; program.functions.len()], unbounded: false };
    let mut bytes = walk.need(0);
    if walk.unbounded {
        // What is called through a pointer may come on top.
        for index in 1..program.functions.len() {
            bytes = bytes.max(walk.need(index).saturating_add(program.kernel().local_bytes));
        }
    }
    (bytes, walk.unbounded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use simt_ir::{FuncRef, Function, FunctionBuilder, Signature, Terminator};

    /// A function of so many bytes of local memory that calls these.
    fn function(local_bytes: u32, callees: &[u32]) -> Function {
        let mut b = FunctionBuilder::new("f", Signature::default());
        callees.iter().for_each(|callee| b.effect(Op::Call(FuncRef(*callee)), &[]));
        b.terminate(Terminator::Return(vec![]));
        let mut func = b.finish();
        func.local_bytes = local_bytes;
        func
    }

    fn need(functions: Vec<Function>) -> (u32, bool) {
        stack_need(&Program { functions, ..Program::default() })
    }

    #[test]
    fn the_deepest_calls_count() {
        let each = need(vec![function(0, &[])]).0;
        let calls = || vec![function(8, &[1, 2]), function(16, &[2]), function(32, &[]), function(500, &[])];
        assert_eq!(need(calls()), (8 + 16 + 32 + 3 * each, false));
        let mut recursive = calls();
        recursive[2] = function(32, &[1]);
        assert!(need(recursive).1);
    }

    #[test]
    fn calls_may_go_deeper_than_the_stack_of_the_host() {
        let count = 200_000;
        let calls = |at| if at + 1 < count { vec![at + 1] } else { vec![] };
        let each = need(vec![function(0, &[])]).0;
        assert_eq!(need((0..count).map(|at| function(0, &calls(at))).collect()), (count * each, false));
    }
}
