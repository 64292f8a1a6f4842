//! Integer arithmetic.

use simt_ir::{IntBinary, IntCmp, IntUnary, Op, Shift, Type, Value};

use super::{Form, Ty, form};
use crate::lower::expander::Expander;

pub(super) const FORMS: &[Form] = &[
    form("add.T{$int} d=T, a:T, b:T", |x| elementwise(x, IntBinary::Add)),
    form("add.T{u16x2,s16x2} d=T, a:T, b:T", |x| elementwise(x, IntBinary::Add)).since(8, 0, 90),
    form("add.sat.T{s32} d=T, a:T, b:T", |x| elementwise(x, IntBinary::AddSatS)),
    form("sub.T{$int} d=T, a:T, b:T", |x| elementwise(x, IntBinary::Sub)),
    form("sub.sat.T{s32} d=T, a:T, b:T", |x| elementwise(x, IntBinary::SubSatS)),
    form("mul.half{lo,hi}.T{$int} d=T, a:T, b:T", |x| {
        let d = mul(x);
        x.set("d", d);
    }),
    form("mul.wide.T{u16,s16,u32,s32} d=2T, a:T, b:T", |x| {
        let d = wide_product(x);
        x.set("d", d);
    }),
    form("mad.half{lo,hi}.T{$int} d=T, a:T, b:T, c:T", |x| {
        let (product, c) = (mul(x), x.src("c"));
        let d = x.int(IntBinary::Add, product, c);
        x.set("d", d);
    }),
    form("mad.hi.sat.T{s32} d=T, a:T, b:T, c:T", |x| {
        let (a, b, c) = (x.src("a"), x.src("b"), x.src("c"));
        let high = x.int(IntBinary::MulHiS, a, b);
        let d = x.int(IntBinary::AddSatS, high, c);
        x.set("d", d);
    }),
    form("mad.wide.T{u16,s16,u32,s32} d=2T, a:T, b:T, c:2T", |x| {
        let (product, c) = (wide_product(x), x.src("c"));
        let d = x.int(IntBinary::Add, product, c);
        x.set("d", d);
    }),
    form("mul24.half{lo,hi}.T{u32,s32} d=T, a:T, b:T", |x| {
        let d = mul24(x);
        x.set("d", d);
    }),
    form("mad24.half{lo,hi}.T{u32,s32} d=T, a:T, b:T, c:T", |x| {
        let (product, c) = (mul24(x), x.src("c"));
        let d = x.int(IntBinary::Add, product, c);
        x.set("d", d);
    }),
    form("mad24.half{hi}.sat.T{s32} d=T, a:T, b:T, c:T", |x| {
        let (product, c) = (mul24(x), x.src("c"));
        let d = x.int(IntBinary::AddSatS, product, c);
        x.set("d", d);
    }),
    form("div.T{$int} d=T, a:T, b:T", |x| by_sign(x, IntBinary::DivS, IntBinary::DivU)),
    form("rem.T{$int} d=T, a:T, b:T", |x| by_sign(x, IntBinary::RemS, IntBinary::RemU)),
    form("abs.T{s16,s32,s64} d=T, a:T", |x| unary(x, IntUnary::Abs)),
    form("neg.T{s16,s32,s64} d=T, a:T", |x| unary(x, IntUnary::Neg)),
    form("min.T{$int} d=T, a:T, b:T", |x| by_sign(x, IntBinary::MinS, IntBinary::MinU)),
    form("max.T{$int} d=T, a:T, b:T", |x| by_sign(x, IntBinary::MaxS, IntBinary::MaxU)),
    form("min.T{u16x2,s16x2} d=T, a:T, b:T", |x| by_sign(x, IntBinary::MinS, IntBinary::MinU))
        .since(8, 0, 90),
    form("max.T{u16x2,s16x2} d=T, a:T, b:T", |x| by_sign(x, IntBinary::MaxS, IntBinary::MaxU))
        .since(8, 0, 90),
    form("min.relu.T{s32,s16x2} d=T, a:T, b:T", |x| relu(x, IntBinary::MinS)).since(8, 0, 90),
    form("max.relu.T{s32,s16x2} d=T, a:T, b:T", |x| relu(x, IntBinary::MaxS)).since(8, 0, 90),
    form("sad.T{$int} d=T, a:T, b:T, c:T", |x| {
        let (a, b, c) = (x.src("a"), x.src("b"), x.src("c"));
        let difference = absolute_difference(x, x.ty("T").is_signed(), a, b);
        let d = x.int(IntBinary::Add, c, difference);
        x.set("d", d);
    }),
    form("dp4a.A{u32,s32}.B{u32,s32} d=b32, a:b32, b:b32, c:b32", |x| {
        let (a, b, c) = (x.src("a"), x.src("b"), x.src("c"));
        let [signed_a, signed_b] = ["A", "B"].map(|name| x.ty(name).is_signed());
        let d = x.op(Op::DotBytes { signed_a, signed_b }, &[a, b, c]);
        x.set("d", d);
    })
    .since(5, 0, 61),
    form("dp2a.half{lo,hi}.A{u32,s32}.B{u32,s32} d=b32, a:b32, b:b32, c:b32", |x| {
        let (a, b, c) = (x.src("a"), x.src("b"), x.src("c"));
        let first = if x.has("hi") { 16 } else { 0 };
        let mut sum = c;
        for half in 0..2 {
            let left = field(x, a, 16 * half, 16, "A");
            let right = field(x, b, first + 8 * half, 8, "B");
            let product = x.int(IntBinary::Mul, left, right);
            sum = x.int(IntBinary::Add, sum, product);
        }
        x.set("d", sum);
    })
    .since(5, 0, 61),
];

