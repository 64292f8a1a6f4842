//! Accesses whose lanes fall into groups that lie side by side, though nothing is known of how far the groups are apart: parts of rows
//! of a matrix whose width is an argument. Each group is one access of a vector; shuffles bring elements to their lanes.

use std::collections::BTreeMap;

use kernel_abi::CompileError;
use simt_ir::{Access, Convert, Def, IntBinary, Op, Order, Shift, Space, Type as IrType, Value as IrValue};

use super::LANES;
use super::address::Address;
use super::function::Emitter;
use super::mark::Mark;
use super::memory::Pattern;
use crate::llvm::{IntPredicate, Type, Value};
use crate::target::Level;

/// How far definitions are followed.
const DEPTH: u32 = 16;

/// What a value's lanes have besides something they have in common, modulo 2 to its width: known numbers, products of uniform values with
/// known numbers, and what shuffles give them, of which only is known from which lanes.
#[derive(Clone)]
struct Differences {
    known: Vec<i64>,
    products: BTreeMap<Vec<IrValue>, Vec<i64>>,
    /// The lane that each lane reads, by the shuffle's result.
    shuffled: BTreeMap<IrValue, Vec<i64>>,
}

impl Differences {
    fn known(known: &[i64]) -> Differences {
        Differences { known: known.to_vec(), products: BTreeMap::new(), shuffled: BTreeMap::new() }
    }

    fn shuffled(result: IrValue, sources: Vec<i64>) -> Differences {
        let none = Differences::known(&vec![0; sources.len()]);
        Differences { shuffled: BTreeMap::from([(result, sources)]), ..none }
    }

    fn plus(mut self, other: Differences, sign: i64) -> Differences {
        let add = |sum: &mut Vec<i64>, more: Vec<i64>| {
            for (sum, more) in sum.iter_mut().zip(more) {
                *sum = sum.wrapping_add(more.wrapping_mul(sign));
            }
        };
        add(&mut self.known, other.known);
        let lanes = self.known.len();
        for (factors, numbers) in other.products {
            add(self.products.entry(factors).or_insert_with(|| vec![0; lanes]), numbers);
        }
        self.shuffled.extend(other.shuffled);
        self
    }

    fn times(mut self, factor: i64) -> Differences {
        for numbers in self.products.values_mut().chain([&mut self.known]) {
            numbers.iter_mut().for_each(|number| *number = number.wrapping_mul(factor));
        }
        self
    }

    fn times_uniform(self, factor: IrValue) -> Differences {
        let none = vec![0; self.known.len()];
        let mut products = BTreeMap::new();
        for (mut factors, numbers) in self.products.into_iter().chain([(Vec::new(), self.known)]) {
            factors.push(factor);
            factors.sort_unstable();
            products.insert(factors, numbers);
        }
        Differences { known: none, products, shuffled: self.shuffled }
    }

    /// What differs between groups by more than known numbers, for each of which a group has one number.
    fn of_groups(&self) -> impl Iterator<Item = &Vec<i64>> {
        self.products.values().chain(self.shuffled.values())
    }
}

/// A value of 32 bits that is extended on the way to an address, and how its lanes differ: they do so as wide numbers only if it wraps
/// nowhere between lanes of a group.
struct Extended {
    value: IrValue,
    unsigned: bool,
    differences: Differences,
}

/// Groups of lanes, each of which accesses so many elements in a row.
pub(super) struct Groups<'c> {
    elements: u32,
    /// The address of each group's first element, and the lane that has it.
    pub(super) starts: Vec<Value<'c>>,
    first: Vec<usize>,
    /// Whether they are groups, where it must be tested.
    pub(super) hold: Option<Value<'c>>,
    /// Which element each lane has, counted through all groups.
    element_of: Vec<i32>,
    /// A lane that has the element, of each.
    lane_of: Vec<i32>,
}

