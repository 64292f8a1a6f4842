//! Calls that are left after inlining: to functions that may be on the stack already, and through pointers.
//!
//! A device function is an LLVM function `(frame, lanes, start of its local frame, arguments, results)`. Arguments and results are
//! vectors in memory, one after another.

use std::mem::offset_of;

use kernel_abi::{BlockFrame, CALL_BYTES, CompileError, FaultKind, LaunchFrame};
use simt_ir::{Cfg, FuncRef, Inst, Op, Program, SigRef, SourceLoc, Type as IrType, Value as IrValue};

use super::function::{Emitter, Place};
use super::{LANES, Unit, entry, prepare, unsupported};
use crate::llvm::{self, IntPredicate, Linkage, Value};
use crate::math::value_type;

/// Bytes from one argument to the next: 32 lanes of 64 bits.
const SLOT: u32 = 256;

/// The function for `func`, declared now if it is not yet.
fn callee<'c>(unit: Unit<'_, 'c>, func: FuncRef) -> llvm::Function<'c> {
    let mut callees = unit.callees.borrow_mut();
    if let Some((_, known)) = callees.iter().find(|(known, _)| *known == func) {
        return *known;
    }
    let (i32, i64, ptr) = (unit.types.i32, unit.types.i64, unit.types.ptr);
    let params = [ptr, i32, i64, ptr, ptr];
    let name = format!("function.{}", func.0);
    let function = unit.b.module().add_function(&name, unit.context().void(), &params, Linkage::Internal);
    unit.machine.set_attributes(function);
    function.add_attribute("noinline");
    callees.push((func, function));
    function
}

/// A barrier in a function that stays one, at which a warp could not suspend. It is looked for first: what else is done with a kernel may
/// take seconds.
pub fn barrier_in_function(program: &Program) -> Option<SourceLoc> {
    let mut found = vec![false; program.functions.len()];
    let mut open = vec![0];
    while let Some(at) = open.pop() {
        let func = &program.functions[at];
        for inst in Cfg::new(func).order().iter().flat_map(|block| &func.block(*block).insts) {
            let data = func.inst(*inst);
            if at != 0 && data.op.is_barrier() {
                return Some(data.loc);
            }
            let is_called = |index: usize| match data.op {
                Op::Call(callee) => callee.index() == index,
                Op::CallIndirect(sig) => may_be_called(program, sig, index),
                _ => false,
            };
            if matches!(data.op, Op::Call(_) | Op::CallIndirect(_)) {
                for index in (0..found.len()).filter(|index| is_called(*index)) {
                    if !std::mem::replace(&mut found[index], true) {
                        open.push(index);
                    }
                }
            }
        }
    }
    None
}

/// Whether a pointer to a function may be called as one of this signature.
fn may_be_called(program: &Program, sig: SigRef, index: usize) -> bool {
    let func = &program.functions[index];
    func.token != 0 && func.signature == program.signatures[sig.index()]
}

/// Emits all functions that have been called so far, and those that they call.
pub fn functions(unit: Unit<'_, '_>) -> Result<(), CompileError> {
    let mut done = 0;
    loop {
        let Some((func, function)) = unit.callees.borrow().get(done).copied() else { return Ok(()) };
        device_function(unit, func, function)?;
        done += 1;
    }
}

fn device_function<'c>(
    unit: Unit<'_, 'c>,
    func: FuncRef,
    function: llvm::Function<'c>,
) -> Result<(), CompileError> {
    let b = unit.b;
    let prepared = prepare(unit.program.function(func), false, unit.shape)?;
    if !prepared.polling.yields.is_empty() || !prepared.polling.lanes_wait.is_empty() {
        let loc = SourceLoc::default();
        return Err(unsupported(
            "a loop that waits, in a function that recurses or is called through a pointer,",
            loc,
        ));
    }
    if let Some(obstacle) = transform::in_step::obstacle(&prepared) {
        let what = "in a function that recurses or is called through a pointer,";
        return Err(unsupported(&format!("{}, {what}", obstacle.what), obstacle.loc));
    }
    b.position_at_end(function.append_block("prologue"));
    let frame = function.param(0);
    let field = |offset: usize| b.load(unit.types.i32, b.ptr_offset(frame, offset as i64), 4);
    let ctaid = [0, 4, 8].map(|axis| field(offset_of!(BlockFrame, ctaid) + axis));
    let place = Place {
        frame,
        launch: entry::launch_of(unit, frame),
        ctaid,
        warp: field(offset_of!(BlockFrame, warp)),
        tid: None,
    };
    let mask = unit.int_to_mask(function.param(1));
    let mut emitter = Emitter::new(unit, &prepared, place, mask, function.param(2));
    emitter.arguments = Some((function.param(3), function.param(4)));
    let end = b.append_block("end");
    let start = emitter.body(end)?;
    b.position_at_end(emitter.prologue);
    b.br(start);
    b.position_at_end(end);
    b.ret_void();
    Ok(())
}

