//! Exact binary floating point: every operation computed without rounding, then rounded once in any direction.
//!
//! Slow and plain, for the meaning of operations that the host's arithmetic does not offer: directed rounding, half
//! precision, results flushed to zero.

use crate::{FloatMode, Rounding, Type};

/// A binary format: significand bits (with the hidden one) and the exponents of its normal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bits of the whole encoding.
    pub bits: u32,
    /// Significand bits, the hidden one included.
    pub precision: u32,
    /// Exponent of the smallest normal number.
    pub min_exp: i32,
}

impl Format {
    /// The format of a floating-point type.
    ///
    /// # Panics
    /// For types that are not floating point.
    pub fn of(ty: Type) -> Format {
        match ty {
            Type::F16 => Format { bits: 16, precision: 11, min_exp: -14 },
            Type::BF16 => Format { bits: 16, precision: 8, min_exp: -126 },
            Type::F32 => Format { bits: 32, precision: 24, min_exp: -126 },
            Type::F64 => Format { bits: 64, precision: 53, min_exp: -1022 },
            _ => panic!("{ty} is no floating-point type"),
        }
    }

    /// Mask of the fraction field.
    pub fn fraction_mask(self) -> u64 {
        (1 << (self.precision - 1)) - 1
    }

    /// The sign bit.
    pub fn sign(self) -> u64 {
        1 << (self.bits - 1)
    }

    /// Positive infinity.
    pub fn infinity(self) -> u64 {
        (self.sign() - 1) & !self.fraction_mask()
    }

    /// The largest finite number.
    pub fn max_finite(self) -> u64 {
        self.infinity() - 1
    }

    /// The smallest positive normal number.
    pub fn min_normal(self) -> u64 {
        1 << (self.precision - 1)
    }

    /// The bit that makes a NaN quiet.
    pub fn quiet(self) -> u64 {
        1 << (self.precision - 2)
    }

    /// 1.0.
    pub fn one(self) -> u64 {
        ((1 - self.min_exp) as u64) << (self.precision - 1)
    }

    /// Bits without the sign.
    pub fn magnitude(self, bits: u64) -> u64 {
        bits & (self.sign() - 1)
    }

    /// Whether this is a NaN.
    pub fn is_nan(self, bits: u64) -> bool {
        self.magnitude(bits) > self.infinity()
    }

    /// Whether this is an infinity.
    pub fn is_infinite(self, bits: u64) -> bool {
        self.magnitude(bits) == self.infinity()
    }

    /// Whether this is a zero of either sign.
    pub fn is_zero(self, bits: u64) -> bool {
        self.magnitude(bits) == 0
    }

    /// Whether the sign bit is set.
    pub fn is_negative(self, bits: u64) -> bool {
        bits & self.sign() != 0
    }

    /// A subnormal number becomes zero of its sign.
    pub fn flush(self, bits: u64) -> u64 {
        if self.magnitude(bits) < self.min_normal() { bits & self.sign() } else { bits }
    }

    /// The exact value of a finite number.
    pub fn unpack(self, bits: u64) -> Exact {
        let exponent = (self.magnitude(bits) >> (self.precision - 1)) as i32;
        let fraction = bits & self.fraction_mask();
        let (sig, exp) = if exponent == 0 { (fraction, 1) } else { (fraction | self.min_normal(), exponent) };
        Exact {
            negative: self.is_negative(bits),
            exp: exp - 1 + self.min_exp - (self.precision as i32 - 1),
            sig: sig.into(),
            sticky: false,
        }
    }
}

/// A finite number `±sig * 2^exp`, plus something positive below one unit of `sig` when `sticky`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exact {
    /// Sign.
    pub negative: bool,
    /// Exponent of the unit of `sig`.
    pub exp: i32,
    /// Significand.
    pub sig: u128,
    /// Part of the value is lost below.
    pub sticky: bool,
}

/// Top bit of a normalised significand: room for a carry above, and for 53-bit products with guard bits below.
const TOP: i32 = 122;

impl Exact {
    /// An integer.
    pub fn from_int(negative: bool, magnitude: u64) -> Exact {
        Exact { negative, exp: 0, sig: magnitude.into(), sticky: false }
    }

    /// Whether the value is zero.
    pub fn is_zero(self) -> bool {
        self.sig == 0 && !self.sticky
    }

    fn normalized(self) -> Exact {
        if self.sig == 0 {
            return self;
        }
        let shift = TOP - (127 - self.sig.leading_zeros() as i32);
        debug_assert!(shift >= 0, "operands have at most 107 bits");
        Exact { sig: self.sig << shift, exp: self.exp - shift, ..self }
    }

    /// Product of numbers of at most 53 significand bits.
    pub fn times(self, other: Exact) -> Exact {
        Exact {
            negative: self.negative != other.negative,
            exp: self.exp + other.exp,
            sig: self.sig * other.sig,
            sticky: false,
        }
    }

