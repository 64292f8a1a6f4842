//! The scalar meaning of every operation that depends on its operands alone.
//!
//! Values are bit patterns in the low bits of a `u64`, zeros above. Where the PTX ISA leaves something open, the answer is what
//! the hardware gives: NaN payloads, conversions of NaN, division by zero.

use crate::soft::{Exact, Format, saturate};
use crate::{
    Approx, AtomicOp, Convert, FloatBinary, FloatCmp, FloatMode, FloatRel, FloatUnary, IntBinary, IntCmp,
    IntUnary, MinMax, Op, Rounding, Shift, Type, approx, mufu,
};

/// Result of an operation of [`Op::is_pure`] with one result, or `None` when it needs more than its operands
/// (addresses, special registers).
///
/// `types` are the operands' types. Operands and types must be as [`Op`] lists them.
pub fn eval(op: Op, args: &[u64], types: &[Type], result: Type) -> Option<u64> {
    Some(match op {
        Op::Const(bits) => bits,
        Op::Int(op) => int_binary(op, types[0], args[0], args[1]),
        Op::IntUnary(op) => int_unary(op, types[0], args[0]),
        Op::Shift(op) => shift(op, types[0], args[0], args[1] as u32),
        Op::FunnelShift { left, wrap } => {
            funnel_shift(left, wrap, args[0] as u32, args[1] as u32, args[2] as u32).into()
        }
        Op::Prmt => prmt(args[0] as u32, args[1] as u32, args[2] as u32).into(),
        Op::DotBytes { signed_a, signed_b } => {
            dot_bytes([(args[0] as u32, signed_a), (args[1] as u32, signed_b)], args[2] as u32).into()
        }
        Op::IntCmp(cmp) => int_cmp(cmp, types[0], args[0], args[1]).into(),
        Op::FloatCmp(cmp) => float_cmp(cmp, types[0], args[0], args[1]).into(),
        Op::Select => {
            if args[0] != 0 {
                args[1]
            } else {
                args[2]
            }
        }
        Op::Float(op, mode) => float_binary(op, mode, result, args[0], args[1]),
        Op::Fma(mode) => fma(mode, result, args[0], args[1], args[2]),
        Op::MinMax(op) => min_max(op, result, args[0], args[1]),
        Op::FloatUnary(op, mode) => float_unary(op, mode, result, args[0]),
        Op::Approx { func, ftz } => {
            let second = if matches!(func, Approx::Div | Approx::DivFull) { args[1] } else { 0 };
            approx::eval(func, ftz, result, args[0], second)
        }
        Op::Mufu(func) => mufu::eval(func, result, args[0]),
        Op::CanonNan => {
            let format = Format::of(result);
            if format.is_nan(args[0]) { canonical_nan(result) } else { args[0] }
        }
        Op::Unanimous | Op::AnyLane => args[0],
        Op::Convert(op) => convert(op, types[0], result, args[0]),
        _ => return None,
    })
}

/// What an atomic operation puts in the place of `old`.
pub fn atomic(op: AtomicOp, ty: Type, old: u64, operand: u64) -> u64 {
    let pure = |op| eval(op, &[old, operand], &[ty, ty], ty).expect("pure operations have a value");
    let min_max = |max| Op::MinMax(MinMax { max, ..MinMax::default() });
    match op {
        AtomicOp::Add => pure(Op::Int(IntBinary::Add)),
        AtomicOp::FAdd { ftz } if ty == Type::F64 => {
            let is_nan = |bits: &u64| Format::of(ty).is_nan(*bits);
            let kept = [operand, old].into_iter().find(is_nan).filter(|_| ftz);
            kept.unwrap_or_else(|| float_binary(FloatBinary::Add, FloatMode::default(), ty, operand, old))
        }
        AtomicOp::FAdd { ftz } => {
            pure(Op::Float(FloatBinary::Add, FloatMode { ftz, ..FloatMode::default() }))
        }
        AtomicOp::FMin => pure(min_max(false)),
        AtomicOp::FMax => pure(min_max(true)),
        AtomicOp::And => pure(Op::Int(IntBinary::And)),
        AtomicOp::Or => pure(Op::Int(IntBinary::Or)),
        AtomicOp::Xor => pure(Op::Int(IntBinary::Xor)),
        AtomicOp::Exch => operand,
        AtomicOp::MinS => pure(Op::Int(IntBinary::MinS)),
        AtomicOp::MinU => pure(Op::Int(IntBinary::MinU)),
        AtomicOp::MaxS => pure(Op::Int(IntBinary::MaxS)),
        AtomicOp::MaxU => pure(Op::Int(IntBinary::MaxU)),
        AtomicOp::Inc => {
            if old >= operand {
                0
            } else {
                old + 1
            }
        }
        AtomicOp::Dec => {
            if old == 0 || old > operand {
                operand
            } else {
                old - 1
            }
        }
    }
}

