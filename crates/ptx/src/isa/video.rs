//! The video instructions: arithmetic on parts of words. All is computed in 64 bits, where nothing overflows, and brought
//! back to the width of the destination.
//!
//! Where the scalar forms saturate, or take a minimum or maximum with a third operand, hardware has its own ways, which are
//! followed here (`tests/golden` has what it answers):
//!
//! * into a word: signed results are clamped; unsigned ones are raised to 0, and what is too large wraps;
//! * `vshl` looks at 34 bits of its result, and clamps those;
//! * into a byte or the low half: anything but 0 to the largest becomes the largest; into the high half: always 0; shifts clamp as
//!   into a word;
//! * the high half of a destination takes the high half of the result, not the low one;
//! * a minimum or maximum compares 64 bits, signed if the destination is, of `vset` if the first source is; of sums, differences
//!   and shifts that saturate those that sign extension makes of the low 32;
//! * `vmad` reads whole words as signed. With a signed factor it shifts and clamps as a signed number, whatever the result's type.

use simt_ir::{IntBinary, IntCmp, Shift, Type, Value};

use super::integer::absolute_difference;
use super::{Form, form};
use crate::ast::{Component, Lanes};
use crate::lower::expander::Expander;
use crate::resolve::{Operand, OperandKind};

macro_rules! scalar {
    ($name:literal, $op:expr) => {
        [
            form(concat!($name, ".D{u32,s32}.A{u32,s32}.B{u32,s32}.sat? d=u32, a:part, b:part"), |x| {
                scalar(x, $op)
            }),
            form(
                concat!($name, ".D{u32,s32}.A{u32,s32}.B{u32,s32}.sat? d=part, a:part, b:part, c:u32"),
                |x| scalar(x, $op),
            ),
            form(
                concat!(
                    $name,
                    ".D{u32,s32}.A{u32,s32}.B{u32,s32}.sat?.second{add,min,max} d=u32, a:part, b:part, c:u32"
                ),
                |x| scalar(x, $op),
            ),
        ]
    };
}

macro_rules! shift {
    ($name:literal, $op:expr) => {
        [
            form(
                concat!($name, ".D{u32,s32}.A{u32,s32}.B{u32}.sat?.mode{clamp,wrap} d=u32, a:part, b:part"),
                |x| scalar(x, $op),
            ),
            form(
                concat!(
                    $name,
                    ".D{u32,s32}.A{u32,s32}.B{u32}.sat?.mode{clamp,wrap} d=part, a:part, b:part, c:u32"
                ),
                |x| scalar(x, $op),
            ),
            form(
                concat!(
                    $name,
                    ".D{u32,s32}.A{u32,s32}.B{u32}.sat?.mode{clamp,wrap}.second{add,min,max} d=u32, a:part, b:part, c:u32"
                ),
                |x| scalar(x, $op),
            ),
        ]
    };
}

macro_rules! lanes {
    ($two:literal, $four:literal, $op:expr) => {
        [
            form(
                concat!($two, ".D{u32,s32}.A{u32,s32}.B{u32,s32}.sat? d=lanes2, a:lanes2, b:lanes2, c:u32"),
                |x| lanes(x, 2, $op),
            ),
            form(
                concat!($two, ".D{u32,s32}.A{u32,s32}.B{u32,s32}.add d=lanes2, a:lanes2, b:lanes2, c:u32"),
                |x| lanes(x, 2, $op),
            ),
            form(
                concat!($four, ".D{u32,s32}.A{u32,s32}.B{u32,s32}.sat? d=lanes4, a:lanes4, b:lanes4, c:u32"),
                |x| lanes(x, 4, $op),
            ),
            form(
                concat!($four, ".D{u32,s32}.A{u32,s32}.B{u32,s32}.add d=lanes4, a:lanes4, b:lanes4, c:u32"),
                |x| lanes(x, 4, $op),
            ),
        ]
    };
}

