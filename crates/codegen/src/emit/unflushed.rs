//! Operations that keep subnormals in code that runs with the processor flushing them.

use kernel_abi::float_control;
use simt_ir::{Op, Type as IrType};

use super::function::Emitter;
use crate::flush;
use crate::llvm::{Function, Value};
use crate::math::value_type;

/// How the names of such functions begin.
const NAME: &str = "unflushed.";

/// Whether a function computes with subnormals kept though the kernel's others do not.
pub fn keeps_subnormals(function: Function<'_>) -> bool {
    function.name().starts_with(NAME)
}

impl<'c> Emitter<'_, 'c> {
    /// An operation whose result depends on its operands alone, if it has a meaning without more.
    pub(super) fn computed(
        &self,
        op: Op,
        args: &[Value<'c>],
        types: &[IrType],
        result: IrType,
    ) -> Option<Value<'c>> {
        let machine = self.unit.machine;
        if self.unit.flushing && flush::is_apart(op, types, result, machine.cpu()) {
            return Some(self.unflushed(op, args, types, result));
        }
        self.unit.math().op(op, args, types, result)
    }

    /// Likewise, with subnormals kept: in a function that sets the processor for as long as it lasts. Operands and result go through memory on the way,
    /// as LLVM knows of no other order between arithmetic and what sets the processor.
    fn unflushed(&self, op: Op, args: &[Value<'c>], types: &[IrType], result: IrType) -> Value<'c> {
        let b = self.unit.b;
        let i32 = self.unit.types.i32;
        let is_test = result == IrType::Pred;
        let ty = match is_test {
            // A byte for each bit.
            true => self.unit.context().int(8),
            false => value_type(self.unit.context(), result),
        };
        let ty = ty.shaped_like(args[0].ty());
        let params: Vec<_> = args.iter().map(|arg| arg.ty()).collect();
        let name = format!("{NAME}{op:?}.{types:?}.{result:?}.{}", args[0].ty().lanes());
        let function = self.shared_function(&name, ty, &params, |function| {
            let word = b.alloca(i32, 4);
            let memory: Vec<_> = params.iter().map(|ty| b.alloca(*ty, 64)).collect();
            let answer = b.alloca(ty, 64);
            for (at, place) in (0..).zip(&memory) {
                b.store(function.param(at), *place, 64);
            }
            let set = |control: u32, seen: &[Value<'c>]| {
                b.store(i32.int_const(control.into()), word, 4);
                b.set_float_control(word, seen);
            };
            set(float_control::STANDARD, &memory);
            let args: Vec<_> =
                memory.iter().zip(&params).map(|(place, ty)| b.load(*ty, *place, 64)).collect();
            let value = self.unit.math().flushing(false).op(op, &args, types, result);
            let value = value.expect("what is flushed has a meaning");
            b.store(if is_test { b.zext(value, ty) } else { value }, answer, 64);
            set(float_control::FLUSHING, &[answer]);
            b.ret(b.load(ty, answer, 64));
        });
        let value = b.call(function, args);
        if is_test { b.trunc(value, self.unit.types.bit.shaped_like(ty)) } else { value }
    }
}