/// The NaN that arithmetic gives: all ones but the sign for 16 and 32 bits, the default NaN of IEEE hosts for f64.
pub fn canonical_nan(ty: Type) -> u64 {
    match ty {
        Type::F64 => 0xfff8_0000_0000_0000,
        _ => Format::of(ty).sign() - 1,
    }
}

/// The value with its sign bit copied upwards.
pub fn sign_extend(ty: Type, bits: u64) -> i64 {
    let unused = 64 - ty.bits();
    ((bits << unused) as i64) >> unused
}

fn int_binary(op: IntBinary, ty: Type, a: u64, b: u64) -> u64 {
    let (sa, sb) = (sign_extend(ty, a), sign_extend(ty, b));
    let high = |product: i128| (product >> ty.bits()) as u64;
    let clamp = |exact: i128| {
        let max = i128::from(ty.mask() >> 1);
        exact.clamp(-max - 1, max) as u64
    };
    let result = match op {
        IntBinary::Add => a.wrapping_add(b),
        IntBinary::Sub => a.wrapping_sub(b),
        IntBinary::Mul => a.wrapping_mul(b),
        IntBinary::MulHiS => high(i128::from(sa) * i128::from(sb)),
        IntBinary::MulHiU => high((u128::from(a) * u128::from(b)) as i128),
        IntBinary::DivS if sb == 0 => u64::MAX,
        IntBinary::DivS => sa.wrapping_div(sb) as u64,
        IntBinary::DivU => a.checked_div(b).unwrap_or(u64::MAX),
        IntBinary::RemS if sb == 0 => u64::MAX,
        IntBinary::RemS => sa.wrapping_rem(sb) as u64,
        IntBinary::RemU => a.checked_rem(b).unwrap_or(u64::MAX),
        IntBinary::And => a & b,
        IntBinary::Or => a | b,
        IntBinary::Xor => a ^ b,
        IntBinary::MinS => sa.min(sb) as u64,
        IntBinary::MinU => a.min(b),
        IntBinary::MaxS => sa.max(sb) as u64,
        IntBinary::MaxU => a.max(b),
        IntBinary::AddSatS => clamp(i128::from(sa) + i128::from(sb)),
        IntBinary::SubSatS => clamp(i128::from(sa) - i128::from(sb)),
    };
    result & ty.mask()
}

fn int_unary(op: IntUnary, ty: Type, a: u64) -> u64 {
    let unused = 64 - ty.bits();
    match op {
        IntUnary::Not => !a & ty.mask(),
        IntUnary::Neg => a.wrapping_neg() & ty.mask(),
        IntUnary::Abs => sign_extend(ty, a).unsigned_abs() & ty.mask(),
        IntUnary::BitReverse => a.reverse_bits() >> unused,
        IntUnary::LeadingZeros => u64::from(a.leading_zeros() - unused),
        IntUnary::PopCount => a.count_ones().into(),
    }
}

fn shift(op: Shift, ty: Type, a: u64, amount: u32) -> u64 {
    let result = match op {
        Shift::Left => a.checked_shl(amount).unwrap_or(0),
        Shift::RightU => a.checked_shr(amount).unwrap_or(0),
        Shift::RightS => (sign_extend(ty, a) >> amount.min(63)) as u64,
    };
    result & ty.mask()
}

