//! Floating-point arithmetic: exact, and approximated within PTX's bounds.

mod approx;

use simt_ir::{
    Approx, Convert, FloatBinary, FloatCmp, FloatMode, FloatRel, FloatUnary, IntBinary, IntCmp, MinMax, Op,
    Type, Value,
};

use super::{Form, Ty, form};
use crate::lower::expander::Expander;
use approx::approximate;

pub(super) const FORMS: &[Form] = &[
    form("add.rnd{$rnd}?.ftz?.sat?.T{f32} d=T, a:T, b:T", add),
    form("add.rnd{$rnd}?.T{f64} d=T, a:T, b:T", add),
    form("add.rnd{rn}?.ftz?.sat?.T{f16,f16x2} d=T, a:T, b:T", add).since(4, 2, 53),
    form("add.rnd{rn}?.T{bf16,bf16x2} d=T, a:T, b:T", add).since(7, 8, 90),
    form("sub.rnd{$rnd}?.ftz?.sat?.T{f32} d=T, a:T, b:T", sub),
    form("sub.rnd{$rnd}?.T{f64} d=T, a:T, b:T", sub),
    form("sub.rnd{rn}?.ftz?.sat?.T{f16,f16x2} d=T, a:T, b:T", sub).since(4, 2, 53),
    form("sub.rnd{rn}?.T{bf16,bf16x2} d=T, a:T, b:T", sub).since(7, 8, 90),
    form("mul.rnd{$rnd}?.ftz?.sat?.T{f32} d=T, a:T, b:T", mul),
    form("mul.rnd{$rnd}?.T{f64} d=T, a:T, b:T", mul),
    form("mul.rnd{rn}?.ftz?.sat?.T{f16,f16x2} d=T, a:T, b:T", mul).since(4, 2, 53),
    form("mul.rnd{rn}?.T{bf16,bf16x2} d=T, a:T, b:T", mul).since(7, 8, 90),
    form("fma.rnd{$rnd}.ftz?.sat?.T{f32} d=T, a:T, b:T, c:T", fma).since(2, 0, 20),
    form("fma.rnd{$rnd}.T{f64} d=T, a:T, b:T, c:T", fma).since(1, 4, 13),
    form("fma.rnd{rn}.ftz?.sat?.T{f16,f16x2} d=T, a:T, b:T, c:T", fma).since(4, 2, 53),
    form("fma.rnd{rn}.ftz?.relu.T{f16,f16x2} d=T, a:T, b:T, c:T", fma).since(7, 0, 80),
    form("fma.rnd{rn}.relu?.T{bf16,bf16x2} d=T, a:T, b:T, c:T", fma).since(7, 0, 80),
    form("fma.rnd{rn}.oob.relu?.T{f16,f16x2,bf16,bf16x2} d=T, a:T, b:T, c:T", fma).since(8, 1, 90),
    form("mad.rnd{$rnd}.ftz?.sat?.T{f32} d=T, a:T, b:T, c:T", fma),
    form("mad.rnd{$rnd}.T{f64} d=T, a:T, b:T, c:T", fma),
    form("div.rnd{$rnd}.ftz?.T{f32} d=T, a:T, b:T", |x| arithmetic(x, FloatBinary::Div)).since(1, 4, 20),
    form("div.rnd{$rnd}.T{f64} d=T, a:T, b:T", |x| arithmetic(x, FloatBinary::Div)).since(1, 4, 13),
    form("div.approx.ftz?.T{f32} d=T, a:T, b:T", |x| approximate(x, Approx::Div, &["a", "b"]))
        .since(1, 4, 10),
    form("div.full.ftz?.T{f32} d=T, a:T, b:T", |x| approximate(x, Approx::DivFull, &["a", "b"]))
        .since(1, 4, 10),
    form("rcp.rnd{$rnd}.ftz?.T{f32} d=T, a:T", |x| exact_unary(x, FloatUnary::Rcp)).since(1, 4, 20),
    form("rcp.rnd{$rnd}.T{f64} d=T, a:T", |x| exact_unary(x, FloatUnary::Rcp)).since(1, 4, 13),
    form("rcp.approx.ftz?.T{f32} d=T, a:T", |x| approximate(x, Approx::Rcp, &["a"])).since(1, 4, 10),
    form("rcp.approx.ftz.T{f64} d=T, a:T", |x| approximate(x, Approx::Rcp, &["a"])).since(2, 1, 20),
    form("sqrt.rnd{$rnd}.ftz?.T{f32} d=T, a:T", |x| exact_unary(x, FloatUnary::Sqrt)).since(1, 4, 20),
    form("sqrt.rnd{$rnd}.T{f64} d=T, a:T", |x| exact_unary(x, FloatUnary::Sqrt)).since(1, 4, 13),
    form("sqrt.approx.ftz?.T{f32} d=T, a:T", |x| approximate(x, Approx::Sqrt, &["a"])).since(1, 4, 10),
    form("rsqrt.approx.ftz?.T{f32} d=T, a:T", |x| approximate(x, Approx::Rsqrt, &["a"])).since(1, 4, 10),
    form("rsqrt.approx.ftz?.T{f64} d=T, a:T", |x| approximate(x, Approx::Rsqrt, &["a"])).since(1, 4, 13),
    form("sin.approx.ftz?.T{f32} d=T, a:T", |x| approximate(x, Approx::Sin, &["a"])).since(1, 4, 10),
    form("cos.approx.ftz?.T{f32} d=T, a:T", |x| approximate(x, Approx::Cos, &["a"])).since(1, 4, 10),
    form("lg2.approx.ftz?.T{f32} d=T, a:T", |x| approximate(x, Approx::Lg2, &["a"])).since(1, 4, 10),
    form("ex2.approx.ftz?.T{f32} d=T, a:T", |x| approximate(x, Approx::Ex2, &["a"])).since(1, 4, 10),
    form("ex2.approx.T{f16,f16x2} d=T, a:T", |x| approximate(x, Approx::Ex2, &["a"])).since(7, 0, 75),
    form("ex2.approx.ftz.T{bf16,bf16x2} d=T, a:T", |x| approximate(x, Approx::Ex2, &["a"])).since(7, 8, 90),
    form("tanh.approx.T{f32} d=T, a:T", |x| approximate(x, Approx::Tanh, &["a"])).since(7, 0, 75),
    form("tanh.approx.T{f16,f16x2} d=T, a:T", |x| approximate(x, Approx::Tanh, &["a"])).since(7, 0, 75),
    form("tanh.approx.T{bf16,bf16x2} d=T, a:T", |x| approximate(x, Approx::Tanh, &["a"])).since(7, 8, 90),
    form("neg.ftz?.T{f32} d=T, a:T", |x| exact_unary(x, FloatUnary::Neg)),
    form("neg.T{f64} d=T, a:T", |x| exact_unary(x, FloatUnary::Neg)),
    form("neg.ftz?.T{f16,f16x2} d=T, a:T", |x| exact_unary(x, FloatUnary::Neg)).since(6, 0, 53),
    form("neg.T{bf16,bf16x2} d=T, a:T", |x| exact_unary(x, FloatUnary::Neg)).since(7, 0, 80),
    form("abs.ftz?.T{f32} d=T, a:T", |x| exact_unary(x, FloatUnary::Abs)),
    form("abs.T{f64} d=T, a:T", |x| exact_unary(x, FloatUnary::Abs)),
    form("abs.ftz?.T{f16,f16x2} d=T, a:T", |x| exact_unary(x, FloatUnary::Abs)).since(6, 5, 53),
    form("abs.T{bf16,bf16x2} d=T, a:T", |x| exact_unary(x, FloatUnary::Abs)).since(7, 0, 80),
    form("min.ftz?.NaN?.T{f32} d=T, a:T, b:T", |x| min_max(x, false)),
    form("max.ftz?.NaN?.T{f32} d=T, a:T, b:T", |x| min_max(x, true)),
    form("min.ftz?.NaN?.xorsign.abs.T{f32} d=T, a:T, b:T", |x| min_max(x, false)).since(7, 2, 86),
    form("max.ftz?.NaN?.xorsign.abs.T{f32} d=T, a:T, b:T", |x| min_max(x, true)).since(7, 2, 86),
    form("min.T{f64} d=T, a:T, b:T", |x| min_max(x, false)),
    form("max.T{f64} d=T, a:T, b:T", |x| min_max(x, true)),
    form("min.ftz?.NaN?.T{f16,f16x2} d=T, a:T, b:T", |x| min_max(x, false)).since(7, 0, 80),
    form("max.ftz?.NaN?.T{f16,f16x2} d=T, a:T, b:T", |x| min_max(x, true)).since(7, 0, 80),
    form("min.ftz?.NaN?.xorsign.abs.T{f16,f16x2} d=T, a:T, b:T", |x| min_max(x, false)).since(7, 2, 86),
    form("max.ftz?.NaN?.xorsign.abs.T{f16,f16x2} d=T, a:T, b:T", |x| min_max(x, true)).since(7, 2, 86),
    form("min.NaN?.T{bf16,bf16x2} d=T, a:T, b:T", |x| min_max(x, false)).since(7, 0, 80),
    form("max.NaN?.T{bf16,bf16x2} d=T, a:T, b:T", |x| min_max(x, true)).since(7, 0, 80),
    form("min.NaN?.xorsign.abs.T{bf16,bf16x2} d=T, a:T, b:T", |x| min_max(x, false)).since(7, 2, 86),
    form("max.NaN?.xorsign.abs.T{bf16,bf16x2} d=T, a:T, b:T", |x| min_max(x, true)).since(7, 2, 86),
    form("copysign.T{f32,f64} d=T, a:T, b:T", copysign).since(2, 0, 20),
    form("testp.class{finite,infinite,number,notanumber,normal,subnormal}.T{f32,f64} p=pred, a:T", testp)
        .since(2, 0, 20),
    // Of no class is no number, as an H100 has it.
    form("testp.T{f32,f64} p=pred, a:T", |x| {
        let p = x.imm(Type::Pred, 0);
        x.set("p", p);
    })
    .since(2, 0, 20),
];

