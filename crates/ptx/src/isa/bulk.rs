//! Copies of blocks of memory by one thread, with and without tensor maps, and changes of tensor maps. All of them are one operation, whose
//! meaning is [`simt_ir::bulk`]'s.
//!
//! A copy is complete when it is issued, so that a group of copies is nothing to wait for.

use simt_ir::bulk::{BulkOp, Field};
use simt_ir::{AtomicOp, IntBinary, Op, Order, Scope, Space, Type, Value};

use super::atomic::{fence, operation};
use super::memory::scope;
use super::syntax::Chosen;
use super::{Form, form};
use crate::lower::expander::Expander;
use crate::lower::place::Memory;
use crate::resolve::{Operand, OperandKind};

pub(super) const FORMS: &[Form] = &[
    copy("cp.async.bulk.to{shared::cluster,shared::cta}.global.mbarrier::complete_tx::bytes to:address, from:address, bytes:u32, barrier:address"),
    copy("cp.async.bulk.to{shared::cluster,shared::cta}.global.mbarrier::complete_tx::bytes.L2::cache_hint to:address, from:address, bytes:u32, barrier:address, policy:u64"),
    copy("cp.async.bulk.to{shared::cluster}.global.mbarrier::complete_tx::bytes.multicast::cluster to:address, from:address, bytes:u32, barrier:address, mask:b16"),
    copy("cp.async.bulk.to{shared::cluster}.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint to:address, from:address, bytes:u32, barrier:address, mask:b16, policy:u64"),
    copy("cp.async.bulk.to{shared::cluster}.from{shared::cta}.mbarrier::complete_tx::bytes to:address, from:address, bytes:u32, barrier:address"),
    copy("cp.async.bulk.to{global}.from{shared::cta}.bulk_group to:address, from:address, bytes:u32"),
    copy("cp.async.bulk.to{global}.from{shared::cta}.bulk_group.L2::cache_hint to:address, from:address, bytes:u32, policy:u64"),
    form("cp.async.bulk.commit_group", |_| {}).effect().since(8, 0, 90),
    form("cp.async.bulk.wait_group.read? count:imm", |_| {}).effect().since(8, 0, 90),
    form("cp.async.bulk.prefetch.L2.global from:address, bytes:u32", |_| {}).effect().since(8, 0, 90).only_with(whole_units_ahead),
    form("cp.async.bulk.prefetch.L2.global.L2::cache_hint from:address, bytes:u32, policy:u64", |_| {}).effect().since(8, 0, 90).only_with(whole_units_ahead),
    copy("cp.reduce.async.bulk.to{global}.from{shared::cta}.bulk_group.op{and,or,xor}.T{b32,b64} to:address, from:address, bytes:u32"),
    copy("cp.reduce.async.bulk.to{global}.from{shared::cta}.bulk_group.op{add}.T{u32,s32,u64,f32,f64} to:address, from:address, bytes:u32"),
    copy("cp.reduce.async.bulk.to{global}.from{shared::cta}.bulk_group.op{add}.noftz.T{f16,bf16} to:address, from:address, bytes:u32"),
    copy("cp.reduce.async.bulk.to{global}.from{shared::cta}.bulk_group.op{inc,dec}.T{u32} to:address, from:address, bytes:u32"),
    copy("cp.reduce.async.bulk.to{global}.from{shared::cta}.bulk_group.op{min,max}.T{u32,s32,u64,s64,f16,bf16} to:address, from:address, bytes:u32"),
    copy("cp.reduce.async.bulk.to{global}.from{shared::cta}.bulk_group.L2::cache_hint.op{and,or,xor}.T{b32,b64} to:address, from:address, bytes:u32, policy:u64"),
    copy("cp.reduce.async.bulk.to{global}.from{shared::cta}.bulk_group.L2::cache_hint.op{add}.T{u32,s32,u64,f32,f64} to:address, from:address, bytes:u32, policy:u64"),
    copy("cp.reduce.async.bulk.to{global}.from{shared::cta}.bulk_group.L2::cache_hint.op{add}.noftz.T{f16,bf16} to:address, from:address, bytes:u32, policy:u64"),
    copy("cp.reduce.async.bulk.to{global}.from{shared::cta}.bulk_group.L2::cache_hint.op{inc,dec}.T{u32} to:address, from:address, bytes:u32, policy:u64"),
    copy("cp.reduce.async.bulk.to{global}.from{shared::cta}.bulk_group.L2::cache_hint.op{min,max}.T{u32,s32,u64,s64,f16,bf16} to:address, from:address, bytes:u32, policy:u64"),
    copy("cp.reduce.async.bulk.to{shared::cluster}.from{shared::cta}.mbarrier::complete_tx::bytes.op{and,or,xor}.T{b32} to:address, from:address, bytes:u32, barrier:address"),
    copy("cp.reduce.async.bulk.to{shared::cluster}.from{shared::cta}.mbarrier::complete_tx::bytes.op{add}.T{u32,s32,u64} to:address, from:address, bytes:u32, barrier:address"),
    copy("cp.reduce.async.bulk.to{shared::cluster}.from{shared::cta}.mbarrier::complete_tx::bytes.op{inc,dec,min,max}.T{u32} to:address, from:address, bytes:u32, barrier:address"),
    load("cp.async.bulk.tensor.rank{1d,2d,3d,4d,5d}.to{shared::cluster,shared::cta}.global.tile?.mbarrier::complete_tx::bytes to:address, map:tensor, barrier:address"),
    load("cp.async.bulk.tensor.rank{1d,2d,3d,4d,5d}.to{shared::cluster,shared::cta}.global.tile?.mbarrier::complete_tx::bytes.L2::cache_hint to:address, map:tensor, barrier:address, policy:u64"),
    load("cp.async.bulk.tensor.rank{1d,2d,3d,4d,5d}.to{shared::cluster}.global.tile?.mbarrier::complete_tx::bytes.multicast::cluster to:address, map:tensor, barrier:address, mask:b16"),
    load("cp.async.bulk.tensor.rank{1d,2d,3d,4d,5d}.to{shared::cluster}.global.tile?.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint to:address, map:tensor, barrier:address, mask:b16, policy:u64"),
    load("cp.async.bulk.tensor.rank{3d,4d,5d}.to{shared::cluster,shared::cta}.global.im2col.mbarrier::complete_tx::bytes to:address, map:tensor, barrier:address, shifts:b16#"),
    load("cp.async.bulk.tensor.rank{3d,4d,5d}.to{shared::cluster,shared::cta}.global.im2col.mbarrier::complete_tx::bytes.L2::cache_hint to:address, map:tensor, barrier:address, shifts:b16#, policy:u64"),
    load("cp.async.bulk.tensor.rank{3d,4d,5d}.to{shared::cluster}.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster to:address, map:tensor, barrier:address, shifts:b16#, mask:b16"),
    load("cp.async.bulk.tensor.rank{3d,4d,5d}.to{shared::cluster}.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint to:address, map:tensor, barrier:address, shifts:b16#, mask:b16, policy:u64"),
    store("cp.async.bulk.tensor.rank{1d,2d,3d,4d,5d}.global.from{shared::cta}.tile?.bulk_group map:tensor, from:address"),
    store("cp.async.bulk.tensor.rank{1d,2d,3d,4d,5d}.global.from{shared::cta}.tile?.bulk_group.L2::cache_hint map:tensor, from:address, policy:u64"),
    store("cp.async.bulk.tensor.rank{3d,4d,5d}.global.from{shared::cta}.im2col_no_offs.bulk_group map:tensor, from:address"),
    store("cp.async.bulk.tensor.rank{3d,4d,5d}.global.from{shared::cta}.im2col_no_offs.bulk_group.L2::cache_hint map:tensor, from:address, policy:u64"),
    store("cp.reduce.async.bulk.tensor.rank{1d,2d,3d,4d,5d}.global.from{shared::cta}.op{add,min,max,inc,dec,and,or,xor}.tile?.bulk_group map:tensor, from:address"),
    store("cp.reduce.async.bulk.tensor.rank{1d,2d,3d,4d,5d}.global.from{shared::cta}.op{add,min,max,inc,dec,and,or,xor}.tile?.bulk_group.L2::cache_hint map:tensor, from:address, policy:u64"),
    store("cp.reduce.async.bulk.tensor.rank{3d,4d,5d}.global.from{shared::cta}.op{add,min,max,inc,dec,and,or,xor}.im2col_no_offs.bulk_group map:tensor, from:address"),
    store("cp.reduce.async.bulk.tensor.rank{3d,4d,5d}.global.from{shared::cta}.op{add,min,max,inc,dec,and,or,xor}.im2col_no_offs.bulk_group.L2::cache_hint map:tensor, from:address, policy:u64"),
    prefetch("cp.async.bulk.prefetch.tensor.rank{1d,2d,3d,4d,5d}.L2.global.tile? map:tensor"),
    prefetch("cp.async.bulk.prefetch.tensor.rank{1d,2d,3d,4d,5d}.L2.global.tile?.L2::cache_hint map:tensor, policy:u64"),
    prefetch("cp.async.bulk.prefetch.tensor.rank{3d,4d,5d}.L2.global.im2col map:tensor, shifts:b16#"),
    prefetch("cp.async.bulk.prefetch.tensor.rank{3d,4d,5d}.L2.global.im2col.L2::cache_hint map:tensor, shifts:b16#, policy:u64"),
    change("tensormap.replace.tile.field{global_address}.space{global,shared::cta}?.b1024.b64 map:address, value:b64"),
    change("tensormap.replace.tile.field{rank}.space{global,shared::cta}?.b1024.b32 map:address, value:b32"),
    change("tensormap.replace.tile.field{box_dim,global_dim,element_stride}.space{global,shared::cta}?.b1024.b32 map:address, at:imm, value:b32")
        .only_with(a_dimension),
    change("tensormap.replace.tile.field{global_stride}.space{global,shared::cta}?.b1024.b64 map:address, at:imm, value:b64")
        .only_with(a_dimension),
    change("tensormap.replace.tile.field{elemtype}.space{global,shared::cta}?.b1024.b32 map:address, value:imm").only_with(|operands| up_to(operands, 12)),
    change("tensormap.replace.tile.field{interleave_layout}.space{global,shared::cta}?.b1024.b32 map:address, value:imm").only_with(|operands| up_to(operands, 2)),
    change("tensormap.replace.tile.field{swizzle_mode}.space{global,shared::cta}?.b1024.b32 map:address, value:imm").only_with(|operands| up_to(operands, 3)),
    change("tensormap.replace.tile.field{fill_mode}.space{global,shared::cta}?.b1024.b32 map:address, value:imm").only_with(|operands| up_to(operands, 1)),
    form("tensormap.cp_fenceproxy.to{global}.from{shared::cta}.tensormap::generic.release.scope{$scope}.sync.aligned to:address, from:address, bytes:imm", copy_map)
        .effect()
        .since(8, 3, 90)
        .only_with(|operands| whole_map(operands, 2)),
    form("fence.proxy.tensormap::generic.acquire.scope{$scope} map:address, bytes:imm", fence_in_scope)
        .effect()
        .since(8, 3, 90)
        .only_with(|operands| whole_map(operands, 1)),
    form("fence.proxy.tensormap::generic.release.scope{$scope}", fence_in_scope).effect().since(8, 3, 90),
    form("fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.scope{cluster}", fence_in_scope).effect().since(8, 6, 90),
    form("fence.proxy.async::generic.release.sync_restrict::shared::cta.scope{cluster}", fence_in_scope).effect().since(8, 6, 90),
    form("fence.acquire.sync_restrict::shared::cluster.scope{cluster}", fence_in_scope).effect().since(8, 6, 90),
    form("fence.release.sync_restrict::shared::cta.scope{cluster}", fence_in_scope).effect().since(8, 6, 90),
];