fn funnel_shift(left: bool, wrap: bool, lo: u32, hi: u32, amount: u32) -> u32 {
    let amount = if wrap { amount % 32 } else { amount.min(32) };
    let both = u64::from(hi) << 32 | u64::from(lo);
    if left { ((both << amount) >> 32) as u32 } else { (both >> amount) as u32 }
}

fn prmt(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = (u64::from(b) << 32 | u64::from(a)).to_le_bytes();
    u32::from_le_bytes(std::array::from_fn(|i| {
        let nibble = selector >> (4 * i) & 0xf;
        let byte = bytes[(nibble & 7) as usize];
        if nibble & 8 == 0 { byte } else { ((byte as i8) >> 7) as u8 }
    }))
}

/// `sum` and the products of the bytes of two words, which are signed or not.
fn dot_bytes(words: [(u32, bool); 2], sum: u32) -> u32 {
    let [a, b] = words.map(|(word, signed)| {
        word.to_le_bytes().map(|byte| if signed { i32::from(byte as i8) } else { i32::from(byte) })
    });
    a.iter().zip(b).fold(sum, |sum, (a, b)| sum.wrapping_add((a * b) as u32))
}

fn int_cmp(cmp: IntCmp, ty: Type, a: u64, b: u64) -> bool {
    let (sa, sb) = (sign_extend(ty, a), sign_extend(ty, b));
    match cmp {
        IntCmp::Eq => a == b,
        IntCmp::Ne => a != b,
        IntCmp::LtS => sa < sb,
        IntCmp::LeS => sa <= sb,
        IntCmp::GtS => sa > sb,
        IntCmp::GeS => sa >= sb,
        IntCmp::LtU => a < b,
        IntCmp::LeU => a <= b,
        IntCmp::GtU => a > b,
        IntCmp::GeU => a >= b,
    }
}

/// A number that orders the values of a format as reals, zeros of both signs equal.
fn order_key(format: Format, bits: u64) -> i64 {
    let magnitude = format.magnitude(bits) as i64;
    if format.is_negative(bits) { -magnitude } else { magnitude }
}

fn float_cmp(cmp: FloatCmp, ty: Type, a: u64, b: u64) -> bool {
    let format = Format::of(ty);
    let nan = format.is_nan(a) || format.is_nan(b);
    match cmp.rel {
        FloatRel::Ordered => return !nan,
        FloatRel::Unordered => return nan,
        _ if nan => return cmp.nan,
        _ => {}
    }
    let key = |bits| order_key(format, if cmp.ftz { format.flush(bits) } else { bits });
    let (a, b) = (key(a), key(b));
    match cmp.rel {
        FloatRel::Eq => a == b,
        FloatRel::Ne => a != b,
        FloatRel::Lt => a < b,
        FloatRel::Le => a <= b,
        FloatRel::Gt => a > b,
        FloatRel::Ge => a >= b,
        FloatRel::Ordered | FloatRel::Unordered => unreachable!("answered above"),
    }
}

/// The NaN that an operation on these operands gives, some of which are NaN: canonical, but the first one's payload for f64. Callers have the
/// hardware's order.
fn propagate(ty: Type, args: &[u64]) -> u64 {
    let format = Format::of(ty);
    match args.iter().find(|bits| format.is_nan(**bits)) {
        Some(nan) if ty == Type::F64 => nan | format.quiet(),
        _ => canonical_nan(ty),
    }
}

