//! Functions that PTX lets an implementation approximate.
//!
//! Each is a fixed sequence of exactly rounded steps, written once over [`Steps`]. The interpreter runs it on numbers,
//! the code generator emits it as instructions, and both give the same bits on every CPU: no step is an estimate that
//! differs between CPUs.
//!
//! The polynomials come from `scripts/fit-math.py`.

use crate::eval::canonical_nan;
use crate::soft::Format;
use crate::{Approx, Rounding, Type, quotient};

/// Which results PTX's `.approx` instructions have (`ANYWARP_APPROX`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Approximations {
    /// Within PTX's bounds, and fast: [`Op::Approx`](crate::Op::Approx).
    #[default]
    Fast,
    /// The very bits of the hardware: [`Op::Mufu`](crate::Op::Mufu).
    Hardware,
}

impl Approximations {
    /// Both.
    pub const ALL: [Approximations; 2] = [Approximations::Fast, Approximations::Hardware];

    /// The name that chooses it.
    pub fn name(self) -> &'static str {
        match self {
            Approximations::Fast => "fast",
            Approximations::Hardware => "hardware",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Approximations> {
        Approximations::ALL.into_iter().find(|known| known.name() == name)
    }
}

/// The function's value, within the bounds of the PTX ISA. `b` is the divisor of the divisions.
pub fn eval(func: Approx, ftz: bool, ty: Type, a: u64, b: u64) -> u64 {
    let format = Format::of(ty);
    let flush = |bits| if ftz { format.flush(bits) } else { bits };
    let (a, b) = (flush(a), flush(b));
    let single = |bits: u64| f32::from_bits(bits as u32);
    let result = match ty {
        Type::F64 => f64_value(func, ftz, a, b),
        Type::F32 if matches!(func, Approx::Div | Approx::DivFull) => quotient::eval(func, ftz, a, b),
        Type::F32 => f32_steps(&Host, func, ftz, single(a), single(b)).to_bits().into(),
        _ => narrow(format, f32_steps(&Host, func, false, widen(format, a), widen(format, b))),
    };
    match format.is_nan(result) {
        true if ty == Type::F64 => result,
        true => canonical_nan(ty),
        false => flush(result),
    }
}

/// The exactly rounded steps approximations are made of, on f32 (`F`), 32-bit integers (`I`) and conditions (`B`).
pub trait Steps {
    /// A 32-bit float.
    type F: Copy;
    /// A 32-bit integer, which wraps.
    type I: Copy;
    /// A condition.
    type B: Copy;