const fn copy(text: &'static str) -> Form {
    form(text, linear).effect().since(8, 0, 90).only_with(whole_units)
}

const fn load(text: &'static str) -> Form {
    form(text, tensor_load).effect().since(8, 0, 90).registers(coordinates)
}

const fn store(text: &'static str) -> Form {
    form(text, tensor_store).effect().since(8, 0, 90).registers(coordinates)
}

const fn prefetch(text: &'static str) -> Form {
    form(text, |_| {}).effect().since(8, 0, 90).registers(coordinates)
}

/// Only the architecture itself has these, `sm_90a`, which is what the device is; a number is all that is known of the target.
const fn change(text: &'static str) -> Form {
    form(text, replace).effect().since(8, 3, 90)
}

/// Coordinates of a tensor, or offsets of pixels.
fn coordinates(chosen: &Chosen, operand: &str) -> usize {
    let rank = rank(chosen.word("rank"));
    if operand == "shifts" { rank.saturating_sub(2).into() } else { rank.into() }
}

fn rank(word: Option<&str>) -> u8 {
    word.and_then(|word| word.strip_suffix('d')?.parse().ok()).unwrap_or(1)
}

fn number(operands: &[Operand<'_, '_>], at: usize) -> Option<u64> {
    match operands.get(at)?.kind {
        OperandKind::Immediate(value) => value.integer(),
        _ => None,
    }
}

