//! Functions that PTX lets an implementation approximate.

use crate::soft::Format;
use crate::{Approx, Type};

/// The function's value, within the bounds of the PTX ISA. `b` is the divisor of the divisions.
pub fn eval(func: Approx, ftz: bool, ty: Type, a: u64, b: u64) -> u64 {
    let format = Format::of(ty);
    let flush = |bits| if ftz { format.flush(bits) } else { bits };
    let wide = |bits: u64| match ty {
        Type::F64 => f64::from_bits(bits),
        Type::F32 => f64::from(f32::from_bits(bits as u32)),
        _ => widen(format, bits),
    };
    let (x, y) = (wide(flush(a)), wide(flush(b)));
    let exact = match func {
        Approx::Ex2 => x.exp2(),
        Approx::Lg2 => x.log2(),
        Approx::Sin => x.sin(),
        Approx::Cos => x.cos(),
        Approx::Tanh => x.tanh(),
        Approx::Rcp => 1.0 / x,
        Approx::Rsqrt => 1.0 / x.sqrt(),
        Approx::Sqrt => x.sqrt(),
        Approx::Div if y.abs() > (126f64).exp2() && y.is_finite() && x.is_finite() => {
            0f64.copysign(x * y.signum())
        }
        Approx::Div | Approx::DivFull => x / y,
    };
    flush(narrow(ty, format, exact))
}

fn widen(format: Format, bits: u64) -> f64 {
    let exact = format.unpack(bits);
    let magnitude = if format.is_nan(bits) {
        f64::NAN
    } else if format.is_infinite(bits) {
        f64::INFINITY
    } else {
        exact.sig as f64 * f64::from(exact.exp).exp2()
    };
    if exact.negative { -magnitude } else { magnitude }
}

fn narrow(ty: Type, format: Format, value: f64) -> u64 {
    if value.is_nan() {
        return crate::eval::canonical_nan(ty);
    }
    if value.is_infinite() {
        return format.infinity() | if value < 0.0 { format.sign() } else { 0 };
    }
    Format::of(Type::F64).unpack(value.to_bits()).round(format, crate::Rounding::Nearest, false)
}
