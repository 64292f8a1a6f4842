//! Loads of lanes that are at one of two places, as one bit of each lane's number tells: a table of two rows, such as the coefficients of sine and
//! cosine. Both are loaded for all lanes, and each lane takes one: a gather would load for each.

use simt_ir::{Access, Convert, Function, IntBinary, Op, Order, Shift, SourceLoc, Space, Value as IrValue};

use super::address::Address;
use super::function::Emitter;
use crate::llvm::{IntPredicate, Type, Value};

/// How many definitions are followed.
const DEPTH: u32 = 8;

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
        let distance = possible_bits(&p.func, row, DEPTH);
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
            let is_one = is_moved && possible_bits(func, data.args[0], DEPTH).count_ones() == 1;
            if !is_one || !self.is_at_hand(data.args[0]) {
                return value;
            }
            value = data.args[0];
        }
    }
}

/// The bits of a number that may be set in some lane.
fn possible_bits(func: &Function, value: IrValue, depth: u32) -> u64 {
    let mask = func.ty(value).mask();
    let Some(data) = func.def_inst(value).filter(|_| depth > 0) else { return mask };
    let of = |at: usize| possible_bits(func, data.args[at], depth - 1);
    let constant = |at: usize| func.constant(data.args[at]);
    let bits = match data.op {
        Op::Const(bits) => bits,
        Op::Int(IntBinary::And) => of(0) & of(1),
        Op::Int(IntBinary::Or | IntBinary::Xor) => of(0) | of(1),
        Op::Select => of(1) | of(2),
        Op::Convert(Convert::ZExt) => of(0),
        // A sign that is never set.
        Op::Convert(Convert::SExt) if of(0) <= func.ty(data.args[0]).mask() >> 1 => of(0),
        Op::Int(IntBinary::Mul) => match constant(1) {
            Some(factor) if factor.is_power_of_two() => of(0) << factor.trailing_zeros(),
            _ => mask,
        },
        Op::Shift(op @ (Shift::Left | Shift::RightU)) => match constant(1) {
            Some(by) if by < u64::from(func.ty(value).bits()) => {
                if op == Shift::Left {
                    of(0) << by
                } else {
                    of(0) >> by
                }
            }
            _ => mask,
        },
        _ => mask,
    };
    bits & mask
}
