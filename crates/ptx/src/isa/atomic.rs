//! Atomic operations, reductions and fences.

use simt_ir::{Access, AtomicOp, Op, Order, Scope, Space, Type, Value};

use super::memory::{real_memory, scope};
use super::{Form, Ty, form};
use crate::lower::expander::Expander;

pub(super) const FORMS: &[Form] = &[
    form("atom.order{$order}?.scope{$scope}?.space{global,$shared}?.op{and,or,xor}.L2::cache_hint?.T{b32,b64} d_=T, a:address, b:T, policy?:u64", atom).effect().since(1, 1, 11),
    form("atom.order{$order}?.scope{$scope}?.space{global,$shared}?.op{exch}.L2::cache_hint?.T{b32,b64} d_=T, a:address, b:T, policy?:u64", atom).effect().since(1, 1, 11),
    form("atom.order{$order}?.scope{$scope}?.space{global,$shared}?.op{add}.L2::cache_hint?.T{u32,s32,u64} d_=T, a:address, b:T, policy?:u64", atom).effect().since(1, 1, 11),
    form("atom.order{$order}?.scope{$scope}?.space{global,$shared}?.op{add}.L2::cache_hint?.T{f32} d_=T, a:address, b:T, policy?:u64", atom).effect().since(2, 0, 20),
    form("atom.order{$order}?.scope{$scope}?.space{global,$shared}?.op{add}.L2::cache_hint?.T{f64} d_=T, a:address, b:T, policy?:u64", atom).effect().since(5, 0, 60),
    form("atom.order{$order}?.scope{$scope}?.space{global,$shared}?.op{inc,dec}.L2::cache_hint?.T{u32} d_=T, a:address, b:T, policy?:u64", atom).effect().since(1, 1, 11),
    form("atom.order{$order}?.scope{$scope}?.space{global,$shared}?.op{min,max}.L2::cache_hint?.T{u32,s32,u64,s64} d_=T, a:address, b:T, policy?:u64", atom).effect().since(1, 1, 11),
    form("atom.order{$order}?.scope{$scope}?.space{global,$shared}?.op{add}.noftz.L2::cache_hint?.T{f16,f16x2} d_=T, a:address, b:T, policy?:u64", atom).effect().since(6, 2, 60),
    form("atom.order{$order}?.scope{$scope}?.space{global,$shared}?.op{add}.noftz.L2::cache_hint?.T{bf16,bf16x2} d_=T, a:address, b:T, policy?:u64", atom).effect().since(7, 8, 90),
    form("atom.order{$order}?.scope{$scope}?.space{global,$shared}?.cas.T{b32,b64} d_=T, a:address, b:T, c:T", cas).effect().since(1, 1, 11),
    form("atom.order{$order}?.scope{$scope}?.space{global,$shared}?.cas.T{b16} d_=T, a:address, b:T, c:T", cas).effect().since(6, 3, 70),
    form("atom.order{$order}?.scope{$scope}?.space{global,$shared}?.exch.L2::cache_hint?.T{b128} d_=T, a:address, b:T, policy?:u64", wide).effect().since(8, 3, 90),
    form("atom.order{$order}?.scope{$scope}?.space{global,$shared}?.cas.T{b128} d_=T, a:address, b:T, c:T", wide).effect().since(8, 3, 90),
    form("atom.order{$order}?.scope{$scope}?.space{global}?.op{add}.L2::cache_hint?.vec{v2,v4}.T{f32} d_=T*, a:address, b:T*, policy?:u64", atom).effect().since(8, 1, 90),
    form("atom.order{$order}?.scope{$scope}?.space{global}?.op{add,min,max}.noftz.L2::cache_hint?.vec{v2,v4,v8}.T{f16,bf16} d_=T*, a:address, b:T*, policy?:u64", atom).effect().since(8, 1, 90),
    form("atom.order{$order}?.scope{$scope}?.space{global}?.op{add,min,max}.noftz.L2::cache_hint?.vec{v2,v4}.T{f16x2,bf16x2} d_=T*, a:address, b:T*, policy?:u64", atom).effect().since(8, 1, 90),
    form("red.order{relaxed,release}?.scope{$scope}?.space{global,$shared}?.op{and,or,xor}.L2::cache_hint?.T{b32,b64} a:address, b:T, policy?:u64", atom).effect().since(1, 2, 11),
    form("red.order{relaxed,release}?.scope{$scope}?.space{global,$shared}?.op{add}.L2::cache_hint?.T{u32,s32,u64} a:address, b:T, policy?:u64", atom).effect().since(1, 2, 11),
    form("red.order{relaxed,release}?.scope{$scope}?.space{global,$shared}?.op{add}.L2::cache_hint?.T{f32} a:address, b:T, policy?:u64", atom).effect().since(2, 0, 20),
    form("red.order{relaxed,release}?.scope{$scope}?.space{global,$shared}?.op{add}.L2::cache_hint?.T{f64} a:address, b:T, policy?:u64", atom).effect().since(5, 0, 60),
    form("red.order{relaxed,release}?.scope{$scope}?.space{global,$shared}?.op{inc,dec}.L2::cache_hint?.T{u32} a:address, b:T, policy?:u64", atom).effect().since(1, 2, 11),
    form("red.order{relaxed,release}?.scope{$scope}?.space{global,$shared}?.op{min,max}.L2::cache_hint?.T{u32,s32,u64,s64} a:address, b:T, policy?:u64", atom).effect().since(1, 2, 11),
    form("red.order{relaxed,release}?.scope{$scope}?.space{global,$shared}?.op{add}.noftz.L2::cache_hint?.T{f16,f16x2} a:address, b:T, policy?:u64", atom).effect().since(6, 2, 60),
    form("red.order{relaxed,release}?.scope{$scope}?.space{global,$shared}?.op{add}.noftz.L2::cache_hint?.T{bf16,bf16x2} a:address, b:T, policy?:u64", atom).effect().since(7, 8, 90),
    form("red.order{relaxed,release}?.scope{$scope}?.space{global}?.op{add}.L2::cache_hint?.vec{v2,v4}.T{f32} a:address, b:T*, policy?:u64", atom).effect().since(8, 1, 90),
    form("red.order{relaxed,release}?.scope{$scope}?.space{global}?.op{add,min,max}.noftz.L2::cache_hint?.vec{v2,v4,v8}.T{f16,bf16} a:address, b:T*, policy?:u64", atom).effect().since(8, 1, 90),
    form("red.order{relaxed,release}?.scope{$scope}?.space{global}?.op{add,min,max}.noftz.L2::cache_hint?.vec{v2,v4}.T{f16x2,bf16x2} a:address, b:T*, policy?:u64", atom).effect().since(8, 1, 90),
    form("membar.level{cta,gl,sys}", |x| {
        let scope = match x.word("level") {
            "cta" => Scope::Cta,
            "gl" => Scope::Gpu,
            _ => Scope::Sys,
        };
        fence(x, Order::SeqCst, scope);
    })
    .effect(),
    form("fence.sem{sc,acq_rel,acquire,release}?.scope{$scope}", |x| {
        let order = if x.word("sem") == "sc" { Order::SeqCst } else { Order::AcqRel };
        let scope = scope(x);
        fence(x, order, scope);
    })
    .effect()
    .since(6, 0, 70),
    // Memory has one path to every proxy here: ordering is all there is to do.
    form("membar.proxy.alias", |x| fence(x, Order::AcqRel, Scope::Sys)).effect().since(7, 5, 70),
    form("fence.proxy.alias", |x| fence(x, Order::AcqRel, Scope::Sys)).effect().since(7, 5, 70),
    form("fence.proxy.async.space{global,shared::cta,shared::cluster}?", |x| fence(x, Order::AcqRel, Scope::Sys)).effect().since(8, 0, 90),
    form("fence.mbarrier_init.release.cluster", |x| fence(x, Order::AcqRel, Scope::Cluster)).effect().since(8, 0, 90),
];