    /// Sum. An exact zero has the sign of both operands if they agree; else it is negative only when rounding down.
    pub fn add(self, other: Exact, round: Rounding) -> Exact {
        if self.sig == 0 && other.sig == 0 {
            let negative =
                if self.negative == other.negative { self.negative } else { round == Rounding::Down };
            return Exact { negative, ..self };
        }
        if self.sig == 0 {
            return other;
        }
        if other.sig == 0 {
            return self;
        }
        let (a, b) = (self.normalized(), other.normalized());
        let (big, small) = if (a.exp, a.sig) >= (b.exp, b.sig) { (a, b) } else { (b, a) };
        let distance = (big.exp - small.exp) as u32;
        let (shifted, lost) = shift_right_sticky(small.sig, distance);
        if big.negative == small.negative {
            return Exact { sig: big.sig + shifted, sticky: lost, ..big };
        }
        let sig = big.sig - shifted - u128::from(lost);
        if sig == 0 && !lost {
            return Exact { negative: round == Rounding::Down, exp: 0, sig: 0, sticky: false };
        }
        Exact { sig, sticky: lost, ..big }
    }

    /// Quotient of numbers of at most 53 significand bits; the divisor is not zero.
    pub fn over(self, other: Exact) -> Exact {
        let (a, b) = (self.normalized(), other);
        let negative = self.negative != other.negative;
        if self.sig == 0 {
            return Exact { negative, ..self };
        }
        Exact { negative, exp: a.exp - b.exp, sig: a.sig / b.sig, sticky: a.sig % b.sig != 0 }
    }

    /// Square root of a number that is not negative.
    pub fn sqrt(self) -> Exact {
        let mut a = self.normalized();
        if a.sig == 0 {
            return self;
        }
        if a.exp % 2 != 0 {
            a.sig >>= 1; // the low bits of a normalised operand are zero
            a.exp += 1;
        }
        let root = a.sig.isqrt();
        Exact { negative: false, exp: a.exp / 2, sig: root, sticky: root * root != a.sig }
    }

    /// Rounds to the format. With `ftz`, a result that is still below the smallest normal number after rounding at full precision
    /// becomes zero.
    pub fn round(self, format: Format, mode: Rounding, ftz: bool) -> u64 {
        let sign = if self.negative { format.sign() } else { 0 };
        if self.is_zero() {
            return sign;
        }
        if self.sig == 0 {
            // Only a remainder: as small as can be.
            let tiny = Exact { sig: 1, exp: -5000, ..self };
            return tiny.round(format, mode, ftz);
        }
        let top = 127 - self.sig.leading_zeros() as i32;
        let exponent = self.exp + top;
        let unbounded = exponent - (format.precision as i32 - 1);
        let lowest = format.min_exp - (format.precision as i32 - 1);
        if ftz {
            // Tininess is judged after rounding with an unbounded exponent.
            let (sig, unit) = self.round_at(unbounded, mode);
            let carried = i32::from(sig >> format.precision != 0);
            if unit + format.precision as i32 - 1 + carried < format.min_exp {
                return sign;
            }
        }
        let (sig, unit) = self.round_at(unbounded.max(lowest), mode);
        if sig == 0 {
            return sign;
        }
        // Adding the significand with its hidden bit to the exponent field makes carries come out right.
        let field = i64::from(unit - lowest);
        let magnitude = if sig < u128::from(format.min_normal()) {
            sig as u64
        } else {
            let encoded = ((field as u128) << (format.precision - 1)) + sig;
            if encoded >= u128::from(format.infinity()) {
                let to_max = match mode {
                    Rounding::Zero => true,
                    Rounding::Down => !self.negative,
                    Rounding::Up => self.negative,
                    Rounding::Nearest | Rounding::NearestAway => false,
                };
                if to_max { format.max_finite() } else { format.infinity() }
            } else {
                encoded as u64
            }
        };
        sign | magnitude
    }

    /// The significand in units of `2^unit`, rounded.
    pub fn round_at(self, unit: i32, mode: Rounding) -> (u128, i32) {
        let shift = unit - self.exp;
        if shift <= 0 {
            // The callers ask for at most 113 bits of what fits in 128.
            return (self.sig << (-shift).min(127) as u32, unit);
        }
        let shift = shift as u32;
        let whole = self.sig.checked_shr(shift).unwrap_or(0);
        let (half, below) = match shift {
            1..=127 => {
                let rest = self.sig & ((1 << shift) - 1);
                let half = rest >> (shift - 1) & 1 != 0;
                (half, rest & !(1 << (shift - 1)) != 0)
            }
            128 => (self.sig >> 127 != 0, self.sig << 1 != 0),
            _ => (false, self.sig != 0),
        };
        let below = below || self.sticky;
        let up = match mode {
            Rounding::Nearest => half && (below || whole & 1 != 0),
            Rounding::NearestAway => half,
            Rounding::Zero => false,
            Rounding::Down => self.negative && (half || below),
            Rounding::Up => !self.negative && (half || below),
        };
        (whole + u128::from(up), unit)
    }
}