pub(crate) fn float_binary(op: FloatBinary, mode: FloatMode, ty: Type, a: u64, b: u64) -> u64 {
    let format = Format::of(ty);
    let (a, b) = if mode.ftz { (format.flush(a), format.flush(b)) } else { (a, b) };
    if let Some(result) = host_binary(op, mode, ty, a, b) {
        return saturate(format, mode, result);
    }
    let b = if op == FloatBinary::Sub && !format.is_nan(b) { b ^ format.sign() } else { b };
    if format.is_nan(a) || format.is_nan(b) {
        let order = if op == FloatBinary::Div { [a, b] } else { [b, a] };
        return saturate(format, mode, propagate(ty, &order));
    }
    let sign = (a ^ b) & format.sign();
    let (a_inf, b_inf) = (format.is_infinite(a), format.is_infinite(b));
    let (x, y) = (format.unpack(a), format.unpack(b));
    let round = |exact: Exact| exact.round(format, mode.round, mode.ftz);
    let result = match op {
        FloatBinary::Add | FloatBinary::Sub => match (a_inf, b_inf) {
            (true, true) if sign != 0 => canonical_nan(ty),
            (true, _) => a,
            (_, true) => b,
            _ => round(x.add(y, mode.round)),
        },
        FloatBinary::Mul => {
            if a_inf && format.is_zero(b) || b_inf && format.is_zero(a) {
                canonical_nan(ty)
            } else if a_inf || b_inf {
                sign | format.infinity()
            } else {
                round(x.times(y))
            }
        }
        FloatBinary::Div => {
            if a_inf && b_inf || format.is_zero(a) && format.is_zero(b) {
                canonical_nan(ty)
            } else if a_inf || format.is_zero(b) {
                sign | format.infinity()
            } else if b_inf {
                sign
            } else {
                round(x.over(y))
            }
        }
    };
    saturate(format, mode, result)
}

fn f32_bits(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

/// The host's own result, where host arithmetic is known to mean the same: quick for the common case.
fn host_binary(op: FloatBinary, mode: FloatMode, ty: Type, a: u64, b: u64) -> Option<u64> {
    macro_rules! apply {
        ($a:expr, $b:expr) => {
            match op {
                FloatBinary::Add => $a + $b,
                FloatBinary::Sub => $a - $b,
                FloatBinary::Mul => $a * $b,
                FloatBinary::Div => $a / $b,
            }
            .to_bits()
            .into()
        };
    }
    let result = match ty {
        Type::F32 => apply!(f32_bits(a), f32_bits(b)),
        Type::F64 => apply!(f64::from_bits(a), f64::from_bits(b)),
        _ => return None,
    };
    accept_host(mode, ty, result)
}

/// A host result counts when it was rounded to nearest, is no NaN, and is not where flushing could matter.
fn accept_host(mode: FloatMode, ty: Type, result: u64) -> Option<u64> {
    if !matches!(ty, Type::F32 | Type::F64) || mode.round != Rounding::Nearest {
        return None;
    }
    let format = Format::of(ty);
    let tiny = mode.ftz && format.magnitude(result) <= format.min_normal();
    (!tiny && !format.is_nan(result)).then_some(result)
}

fn fma(mode: FloatMode, ty: Type, a: u64, b: u64, c: u64) -> u64 {
    let format = Format::of(ty);
    let flush = |bits| if mode.ftz { format.flush(bits) } else { bits };
    let (a, b, c) = (flush(a), flush(b), flush(c));
    let host = match ty {
        Type::F32 => f32_bits(a).mul_add(f32_bits(b), f32_bits(c)).to_bits().into(),
        _ => f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c)).to_bits(),
    };
    if let Some(result) = accept_host(mode, ty, host) {
        return saturate(format, mode, result);
    }
    if [a, b, c].iter().any(|bits| format.is_nan(*bits)) {
        return saturate(format, mode, propagate(ty, &[b, c, a]));
    }
    let product_sign = (a ^ b) & format.sign();
    let (a_inf, b_inf) = (format.is_infinite(a), format.is_infinite(b));
    let result = if a_inf && format.is_zero(b) || b_inf && format.is_zero(a) {
        canonical_nan(ty)
    } else if a_inf || b_inf {
        if format.is_infinite(c) && c & format.sign() != product_sign {
            canonical_nan(ty)
        } else {
            product_sign | format.infinity()
        }
    } else if format.is_infinite(c) {
        c
    } else {
        let product = format.unpack(a).times(format.unpack(b));
        product.add(format.unpack(c), mode.round).round(format, mode.round, mode.ftz)
    };
    saturate(format, mode, result)
}