pub(super) const FORMS: &[Form] = {
    const GROUPS: [&[Form]; 15] = [
        &scalar!("vadd", sum),
        &scalar!("vsub", difference),
        &scalar!("vabsdiff", distance),
        &scalar!("vmin", minimum),
        &scalar!("vmax", maximum),
        &shift!("vshl", left),
        &shift!("vshr", right),
        &lanes!("vadd2", "vadd4", sum),
        &lanes!("vsub2", "vsub4", difference),
        &lanes!("vavrg2", "vavrg4", average),
        &lanes!("vabsdiff2", "vabsdiff4", distance),
        &lanes!("vmin2", "vmin4", minimum),
        &lanes!("vmax2", "vmax4", maximum),
        &[
            form("vset.A{u32,s32}.B{u32,s32}.cmp{$cmps} d=u32, a:part, b:part", |x| scalar(x, compare)),
            form("vset.A{u32,s32}.B{u32,s32}.cmp{$cmps} d=part, a:part, b:part, c:u32", |x| {
                scalar(x, compare)
            }),
            form(
                "vset.A{u32,s32}.B{u32,s32}.cmp{$cmps}.second{add,min,max} d=u32, a:part, b:part, c:u32",
                |x| scalar(x, compare),
            ),
            form("vset2.A{u32,s32}.B{u32,s32}.cmp{$cmps}.add? d=lanes2, a:lanes2, b:lanes2, c:u32", |x| {
                lanes(x, 2, compare)
            }),
            form("vset4.A{u32,s32}.B{u32,s32}.cmp{$cmps}.add? d=lanes4, a:lanes4, b:lanes4, c:u32", |x| {
                lanes(x, 4, compare)
            }),
        ],
        &[
            form(
                "vmad.D{u32,s32}.A{u32,s32}.B{u32,s32}.sat?.scale{shr7,shr15}? d=u32, a:-part, b:-part, c:-part",
                vmad,
            ),
            form(
                "vmad.D{u32,s32}.A{u32,s32}.B{u32,s32}.po.sat?.scale{shr7,shr15}? d=u32, a:part, b:part, c:u32",
                vmad,
            ),
        ],
    ];
    const COUNT: usize = {
        let (mut count, mut group) = (0, 0);
        while group < GROUPS.len() {
            count += GROUPS[group].len();
            group += 1;
        }
        count
    };
    const ALL: [Form; COUNT] = {
        let mut all = [GROUPS[0][0]; COUNT];
        let (mut next, mut group) = (0, 0);
        while group < GROUPS.len() {
            let mut index = 0;
            while index < GROUPS[group].len() {
                all[next] = GROUPS[group][index].since(2, 0, 20);
                next += 1;
                index += 1;
            }
            group += 1;
        }
        all
    };
    &ALL
};

type Operation = fn(&mut Expander<'_, '_>, Value, Value) -> Value;

fn sum(x: &mut Expander<'_, '_>, a: Value, b: Value) -> Value {
    x.int(IntBinary::Add, a, b)
}

fn difference(x: &mut Expander<'_, '_>, a: Value, b: Value) -> Value {
    x.int(IntBinary::Sub, a, b)
}

fn distance(x: &mut Expander<'_, '_>, a: Value, b: Value) -> Value {
    absolute_difference(x, true, a, b)
}

fn minimum(x: &mut Expander<'_, '_>, a: Value, b: Value) -> Value {
    x.int(IntBinary::MinS, a, b)
}

fn maximum(x: &mut Expander<'_, '_>, a: Value, b: Value) -> Value {
    x.int(IntBinary::MaxS, a, b)
}

/// Half the sum, halves away from zero.
fn average(x: &mut Expander<'_, '_>, a: Value, b: Value) -> Value {
    let total = x.int(IntBinary::Add, a, b);
    let positive = x.cmp_imm(IntCmp::GeS, total, 0);
    let one = x.zext(positive, Type::I64);
    let total = x.int(IntBinary::Add, total, one);
    x.shift_imm(Shift::RightS, total, 1)
}

