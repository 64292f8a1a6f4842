//! Approximate quotients: division, and what the host says next to the limits, as `simt_ir::quotient` has it.

use super::Lowering;
use crate::llvm::{FloatPredicate, Function, IntPredicate, Linkage, Type, Value};
use simt_ir::approx::divisor;
use simt_ir::quotient::limits;
use simt_ir::{Approx, FloatBinary, FloatMode, Op, Type as IrType};

/// Magnitudes of quotients, as bits, that are next to no limit: from the first up to so many more.
const INNERMOST: u32 = 0x0080_0010;
const INNER: u32 = 0x7f7f_fff0 - INNERMOST;

impl<'c> Lowering<'_, 'c> {
    /// The quotient of operands that are flushed already where they have to be.
    pub(super) fn quotient(&self, func: Approx, ftz: bool, x: Value<'c>, y: Value<'c>) -> Value<'c> {
        let b = self.b;
        // What an inactive lane holds must not decide where to go.
        let (x, y) = (b.freeze(x), b.freeze(y));
        let divisor = divisor(&self.steps(x.ty()), func, y);
        let mode = FloatMode { ftz, ..FloatMode::default() };
        let quotient = self.float_binary(FloatBinary::Div, mode, IrType::F32, x, divisor);
        let outer = self.is_outer(self.bits(self.magnitude(quotient)));
        b.usually(b.not(self.in_any(outer)), || quotient, || self.at_limits(func, ftz, x, y, quotient))
    }

    /// Of magnitudes, as bits, those that may be next to a limit: among the lanes of one register, the one furthest out of all.
    fn is_outer(&self, magnitude: Value<'c>) -> Value<'c> {
        let b = self.b;
        let mut offset = b.sub(magnitude, magnitude.ty().int_const(INNERMOST.into()));
        while offset.ty().lanes() * 32 > self.cpu.vector_bits() {
            let half = offset.ty().lanes() / 2;
            offset = b.umax(b.subvector(offset, 0, half), b.subvector(offset, half, half));
        }
        b.icmp(IntPredicate::Uge, offset, offset.ty().int_const(INNER.into()))
    }

    fn in_any(&self, condition: Value<'c>) -> Value<'c> {
        if condition.ty().is_vector() { self.b.any(condition) } else { condition }
    }

    /// All lanes that are next to a limit, and few more: whether the dividend is about a limit times the divisor. Zeros and infinities are not
    /// less than themselves.
    fn may_be_next_to_limit(&self, ftz: bool, x: Value<'c>, y: Value<'c>) -> Value<'c> {
        let b = self.b;
        let (x, y) = (self.magnitude(x), self.magnitude(y));
        let times = |value: Value<'c>, factor: f64| b.fmul(value, value.ty().float_const(factor));
        let near = |limit: i32| {
            // What dividends next to the limit are multiplied by for a product that is normal, as is that of the divisor.
            let up = match limit {
                128 => -64,
                -126 => 100,
                _ => 124,
            };
            let (dividend, divisor) =
                (times(x, f64::from(up).exp2()), times(y, f64::from(up + limit).exp2()));
            let margin = (-18f64).exp2();
            let above = b.fcmp(FloatPredicate::Olt, times(divisor, 1.0 - margin), dividend);
            let below = b.fcmp(FloatPredicate::Olt, dividend, times(divisor, 1.0 + margin));
            b.and(above, below)
        };
        let near = limits(ftz).iter().map(|limit| near(*limit));
        near.reduce(|one, other| b.or(one, other)).expect("there are limits")
    }

    /// The quotients, or what the host says where one is next to a limit: in a function that all places share. Quotients that are zero,
    /// infinite or not a number come here too, which may be frequent.
    fn at_limits(
        &self,
        func: Approx,
        ftz: bool,
        x: Value<'c>,
        y: Value<'c>,
        quotient: Value<'c>,
    ) -> Value<'c> {
        let b = self.b;
        let ty = x.ty();
        let name = format!("quotient.{func:?}.{ftz}.{}", ty.lanes());
        let function = b.module().function(&name).unwrap_or_else(|| {
            let here = b.block();
            let function = self.rare_function(&name, ty, &[ty; 3]);
            b.position_at_end(function.append_block("entry"));
            let [x, y, quotient] = [0, 1, 2].map(|index| function.param(index));
            let (near, far) = (function.append_block("near"), function.append_block("far"));
            b.cond_br(self.in_any(self.may_be_next_to_limit(ftz, x, y)), near, far);
            b.position_at_end(near);
            b.ret(self.soft(Op::Approx { func, ftz }, IrType::F32, IrType::F32, &[x, y]));
            b.position_at_end(far);
            b.ret(quotient);
            b.position_at_end(here);
            function
        });
        b.call(function, &[x, y, quotient])
    }

    /// A function that is hardly ever called, for the same processor as the one being built.
    fn rare_function(&self, name: &str, result: Type<'c>, params: &[Type<'c>]) -> Function<'c> {
        let function = self.b.module().add_function(name, result, params, Linkage::Internal);
        function.add_string_attributes_of(self.b.function());
        ["nounwind", "noinline", "cold"].into_iter().for_each(|attribute| function.add_attribute(attribute));
        function
    }
}
