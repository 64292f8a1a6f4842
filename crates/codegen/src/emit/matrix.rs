//! Products of matrices that lie in the registers of a warp, and registers of all lanes for the host.

use kernel_abi::matrix::{ABSENT_SYMBOL, MATRIX_SYMBOL, encode, register_bytes, registers, results_at};
use simt_ir::matrix::MatrixMultiply;
use simt_ir::{Inst, SourceLoc};

use super::LANES;
use super::function::Emitter;
use crate::llvm::Value;

/// Bytes of a register of all lanes.
const REGISTER_BYTES: i64 = 8 * LANES as i64;

impl<'c> Emitter<'_, 'c> {
    /// Leaves the product to the host, which gets every register of every lane in memory (see [`kernel_abi::matrix`]).
    pub(super) fn matrix_multiply(&mut self, inst: Inst, op: &MatrixMultiply) {
        let b = self.unit.b;
        let context = self.unit.context();
        let (i64, ptr) = (self.unit.types.i64, self.unit.types.ptr);
        let bytes = register_bytes(op) as i64;
        let element = if bytes == REGISTER_BYTES { i64 } else { self.unit.types.i32 };
        let register = element.vector(LANES);
        let memory = self.scratch(register.array(registers(op) as u64));
        let data = self.p.func.inst(inst);
        let (fragments, descriptors) = data.args.split_at(op.fragments());
        for (index, arg) in fragments.iter().enumerate() {
            let value = self.vector(*arg);
            let bits = b.bitcast(value, register);
            b.store(bits, b.ptr_offset(memory, index as i64 * bytes), 64);
        }
        if op.in_memory.is_some() && !self.is_full() {
            let mask = self.active();
            let partial = b.not(b.all(mask));
            self.unlikely(partial, |this| this.absent_lanes(op, memory, descriptors, mask, data.loc));
        }
        let function = b.module().extern_function(MATRIX_SYMBOL, context.void(), &[i64, ptr]);
        b.call(function, &[i64.int_const(encode(op)), memory]);
        let first = results_at(op) as i64;
        for (index, result) in data.results.iter().enumerate() {
            let bits = b.load(register, b.ptr_offset(memory, (first + index as i64) * bytes), 64);
            let ty = self.lane_type(*result).vector(LANES);
            self.define(*result, b.bitcast(bits, ty));
        }
    }

    /// Has the host put there what lanes that are not in the mask have of factors in shared memory.
    fn absent_lanes(
        &mut self,
        op: &MatrixMultiply,
        memory: Value<'c>,
        descriptors: &[simt_ir::Value],
        mask: Value<'c>,
        loc: SourceLoc,
    ) {
        let b = self.unit.b;
        let (i32, i64, ptr) = (self.unit.types.i32, self.unit.types.i64, self.unit.types.ptr);
        let words = self.scratch(i64.vector(LANES).array(2));
        for (index, descriptor) in descriptors.iter().enumerate() {
            let value = self.vector(*descriptor);
            b.store(value, b.ptr_offset(words, index as i64 * REGISTER_BYTES), 64);
        }
        let function = b.module().extern_function(ABSENT_SYMBOL, i32, &[ptr, i64, i32, ptr, ptr]);
        let lanes = b.mask_to_int(mask);
        let frame = self.place.frame;
        let failed = b.call(function, &[frame, i64.int_const(encode(op)), lanes, memory, words]);
        let failed = self.nonzero(failed);
        self.unlikely(failed, |this| this.raise_recorded(loc));
    }

    /// Stack memory with the operands, of which each lane's is a word of 64 bits, and room for the results.
    pub(super) fn store_registers(&mut self, inst: Inst) -> Value<'c> {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        let i64 = self.unit.types.i64;
        let count = data.args.len().max(data.results.len());
        let registers = self.scratch(i64.vector(LANES).array(count as u64));
        for (index, arg) in data.args.iter().enumerate() {
            let value = self.vector(*arg);
            let bits = b.bitcast(value, value.ty().to_int());
            let word = b.int_resize(bits, i64, false);
            b.store(word, b.ptr_offset(registers, index as i64 * REGISTER_BYTES), 64);
        }
        registers
    }

    /// Takes the results that lie there in place of the operands.
    pub(super) fn load_registers(&mut self, inst: Inst, registers: Value<'c>) {
        let b = self.unit.b;
        let words = self.unit.types.i64.vector(LANES);
        for (index, result) in self.p.func.inst(inst).results.iter().enumerate() {
            let word = b.load(words, b.ptr_offset(registers, index as i64 * REGISTER_BYTES), 64);
            let ty = self.lane_type(*result).vector(LANES);
            let bits = b.int_resize(word, ty.to_int().scalar(), false);
            self.define(*result, b.bitcast(bits, ty));
        }
    }
}