fn add(x: &mut Expander<'_, '_>) {
    arithmetic(x, FloatBinary::Add);
}

fn sub(x: &mut Expander<'_, '_>) {
    arithmetic(x, FloatBinary::Sub);
}

fn mul(x: &mut Expander<'_, '_>) {
    arithmetic(x, FloatBinary::Mul);
}

/// Without a rounding modifier a product may be fused with what follows.
fn arithmetic(x: &mut Expander<'_, '_>, op: FloatBinary) {
    let mode = x.float_mode(op != FloatBinary::Div);
    let d = x.elementwise(x.ty("T"), &["a", "b"], |x, _, v| x.float(op, mode, v[0], v[1]));
    x.set("d", d);
}

fn fma(x: &mut Expander<'_, '_>) {
    let mode = x.float_mode(false);
    let (relu, out_of_bounds) = (x.has("relu"), x.has("oob"));
    let d = x.elementwise(x.ty("T"), &["a", "b", "c"], |x, ty, v| {
        let mut d = x.op(Op::Fma(mode), v);
        if relu {
            d = relu_of(x, ty, d);
        }
        if out_of_bounds { zero_out_of_bounds(x, [v[0], v[1]], d) } else { d }
    });
    x.set("d", d);
}

/// `.oob`: a factor that is the NaN which marks what lies outside a tensor, of either sign, makes the result zero.
fn zero_out_of_bounds(x: &mut Expander<'_, '_>, factors: [Value; 2], result: Value) -> Value {
    let [a, b] = factors.map(|factor| {
        let bits = x.fit(factor, Type::I16);
        let magnitude = x.int_imm(IntBinary::And, bits, 0x7fff);
        x.cmp_imm(IntCmp::Eq, magnitude, 0x7ff7)
    });
    let outside = x.int(IntBinary::Or, a, b);
    let zero = x.imm_like(result, 0);
    x.select(outside, zero, result)
}

