//! Loads, stores, and addresses.

use simt_ir::{Access, IntBinary, IntCmp, IntUnary, Op, Order, Scope, Shift, Space, Type, Value};

use super::syntax::Chosen;
use super::{Form, Ty, cluster, form};
use crate::lower::expander::Expander;
use crate::lower::place::{Memory, space_of};

pub(super) const FORMS: &[Form] = &[
    form("ld.weak?.space{$data}?.cop{ca,cg,cs,lu,cv}?.L1{$evict1}?.L2::cache_hint?.fetch{$prefetch}?.vec{v2,v4}?.T{$memory} d=T+*, a:address, policy?:u64", load)
        .effect()
        .only_if(vector_width).later(LATER),
    form("ld.volatile.space{$common}?.fetch{$prefetch}?.vec{v2,v4}?.T{$memory} d=T+*, a:address", load).effect().only_if(vector_width).later(LATER),
    form("ld.order{relaxed,acquire}.scope{$scope}.space{$common}?.L1{$evict1}?.L2::cache_hint?.fetch{$prefetch}?.vec{v2,v4}?.T{$memory} d=T+*, a:address, policy?:u64", load)
        .effect()
        .since(6, 0, 70)
        .only_if(vector_width).later(LATER),
    form("ld.mmio.order{relaxed}.scope{sys}.space{global}?.T{$memory} d=T+*, a:address", load).effect().since(8, 2, 70).only_if(vector_width).later(LATER),
    form("ld.space{global}.cop{ca,cg,cs}?.nc.L1{$evict1}?.L2::cache_hint?.fetch{$prefetch}?.vec{v2,v4}?.T{$memory} d=T+*, a:address, policy?:u64", load)
        .effect()
        .since(3, 1, 32)
        .only_if(vector_width).later(LATER),
    form("ldu.space{global}?.vec{v2,v4}?.T{$memory} d=T+*, a:address", load).effect().since(2, 0, 20).only_if(vector_width).later(LATER),
    // 256 bits, of later architectures, in global memory.
    form("ld.weak?.space{global}?.cop{ca,cg,cs,lu,cv}?.L1{$evict1}?.L2{$evict2}?.L2::cache_hint?.fetch{$prefetch}?.vec{v4,v8}.T{$wide} d=T+*, a:address, policy?:u64", load)
        .effect()
        .since(8, 8, 100)
        .only_if(of_256_bits),
    form("ld.volatile.space{global}?.fetch{$prefetch}?.vec{v4,v8}.T{$wide} d=T+*, a:address", load).effect().since(8, 8, 100).only_if(of_256_bits),
    form("ld.order{relaxed,acquire}.scope{$scope}.space{global}?.L1{$evict1}?.L2{$evict2}?.L2::cache_hint?.fetch{$prefetch}?.vec{v4,v8}.T{$wide} d=T+*, a:address, policy?:u64", load)
        .effect()
        .since(8, 8, 100)
        .only_if(of_256_bits),
    form("ld.space{global}.cop{ca,cg,cs}?.nc.L1{$evict1}?.L2{$evict2}?.L2::cache_hint?.fetch{$prefetch}?.vec{v4,v8}.T{$wide} d=T+*, a:address, policy?:u64", load)
        .effect()
        .since(8, 8, 100)
        .only_if(of_256_bits),
    form("st.weak?.space{$written}?.cop{wb,cg,cs,wt}?.L1{$evict1}?.L2::cache_hint?.vec{v2,v4}?.T{$memory} a:address, b:T+*, policy?:u64", store)
        .effect()
        .only_if(vector_width).later(LATER),
    form("st.volatile.space{$common}?.vec{v2,v4}?.T{$memory} a:address, b:T+*", store).effect().only_if(vector_width).later(LATER),
    form("st.order{relaxed,release}.scope{$scope}.space{$common}?.L1{$evict1}?.L2::cache_hint?.vec{v2,v4}?.T{$memory} a:address, b:T+*, policy?:u64", store)
        .effect()
        .since(6, 0, 70)
        .only_if(vector_width).later(LATER),
    form("st.mmio.order{relaxed}.scope{sys}.space{global}?.T{$memory} a:address, b:T+*", store).effect().since(8, 2, 70).only_if(vector_width).later(LATER),
    form("st.weak?.space{global}?.cop{wb,cg,cs,wt}?.L1{$evict1}?.L2{$evict2}?.L2::cache_hint?.vec{v4,v8}.T{$wide} a:address, b:T+*, policy?:u64", store)
        .effect()
        .since(8, 8, 100)
        .only_if(of_256_bits),
    form("st.volatile.space{global}?.vec{v4,v8}.T{$wide} a:address, b:T+*", store).effect().since(8, 8, 100).only_if(of_256_bits),
    form("st.order{relaxed,release}.scope{$scope}.space{global}?.L1{$evict1}?.L2{$evict2}?.L2::cache_hint?.vec{v4,v8}.T{$wide} a:address, b:T+*, policy?:u64", store)
        .effect()
        .since(8, 8, 100)
        .only_if(of_256_bits),
    form("cvta.space{const,global,local,shared,shared::cta,shared::cluster,param,param::entry}.T{u64} d=T, a:T", |x| cvta(x, true)).since(2, 0, 20),
    form("cvta.space{const,global,local,shared,shared::cta,shared::cluster,param,param::entry}.T{u64} d=T, a:symbol", |x| cvta(x, true)).since(2, 0, 20),
    form("cvta.to.space{const,global,local,shared,shared::cta,shared::cluster,param,param::entry}.T{u64} d=T, a:T", |x| cvta(x, false)).since(2, 0, 20),
    form("isspacep.space{global,shared,shared::cta,shared::cluster,local,const,param,param::entry} p=pred, a:u64", isspacep).since(2, 0, 20),
    form("isspacep.space{global,shared,shared::cta,shared::cluster,local,const,param,param::entry} p=pred, a:u32", isspacep).since(2, 0, 20),
];

