//! Clusters: their barrier, addresses in the shared windows of their blocks, and stores there that barriers in memory count.
//!
//! A shared address says which block it is of (see [`simt_ir::CLUSTER_STRIDE`]), so what names another block is a matter of arithmetic.
//! Accesses through such an address are lowered to accesses of generic ones.

use simt_ir::{
    Access, CLUSTER_STRIDE, ClusterBarrier, IntBinary, IntCmp, IntUnary, Op, Order, Refusal, Scope, Shift,
    Space, SpecialReg, Type, Value,
};

use super::atomic::operation;
use super::memory::real_memory;
use super::syntax::Chosen;
use super::{Form, Ty, form};
use crate::lower::expander::Expander;

pub(super) const FORMS: &[Form] = &[
    form("barrier.cluster.arrive.sem{release,relaxed}?.aligned?", |x| barrier(x, ClusterBarrier::Arrive))
        .effect()
        .since(7, 8, 90),
    form("barrier.cluster.wait.sem{acquire}?.aligned?", |x| barrier(x, ClusterBarrier::Wait))
        .effect()
        .since(7, 8, 90),
    form("mapa.space{shared::cluster}?.T{u32,u64} d=T, a:T, b:u32", mapa).since(7, 8, 90),
    form("mapa.space{shared::cluster}?.T{u32,u64} d=T, a:symbol, b:u32", mapa).since(7, 8, 90),
    form("getctarank.space{shared::cluster}?.T{u32,u64} d=u32, a:T", getctarank).since(7, 8, 90),
    form("getctarank.space{shared::cluster}?.T{u32,u64} d=u32, a:symbol", getctarank).since(7, 8, 90),
    form("st.async.sem{weak}?.space{shared::cluster}?.mbarrier::complete_tx::bytes.vec{v2,v4}?.T{b32,b64,u32,u64,s32,s64,f32,f64} a:address, b:T*, barrier:address", store_async)
        .effect()
        .since(8, 1, 90)
        .only_if(width),
    form("st.async.scope{cluster}.space{shared::cluster}?.mbarrier::complete_tx::bytes.vec{v2,v4}?.T{b32,b64,u32,u64,s32,s64,f32,f64} a:address, b:T*, barrier:address", store_async)
        .effect()
        .since(8, 1, 90)
        .only_if(width),
    form("red.async.sem{relaxed}.scope{cluster}.space{shared::cluster}?.mbarrier::complete_tx::bytes.op{inc,dec}.T{u32} a:address, b:T, barrier:address", reduce_async).effect().since(8, 1, 90),
    form("red.async.sem{relaxed}.scope{cluster}.space{shared::cluster}?.mbarrier::complete_tx::bytes.op{min,max}.T{u32,s32} a:address, b:T, barrier:address", reduce_async).effect().since(8, 1, 90),
    form("red.async.sem{relaxed}.scope{cluster}.space{shared::cluster}?.mbarrier::complete_tx::bytes.op{add}.T{u32,s32,u64} a:address, b:T, barrier:address", reduce_async).effect().since(8, 1, 90),
    form("red.async.sem{relaxed}.scope{cluster}.space{shared::cluster}?.mbarrier::complete_tx::bytes.op{and,or,xor}.T{b32} a:address, b:T, barrier:address", reduce_async).effect().since(8, 1, 90),
];

fn width(chosen: &Chosen) -> Result<(), &'static str> {
    let bits = chosen.ty("T").map_or(0, Ty::bits) * chosen.lanes() as u32;
    if bits > 128 { Err("a vector of more than 128 bits") } else { Ok(()) }
}

const STRIDE_BITS: u32 = CLUSTER_STRIDE.trailing_zeros();

// The blocks of a cluster run in turns on one thread, and each turn ends before another begins: order is given.
fn barrier(x: &mut Expander<'_, '_>, half: ClusterBarrier) {
    x.body.b.effect(Op::ClusterBarrier(half), &[]);
}

fn mapa(x: &mut Expander<'_, '_>) {
    let ty = x.ty("T").ir();
    let (address, rank) = (shared_address(x), x.src("b"));
    let mapped = in_block(x, address, rank);
    let d = if is_generic(x) { x.body.in_cluster(mapped) } else { x.zext(mapped, Type::I64) };
    let d = x.fit(d, ty);
    x.set("d", d);
}

fn getctarank(x: &mut Expander<'_, '_>) {
    let address = shared_address(x);
    let rank = x.shift_imm(Shift::RightU, address, STRIDE_BITS);
    x.set("d", rank);
}

