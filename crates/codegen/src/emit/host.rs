//! Faults and services of the host.

use std::mem::offset_of;

use kernel_abi::{BlockFrame, Callbacks, CompileError, FaultKind, LaunchFrame, RAISE_SYMBOL};
use simt_ir::{Inst, InstData, RuntimeFunction, SourceLoc, Syscall, Value as IrValue};
use transform::LaneShape;

use super::function::Emitter;
use super::{LANES, unsupported};
use crate::llvm::{self, Builder, Type, Value};

/// The host's function that records a fault and leaves: `raise(frame, kind, lane, address, ptx_line)`.
pub fn raise_function<'c>(b: &Builder<'c>) -> llvm::Function<'c> {
    let context = b.context();
    let (i32, i64, ptr) = (context.int(32), context.int(64), context.ptr());
    let raise = b.module().extern_function(RAISE_SYMBOL, context.void(), &[ptr, i32, i32, i64, i32]);
    for attribute in ["noreturn", "nounwind", "cold"] {
        raise.add_attribute(attribute);
    }
    raise
}

impl<'c> Emitter<'_, 'c> {
    /// Ends the launch with a fault of the lowest lane in `lanes`, which is not empty, at its address. Ends the block.
    pub(super) fn raise_for(
        &mut self,
        kind: FaultKind,
        lanes: Value<'c>,
        addresses: Option<Value<'c>>,
        loc: SourceLoc,
    ) {
        let b = self.unit.b;
        let lane = self.lowest_lane(lanes);
        let address = match addresses {
            None => self.unit.types.i64.zero(),
            Some(addresses) => b.extract_dynamic(addresses, lane),
        };
        self.raise_in(kind, lane, address, loc);
    }

    /// The first of the lanes of a mask that has some, for code that hardly ever runs.
    pub(super) fn lowest_lane(&self, lanes: Value<'c>) -> Value<'c> {
        let b = self.unit.b;
        let i32 = self.unit.types.i32;
        let bits = b.mask_to_int(lanes);
        if bits.is_constant() || bits.ty().scalar_bits() <= 64 {
            return b.int_resize(b.cttz(bits), i32, false);
        }
        // Of several words that takes many instructions, in each of many places: they call one.
        let function = b.module().function("lowest").unwrap_or_else(|| {
            let here = b.block();
            let function = b.module().add_function("lowest", i32, &[bits.ty()], llvm::Linkage::Internal);
            self.unit.machine.set_attributes(function);
            ["noinline", "cold"].into_iter().for_each(|attribute| function.add_attribute(attribute));
            b.position_at_end(function.append_block("entry"));
            b.ret(b.int_resize(b.cttz(function.param(0)), i32, false));
            b.position_at_end(here);
            function
        });
        b.call(function, &[bits])
    }

    /// Ends the launch with a fault of this lane at this address. Ends the block.
    pub(super) fn raise_in(&mut self, kind: FaultKind, lane: Value<'c>, address: Value<'c>, loc: SourceLoc) {
        let b = self.unit.b;
        let i32 = self.unit.types.i32;
        let lane = if self.unit.lanes == LANES {
            lane
        } else {
            let thread = b.add(self.unit.first_thread(self.place.warp), lane);
            let warp = b.lshr(thread, i32.int_const(5));
            b.store(warp, b.ptr_offset(self.place.frame, offset_of!(BlockFrame, warp) as i64), 4);
            b.and(thread, i32.int_const(31))
        };
        let kind = i32.int_const(kind as u64);
        let line = i32.int_const(loc.ptx_line.into());
        b.call(self.unit.raise, &[self.place.frame, kind, lane, address, line]);
        b.unreachable();
    }

    /// Ends the launch if the operand is true in an active lane.
    pub(super) fn refuse(&mut self, data: &InstData, kind: FaultKind) {
        let b = self.unit.b;
        let (condition, mask) = (data.args[0], self.active());
        let any = match self.p.shapes.of(condition) {
            LaneShape::Uniform => self.natural(condition),
            _ => b.any(self.vector(condition)),
        };
        self.unlikely(any, |this| {
            let lanes = b.and(this.vector(condition), mask);
            let addresses = data.args.get(1).map(|address| this.vector(*address));
            this.unlikely(b.any(lanes), |this| this.raise_for(kind, lanes, addresses, data.loc));
        });
    }

    /// The address of a callback.
    pub(super) fn callback(&self, offset: usize) -> Value<'c> {
        let b = self.unit.b;
        let ptr = self.unit.types.ptr;
        let callbacks = self.launch_field(offset_of!(LaunchFrame, callbacks), ptr);
        b.mark_invariant(b.load(ptr, b.ptr_offset(callbacks, offset as i64), 8))
    }

    /// Stack memory that holds a value of each lane.
    pub(super) fn lane_array(&mut self, value: IrValue) -> Value<'c> {
        let vector = self.vector(value);
        self.spill(vector)
    }

    /// Stack memory that holds a vector.
    pub(super) fn spill(&mut self, vector: Value<'c>) -> Value<'c> {
        let memory = self.scratch(vector.ty());
        self.unit.b.store(vector, memory, 64);
        memory
    }

    pub(super) fn syscall(&mut self, inst: Inst, call: Syscall) -> Result<(), CompileError> {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        let (i32, i64, ptr) = (self.unit.types.i32, self.unit.types.i64, self.unit.types.ptr);
        let void = self.unit.context().void();
        let mask = self.active();
        let lanes = b.mask_to_int(mask);
        let frame = self.place.frame;
        let mut args = vec![frame, lanes];
        let taken = match call {
            Syscall::AssertFail => 4,
            Syscall::Vprintf => 2,
            Syscall::Malloc | Syscall::Free => 1,
            Syscall::Runtime(function) => {
                self.runtime_call(inst, function);
                return Ok(());
            }
        };
        if data.args.len() < taken {
            return Err(unsupported(&format!("{call:?} with so few arguments"), data.loc));
        }
        for arg in &data.args[..taken] {
            let array = self.lane_array(*arg);
            args.push(array);
        }
        let (offset, result) = match call {
            Syscall::Vprintf => (offset_of!(Callbacks, vprintf), Some(i32)),
            Syscall::AssertFail => (offset_of!(Callbacks, assert_fail), None),
            Syscall::Malloc => (offset_of!(Callbacks, malloc), Some(i64)),
            Syscall::Free | Syscall::Runtime(_) => (offset_of!(Callbacks, free), None),
        };
        let results = result.map(|ty| self.scratch(ty.vector(LANES)));
        args.extend(results);
        let mut params = vec![ptr, i32];
        params.resize(args.len(), ptr);
        let function = self.callback(offset);
        b.call_indirect(Type::function(void, &params), function, &args);
        if let (Some(memory), Some(ty), Some(result)) = (results, result, data.results.first()) {
            let value = b.load(ty.vector(LANES), memory, 64);
            self.define(*result, value);
        }
        if call == Syscall::AssertFail {
            // Nobody comes back from a failed assertion; what follows is never reached.
            self.raise_for(FaultKind::Assert, mask, None, data.loc);
            let after = b.append_block("after.assert");
            b.position_at_end(after);
        }
        Ok(())
    }

    /// A function of the runtime: every parameter of every lane goes to the host as a word of 64 bits.
    fn runtime_call(&mut self, inst: Inst, function: RuntimeFunction) {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        let (i32, i64, ptr) = (self.unit.types.i32, self.unit.types.i64, self.unit.types.ptr);
        let words = i64.vector(LANES);
        let arguments = self.scratch(words.array(data.args.len().max(1) as u64));
        for (index, arg) in data.args.iter().enumerate() {
            let value = self.vector(*arg);
            let place = b.ptr_offset(arguments, index as i64 * 8 * i64::from(LANES));
            b.store(b.int_resize(value, i64, false), place, 64);
        }
        let results = self.scratch(words);
        b.store(words.zero(), results, 64);
        let lanes = b.mask_to_int(self.active());
        let callback = self.callback(offset_of!(Callbacks, runtime));
        let ty = Type::function(self.unit.context().void(), &[ptr, i32, i32, ptr, ptr]);
        let number = i32.int_const(function as u64);
        b.call_indirect(ty, callback, &[self.place.frame, lanes, number, arguments, results]);
        if let Some(result) = data.results.first() {
            let word = b.load(words, results, 64);
            let lane = self.lane_type(*result);
            self.define(*result, b.int_resize(word, lane, false));
        }
    }

    pub(super) fn nanosleep(&mut self, inst: Inst) {
        let b = self.unit.b;
        let time = self.first_active(self.p.func.inst(inst).args[0]);
        let sleep = self.callback(offset_of!(Callbacks, nanosleep));
        let ty = Type::function(self.unit.context().void(), &[self.unit.types.i32]);
        b.call_indirect(ty, sleep, &[time]);
    }
}