impl<'c> Groups<'c> {
    /// Lanes whose differences are known numbers, as groups of consecutive elements of so many bytes; nothing if these are many, or not of
    /// one size.
    fn new(differences: &Differences, extended: &[Extended], bytes: i64, width: u32) -> Option<Groups<'c>> {
        let lanes = differences.known.len();
        let narrowed = |number: i64| number << (64 - width) >> (64 - width);
        let mut groups: BTreeMap<Vec<i64>, Vec<(i64, usize)>> = BTreeMap::new();
        for lane in 0..lanes {
            let all = extended.iter().flat_map(|extended| extended.differences.of_groups());
            let all = all.chain(differences.of_groups());
            let key = all.map(|numbers| narrowed(numbers[lane])).collect();
            // Told from the first lane on: what they have in common may be anything.
            let own = narrowed(differences.known[lane].wrapping_sub(differences.known[0]));
            groups.entry(key).or_default().push((own, lane));
        }
        let mut found = Groups {
            elements: 0,
            starts: Vec::new(),
            first: Vec::new(),
            hold: None,
            element_of: vec![0; lanes],
            lane_of: Vec::new(),
        };
        for mut members in groups.into_values() {
            members.sort_unstable();
            let start = members[0].0;
            found.first.push(members[0].1);
            let before = found.lane_of.len() as i64;
            for (offset, lane) in members {
                let (element, rest) = ((offset - start) / bytes, (offset - start) % bytes);
                let next = found.lane_of.len() as i64 - before;
                if rest != 0 || element > next {
                    return None;
                }
                if element == next {
                    found.lane_of.push(lane as i32);
                }
                found.element_of[lane] = (before + element) as i32;
            }
            let elements = (found.lane_of.len() as i64 - before) as u32;
            if found.elements != 0 && found.elements != elements {
                return None;
            }
            found.elements = elements;
        }
        let few = found.first.len() <= lanes / 4 && found.elements.is_power_of_two();
        few.then_some(found)
    }

    /// Whether each lane has an element of its own.
    fn are_distinct(&self) -> bool {
        self.lane_of.len() == self.element_of.len()
    }
}

