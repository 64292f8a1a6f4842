//! `cvt` and its kin.

use simt_ir::{Convert, FloatMode, IntBinary, IntCmp, MinMax, Op, Rounding, Shift, Type, Value};

use super::float::{is_nan, relu_of, to_float};
use super::syntax::Chosen;
use super::{Form, Ty, form};
use crate::lower::expander::Expander;

pub(super) const FORMS: &[Form] = &[
    form("cvt.sat?.D{$int8}.A{$int8} d=D+, a:A+", int_to_int).only_if(saturation_matters),
    form("cvt.rnd{$rndi}.ftz?.sat?.D{$int8}.A{f32} d=D+, a:A+", float_to_int),
    form("cvt.rnd{$rndi}.sat?.D{$int8}.A{f16} d=D+, a:A+", float_to_int),
    form("cvt.rnd{$rndi}.D{$int}.A{bf16} d=D, a:A", float_to_int).since(7, 8, 90),
    // A byte and a bf16: only with a register of eight bits.
    form("cvt.rnd{$rndi}.D{u8,s8}.A{bf16} d=D, a:A", float_to_int).since(7, 8, 90),
    form("cvt.rnd{$rnd}.D{bf16}.A{u8,s8} d=D, a:A", int_to_float).since(7, 8, 90),
    form("cvt.rnd{$rndi}.sat?.D{$int8}.A{f64} d=D+, a:A+", float_to_int),
    form("cvt.rnd{$rnd}.ftz?.sat?.D{f32}.A{$int8} d=D+, a:A+", int_to_float),
    form("cvt.rnd{$rnd}.sat?.D{f16}.A{$int8} d=D+, a:A+", int_to_float),
    form("cvt.rnd{$rnd}.D{bf16}.A{$int} d=D, a:A", int_to_float).since(7, 8, 90),
    form("cvt.rnd{$rnd}.sat?.D{f64}.A{$int8} d=D+, a:A+", int_to_float),
    // To a narrower float.
    form("cvt.rnd{$rnd}.ftz?.sat?.D{f32}.A{f64} d=D+, a:A+", float_to_float),
    form("cvt.rnd{$rnd}.ftz?.sat?.D{f16}.A{f32} d=D+, a:A+", float_to_float),
    form("cvt.rnd{rn,rz}.relu?.satfinite?.D{f16}.A{f32} d=D+, a:A+", float_to_float).since(8, 6, 80),
    form("cvt.rnd{$rnd}.sat?.D{f16}.A{f64} d=D+, a:A+", float_to_float),
    form("cvt.rnd{rm,rp}.ftz?.D{bf16}.A{f32} d=D, a:A", float_to_float).since(7, 8, 90),
    form("cvt.rnd{rn,rz}.ftz.D{bf16}.A{f32} d=D, a:A", float_to_float).since(7, 8, 90),
    form("cvt.rnd{rn,rz}.relu?.satfinite?.D{bf16}.A{f32} d=D, a:A", float_to_float).since(7, 0, 80),
    form("cvt.rnd{$rnd}.D{bf16}.A{f64} d=D, a:A", float_to_float).since(7, 8, 90),
    form("cvt.rnd{$rnd}.D{bf16}.A{f16} d=D, a:A", float_to_float).since(7, 8, 90),
    form("cvt.rnd{$rnd}.D{f16}.A{bf16} d=D, a:A", float_to_float).since(7, 8, 90),
    // To a wider one, or the same.
    form("cvt.ftz?.sat?.D{f32}.A{f16} d=D+, a:A+", float_to_float),
    form("cvt.rnd{$rnd}?.ftz?.D{f32}.A{bf16} d=D, a:A", float_to_float).since(7, 1, 80),
    form("cvt.ftz?.sat?.D{f64}.A{f32} d=D+, a:A+", float_to_float),
    form("cvt.sat?.D{f64}.A{f16} d=D+, a:A+", float_to_float),
    form("cvt.rnd{$rnd}?.D{f64}.A{bf16} d=D, a:A", float_to_float).since(7, 8, 90),
    form("cvt.ftz?.sat?.D{f32}.A{f32} d=D+, a:A+", float_to_float),
    form("cvt.sat?.D{f64}.A{f64} d=D+, a:A+", float_to_float),
    form("cvt.sat?.D{f16}.A{f16} d=D+, a:A+", float_to_float),
    form("cvt.D{bf16}.A{bf16,f16} d=D, a:A", float_to_float).since(7, 8, 90),
    form("cvt.D{f16}.A{bf16} d=D, a:A", float_to_float).since(7, 8, 90),
    // To an integral value.
    form("cvt.rnd{$rndi}.ftz?.sat?.D{f32}.A{f32} d=D+, a:A+", round),
    form("cvt.rnd{$rndi}.sat?.D{f16}.A{f16} d=D+, a:A+", round),
    form("cvt.rnd{$rndi}.D{bf16}.A{bf16} d=D, a:A", round).since(7, 8, 90),
    form("cvt.rnd{$rndi}.sat?.D{f64}.A{f64} d=D+, a:A+", round),
    // Two at once.
    form("cvt.rnd{rn,rz}.relu?.satfinite?.D{f16x2}.A{f32} d=D+, a:A+, b:A+", pack_floats).since(7, 0, 80),
    form("cvt.rnd{rn,rz}.relu?.satfinite?.D{bf16x2}.A{f32} d=D, a:A, b:A", pack_floats).since(7, 0, 80),
    form("cvt.pack.sat.D{u16,s16}.A{s32} d=b32+, a:A+, b:A+", pack_ints).since(6, 5, 72),
    form("cvt.pack.sat.D{u8,s8}.A{s32}.b32 d=b32+, a:A+, b:A+, c:b32+", pack_ints).since(6, 5, 72),
    form("cvt.pack.sat.D{u4,s4,u2,s2}.A{s32}.b32 d=b32+, a:A+, b:A+, c:b32+", pack_ints).since(6, 5, 75),
    // To 19-bit floats.
    form("cvt.rnd{rn,rz}.relu?.tf32.f32 d=b32, a:f32", tf32).since(7, 8, 90),
    form("cvt.rnd{rna}.satfinite?.tf32.f32 d=b32, a:f32", tf32).since(7, 0, 80),
    form("cvt.rnd{rn,rz}.satfinite.relu?.tf32.f32 d=b32, a:f32", tf32).since(8, 1, 100),
];

