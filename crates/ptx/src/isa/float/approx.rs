//! The `.approx` instructions: as operations of their own, or, bit for bit, as what NVIDIA's compiler makes of them for
//! `sm_90`: operations of the multifunction unit between exact ones.
//!
//! The unit takes subnormal operands for zero. Without `.ftz` they are scaled into the normal range first, and the result back.

use simt_ir::{
    Approx, Approximations, FloatBinary, FloatCmp, FloatMode, FloatRel, FloatUnary, IntBinary, Mufu, Op,
    Rounding, Type, Value,
};

use crate::lower::expander::Expander;

/// The function of the instruction's sources, element by element.
pub(super) fn approximate(x: &mut Expander<'_, '_>, func: Approx, sources: &[&str]) {
    let ftz = x.has("ftz");
    let d = x.elementwise(x.ty("T"), sources, |x, ty, v| match (x.body.links.approximations, ty.ir()) {
        (Approximations::Fast, _) => x.op(Op::Approx { func, ftz }, v),
        (Approximations::Hardware, Type::F64) => of_double(x, func, ftz, v[0]),
        (Approximations::Hardware, Type::F32) => of_single(x, func, ftz, v),
        (Approximations::Hardware, _) => mufu(x, unit(func), v[0]),
    });
    x.set("d", d);
}

/// What the unit has for a function.
fn unit(func: Approx) -> Mufu {
    match func {
        Approx::Ex2 => Mufu::Ex2,
        Approx::Lg2 => Mufu::Lg2,
        Approx::Sin => Mufu::Sin,
        Approx::Cos => Mufu::Cos,
        Approx::Tanh => Mufu::Tanh,
        Approx::Rsqrt => Mufu::Rsqrt,
        Approx::Sqrt => Mufu::Sqrt,
        Approx::Rcp | Approx::Div | Approx::DivFull => Mufu::Rcp,
    }
}

fn mufu(x: &mut Expander<'_, '_>, func: Mufu, a: Value) -> Value {
    x.op(Op::Mufu(func), &[a])
}

/// Where the unit would see a subnormal number, it sees it times this.
const SCALE: f32 = (1 << 24) as f32;
/// 2^126: the reciprocals of larger numbers are subnormal.
const LARGE: u32 = 0x7e80_0000;
/// 1/2pi.
const TURNS_PER_RADIAN: u32 = 0x3e22_f983;

fn of_single(x: &mut Expander<'_, '_>, func: Approx, ftz: bool, v: &[Value]) -> Value {
    let a = v[0];
    let scaled_by = |factor: f32, round| Scaling { factor, round, ftz };
    let scaled = |factor| scaled_by(factor, Rounding::Nearest);
    match func {
        Approx::Tanh => mufu(x, Mufu::Tanh, a),
        Approx::Sin | Approx::Cos => {
            let turns = scaled_by(f32::from_bits(TURNS_PER_RADIAN), Rounding::Zero).of(x, a);
            mufu(x, unit(func), turns)
        }
        Approx::Div | Approx::DivFull => {
            let mut parts = [a, v[1]];
            let mut scale = |x: &mut Expander<'_, '_>, chosen: Value, factor| {
                parts = parts.map(|part| scaled(factor).where_(x, chosen, part));
            };
            let magnitude = x.float_un(FloatUnary::Abs, FloatMode::default(), v[1]);
            if func == Approx::DivFull {
                let large = compare(x, FloatRel::Gt, ftz, magnitude, LARGE);
                scale(x, large, 0.25);
            }
            if !ftz {
                let small = compare(x, FloatRel::Lt, ftz, magnitude, f32::MIN_POSITIVE.to_bits());
                scale(x, small, SCALE);
            }
            let [a, b] = parts;
            let reciprocal = mufu(x, Mufu::Rcp, b);
            // A sum is fused with it as with any product.
            let mode = FloatMode { ftz, contract: true, ..FloatMode::default() };
            x.float(FloatBinary::Mul, mode, a, reciprocal)
        }
        _ if ftz => mufu(x, unit(func), a),
        Approx::Rcp => {
            let magnitude = x.float_un(FloatUnary::Abs, FloatMode::default(), a);
            let large = compare(x, FloatRel::Gt, ftz, magnitude, LARGE);
            let small = is_subnormal(x, a);
            let [quarter, one, scale] = [0.25, 1.0, SCALE].map(|value: f32| imm(x, value));
            let factor = x.select(small, scale, one);
            let factor = x.select(large, quarter, factor);
            let scaled = x.float(FloatBinary::Mul, FloatMode::default(), a, factor);
            let reciprocal = mufu(x, Mufu::Rcp, scaled);
            x.float(FloatBinary::Mul, FloatMode::default(), reciprocal, factor)
        }
        Approx::Ex2 => {
            let low = compare(x, FloatRel::Lt, ftz, a, (-126f32).to_bits());
            let half = scaled(0.5).where_(x, low, a);
            let root = mufu(x, Mufu::Ex2, half);
            let square = x.float(FloatBinary::Mul, FloatMode::default(), root, root);
            x.select(low, square, root)
        }
        Approx::Rsqrt | Approx::Sqrt | Approx::Lg2 => {
            let small = is_subnormal(x, a);
            let up = scaled(SCALE).where_(x, small, a);
            let value = mufu(x, unit(func), up);
            match func {
                Approx::Rsqrt => scaled(SCALE.sqrt()).where_(x, small, value),
                Approx::Sqrt => scaled(1.0 / SCALE.sqrt()).where_(x, small, value),
                _ => {
                    let log_scale = imm(x, -24.0);
                    let less = x.float(FloatBinary::Add, FloatMode::default(), value, log_scale);
                    x.select(small, less, value)
                }
            }
        }
    }
}