/// `d = op(a, b)`, for each half of packed types.
fn elementwise(x: &mut Expander<'_, '_>, op: IntBinary) {
    let d = x.elementwise(x.ty("T"), &["a", "b"], |x, _, v| x.int(op, v[0], v[1]));
    x.set("d", d);
}

fn by_sign(x: &mut Expander<'_, '_>, signed: IntBinary, unsigned: IntBinary) {
    elementwise(x, if x.ty("T").is_signed() { signed } else { unsigned });
}

fn relu(x: &mut Expander<'_, '_>, op: IntBinary) {
    let d = x.elementwise(x.ty("T"), &["a", "b"], |x, _, v| {
        let value = x.int(op, v[0], v[1]);
        x.int_imm(IntBinary::MaxS, value, 0)
    });
    x.set("d", d);
}

fn unary(x: &mut Expander<'_, '_>, op: IntUnary) {
    let a = x.src("a");
    let d = x.un(op, a);
    x.set("d", d);
}

/// The half of `a * b` that the instruction asks for.
fn mul(x: &mut Expander<'_, '_>) -> Value {
    let (a, b) = (x.src("a"), x.src("b"));
    let op = match (x.has("lo"), x.ty("T").is_signed()) {
        (true, _) => IntBinary::Mul,
        (false, true) => IntBinary::MulHiS,
        (false, false) => IntBinary::MulHiU,
    };
    x.int(op, a, b)
}

/// `a * b` in twice the width.
fn wide_product(x: &mut Expander<'_, '_>) -> Value {
    let (a, b) = (x.src("a"), x.src("b"));
    let signed = x.ty("T").is_signed();
    let wide = x.ty("T").doubled().unwrap_or(Ty::U64).ir();
    let (a, b) = (x.extend(signed, a, wide), x.extend(signed, b, wide));
    x.int(IntBinary::Mul, a, b)
}

/// The low or high 32 bits of the 48-bit product of 24-bit numbers.
fn mul24(x: &mut Expander<'_, '_>) -> Value {
    let signed = x.ty("T").is_signed();
    let (a, b) = (x.src("a"), x.src("b"));
    let [a, b] = [a, b].map(|value| {
        let top = x.shift_imm(Shift::Left, value, 8);
        x.shift_imm(if signed { Shift::RightS } else { Shift::RightU }, top, 8)
    });
    if x.has("lo") {
        return x.int(IntBinary::Mul, a, b);
    }
    let (a, b) = (x.extend(signed, a, Type::I64), x.extend(signed, b, Type::I64));
    let product = x.int(IntBinary::Mul, a, b);
    let high = x.shift_imm(Shift::RightU, product, 16);
    x.fit(high, Type::I32)
}

/// `|a - b|`: the larger less the smaller.
pub(super) fn absolute_difference(x: &mut Expander<'_, '_>, signed: bool, a: Value, b: Value) -> Value {
    let less = x.cmp(if signed { IntCmp::LtS } else { IntCmp::LtU }, a, b);
    let (up, down) = (x.int(IntBinary::Sub, b, a), x.int(IntBinary::Sub, a, b));
    x.select(less, up, down)
}

/// `bits` bits of a 32-bit value from bit `at`, extended as the type in `slot` says.
fn field(x: &mut Expander<'_, '_>, value: Value, at: u32, bits: u32, slot: &str) -> Value {
    let top = x.shift_imm(Shift::Left, value, 32 - bits - at);
    let op = if x.ty(slot).is_signed() { Shift::RightS } else { Shift::RightU };
    x.shift_imm(op, top, 32 - bits)
}
