//! Products of matrices that lie in the registers of a warp, and registers of all lanes for the host.

use std::collections::BTreeMap;

use kernel_abi::matrix::{ABSENT_SYMBOL, MATRIX_SYMBOL, encode, register_bytes, registers, results_at};
use simt_ir::matrix::MatrixMultiply;
use simt_ir::{Inst, SourceLoc};

use super::LANES;
use super::function::Emitter;
use crate::llvm::{Block, Value};

/// Bytes of a register of all lanes, and of one of words.
const REGISTER_BYTES: i64 = 8 * LANES as i64;
const WORDS_BYTES: i64 = 4 * LANES as i64;

/// Stack memory with the registers of factors, and the block in which they have been put there.
#[derive(Default)]
pub(super) struct Factors<'c>(BTreeMap<Vec<simt_ir::Value>, (Block<'c>, Value<'c>)>);

impl<'c> Emitter<'_, 'c> {
    pub(super) fn matrix_multiply(&mut self, inst: Inst, op: &MatrixMultiply) {
        match !self.is_quick() && self.unit.math().multiplies_bytes(op) {
            true => self.multiply_bytes(inst, op),
            false => self.multiply_by_host(inst, op),
        }
    }

    /// Leaves the product to the host, which gets every register of every lane in memory (see [`kernel_abi::matrix`]).
    fn multiply_by_host(&mut self, inst: Inst, op: &MatrixMultiply) {
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

    /// Has a function of the module multiply. It finds the factors in memory, where they are put once for all products of a block that have them; sums
    /// come and go in registers. LLVM, given all products of a block at once, would mingle them, and have registers for none.
    fn multiply_bytes(&mut self, inst: Inst, op: &MatrixMultiply) {
        let b = self.unit.b;
        let (p, ptr) = (self.p, self.unit.types.ptr);
        let data = p.func.inst(inst);
        let (left, rest) = data.args.split_at(op.a_registers());
        let (right, addends) = rest.split_at(op.b_registers());
        let factors = [left, right].map(|factor| self.factor(factor));
        let half = self.unit.types.i32.vector(LANES / 2);
        let halves = |whole: Value<'c>| [0, 1].map(|at| b.subvector(whole, at * LANES / 2, LANES / 2));
        let parts = 2 * addends.len();
        let mut params = vec![half; parts];
        params.extend([ptr; 2]);
        let result = self.unit.context().structure(&params[..parts]);
        let name = format!("matrix.{:x}", encode(op));
        let function = self.shared_function(&name, result, &params, |function| {
            function.pass_in_registers();
            let register = self.unit.types.i32.vector(LANES);
            let counts = [left.len(), right.len()].into_iter().enumerate();
            let mut args: Vec<_> = counts
                .flat_map(|(factor, count)| {
                    let start = function.param((parts + factor) as u32);
                    let place = move |index: usize| b.ptr_offset(start, index as i64 * WORDS_BYTES);
                    (0..count).map(move |index| b.load(register, place(index), 64))
                })
                .collect();
            args.extend(
                (0..addends.len() as u32)
                    .map(|index| b.concat(function.param(2 * index), function.param(2 * index + 1))),
            );
            let sums = self.unit.math().multiply_bytes(op, &args);
            let all = (0..)
                .zip(sums.into_iter().flat_map(halves))
                .fold(result.poison(), |all, (at, half)| b.insert_field(all, half, at));
            b.ret(all);
        });
        let mut args: Vec<_> = addends.iter().flat_map(|addend| halves(self.vector(*addend))).collect();
        args.extend(factors);
        let sums = b.call(function, &args);
        for (index, result) in (0..).zip(&data.results) {
            let [low, high] = [2 * index, 2 * index + 1].map(|at| b.extract_field(sums, at));
            self.define(*result, b.concat(low, high));
        }
    }

    /// Memory with the registers of a factor, one after another.
    fn factor(&mut self, registers: &[simt_ir::Value]) -> Value<'c> {
        let b = self.unit.b;
        let here = b.block();
        let taken = |(block, _): &(Block<'c>, Value<'c>)| *block == here;
        if let Some((_, memory)) = self.factors.0.get(registers).filter(|found| taken(found)) {
            return *memory;
        }
        let vectors: Vec<_> = registers.iter().map(|register| self.vector(*register)).collect();
        // That of another block may be used again.
        let free =
            self.factors.0.iter().find(|(other, found)| !taken(found) && other.len() == registers.len());
        let memory = match free.map(|(other, _)| other.clone()) {
            Some(other) => self.factors.0.remove(&other).expect("it has just been found").1,
            None => {
                let register = self.unit.types.i32.vector(LANES);
                self.stack(register.array(registers.len() as u64))
            }
        };
        for (index, vector) in vectors.into_iter().enumerate() {
            b.store(vector, b.ptr_offset(memory, index as i64 * WORDS_BYTES), 64);
        }
        self.factors.0.insert(registers.to_vec(), (b.block(), memory));
        memory
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
