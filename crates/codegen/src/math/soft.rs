//! Operations left to the host.

use super::{Lowering, value_type};
use crate::llvm::Value;
use kernel_abi::soft::{SOFT_SYMBOL, SoftOp};
use simt_ir::{Op, Type};

impl<'c> Lowering<'_, 'c> {
    /// Calls the host's exact arithmetic, all lanes at once.
    ///
    /// # Panics
    /// If the operation is not one that the host offers.
    pub(super) fn soft(&self, op: Op, from: Type, to: Type, args: &[Value<'c>]) -> Value<'c> {
        let b = self.b;
        let context = b.context();
        let (i32, i64, ptr) = (context.int(32), context.int(64), context.ptr());
        let code =
            SoftOp { op, from, to }.encode().unwrap_or_else(|| panic!("the host does not offer {op:?}"));
        let lanes = args[0].ty().lanes();
        let words = i64.shaped_like(args[0].ty());
        let bytes = i64::from(8 * lanes);

        // Static allocas belong at the start of the function.
        let here = b.block();
        b.position_at_start(b.function().entry());
        let values = b.alloca(i64.array(u64::from(lanes) * args.len() as u64), 64);
        b.position_at_end(here);

        for (index, arg) in args.iter().enumerate() {
            let word = b.int_resize(self.bits(*arg), i64, false);
            b.store(word, b.ptr_offset(values, index as i64 * bytes), 8);
        }
        let function = b.module().extern_function(SOFT_SYMBOL, context.void(), &[i32, i32, ptr]);
        b.call(function, &[i32.int_const(code.into()), i32.int_const(lanes.into()), values]);
        let llvm = value_type(context, to).shaped_like(args[0].ty());
        let result = b.int_resize(b.load(words, values, 8), llvm.to_int(), false);
        self.with_bits(result, llvm)
    }
}