fn shift_right_sticky(value: u128, by: u32) -> (u128, bool) {
    match by {
        0 => (value, false),
        1..=127 => (value >> by, value & ((1 << by) - 1) != 0),
        _ => (0, value != 0),
    }
}

/// [`FloatMode`] with `sat` applied to a rounded result.
pub fn saturate(format: Format, mode: FloatMode, bits: u64) -> u64 {
    if !mode.sat {
        bits
    } else if format.is_nan(bits) || format.is_negative(bits) {
        0
    } else {
        bits.min(format.one())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interesting and arbitrary operands.
    fn samples() -> Vec<u32> {
        let mut all = vec![
            0u32,
            0x8000_0000,
            1,
            0x8000_0001,
            0x007f_ffff,
            0x0080_0000,
            0x3f7f_ffff,
            0x3f80_0000,
            0x3f80_0001,
            0x4b00_0001,
            0x7f7f_ffff,
            0xff7f_ffff,
            0x3eaa_aaab,
        ];
        let mut x = 0x2545_f491u32;
        for _ in 0..200 {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
            if f32::from_bits(x).is_finite() {
                all.push(x);
            }
        }
        all
    }

    #[test]
    fn nearest_agrees_with_the_host() {
        let f = Format::of(Type::F32);
        let g = Format::of(Type::F64);
        for &a in &samples() {
            for &b in &samples() {
                let (x, y) = (f32::from_bits(a), f32::from_bits(b));
                let (ea, eb) = (f.unpack(a.into()), f.unpack(b.into()));
                let near = Rounding::Nearest;
                assert_eq!(ea.add(eb, near).round(f, near, false) as u32, (x + y).to_bits(), "{x:e} + {y:e}");
                assert_eq!(ea.times(eb).round(f, near, false) as u32, (x * y).to_bits(), "{x:e} * {y:e}");
                if y != 0.0 {
                    assert_eq!(ea.over(eb).round(f, near, false) as u32, (x / y).to_bits(), "{x:e} / {y:e}");
                }
                let c = f32::from_bits(a.rotate_left(7) & 0x7f00_ffff);
                let fma = ea.times(eb).add(f.unpack(c.to_bits().into()), near);
                assert_eq!(
                    fma.round(f, near, false) as u32,
                    x.mul_add(y, c).to_bits(),
                    "{x:e} * {y:e} + {c:e}"
                );
                let (dx, dy) = (f64::from(x) * 1.1, f64::from(y) / 3.0);
                let (da, db) = (g.unpack(dx.to_bits()), g.unpack(dy.to_bits()));
                let dz = dx - dy * 0.9;
                let fma = da.times(db).add(g.unpack(dz.to_bits()), near).round(g, near, false);
                assert_eq!(fma, dx.mul_add(dy, dz).to_bits(), "{dx:e} * {dy:e} + {dz:e}");
            }
            let x = f32::from_bits(a);
            if x > 0.0 {
                let root = f.unpack(a.into()).sqrt().round(f, Rounding::Nearest, false);
                assert_eq!(root as u32, x.sqrt().to_bits(), "sqrt {x:e}");
                let d = f64::from(x) / 7.0;
                let root = g.unpack(d.to_bits()).sqrt().round(g, Rounding::Nearest, false);
                assert_eq!(root, d.sqrt().to_bits(), "sqrt {d:e}");
            }
        }
    }

    #[test]
    fn directed_roundings_enclose() {
        let f = Format::of(Type::F32);
        let third = f.unpack(f.one()).over(f.unpack(3f32.to_bits().into()));
        assert_eq!(third.round(f, Rounding::Down, false), 0x3eaa_aaaa);
        assert_eq!(third.round(f, Rounding::Zero, false), 0x3eaa_aaaa);
        assert_eq!(third.round(f, Rounding::Up, false), 0x3eaa_aaab);
        let huge = f.unpack(f.max_finite()).times(f.unpack(f.max_finite()));
        assert_eq!(huge.round(f, Rounding::Down, false), f.max_finite());
        assert_eq!(huge.round(f, Rounding::Up, false), f.infinity());
    }

    #[test]
    fn flushing_looks_at_the_result_rounded_at_full_precision() {
        let f = Format::of(Type::F32);
        let product = f.unpack(0x0080_0000).times(f.unpack(0x3f7f_ffff));
        assert_eq!(product.round(f, Rounding::Nearest, false), 0x0080_0000);
        assert_eq!(product.round(f, Rounding::Nearest, true), 0);
    }
}