fn whole_units(operands: &[Operand<'_, '_>]) -> Result<(), &'static str> {
    // Only the lower half counts, as in NVIDIA's assembler.
    units(
        number(operands, 2).map(|bytes| if (bytes as i64) < 0 { bytes } else { bytes & u64::from(u32::MAX) }),
    )
}

fn whole_units_ahead(operands: &[Operand<'_, '_>]) -> Result<(), &'static str> {
    units(number(operands, 1))
}

fn units(bytes: Option<u64>) -> Result<(), &'static str> {
    match bytes {
        Some(bytes) if bytes % 16 != 0 => Err("a multiple of 16 bytes is copied"),
        Some(bytes) if bytes > 1_048_560 => Err("no more than 1048560 bytes are copied"),
        _ => Ok(()),
    }
}

fn whole_map(operands: &[Operand<'_, '_>], at: usize) -> Result<(), &'static str> {
    if number(operands, at) == Some(128) { Ok(()) } else { Err("a tensor map has 128 bytes") }
}

fn a_dimension(operands: &[Operand<'_, '_>]) -> Result<(), &'static str> {
    if number(operands, 1).is_some_and(|at| at < 5) { Ok(()) } else { Err("there is no such dimension") }
}

fn up_to(operands: &[Operand<'_, '_>], most: u64) -> Result<(), &'static str> {
    let fits = number(operands, 1).is_some_and(|value| value <= most);
    if fits { Ok(()) } else { Err("there is no such value on this architecture") }
}