/// Saturation is refused where every source value fits.
fn saturation_matters(chosen: &Chosen) -> Result<(), &'static str> {
    let (Some(to), Some(from)) = (chosen.ty("D"), chosen.ty("A")) else { return Ok(()) };
    let wide = |ty: Ty| {
        let (low, high) = range(ty);
        if ty.is_signed() { (i128::from(low as i64), i128::from(high)) } else { (0, i128::from(high)) }
    };
    let ((low, high), (from_low, from_high)) = (wide(to), wide(from));
    if chosen.has("sat") && low <= from_low && from_high <= high {
        Err("illegal modifier '.sat'")
    } else {
        Ok(())
    }
}

/// Range of an integer type as 64 bits of its own signedness.
fn range(ty: Ty) -> (u64, u64) {
    let bits = ty.bits();
    if ty.is_signed() {
        let max = (1u64 << (bits - 1)) - 1;
        (!max, max)
    } else {
        (0, u64::MAX >> (64 - bits))
    }
}

fn int_to_int(x: &mut Expander<'_, '_>) {
    let (to, from) = (x.ty("D"), x.ty("A"));
    let mut a = x.src("a");
    if x.has("sat") {
        a = clamp(x, a, from, to);
    }
    let d = x.extend(from.is_signed(), a, to.ir());
    x.set("d", d);
}

/// `value`, of type `from`, moved into the range of `to` where it lies outside. The result is read as `to`'s low bits or extended as `from`.
fn clamp(x: &mut Expander<'_, '_>, mut value: Value, from: Ty, to: Ty) -> Value {
    let (low, high) = range(to);
    let (from_low, from_high) = range(from);
    if high < from_high {
        let op = if from.is_signed() { IntBinary::MinS } else { IntBinary::MinU };
        value = x.int_imm(op, value, high);
    }
    if from.is_signed() && (low as i64) > from_low as i64 {
        value = x.int_imm(IntBinary::MaxS, value, low);
    }
    value
}

fn float_to_int(x: &mut Expander<'_, '_>) {
    let to = x.ty("D");
    let a = x.src("a");
    let FloatMode { round, ftz, .. } = x.float_mode(false);
    let op = if to.is_signed() { Convert::FloatToS { round, ftz } } else { Convert::FloatToU { round, ftz } };
    let d = x.convert(op, a, to.ir());
    x.set("d", d);
}

fn int_to_float(x: &mut Expander<'_, '_>) {
    let a = x.src("a");
    let mode = x.float_mode(false);
    let op = if x.ty("A").is_signed() { Convert::SToFloat(mode) } else { Convert::UToFloat(mode) };
    let d = x.convert(op, a, x.ty("D").ir());
    x.set("d", d);
}

fn float_to_float(x: &mut Expander<'_, '_>) {
    let (to, from) = (x.ty("D"), x.ty("A"));
    let mut mode = x.float_mode(false);
    if to == Ty::F16 && matches!(mode.round, Rounding::Down | Rounding::Up) {
        // The hardware does not flush what it rounds away from zero to the smallest subnormal.
        mode.ftz = false;
    }
    let a = x.src("a");
    let mut d = to_float(x, a, to.ir(), mode);
    // Where bits only move, NaN payloads move too, but not on these paths.
    let flushes = mode.ftz && to == Ty::F32 && matches!(from, Ty::F32 | Ty::Bf16);
    if flushes || to == from && to.bits() == 16 {
        d = x.op(Op::CanonNan, &[d]);
    }
    if x.has("relu") {
        d = relu_of(x, to, d);
    }
    if x.has("satfinite") {
        d = saturate_finite(x, to, d);
    }
    x.set("d", d);
}

