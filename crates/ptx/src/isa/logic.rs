//! Logic and shifts.

use simt_ir::{IntBinary, IntCmp, IntUnary, Shift, Type, Value};

use super::{Form, form};
use crate::lower::expander::Expander;

pub(super) const FORMS: &[Form] = &[
    form("and.T{pred,$bits} d=T, a:T, b:T", |x| binary(x, IntBinary::And)),
    form("or.T{pred,$bits} d=T, a:T, b:T", |x| binary(x, IntBinary::Or)),
    form("xor.T{pred,$bits} d=T, a:T, b:T", |x| binary(x, IntBinary::Xor)),
    form("not.T{pred,$bits} d=T, a:T", |x| {
        let a = x.src("a");
        let d = x.un(IntUnary::Not, a);
        x.set("d", d);
    }),
    form("cnot.T{$bits} d=T, a:T", |x| {
        let a = x.src("a");
        let zero = x.cmp_imm(IntCmp::Eq, a, 0);
        let ty = x.type_of(a);
        let d = x.zext(zero, ty);
        x.set("d", d);
    }),
    form("lop3.b32 d=b32, a:b32, b:b32, c:b32, table:imm", |x| {
        let d = lop3(x);
        x.set("d", d);
    })
    .since(4, 3, 50),
    form("lop3.BoolOp{or,and}.b32 d_=b32|p=pred, a:b32, b:b32, c:b32, table:imm, q:pred!", |x| {
        let d = lop3(x);
        let some = x.cmp_imm(IntCmp::Ne, d, 0);
        let q = x.src("q");
        let p = x.int(if x.has("or") { IntBinary::Or } else { IntBinary::And }, some, q);
        x.set("d", d);
        x.set("p", p);
    })
    .since(8, 2, 70),
    form("shl.T{$bits} d=T, a:T, b:u32", |x| shift(x, Shift::Left)),
    form("shr.T{$bits,$int} d=T, a:T, b:u32", |x| {
        let signed = x.ty("T").is_signed();
        shift(x, if signed { Shift::RightS } else { Shift::RightU });
    }),
];

fn binary(x: &mut Expander<'_, '_>, op: IntBinary) {
    let (a, b) = (x.src("a"), x.src("b"));
    let d = x.int(op, a, b);
    x.set("d", d);
}

fn shift(x: &mut Expander<'_, '_>, op: Shift) {
    let (a, b) = (x.src("a"), x.src("b"));
    let d = x.shift(op, a, b);
    x.set("d", d);
}

/// The function of three bits whose truth table is the constant: bit `4a + 2b + c`. Built as `c`'s multiplexer over functions of `a`
/// and `b`, each of which is at most two operations.
fn lop3(x: &mut Expander<'_, '_>) -> Value {
    let table = x.number("table") as u8;
    let (a, b, c) = (x.src("a"), x.src("b"), x.src("c"));
    // For each of the two values of c the four-entry table over (a, b).
    let half = |bit: u8| (0..4).fold(0u8, |out, ab| out | (table >> (2 * ab + bit) & 1) << ab);
    let (zero, one) = (half(0), half(1));
    if zero == one {
        return two_input(x, zero, a, b);
    }
    if one == zero ^ 0xf {
        let base = two_input(x, zero, a, b);
        return x.int(IntBinary::Xor, base, c);
    }
    match (zero, one) {
        (0, _) => {
            let value = two_input(x, one, a, b);
            x.int(IntBinary::And, value, c)
        }
        (_, 0) => {
            let value = two_input(x, zero, a, b);
            let not_c = x.un(IntUnary::Not, c);
            x.int(IntBinary::And, value, not_c)
        }
        (_, 0xf) => {
            let value = two_input(x, zero, a, b);
            x.int(IntBinary::Or, value, c)
        }
        (0xf, _) => {
            let value = two_input(x, one, a, b);
            let not_c = x.un(IntUnary::Not, c);
            x.int(IntBinary::Or, value, not_c)
        }
        _ => {
            // zero ^ ((zero ^ one) & c)
            let base = two_input(x, zero, a, b);
            let difference = two_input(x, zero ^ one, a, b);
            let masked = x.int(IntBinary::And, difference, c);
            x.int(IntBinary::Xor, base, masked)
        }
    }
}

/// The function of two bits with the truth table `table`: bit `2a + b`.
fn two_input(x: &mut Expander<'_, '_>, table: u8, a: Value, b: Value) -> Value {
    match table {
        0x0 => x.imm(Type::I32, 0),
        0xf => x.imm(Type::I32, u64::MAX),
        0xc => a,
        0xa => b,
        0x3 => x.un(IntUnary::Not, a),
        0x5 => x.un(IntUnary::Not, b),
        0x8 => x.int(IntBinary::And, a, b),
        0xe => x.int(IntBinary::Or, a, b),
        0x6 => x.int(IntBinary::Xor, a, b),
        0x4 => {
            let not_b = x.un(IntUnary::Not, b);
            x.int(IntBinary::And, a, not_b)
        }
        0x2 => {
            let not_a = x.un(IntUnary::Not, a);
            x.int(IntBinary::And, not_a, b)
        }
        0xd => {
            let not_b = x.un(IntUnary::Not, b);
            x.int(IntBinary::Or, a, not_b)
        }
        0xb => {
            let not_a = x.un(IntUnary::Not, a);
            x.int(IntBinary::Or, not_a, b)
        }
        _ => {
            // The complements of and, or, xor: 7, 1, 9.
            let inverse = two_input(x, table ^ 0xf, a, b);
            x.un(IntUnary::Not, inverse)
        }
    }
}