impl<'c> Emitter<'_, 'c> {
    /// Gives the function's parameters their values, in a device function.
    pub(super) fn take_arguments(&mut self) {
        if let Some((arguments, _)) = self.arguments {
            for (index, param) in
                self.p.func.block(simt_ir::Function::ENTRY).params.clone().into_iter().enumerate()
            {
                let value = self.read_place(arguments, index, self.p.func.ty(param));
                self.define(param, value);
            }
        }
    }

    /// Hands the results to the caller, in a device function.
    pub(super) fn give_results(&mut self, values: &[IrValue]) {
        if let Some((_, results)) = self.arguments {
            for (index, value) in values.iter().enumerate() {
                let vector = self.vector(*value);
                self.write_place(results, index, vector);
            }
        }
    }

    fn read_place(&self, memory: Value<'c>, index: usize, ty: IrType) -> Value<'c> {
        let b = self.unit.b;
        let place = b.ptr_offset(memory, i64::from(SLOT) * index as i64);
        if ty == IrType::Pred {
            self.unit.int_to_mask(b.load(self.unit.types.i32, place, 4))
        } else {
            b.load(value_type(self.unit.context(), ty).vector(LANES), place, 64)
        }
    }

    fn write_place(&self, memory: Value<'c>, index: usize, vector: Value<'c>) {
        let b = self.unit.b;
        let place = b.ptr_offset(memory, i64::from(SLOT) * index as i64);
        let vector = if vector.ty() == self.unit.types.mask { b.mask_to_int(vector) } else { vector };
        b.store(vector, place, if vector.ty().is_vector() { 64 } else { 4 });
    }

    /// Memory for so many arguments or results.
    fn places(&mut self, count: usize) -> Value<'c> {
        let words = self.unit.types.i64.vector(LANES * count.max(1) as u32);
        self.scratch(words)
    }

    pub(super) fn call(&mut self, inst: Inst, func: FuncRef) {
        let data = self.p.func.inst(inst);
        let arguments = self.places(data.args.len());
        for (index, arg) in data.args.iter().enumerate() {
            let vector = self.vector(*arg);
            self.write_place(arguments, index, vector);
        }
        let results = self.places(data.results.len());
        let mask = self.active();
        self.call_function(func, mask, arguments, results, data.loc);
        for (index, result) in data.results.iter().enumerate() {
            let value = self.read_place(results, index, self.p.func.ty(*result));
            self.define(*result, value);
        }
    }

    /// Calls each function that some active lane's token means, for those lanes.
    pub(super) fn call_indirect(&mut self, inst: Inst, sig: SigRef) {
        let b = self.unit.b;
        let (i32, i64) = (self.unit.types.i32, self.unit.types.i64);
        let data = self.p.func.inst(inst);
        let arguments = self.places(data.args.len() - 1);
        for (index, arg) in data.args[1..].iter().enumerate() {
            let vector = self.vector(*arg);
            self.write_place(arguments, index, vector);
        }
        let (results, part) = (self.places(data.results.len()), self.places(data.results.len()));
        let tokens = self.vector(data.args[0]);
        let token_array = self.spill(tokens);
        let mask = self.active();
        let active = b.mask_to_int(mask);

        let before = b.block();
        let (head, done) = (b.append_block("callee"), b.append_block("called"));
        b.br(head);
        b.position_at_end(head);
        let left = b.phi(i32);
        left.add_incoming(active, before);
        let lane = b.cttz(left.value());
        let token = self.element(token_array, lane, i64);
        let same = b.icmp(IntPredicate::Eq, tokens, b.splat(token, LANES));
        let same = b.and(same, self.unit.int_to_mask(left.value()));
        let (unknown, joined) = (b.append_block("unknown"), b.append_block("returned"));
        let program = self.unit.program;
        let candidates: Vec<(FuncRef, llvm::Block<'c>)> = (0..program.functions.len())
            .filter(|index| may_be_called(program, sig, *index))
            .map(|index| (FuncRef(index as u32), b.append_block("candidate")))
            .collect();
        let cases: Vec<(u64, llvm::Block<'c>)> =
            candidates.iter().map(|(func, block)| (program.function(*func).token, *block)).collect();
        b.switch(token, unknown, &cases);
        for (func, block) in candidates {
            b.position_at_end(block);
            self.call_function(func, same, arguments, part, data.loc);
            b.br(joined);
        }
        b.position_at_end(unknown);
        self.raise_for(FaultKind::InvalidPc, same, Some(tokens), data.loc);
        b.position_at_end(joined);
        for (index, result) in data.results.iter().enumerate() {
            let ty = self.p.func.ty(*result);
            let new = self.read_place(part, index, ty);
            let old = self.read_place(results, index, ty);
            self.write_place(results, index, b.select(same, new, old));
        }
        let rest = b.and(left.value(), b.not(b.mask_to_int(same)));
        left.add_incoming(rest, b.block());
        let none = b.icmp(IntPredicate::Eq, rest, i32.zero());
        b.cond_br(none, done, head);
        b.position_at_end(done);
        for (index, result) in data.results.iter().enumerate() {
            let value = self.read_place(results, index, self.p.func.ty(*result));
            self.define(*result, value);
        }
    }

    /// Bytes of a thread's local window.
    fn local_limit(&self) -> Value<'c> {
        let (i32, i64) = (self.unit.types.i32, self.unit.types.i64);
        self.unit.b.zext(self.launch_field(offset_of!(LaunchFrame, local_bytes), i32), i64)
    }

    /// Gives the lanes their stack pointers, if the function sets them.
    pub(super) fn begin_stack(&mut self) {
        let p = self.p;
        let mut insts = p.func.blocks().flat_map(|block| &p.func.block(block).insts);
        if insts.any(|inst| p.func.inst(*inst).op == Op::StackRestore) {
            let slot = self.new_slot(self.unit.types.i64.vector(LANES));
            self.stack = Some(slot);
            let frame_end = self.frame_end();
            self.write_slot(slot, frame_end);
        }
    }

    /// Where each lane's stack begins in a function that has just been entered.
    fn frame_end(&self) -> Value<'c> {
        let b = self.unit.b;
        let bytes = self.unit.types.i64.int_const(self.p.func.local_bytes.into());
        b.splat(b.add(self.local_base, bytes), LANES)
    }

    /// Each lane's stack pointer.
    pub(super) fn stack_pointers(&mut self) -> Value<'c> {
        match self.stack {
            Some(slot) => self.read_slot(slot),
            None => self.frame_end(),
        }
    }

    /// Sets the active lanes' stack pointers.
    pub(super) fn stack_restore(&mut self, inst: Inst) {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        let pointers = self.vector(data.args[0]);
        let limit = b.splat(self.local_limit(), LANES);
        let mask = self.active();
        let over = b.and(b.icmp(IntPredicate::Ugt, pointers, limit), mask);
        self.unlikely(b.any(over), |this| this.raise_for(FaultKind::StackOverflow, over, None, data.loc));
        let slot = self.stack.expect("the function sets stack pointers");
        let old = self.read_slot(slot);
        self.write_slot(slot, b.select(mask, pointers, old));
    }

    fn call_function(
        &mut self,
        func: FuncRef,
        mask: Value<'c>,
        arguments: Value<'c>,
        results: Value<'c>,
        loc: SourceLoc,
    ) {
        let b = self.unit.b;
        let i64 = self.unit.types.i64;
        let target = self.unit.program.function(func);
        // The callee's frame lies above this function's.
        let align = u64::from(target.local_align.max(1));
        let top = match self.stack {
            None => b.add(self.local_base, i64.int_const(self.p.func.local_bytes.into())),
            Some(_) => {
                // Above what any of the lanes has allocated.
                let pointers = self.stack_pointers();
                let pointers = b.select(mask, pointers, pointers.ty().zero());
                b.intrinsic("llvm.vector.reduce.umax", &[pointers.ty()], &[pointers])
            }
        };
        let base = b.add(top, i64.int_const(u64::from(CALL_BYTES) + align - 1));
        let base = b.and(base, i64.int_const(!(align - 1)));
        let top = b.add(base, i64.int_const(target.local_bytes.into()));
        let limit = self.local_limit();
        let over = b.icmp(IntPredicate::Ugt, top, limit);
        self.unlikely(over, |this| this.raise_for(FaultKind::StackOverflow, mask, None, loc));
        let function = callee(self.unit, func);
        b.call(function, &[self.place.frame, b.mask_to_int(mask), base, arguments, results]);
    }
}
