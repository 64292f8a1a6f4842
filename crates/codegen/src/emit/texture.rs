//! Textures and surfaces: the device carries their instructions out.

use std::mem::offset_of;

use kernel_abi::Callbacks;
use kernel_abi::texture::encode;
use simt_ir::Inst;
use simt_ir::texture::TextureOp;

use super::function::Emitter;
use crate::llvm::{IntPredicate, Type};

impl Emitter<'_, '_> {
    pub(super) fn texture(&mut self, inst: Inst, op: &TextureOp) {
        let b = self.unit.b;
        let loc = self.p.func.inst(inst).loc;
        let (i32, i64, ptr) = (self.unit.types.i32, self.unit.types.i64, self.unit.types.ptr);
        let mask = self.active();
        let lanes = b.mask_to_int(mask);
        let registers = self.store_registers(inst);
        let function = self.callback(offset_of!(Callbacks, texture));
        let ty = Type::function(i32, &[ptr, i32, i64, ptr]);
        let status =
            b.call_indirect(ty, function, &[self.place.frame, lanes, i64.int_const(encode(op)), registers]);
        let (failed, done) = (b.append_block("texture.failed"), b.append_block("texture.done"));
        b.cond_br(b.icmp(IntPredicate::Ne, status, i32.zero()), failed, done);
        b.position_at_end(failed);
        // See `kernel_abi::texture::Failure`.
        let kind = b.and(status, i32.int_const(0xff));
        let lane = b.lshr(status, i32.int_const(8));
        let address = b.load(i64, registers, 8);
        b.call(self.unit.raise, &[self.place.frame, kind, lane, address, i32.int_const(loc.ptx_line.into())]);
        b.unreachable();
        b.position_at_end(done);
        self.load_registers(inst, registers);
    }
}
