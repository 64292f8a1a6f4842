//! Bit fields, counts and permutations.

use simt_ir::{IntBinary, IntCmp, IntUnary, Op, Shift, Type, Value};

use super::rules::number;
use super::{Form, form};
use crate::lower::expander::Expander;
use crate::resolve::Operand;

pub(super) const FORMS: &[Form] = &[
    form("popc.T{b32,b64} d=u32, a:T", |x| count(x, IntUnary::PopCount)).since(2, 0, 20),
    form("clz.T{b32,b64} d=u32, a:T", |x| count(x, IntUnary::LeadingZeros)).since(2, 0, 20),
    form("brev.T{b32,b64} d=T, a:T", |x| {
        let a = x.src("a");
        let d = x.un(IntUnary::BitReverse, a);
        x.set("d", d);
    })
    .since(2, 0, 20),
    form("bfind.shiftamt?.T{$word} d=u32, a:T", bfind).since(2, 0, 20),
    form("bfe.T{$word} d=T, a:T, b:u32, c:u32", bfe)
        .since(2, 0, 20)
        .only_with(|operands| within_a_byte(operands, 2)),
    form("bfi.T{b32,b64} f=T, a:T, b:T, c:u32, d:u32", bfi)
        .since(2, 0, 20)
        .only_with(|operands| within_a_byte(operands, 3)),
    form("bmsk.mode{clamp,wrap}.b32 d=b32, a:u32, b:u32", |x| {
        let (a, b) = (x.src("a"), x.src("b"));
        let (a, b) = (amount(x, a), amount(x, b));
        // Ones from bit a on, b of them: what an unbounded shift leaves.
        let ones = x.imm(Type::I32, u64::MAX);
        let above = x.shift(Shift::Left, ones, b);
        let below = x.un(IntUnary::Not, above);
        let d = x.shift(Shift::Left, below, a);
        x.set("d", d);
    })
    .since(7, 6, 70),
    form("szext.mode{clamp,wrap}.T{u32,s32} d=T, a:T, b:u32", szext).since(7, 6, 70),
    form("fns.b32 d=b32, mask:b32, base:b32, offset:b32", fns).since(6, 0, 30),
    form("prmt.b32.mode{f4e,b4e,rc8,ecl,ecr,rc16}? d=b32, a:b32, b:b32, c:b32", prmt).since(2, 0, 20),
    form("shf.dir{l,r}.mode{clamp,wrap}.b32 d=b32, a:b32, b:b32, c:u32", |x| {
        let (a, b, c) = (x.src("a"), x.src("b"), x.src("c"));
        let op = Op::FunnelShift { left: x.has("l"), wrap: x.has("wrap") };
        let d = x.op(op, &[a, b, c]);
        x.set("d", d);
    })
    .since(3, 1, 32),
];

fn count(x: &mut Expander<'_, '_>, op: IntUnary) {
    let a = x.src("a");
    let d = x.un(op, a);
    x.set("d", d);
}

/// The highest bit that differs from the sign; -1 if there is none.
fn bfind(x: &mut Expander<'_, '_>) {
    let mut a = x.src("a");
    let width = x.bits(a);
    if x.ty("T").is_signed() {
        let sign = x.shift_imm(Shift::RightS, a, width - 1);
        a = x.int(IntBinary::Xor, a, sign);
    }
    let zeros = x.un(IntUnary::LeadingZeros, a);
    let none = x.cmp_imm(IntCmp::Eq, a, 0);
    let missing = x.imm(Type::I32, u64::MAX);
    let found = if x.has("shiftamt") {
        zeros
    } else {
        let last = x.imm(Type::I32, u64::from(width - 1));
        x.int(IntBinary::Sub, last, zeros)
    };
    let d = x.select(none, missing, found);
    x.set("d", d);
}

/// A position or length operand: only its low byte counts for 32-bit fields, all of it for 64-bit ones (as the hardware has it).
fn place(x: &mut Expander<'_, '_>, name: &str) -> Value {
    let value = x.src(name);
    if x.ty("T").bits() == 32 { x.int_imm(IntBinary::And, value, 0xff) } else { value }
}

/// Position and length of a field are eight bits of their operands: as numbers they are no larger.
fn within_a_byte(operands: &[Operand<'_, '_>], first: usize) -> Result<(), &'static str> {
    let large = |at| number(operands, at).is_some_and(|number| number > 255);
    if large(first) || large(first + 1) { Err("position and length are at most 255") } else { Ok(()) }
}

/// A field of `c` bits from bit `b`. Bits beyond the word are copies of its sign (zero if unsigned).
fn bfe(x: &mut Expander<'_, '_>) {
    let a = x.src("a");
    let (pos, len) = (place(x, "b"), place(x, "c"));
    let width = u64::from(x.bits(a));
    let signed = x.ty("T").is_signed();
    let right = if signed { Shift::RightS } else { Shift::RightU };
    let shifted = x.shift(right, a, pos);
    // Move the field to the top and back; a length beyond the word moves by nothing.
    let whole = x.imm(Type::I32, width);
    let kept = x.int(IntBinary::MinU, len, whole);
    let unused = x.int(IntBinary::Sub, whole, kept);
    let top = x.shift(Shift::Left, shifted, unused);
    let field = x.shift(right, top, unused);
    let empty = x.cmp_imm(IntCmp::Eq, len, 0);
    let zero = x.imm_like(a, 0);
    let d = x.select(empty, zero, field);
    x.set("d", d);
}