/// A store that a barrier counts. It may be complete at any time before that: here it is when it is issued.
fn store_async(x: &mut Expander<'_, '_>) {
    only_in_cluster(x);
    let (ty, lanes) = (x.ty("T"), x.lanes());
    let ir = x.moving("b", ty);
    let values = x.src_lanes("b", ir);
    let Some((space, base, offset)) = real_memory(x, "a") else { return };
    let access = Access { lanes: lanes as u8, ..Access::weak(space, offset) };
    let args: Vec<Value> = std::iter::once(base).chain(values).collect();
    x.body.b.effect(Op::Store(access), &args);
    complete(x, ty.bytes() * lanes as u32);
}

/// A reduction that a barrier counts; see [`store_async`].
fn reduce_async(x: &mut Expander<'_, '_>) {
    only_in_cluster(x);
    let ty = x.ty("T");
    let value = x.src("b");
    let Some((space, base, offset)) = real_memory(x, "a") else { return };
    let access = Access { order: Order::Relaxed, scope: Scope::Cluster, ..Access::weak(space, offset) };
    let op = operation(x.word("op"), ty, true);
    x.body.b.effect(Op::Atomic(op, access), &[base, value]);
    complete(x, ty.bytes());
}

/// Without clusters the hardware has no such instruction.
fn only_in_cluster(x: &mut Expander<'_, '_>) {
    let inside = x.op_ty(Op::SpecialReg(SpecialReg::IsExplicitCluster), &[], Type::Pred);
    let outside = x.un(IntUnary::Not, inside);
    x.body.b.effect(Op::Refuse(Refusal::Illegal), &[outside]);
}

/// The barrier has so many bytes less to wait for.
fn complete(x: &mut Expander<'_, '_>, bytes: u32) {
    let Some((space, base, offset)) = real_memory(x, "barrier") else { return };
    let access = Access { order: Order::Release, scope: Scope::Cluster, ..Access::weak(space, offset) };
    let [nobody, less] = [0, bytes.wrapping_neg()].map(|number| x.imm(Type::I32, number.into()));
    x.body.b.effect(Op::MbarrierArrive { drop: false, together: false, access }, &[base, nobody, less]);
}

/// Operand `a`, a variable, a `.shared::cluster` address or a generic one, as a shared address of 32 bits.
fn shared_address(x: &mut Expander<'_, '_>) -> Value {
    let Some(operand) = x.operand("a") else { return x.imm(Type::I32, 0) };
    let a = match &operand.kind {
        crate::resolve::OperandKind::Symbol(symbol, offset) => x.body.address_of(*symbol, *offset, operand),
        _ => x.src("a"),
    };
    let address = if is_generic(x) {
        let address = x.zext(a, Type::I64);
        let distance = x.op(Op::FromGeneric(Space::Shared), &[address]);
        x.body.own_address(distance)
    } else {
        a
    };
    x.fit(address, Type::I32)
}

/// Whether operand `a` is a generic address, and so is what is mapped from it. Without a state space a variable is one of shared memory all the
/// same, and 32 bits are no generic address, as an H100 has it.
fn is_generic(x: &Expander<'_, '_>) -> bool {
    let is_variable =
        x.operand("a").is_some_and(|a| matches!(a.kind, crate::resolve::OperandKind::Symbol(..)));
    x.word("space").is_empty() && x.ty("T") == Ty::U64 && !is_variable
}

/// The address of the place in block `rank` that corresponds to a place in any block. Of a rank its low 8 bits count, and nobody asks
/// whether the cluster has it before something is accessed there.
fn in_block(x: &mut Expander<'_, '_>, address: Value, rank: Value) -> Value {
    let window = x.shift_imm(Shift::Left, rank, STRIDE_BITS);
    let offset = x.int_imm(IntBinary::And, address, CLUSTER_STRIDE - 1);
    x.int(IntBinary::Add, window, offset)
}

/// Whether a generic address lies in the shared window of a block of the cluster, or of one that it might have.
pub(super) fn is_in_window(x: &mut Expander<'_, '_>, address: Value) -> Value {
    let distance = x.op(Op::FromGeneric(Space::Shared), &[address]);
    let away = x.shift_imm(Shift::RightS, distance, STRIDE_BITS);
    let own = x.special(SpecialReg::ClusterCtaRank);
    let own = x.zext(own, Type::I64);
    let rank = x.int(IntBinary::Add, own, away);
    let named = x.cmp_imm(IntCmp::LtU, rank, 1 << (32 - STRIDE_BITS));
    // All windows are as large as the own one.
    let offset = x.int_imm(IntBinary::And, distance, CLUSTER_STRIDE - 1);
    let counterpart = x.op(Op::ToGeneric(Space::Shared), &[offset]);
    let inside = x.op_ty(Op::IsSpace(Space::Shared), &[counterpart], Type::Pred);
    x.int(IntBinary::And, named, inside)
}
