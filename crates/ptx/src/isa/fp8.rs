//! `cvt` to and from pairs of 8-bit floats, which no other instruction knows as numbers.

use simt_ir::{FloatBinary, FloatMode, IntBinary, IntCmp, Shift, Type, Value};

use super::float::{is_nan, relu_of, to_float};
use super::{Form, Ty, form};
use crate::lower::expander::Expander;

pub(super) const FORMS: &[Form] = &[
    form("cvt.rn.satfinite.relu?.F{e4m3x2,e5m2x2}.A{f32} d=b16, a:A, b:A", pack_singles).since(7, 8, 89),
    form("cvt.rn.satfinite.relu?.F{e4m3x2,e5m2x2}.A{f16x2} d=b16, a:A", pack_halves).since(7, 8, 89),
    form("cvt.rn.relu?.D{f16x2}.F{e4m3x2,e5m2x2} d=D, a:b16", unpack).since(7, 8, 89),
];

/// A format of eight bits.
struct Format {
    /// Bits of the fraction.
    fraction: u32,
    /// What is added to the exponent.
    bias: u32,
    /// The largest finite number.
    largest: u64,
}

const E4M3: Format = Format { fraction: 3, bias: 7, largest: 0x7e };
const E5M2: Format = Format { fraction: 2, bias: 15, largest: 0x7b };
/// The only NaN that conversions give, in both formats.
const NAN: u64 = 0x7f;

fn format(x: &Expander<'_, '_>) -> Format {
    if x.word("F") == "e4m3x2" { E4M3 } else { E5M2 }
}

/// `b` in the low byte, `a` in the high.
fn pack_singles(x: &mut Expander<'_, '_>) {
    let (a, b) = (x.src("a"), x.src("b"));
    pack(x, [b, a]);
}

/// The halves keep their places.
fn pack_halves(x: &mut Expander<'_, '_>) {
    let a = x.src("a");
    let halves = x.unpack(a, Type::F16).map(|half| to_float(x, half, Type::F32, FloatMode::default()));
    pack(x, halves);
}

fn pack(x: &mut Expander<'_, '_>, pair: [Value; 2]) {
    let format = format(x);
    let [low, high] = pair.map(|value| narrow(x, &format, value));
    let high = x.shift_imm(Shift::Left, high, 8);
    let both = x.int(IntBinary::Or, low, high);
    let d = x.fit(both, Type::I16);
    x.set("d", d);
}

/// The eight bits of a single, rounded to the nearest, as an `I32`. What is too large, infinity too, becomes the largest number.
fn narrow(x: &mut Expander<'_, '_>, format: &Format, value: Value) -> Value {
    let value = if x.has("relu") { relu_of(x, Ty::F32, value) } else { value };
    let Format { fraction, bias, largest } = *format;
    let dropped = 23 - fraction;
    let bits = x.fit(value, Type::I32);
    let magnitude = x.int_imm(IntBinary::And, bits, 0x7fff_ffff);
    // A normal result: half less one is added, and one more where the last kept bit is odd.
    let last = x.shift_imm(Shift::RightU, magnitude, dropped);
    let odd = x.int_imm(IntBinary::And, last, 1);
    let half = x.int_imm(IntBinary::Add, magnitude, (1 << (dropped - 1)) - 1);
    let rounded = x.int(IntBinary::Add, half, odd);
    let kept = x.shift_imm(Shift::RightU, rounded, dropped);
    let normal = x.int_imm(IntBinary::Sub, kept, u64::from(127 - bias) << fraction);
    // A subnormal result: next to a number whose last bit has the weight of the result's, the addition rounds.
    let weight = u64::from(127 + 1 + 23 - bias - fraction) << 23;
    let beside = x.imm(Type::F32, weight);
    let number = x.fit(magnitude, Type::F32);
    let sum = x.float(FloatBinary::Add, FloatMode::default(), number, beside);
    let sum = x.fit(sum, Type::I32);
    let subnormal = x.int_imm(IntBinary::Sub, sum, weight);
    let small = x.cmp_imm(IntCmp::LtU, magnitude, u64::from(127 + 1 - bias) << 23);
    let result = x.select(small, subnormal, normal);
    // As signed numbers: infinity's pattern is far above.
    let result = x.int_imm(IntBinary::MinS, result, largest);
    let sign = x.shift_imm(Shift::RightU, bits, 24);
    let sign = x.int_imm(IntBinary::And, sign, 0x80);
    let result = x.int(IntBinary::Or, result, sign);
    let nan = is_nan(x, value);
    let canonical = x.imm(Type::I32, NAN);
    x.select(nan, canonical, result)
}

fn unpack(x: &mut Expander<'_, '_>) {
    let e4m3 = x.word("F") == "e4m3x2";
    let relu = x.has("relu");
    let a = x.src("a");
    let word = x.zext(a, Type::I32);
    let low = x.int_imm(IntBinary::And, word, 0xff);
    let high = x.shift_imm(Shift::RightU, word, 8);
    let pair = [low, high].map(|byte| {
        let half = widen(x, byte, e4m3);
        if relu { relu_of(x, Ty::F16, half) } else { half }
    });
    let d = x.pack(pair);
    x.set("d", d);
}

/// The half of a byte in an `I32`. Every 8-bit float is one.
fn widen(x: &mut Expander<'_, '_>, byte: Value, e4m3: bool) -> Value {
    let sign = x.int_imm(IntBinary::And, byte, 0x80);
    let sign = x.shift_imm(Shift::Left, sign, 8);
    let magnitude = x.int_imm(IntBinary::And, byte, 0x7f);
    let (shift, first_nan) = if e4m3 { (10 - E4M3.fraction, NAN) } else { (10 - E5M2.fraction, 0x7d) };
    let bits = x.shift_imm(Shift::Left, magnitude, shift);
    let bits = x.int(IntBinary::Or, bits, sign);
    let half = x.fit(bits, Type::F16);
    let half = if e4m3 {
        // The fields are in their places; the exponent lacks the difference of the biases.
        let scale = x.imm(Type::F16, u64::from(15 + 15 - E4M3.bias) << 10);
        x.float(FloatBinary::Mul, FloatMode::default(), half, scale)
    } else {
        half
    };
    let nan = x.cmp_imm(IntCmp::GeU, magnitude, first_nan);
    let canonical = x.imm(Type::F16, 0x7fff);
    x.select(nan, canonical, half)
}
