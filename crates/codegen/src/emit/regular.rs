//! Accesses whose lanes turn out to lie side by side when they run.
//!
//! An index that is computed from the places of threads by masks, quotients and remainders that are not known now, as in sorting networks,
//! Fourier transforms and tensors of any shape, mostly runs along the lanes all the same. Where it does, a vector access takes the place
//! of a gather or a scatter, and the test costs little beside these. An index that comes from memory or from numbers with fractions is as
//! irregular as what it comes from, and is not tested.

use simt_ir::{Access, Convert, Op, Order, Space, Type as IrType, Value as IrValue};
use transform::LaneShape;

use super::function::Emitter;
use super::memory::Address;
use crate::llvm::{IntPredicate, Value};

/// How far definitions are followed.
const DEPTH: u32 = 16;

/// Where an access goes if its lanes lie side by side.
pub(super) struct SideBySide<'c> {
    /// Whether they do.
    pub(super) holds: Value<'c>,
    /// Where, if so.
    pub(super) address: Address<'c>,
}

impl<'c> Emitter<'_, 'c> {
    /// A test whether lanes that access so many bytes each lie side by side, where that is not known but may well be.
    pub(super) fn side_by_side(
        &mut self,
        value: IrValue,
        access: Access,
        address: &Address<'c>,
        bytes: u32,
    ) -> Option<SideBySide<'c>> {
        if self.wants_less_code()
            || access.order != Order::Weak
            || access.space == Space::Local
            || !self.p.shapes.of(value).is_varying()
            || !self.is_of_places(value, DEPTH)
        {
            return None;
        }
        let b = self.unit.b;
        let i64 = self.unit.types.i64;
        let is_narrow = self.p.func.ty(value) == IrType::I32;
        let (numbers, step, offset) = match address {
            Address::Indexed(_, indices, scale) if *scale == bytes => (*indices, 1, 0),
            Address::Varying(_) if is_narrow => (self.vector(value), bytes, access.offset),
            Address::Varying(addresses) => (*addresses, bytes, 0),
            _ => return None,
        };
        // A lane that is not active may have anything, but what it has must be one number here and where the access goes.
        let numbers = b.freeze(numbers);
        let last = u64::from((self.unit.lanes - 1) * step);
        let distances: Vec<u64> =
            (0..u64::from(self.unit.lanes)).map(|lane| lane * u64::from(step)).collect();
        let first = b.extract(numbers, 0);
        let along = b.add(b.splat(first, self.unit.lanes), numbers.ty().int_vector(&distances));
        let mut holds = b.all(b.icmp(IntPredicate::Eq, numbers, along));
        let wide = match first.ty() == i64 {
            true => first,
            false => {
                // Extended they are side by side only if they do not wrap before.
                let first = self.offset(first, offset);
                let most = first.ty().int_const(i32::MAX as u64 - last);
                holds = b.and(holds, b.icmp(IntPredicate::Sle, first, most));
                b.sext(first, i64)
            }
        };
        let start = match address {
            Address::Indexed(base, _, scale) => b.add(*base, b.mul(wide, i64.int_const((*scale).into()))),
            _ if is_narrow => b.add(wide, self.window_scalar(access.space)),
            _ => wide,
        };
        let offsets = (0..i64::from(self.unit.lanes)).map(|lane| lane * i64::from(bytes)).collect();
        Some(SideBySide { holds, address: Address::Affine(start, offsets) })
    }

    /// Whether an integer is computed from places of lanes, and what is the same for all, alone.
    fn is_of_places(&self, value: IrValue, depth: u32) -> bool {
        let p = self.p;
        if *p.shapes.of(value) != LaneShape::Varying {
            return true;
        }
        let Some(data) = p.func.def_inst(value).filter(|_| depth > 0) else { return false };
        let is_integer = |value: IrValue| p.func.ty(value).is_int();
        let is_plain = match data.op {
            Op::Int(_) | Op::IntUnary(_) | Op::Shift(_) => is_integer(value),
            Op::Convert(Convert::SExt | Convert::ZExt | Convert::Trunc) => is_integer(data.args[0]),
            Op::ToGeneric(space) | Op::FromGeneric(space) => space != Space::Local,
            _ => false,
        };
        is_plain && data.args.iter().all(|arg| self.is_of_places(*arg, depth - 1))
    }
}