/// The host address of an operand in the space of a modifier.
fn address(x: &mut Expander<'_, '_>, name: &str, space: &str) -> Option<Value> {
    let operand = x.operand(name)?;
    let Memory::At { space, base, offset } = x.body.memory(operand, space) else {
        x.refuse(operand, "this parameter is not in memory");
        return None;
    };
    // Addresses of 32 bits wrap before they are anybody else's.
    let at = if offset == 0 { base } else { x.int_imm(IntBinary::Add, base, offset as u64) };
    let at = x.zext(at, Type::I64);
    Some(match space {
        Space::Generic | Space::Global => at,
        space => x.op_ty(Op::ToGeneric(space), &[at], Type::I64),
    })
}

/// The address of the barrier, which is where the destination is.
fn barrier(x: &mut Expander<'_, '_>) -> Option<Value> {
    let space = x.word("to");
    address(x, "barrier", space)
}

fn linear(x: &mut Expander<'_, '_>) {
    let (to, from) = (x.word("to"), if x.word("from").is_empty() { "global" } else { x.word("from") });
    let bytes = x.src("bytes");
    let (Some(to), Some(from)) = (address(x, "to", to), address(x, "from", from)) else { return };
    let mut operands = vec![to, from, bytes];
    let barrier = barrier(x);
    operands.extend(barrier);
    let mask = x.src_if("mask").map(|mask| x.zext(mask, Type::I32));
    operands.extend(mask);
    let reduce = (!x.word("op").is_empty()).then(|| {
        let ty = x.ty("T");
        // Unlike `red.global`, subnormals stay: the hardware's answers say so.
        (operation(x.word("op"), ty, true), ty.ir())
    });
    let op = BulkOp::Copy { barrier: barrier.is_some(), multicast: mask.is_some(), reduce };
    x.body.b.effect(Op::Bulk(op), &operands);
}