/// `b` with `d` bits from bit `c` on replaced by the low bits of `a`.
fn bfi(x: &mut Expander<'_, '_>) {
    let (a, b) = (x.src("a"), x.src("b"));
    let (pos, len) = (place(x, "c"), place(x, "d"));
    let ones = x.imm_like(a, u64::MAX);
    let above = x.shift(Shift::Left, ones, len);
    let low = x.un(IntUnary::Not, above);
    let mask = x.shift(Shift::Left, low, pos);
    let field = x.shift(Shift::Left, a, pos);
    let field = x.int(IntBinary::And, field, mask);
    let kept = x.un(IntUnary::Not, mask);
    let kept = x.int(IntBinary::And, b, kept);
    let f = x.int(IntBinary::Or, kept, field);
    x.set("f", f);
}

/// Positions modulo 32 with `.wrap`; larger ones stay larger with `.clamp`.
fn amount(x: &mut Expander<'_, '_>, value: Value) -> Value {
    if x.has("wrap") { x.int_imm(IntBinary::And, value, 31) } else { value }
}

/// The low `b` bits, extended by sign or zeros.
fn szext(x: &mut Expander<'_, '_>) {
    let (a, b) = (x.src("a"), x.src("b"));
    let bits = amount(x, b);
    let whole = x.imm(Type::I32, 32);
    let kept = x.int(IntBinary::MinU, bits, whole);
    let unused = x.int(IntBinary::Sub, whole, kept);
    let top = x.shift(Shift::Left, a, unused);
    let signed = x.ty("T").is_signed();
    let field = x.shift(if signed { Shift::RightS } else { Shift::RightU }, top, unused);
    let empty = x.cmp_imm(IntCmp::Eq, bits, 0);
    let zero = x.imm(Type::I32, 0);
    let d = x.select(empty, zero, field);
    x.set("d", d);
}

/// The `offset`-th set bit of `mask` counted from bit `base`: upwards if positive, downwards if negative; all ones if there is none,
/// as from a base beyond the mask. The least offset, which has no magnitude, gives 0, as on the hardware.
/// A binary search for the bit by counting ones.
fn fns(x: &mut Expander<'_, '_>) {
    let (mask, base, offset) = (x.src("mask"), x.src("base"), x.src("offset"));
    let zero = x.imm(Type::I32, 0);
    let down = x.cmp(IntCmp::LtS, offset, zero);
    // Downwards is upwards in the mask reversed.
    let reversed = x.un(IntUnary::BitReverse, mask);
    let last = x.imm(Type::I32, 31);
    let mirrored = x.int(IntBinary::Sub, last, base);
    let word = x.select(down, reversed, mask);
    let start = x.select(down, mirrored, base);
    let magnitude = x.un(IntUnary::Abs, offset);
    // Offset 0 asks for the base bit itself: the first one from there, if it is the base.
    let at_base = x.cmp(IntCmp::Eq, offset, zero);
    let one = x.imm(Type::I32, 1);
    let wanted = x.select(at_base, one, magnitude);
    let ones = x.imm(Type::I32, u64::MAX);
    let from_start = x.shift(Shift::Left, ones, start);
    let candidates = x.int(IntBinary::And, word, from_start);
    let (mut position, mut rest) = (zero, wanted);
    for step in [16u32, 8, 4, 2, 1] {
        let shifted = x.shift(Shift::RightU, candidates, position);
        let low = x.int_imm(IntBinary::And, shifted, (1u64 << step) - 1);
        let count = x.un(IntUnary::PopCount, low);
        let above = x.cmp(IntCmp::LtU, count, rest);
        let next = x.int_imm(IntBinary::Add, position, u64::from(step));
        position = x.select(above, next, position);
        let less = x.int(IntBinary::Sub, rest, count);
        rest = x.select(above, less, rest);
    }
    let total = x.un(IntUnary::PopCount, candidates);
    let enough = x.cmp(IntCmp::GeU, total, wanted);
    let same = x.cmp(IntCmp::Eq, position, start);
    let elsewhere = x.un(IntUnary::Not, at_base);
    let right_place = x.int(IntBinary::Or, same, elsewhere);
    let found = x.int(IntBinary::And, enough, right_place);
    let back = x.int(IntBinary::Sub, last, position);
    let position = x.select(down, back, position);
    let d = x.select(found, position, ones);
    let least = x.cmp_imm(IntCmp::Eq, offset, 1 << 31);
    let d = x.select(least, zero, d);
    x.set("d", d);
}

/// The fixed modes choose by the low two bits of `c` among four selectors.
fn prmt(x: &mut Expander<'_, '_>) {
    let (a, b, c) = (x.src("a"), x.src("b"), x.src("c"));
    let selectors: [u64; 4] = match x.word("mode") {
        "f4e" => [0x3210, 0x4321, 0x5432, 0x6543],
        "b4e" => [0x5670, 0x6701, 0x7012, 0x0123],
        "rc8" => [0x0000, 0x1111, 0x2222, 0x3333],
        "ecl" => [0x3210, 0x3211, 0x3222, 0x3333],
        "ecr" => [0x0000, 0x1110, 0x2210, 0x3210],
        "rc16" => [0x1010, 0x3232, 0x1010, 0x3232],
        _ => {
            let d = x.op(Op::Prmt, &[a, b, c]);
            x.set("d", d);
            return;
        }
    };
    let choice = x.int_imm(IntBinary::And, c, 3);
    let mut selector = x.imm(Type::I32, selectors[0]);
    for (value, number) in selectors.into_iter().zip(0u64..).skip(1) {
        let chosen = x.cmp_imm(IntCmp::Eq, choice, number);
        let value = x.imm(Type::I32, value);
        selector = x.select(chosen, value, selector);
    }
    let d = x.op(Op::Prmt, &[a, b, selector]);
    x.set("d", d);
}