/// Negative becomes +0; NaN becomes the canonical NaN.
pub(super) fn relu_of(x: &mut Expander<'_, '_>, ty: Ty, value: Value) -> Value {
    let zero = x.imm(ty.ir(), 0);
    x.min_max(MinMax { max: true, nan: true, ..MinMax::default() }, value, zero)
}

fn exact_unary(x: &mut Expander<'_, '_>, op: FloatUnary) {
    let mode = x.float_mode(false);
    let d = x.elementwise(x.ty("T"), &["a"], |x, _, v| x.float_un(op, mode, v[0]));
    x.set("d", d);
}

fn min_max(x: &mut Expander<'_, '_>, max: bool) {
    let op = MinMax {
        max,
        nan: x.has("NaN"),
        ftz: x.has("ftz"),
        xorsign_abs: x.has("xorsign"),
        ..MinMax::default()
    };
    let d = x.elementwise(x.ty("T"), &["a", "b"], |x, _, v| x.min_max(op, v[0], v[1]));
    x.set("d", d);
}

/// The sign of `a` on the magnitude of `b`.
fn copysign(x: &mut Expander<'_, '_>) {
    let ty = x.ty("T").ir();
    let int = ty.as_int().unwrap_or(Type::I64);
    let (a, b) = (x.src("a"), x.src("b"));
    let (a, b) = (x.fit(a, int), x.fit(b, int));
    let sign = 1u64 << (int.bits() - 1);
    let a = x.int_imm(IntBinary::And, a, sign);
    let b = x.int_imm(IntBinary::And, b, sign - 1);
    let d = x.int(IntBinary::Or, a, b);
    let d = x.fit(d, ty);
    x.set("d", d);
}

