//! Products of matrices that lie in the registers of a warp.

use kernel_abi::matrix::{MATRIX_SYMBOL, encode};
use simt_ir::Inst;
use simt_ir::matrix::MatrixMultiply;

use super::LANES;
use super::function::Emitter;

impl<'c> Emitter<'_, 'c> {
    /// Leaves the product to the host, which gets every register of every lane as a word of 64 bits.
    pub(super) fn matrix_multiply(&mut self, inst: Inst, op: &MatrixMultiply) {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        let context = self.unit.context();
        let (i64, ptr) = (self.unit.types.i64, self.unit.types.ptr);
        let words = i64.vector(LANES);
        let bytes = 8 * i64::from(LANES);
        let count = data.args.len().max(data.results.len());
        let registers = self.scratch(words.array(count as u64));
        for (index, arg) in data.args.iter().enumerate() {
            let value = self.vector(*arg);
            let bits = b.bitcast(value, value.ty().to_int());
            let word = b.int_resize(bits, i64, false);
            b.store(word, b.ptr_offset(registers, index as i64 * bytes), 64);
        }
        let function = b.module().extern_function(MATRIX_SYMBOL, context.void(), &[i64, ptr]);
        b.call(function, &[i64.int_const(encode(op)), registers]);
        for (index, result) in data.results.iter().enumerate() {
            let word = b.load(words, b.ptr_offset(registers, index as i64 * bytes), 64);
            let ty = self.lane_type(*result).vector(LANES);
            let bits = b.int_resize(word, ty.to_int().scalar(), false);
            self.define(*result, b.bitcast(bits, ty));
        }
    }
}
