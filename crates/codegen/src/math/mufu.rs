//! The multifunction unit: the steps of `simt_ir::mufu` as instructions.

use super::{Lowering, value_type};
use crate::llvm::{IntPredicate, Type, Value};
use simt_ir::mufu::{self, Lanes, Table};
use simt_ir::{Mufu, Rounding};

type IrType = simt_ir::Type;

impl<'c> Lowering<'_, 'c> {
    pub(super) fn mufu(&self, func: Mufu, ty: IrType, x: Value<'c>) -> Value<'c> {
        let b = self.b;
        // What an inactive lane holds must not decide where a table is read.
        let x = b.freeze(x);
        let lanes = Emit { lowering: self, shape: x.ty() };
        match ty {
            IrType::F64 => {
                let high = lanes.window(self.bits(x), 32);
                let high = b.zext(mufu::high_half_of_f64(&lanes, func, high), lanes.i64());
                self.with_bits(b.shl(high, lanes.i64().int_const(32)), x.ty())
            }
            IrType::F32 => self.with_bits(mufu::f32(&lanes, func, self.bits(x)), x.ty()),
            _ => {
                let wide = self.widen(ty, x);
                let value = self.with_bits(mufu::f32(&lanes, func, self.bits(wide)), wide.ty());
                let value = if ty == IrType::F16 { self.overflow_of_f16(value) } else { value };
                self.narrow(ty, Rounding::Zero, value)
            }
        }
    }
}

/// Emits each step, in the shape of the operands.
struct Emit<'s, 'a, 'c> {
    lowering: &'s Lowering<'a, 'c>,
    shape: Type<'c>,
}

impl<'c> Emit<'_, '_, 'c> {
    fn i32(&self) -> Type<'c> {
        value_type(self.lowering.b.context(), IrType::I32).shaped_like(self.shape)
    }

    fn i64(&self) -> Type<'c> {
        value_type(self.lowering.b.context(), IrType::I64).shaped_like(self.shape)
    }
}

/// Words of a row in generated code's constants: c0, and c1 below c2.
const ROW_BYTES: u64 = 16;

impl<'c> Lanes for Emit<'_, '_, 'c> {
    type I = Value<'c>;
    type L = Value<'c>;
    type B = Value<'c>;

    fn int(&self, value: u32) -> Value<'c> {
        self.i32().int_const(value.into())
    }
    fn add(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.add(a, b)
    }
    fn sub(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.sub(a, b)
    }
    fn and(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.and(a, b)
    }
    fn or(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.or(a, b)
    }
    fn xor(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.xor(a, b)
    }
    fn shl(&self, a: Value<'c>, by: Value<'c>) -> Value<'c> {
        self.lowering.b.shl(a, by)
    }
    fn shr(&self, a: Value<'c>, by: Value<'c>) -> Value<'c> {
        self.lowering.b.lshr(a, by)
    }
    fn sar(&self, a: Value<'c>, by: Value<'c>) -> Value<'c> {
        self.lowering.b.ashr(a, by)
    }
    fn less(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.icmp(IntPredicate::Slt, a, b)
    }
    fn equal(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.icmp(IntPredicate::Eq, a, b)
    }
    fn select(&self, condition: Value<'c>, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.select(condition, a, b)
    }
    fn long(&self, a: Value<'c>) -> Value<'c> {
        self.lowering.b.sext(a, self.i64())
    }
    fn add_long(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.add(a, b)
    }
    fn mul_long(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.mul(a, b)
    }
    fn xor_long(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.xor(a, b)
    }
    fn shl_long(&self, a: Value<'c>, by: u32) -> Value<'c> {
        self.lowering.b.shl(a, self.i64().int_const(by.into()))
    }
    fn window(&self, a: Value<'c>, from: u32) -> Value<'c> {
        let b = self.lowering.b;
        b.trunc(b.lshr(a, self.i64().int_const(from.into())), self.i32())
    }

    /// Below the point of 2^52 an f64 is an integer: no conversion, which AVX2 does not have.
    fn double(&self, a: Value<'c>) -> Value<'c> {
        let b = self.lowering.b;
        let two_to_52 = self.i64().int_const(52f64.exp2().to_bits());
        let double = b.context().double().shaped_like(self.shape);
        let sum = b.bitcast(b.or(a, two_to_52), double);
        b.bitcast(b.fsub(sum, b.bitcast(two_to_52, double)), self.i64())
    }

    fn row(&self, table: &'static Table, index: Value<'c>) -> (Value<'c>, Value<'c>, Value<'c>) {
        let b = self.lowering.b;
        let word = b.context().int(64);
        let name = format!("mufu.{}", table.name());
        let constants = b.module().constant(&name).unwrap_or_else(|| {
            let words = table.rows().flat_map(|(c0, c1, c2)| {
                let coefficients = u64::from(c2 as u32) << 32 | u64::from(c1 as u32);
                [word.int_const(c0 as u64), word.int_const(coefficients)]
            });
            let array = Value::const_array(word, &words.collect::<Vec<_>>());
            b.module().add_constant(&name, array, ROW_BYTES as u32)
        });
        let offset = b.mul(b.zext(index, self.i64()), self.i64().int_const(ROW_BYTES));
        let first = b.ptr_add(constants, offset);
        let second = b.ptr_add(constants, b.add(offset, self.i64().int_const(ROW_BYTES / 2)));
        let load = |at: Value<'c>| match at.ty().is_vector() {
            true => b.gather(self.i64(), at, 8, at.ty().to_mask().all_ones(), self.i64().poison()),
            false => b.load(word, at, 8),
        };
        let coefficients = load(second);
        (load(first), self.window(coefficients, 0), self.window(coefficients, 32))
    }
}