fn round(x: &mut Expander<'_, '_>) {
    let mode = x.float_mode(false);
    let a = x.src("a");
    let d = x.op(Op::Convert(Convert::RoundToIntegral(mode)), &[a]);
    x.set("d", d);
}

/// Infinite results become the largest finite number of their sign; NaN stays.
fn saturate_finite(x: &mut Expander<'_, '_>, ty: Ty, value: Value) -> Value {
    let largest = if ty == Ty::Bf16 { 0x7f7f } else { 0x7bff };
    let top = x.imm(ty.ir(), largest);
    let bottom = x.imm(ty.ir(), largest | 0x8000);
    let bound = |max| MinMax { max, nan: true, ..MinMax::default() };
    let value = x.min_max(bound(false), value, top);
    x.min_max(bound(true), value, bottom)
}

/// `b` in the low half, `a` in the high.
fn pack_floats(x: &mut Expander<'_, '_>) {
    let half = x.ty("D").half().unwrap_or(Ty::F16);
    let mode = x.float_mode(false);
    let (relu, finite) = (x.has("relu"), x.has("satfinite"));
    let (a, b) = (x.src("a"), x.src("b"));
    let pair = [b, a].map(|value| {
        let mut value = to_float(x, value, half.ir(), mode);
        if relu {
            value = relu_of(x, half, value);
        }
        if finite { saturate_finite(x, half, value) } else { value }
    });
    let d = x.pack(pair);
    x.set("d", d);
}

/// `a` and `b` saturated and placed side by side, `b` lowest, above them the low bits of `c`.
fn pack_ints(x: &mut Expander<'_, '_>) {
    let word = x.word("D");
    let bits: u32 = word[1..].parse().unwrap_or(16);
    let (low, high) = match word.starts_with('s') {
        true => (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1),
        false => (0, (1i64 << bits) - 1),
    };
    let (a, b, c) = (x.src("a"), x.src("b"), x.src_if("c"));
    let [a, b] = [a, b].map(|value| {
        let value = x.int_imm(IntBinary::MaxS, value, low as u64);
        let value = x.int_imm(IntBinary::MinS, value, high as u64);
        x.int_imm(IntBinary::And, value, (1 << bits) - 1)
    });
    let a = x.shift_imm(Shift::Left, a, bits);
    let mut d = x.int(IntBinary::Or, a, b);
    if let Some(c) = c {
        let c = x.shift_imm(Shift::Left, c, 2 * bits);
        d = x.int(IntBinary::Or, d, c);
    }
    x.set("d", d);
}

/// Rounds to ten fraction bits, as a pattern whose other bits are zero.
fn tf32(x: &mut Expander<'_, '_>) {
    const DROPPED: u32 = 13;
    let mut a = x.src("a");
    let mode = x.float_mode(false);
    if x.has("relu") {
        a = relu_of(x, Ty::F32, a);
    }
    let nan = is_nan(x, a);
    let bits = x.fit(a, Type::I32);
    let rounded = match mode.round {
        Rounding::Zero => bits,
        Rounding::NearestAway => x.int_imm(IntBinary::Add, bits, 1 << (DROPPED - 1)),
        _ => {
            // Half less one, and one more where the last kept bit is odd.
            let last = x.shift_imm(Shift::RightU, bits, DROPPED);
            let odd = x.int_imm(IntBinary::And, last, 1);
            let half = x.int_imm(IntBinary::Add, bits, (1 << (DROPPED - 1)) - 1);
            x.int(IntBinary::Add, half, odd)
        }
    };
    let kept = !((1u64 << DROPPED) - 1);
    // Infinity has no fraction: rounding leaves it as it is. NaN is not rounded.
    let not_a_number = if mode.round == Rounding::NearestAway {
        x.int_imm(IntBinary::And, bits, kept)
    } else {
        x.imm(Type::I32, 0x7fff_ffff & kept)
    };
    let number = x.int_imm(IntBinary::And, rounded, kept);
    let mut d = x.select(nan, not_a_number, number);
    if x.has("satfinite") {
        // What is not finite steps back by one: infinity to the largest number.
        let magnitude = x.int_imm(IntBinary::And, d, 0x7fff_ffff);
        let beyond = x.cmp_imm(IntCmp::GeU, magnitude, 0x7f80_0000);
        let before = x.int_imm(IntBinary::Sub, d, 1 << DROPPED);
        d = x.select(beyond, before, d);
    }
    x.set("d", d);
}