fn min_max(op: MinMax, ty: Type, a: u64, b: u64) -> u64 {
    let format = Format::of(ty);
    let (a, b) = if op.ftz { (format.flush(a), format.flush(b)) } else { (a, b) };
    let sign = if op.xorsign_abs { (a ^ b) & format.sign() } else { 0 };
    let (a, b) = if op.xorsign_abs { (format.magnitude(a), format.magnitude(b)) } else { (a, b) };
    let nan = |bits: &u64| format.is_nan(*bits);
    match (nan(&a), nan(&b)) {
        (true, true) => return propagate(ty, &[b, a]),
        (true, false) | (false, true) if op.nan => return propagate(ty, &[b, a]),
        (true, false) => return b | sign,
        (false, true) => return a | sign,
        (false, false) => {}
    }
    let first = if op.max {
        total_key(format, a) >= total_key(format, b)
    } else {
        total_key(format, a) <= total_key(format, b)
    };
    sign | if first { a } else { b }
}

/// Orders the numbers of a format totally: -0 comes before +0.
fn total_key(format: Format, bits: u64) -> i64 {
    let magnitude = format.magnitude(bits) as i64;
    if format.is_negative(bits) { !magnitude } else { magnitude }
}

fn float_unary(op: FloatUnary, mode: FloatMode, ty: Type, a: u64) -> u64 {
    let format = Format::of(ty);
    let a = if mode.ftz { format.flush(a) } else { a };
    let result = match op {
        FloatUnary::Neg | FloatUnary::Abs if format.is_nan(a) => {
            // The sign of an f64 NaN stays; narrower ones become canonical.
            if ty == Type::F64 { a | format.quiet() } else { canonical_nan(ty) }
        }
        FloatUnary::Neg => a ^ format.sign(),
        FloatUnary::Abs => format.magnitude(a),
        _ if format.is_nan(a) => propagate(ty, &[a]),
        FloatUnary::Sqrt if format.is_zero(a) => a,
        FloatUnary::Sqrt if format.is_negative(a) => canonical_nan(ty),
        FloatUnary::Sqrt if format.is_infinite(a) => a,
        FloatUnary::Sqrt => format.unpack(a).sqrt().round(format, mode.round, mode.ftz),
        FloatUnary::Rcp => return float_binary(FloatBinary::Div, mode, ty, format.one(), a),
    };
    saturate(format, mode, result)
}

fn convert(op: Convert, from: Type, to: Type, a: u64) -> u64 {
    match op {
        Convert::Trunc | Convert::Bitcast | Convert::ZExt => a & to.mask(),
        Convert::SExt => sign_extend(from, a) as u64 & to.mask(),
        Convert::FloatToS { round, ftz } => float_to_int(from, to, true, round, ftz, a),
        Convert::FloatToU { round, ftz } => float_to_int(from, to, false, round, ftz, a),
        Convert::SToFloat(mode) => {
            let value = sign_extend(from, a);
            let format = Format::of(to);
            let exact = Exact::from_int(value < 0, value.unsigned_abs());
            saturate(format, mode, exact.round(format, mode.round, mode.ftz))
        }
        Convert::UToFloat(mode) => {
            let format = Format::of(to);
            saturate(format, mode, Exact::from_int(false, a).round(format, mode.round, mode.ftz))
        }
        Convert::FloatToFloat(mode) => float_to_float(mode, from, to, a),
        Convert::RoundToIntegral(mode) => {
            let format = Format::of(to);
            let a = if mode.ftz { format.flush(a) } else { a };
            let result = if format.is_nan(a) {
                if to == Type::F64 { a | format.quiet() } else { canonical_nan(to) }
            } else if format.is_infinite(a) {
                a
            } else {
                round_to_integral(format, mode.round, a)
            };
            saturate(format, mode, result)
        }
    }
}

fn round_to_integral(format: Format, round: Rounding, a: u64) -> u64 {
    let exact = format.unpack(a);
    if exact.exp >= 0 {
        return a;
    }
    let (sig, _) = exact.round_at(0, round);
    let whole = Exact { exp: 0, sig, sticky: false, ..exact };
    whole.round(format, Rounding::Nearest, false)
}

