//! Memory on the stack of a thread, which grows upwards in its local window.

use simt_ir::{IntBinary, IntCmp, Op, Type};

use super::{Form, form};
use crate::lower::expander::Expander;
use crate::resolve::{Operand, OperandKind};

pub(super) const FORMS: &[Form] = &[
    form("alloca.T{u32,u64} d=T, size:T, align?:imm", alloca).effect().since(7, 3, 52).only_with(alignment),
    form("stacksave.T{u32,u64} d=T", |x| {
        let pointer = x.op_ty(Op::StackSave, &[], Type::I64);
        let pointer = x.fit(pointer, x.ty("T").ir());
        x.set("d", pointer);
    })
    .effect()
    .since(7, 3, 52),
    form("stackrestore.T{u32,u64} a:T", |x| {
        let pointer = x.src("a");
        let pointer = x.zext(pointer, Type::I64);
        x.body.b.effect(Op::StackRestore, &[pointer]);
    })
    .effect()
    .since(7, 3, 52),
];

/// What an allocation is a multiple of at least.
const LEAST: u64 = 8;
/// The largest alignment that can be asked for.
const MOST: u64 = 1 << 23;

fn alignment(operands: &[Operand<'_, '_>]) -> Result<(), &'static str> {
    match operands.get(2).map(|operand| &operand.kind) {
        Some(OperandKind::Immediate(value))
            if value.integer().is_none_or(|align| !align.is_power_of_two() || align > MOST) =>
        {
            Err("an alignment is a power of two up to 2^23")
        }
        _ => Ok(()),
    }
}

fn alloca(x: &mut Expander<'_, '_>) {
    let ty = x.ty("T").ir();
    let align = x.number("align").max(LEAST);
    let size = x.src("size");
    let size = x.zext(size, Type::I64);
    let pointer = x.op_ty(Op::StackSave, &[], Type::I64);
    let pointer = x.int_imm(IntBinary::Add, pointer, align - 1);
    let start = x.int_imm(IntBinary::And, pointer, align.wrapping_neg());
    let end = x.int(IntBinary::Add, start, size);
    // A size that reaches around the address space is too much for any stack.
    let wraps = x.cmp(IntCmp::LtU, end, start);
    let all = x.imm(Type::I64, u64::MAX);
    let end = x.select(wraps, all, end);
    x.body.b.effect(Op::StackRestore, &[end]);
    let start = x.fit(start, ty);
    x.set("d", start);
}