fn compare(x: &mut Expander<'_, '_>, a: Value, b: Value) -> Value {
    let op = match x.word("cmp") {
        "eq" => IntCmp::Eq,
        "ne" => IntCmp::Ne,
        "lt" => IntCmp::LtS,
        "le" => IntCmp::LeS,
        "gt" => IntCmp::GtS,
        _ => IntCmp::GeS,
    };
    let holds = x.cmp(op, a, b);
    x.zext(holds, Type::I64)
}

/// Shift amounts above 32 count as 32, or wrap around at 32.
fn amount(x: &mut Expander<'_, '_>, b: Value) -> Value {
    let b = x.fit(b, Type::I32);
    if x.has("wrap") { x.int_imm(IntBinary::And, b, 31) } else { x.int_imm(IntBinary::MinU, b, 32) }
}

fn left(x: &mut Expander<'_, '_>, a: Value, b: Value) -> Value {
    let by = amount(x, b);
    x.shift(Shift::Left, a, by)
}

fn right(x: &mut Expander<'_, '_>, a: Value, b: Value) -> Value {
    let by = amount(x, b);
    x.shift(Shift::RightS, a, by)
}

/// Whether the destination is signed; comparisons have no type for it and are unsigned.
fn is_signed(x: &Expander<'_, '_>) -> bool {
    x.word("D") == "s32"
}

/// Moves a value into the range of `bits` bits of the destination's signedness.
fn saturate(x: &mut Expander<'_, '_>, value: Value, bits: u32) -> Value {
    let (low, high) =
        if is_signed(x) { (-1i64 << (bits - 1), (1i64 << (bits - 1)) - 1) } else { (0, (1i64 << bits) - 1) };
    clamp(x, value, low, high)
}

fn clamp(x: &mut Expander<'_, '_>, value: Value, low: i64, high: i64) -> Value {
    let value = x.int_imm(IntBinary::MaxS, value, low as u64);
    x.int_imm(IntBinary::MinS, value, high as u64)
}

/// The register of an operand, and the bits that its selection names: from where, how many.
fn selected(operand: &Operand<'_, '_>) -> (u32, u32) {
    match &operand.kind {
        OperandKind::Component(_, Component::Bytes(lanes)) => (8 * u32::from(lanes.digits()[0]), 8),
        OperandKind::Component(_, Component::Halves(lanes)) => (16 * u32::from(lanes.digits()[0]), 16),
        _ => (0, 32),
    }
}

/// The whole word of an operand, whatever it selects.
fn word<'r>(x: &mut Expander<'_, 'r>, operand: &'r Operand<'r, 'r>) -> Value {
    match &operand.kind {
        OperandKind::Component(id, _) => {
            let value = x.body.read(*id, 0);
            x.fit(value, Type::I32)
        }
        OperandKind::Negate(inner) => word(x, inner),
        _ => x.value_as(operand, Type::I32),
    }
}

/// Bits of a word as 64 bits.
fn field(x: &mut Expander<'_, '_>, word: Value, at: u32, bits: u32, signed: bool) -> Value {
    let top = if bits + at < 32 { x.shift_imm(Shift::Left, word, 32 - bits - at) } else { word };
    let part = match (bits, signed) {
        (32, _) => top,
        (_, true) => x.shift_imm(Shift::RightS, top, 32 - bits),
        (_, false) => x.shift_imm(Shift::RightU, top, 32 - bits),
    };
    x.extend(signed, part, Type::I64)
}

/// The selected part of a source as 64 bits.
fn source(x: &mut Expander<'_, '_>, name: &str, signed: bool) -> Value {
    let Some(operand) = x.operand(name) else { return x.imm(Type::I64, 0) };
    let inner = match &operand.kind {
        OperandKind::Negate(inner) => inner,
        _ => operand,
    };
    let (at, bits) = selected(inner);
    let word = word(x, inner);
    field(x, word, at, bits, signed)
}