/// Classes by comparing the bits without sign with those of infinity and the smallest normal number.
fn testp(x: &mut Expander<'_, '_>) {
    let int = x.ty("T").ir().as_int().unwrap_or(Type::I64);
    let (infinity, normal): (u64, u64) = match int {
        Type::I32 => (0x7f80_0000, 0x0080_0000),
        _ => (0x7ff0_0000_0000_0000, 0x0010_0000_0000_0000),
    };
    let a = x.src("a");
    let bits = x.fit(a, int);
    let bits = x.int_imm(IntBinary::And, bits, int.mask() >> 1);
    let class = x.word("class");
    let p = match class {
        "finite" => x.cmp_imm(IntCmp::LtU, bits, infinity),
        "infinite" => x.cmp_imm(IntCmp::Eq, bits, infinity),
        "number" => x.cmp_imm(IntCmp::LeU, bits, infinity),
        "notanumber" => x.cmp_imm(IntCmp::GtU, bits, infinity),
        "normal" => {
            // Zero counts as normal.
            let above = x.int_imm(IntBinary::Sub, bits, normal);
            let normal = x.cmp_imm(IntCmp::LtU, above, infinity - normal);
            let zero = x.cmp_imm(IntCmp::Eq, bits, 0);
            x.int(IntBinary::Or, normal, zero)
        }
        _ => {
            let below = x.int_imm(IntBinary::Sub, bits, 1);
            x.cmp_imm(IntCmp::LtU, below, normal - 1)
        }
    };
    x.set("p", p);
}

/// Whether a value is NaN.
pub(super) fn is_nan(x: &mut Expander<'_, '_>, value: Value) -> Value {
    x.fcmp(FloatCmp { rel: FloatRel::Unordered, nan: true, ftz: false }, value, value)
}

/// The value converted to the float type `ty`.
pub(super) fn to_float(x: &mut Expander<'_, '_>, value: Value, ty: Type, mode: FloatMode) -> Value {
    x.convert(Convert::FloatToFloat(mode), value, ty)
}
