//! Comparison and selection.

use simt_ir::{FloatCmp, FloatRel, IntBinary, IntCmp, IntUnary, Type, Value};

use super::{Form, Kind, Ty, form};
use crate::lower::expander::Expander;

pub(super) const FORMS: &[Form] = &[
    form("setp.cmp{eq,ne}.T{$bits} p_=pred|q?_=pred, a:T, b:T", setp),
    form("setp.cmp{$cmpu}.T{u16,u32,u64} p_=pred|q?_=pred, a:T, b:T", setp),
    form("setp.cmp{$cmps}.T{s16,s32,s64} p_=pred|q?_=pred, a:T, b:T", setp),
    form("setp.cmp{$cmpf}.ftz?.T{f32} p_=pred|q?_=pred, a:T, b:T", setp),
    form("setp.cmp{$cmpf}.ftz?.T{f16} p=pred, a:T, b:T", setp).since(4, 2, 53),
    form("setp.cmp{$cmpf}.T{f64} p_=pred|q?_=pred, a:T, b:T", setp),
    form("setp.cmp{$cmpf}.T{bf16} p=pred, a:T, b:T", setp).since(7, 8, 90),
    form("setp.cmp{$cmpf}.ftz?.T{f16x2} p_=pred|q_=pred, a:T, b:T", setp_halves).since(4, 2, 53),
    form("setp.cmp{$cmpf}.T{bf16x2} p_=pred|q_=pred, a:T, b:T", setp_halves).since(7, 8, 90),
    form("setp.cmp{eq,ne}.bool{$bool}.T{$bits} p_=pred|q?_=pred, a:T, b:T, c:pred!", setp),
    form("setp.cmp{$cmpu}.bool{$bool}.T{u16,u32,u64} p_=pred|q?_=pred, a:T, b:T, c:pred!", setp),
    form("setp.cmp{$cmps}.bool{$bool}.T{s16,s32,s64} p_=pred|q?_=pred, a:T, b:T, c:pred!", setp),
    form("setp.cmp{$cmpf}.bool{$bool}.ftz?.T{f32} p_=pred|q?_=pred, a:T, b:T, c:pred!", setp),
    form("setp.cmp{$cmpf}.bool{$bool}.ftz?.T{f16} p=pred, a:T, b:T, c:pred!", setp).since(4, 2, 53),
    form("setp.cmp{$cmpf}.bool{$bool}.T{f64} p_=pred|q?_=pred, a:T, b:T, c:pred!", setp),
    form("setp.cmp{$cmpf}.bool{$bool}.T{bf16} p=pred, a:T, b:T, c:pred!", setp).since(7, 8, 90),
    form("setp.cmp{$cmpf}.bool{$bool}.ftz?.T{f16x2} p_=pred|q_=pred, a:T, b:T, c:pred!", setp_halves)
        .since(4, 2, 53),
    form("setp.cmp{$cmpf}.bool{$bool}.T{bf16x2} p_=pred|q_=pred, a:T, b:T, c:pred!", setp_halves)
        .since(7, 8, 90),
    form("set.cmp{eq,ne}.D{u32,s32,f32}.T{$bits} d=D, a:T, b:T", set),
    form("set.cmp{$cmpu}.D{u32,s32,f32}.T{u16,u32,u64} d=D, a:T, b:T", set),
    form("set.cmp{$cmps}.D{u32,s32,f32}.T{s16,s32,s64} d=D, a:T, b:T", set),
    form("set.cmp{$cmpf}.ftz?.D{u32,s32,f32}.T{f32} d=D, a:T, b:T", set),
    form("set.cmp{$cmpf}.D{u32,s32,f32}.T{f64} d=D, a:T, b:T", set),
    form("set.cmp{$cmpf}.ftz?.D{u16,s16,u32,s32,f16}.T{f16} d=D, a:T, b:T", set).since(4, 2, 53),
    form("set.cmp{$cmpf}.D{u16,s16,u32,s32,bf16}.T{bf16} d=D, a:T, b:T", set).since(7, 8, 90),
    form("set.cmp{eq,ne}.D{f16,bf16}.T{$bits} d=D, a:T, b:T", set).since(4, 2, 53).later(LATER),
    form("set.cmp{$cmpu}.D{f16,bf16}.T{u16,u32,u64} d=D, a:T, b:T", set).since(4, 2, 53).later(LATER),
    form("set.cmp{$cmps}.D{f16,bf16}.T{s16,s32,s64} d=D, a:T, b:T", set).since(4, 2, 53).later(LATER),
    form("set.cmp{$cmpf}.ftz?.D{f16}.T{f32} d=D, a:T, b:T", set).since(4, 2, 53),
    form("set.cmp{$cmpf}.D{f16}.T{f64} d=D, a:T, b:T", set).since(4, 2, 53),
    form("set.cmp{$cmpf}.D{bf16}.T{f16,f32,f64} d=D, a:T, b:T", set).since(7, 8, 90),
    form("set.cmp{$cmpf}.ftz?.D{f16x2,u32,s32}.T{f16x2} d=D, a:T, b:T", set_halves).since(4, 2, 53),
    form("set.cmp{$cmpf}.D{bf16x2,u32,s32}.T{bf16x2} d=D, a:T, b:T", set_halves).since(7, 8, 90),
    form("set.cmp{eq,ne}.bool{$bool}.D{u32,s32,f32}.T{$bits} d=D, a:T, b:T, c:pred!", set),
    form("set.cmp{$cmpu}.bool{$bool}.D{u32,s32,f32}.T{u16,u32,u64} d=D, a:T, b:T, c:pred!", set),
    form("set.cmp{$cmps}.bool{$bool}.D{u32,s32,f32}.T{s16,s32,s64} d=D, a:T, b:T, c:pred!", set),
    form("set.cmp{$cmpf}.bool{$bool}.ftz?.D{u32,s32,f32}.T{f32} d=D, a:T, b:T, c:pred!", set),
    form("set.cmp{$cmpf}.bool{$bool}.D{u32,s32,f32}.T{f64} d=D, a:T, b:T, c:pred!", set),
    form("set.cmp{$cmpf}.bool{$bool}.ftz?.D{u16,s16,u32,s32,f16}.T{f16} d=D, a:T, b:T, c:pred!", set)
        .since(4, 2, 53),
    form("set.cmp{$cmpf}.bool{$bool}.D{u16,s16,u32,s32,bf16}.T{bf16} d=D, a:T, b:T, c:pred!", set)
        .since(7, 8, 90),
    form("set.cmp{eq,ne}.bool{$bool}.D{f16,bf16}.T{$bits} d=D, a:T, b:T, c:pred!", set)
        .since(4, 2, 53)
        .later(LATER),
    form("set.cmp{$cmpu}.bool{$bool}.D{f16,bf16}.T{u16,u32,u64} d=D, a:T, b:T, c:pred!", set)
        .since(4, 2, 53)
        .later(LATER),
    form("set.cmp{$cmps}.bool{$bool}.D{f16,bf16}.T{s16,s32,s64} d=D, a:T, b:T, c:pred!", set)
        .since(4, 2, 53)
        .later(LATER),
    form("set.cmp{$cmpf}.bool{$bool}.ftz?.D{f16}.T{f32} d=D, a:T, b:T, c:pred!", set).since(4, 2, 53),
    form("set.cmp{$cmpf}.bool{$bool}.D{f16}.T{f64} d=D, a:T, b:T, c:pred!", set).since(4, 2, 53),
    form("set.cmp{$cmpf}.bool{$bool}.D{bf16}.T{f16,f32,f64} d=D, a:T, b:T, c:pred!", set).since(7, 8, 90),
    form("set.cmp{$cmpf}.bool{$bool}.ftz?.D{f16x2,u32,s32}.T{f16x2} d=D, a:T, b:T, c:pred!", set_halves)
        .since(4, 2, 53),
    form("set.cmp{$cmpf}.bool{$bool}.D{bf16x2,u32,s32}.T{bf16x2} d=D, a:T, b:T, c:pred!", set_halves)
        .since(7, 8, 90),
    form("selp.T{$scalar} d=T, a:T, b:T, c:pred", |x| {
        let ty = x.moving("d", x.ty("T"));
        let (a, b, c) = (x.src_as("a", ty), x.src_as("b", ty), x.src("c"));
        let d = x.select(c, a, b);
        x.set("d", d);
    }),
    form("slct.T{$scalar}.s32 d=T, a:T, b:T, c:s32", |x| {
        let c = x.src("c");
        let chosen = x.cmp_imm(IntCmp::GeS, c, 0);
        slct(x, chosen);
    }),
    form("slct.ftz?.T{$scalar}.f32 d=T, a:T, b:T, c:f32", |x| {
        let c = x.src("c");
        let zero = x.imm(Type::F32, 0);
        // NaN chooses b; -0 counts as zero, and with .ftz so do negative subnormals.
        let rel = FloatCmp { rel: FloatRel::Ge, nan: false, ftz: x.has("ftz") };
        let chosen = x.fcmp(rel, c, zero);
        slct(x, chosen);
    }),
];

