//! Approximate quotients of f32.
//!
//! `div.approx` and `div.full` are correctly rounded here, which costs nothing on a processor that divides. On the hardware they are a product
//! with an approximate reciprocal, up to 2.11 units in the last place from it. That is of no account but where the next number is of another
//! kind: next to the least normal number with `.ftz`, where a quotient is itself or 0, and next to the greatest finite one. There, and next
//! to what is rounded to 0, the quotient is the hardware's: in compiled code a test of the quotient and, hardly ever, a call of the host.

use crate::approx::divisor;
use crate::eval::float_binary;
use crate::soft::Format;
use crate::{Approx, FloatBinary, FloatMode, Mufu, Type, mufu};

/// The quotient of operands that are flushed already where they have to be.
pub(crate) fn eval(func: Approx, ftz: bool, a: u64, b: u64) -> u64 {
    if is_next_to_limit(ftz, a, b) {
        return of_hardware(func, ftz, a, b);
    }
    let divisor = divisor(&crate::approx::Host, func, f32::from_bits(b as u32));
    float_binary(FloatBinary::Div, mode(ftz), Type::F32, a, divisor.to_bits().into())
}

fn mode(ftz: bool) -> FloatMode {
    FloatMode { ftz, ..FloatMode::default() }
}

/// Binary logarithms of the limits between one kind of result and the next: normal and infinite, normal and subnormal, subnormal and zero.
/// With `.ftz` there is no third.
pub fn limits(ftz: bool) -> &'static [i32] {
    if ftz { &[128, -126] } else { &[128, -126, -150] }
}

/// How far from a limit the hardware decides, by bits of the quotient as f64: a part in 2^20 above the limit, half of it below. The hardware's
/// error is below a part in 2^21.9.
const MARGIN: u64 = 1 << 32;

fn is_next_to_limit(ftz: bool, a: u64, b: u64) -> bool {
    let double = |bits| f64::from(f32::from_bits(bits as u32)).abs();
    let (a, b) = (double(a), double(b));
    // Neither overflows, and a quotient of what is not finite, or with 0, is no limit's neighbour.
    let quotient = (a / b).to_bits();
    limits(ftz).iter().any(|limit| quotient.abs_diff(f64::from(*limit).exp2().to_bits()) <= MARGIN)
}

/// As NVIDIA's compiler writes it: of what the multifunction unit can take, the product with its reciprocal.
fn of_hardware(func: Approx, ftz: bool, a: u64, b: u64) -> u64 {
    let times = |x, y| float_binary(FloatBinary::Mul, mode(ftz), Type::F32, x, y);
    let single = Format::of(Type::F32);
    let magnitude = single.magnitude(b);
    let scale = if func == Approx::DivFull && magnitude > 126f32.exp2().to_bits().into() {
        0.25
    } else if !ftz && magnitude < single.min_normal() {
        24f32.exp2()
    } else {
        1f32
    };
    let [a, b] = [a, b].map(|x| times(x, scale.to_bits().into()));
    times(a, mufu::eval(Mufu::Rcp, Type::F32, b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divided(func: Approx, ftz: bool, a: u32, b: u32) -> u32 {
        eval(func, ftz, a.into(), b.into()) as u32
    }

    #[test]
    fn what_an_h200_gave_next_to_limits() {
        use Approx::{Div, DivFull};
        for (func, ftz, a, b, expected) in [
            (Div, false, 0x02ff_ffff, 0x41ff_fffe, 0x0080_0000),
            (Div, true, 0x017f_ffff, 0x4080_0000, 0x0000_0000),
            (Div, true, 0x047f_ffff, 0xc380_0000, 0x8000_0000),
            (Div, true, 0x02ff_ffff, 0x41ff_fffe, 0x0080_0000),
            (Div, true, 0x00ff_ffff, 0x4000_0000, 0x0000_0000),
            (DivFull, false, 0x02ff_ffff, 0x41ff_fffe, 0x0080_0000),
            (DivFull, true, 0x017f_ffff, 0x4080_0000, 0x0000_0000),
            (DivFull, true, 0x047f_ffff, 0xc380_0000, 0x8000_0000),
            (DivFull, true, 0x02ff_ffff, 0x41ff_fffe, 0x0080_0000),
            (DivFull, true, 0x00ff_ffff, 0x4000_0000, 0x0000_0000),
        ] {
            let result = divided(func, ftz, a, b);
            assert_eq!(result, expected, "{func:?} ftz={ftz} {a:#x} / {b:#x}: {result:#x}");
        }
    }

    #[test]
    fn quotients_are_rounded_correctly_elsewhere() {
        for (a, b) in
            [(1f32, 3f32), (1e-30, 7e5), (3.4e38, 1.1), (5e-40, 3.0), (1.0, f32::INFINITY), (0.0, 5.0)]
        {
            let (a_bits, b_bits) = (a.to_bits(), b.to_bits());
            assert_eq!(divided(Approx::DivFull, false, a_bits, b_bits), (a / b).to_bits(), "{a:e} / {b:e}");
        }
    }
}
