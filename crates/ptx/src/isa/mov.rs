//! `mov`: values, addresses, and packing and unpacking of vectors.

use simt_ir::{IntBinary, Shift, Type, Value};

use super::memory::vector_width;
use super::{Form, Ty, form};
use crate::lower::expander::Expander;
use crate::resolve::{Operand, OperandKind};

pub(super) const FORMS: &[Form] = &[
    form("mov.T{pred,$scalar} d=T, a:T", |x| {
        let ty = x.moving("d", x.ty("T"));
        let a = x.src_as("a", ty);
        x.set("d", a);
    }),
    form("mov.T{b16,b32,b64,u16,u32,u64,s16,s32,s64} d=T, a:symbol", address),
    form("mov.T{b16,b32,b64} d=T, a:T/", pack),
    form("mov.T{b16,b32,b64} d=T/, a:T", unpack),
    form("mov.T{b128} d=T, a:T", |x| {
        let halves = x.src_pair("a");
        x.set_pair("d", halves);
    })
    .since(8, 3, 70),
    form("mov.T{b128} d=T, a:symbol", address).since(8, 3, 70),
    form("mov.T{b128} d=T, a:T/", |x| {
        let parts = x.elements("a");
        let halves = parts.chunks(parts.len() / 2).map(|half| packed(x, half, Type::I64)).collect::<Vec<_>>();
        x.set_pair("d", [halves[0], halves[1]]);
    })
    .since(8, 3, 70),
    form("mov.T{b128} d=T/, a:T", |x| {
        let parts = x.elements("d");
        let halves = x.src_pair("a");
        for (half, parts) in halves.into_iter().zip(parts.chunks(parts.len() / 2)) {
            unpack_into(x, half, parts);
        }
    })
    .since(8, 3, 70),
    form("mov.vec{v2,v4}.T{b16,b32,b64,u16,u32,u64,s16,s32,s64,f32,f64} d=T*, a:T*", |x| {
        let ty = x.ty("T");
        let values = x.src_lanes("a", ty.ir());
        x.set_lanes("d", ty, &values);
    })
    .only_if(vector_width),
];

fn address(x: &mut Expander<'_, '_>) {
    let ty = x.ty("T");
    let Some(a) = x.operand("a") else { return };
    let address = match &a.kind {
        OperandKind::Symbol(symbol, offset) => x.body.address_of(*symbol, *offset, a),
        OperandKind::Element(symbol, index) => x.body.address_of_element(*symbol, index, a),
        _ => return,
    };
    let address = x.fit(address, ty.ir());
    x.set("d", address);
}

fn pack(x: &mut Expander<'_, '_>) {
    let parts = x.elements("a");
    let whole = packed(x, &parts, x.ty("T").ir());
    x.set("d", whole);
}

/// The parts as one value, the first lowest.
fn packed<'r>(x: &mut Expander<'_, 'r>, parts: &[&'r Operand<'r, 'r>], whole: Type) -> Value {
    let bits = whole.bits() / parts.len() as u32;
    let part = Type::int(bits).unwrap_or(Type::I8);
    let mut packed: Option<Value> = None;
    for (operand, index) in parts.iter().zip(0u32..) {
        let value = x.value_as(operand, part);
        let mut value = x.zext(value, whole);
        if index > 0 {
            value = x.shift_imm(Shift::Left, value, index * bits);
        }
        packed = Some(match packed {
            Some(lower) => x.int(IntBinary::Or, lower, value),
            None => value,
        });
    }
    packed.unwrap_or_else(|| x.imm(whole, 0))
}

fn unpack(x: &mut Expander<'_, '_>) {
    let parts = x.elements("d");
    let whole = x.src("a");
    unpack_into(x, whole, &parts);
}

/// Gives each of the parts its share of a value, which was read before any of them is written: a part may be the source.
fn unpack_into<'r>(x: &mut Expander<'_, 'r>, whole: Value, parts: &[&'r Operand<'r, 'r>]) {
    let bits = x.bits(whole) / parts.len() as u32;
    let part = match bits {
        8 => Ty::B8,
        16 => Ty::B16,
        32 => Ty::B32,
        _ => Ty::B64,
    };
    for (operand, index) in parts.iter().zip(0u32..) {
        let value = if index > 0 { x.shift_imm(Shift::RightU, whole, index * bits) } else { whole };
        let value = x.fit(value, part.ir());
        x.set_operand(operand, part, value);
    }
}
