//! Loads of lanes that are at one of two places, as one bit of each lane's number tells: a table of two rows, such as the coefficients of sine and
//! cosine. Both are loaded for all lanes, and each lane takes one: a gather would load for each.

use simt_ir::{Access, Convert, IntBinary, Op, Order, Shift, SourceLoc, Space, Value as IrValue};
use transform::disjoint::Bits;
use transform::facts::Facts;

use super::address::Address;
use super::function::Emitter;
use crate::llvm::{IntPredicate, Type, Value};

impl<'c> Emitter<'_, 'c> {
    /// Loads `count` elements for each lane if all lanes are at one of two places. A place that no lane is at is not touched.
    pub(super) fn load_of_two_places(
        &mut self,
        address: IrValue,
        access: Access,
        lane: Type<'c>,
        count: u32,
        loc: SourceLoc,
    ) -> Option<Vec<Value<'c>>> {
        let b = self.unit.b;
        let p = self.p;
        let sum = p.func.def_inst(address)?;
        let is_plain = access.order == Order::Weak && access.space != Space::Local;
        if !is_plain || sum.op != Op::Int(IntBinary::Add) || !p.shapes.of(address).is_varying() {
            return None;
        }
        let at = (0..2).find(|at| p.shapes.of(sum.args[*at]).is_uniform())?;
        let (base, row) = (sum.args[at], sum.args[1 - at]);
        let distance = self.possible_bits(row);
        if distance.count_ones() != 1 || distance >= 1 << 31 {
            return None;
        }
        let bit = self.narrowest(row);
        if !self.is_at_hand(base) || !self.is_at_hand(bit) {
            return None;
        }
        let Address::Uniform(first) = self.address(base, access) else { return None };
        let size = lane.scalar_bits() / 8;
        self.check_alignment(address, access, size * count, loc, None);
        let row = self.vector(bit);
        let is_second = b.icmp(IntPredicate::Ne, row, row.ty().zero());
        let active = self.active();
        let any = |of: Value<'c>| b.any(b.and(of, active));
        let (first_is, second_is) = (any(b.not(is_second)), any(is_second));
        let second = self.offset(first, distance as i64);
        let places = [b.select(first_is, first, second), b.select(second_is, second, first)];
        let element = |at: u32| {
            let [first, second] = places.map(|place| {
                let ptr = b.inttoptr(self.offset(place, i64::from(at * size)));
                b.splat(b.load(lane, ptr, size), self.unit.lanes)
            });
            b.select(is_second, second, first)
        };
        Some((0..count).map(element).collect())
    }

    /// The bits of a number that may be set in some lane.
    fn possible_bits(&self, value: IrValue) -> u64 {
        let p = self.p;
        Bits::new(&p.func, Facts::new(&p.func, &p.cfg, &p.dom, self.unit.shape)).of(value)
    }

    /// What a number of one bit is made of, as far back as it is that one bit, moved or extended.
    fn narrowest(&mut self, mut value: IrValue) -> IrValue {
        let func = &self.p.func;
        loop {
            let Some(data) = func.def_inst(value) else { return value };
            let is_moved = match data.op {
                Op::Convert(Convert::ZExt | Convert::SExt) => true,
                Op::Shift(Shift::Left) | Op::Int(IntBinary::Mul) => func.constant(data.args[1]).is_some(),
                _ => false,
            };
            let is_one = is_moved && self.possible_bits(data.args[0]).count_ones() == 1;
            if !is_one || !self.is_at_hand(data.args[0]) {
                return value;
            }
            value = data.args[0];
        }
    }
}