pub(super) fn fence(x: &mut Expander<'_, '_>, order: Order, scope: Scope) {
    x.body.b.effect(Op::Fence { order, scope }, &[]);
}

fn access(x: &Expander<'_, '_>, space: Space, offset: i64) -> Access {
    let order = match x.word("order") {
        "acquire" => Order::Acquire,
        "release" => Order::Release,
        "acq_rel" => Order::AcqRel,
        _ => Order::Relaxed,
    };
    Access { space, offset, order, scope: scope(x), lanes: 1, invariant: false, anywhere: false }
}

/// What an element of type `ty` undergoes. Floating-point addition has another adder in `shared` memory than elsewhere.
pub(super) fn operation(word: &str, ty: Ty, shared: bool) -> AtomicOp {
    let signed = ty.is_signed();
    match word {
        "and" => AtomicOp::And,
        "or" => AtomicOp::Or,
        "xor" => AtomicOp::Xor,
        "exch" => AtomicOp::Exch,
        "inc" => AtomicOp::Inc,
        "dec" => AtomicOp::Dec,
        "add" if ty.is_float() => AtomicOp::FAdd { ftz: matches!(ty, Ty::F32 | Ty::F64) && !shared },
        "add" => AtomicOp::Add,
        "min" if ty.is_float() => AtomicOp::FMin,
        "max" if ty.is_float() => AtomicOp::FMax,
        "min" if signed => AtomicOp::MinS,
        "min" => AtomicOp::MinU,
        _ if signed => AtomicOp::MaxS,
        _ => AtomicOp::MaxU,
    }
}

