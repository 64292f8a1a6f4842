//! Bulk copies: the host makes them, for one lane after another.

use std::mem::offset_of;

use kernel_abi::bulk::{BULK_SYMBOL, encode};
use kernel_abi::{BlockFrame, FaultRecord};
use simt_ir::bulk::BulkOp;
use simt_ir::{Inst, SourceLoc};

use super::LANES;
use super::function::Emitter;
use crate::llvm::Value;

impl<'c> Emitter<'_, 'c> {
    pub(super) fn bulk(&mut self, inst: Inst, op: &BulkOp) {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        let (i32, i64, ptr) = (self.unit.types.i32, self.unit.types.i64, self.unit.types.ptr);
        let words = i64.vector(LANES);
        let operands = self.scratch(words.array(data.args.len() as u64));
        for (index, arg) in data.args.iter().enumerate() {
            let value = self.vector(*arg);
            let word = b.int_resize(value, i64, false);
            b.store(word, b.ptr_offset(operands, index as i64 * 8 * i64::from(LANES)), 64);
        }
        let mask = self.active();
        let lanes = b.mask_to_int(mask);
        let frame = self.place.frame;
        let function = b.module().extern_function(BULK_SYMBOL, i32, &[ptr, i64, i32, ptr]);
        let failed = b.call(function, &[frame, i64.int_const(encode(op)), lanes, operands]);
        let failed = self.nonzero(failed);
        self.unlikely(failed, |this| this.raise_recorded(data.loc));
    }

    /// Ends the launch with the fault that the host has left in the frame.
    pub(super) fn raise_recorded(&mut self, loc: SourceLoc) {
        let b = self.unit.b;
        let (i32, i64) = (self.unit.types.i32, self.unit.types.i64);
        let frame = self.place.frame;
        let field = |offset: usize| b.ptr_offset(frame, (offset_of!(BlockFrame, fault) + offset) as i64);
        let kind: Value<'c> = b.load(i32, field(offset_of!(FaultRecord, kind)), 4);
        let lane = b.load(i32, field(offset_of!(FaultRecord, lane)), 4);
        let address = b.load(i64, field(offset_of!(FaultRecord, address)), 8);
        b.call(self.unit.raise, &[frame, kind, lane, address, i32.int_const(loc.ptx_line.into())]);
        b.unreachable();
    }
}
