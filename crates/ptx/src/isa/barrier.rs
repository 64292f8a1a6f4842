//! Barriers of a block and of a warp.

use simt_ir::{BarrierKind, IntBinary, IntCmp, Op, Refusal, Type, Value};

use super::rules::number;
use super::{Form, form};
use crate::lower::expander::Expander;
use crate::resolve::Operand;

pub(super) const FORMS: &[Form] = &[
    form("bar.cta?.sync a:u32, b?:u32", |x| barrier(x, BarrierKind::Sync)).effect().only_with(ids),
    form("bar.cta?.arrive a:u32, b:u32", |x| barrier(x, BarrierKind::Arrive))
        .effect()
        .only_with(some_arrive)
        .since(2, 0, 20),
    form("bar.cta?.red.popc.u32 d=u32, a:u32, b:u32, c:pred!", |x| reduce(x, BarrierKind::RedPopc, true))
        .effect()
        .only_with(counted_result)
        .since(2, 0, 20),
    form("bar.cta?.red.popc.u32 d=u32, a:u32, c:pred!", |x| reduce(x, BarrierKind::RedPopc, false))
        .effect()
        .only_with(uncounted_result)
        .since(2, 0, 20),
    form("bar.cta?.red.op{and,or}.pred p=pred, a:u32, b:u32, c:pred!", |x| reduce_logic(x, true))
        .effect()
        .only_with(counted_result)
        .since(2, 0, 20),
    form("bar.cta?.red.op{and,or}.pred p=pred, a:u32, c:pred!", |x| reduce_logic(x, false))
        .effect()
        .only_with(uncounted_result)
        .since(2, 0, 20),
    form("barrier.cta?.sync.aligned? a:u32, b?:u32", |x| barrier(x, BarrierKind::Sync))
        .effect()
        .only_with(ids)
        .since(6, 0, 30),
    form("barrier.cta?.arrive.aligned? a:u32, b:u32", |x| barrier(x, BarrierKind::Arrive))
        .effect()
        .only_with(some_arrive)
        .since(6, 0, 30),
    form("barrier.cta?.red.popc.aligned?.u32 d=u32, a:u32, b:u32, c:pred!", |x| {
        reduce(x, BarrierKind::RedPopc, true)
    })
    .effect()
    .only_with(counted_result)
    .since(6, 0, 30),
    form("barrier.cta?.red.popc.aligned?.u32 d=u32, a:u32, c:pred!", |x| {
        reduce(x, BarrierKind::RedPopc, false)
    })
    .effect()
    .only_with(uncounted_result)
    .since(6, 0, 30),
    form("barrier.cta?.red.op{and,or}.aligned?.pred p=pred, a:u32, b:u32, c:pred!", |x| {
        reduce_logic(x, true)
    })
    .effect()
    .only_with(counted_result)
    .since(6, 0, 30),
    form("barrier.cta?.red.op{and,or}.aligned?.pred p=pred, a:u32, c:pred!", |x| reduce_logic(x, false))
        .effect()
        .only_with(uncounted_result)
        .since(6, 0, 30),
    form("bar.warp.sync mask:b32", |x| {
        let mask = x.src("mask");
        x.body.b.effect(Op::WarpSync, &[mask]);
    })
    .effect()
    .since(6, 0, 30),
];

/// A block has 16 barriers, and whole warps take part.
fn legal(id: Option<u64>, threads: Option<u64>) -> Result<(), &'static str> {
    // Only the lower half of the number counts.
    match (id.map(|id| id as u32), threads) {
        (Some(16..), _) => Err("a barrier is one of 0 to 15"),
        (_, Some(threads)) if !threads.is_multiple_of(32) => {
            Err("whole warps take part: a multiple of 32 threads")
        }
        _ => Ok(()),
    }
}

fn ids(operands: &[Operand<'_, '_>]) -> Result<(), &'static str> {
    legal(number(operands, 0), number(operands, 1))
}

fn some_arrive(operands: &[Operand<'_, '_>]) -> Result<(), &'static str> {
    if number(operands, 1) == Some(0) { Err("some threads take part") } else { ids(operands) }
}

fn counted_result(operands: &[Operand<'_, '_>]) -> Result<(), &'static str> {
    legal(number(operands, 1), number(operands, 2))
}

fn uncounted_result(operands: &[Operand<'_, '_>]) -> Result<(), &'static str> {
    legal(number(operands, 1), None)
}

fn barrier(x: &mut Expander<'_, '_>, kind: BarrierKind) {
    let mut args = vec![x.src("a")];
    args.extend(x.src_if("b"));
    let count = args.len() == 2;
    if count {
        refuse_parts_of_warps(x, args[1]);
    }
    x.body.b.effect(Op::Barrier { kind, count }, &args);
}

/// A barrier counts whole warps: another number of threads is an illegal instruction.
fn refuse_parts_of_warps(x: &mut Expander<'_, '_>, threads: Value) {
    let rest = x.int_imm(IntBinary::And, threads, 31);
    let is_off = x.cmp_imm(IntCmp::Ne, rest, 0);
    x.body.b.effect(Op::Refuse(Refusal::Illegal), &[is_off]);
}

fn reduce(x: &mut Expander<'_, '_>, kind: BarrierKind, count: bool) {
    let result = if kind == BarrierKind::RedPopc { Type::I32 } else { Type::Pred };
    let mut args: Vec<Value> = vec![x.src("a")];
    if count {
        let threads = x.src("b");
        refuse_parts_of_warps(x, threads);
        args.push(threads);
    }
    args.push(x.src("c"));
    let value = x.op_ty(Op::Barrier { kind, count }, &args, result);
    x.set(if kind == BarrierKind::RedPopc { "d" } else { "p" }, value);
}

fn reduce_logic(x: &mut Expander<'_, '_>, count: bool) {
    let kind = if x.word("op") == "and" { BarrierKind::RedAnd } else { BarrierKind::RedOr };
    reduce(x, kind, count);
}