/// Vectors and packed types are atomic element by element, as PTX promises no more.
pub(super) fn atom(x: &mut Expander<'_, '_>) {
    let ty = x.ty("T");
    let Some((space, base, offset)) = real_memory(x, "a") else { return };
    let element = ty.half().unwrap_or(ty);
    let shared = space == Space::Shared || x.word("space").starts_with("shared");
    let op = operation(x.word("op"), ty, shared);
    let wanted = x.wants("d");
    let mut at = offset;
    let mut one = |x: &mut Expander<'_, '_>, value: Value| {
        let op = Op::Atomic(op, access(x, space, at));
        at = at.wrapping_add(i64::from(element.bytes()));
        let results: &[Type] = if wanted { &[element.ir()] } else { &[] };
        x.body.b.insts(op, &[base, value], results).first().copied()
    };
    let mut old = Vec::new();
    for value in x.src_lanes("b", ty.ir()) {
        if ty.half().is_some() {
            let [low, high] = x.unpack(value, element.ir()).map(|half| one(x, half));
            if let (Some(low), Some(high)) = (low, high) {
                old.push(x.pack([low, high]));
            }
        } else {
            old.extend(one(x, value));
        }
    }
    if wanted {
        x.set_lanes("d", ty, &old);
    }
}

fn cas(x: &mut Expander<'_, '_>) {
    let ty = x.ty("T").ir();
    let Some((space, base, offset)) = real_memory(x, "a") else { return };
    let (b, c) = (x.src("b"), x.src("c"));
    let op = Op::AtomicCas(access(x, space, offset));
    if x.wants("d") {
        let old = x.op_ty(op, &[base, b, c], ty);
        x.set("d", old);
    } else {
        x.body.b.effect(op, &[base, b, c]);
    }
}

/// An exchange of 128 bits at once.
fn wide(x: &mut Expander<'_, '_>) {
    let Some((space, base, offset)) = real_memory(x, "a") else { return };
    let access = Access { lanes: 2, ..access(x, space, offset) };
    let op = if x.has("cas") { Op::AtomicCas(access) } else { Op::Atomic(AtomicOp::Exch, access) };
    let mut args = vec![base];
    args.extend(x.src_pair("b"));
    if x.has("cas") {
        args.extend(x.src_pair("c"));
    }
    let wanted = x.wants("d");
    let results: &[Type] = if wanted { &[Type::I64; 2] } else { &[] };
    let old = x.body.b.insts(op, &args, results);
    if let [low, high] = old[..] {
        x.set_pair("d", [low, high]);
    }
}
