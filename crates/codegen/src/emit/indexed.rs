//! Scattered accesses that have one base and an index of 32 bits in each lane: the processor takes these as they are, in half as many
//! instructions as it takes addresses in, and computes the addresses itself. Where lanes go one by one (`each`) the vectors are shorter, too.

use simt_ir::{Access, Convert, IntBinary, Op, Order, Shift, Space, Type as IrType, Value as IrValue};

use super::address::Address;
use super::function::Emitter;
use super::mark::Mark;
use crate::llvm::{Type, Value};

/// An index, what is added to it once it is extended, which is the same for all lanes, and what the sum is multiplied by.
struct ScaledIndex {
    index: IrValue,
    moves: Vec<IrValue>,
    scale: u32,
}

impl<'c> Emitter<'_, 'c> {
    /// The host addresses of an access in this form, if the address is computed like that and the access may be a gather or a scatter.
    pub(super) fn indexed(&mut self, address: IrValue, access: Access, bytes: u32) -> Option<Address<'c>> {
        let is_simple = access.order == Order::Weak && access.space != Space::Local;
        if !is_simple || !self.p.shapes.of(address).is_varying() {
            return None;
        }
        // Elements of less than a word go one by one where the processor would gather them in steps.
        let goes_one_by_one = self.is_full() && !self.has_fast_gather(bytes) && !self.wants_less_code();
        if self.has_scatter(4) && (access.lanes > 1 || !self.has_scatter(bytes) && !goes_one_by_one) {
            return None;
        }
        self.by_index(address, access)
    }

    /// Likewise, whatever accesses are made of it.
    pub(super) fn by_index(&mut self, address: IrValue, access: Access) -> Option<Address<'c>> {
        if self.p.func.ty(address) == IrType::I32 {
            let indices = self.vector(address);
            let indices = self.offset(indices, access.offset);
            return Some(Address::Indexed(self.window_scalar(access.space), indices, 1));
        }
        if self.p.func.ty(address) != IrType::I64 {
            return None;
        }
        let (scaled, moves) = self.before_moves(address);
        let (first, others) = moves.split_first()?;
        let scaled = self.scaled_index(scaled)?;
        let b = self.unit.b;
        let base = others.iter().fold(self.natural(*first), |sum, by| b.add(sum, self.natural(*by)));
        let start = b.add(base, self.window_scalar(access.space));
        let scale = start.ty().int_const(scaled.scale.into());
        let further = |sum, by: &IrValue| b.add(sum, b.mul(self.natural(*by), scale));
        let start = scaled.moves.iter().fold(start, further);
        let start = self.offset(start, access.offset);
        Some(Address::Indexed(start, self.vector(scaled.index), scaled.scale))
    }

    /// Pointers to the elements that indices tell.
    pub(super) fn elements(&self, base: Value<'c>, indices: Value<'c>, bytes: u32) -> Value<'c> {
        // Not extended here: where that lies in another block, LLVM does not see that the indices are of 32 bits.
        self.unit.b.ptr_index(self.unit.b.inttoptr(base), indices, bytes)
    }

    /// Loads the elements that indices tell for the active lanes.
    pub(super) fn gather_indexed(
        &mut self,
        lane: Type<'c>,
        base: Value<'c>,
        indices: Value<'c>,
        bytes: u32,
        mark: Mark,
    ) -> Value<'c> {
        let b = self.unit.b;
        if let Some(lanes) = self.lanes_for_all(mark) {
            let (first, mark) = (b.subvector(indices, 0, lanes), Mark { in_columns: false, ..mark });
            let gather = |this: &mut Self| vec![this.gather_indexed(lane, base, first, bytes, mark)];
            return self.by_first_lanes(lanes, gather).remove(0);
        }
        let (mask, ty) = (self.active(), lane.vector(self.unit.lanes));
        b.gather(ty, self.elements(base, indices, bytes), mark.alignment(lane), mask, ty.zero())
    }

    /// An index of 32 bits that is extended, and multiplied by what a processor can multiply it by where it gathers.
    fn scaled_index(&mut self, value: IrValue) -> Option<ScaledIndex> {
        let func = &self.p.func;
        let (wide, scale) = match func.def_inst(value) {
            Some(data) if data.op == Op::Int(IntBinary::Mul) => {
                match [0, 1].map(|at| func.constant(data.args[at])) {
                    [_, Some(factor)] => (data.args[0], factor),
                    [Some(factor), _] => (data.args[1], factor),
                    _ => return None,
                }
            }
            Some(data) if data.op == Op::Shift(Shift::Left) => {
                (data.args[0], 1u64.checked_shl(func.constant(data.args[1])?.try_into().ok()?)?)
            }
            _ => (value, 1),
        };
        let is_scale = matches!(scale, 1 | 2 | 4 | 8) || !self.has_scatter(4);
        let scale = u32::try_from(scale).ok().filter(|_| is_scale)?;
        let (extended, moves) = self.before_moves(wide);
        let extension = self.p.func.def_inst(extended)?;
        let is_index = extension.op == Op::Convert(Convert::SExt)
            && self.p.func.ty(extension.args[0]) == IrType::I32
            && self.is_at_hand(extension.args[0]);
        is_index.then(|| ScaledIndex { index: extension.args[0], moves, scale })
    }
}