/// The map of a tensor operand, and the coordinates.
fn tensor(x: &mut Expander<'_, '_>) -> Option<(Value, Vec<Value>)> {
    let map = address(x, "map", "")?;
    let Some(OperandKind::Address(address)) = x.operand("map").map(|operand| &operand.kind) else {
        return None;
    };
    let Some(OperandKind::Vector(list)) = address.rest.first().map(|operand| &operand.kind) else {
        return None;
    };
    Some((map, list.iter().map(|at| x.value_as(at, Type::I32)).collect()))
}

fn tensor_load(x: &mut Expander<'_, '_>) {
    let to = x.word("to");
    let (Some(to), Some((map, coordinates)), Some(barrier)) = (address(x, "to", to), tensor(x), barrier(x))
    else {
        return;
    };
    let mut operands = vec![to, map, barrier];
    operands.extend(coordinates);
    let im2col = x.has("im2col");
    if im2col {
        for shift in x.src_lanes("shifts", Type::I16) {
            let shift = x.zext(shift, Type::I32);
            operands.push(shift);
        }
    }
    let mask = x.src_if("mask").map(|mask| x.zext(mask, Type::I32));
    operands.extend(mask);
    let op = BulkOp::Load { rank: rank(x.chosen().word("rank")), im2col, multicast: mask.is_some() };
    x.body.b.effect(Op::Bulk(op), &operands);
}

fn tensor_store(x: &mut Expander<'_, '_>) {
    let (Some(from), Some((map, coordinates))) = (address(x, "from", "shared::cta"), tensor(x)) else {
        return;
    };
    let mut operands = vec![from, map];
    operands.extend(coordinates);
    let reduce = match x.word("op") {
        "add" => Some(AtomicOp::Add),
        "min" => Some(AtomicOp::MinU),
        "max" => Some(AtomicOp::MaxU),
        "inc" => Some(AtomicOp::Inc),
        "dec" => Some(AtomicOp::Dec),
        "and" => Some(AtomicOp::And),
        "or" => Some(AtomicOp::Or),
        "xor" => Some(AtomicOp::Xor),
        _ => None,
    };
    let im2col = x.has("im2col_no_offs");
    x.body
        .b
        .effect(Op::Bulk(BulkOp::Store { rank: rank(x.chosen().word("rank")), im2col, reduce }), &operands);
}

fn replace(x: &mut Expander<'_, '_>) {
    let at = x.number("at") as u8;
    let field = match x.word("field") {
        "global_address" => Field::Address,
        "rank" => Field::Rank,
        "box_dim" => Field::Extent(at),
        "global_dim" => Field::Size(at),
        "global_stride" => Field::Stride(at),
        "element_stride" => Field::Step(at),
        "elemtype" => Field::Element,
        "interleave_layout" => Field::Interleave,
        "swizzle_mode" => Field::Swizzle,
        _ => Field::Fill,
    };
    let value = match x.operand("value").map(|operand| &operand.kind) {
        Some(OperandKind::Immediate(_)) => {
            let value = x.number("value");
            x.imm(Type::I64, value)
        }
        _ => {
            let value = x.src("value");
            x.zext(value, Type::I64)
        }
    };
    let space = x.word("space");
    let Some(map) = address(x, "map", space) else { return };
    x.body.b.effect(Op::Bulk(BulkOp::Replace(field)), &[map, value]);
}

fn fence_in_scope(x: &mut Expander<'_, '_>) {
    let scope = scope(x);
    fence(x, Order::AcqRel, scope);
}

/// A map made in shared memory goes to where others use it.
fn copy_map(x: &mut Expander<'_, '_>) {
    let bytes = x.imm(Type::I32, 128);
    let (Some(to), Some(from)) = (address(x, "to", "global"), address(x, "from", "shared::cta")) else {
        return;
    };
    let op = BulkOp::Copy { barrier: false, multicast: false, reduce: None };
    x.body.b.effect(Op::Bulk(op), &[to, from, bytes]);
    fence(x, Order::AcqRel, Scope::Sys);
}
