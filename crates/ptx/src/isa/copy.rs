//! Asynchronous copies from global to shared memory. A copy may be complete at any time before it is waited for: here it is when
//! it is issued, and waiting is nothing.

use simt_ir::{Access, IntBinary, IntCmp, Op, Space, Target, Terminator, Type, Value};

use super::rules::number;
use super::{Form, form};
use crate::lower::expander::Expander;
use crate::lower::place::Memory;
use crate::resolve::Operand;

pub(super) const FORMS: &[Form] = &[
    form("cp.async.cop{ca,cg}.space{shared,shared::cta}.global.L2::cache_hint?.fetch{$prefetch}? to:address, from:address, size:imm, bytes:u32, policy?:u64", copy)
        .effect()
        .since(7, 0, 80)
        .only_with(sizes),
    form("cp.async.cop{ca,cg}.space{shared,shared::cta}.global.L2::cache_hint?.fetch{$prefetch}? to:address, from:address, size:imm, ignore:pred!, policy?:u64", copy)
        .effect()
        .since(8, 3, 80)
        .only_with(sizes),
    form("cp.async.cop{ca,cg}.space{shared,shared::cta}.global.L2::cache_hint.fetch{$prefetch}? to:address, from:address, size:imm, policy:u64", copy)
        .effect()
        .since(7, 4, 80)
        .only_with(sizes),
    form("cp.async.cop{ca,cg}.space{shared,shared::cta}.global.fetch{$prefetch}? to:address, from:address, size:imm", copy)
        .effect()
        .since(7, 0, 80)
        .only_with(sizes),
    form("cp.async.commit_group", |_| {}).effect().since(7, 0, 80),
    form("cp.async.wait_group count:imm", |_| {}).effect().since(7, 0, 80),
    form("cp.async.wait_all", |_| {}).effect().since(7, 0, 80),
];

fn sizes(operands: &[Operand<'_, '_>]) -> Result<(), &'static str> {
    match (number(operands, 2), number(operands, 3)) {
        (Some(size @ (4 | 8 | 16)), Some(bytes)) if bytes > size => {
            Err("no more bytes than the size are copied")
        }
        (Some(4 | 8 | 16), _) => Ok(()),
        _ => Err("4, 8 or 16 bytes are copied"),
    }
}

/// One side of the copy.
#[derive(Clone, Copy)]
struct Side {
    space: Space,
    base: Value,
    offset: i64,
}

impl Side {
    fn access(self, lanes: u64) -> Access {
        Access { lanes: lanes as u8, ..Access::weak(self.space, self.offset) }
    }
}

fn side(x: &mut Expander<'_, '_>, name: &str, space: &str) -> Option<Side> {
    let operand = x.operand(name)?;
    match x.body.memory(operand, space) {
        Memory::At { space, base, offset } => Some(Side { space, base, offset }),
        Memory::Value { .. } => {
            x.refuse(operand, "this parameter is not in memory");
            None
        }
    }
}

/// Copies the bytes that are asked for; the rest of the destination becomes zero.
fn copy(x: &mut Expander<'_, '_>) {
    let size = x.number("size");
    let (Some(to), Some(from)) = (side(x, "to", "shared"), side(x, "from", "global")) else { return };
    if x.operand("ignore").is_some() {
        let ignore = x.src("ignore");
        let (none, all) = (x.imm(Type::I32, 0), x.imm(Type::I32, size));
        let bytes = x.select(ignore, none, all);
        return copy_some(x, to, from, size, bytes);
    }
    match x.src_if("bytes") {
        Some(bytes) if x.constant(bytes).is_none_or(|n| n < size) => copy_some(x, to, from, size, bytes),
        _ => copy_all(x, to, from, size),
    }
}

fn copy_all(x: &mut Expander<'_, '_>, to: Side, from: Side, size: u64) {
    let words = size / 4;
    let values = x.body.b.insts(Op::Load(from.access(words)), &[from.base], &vec![Type::I32; words as usize]);
    store(x, to, &values);
}

fn store(x: &mut Expander<'_, '_>, to: Side, values: &[Value]) {
    let args: Vec<Value> = std::iter::once(to.base).chain(values.iter().copied()).collect();
    x.body.b.effect(Op::Store(to.access(values.len() as u64)), &args);
}

/// A number of bytes known only at run time: all at once if it is the whole, else byte by byte over zeros.
fn copy_some(x: &mut Expander<'_, '_>, to: Side, from: Side, size: u64, bytes: Value) {
    let [whole, part, again, body, after] = std::array::from_fn(|_| x.body.b.block());
    let enough = x.cmp_imm(IntCmp::GeU, bytes, size);
    x.body.branch(enough, whole, part, false);

    x.body.continue_in(whole);
    copy_all(x, to, from, size);
    x.body.end(Terminator::Jump(Target::new(after)));

    x.body.continue_in(part);
    let zero = x.imm(Type::I32, 0);
    store(x, to, &vec![zero; size as usize / 4]);
    let at = x.body.b.var(Type::I32);
    x.body.b.write(at, zero);
    x.body.end(Terminator::Jump(Target::new(again)));

    x.body.continue_in(again);
    let index = x.body.b.read(at);
    let more = x.cmp(IntCmp::LtU, index, bytes);
    x.body.branch(more, body, after, false);

    x.body.continue_in(body);
    let source = advanced(x, from, index);
    let byte = x.op_ty(Op::Load(Access::weak(from.space, from.offset)), &[source], Type::I8);
    let target = advanced(x, to, index);
    x.body.b.effect(Op::Store(Access::weak(to.space, to.offset)), &[target, byte]);
    let next = x.int_imm(IntBinary::Add, index, 1);
    x.body.b.write(at, next);
    x.body.end(Terminator::Jump(Target::new(again)));

    x.body.continue_in(after);
}

/// The base of one side moved on by `index` bytes.
fn advanced(x: &mut Expander<'_, '_>, side: Side, index: Value) -> Value {
    let ty = x.type_of(side.base);
    let index = x.zext(index, ty);
    x.int(IntBinary::Add, side.base, index)
}