fn float_to_int(from: Type, to: Type, signed: bool, round: Rounding, ftz: bool, a: u64) -> u64 {
    let format = Format::of(from);
    let a = if ftz { format.flush(a) } else { a };
    if format.is_nan(a) {
        // The hardware's answer depends on the widths, not on the sign.
        let wide = to.bits() == 64 || from == Type::F64;
        return if wide { 1 << (to.bits() - 1) } else { 0 };
    }
    let negative = format.is_negative(a);
    let max = if signed { to.mask() >> 1 } else { to.mask() };
    let limit = match (signed, negative) {
        (true, true) => max + 1,
        (false, true) => 0,
        (_, false) => max,
    };
    let magnitude = if format.is_infinite(a) {
        limit
    } else {
        let exact = format.unpack(a);
        if exact.exp > 64 {
            limit
        } else {
            let (sig, _) = exact.round_at(0, round);
            u64::try_from(sig).unwrap_or(u64::MAX).min(limit)
        }
    };
    let bits = if negative { magnitude.wrapping_neg() } else { magnitude };
    bits & to.mask()
}

fn float_to_float(mode: FloatMode, from: Type, to: Type, a: u64) -> u64 {
    let (source, target) = (Format::of(from), Format::of(to));
    // Subnormals of f32 are flushed, as source or as result, but not on the way to f16; a half's are numbers like others.
    let flush_source = mode.ftz && from == Type::F32 && to != Type::F16;
    let a = if flush_source { source.flush(a) } else { a };
    let ftz = mode.ftz && to == Type::F32;
    if source.is_nan(a) {
        let nan = match (from, to) {
            _ if from == to => a,
            (Type::BF16, Type::F32) => a << 16,
            // Flushing goes through an operation of f32, whose NaN is the canonical one.
            (Type::F32, Type::F64) if mode.ftz => 0x7fff_ffff_e000_0000,
            (Type::F64, _) => {
                let payload = (a & source.fraction_mask()) >> (source.precision - target.precision);
                let sign = if source.is_negative(a) { target.sign() } else { 0 };
                sign | target.infinity() | target.quiet() | payload
            }
            (_, Type::F64) => {
                let payload = (a & source.fraction_mask()) << (target.precision - source.precision);
                let sign = if source.is_negative(a) { target.sign() } else { 0 };
                sign | target.infinity() | target.quiet() | payload
            }
            _ => canonical_nan(to),
        };
        return saturate(target, mode, nan);
    }
    let sign = if source.is_negative(a) { target.sign() } else { 0 };
    let result = if source.is_infinite(a) {
        sign | target.infinity()
    } else {
        source.unpack(a).round(target, mode.round, ftz)
    };
    saturate(target, mode, result)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RN: FloatMode = FloatMode { round: Rounding::Nearest, ftz: false, sat: false, contract: false };

    #[test]
    fn division_by_zero_is_all_ones() {
        for op in [IntBinary::DivS, IntBinary::DivU, IntBinary::RemS, IntBinary::RemU] {
            assert_eq!(int_binary(op, Type::I16, 7, 0), 0xffff);
        }
        assert_eq!(int_binary(IntBinary::DivS, Type::I32, 0x8000_0000, 0xffff_ffff), 0x8000_0000);
        assert_eq!(int_binary(IntBinary::RemS, Type::I32, 0x8000_0000, 0xffff_ffff), 0);
    }

    #[test]
    fn shifts_clamp() {
        assert_eq!(shift(Shift::Left, Type::I32, 1, 32), 0);
        assert_eq!(shift(Shift::RightS, Type::I16, 0x8000, 200), 0xffff);
        assert_eq!(funnel_shift(true, false, 0x1111_1111, 0x2222_2222, 40), 0x1111_1111);
        assert_eq!(funnel_shift(false, true, 0x1111_1111, 0x2222_2222, 36), 0x2111_1111);
    }

    #[test]
    fn nans_of_f64_are_the_hardware_s() {
        let (signalling, first, second, third) =
            (0xfff0_0000_0000_0001, 0xfff8_0000_0000_0001, 0x7ff8_0000_0000_0005, 0x7ff8_0000_0000_0009);
        for op in [FloatBinary::Add, FloatBinary::Sub, FloatBinary::Mul] {
            assert_eq!(float_binary(op, RN, Type::F64, first, second), second, "{op:?}");
            assert_eq!(float_binary(op, RN, Type::F64, signalling, 0), first, "{op:?}");
        }
        assert_eq!(float_binary(FloatBinary::Div, RN, Type::F64, signalling, second), first);
        let max = MinMax { max: true, ..MinMax::default() };
        assert_eq!(min_max(max, Type::F64, second, signalling), first);
        assert_eq!(fma(RN, Type::F64, first, second, third), second);
        assert_eq!(fma(RN, Type::F64, first, 0, third), third);
        assert_eq!(fma(RN, Type::F64, signalling, 0, 0), first);
        for op in [FloatUnary::Neg, FloatUnary::Abs, FloatUnary::Sqrt] {
            assert_eq!(float_unary(op, RN, Type::F64, signalling), first, "{op:?}");
        }
    }

    #[test]
    fn nan_conversions_are_the_hardware_s() {
        let nan = u64::from(f32::NAN.to_bits());
        let to_s = Convert::FloatToS { round: Rounding::Zero, ftz: false };
        assert_eq!(convert(to_s, Type::F32, Type::I32, nan), 0);
        assert_eq!(convert(to_s, Type::F32, Type::I64, nan), 1 << 63);
        assert_eq!(convert(to_s, Type::F64, Type::I32, f64::NAN.to_bits()), 1 << 31);
        let to_f = Convert::FloatToFloat(RN);
        assert_eq!(convert(to_f, Type::F64, Type::F32, 0x7ff8_0000_0000_0000), 0x7fc0_0000);
        assert_eq!(convert(to_f, Type::F64, Type::F16, 0xfff4_0000_0000_0003), 0xff00);
        assert_eq!(convert(to_f, Type::F64, Type::BF16, 0xfff4_0000_0000_0003), 0xffe0);
        assert_eq!(convert(to_f, Type::F16, Type::F64, 0xfd03), 0xfffc_0c00_0000_0000);
        assert_eq!(convert(to_f, Type::BF16, Type::F64, 0x7f81), 0x7ff8_2000_0000_0000);
        let flushing = Convert::FloatToFloat(FloatMode { ftz: true, ..RN });
        assert_eq!(convert(flushing, Type::F32, Type::F64, 0x7f80_0001), 0x7fff_ffff_e000_0000);
        assert_eq!(float_binary(FloatBinary::Add, RN, Type::F32, nan, 0), 0x7fff_ffff);
    }

    #[test]
    fn minimum_orders_zeros_and_drops_nan() {
        let min = MinMax::default();
        assert_eq!(min_max(min, Type::F32, 0, 0x8000_0000), 0x8000_0000);
        assert_eq!(min_max(min, Type::F64, 0, 1 << 63), 1 << 63);
        assert_eq!(min_max(min, Type::F32, 0x7fc0_0000, 5), 5);
        assert_eq!(min_max(MinMax { nan: true, ..min }, Type::F32, 0x7fc0_0000, 5), 0x7fff_ffff);
    }

    #[test]
    fn conversion_clamps_and_rounds() {
        let to_u = Convert::FloatToU { round: Rounding::Nearest, ftz: false };
        let bits = |x: f32| u64::from(x.to_bits());
        assert_eq!(convert(to_u, Type::F32, Type::I8, bits(300.0)), 255);
        assert_eq!(convert(to_u, Type::F32, Type::I8, bits(-1.0)), 0);
        assert_eq!(convert(to_u, Type::F32, Type::I32, bits(2.5)), 2);
        let to_s = Convert::FloatToS { round: Rounding::Down, ftz: false };
        assert_eq!(convert(to_s, Type::F32, Type::I32, bits(-2.5)), (-3i32) as u32 as u64);
        assert_eq!(convert(to_s, Type::F32, Type::I32, bits(-1e30)), 0x8000_0000);
    }
}
