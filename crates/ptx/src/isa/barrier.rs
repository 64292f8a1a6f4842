//! Barriers of a block and of a warp.

use simt_ir::{BarrierKind, Op, Type, Value};

use super::{Form, form};
use crate::lower::expander::Expander;

pub(super) const FORMS: &[Form] = &[
    form("bar.cta?.sync a:u32, b?:u32", |x| barrier(x, BarrierKind::Sync)).effect(),
    form("bar.cta?.arrive a:u32, b:u32", |x| barrier(x, BarrierKind::Arrive)).effect().since(2, 0, 20),
    form("bar.cta?.red.popc.u32 d=u32, a:u32, b:u32, c:pred!", |x| reduce(x, BarrierKind::RedPopc, true))
        .effect()
        .since(2, 0, 20),
    form("bar.cta?.red.popc.u32 d=u32, a:u32, c:pred!", |x| reduce(x, BarrierKind::RedPopc, false))
        .effect()
        .since(2, 0, 20),
    form("bar.cta?.red.op{and,or}.pred p=pred, a:u32, b:u32, c:pred!", |x| reduce_logic(x, true))
        .effect()
        .since(2, 0, 20),
    form("bar.cta?.red.op{and,or}.pred p=pred, a:u32, c:pred!", |x| reduce_logic(x, false))
        .effect()
        .since(2, 0, 20),
    form("barrier.cta?.sync.aligned? a:u32, b?:u32", |x| barrier(x, BarrierKind::Sync))
        .effect()
        .since(6, 0, 30),
    form("barrier.cta?.arrive.aligned? a:u32, b:u32", |x| barrier(x, BarrierKind::Arrive))
        .effect()
        .since(6, 0, 30),
    form("barrier.cta?.red.popc.aligned?.u32 d=u32, a:u32, b:u32, c:pred!", |x| {
        reduce(x, BarrierKind::RedPopc, true)
    })
    .effect()
    .since(6, 0, 30),
    form("barrier.cta?.red.popc.aligned?.u32 d=u32, a:u32, c:pred!", |x| {
        reduce(x, BarrierKind::RedPopc, false)
    })
    .effect()
    .since(6, 0, 30),
    form("barrier.cta?.red.op{and,or}.aligned?.pred p=pred, a:u32, b:u32, c:pred!", |x| {
        reduce_logic(x, true)
    })
    .effect()
    .since(6, 0, 30),
    form("barrier.cta?.red.op{and,or}.aligned?.pred p=pred, a:u32, c:pred!", |x| reduce_logic(x, false))
        .effect()
        .since(6, 0, 30),
    form("bar.warp.sync mask:b32", |x| {
        let mask = x.src("mask");
        x.body.b.effect(Op::WarpSync, &[mask]);
    })
    .effect()
    .since(6, 0, 30),
];

fn barrier(x: &mut Expander<'_, '_>, kind: BarrierKind) {
    let mut args = vec![x.src("a")];
    args.extend(x.src_if("b"));
    let count = args.len() == 2;
    x.body.b.effect(Op::Barrier { kind, count }, &args);
}

fn reduce(x: &mut Expander<'_, '_>, kind: BarrierKind, count: bool) {
    let result = if kind == BarrierKind::RedPopc { Type::I32 } else { Type::Pred };
    let mut args: Vec<Value> = vec![x.src("a")];
    if count {
        args.push(x.src("b"));
    }
    args.push(x.src("c"));
    let value = x.op_ty(Op::Barrier { kind, count }, &args, result);
    x.set(if kind == BarrierKind::RedPopc { "d" } else { "p" }, value);
}

fn reduce_logic(x: &mut Expander<'_, '_>, count: bool) {
    let kind = if x.word("op") == "and" { BarrierKind::RedAnd } else { BarrierKind::RedOr };
    reduce(x, kind, count);
}