    /// A constant.
    fn float(&self, value: f32) -> Self::F;
    /// A constant.
    fn int(&self, value: u32) -> Self::I;
    /// The bits of a float.
    fn bits(&self, x: Self::F) -> Self::I;
    /// The float of these bits.
    fn of_bits(&self, x: Self::I) -> Self::F;
    /// `a + b`.
    fn add(&self, a: Self::F, b: Self::F) -> Self::F;
    /// `a - b`.
    fn sub(&self, a: Self::F, b: Self::F) -> Self::F;
    /// `a * b`.
    fn mul(&self, a: Self::F, b: Self::F) -> Self::F;
    /// `a / b`.
    fn div(&self, a: Self::F, b: Self::F) -> Self::F;
    /// `a * b`, rounded towards zero.
    fn mul_towards_zero(&self, a: Self::F, b: Self::F) -> Self::F;
    /// `a * b + c`, rounded once.
    fn fma(&self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// Square root.
    fn sqrt(&self, a: Self::F) -> Self::F;
    /// The nearest integer, ties to even.
    fn round(&self, a: Self::F) -> Self::F;
    /// A signed integer of at most 24 bits as a float.
    fn to_float(&self, a: Self::I) -> Self::F;
    /// Wrapping sum.
    fn int_add(&self, a: Self::I, b: Self::I) -> Self::I;
    /// Wrapping difference.
    fn int_sub(&self, a: Self::I, b: Self::I) -> Self::I;
    /// Bitwise and.
    fn and(&self, a: Self::I, b: Self::I) -> Self::I;
    /// Bitwise exclusive or.
    fn xor(&self, a: Self::I, b: Self::I) -> Self::I;
    /// Left shift by a constant below 32.
    fn shl(&self, a: Self::I, by: u32) -> Self::I;
    /// Right shift of a signed integer by a constant below 32.
    fn sar(&self, a: Self::I, by: u32) -> Self::I;
    /// `a < b`; false for NaN.
    fn less(&self, a: Self::F, b: Self::F) -> Self::B;
    /// `a == b`; false for NaN.
    fn equal(&self, a: Self::F, b: Self::F) -> Self::B;
    /// Whether the integer is not 0.
    fn nonzero(&self, a: Self::I) -> Self::B;
    /// `a` where the condition holds, else `b`.
    fn select(&self, condition: Self::B, a: Self::F, b: Self::F) -> Self::F;

    /// `2^x`: [`EX2`] of what lies between `x` and the nearest integer, even of two, scaled by that power and rounded once.
    fn ex2(&self, x: Self::F) -> Self::F {
        ex2_in_steps(self, x)
    }

    /// The logarithm to base 2: [`lg2_of_parts`] of mantissa and exponent. 0 has minus infinity, what is below it NaN.
    fn lg2(&self, x: Self::F) -> Self::F {
        lg2_in_steps(self, x)
    }

    /// The reciprocal of the square root: [`rsqrt_of_positive`]. 0 has the infinity of its sign, what is below it NaN.
    fn rsqrt(&self, x: Self::F, ftz: bool) -> Self::F {
        rsqrt_in_steps(self, x, ftz)
    }

    /// A subnormal becomes zero of its sign.
    fn flush(&self, a: Self::F) -> Self::F {
        let zero = self.of_bits(self.and(self.bits(a), self.int(0x8000_0000)));
        self.select(self.less(self.abs(a), self.float(f32::MIN_POSITIVE)), zero, a)
    }

    /// `|a|`.
    fn abs(&self, a: Self::F) -> Self::F {
        self.of_bits(self.and(self.bits(a), self.int(0x7fff_ffff)))
    }

    /// A polynomial in `x`, lowest coefficient first, by Horner's rule.
    fn polynomial(&self, x: Self::F, coefficients: &[u32]) -> Self::F {
        let mut sum = self.float(f32::from_bits(coefficients[coefficients.len() - 1]));
        for &coefficient in coefficients.iter().rev().skip(1) {
            sum = self.fma(sum, x, self.float(f32::from_bits(coefficient)));
        }
        sum
    }
}

/// `x * 2^n` rounded once, for `x` in [0.5, 2] or NaN and `n` in [-250, 250]: the first half of the power keeps the product
/// normal and so exact.
fn scale<S: Steps + ?Sized>(s: &S, x: S::F, n: S::I) -> S::F {
    let half = s.sar(n, 1);
    let power = |n| s.of_bits(s.shl(s.int_add(n, s.int(127)), 23));
    s.mul(s.mul(x, power(half)), power(s.int_sub(n, half)))
}

/// The function of f32 as steps. The caller flushes operands and result; `ftz` is for what lies between.
pub fn f32_steps<S: Steps>(s: &S, func: Approx, ftz: bool, a: S::F, b: S::F) -> S::F {
    match func {
        Approx::Ex2 => s.ex2(a),
        Approx::Lg2 => s.lg2(a),
        Approx::Sin => sin_or_cos(s, a, 0, ftz),
        Approx::Cos => sin_or_cos(s, a, 1, ftz),
        Approx::Tanh => tanh(s, a),
        Approx::Rcp => s.div(s.float(1.0), a),
        Approx::Rsqrt => s.rsqrt(a, ftz),
        Approx::Sqrt => s.sqrt(a),
        Approx::Div | Approx::DivFull => s.div(a, divisor(s, func, b)),
    }
}

/// What `div.approx` divides by: divisors whose reciprocal is subnormal count as infinite.
pub fn divisor<S: Steps>(s: &S, func: Approx, b: S::F) -> S::F {
    if func != Approx::Div {
        return b;
    }
    // A NaN is not above 2^126 and stays.
    let huge = s.less(s.float(126f32.exp2()), s.abs(b));
    let sign = s.and(s.bits(b), s.int(0x8000_0000));
    s.select(huge, s.of_bits(s.xor(s.int(0x7f80_0000), sign)), b)
}

/// 2^f for f in [-0.5, 0.5]. Relative error 2^-28.3 before rounding.
pub const EX2: [u32; 7] =
    [0x3f80_0000, 0x3f31_7218, 0x3e75_fdee, 0x3d63_57bd, 0x3c1d_96e9, 0x3aaf_84a3, 0x3920_bd2e];
/// log2(1 + f) / f for f in [-0.25, 0.5]. Relative error 2^-25.0 before rounding.
const LG2: [u32; 9] = [
    0x3fb8_aa3b,
    0xbf38_aa49,
    0x3ef6_38e2,
    0xbeb8_9e4e,
    0x3e93_8d27,
    0xbe78_72ad,
    0x3e5d_7048,
    0xbe32_c54f,
    0x3da0_d507,
];
/// What bits are subtracted from for a start of 1 / sqrt(x), at most 3.5 percent too large or too small.
const RSQRT_START: u32 = 0x5f37_4000;
/// 1 / sqrt(1 + e) for e in [-0.0684, 0.0678]. Relative error 2^-25.4 before rounding.
const RSQRT: [u32; 5] = [0x3f80_0000, 0xbeff_ffc9, 0x3ebf_ff94, 0xbea0_baf8, 0x3e8c_eefa];
/// sin(r) / r in r^2, r up to pi/4. Relative error 2^-27.9 before rounding.
const SIN: [u32; 4] = [0x3f80_0000, 0xbe2a_aaa3, 0x3c08_83bc, 0xb94c_aa01];
/// cos(r) in r^2, r up to pi/4. Relative error 2^-33.0 before rounding.
const COS: [u32; 5] = [0x3f80_0000, 0xbf00_0000, 0x3d2a_aaa5, 0xbab6_0615, 0x37cc_f489];
/// tanh(x) / x in x^2, x up to 0.6. Relative error 2^-28.4 before rounding.
const TANH: [u32; 6] = [0x3f80_0000, 0xbeaa_aa9f, 0x3e08_84df, 0xbd5c_4d5d, 0x3caa_61e1, 0xbbc1_43bb];

/// Adding this rounds to an integer, whose low bits are then the low bits of the sum.
const TO_INTEGER: f32 = 12_582_912.0;

/// The integer nearest to `x`, as float and as integer, for |x| below 2^22.
fn nearest<S: Steps + ?Sized>(s: &S, x: S::F) -> (S::F, S::I) {
    let magic = s.float(TO_INTEGER);
    let sum = s.add(x, magic);
    (s.sub(sum, magic), s.int_sub(s.bits(sum), s.bits(magic)))
}

/// `x` limited to [low, high]; a NaN stays.
fn clamp<S: Steps + ?Sized>(s: &S, x: S::F, low: f32, high: f32) -> S::F {
    let (low, high) = (s.float(low), s.float(high));
    let x = s.select(s.less(x, low), low, x);
    s.select(s.less(high, x), high, x)
}

/// [`Steps::ex2`] on every processor.
pub fn ex2_in_steps<S: Steps + ?Sized>(s: &S, x: S::F) -> S::F {
    // Beyond these the result is 0 or infinite.
    let x = clamp(s, x, -152.0, 129.0);
    let (whole, n) = nearest(s, x);
    scale(s, s.polynomial(s.sub(x, whole), &EX2), n)
}

/// Likewise, for magnitudes below [`MODERATE`]: the power is normal, and so its exponent is a sum.
pub fn ex2_of_moderate<S: Steps + ?Sized>(s: &S, x: S::F) -> S::F {
    let (whole, n) = nearest(s, x);
    let part = s.polynomial(s.sub(x, whole), &EX2);
    s.of_bits(s.int_add(s.bits(part), s.shl(n, 23)))
}

/// The bound of [`ex2_of_moderate`].
pub const MODERATE: f32 = 125.0;

/// [`Steps::lg2`] on every processor.
pub fn lg2_in_steps<S: Steps + ?Sized>(s: &S, x: S::F) -> S::F {
    let zero = s.float(0.0);
    // Subnormals are scaled into the normal range.
    let small = s.less(x, s.float(f32::MIN_POSITIVE));
    let scaled = s.select(small, s.mul(x, s.float(24f32.exp2())), x);
    let offset = s.select(small, s.float(-24.0), zero);
    let (m, e) = parts_of_normal(s, scaled);
    let value = lg2_of_parts(s, m, s.add(e, offset));
    let infinity = s.float(f32::INFINITY);
    let value = s.select(s.less(x, infinity), value, x); // infinite or NaN
    let value = s.select(s.less(x, zero), s.float(f32::NAN), value);
    s.select(s.equal(x, zero), s.float(f32::NEG_INFINITY), value)
}

/// Likewise, for what is normal and above 0.
pub fn lg2_of_normal<S: Steps + ?Sized>(s: &S, x: S::F) -> S::F {
    let (m, e) = parts_of_normal(s, x);
    lg2_of_parts(s, m, e)
}

/// What is normal and above 0 as `2^e * m` with m in [0.75, 1.5).
fn parts_of_normal<S: Steps + ?Sized>(s: &S, x: S::F) -> (S::F, S::F) {
    let bits = s.bits(x);
    let e = s.sar(s.int_sub(bits, s.int(0x3f40_0000)), 23);
    (s.of_bits(s.int_sub(bits, s.shl(e, 23))), s.to_float(e))
}

/// The logarithm of `2^e * m` with m in [0.75, 1.5).
pub fn lg2_of_parts<S: Steps + ?Sized>(s: &S, m: S::F, e: S::F) -> S::F {
    let f = s.sub(m, s.float(1.0));
    s.fma(f, s.polynomial(f, &LG2), e)
}

/// [`Steps::rsqrt`] on every processor.
pub fn rsqrt_in_steps<S: Steps + ?Sized>(s: &S, x: S::F, ftz: bool) -> S::F {
    let (zero, infinity) = (s.float(0.0), s.float(f32::INFINITY));
    let value = rsqrt_of_positive(s, x, ftz); // a NaN of a NaN
    let value = s.select(s.equal(x, infinity), zero, value);
    let value = s.select(s.less(x, zero), s.float(f32::NAN), value);
    let signed = s.xor(s.bits(infinity), s.and(s.bits(x), s.int(0x8000_0000)));
    s.select(s.equal(x, zero), s.of_bits(signed), value)
}

/// The reciprocal of the square root of what is above 0 and finite; with `ftz`, of what is normal.
pub fn rsqrt_of_positive<S: Steps + ?Sized>(s: &S, x: S::F, ftz: bool) -> S::F {
    if ftz {
        return rsqrt_of_normal(s, x);
    }
    let small = s.less(x, s.float(f32::MIN_POSITIVE));
    let root = rsqrt_of_normal(s, s.select(small, s.mul(x, s.float(24f32.exp2())), x));
    s.select(small, s.mul(root, s.float(12f32.exp2())), root)
}

/// [`rsqrt_of_positive`] of what is normal.
///
/// A square root and a division take a processor longer than all these steps. No estimate instruction begins them, since
/// each maker's has results of its own: half of the exponent's bits, negated, do.
pub fn rsqrt_of_normal<S: Steps + ?Sized>(s: &S, x: S::F) -> S::F {
    let start = s.of_bits(s.int_sub(s.int(RSQRT_START), s.sar(s.bits(x), 1)));
    // What is left is small, and so is what its rounding changes in the sum.
    let excess = s.fma(s.mul(x, start), start, s.float(-1.0));
    let factor = s.polynomial(excess, &RSQRT[1..]);
    s.fma(s.mul(start, excess), factor, start)
}

/// Sine of `x + quarters * pi/2`. As on the hardware the argument is first expressed in turns, rounded towards zero: far from
/// zero that is the whole error, and arguments beyond 2^25 are whole turns.
fn sin_or_cos<S: Steps>(s: &S, x: S::F, quarters: u32, ftz: bool) -> S::F {
    const TURNS_PER_RADIAN: u32 = 0x3e22_f983;
    let turns = s.mul_towards_zero(x, s.float(f32::from_bits(TURNS_PER_RADIAN)));
    let turns = if ftz { s.flush(turns) } else { turns };
    let part = s.sub(turns, s.round(turns));
    let quarter_turns = s.mul(part, s.float(4.0));
    let (whole, n) = nearest(s, quarter_turns);
    let rest = s.sub(quarter_turns, whole);
    // What the hardware does not resolve is zero there: up to 2^-25 turns towards zero from a whole quarter, with the sign that the function has
    // there, and less than that away from it, with the other quarter's. So is the whole quarter itself.
    let unit = (-23f32).exp2();
    let away = s.xor(s.int((unit * f32::EPSILON / 2.0).to_bits()), s.and(s.bits(x), s.int(0x8000_0000)));
    let moved = s.add(rest, s.of_bits(away));
    let zero = s.of_bits(s.and(s.bits(moved), s.int(0x8000_0000)));
    let rest = s.select(s.less(s.abs(moved), s.float(unit)), zero, rest);
    let r = s.mul(rest, s.float(std::f32::consts::FRAC_PI_2));
    let square = s.mul(r, r);
    let sine = s.mul(r, s.polynomial(square, &SIN));
    let cosine = s.polynomial(square, &COS);
    let quadrant = s.int_add(n, s.int(quarters));
    let odd = s.nonzero(s.and(quadrant, s.int(1)));
    let value = s.select(odd, cosine, sine);
    s.of_bits(s.xor(s.bits(value), s.shl(s.and(quadrant, s.int(2)), 30)))
}

fn tanh<S: Steps>(s: &S, x: S::F) -> S::F {
    const TWO_OVER_LN2: u32 = 0x4038_aa3b;
    let one = s.float(1.0);
    let magnitude = s.abs(x);
    let e = s.ex2(s.mul(magnitude, s.float(-f32::from_bits(TWO_OVER_LN2))));
    let large = s.div(s.sub(one, e), s.add(one, e));
    // From 8 on the hardware says 1.
    let large = s.select(s.less(s.float(f32::from_bits(8f32.to_bits() - 1)), magnitude), one, large);
    let sign = s.and(s.bits(x), s.int(0x8000_0000));
    let large = s.of_bits(s.xor(s.bits(large), sign));
    let small = s.mul(x, s.polynomial(s.mul(x, x), &TANH));
    // As on the hardware, below its resolution.
    let small = s.select(s.less(magnitude, s.float(1.0 / 256.0)), x, small);
    s.select(s.less(magnitude, s.float(0.6)), small, large)
}

/// PTX has reciprocals of f64, with `.ftz` from and to the high halves of numbers: programs refine them.
fn f64_value(func: Approx, ftz: bool, a: u64, b: u64) -> u64 {
    let mask = f64_mask(ftz);
    let (x, y) = (f64::from_bits(a & mask), f64::from_bits(b));
    let value = match func {
        Approx::Rcp => 1.0 / x,
        Approx::Rsqrt => 1.0 / x.sqrt(),
        Approx::Sqrt => x.sqrt(),
        Approx::Div | Approx::DivFull => x / y,
        Approx::Ex2 | Approx::Lg2 | Approx::Sin | Approx::Cos | Approx::Tanh => f64::NAN,
    };
    let format = Format::of(Type::F64);
    match value.is_nan() {
        true if ftz => F64_NAN_OF_HIGH_HALVES,
        true if x.is_nan() => a | format.quiet(),
        true => canonical_nan(Type::F64),
        false => value.to_bits() & mask,
    }
}

/// What is not a number, where only high halves are computed: the canonical NaN of 32 bits above zeros, as the hardware gives.
pub const F64_NAN_OF_HIGH_HALVES: u64 = 0x7fff_ffff_0000_0000;

/// The bits of an f64 that the approximations with and without `.ftz` look at and deliver.
pub fn f64_mask(ftz: bool) -> u64 {
    if ftz { 0xffff_ffff_0000_0000 } else { u64::MAX }
}

pub(crate) fn widen(format: Format, bits: u64) -> f32 {
    let single = Format::of(Type::F32);
    let sign = if format.is_negative(bits) { single.sign() } else { 0 };
    let wide = if format.is_nan(bits) {
        canonical_nan(Type::F32)
    } else if format.is_infinite(bits) {
        sign | single.infinity()
    } else {
        format.unpack(bits).round(single, Rounding::Nearest, false)
    };
    f32::from_bits(wide as u32)
}

/// Halves are cut off, as on the hardware, but what is beyond the range of f16 is infinite.
pub(crate) fn narrow(format: Format, value: f32) -> u64 {
    let sign = if value.is_sign_negative() { format.sign() } else { 0 };
    if value.is_nan() {
        format.infinity() | format.quiet()
    } else if value.is_infinite() || format == Format::of(Type::F16) && value.abs() >= 65536.0 {
        sign | format.infinity()
    } else {
        Format::of(Type::F32).unpack(value.to_bits().into()).round(format, Rounding::Zero, false)
    }
}

/// The steps on the host's own numbers.
pub(crate) struct Host;

impl Steps for Host {
    type F = f32;
    type I = u32;
    type B = bool;

