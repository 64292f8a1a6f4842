//! Atomics that the host keeps for later.

use kernel_abi::late::{LATE_SYMBOL, Places, SETTLE, encode};
use simt_ir::{AtomicOp, Inst, Op, Type as IrType};

use super::function::Emitter;
use crate::llvm::Value;

impl<'c> Emitter<'_, 'c> {
    /// Whether an atomic may be done later than where it stands.
    pub(super) fn is_late(&self, inst: Inst) -> bool {
        self.p.late.binary_search(&inst).is_ok()
    }

    /// Has the host keep an operation on elements of a type, which `start` tells where they are, of some of a warp's lanes, an i32. Answers those
    /// that are to do it at once.
    pub(super) fn keep_late(
        &mut self,
        (op, ty, places): (AtomicOp, IrType, Places),
        start: Value<'c>,
        lanes: Value<'c>,
        operands: Value<'c>,
    ) -> Value<'c> {
        let code = encode(op, ty, places).expect("late operations can be kept");
        self.call_late(code, start, lanes, operands)
    }

    /// Before a late operation that is not kept: what the thread has had kept goes before it, if it can be to the same place and the order matters.
    pub(super) fn settle_before(&mut self, inst: Inst) {
        let kind = |inst: Inst| {
            let data = self.p.func.inst(inst);
            let Op::Atomic(op, _) = data.op else { unreachable!("late operations are atomics") };
            (op, self.p.func.ty(data.args[1]))
        };
        let own = kind(inst);
        let is_rounded = matches!(own.0, AtomicOp::FAdd { .. });
        let mut others = self.p.late.iter().filter(|other| **other != inst);
        if others.any(|other| is_rounded || kind(*other) != own) {
            let (i32, i64, ptr) = (self.unit.types.i32, self.unit.types.i64, self.unit.types.ptr);
            self.call_late(SETTLE, i64.zero(), i32.zero(), ptr.zero());
        }
    }

    fn call_late(&mut self, code: u32, start: Value<'c>, lanes: Value<'c>, operands: Value<'c>) -> Value<'c> {
        let b = self.unit.b;
        let (i32, i64, ptr) = (self.unit.types.i32, self.unit.types.i64, self.unit.types.ptr);
        let function = b.module().extern_function(LATE_SYMBOL, i32, &[i32, i64, i32, ptr]);
        b.call(function, &[i32.int_const(code.into()), start, lanes, operands])
    }
}