/// Results that came later.
const LATER: &[(&str, u32, u32, u32)] = &[("bf16", 7, 8, 90)];

fn slct(x: &mut Expander<'_, '_>, chosen: Value) {
    let ty = x.moving("d", x.ty("T"));
    let (a, b) = (x.src_as("a", ty), x.src_as("b", ty));
    let d = x.select(chosen, a, b);
    x.set("d", d);
}

/// The comparison that the instruction names, of values of type `ty`.
fn compare(x: &mut Expander<'_, '_>, ty: Ty, a: Value, b: Value) -> Value {
    let word = x.word("cmp");
    if ty.kind() == Kind::Float {
        let (rel, nan) = match word {
            "eq" => (FloatRel::Eq, false),
            "ne" => (FloatRel::Ne, false),
            "lt" => (FloatRel::Lt, false),
            "le" => (FloatRel::Le, false),
            "gt" => (FloatRel::Gt, false),
            "ge" => (FloatRel::Ge, false),
            "equ" => (FloatRel::Eq, true),
            "neu" => (FloatRel::Ne, true),
            "ltu" => (FloatRel::Lt, true),
            "leu" => (FloatRel::Le, true),
            "gtu" => (FloatRel::Gt, true),
            "geu" => (FloatRel::Ge, true),
            "num" => (FloatRel::Ordered, false),
            _ => (FloatRel::Unordered, true),
        };
        return x.fcmp(FloatCmp { rel, nan, ftz: x.has("ftz") }, a, b);
    }
    let signed = ty.is_signed();
    let op = match word {
        "eq" => IntCmp::Eq,
        "ne" => IntCmp::Ne,
        "lt" | "lo" if !signed => IntCmp::LtU,
        "le" | "ls" if !signed => IntCmp::LeU,
        "gt" | "hi" if !signed => IntCmp::GtU,
        "ge" | "hs" if !signed => IntCmp::GeU,
        "lt" => IntCmp::LtS,
        "le" => IntCmp::LeS,
        "gt" => IntCmp::GtS,
        _ => IntCmp::GeS,
    };
    x.cmp(op, a, b)
}

