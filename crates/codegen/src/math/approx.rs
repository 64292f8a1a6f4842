//! Approximations: the steps of `simt_ir::approx` as instructions.

use super::{CURRENT_ROUNDING, Lowering, value_type};
use crate::llvm::{FloatPredicate, IntPredicate, Type, Value};
use simt_ir::approx::{
    EX2, F64_NAN_OF_HIGH_HALVES, MODERATE, Steps, ex2_in_steps, ex2_of_moderate, f32_steps, f64_mask,
    lg2_in_steps, lg2_of_normal, lg2_of_parts, rsqrt_in_steps, rsqrt_of_normal, rsqrt_of_positive,
};
use simt_ir::{Approx, FloatBinary, FloatMode, Rounding};

type IrType = simt_ir::Type;

impl<'c> Lowering<'_, 'c> {
    pub(super) fn approx(&self, func: Approx, ftz: bool, ty: IrType, args: &[Value<'c>]) -> Value<'c> {
        if ty == IrType::F64 && func == Approx::Rcp && ftz && args[0].ty().is_vector() {
            return self.steps(args[0].ty()).usually(
                self.is_within_reciprocals(args[0]),
                || self.high_half(self.b.fdiv(args[0].ty().float_const(1.0), self.high_half(args[0]))),
                || self.approx_guarded(func, ftz, ty, args),
            );
        }
        self.approx_guarded(func, ftz, ty, args)
    }

    /// With all that operands and results may be beside normal numbers.
    fn approx_guarded(&self, func: Approx, ftz: bool, ty: IrType, args: &[Value<'c>]) -> Value<'c> {
        let flush = ftz && !(self.flushing && ty == IrType::F32);
        let single = ty == IrType::F32;
        let flush_args = match func {
            // Small arguments of the tangent are its results, which no arithmetic has seen.
            Approx::Tanh => ftz,
            // A power of a subnormal is that of 0.
            Approx::Ex2 if single => false,
            _ => flush,
        };
        let args: Vec<_> =
            args.iter().map(|&arg| if flush_args { self.flush(ty, arg) } else { arg }).collect();
        let result = match ty {
            IrType::F64 => self.approx_f64(func, ftz, &args),
            IrType::F32 if matches!(func, Approx::Div | Approx::DivFull) => {
                return self.quotient(func, ftz, args[0], args[1]);
            }
            IrType::F32 => self.approx_f32(func, ftz, &args),
            _ => {
                let wide: Vec<_> = args.iter().map(|&arg| self.widen(ty, arg)).collect();
                let value = self.approx_f32(func, false, &wide);
                let value = if ty == IrType::F16 { self.overflow_of_f16(value) } else { value };
                self.narrow(ty, Rounding::Zero, value)
            }
        };
        match func {
            _ if !flush => result,
            // They grow with their arguments, and are normal from here on.
            Approx::Ex2 if single => {
                let limit = result.ty().float_const(-126.0);
                let tiny = self.b.fcmp(FloatPredicate::Olt, args[0], limit);
                self.b.select(tiny, result.ty().zero(), result)
            }
            // Never subnormal.
            Approx::Lg2 | Approx::Sqrt | Approx::Rsqrt | Approx::Tanh if single => result,
            _ => self.flush(ty, result),
        }
    }

    /// Numbers of f64 without their low halves.
    fn high_half(&self, value: Value<'c>) -> Value<'c> {
        let bits = self.bits(value);
        self.with_bits(self.b.and(bits, bits.ty().int_const(f64_mask(true))), value.ty())
    }

    /// Whether numbers of f64 and their reciprocals are normal.
    fn is_within_reciprocals(&self, x: Value<'c>) -> Value<'c> {
        let b = self.b;
        let magnitude = b.shl(self.bits(x), x.ty().to_int().int_const(1));
        let of = |exponent: f64| exponent.exp2().to_bits() << 1;
        // Processors compare signed integers: the numbers that are come to lie at the lower end of those.
        let lowest = magnitude.ty().int_const((1u64 << 63).wrapping_sub(of(-1022.0)));
        let end = magnitude.ty().int_const((1u64 << 63).wrapping_add(of(1022.0) - of(-1022.0)));
        b.icmp(IntPredicate::Slt, b.add(magnitude, lowest), end)
    }

    /// What is beyond the range of f16 becomes infinite, which cutting off would not do.
    pub(super) fn overflow_of_f16(&self, value: Value<'c>) -> Value<'c> {
        let b = self.b;
        let float = value.ty();
        let beyond = b.fcmp(FloatPredicate::Oge, b.fabs(value), float.float_const(65536.0));
        b.select(beyond, b.copysign(float.float_const(f64::INFINITY), value), value)
    }

    pub(super) fn steps(&self, shape: Type<'c>) -> Emit<'_, '_, 'c> {
        Emit { lowering: self, shape }
    }

    fn approx_f32(&self, func: Approx, ftz: bool, args: &[Value<'c>]) -> Value<'c> {
        f32_steps(&self.steps(args[0].ty()), func, ftz, args[0], args.get(1).copied().unwrap_or(args[0]))
    }

    fn approx_f64(&self, func: Approx, ftz: bool, args: &[Value<'c>]) -> Value<'c> {
        let b = self.b;
        let double = args[0].ty();
        let mask = |value: Value<'c>| if ftz { self.high_half(value) } else { value };
        let (x, one) = (mask(args[0]), double.float_const(1.0));
        let value = match func {
            Approx::Rcp => b.fdiv(one, x),
            Approx::Rsqrt => b.fdiv(one, b.sqrt(x)),
            Approx::Sqrt => b.sqrt(x),
            Approx::Div | Approx::DivFull => b.fdiv(x, args[1]),
            // PTX has these for f32 and narrower only.
            Approx::Ex2 | Approx::Lg2 | Approx::Sin | Approx::Cos | Approx::Tanh => {
                self.constant(IrType::F64, f64::NAN.to_bits(), double)
            }
        };
        if !ftz {
            return value;
        }
        let nan = b.fcmp(FloatPredicate::Uno, value, value);
        b.select(nan, double.float_bits(F64_NAN_OF_HIGH_HALVES), mask(value))
    }
}

/// [`Lowering::fixup`]'s table for the reciprocal of a square root.
const SPECIAL_ROOTS: u64 = 0x0383_0622;

/// Emits each step, in the shape of the operands.
pub(super) struct Emit<'s, 'a, 'c> {
    lowering: &'s Lowering<'a, 'c>,
    shape: Type<'c>,
}

impl<'c> Emit<'_, '_, 'c> {
    fn i32(&self) -> Type<'c> {
        value_type(self.lowering.b.context(), IrType::I32).shaped_like(self.shape)
    }
}

impl<'c> Steps for Emit<'_, '_, 'c> {
    type F = Value<'c>;
    type I = Value<'c>;
    type B = Value<'c>;

    fn float(&self, value: f32) -> Value<'c> {
        self.shape.float_bits(value.to_bits().into())
    }
    fn int(&self, value: u32) -> Value<'c> {
        self.i32().int_const(value.into())
    }
    fn bits(&self, x: Value<'c>) -> Value<'c> {
        self.lowering.bits(x)
    }
    fn of_bits(&self, x: Value<'c>) -> Value<'c> {
        self.lowering.with_bits(x, self.shape)
    }
    fn add(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.fadd(a, b)
    }
    fn sub(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.fsub(a, b)
    }
    fn mul(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.fmul(a, b)
    }
    fn div(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.fdiv(a, b)
    }
    fn mul_towards_zero(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        let mode = FloatMode { round: Rounding::Zero, ..FloatMode::default() };
        self.lowering.float_binary(FloatBinary::Mul, mode, IrType::F32, a, b)
    }
    fn round(&self, a: Value<'c>) -> Value<'c> {
        self.lowering.b.roundeven(a)
    }
    fn fma(&self, a: Value<'c>, b: Value<'c>, c: Value<'c>) -> Value<'c> {
        self.lowering.fma(FloatMode::default(), IrType::F32, a, b, c)
    }
    fn sqrt(&self, a: Value<'c>) -> Value<'c> {
        self.lowering.b.sqrt(a)
    }
    fn to_float(&self, a: Value<'c>) -> Value<'c> {
        self.lowering.b.sitofp(a, self.shape)
    }
    fn int_add(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.add(a, b)
    }
    fn int_sub(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.sub(a, b)
    }
    fn and(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.and(a, b)
    }
    fn xor(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.xor(a, b)
    }
    fn shl(&self, a: Value<'c>, by: u32) -> Value<'c> {
        self.lowering.b.shl(a, self.int(by))
    }
    fn sar(&self, a: Value<'c>, by: u32) -> Value<'c> {
        self.lowering.b.ashr(a, self.int(by))
    }
    fn less(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.fcmp(FloatPredicate::Olt, a, b)
    }
    fn equal(&self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.fcmp(FloatPredicate::Oeq, a, b)
    }
    fn nonzero(&self, a: Value<'c>) -> Value<'c> {
        self.lowering.b.icmp(IntPredicate::Ne, a, a.ty().zero())
    }
    fn select(&self, condition: Value<'c>, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.lowering.b.select(condition, a, b)
    }

    fn flush(&self, a: Value<'c>) -> Value<'c> {
        if self.lowering.flushing { a } else { self.lowering.flush(IrType::F32, a) }
    }

    fn abs(&self, a: Value<'c>) -> Value<'c> {
        self.lowering.b.fabs(a)
    }

    /// AVX-512 has instructions for both ends, which make nothing special of infinities.
    fn ex2(&self, x: Value<'c>) -> Value<'c> {
        if self.lowering.cpu.vector_bits() != 512 {
            let moderate = self.less(self.abs(x), self.float(MODERATE));
            return self.usually(moderate, || ex2_of_moderate(self, x), || ex2_in_steps(self, x));
        }
        const NEAREST: u64 = 0;
        let part = self.masked("llvm.x86.avx512.mask.reduce.ps.512", &[x], Some(NEAREST));
        let power = self.polynomial(part, &EX2);
        self.masked("llvm.x86.avx512.mask.scalef.ps.512", &[power, self.sub(x, part)], None)
    }

    /// AVX-512 takes numbers apart, subnormal ones too; the exponent of an infinity is that infinity, of 0 its negative.
    fn lg2(&self, x: Value<'c>) -> Value<'c> {
        if self.lowering.cpu.vector_bits() != 512 {
            return self.usually(self.is_normal(x), || lg2_of_normal(self, x), || lg2_in_steps(self, x));
        }
        // Mantissas from 0.75 to 1.5, NaNs of what is below 0.
        const LOGARITHM: u64 = 0b1111;
        let exponent = |x| self.masked("llvm.x86.avx512.mask.getexp.ps.512", &[x], None);
        let mantissa = self.masked("llvm.x86.avx512.mask.getmant.ps.512", &[x], Some(LOGARITHM));
        lg2_of_parts(self, mantissa, self.sub(exponent(x), exponent(mantissa)))
    }

    /// AVX-512 replaces the results of all special operands at once.
    fn rsqrt(&self, x: Value<'c>, ftz: bool) -> Value<'c> {
        let rare = || match self.lowering.cpu.vector_bits() {
            512 => self.lowering.fixup(rsqrt_of_positive(self, x, ftz), x, SPECIAL_ROOTS),
            _ => rsqrt_in_steps(self, x, ftz),
        };
        self.usually(self.is_normal(x), || rsqrt_of_normal(self, x), rare)
    }
}

impl<'c> Emit<'_, '_, 'c> {
    /// Whether numbers are normal, finite and above 0.
    fn is_normal(&self, x: Value<'c>) -> Value<'c> {
        if self.lowering.cpu.vector_bits() == 512 && self.shape.is_vector() {
            const ALL_OTHERS: u64 = 0xff;
            return self.lowering.b.not(self.lowering.is_of_class(x, ALL_OTHERS));
        }
        // Processors compare signed integers: the numbers that are come to lie at the lower end of those.
        let lowest = self.int(0x8000_0000 - f32::MIN_POSITIVE.to_bits());
        let count = f32::INFINITY.to_bits() - f32::MIN_POSITIVE.to_bits();
        let end = self.int(0x8000_0000 + count);
        self.lowering.b.icmp(IntPredicate::Slt, self.int_add(self.bits(x), lowest), end)
    }

    /// One of two ways to the same value: the shorter one where a condition holds for all lanes, as it nearly always does.
    fn usually(
        &self,
        condition: Value<'c>,
        usual: impl FnOnce() -> Value<'c>,
        rare: impl FnOnce() -> Value<'c>,
    ) -> Value<'c> {
        if !self.shape.is_vector() {
            return rare();
        }
        let b = self.lowering.b;
        // What an inactive lane holds may be anything.
        b.usually(b.all(b.freeze(condition)), usual, rare)
    }

    /// An instruction of AVX-512 in the current rounding, with a number that belongs to it.
    fn masked(&self, name: &str, args: &[Value<'c>], immediate: Option<u64>) -> Value<'c> {
        let b = self.lowering.b;
        self.lowering.in_chunks(16, args, |chunk| {
            let i32 = b.context().int(32);
            let mut operands = chunk.to_vec();
            operands.extend(immediate.map(|bits| i32.int_const(bits)));
            operands.push(chunk[0].ty().zero());
            operands.push(b.context().int(16).all_ones());
            operands.push(i32.int_const(CURRENT_ROUNDING));
            b.intrinsic(name, &[], &operands)
        })
    }
}