    fn float(&self, value: f32) -> f32 {
        value
    }
    fn int(&self, value: u32) -> u32 {
        value
    }
    fn bits(&self, x: f32) -> u32 {
        x.to_bits()
    }
    fn of_bits(&self, x: u32) -> f32 {
        f32::from_bits(x)
    }
    fn add(&self, a: f32, b: f32) -> f32 {
        a + b
    }
    fn sub(&self, a: f32, b: f32) -> f32 {
        a - b
    }
    fn mul(&self, a: f32, b: f32) -> f32 {
        a * b
    }
    fn div(&self, a: f32, b: f32) -> f32 {
        a / b
    }
    fn mul_towards_zero(&self, a: f32, b: f32) -> f32 {
        // f64 holds the product.
        let exact = f64::from(a) * f64::from(b);
        let nearest = exact as f32;
        let outside = f64::from(nearest).abs() > exact.abs();
        if outside { f32::from_bits(nearest.to_bits() - 1) } else { nearest }
    }
    fn round(&self, a: f32) -> f32 {
        a.round_ties_even()
    }
    fn fma(&self, a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
    fn sqrt(&self, a: f32) -> f32 {
        a.sqrt()
    }
    fn to_float(&self, a: u32) -> f32 {
        (a as i32) as f32
    }
    fn int_add(&self, a: u32, b: u32) -> u32 {
        a.wrapping_add(b)
    }
    fn int_sub(&self, a: u32, b: u32) -> u32 {
        a.wrapping_sub(b)
    }
    fn and(&self, a: u32, b: u32) -> u32 {
        a & b
    }
    fn xor(&self, a: u32, b: u32) -> u32 {
        a ^ b
    }
    fn shl(&self, a: u32, by: u32) -> u32 {
        a << by
    }
    fn sar(&self, a: u32, by: u32) -> u32 {
        ((a as i32) >> by) as u32
    }
    fn less(&self, a: f32, b: f32) -> bool {
        a < b
    }
    fn equal(&self, a: f32, b: f32) -> bool {
        a == b
    }
    fn nonzero(&self, a: u32) -> bool {
        a != 0
    }
    fn select(&self, condition: bool, a: f32, b: f32) -> f32 {
        if condition { a } else { b }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(func: Approx, x: f32) -> f32 {
        f32::from_bits(eval(func, false, Type::F32, x.to_bits().into(), 0) as u32)
    }

    /// The shorter ways are the long one, bit for bit, where they are taken.
    #[test]
    fn what_is_usual_has_the_same_bits() {
        for bits in (0..=u32::MAX).step_by(9973) {
            let x = f32::from_bits(bits);
            let same = |usual: f32, always: f32| assert_eq!(usual.to_bits(), always.to_bits(), "{x:e}");
            if x.abs() < MODERATE {
                same(ex2_of_moderate(&Host, x), ex2_in_steps(&Host, x));
            }
            if x.is_normal() && x > 0.0 {
                same(lg2_of_normal(&Host, x), lg2_in_steps(&Host, x));
                same(rsqrt_of_normal(&Host, x), rsqrt_in_steps(&Host, x, false));
            }
        }
    }

    /// How far from `exact` a result may be.
    enum Bound {
        /// Units in the last place of the exact result, subnormal ones counted by the smallest number.
        Ulp(f64),
        Relative(f64),
        Absolute(f64),
    }

    /// The documented bound of a function at `x`.
    fn bound(func: Approx, x: f64) -> Bound {
        match func {
            Approx::Ex2 => Bound::Ulp(2.0),
            Approx::Lg2 if (0.5..=2.0).contains(&x) => Bound::Absolute((-22f64).exp2()),
            Approx::Lg2 => Bound::Relative((-22f64).exp2()),
            Approx::Sin | Approx::Cos if x.abs() <= std::f64::consts::TAU => {
                Bound::Absolute((-20.5f64).exp2())
            }
            Approx::Sin | Approx::Cos => Bound::Absolute((-14.7f64).exp2()),
            Approx::Tanh => Bound::Relative((-11f64).exp2()),
            Approx::Rcp => Bound::Ulp(1.0),
            Approx::Rsqrt => Bound::Relative((-22.9f64).exp2()),
            _ => Bound::Relative((-23f64).exp2()),
        }
    }

    fn exact(func: Approx, x: f64) -> f64 {
        match func {
            Approx::Ex2 => x.exp2(),
            Approx::Lg2 => x.log2(),
            Approx::Sin => x.sin(),
            Approx::Cos => x.cos(),
            Approx::Tanh => x.tanh(),
            Approx::Rcp => 1.0 / x,
            Approx::Rsqrt => 1.0 / x.sqrt(),
            _ => x.sqrt(),
        }
    }

    fn check(func: Approx, x: f32) {
        let (got, want) = (call(func, x), exact(func, x.into()));
        if want.is_nan() || (want as f32).is_infinite() || want == 0.0 {
            let same = got == want as f32 || got.is_nan() && want.is_nan();
            // Next to the largest number an approximation may fall on either side.
            let close = (want as f32).is_infinite() && want.is_finite() && got == f32::MAX.copysign(got);
            assert!(same || close, "{func:?}({x:e}) = {got:e}, not {want:e}");
            return;
        }
        let error = (f64::from(got) - want).abs();
        let ulp = (want.abs().log2().floor() - 23.0).max(-149.0).exp2();
        let (error, limit) = match bound(func, x.into()) {
            Bound::Ulp(limit) => (error / ulp, limit),
            // Subnormal results are rounded to their unit whatever the function's relative error.
            Bound::Relative(limit) => {
                ((error - ulp / 2.0 * f64::from(want.abs() < 1e-37)) / want.abs(), limit)
            }
            Bound::Absolute(limit) => (error, limit),
        };
        assert!(error <= limit, "{func:?}({x:e}) = {got:e}, not {want:e}: error {error:e} above {limit:e}");
    }

    const FUNCTIONS: [Approx; 8] = [
        Approx::Ex2,
        Approx::Lg2,
        Approx::Sin,
        Approx::Cos,
        Approx::Tanh,
        Approx::Rcp,
        Approx::Rsqrt,
        Approx::Sqrt,
    ];

    fn applies(func: Approx, x: f32) -> bool {
        !matches!(func, Approx::Sin | Approx::Cos) || x.abs() <= 314.0 || !x.is_finite()
    }

    #[test]
    fn a_sample_of_all_inputs_is_within_the_bounds() {
        for func in FUNCTIONS {
            for bits in (0..=u32::MAX).step_by(4099) {
                let x = f32::from_bits(bits);
                if applies(func, x) {
                    check(func, x);
                }
            }
        }
    }

    #[test]
    #[ignore = "2^32 inputs of eight functions take minutes"]
    fn all_inputs_are_within_the_bounds() {
        for func in FUNCTIONS {
            for bits in 0..=u32::MAX {
                let x = f32::from_bits(bits);
                if applies(func, x) {
                    check(func, x);
                }
            }
        }
    }

    #[test]
    fn special_values() {
        let inf = f32::INFINITY;
        for (func, x, y) in [
            (Approx::Ex2, 0.0, 1.0),
            (Approx::Ex2, 7.0, 128.0),
            (Approx::Ex2, -149.0, f32::from_bits(1)),
            (Approx::Ex2, -inf, 0.0),
            (Approx::Ex2, inf, inf),
            (Approx::Lg2, 1.0, 0.0),
            (Approx::Lg2, 0.0, -inf),
            (Approx::Lg2, -0.0, -inf),
            (Approx::Lg2, inf, inf),
            (Approx::Lg2, 8.0, 3.0),
            (Approx::Lg2, f32::from_bits(1), -149.0),
            (Approx::Cos, 0.0, 1.0),
            (Approx::Tanh, inf, 1.0),
            (Approx::Tanh, -inf, -1.0),
            (Approx::Rcp, -0.0, -inf),
            (Approx::Rsqrt, -0.0, -inf),
            (Approx::Rsqrt, inf, 0.0),
        ] {
            assert_eq!(call(func, x).to_bits(), y.to_bits(), "{func:?}({x:e})");
        }
        for (func, x) in [(Approx::Sin, inf), (Approx::Cos, -inf), (Approx::Lg2, -1.0), (Approx::Rsqrt, -1.0)]
        {
            assert_eq!(call(func, x).to_bits(), 0x7fff_ffff, "{func:?}({x:e})");
        }
        for func in [Approx::Sin, Approx::Tanh, Approx::Sqrt] {
            assert_eq!(call(func, -0.0).to_bits(), (-0.0f32).to_bits(), "{func:?}");
        }
    }

    #[test]
    fn flushing_takes_subnormals_away() {
        let tiny = u64::from(1u32);
        let bits = |x: f32| u64::from(x.to_bits());
        assert_eq!(eval(Approx::Rcp, true, Type::F32, tiny, 0), bits(f32::INFINITY));
        assert_eq!(eval(Approx::Ex2, true, Type::F32, bits(-130.0), 0), 0);
        assert_eq!(eval(Approx::Ex2, false, Type::F32, bits(-130.0), 0), bits((-130f32).exp2()));
        assert_eq!(eval(Approx::Lg2, true, Type::F32, tiny, 0), bits(f32::NEG_INFINITY));
    }

    #[test]
    fn halves_are_cut_off() {
        let tanh_one = eval(Approx::Tanh, false, Type::F16, 0x3c00, 0);
        assert_eq!(tanh_one, 0x3a17); // 0.76159
        assert_eq!(eval(Approx::Ex2, false, Type::BF16, 0x4000, 0), 0x4080); // 2^2
        assert_eq!(eval(Approx::Ex2, false, Type::F16, 0x7e01, 0), 0x7fff);
    }
}