fn imm(x: &mut Expander<'_, '_>, value: f32) -> Value {
    x.imm(Type::F32, value.to_bits().into())
}

/// A comparison with a constant; false for NaN.
fn compare(x: &mut Expander<'_, '_>, rel: FloatRel, ftz: bool, a: Value, bits: u32) -> Value {
    let b = x.imm(Type::F32, bits.into());
    x.fcmp(FloatCmp { rel, nan: false, ftz }, a, b)
}

fn is_subnormal(x: &mut Expander<'_, '_>, a: Value) -> Value {
    let magnitude = x.float_un(FloatUnary::Abs, FloatMode::default(), a);
    compare(x, FloatRel::Lt, false, magnitude, f32::MIN_POSITIVE.to_bits())
}

/// A multiplication by a constant.
#[derive(Clone, Copy)]
struct Scaling {
    factor: f32,
    round: Rounding,
    ftz: bool,
}

impl Scaling {
    fn of(self, x: &mut Expander<'_, '_>, a: Value) -> Value {
        let factor = imm(x, self.factor);
        let mode = FloatMode { round: self.round, ftz: self.ftz, ..FloatMode::default() };
        x.float(FloatBinary::Mul, mode, a, factor)
    }

    /// Where the predicate holds.
    fn where_(self, x: &mut Expander<'_, '_>, chosen: Value, a: Value) -> Value {
        let scaled = self.of(x, a);
        x.select(chosen, scaled, a)
    }
}

/// With `.ftz` the unit's result is all; without, one step of Newton's makes the whole of it.
fn of_double(x: &mut Expander<'_, '_>, func: Approx, ftz: bool, a: Value) -> Value {
    if ftz {
        return mufu(x, unit(func), a);
    }
    let exact = FloatMode::default();
    let imm = |x: &mut Expander<'_, '_>, value: f64| x.imm(Type::F64, value.to_bits());
    let less = FloatCmp { rel: FloatRel::Lt, nan: false, ftz: false };
    let [tiny, up, down] = [f64::MIN_POSITIVE, 54f64.exp2(), 27f64.exp2()].map(|value| imm(x, value));
    let small = x.fcmp(less, a, tiny);
    let scaled = x.float(FloatBinary::Mul, exact, a, up);
    let scaled = x.select(small, scaled, a);
    let guess = mufu(x, Mufu::Rsqrt, scaled);
    // The error of the guess: 1 - scaled * guess^2.
    let square = x.float(FloatBinary::Mul, exact, guess, guess);
    let negated = x.float_un(FloatUnary::Neg, exact, square);
    let [one, half, slope] = [1.0, 0.5, 0.375].map(|value| imm(x, value));
    let error = x.op(Op::Fma(exact), &[scaled, negated, one]);
    let factor = x.op(Op::Fma(exact), &[error, slope, half]);
    let change = x.float(FloatBinary::Mul, exact, guess, error);
    let root = x.op(Op::Fma(exact), &[factor, change, guess]);
    let unscaled = x.float(FloatBinary::Mul, exact, root, down);
    let root = x.select(small, unscaled, root);
    // Zero, infinite, negative and not a number have exact results.
    let [zero, infinity] = [0.0, f64::INFINITY].map(|value| imm(x, value));
    let positive = x.fcmp(less, zero, a);
    let finite = x.fcmp(less, a, infinity);
    let usual = x.int(IntBinary::And, positive, finite);
    let special = x.op(Op::Approx { func, ftz }, &[a]);
    x.select(usual, root, special)
}