/// Modifiers of loads and stores that older versions lack.
const LATER: &[(&str, u32, u32, u32)] = &[("b128", 8, 3, 70)];

/// A vector is 128 bits wide at most, but for those of 256, which alone have eight elements and an L2 eviction priority and have entries of their own.
pub(super) fn vector_width(chosen: &Chosen) -> Result<(), &'static str> {
    let bits = chosen.ty("T").map_or(0, Ty::bits) * chosen.lanes() as u32;
    if bits > 128 { Err("a vector of more than 128 bits") } else { Ok(()) }
}

fn of_256_bits(chosen: &Chosen) -> Result<(), &'static str> {
    let bits = chosen.ty("T").map_or(0, Ty::bits) * chosen.lanes() as u32;
    if bits == 256 { Ok(()) } else { Err("a vector of other than 256 bits") }
}

/// Order and scope of an access. What goes around the caches to where others look is moved as ordered accesses are: scans that look back pass
/// a sum with its state in vectors with `.cg` that have no order, and what is not cached at all is read anew each time.
fn access(x: &Expander<'_, '_>, space: Space, offset: i64, lanes: usize) -> Access {
    let far = matches!(space, Space::Global | Space::Generic) && !x.has("nc");
    let order = match x.word("order") {
        "acquire" => Order::Acquire,
        "release" => Order::Release,
        "relaxed" => Order::Relaxed,
        _ if x.has("volatile") || far && x.word("cop") == "cv" => Order::Volatile,
        _ if far && lanes > 1 && matches!(x.word("cop"), "cg" | "wt") => Order::Relaxed,
        _ => Order::Weak,
    };
    let invariant = matches!(space, Space::Const | Space::Param) || x.has("nc");
    Access { space, offset, order, scope: scope(x), lanes: lanes as u8, invariant, anywhere: false }
}

/// The scope that the instruction names.
pub(super) fn scope(x: &Expander<'_, '_>) -> Scope {
    match x.word("scope") {
        "cta" => Scope::Cta,
        "cluster" => Scope::Cluster,
        "sys" => Scope::Sys,
        _ => Scope::Gpu,
    }
}

pub(super) fn load(x: &mut Expander<'_, '_>) {
    let (ty, lanes) = (x.ty("T"), x.lanes());
    let Some(a) = x.operand("a") else { return };
    let memory = x.body.memory(a, x.word("space"));
    if ty == Ty::B128 {
        let halves = load_from(x, memory, Type::I64, 2);
        x.set_pair("d", [halves[0], halves[1]]);
        return;
    }
    let ir = x.moving("d", ty);
    let values = load_from(x, memory, ir, lanes);
    x.set_lanes("d", ty, &values);
}

fn load_from(x: &mut Expander<'_, '_>, memory: Memory, ty: Type, lanes: usize) -> Vec<Value> {
    match memory {
        Memory::At { space, base, offset } => {
            let mut access = access(x, space, offset, lanes);
            let Some((word, count)) = whole(&access, ty) else {
                return x.body.b.insts(Op::Load(access), &[base], &vec![ty; lanes]);
            };
            access.lanes = count as u8;
            let words = x.body.b.insts(Op::Load(access), &[base], &vec![word; count]);
            let each = lanes / count;
            (0..lanes)
                .map(|lane| {
                    let at = (lane % each) as u32 * ty.bits();
                    let word = words[lane / each];
                    let word = if at == 0 { word } else { x.shift_imm(Shift::RightU, word, at) };
                    x.fit(word, ty)
                })
                .collect()
        }
        Memory::Value { var, offset } => x.body.read_value(var, offset, ty, lanes),
    }
}