/// Writes the register that the destination names.
fn set_word(x: &mut Expander<'_, '_>, value: Value) {
    if let Some(OperandKind::Register(id) | OperandKind::Component(id, _)) = x.operand("d").map(|d| &d.kind) {
        x.set_register(*id, value);
    }
}

/// `low` put over the `bits` bits of `word` from bit `at`.
fn insert(x: &mut Expander<'_, '_>, word: Value, low: Value, at: u32, bits: u32) -> Value {
    let mask = u64::from(u32::MAX >> (32 - bits)) << at;
    let kept = x.int_imm(IntBinary::And, word, !mask & u64::from(u32::MAX));
    let low = x.shift_imm(Shift::Left, low, at);
    let low = x.int_imm(IntBinary::And, low, mask);
    x.int(IntBinary::Or, kept, low)
}

fn scalar(x: &mut Expander<'_, '_>, op: Operation) {
    let signed_a = x.ty("A").is_signed();
    let signed_b = x.ty("B").is_signed();
    let (a, b) = (source(x, "a", signed_a), source(x, "b", signed_b));
    let mut value = op(x, a, b);
    let Some(d) = x.operand("d") else { return };
    let (at, bits) = selected(d);
    if bits < 32 {
        if x.has("sat") {
            value = if is_shift(x) {
                saturate_word(x, value)
            } else if (at, bits) == (16, 16) {
                x.imm(Type::I64, 0)
            } else {
                let largest = u64::from(u32::MAX >> (32 - bits)) >> u32::from(is_signed(x));
                x.int_imm(IntBinary::MinU, value, largest)
            };
        }
        if (at, bits) == (16, 16) {
            value = x.shift_imm(Shift::RightU, value, 16);
        }
        let (c, value) = (x.src("c"), x.fit(value, Type::I32));
        let merged = insert(x, c, value, at, bits);
        return set_word(x, merged);
    }
    if x.has("sat") {
        value = saturate_word(x, value);
    }
    if !x.word("second").is_empty() {
        value = second(x, value);
    }
    let value = x.fit(value, Type::I32);
    set_word(x, value);
}

/// Brings a value into the range of a word, as far as the hardware does.
fn saturate_word(x: &mut Expander<'_, '_>, value: Value) -> Value {
    if x.inst.syntax.opcode.text == "vshl" {
        let top = x.shift_imm(Shift::Left, value, 64 - 34);
        let value = x.shift_imm(Shift::RightS, top, 64 - 34);
        return saturate(x, value, 32);
    }
    if is_signed(x) {
        return saturate(x, value, 32);
    }
    x.int_imm(IntBinary::MaxS, value, 0)
}

fn is_shift(x: &Expander<'_, '_>) -> bool {
    matches!(x.inst.syntax.opcode.text, "vshl" | "vshr")
}

/// The second operation, with the third operand.
fn second(x: &mut Expander<'_, '_>, value: Value) -> Value {
    let opcode = x.inst.syntax.opcode.text;
    let signed = if opcode == "vset" { x.ty("A").is_signed() } else { is_signed(x) };
    let c = x.src("c");
    let c = x.extend(signed, c, Type::I64);
    let op = match (x.word("second"), signed) {
        ("add", _) => return x.int(IntBinary::Add, value, c),
        ("min", true) => IntBinary::MinS,
        ("min", false) => IntBinary::MinU,
        (_, true) => IntBinary::MaxS,
        (_, false) => IntBinary::MaxU,
    };
    let wraps = matches!(opcode, "vadd" | "vsub") || x.has("sat") && is_shift(x);
    let value = if wraps {
        let low = x.fit(value, Type::I32);
        x.extend(true, low, Type::I64)
    } else {
        value
    };
    x.int(op, value, c)
}