impl<'c> Emitter<'_, 'c> {
    /// The groups of a weak access of `count` elements of `size` bytes for each lane, where the pattern of its addresses has none.
    pub(super) fn groups(
        &mut self,
        value: IrValue,
        access: Access,
        address: &Address<'c>,
        size: u32,
        count: u32,
        load: bool,
    ) -> Option<Groups<'c>> {
        // In code that is to be there soon, a gather is less; where there is none, lane by lane is more.
        if self.is_quick() && self.has_scattered(load, size)
            || access.space == Space::Local
            || access.order != Order::Weak
            || !self.is_sure(value)
            || !matches!(self.pattern(address, size, count, load), Pattern::Scattered)
            || matches!(address, Address::Uniform(_))
        {
            return None;
        }
        let mut extended = Vec::new();
        let differences = self.differences(value, DEPTH, &mut extended)?;
        let bytes = i64::from(size * count);
        let mut groups = Groups::new(&differences, &extended, bytes, self.p.func.ty(value).bits())?;
        let masked = !self.is_full();
        if (masked || !load) && !groups.are_distinct() || masked && !self.has_masked(size) {
            return None;
        }
        let narrow = self.p.func.ty(value) == IrType::I32;
        let window = self.window_scalar(access.space);
        for lane in &groups.first {
            let start = self.in_one_lane(value, *lane, DEPTH)?;
            // A lane that is not active may be in front of all shared memory.
            let start = match narrow && masked {
                true => self.unit.b.sext(self.offset(start, access.offset), self.unit.types.i64),
                false => self.in_window(start, narrow, access.offset),
            };
            groups.starts.push(self.unit.b.add(start, window));
        }
        for extended in &extended {
            self.test_extended(&mut groups, extended)?;
        }
        Some(groups)
    }

    /// Adds the test that a value wraps in no group.
    fn test_extended(&mut self, groups: &mut Groups<'c>, extended: &Extended) -> Option<()> {
        let b = self.unit.b;
        let known = &extended.differences.known;
        for (at, &first) in groups.first.iter().enumerate() {
            let of_group = at as u32 * groups.elements..(at as u32 + 1) * groups.elements;
            let (mut least, mut most) = (0, 0);
            for (lane, number) in known.iter().enumerate() {
                if of_group.contains(&(groups.element_of[lane] as u32)) {
                    let number = number.wrapping_sub(known[first]);
                    (least, most) = (number.min(least), number.max(most));
                }
            }
            if (least, most) == (0, 0) {
                continue;
            }
            let (low, high) = match extended.unsigned {
                true => (0, i64::from(u32::MAX)),
                false => (i64::from(i32::MIN), i64::from(i32::MAX)),
            };
            if most - least > i64::from(i32::MAX) {
                return None;
            }
            let own = self.in_one_lane(extended.value, first, DEPTH)?;
            let number = |number: i64| own.ty().int_const(number as u64);
            let above = b.sub(own, number(low - least));
            let holds = b.icmp(IntPredicate::Ule, above, number((high - most) - (low - least)));
            groups.hold = Some(groups.hold.map_or(holds, |hold| b.and(hold, holds)));
        }
        Some(())
    }

    /// How a value's lanes differ, if these extended values wrap nowhere.
    fn differences(&self, value: IrValue, depth: u32, extended: &mut Vec<Extended>) -> Option<Differences> {
        let p = self.p;
        if let Some(offsets) = p.shapes.of(value).offsets(self.unit.lanes as usize) {
            return Some(Differences::known(&offsets));
        }
        if depth == 0 {
            return None;
        }
        let Def::Result(inst, _) = p.func.def(value) else {
            let through = self.through_params(value);
            return if through == value { None } else { self.differences(through, depth - 1, extended) };
        };
        let data = p.func.inst(inst);
        let mut of = |at: usize| self.differences(data.args[at], depth - 1, extended);
        match data.op {
            Op::Int(IntBinary::Add) => Some(of(0)?.plus(of(1)?, 1)),
            Op::Int(IntBinary::Sub) => Some(of(0)?.plus(of(1)?, -1)),
            Op::Int(IntBinary::Mul) => {
                let at = (0..2).find(|at| p.shapes.of(data.args[*at]).is_uniform())?;
                let factor = data.args[at];
                Some(match p.func.constant(factor) {
                    Some(factor) => of(1 - at)?.times(factor as i64),
                    None => of(1 - at)?.times_uniform(self.through_params(factor)),
                })
            }
            Op::Shift(Shift::Left) => {
                let bits = u64::from(p.func.ty(value).bits());
                let amount = p.func.constant(data.args[1]).filter(|amount| *amount < bits)?;
                Some(of(0)?.times(1 << amount))
            }
            // Lanes that read the same lane get the same.
            Op::Shuffle(mode) if p.func.ty(value) != IrType::Pred => {
                let sources = self.known_sources(mode, data.args[1], data.args[2])?;
                let source = |lane: u32| lane - lane % LANES + sources[(lane % LANES) as usize].0;
                let sources = (0..self.unit.lanes).map(|lane| i64::from(source(lane))).collect();
                Some(Differences::shuffled(value, sources))
            }
            Op::ToGeneric(space) | Op::FromGeneric(space) if space != Space::Local => of(0),
            Op::Convert(op @ (Convert::SExt | Convert::ZExt)) if p.func.ty(data.args[0]) == IrType::I32 => {
                let mut inner = Vec::new();
                let differences = self.differences(data.args[0], depth - 1, &mut inner)?;
                // One extension on the way is enough.
                if !inner.is_empty() {
                    return None;
                }
                let known = differences.known.iter().map(|number| i64::from(*number as i32)).collect();
                let differences = Differences { known, ..differences };
                let (value, unsigned) = (data.args[0], op == Convert::ZExt);
                extended.push(Extended { value, unsigned, differences: differences.clone() });
                Some(differences)
            }
            _ => None,
        }
    }

    /// What a value is in one lane, or would be if the lane were active.
    fn in_one_lane(&mut self, value: IrValue, lane: usize, depth: u32) -> Option<Value<'c>> {
        let (p, b) = (self.p, self.unit.b);
        let lanes = self.unit.lanes as usize;
        if let Some(constant) = p.func.constant(value) {
            return Some(self.lane_type(value).int_const(constant));
        }
        if let Some(offsets) = p.shapes.of(value).offsets(lanes) {
            return self.is_at_hand(value).then(|| {
                let base = self.natural(value);
                self.offset(base, offsets[lane])
            });
        }
        if let Some(data) = p.func.def_inst(value).filter(|_| depth > 0)
            && let Op::Int(IntBinary::Add | IntBinary::Sub | IntBinary::Mul) | Op::Shift(Shift::Left) =
                data.op
            && let Some(first) = self.in_one_lane(data.args[0], lane, depth - 1)
            && let Some(second) = self.in_one_lane(data.args[1], lane, depth - 1)
        {
            return Some(match data.op {
                Op::Int(IntBinary::Add) => b.add(first, second),
                Op::Int(IntBinary::Sub) => b.sub(first, second),
                Op::Int(IntBinary::Mul) => b.mul(first, second),
                // The amount is a constant less than the width, or the lanes would not be groups.
                _ => b.shl(first, b.int_resize(second, first.ty(), false)),
            });
        }
        if let Some(data) = p.func.def_inst(value).filter(|_| depth > 0)
            && let Op::Convert(op @ (Convert::SExt | Convert::ZExt)) = data.op
            && p.func.ty(data.args[0]) == IrType::I32
            && let Some(narrow) = self.in_one_lane(data.args[0], lane, depth - 1)
        {
            let wide = self.lane_type(value);
            return Some(if op == Convert::SExt { b.sext(narrow, wide) } else { b.zext(narrow, wide) });
        }
        // In a lane that is not active it may be anything.
        (self.is_full() && self.is_at_hand(value)).then(|| {
            let vector = self.vector(value);
            b.extract(vector, lane as u32)
        })
    }

    /// The vectors that lanes of `count` elements load.
    pub(super) fn load_groups(
        &mut self,
        groups: &Groups<'c>,
        lane: Type<'c>,
        count: u32,
        mark: Mark,
    ) -> Result<Vec<Value<'c>>, CompileError> {
        let mask = self.active();
        let mask = self.in_groups(mask, groups);
        let mut pieces = self.load_runs(lane, &groups.starts, groups.elements, count, mask, mark)?;
        let padded = pieces.len().next_power_of_two();
        pieces.resize(padded, pieces[0]);
        let wide = self.concatenated(pieces);
        let picked = |index: u32| {
            let lanes: Vec<i32> =
                groups.element_of.iter().map(|element| element * count as i32 + index as i32).collect();
            self.picked(wide, &lanes)
        };
        Ok((0..count).map(picked).collect())
    }

    /// These elements of a vector. Processors without AVX-512 shuffle elements smaller than words one by one, but interleave them in registers, which
    /// makes columns of rows.
    pub(super) fn picked(&self, wide: Value<'c>, lanes: &[i32]) -> Value<'c> {
        let small = wide.ty().scalar_bits() < 32 && self.unit.machine.cpu().level() < Level::Avx512;
        match interleavings(lanes).filter(|_| small && wide.ty().lanes() as usize == lanes.len()) {
            None => self.unit.b.shuffle(wide, wide, lanes),
            Some(count) => (0..count).fold(wide, |wide, _| {
                let half = lanes.len() as i32 / 2;
                let order: Vec<i32> = (0..2 * half).map(|at| at / 2 + at % 2 * half).collect();
                self.unit.b.shuffle(wide, wide, &order)
            }),
        }
    }

    /// Stores what lanes of as many elements as there are vectors have.
    pub(super) fn store_groups(
        &mut self,
        groups: &Groups<'c>,
        values: &[Value<'c>],
        mark: Mark,
    ) -> Result<(), CompileError> {
        let b = self.unit.b;
        let count = values.len() as u32;
        let mask = self.active();
        let mask = self.in_groups(mask, groups);
        let values: Vec<Value<'c>> =
            values.iter().map(|value| b.shuffle(*value, *value, &groups.lane_of)).collect();
        let wide = self.join(&values);
        self.store_runs(wide, &groups.starts, groups.elements, count, mask, mark)
    }

    /// The lanes of a mask in the order of the groups' elements.
    fn in_groups(&self, mask: Value<'c>, groups: &Groups<'c>) -> Value<'c> {
        let b = self.unit.b;
        if self.is_full() || !groups.are_distinct() {
            return mask;
        }
        // Bits are shuffled one by one, bytes are not.
        let bytes = b.sext(mask, self.unit.context().int(8));
        let bytes = b.shuffle(bytes, bytes, &groups.lane_of);
        b.icmp(IntPredicate::Slt, bytes, bytes.ty().zero())
    }
}

/// How many times the halves of a vector are interleaved to have its elements in this order: each time the last bit of a place becomes the
/// first of where its element was.
fn interleavings(order: &[i32]) -> Option<u32> {
    let bits = order.len().is_power_of_two().then(|| order.len().ilog2())?;
    let from = |at: usize, count: u32| at >> count | at << (bits - count) & (order.len() - 1);
    (1..bits)
        .find(|count| order.iter().enumerate().all(|(at, &element)| element as usize == from(at, *count)))
}
