//! f16 and bf16, which are computed in wider formats and rounded once.
//!
//! The sum, difference or product of two 11-bit significands, rounded to the 24 bits of f32, rounds to 11 bits as the exact
//! value does. Where that does not hold (fused operations, products of bf16 that are subnormal) the wide value is rounded
//! to odd first.

use super::Lowering;
use crate::llvm::{FloatPredicate, IntPredicate, Type, Value};
use simt_ir::soft::Format;
use simt_ir::{FloatBinary, FloatMode, MinMax, Op, Rounding};

type IrType = simt_ir::Type;

impl<'c> Lowering<'_, 'c> {
    /// A float as the LLVM type to compute with: halves become f32, exactly; a NaN stays some NaN.
    pub(super) fn widen(&self, ty: IrType, x: Value<'c>) -> Value<'c> {
        let b = self.b;
        let (i32, float) = (b.context().int(32).shaped_like(x.ty()), b.context().float().shaped_like(x.ty()));
        match ty {
            IrType::BF16 => b.bitcast(b.shl(b.zext(x, i32), i32.int_const(16)), float),
            IrType::F16 if self.cpu.has("f16c") => b.fpext(self.as_half(x), float),
            IrType::F16 => {
                // The exponent is rebiased by a multiplication, which also normalises subnormals.
                let bits = b.zext(x, i32);
                let magnitude = b.shl(b.and(bits, i32.int_const(0x7fff)), i32.int_const(13));
                let scaled = b.fmul(b.bitcast(magnitude, float), float.float_const(112f64.exp2()));
                let special = b.icmp(IntPredicate::Uge, magnitude, i32.int_const(0x7c00 << 13));
                let special = b.select(special, i32.int_const(0x7f80_0000), i32.zero());
                let sign = b.shl(b.and(bits, i32.int_const(0x8000)), i32.int_const(16));
                b.bitcast(b.or(b.or(b.bitcast(scaled, i32), special), sign), float)
            }
            _ => x,
        }
    }

    /// f32 to a half, rounded.
    pub(super) fn narrow(&self, ty: IrType, round: Rounding, x: Value<'c>) -> Value<'c> {
        match ty {
            IrType::BF16 => self.narrow_to_bf16(round, x),
            _ if self.cpu.has("f16c") => self.narrow_to_f16_native(round, x),
            _ if round == Rounding::Nearest => self.narrow_to_f16_nearest(x),
            _ => {
                let mode = FloatMode { round, ..FloatMode::default() };
                let op = Op::Convert(simt_ir::Convert::FloatToFloat(mode));
                self.soft(op, IrType::F32, IrType::F16, &[x])
            }
        }
    }

    pub(super) fn half_binary(
        &self,
        op: FloatBinary,
        mode: FloatMode,
        ty: IrType,
        x: Value<'c>,
        y: Value<'c>,
    ) -> Value<'c> {
        let b = self.b;
        let exact_in_f32 = !matches!((op, ty), (FloatBinary::Div, _));
        if mode.round != Rounding::Nearest || !exact_in_f32 || mode.ftz && ty == IrType::BF16 {
            return self.soft(Op::Float(op, mode), ty, ty, &[x, y]);
        }
        let (x, y) = if mode.ftz { (self.flush(ty, x), self.flush(ty, y)) } else { (x, y) };
        let result = if ty == IrType::F16 && self.has_native_half() && !mode.ftz {
            let (x, y) = (self.as_half(x), self.as_half(y));
            self.bits(match op {
                FloatBinary::Add => b.fadd(x, y),
                FloatBinary::Sub => b.fsub(x, y),
                _ => b.fmul(x, y),
            })
        } else {
            let (wide_x, wide_y) = (self.widen(ty, x), self.widen(ty, y));
            let wide = match op {
                FloatBinary::Add => b.fadd(wide_x, wide_y),
                FloatBinary::Sub => b.fsub(wide_x, wide_y),
                // A subnormal product of bf16 has more bits than f32 keeps.
                _ if ty == IrType::BF16 => {
                    let double = b.context().double();
                    self.narrow_to_odd(b.fmul(b.fpext(wide_x, double), b.fpext(wide_y, double)))
                }
                _ => b.fmul(wide_x, wide_y),
            };
            self.narrow_flushed(ty, mode.ftz, wide)
        };
        if mode.sat { self.saturate(ty, result) } else { result }
    }

    pub(super) fn half_fma(
        &self,
        mode: FloatMode,
        ty: IrType,
        x: Value<'c>,
        y: Value<'c>,
        z: Value<'c>,
    ) -> Value<'c> {
        let b = self.b;
        if mode.round != Rounding::Nearest || mode.ftz && ty == IrType::BF16 {
            return self.soft(Op::Fma(mode), ty, ty, &[x, y, z]);
        }
        let flush = |value| if mode.ftz { self.flush(ty, value) } else { value };
        let (x, y, z) = (flush(x), flush(y), flush(z));
        let result = if ty == IrType::F16 && self.has_native_half() && !mode.ftz {
            self.bits(b.fma(self.as_half(x), self.as_half(y), self.as_half(z)))
        } else {
            let mut wide = [self.widen(ty, x), self.widen(ty, y), self.widen(ty, z)];
            if ty == IrType::BF16 {
                // The product may leave the range of f32.
                wide = wide.map(|value| b.fpext(value, b.context().double()));
            }
            // The product is exact, so rounding the sum to odd keeps what the last rounding needs.
            let odd = self.fma_to_odd(wide);
            let odd = if ty == IrType::BF16 { self.narrow_to_odd(odd) } else { odd };
            self.narrow_flushed(ty, mode.ftz, odd)
        };
        if mode.sat { self.saturate(ty, result) } else { result }
    }

    /// Minimum or maximum by comparing bits: with negative numbers' magnitudes inverted they order as the numbers do, -0
    /// before +0.
    pub(super) fn half_min_max(&self, op: MinMax, ty: IrType, x: Value<'c>, y: Value<'c>) -> Value<'c> {
        let b = self.b;
        let int = x.ty();
        if let Some(greater) = self.at_least(op, ty, x, y).or_else(|| self.at_least(op, ty, y, x)) {
            return greater;
        }
        let key = |value: Value<'c>| {
            let sign = b.ashr(value, int.int_const(15));
            b.xor(value, b.and(sign, int.int_const(0x7fff)))
        };
        let predicate = if op.max { IntPredicate::Sge } else { IntPredicate::Sle };
        let first = b.icmp(predicate, key(x), key(y));
        let (x_nan, y_nan) = (self.is_nan(ty, x), self.is_nan(ty, y));
        let number = b.select(first, x, y);
        if op.nan {
            let nan = int.int_const(simt_ir::eval::canonical_nan(ty));
            return b.select(b.or(x_nan, y_nan), nan, number);
        }
        // A NaN loses against anything; of two, either stays and is a NaN.
        b.select(x_nan, y, b.select(y_nan, x, number))
    }

    /// A number, or a constant that is not below zero, whichever is greater, as where negative ones become zero: the numbers above the constant are
    /// one range of bits, from which neither negative ones nor NaNs are.
    fn at_least(&self, op: MinMax, ty: IrType, x: Value<'c>, least: Value<'c>) -> Option<Value<'c>> {
        let b = self.b;
        let infinity = if ty == IrType::F16 { 0x7c00 } else { 0x7f80 };
        let bits = least.as_int().filter(|bits| op.max && !op.nan && *bits < infinity)?;
        let above = b.sub(x, x.ty().int_const(bits + 1));
        let is_above = b.icmp(IntPredicate::Ult, above, x.ty().int_const(infinity - bits));
        Some(b.select(is_above, x, least))
    }

    fn has_native_half(&self) -> bool {
        self.cpu.has("avx512fp16") && self.cpu.vector_bits() == 512
    }

    fn as_half(&self, x: Value<'c>) -> Value<'c> {
        self.b.bitcast(x, self.b.context().half().shaped_like(x.ty()))
    }

    /// To nearest; with `ftz`, to zero if the result rounded to f16's precision with an unbounded exponent is below its
    /// smallest normal number.
    fn narrow_flushed(&self, ty: IrType, ftz: bool, wide: Value<'c>) -> Value<'c> {
        let b = self.b;
        let narrow = self.narrow(ty, Rounding::Nearest, wide);
        if !ftz {
            return narrow;
        }
        assert_eq!(ty, IrType::F16, "bf16 is flushed by the host");
        // Half a unit below 2^-14 and up rounds to 2^-14.
        let limit = wide.ty().float_const((-14f64).exp2() - (-26f64).exp2());
        let tiny = b.fcmp(FloatPredicate::Olt, b.fabs(wide), limit);
        b.select(tiny, b.and(narrow, self.sign_mask(narrow.ty())), narrow)
    }

    fn narrow_to_bf16(&self, round: Rounding, x: Value<'c>) -> Value<'c> {
        let b = self.b;
        let bits = self.bits(x);
        let int: Type<'c> = bits.ty();
        let sign = b.and(bits, self.sign_mask(int));
        let magnitude = b.and(bits, b.not(self.sign_mask(int)));
        let negative = b.icmp(IntPredicate::Ne, sign, int.zero());
        let (all, none) = (int.int_const(0xffff), int.zero());
        let addend = match round {
            Rounding::Nearest => {
                let odd = b.and(b.lshr(magnitude, int.int_const(16)), int.int_const(1));
                b.add(odd, int.int_const(0x7fff))
            }
            Rounding::NearestAway => int.int_const(0x8000),
            Rounding::Zero => none,
            Rounding::Down => b.select(negative, all, none),
            Rounding::Up => b.select(negative, none, all),
        };
        let rounded = b.lshr(b.add(magnitude, addend), int.int_const(16));
        // Infinity has no bits to carry from; a NaN must not become one by losing its payload.
        let infinite = b.icmp(IntPredicate::Eq, magnitude, int.int_const(0x7f80_0000));
        let rounded = b.select(infinite, int.int_const(0x7f80), rounded);
        let signed = b.or(rounded, b.lshr(sign, int.int_const(16)));
        let nan = b.fcmp(FloatPredicate::Uno, x, x);
        let result = b.select(nan, int.int_const(0x7fff), signed);
        b.trunc(result, b.context().int(16))
    }

    fn narrow_to_f16_native(&self, round: Rounding, x: Value<'c>) -> Value<'c> {
        let b = self.b;
        if round == Rounding::Nearest {
            return self.bits(b.fptrunc(x, b.context().half()));
        }
        let control = b.context().int(32).int_const(super::float::rounding_control(round) & 3);
        if self.cpu.vector_bits() == 512 && x.ty().lanes().is_multiple_of(16) {
            let short = b.context().int(16);
            return self.in_chunks(16, &[x], |chunk| {
                let all = short.all_ones();
                let zero = short.vector(16).zero();
                let name = "llvm.x86.avx512.mask.vcvtps2ph.512";
                b.intrinsic(name, &[], &[chunk[0], control, zero, all])
            });
        }
        self.in_chunks(8, &[x], |chunk| b.intrinsic("llvm.x86.vcvtps2ph.256", &[], &[chunk[0], control]))
    }

    /// To nearest without instructions for it: a subnormal result is aligned by an addition, a normal one rounded in its
    /// bits.
    fn narrow_to_f16_nearest(&self, x: Value<'c>) -> Value<'c> {
        let b = self.b;
        let bits = self.bits(x);
        let int: Type<'c> = bits.ty();
        let constant = |value: u64| int.int_const(value);
        let sign = b.and(bits, self.sign_mask(int));
        let magnitude = b.and(bits, b.not(self.sign_mask(int)));

        // 0.5 has its last bit at 2^-24, the unit of subnormals.
        let half = x.ty().float_const(0.5);
        let aligned = b.fadd(self.with_bits(magnitude, x.ty()), half);
        let subnormal = b.sub(self.bits(aligned), self.bits(half));

        let odd = b.and(b.lshr(magnitude, constant(13)), constant(1));
        let rebiased = b.sub(magnitude, constant(112 << 23));
        let normal = b.lshr(b.add(b.add(rebiased, odd), constant(0xfff)), constant(13));

        let small = b.icmp(IntPredicate::Ult, magnitude, constant(113 << 23));
        let large = b.icmp(IntPredicate::Uge, magnitude, constant(143 << 23));
        let nan = b.icmp(IntPredicate::Ugt, magnitude, constant(0x7f80_0000));
        let infinity = constant(Format::of(IrType::F16).infinity());
        let finite = b.select(small, subnormal, b.select(large, infinity, normal));
        let result = b.select(nan, constant(0x7fff), b.or(finite, b.lshr(sign, constant(16))));
        b.trunc(result, b.context().int(16))
    }
}