/// The digits of a selection, lowest lane first.
fn digits(operand: &Operand<'_, '_>) -> Option<Vec<u32>> {
    let lanes: &Lanes = match &operand.kind {
        OperandKind::Component(_, Component::Bytes(lanes) | Component::Halves(lanes)) => lanes,
        _ => return None,
    };
    Some(lanes.digits().iter().rev().map(|digit| u32::from(*digit)).collect())
}

/// The same operation on each of `count` parts of a word; parts come from both sources. Lanes outside the mask are those of `c`; with
/// `.add` the results of the mask's lanes are added to `c` as a whole.
fn lanes(x: &mut Expander<'_, '_>, count: u32, op: Operation) {
    let bits = 32 / count;
    let (Some(d), Some(a), Some(b)) = (x.operand("d"), x.operand("a"), x.operand("b")) else { return };
    let from_a = digits(a).unwrap_or_else(|| (0..count).collect());
    let from_b = digits(b).unwrap_or_else(|| (count..2 * count).collect());
    let mask = digits(d).unwrap_or_else(|| (0..count).collect());
    let words = [word(x, a), word(x, b)];
    let c = x.src("c");
    let (signed_a, signed_b) = (x.ty("A").is_signed(), x.ty("B").is_signed());
    let mut result = c;
    for lane in mask {
        let part = |x: &mut Expander<'_, '_>, digit: u32, signed: bool| {
            field(x, words[(digit / count) as usize], digit % count * bits, bits, signed)
        };
        let left = part(x, from_a[lane as usize], signed_a);
        let right = part(x, from_b[lane as usize], signed_b);
        let mut value = op(x, left, right);
        if x.has("sat") {
            value = saturate(x, value, bits);
        }
        let value = x.fit(value, Type::I32);
        result = if x.has("add") {
            x.int(IntBinary::Add, result, value)
        } else {
            insert(x, result, value, lane * bits, bits)
        };
    }
    set_word(x, result);
}

/// `a * b + c`, or one more, scaled and saturated.
fn vmad(x: &mut Expander<'_, '_>) {
    let negated = |x: &Expander<'_, '_>, name: &str| {
        matches!(x.operand(name), Some(Operand { kind: OperandKind::Negate(_), .. }))
    };
    let is_word = |x: &Expander<'_, '_>, name: &str| match x.operand(name).map(|operand| &operand.kind) {
        Some(OperandKind::Negate(inner)) => selected(inner).1 == 32,
        _ => x.operand(name).is_some_and(|operand| selected(operand).1 == 32),
    };
    let types = [x.ty("A").is_signed(), x.ty("B").is_signed()];
    let [a, b] = [("a", types[0]), ("b", types[1])].map(|(name, signed)| {
        let signed = signed || is_word(x, name);
        source(x, name, signed)
    });
    let c = source(x, "c", true);
    let zero = x.imm(Type::I64, 0);
    let mut product = x.int(IntBinary::Mul, a, b);
    if negated(x, "a") != negated(x, "b") {
        product = x.int(IntBinary::Sub, zero, product);
    }
    let c = if negated(x, "c") { x.int(IntBinary::Sub, zero, c) } else { c };
    let mut value = x.int(IntBinary::Add, product, c);
    if x.has("po") {
        value = x.int_imm(IntBinary::Add, value, 1);
    }
    let signed = types.contains(&true);
    let scale = match x.word("scale") {
        "shr7" => 7,
        "shr15" => 15,
        _ => 0,
    };
    if scale > 0 {
        value = x.shift_imm(if signed { Shift::RightS } else { Shift::RightU }, value, scale);
    }
    if x.has("sat") {
        let (low, high) = if signed { (i32::MIN.into(), i32::MAX.into()) } else { (0, u32::MAX.into()) };
        value = clamp(x, value, low, high);
    }
    let value = x.fit(value, Type::I32);
    set_word(x, value);
}
