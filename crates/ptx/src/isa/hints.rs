//! Instructions that only advise the hardware. They are checked, and there is nothing to do.

use simt_ir::Type;

use super::rules::number;
use super::{Form, form};
use crate::ast::Immediate;
use crate::lower::expander::Expander;
use crate::resolve::{Operand, OperandKind};

pub(super) const FORMS: &[Form] = &[
    form("prefetch.space{global,local}?.level{L1,L2} a:address", nothing).effect().since(2, 0, 20),
    form("prefetch.space{global}?.level{L2::evict_last,L2::evict_normal} a:address", nothing).effect().since(7, 4, 80),
    form("prefetch.space{const,param}?.tensormap a:address", nothing).effect().since(8, 0, 90),
    form("prefetchu.L1 a:address", nothing).effect().since(2, 0, 20),
    form("applypriority.space{global}?.L2::evict_normal a:address, size:imm", nothing).effect().only_with(one_line).since(7, 4, 80),
    form("discard.space{global}?.L2 a:address, size:imm", nothing).effect().only_with(one_line).since(7, 4, 80),
    form("createpolicy.fractional.primary{L2::evict_last,L2::evict_normal,L2::evict_first,L2::evict_unchanged}.secondary{L2::evict_first,L2::evict_unchanged}?.b64 d=b64, fraction?:f32", no_policy).only_with(some_part).since(7, 4, 80),
    form("createpolicy.range.space{global}?.primary{L2::evict_last,L2::evict_normal,L2::evict_first,L2::evict_unchanged}.secondary{L2::evict_first,L2::evict_unchanged}?.b64 d=b64, a:address, primary:u32, total:u32", no_policy).only_with(within).since(7, 4, 80),
    form("createpolicy.cvt.L2.b64 d=b64, a:b64", no_policy).since(7, 4, 80),
    form("pmevent a:imm", nothing).effect().only_with(one_of_16).since(1, 4, 10),
    form("pmevent.mask a:imm", nothing).effect().only_with(some_of_16).since(3, 0, 20),
    form("setmaxnreg.action{inc,dec}.sync.aligned.u32 count:imm", nothing).effect().only_with(some_registers).since(8, 0, 90),
    // Launches do not overlap here, so what a kernel waits for has happened.
    form("griddepcontrol.action{launch_dependents,wait}", nothing).effect().since(7, 8, 90),
];

fn rule(legal: bool, why: &'static str) -> Result<(), &'static str> {
    if legal { Ok(()) } else { Err(why) }
}

fn one_line(operands: &[Operand<'_, '_>]) -> Result<(), &'static str> {
    rule(number(operands, 1) == Some(128), "the size is 128 bytes")
}

/// The part of a range that is treated otherwise lies in it, where both sizes are known.
fn within(operands: &[Operand<'_, '_>]) -> Result<(), &'static str> {
    match (super::rules::number(operands, 2), super::rules::number(operands, 3)) {
        (Some(primary), Some(total)) if primary > total => Err("the part is larger than the whole"),
        _ => Ok(()),
    }
}

fn some_part(operands: &[Operand<'_, '_>]) -> Result<(), &'static str> {
    let fraction = match operands.get(1).map(|operand| &operand.kind) {
        Some(OperandKind::Immediate(Immediate::F32(bits))) => f64::from(f32::from_bits(*bits)),
        Some(OperandKind::Immediate(Immediate::F64(bits))) => f64::from_bits(*bits),
        _ => 1.0,
    };
    rule(fraction > 0.0 && fraction <= 1.0, "a fraction is above 0 and at most 1")
}

fn one_of_16(operands: &[Operand<'_, '_>]) -> Result<(), &'static str> {
    rule(number(operands, 0).is_some_and(|event| event < 16), "an event is one of 0 to 15")
}

fn some_of_16(operands: &[Operand<'_, '_>]) -> Result<(), &'static str> {
    rule(number(operands, 0).is_some_and(|events| events < 1 << 16), "events are a mask of 16 bits")
}

fn some_registers(operands: &[Operand<'_, '_>]) -> Result<(), &'static str> {
    let fits = |count: u64| (24..=256).contains(&count) && count.is_multiple_of(8);
    rule(number(operands, 0).is_some_and(fits), "registers are a multiple of 8 from 24 to 256")
}

fn nothing(_: &mut Expander<'_, '_>) {}

/// A policy that accesses are free to ignore, as they do.
fn no_policy(x: &mut Expander<'_, '_>) {
    let d = x.imm(Type::I64, 0);
    x.set("d", d);
}