pub(super) fn store(x: &mut Expander<'_, '_>) {
    let (ty, lanes) = (x.ty("T"), x.lanes());
    let Some(a) = x.operand("a") else { return };
    let (values, lanes) = if ty == Ty::B128 {
        (x.src_pair("b").to_vec(), 2)
    } else {
        let ir = x.moving("b", ty);
        (x.src_lanes("b", ir), lanes)
    };
    match x.body.memory(a, x.word("space")) {
        Memory::At { space: Space::Param | Space::Const, .. } => {
            x.refuse(a, "this location cannot be written");
        }
        Memory::At { space, base, offset } => {
            let mut access = access(x, space, offset, lanes);
            let ty = x.body.b.func().ty(values[0]);
            let values = match whole(&access, ty) {
                None => values,
                Some((word, count)) => {
                    access.lanes = count as u8;
                    values.chunks(lanes / count).map(|values| in_one(x, values, word)).collect()
                }
            };
            let args: Vec<Value> = std::iter::once(base).chain(values).collect();
            x.body.b.effect(Op::Store(access), &args);
        }
        Memory::Value { var, offset } => x.body.write_value(var, offset, &values),
    }
}

/// The words, and how many, that an ordered vector is moved in, if they are others than its elements. Threads that pass a value and its state in
/// one vector rely on seeing both of one store: PTX does not promise it, and the hardware moves a thread's vector as a whole. In shared
/// memory the elements do, as the warps of a cluster run in turns.
fn whole(access: &Access, ty: Type) -> Option<(Type, usize)> {
    let apart = access.order == Order::Weak
        || access.lanes == 1
        || !matches!(access.space, Space::Global | Space::Generic);
    let bits = ty.bits() * u32::from(access.lanes);
    let (word, count) = match bits {
        _ if apart => return None,
        16 => (Type::I16, 1),
        32 => (Type::I32, 1),
        64 => (Type::I64, 1),
        _ => (Type::I64, bits as usize / 64),
    };
    (word != ty).then_some((word, count))
}

/// The values side by side, the first lowest, as one integer.
fn in_one(x: &mut Expander<'_, '_>, values: &[Value], word: Type) -> Value {
    let mut shift = 0;
    let mut whole = x.imm(word, 0);
    for value in values {
        let value = x.body.as_int(*value);
        let bits = x.bits(value);
        let part = x.zext(value, word);
        let part = if shift == 0 { part } else { x.shift_imm(Shift::Left, part, shift) };
        whole = x.int(IntBinary::Or, whole, part);
        shift += bits;
    }
    whole
}

/// Between an address in a window and a generic one. Windows have 64-bit addresses.
fn cvta(x: &mut Expander<'_, '_>, to_generic: bool) {
    let ty = x.ty("T").ir();
    let space = space_of(x.word("space"), x.body.is_kernel());
    let Some(operand) = x.operand("a") else { return };
    let a = match &operand.kind {
        crate::resolve::OperandKind::Symbol(symbol, offset) => x.body.address_of(*symbol, *offset, operand),
        _ => x.src("a"),
    };
    let d = if to_generic && space == Space::Shared && x.body.links.names_blocks {
        x.body.in_cluster(a)
    } else {
        let a = x.zext(a, Type::I64);
        x.op(if to_generic { Op::ToGeneric(space) } else { Op::FromGeneric(space) }, &[a])
    };
    let d = if !to_generic && space == Space::Shared { x.body.own_address(d) } else { d };
    let d = x.fit(d, ty);
    x.set("d", d);
}

fn isspacep(x: &mut Expander<'_, '_>) {
    let space = space_of(x.word("space"), x.body.is_kernel());
    let a = x.src("a");
    let a = x.zext(a, Type::I64);
    let p = match space {
        Space::Const => is_constant(x, a),
        Space::Global => {
            let constant = is_constant(x, a);
            let shared = cluster::is_in_window(x, a);
            let other = x.int(IntBinary::Or, constant, shared);
            let global = x.op_ty(Op::IsSpace(space), &[a], Type::Pred);
            let variable = x.un(IntUnary::Not, other);
            x.int(IntBinary::And, global, variable)
        }
        Space::Shared if x.word("space") == "shared::cluster" => cluster::is_in_window(x, a),
        _ => x.op_ty(Op::IsSpace(space), &[a], Type::Pred),
    };
    x.set("p", p);
}

/// Whether an address is of a constant variable. They lie among the global ones.
fn is_constant(x: &mut Expander<'_, '_>, address: Value) -> Value {
    let mut found = x.imm(Type::Pred, 0);
    let links = x.body.links;
    for (variable, size) in links.constants() {
        let start = x.op_ty(Op::GlobalAddr(*variable), &[], Type::I64);
        let offset = x.int(IntBinary::Sub, address, start);
        let inside = x.cmp_imm(IntCmp::LtU, offset, *size);
        found = x.int(IntBinary::Or, found, inside);
    }
    found
}

/// An address operand as a base value with its window, for instructions that need real memory; `None`, with the problem noted,
/// where there is none.
pub(super) fn real_memory(x: &mut Expander<'_, '_>, name: &str) -> Option<(Space, Value, i64)> {
    let operand = x.operand(name)?;
    match x.body.memory(operand, x.word("space")) {
        Memory::At { space, base, offset } => Some((space, base, offset)),
        Memory::Value { .. } => {
            x.refuse(operand, "this parameter is not in memory");
            None
        }
    }
}
