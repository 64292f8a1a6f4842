//! Extended-precision arithmetic through the carry flag. After a subtraction the flag means "no borrow", so that
//! subtracting is adding the complement, with one flag for both.

use simt_ir::{IntBinary, IntCmp, IntUnary, Type, Value};

use super::{Form, form};
use crate::lower::expander::Expander;

pub(super) const FORMS: &[Form] = &[
    form("add.cc.T{$word} d=T, a:T, b:T", |x| add(x, false, false)).effect(),
    form("addc.cc?.T{$word} d=T, a:T, b:T", |x| add(x, true, false)).effect(),
    form("sub.cc.T{$word} d=T, a:T, b:T", |x| add(x, false, true)).effect(),
    form("subc.cc?.T{$word} d=T, a:T, b:T", |x| add(x, true, true)).effect(),
    form("mad.half{lo,hi}.cc.T{$word} d=T, a:T, b:T, c:T", |x| mad(x, false)).effect().since(3, 0, 20),
    form("madc.half{lo,hi}.cc?.T{$word} d=T, a:T, b:T, c:T", |x| mad(x, true)).effect().since(3, 0, 20),
];

fn add(x: &mut Expander<'_, '_>, carry_in: bool, subtract: bool) {
    let (a, mut b) = (x.src("a"), x.src("b"));
    if subtract {
        b = x.un(IntUnary::Not, b);
    }
    let flag = match (carry_in, subtract) {
        (true, _) => read_flag(x),
        (false, subtract) => x.imm(Type::Pred, u64::from(subtract)),
    };
    let d = sum(x, a, b, flag);
    x.set("d", d);
}

fn mad(x: &mut Expander<'_, '_>, carry_in: bool) {
    let (a, b, c) = (x.src("a"), x.src("b"), x.src("c"));
    let op = match (x.has("lo"), x.ty("T").is_signed()) {
        (true, _) => IntBinary::Mul,
        (false, true) => IntBinary::MulHiS,
        (false, false) => IntBinary::MulHiU,
    };
    let product = x.int(op, a, b);
    let flag = if carry_in { read_flag(x) } else { x.imm(Type::Pred, 0) };
    let d = sum(x, product, c, flag);
    x.set("d", d);
}

fn read_flag(x: &mut Expander<'_, '_>) -> Value {
    let var = x.body.carry();
    x.body.b.read(var)
}

/// `a + b + flag`; the flag is written if the instruction says so.
fn sum(x: &mut Expander<'_, '_>, a: Value, b: Value, flag: Value) -> Value {
    let partial = x.int(IntBinary::Add, a, b);
    let ty = x.type_of(a);
    let one = x.zext(flag, ty);
    let total = x.int(IntBinary::Add, partial, one);
    if x.has("cc") {
        let first = x.cmp(IntCmp::LtU, partial, a);
        let second = x.cmp(IntCmp::LtU, total, one);
        let out = x.int(IntBinary::Or, first, second);
        let var = x.body.carry();
        x.body.b.write(var, out);
    }
    total
}