/// Combines a comparison with the third source, if there is one.
fn combine(x: &mut Expander<'_, '_>, value: Value, c: Option<Value>) -> Value {
    let Some(c) = c else { return value };
    let op = match x.word("bool") {
        "and" => IntBinary::And,
        "or" => IntBinary::Or,
        _ => IntBinary::Xor,
    };
    x.int(op, value, c)
}

fn third(x: &mut Expander<'_, '_>) -> Option<Value> {
    if x.word("bool").is_empty() { None } else { x.src_if("c") }
}

fn setp(x: &mut Expander<'_, '_>) {
    let (a, b, c) = (x.src("a"), x.src("b"), third(x));
    let holds = compare(x, x.ty("T"), a, b);
    let p = combine(x, holds, c);
    let q = x.wants("q").then(|| {
        let fails = x.un(IntUnary::Not, holds);
        combine(x, fails, c)
    });
    // Where both name one register, the hardware leaves the first in it.
    if let Some(q) = q {
        x.set("q", q);
    }
    x.set("p", p);
}

/// The outcomes for the halves of packed operands.
fn halves(x: &mut Expander<'_, '_>) -> [Value; 2] {
    let half = x.ty("T").half().unwrap_or(Ty::F16);
    let (a, b, c) = (x.src("a"), x.src("b"), third(x));
    let (a, b) = (x.unpack(a, half.ir()), x.unpack(b, half.ir()));
    [0, 1].map(|i| {
        let holds = compare(x, half, a[i], b[i]);
        combine(x, holds, c)
    })
}

fn setp_halves(x: &mut Expander<'_, '_>) {
    let [p, q] = halves(x);
    x.set("q", q);
    x.set("p", p);
}

/// True as a value: all ones, or 1.0 for floats.
fn truth(x: &mut Expander<'_, '_>, ty: Ty, holds: Value) -> Value {
    let bits = match ty {
        Ty::F32 => 0x3f80_0000,
        Ty::F16 => 0x3c00,
        Ty::Bf16 => 0x3f80,
        _ => u64::MAX,
    };
    let (yes, no) = (x.imm(ty.ir(), bits), x.imm(ty.ir(), 0));
    x.select(holds, yes, no)
}

fn set(x: &mut Expander<'_, '_>) {
    let (a, b, c) = (x.src("a"), x.src("b"), third(x));
    let holds = compare(x, x.ty("T"), a, b);
    let holds = combine(x, holds, c);
    let d = truth(x, x.ty("D"), holds);
    x.set("d", d);
}

fn set_halves(x: &mut Expander<'_, '_>) {
    // As an integer each half is all ones or nothing.
    let half = x.ty("D").half().unwrap_or(Ty::U16);
    let pair = halves(x).map(|holds| truth(x, half, holds));
    let d = x.pack(pair);
    x.set("d", d);
}
