//! Scattered accesses of all lanes, one after another, where the processor has no instruction that does them at once, or a slow one.
//!
//! Each lane's address should then be a number in a register of its own. Where the lanes differ by constants those go into the accesses, and
//! indices of 32 bits leave a vector two at a time and are extended and scaled as scalars, which is half of what addresses that were computed
//! as vectors take.

use simt_ir::Space;

use super::address::Address;
use super::function::Emitter;
use super::mark::{Kind, Mark};
use crate::llvm::{IntPredicate, Type, Value};

/// The most that one access of a lane's takes.
const BITS: u32 = 128;

/// Bytes of the largest word that an instruction scatters.
const MOST_SCATTERED: u32 = 8;

/// What loads of scattered words are aligned to: a word may be several smaller elements, which lie at any place.
pub(super) const ANYWHERE: u32 = 1;

impl<'c> Emitter<'_, 'c> {
    /// Loads `count` elements for each active lane from anywhere.
    pub(super) fn load_scattered(
        &mut self,
        address: &Address<'c>,
        lane: Type<'c>,
        count: u32,
        mark: Mark,
    ) -> Vec<Value<'c>> {
        if let Some(lanes) = self.lanes_for_all(mark) {
            let (first, mark) = (self.first_lanes(address, lanes), Mark { in_columns: false, ..mark });
            return self.by_first_lanes(lanes, |this| this.load_scattered(&first, lane, count, mark));
        }
        if self.loads_own_rows(lane.scalar_bits() / 8, count) {
            return self.load_own_rows(address, lane, count, mark);
        }
        if self.loads_part_of_word(lane.scalar_bits() / 8, count) {
            return self.load_part_of_word(address, lane, count);
        }
        let is_short = self.has_gather(4) && self.wants_less_code();
        let has_gather = self.has_fast_gather(lane.scalar_bits() / 8 * count);
        let one_by_one = !is_short && (!has_gather || self.loads_one_by_one(address, count));
        if one_by_one && self.is_full() {
            return self.load_one_by_one(address, lane, count, mark);
        }
        if one_by_one && has_gather && mark.kind == Kind::Near {
            let is_there = self.is_in_shared(address, lane.scalar_bits() / 8);
            let loaded = self.either(
                is_there,
                |this| Ok(this.load_one_by_one(address, lane, count, mark)),
                |this| Ok(this.gather_elements(address, lane, count)),
            );
            return loaded.expect("there are instructions for both");
        }
        self.gather_elements(address, lane, count)
    }

    /// Whether what all lanes have there is in the block's shared memory, where lanes that are not active may load as well.
    fn is_in_shared(&self, address: &Address<'c>, size: u32) -> Value<'c> {
        let (b, i64) = (self.unit.b, self.unit.types.i64);
        let Address::Affine(base, offsets) = address else { return self.unit.types.bit.zero() };
        let (least, most) =
            offsets.iter().fold((0, 0), |(least, most), at| (*at.min(&least), *at.max(&most)));
        let span = most - least + i64::from(size);
        let from = b.sub(self.offset(*base, least), self.window_scalar(Space::Shared));
        // Less than none is a large number: memory that ends sooner than it begins has no place for it.
        let room = b.sub(self.shared_window_bytes(), i64.int_const(span as u64));
        let has_room = b.icmp(IntPredicate::Sge, room, i64.zero());
        b.and(has_room, b.icmp(IntPredicate::Ule, from, room))
    }

    /// Loads `count` elements for each active lane by instructions that gather.
    fn gather_elements(&mut self, address: &Address<'c>, lane: Type<'c>, count: u32) -> Vec<Value<'c>> {
        let b = self.unit.b;
        let size = lane.scalar_bits() / 8;
        let addresses = self.all_addresses(address);
        let (word, per) = self.word_of(lane, count);
        let mut elements = Vec::new();
        for at in (0..count).step_by(per as usize) {
            let words = self.gather(word, self.offset(addresses, i64::from(at * size)));
            elements.extend(self.split(b.bitcast(words, lane.vector(self.unit.lanes * per)), per));
        }
        elements
    }

    /// The address of each lane.
    pub(super) fn place_of_each(&self, address: &Address<'c>) -> Vec<Value<'c>> {
        let b = self.unit.b;
        let lanes = self.unit.lanes;
        match address {
            Address::Uniform(address) => vec![*address; lanes as usize],
            Address::Affine(base, offsets) => {
                offsets.iter().map(|offset| self.offset(*base, *offset)).collect()
            }
            Address::Rows { bases, moved, offsets } => {
                let rows = offsets.chunks(self.unit.row_lanes() as usize).enumerate();
                let row = |(row, offsets): (usize, &[i64])| {
                    let base = b.extract(*bases, row as u32);
                    let base = moved.map_or(base, |moved| b.add(base, moved));
                    offsets.iter().map(|offset| self.offset(base, *offset)).collect::<Vec<_>>()
                };
                rows.flat_map(row).collect()
            }
            Address::Varying(addresses) => (0..lanes).map(|lane| b.extract(*addresses, lane)).collect(),
            Address::Indexed(base, indices, bytes) => {
                let place = |index| b.add(*base, b.mul(index, index.ty().int_const((*bytes).into())));
                self.widened_indices(*indices).into_iter().map(place).collect()
            }
        }
    }

    /// The lanes of a vector of signed integers of 32 bits, as integers of 64.
    fn widened_indices(&self, indices: Value<'c>) -> Vec<Value<'c>> {
        let b = self.unit.b;
        let (i32, i64) = (self.unit.types.i32, self.unit.types.i64);
        let lanes = indices.ty().lanes();
        let pairs = b.bitcast(indices, i64.vector(lanes / 2));
        let both = |pair: u32| {
            let pair = b.extract(pairs, pair);
            [b.sext(b.trunc(pair, i32), i64), b.ashr(pair, i64.int_const(32))]
        };
        (0..lanes / 2).flat_map(both).collect()
    }

    /// Loads `count` elements for every lane: all lanes' first, all lanes' second and so on.
    fn load_one_by_one(
        &self,
        address: &Address<'c>,
        lane: Type<'c>,
        count: u32,
        mark: Mark,
    ) -> Vec<Value<'c>> {
        let b = self.unit.b;
        let size = lane.scalar_bits() / 8;
        let per = count.min(BITS / lane.scalar_bits());
        let ty = if per == 1 { lane } else { lane.vector(per) };
        let places = self.place_of_each(address);
        let part = |at: u32| {
            let load = |place: &Value<'c>| {
                let ptr = b.inttoptr(self.offset(*place, (at * size).into()));
                self.marked(b.load(ty, ptr, ANYWHERE), mark)
            };
            let loaded = places.iter().map(load);
            if per > 1 {
                return self.split(self.concatenated(loaded.collect()), per);
            }
            let none = lane.vector(self.unit.lanes).poison();
            vec![loaded.zip(0..).fold(none, |all, (element, lane)| b.insert(all, element, lane))]
        };
        (0..count).step_by(per as usize).flat_map(part).collect()
    }

    /// Whether scattered loads are faster one by one than by an instruction that gathers them in several steps for each lane: the places are known but for a
    /// base, so there is nothing else to do than to load and to insert. It is more code, which pays where that runs again and again.
    fn loads_one_by_one(&self, address: &Address<'c>, count: u32) -> bool {
        let is_known = matches!(address, Address::Affine(..)) && count == 1;
        is_known && self.unit.machine.cpu().has_stepwise_gather() && self.is_often() && self.unit.lanes <= 64
    }

    /// Whether what is here runs again and again.
    fn is_often(&self) -> bool {
        let loops = &self.p.loops;
        !self.is_quick() && (loops.count() == 0 || loops.innermost(self.current).is_some())
    }

    /// Whether scattered stores of so many bytes a lane are made one by one: where no instruction scatters them, and where lanes whose places are
    /// known but for a base, or that have more than an instruction scatters at once, are faster so than by that instruction, which takes the processor several
    /// times as long. It is more code, which pays where that runs again and again, and for so many lanes.
    pub(super) fn stores_one_by_one(&self, address: &Address<'c>, bytes: u32) -> bool {
        let pays = || self.is_often() && self.unit.lanes <= 64;
        let is_faster = matches!(address, Address::Affine(..)) || bytes > MOST_SCATTERED;
        self.is_full() && (!self.has_scatter(bytes) || is_faster && pays())
    }

    /// Stores an element of each of these vectors for every lane, lowest lane first.
    pub(super) fn store_one_by_one(&self, address: &Address<'c>, values: &[Value<'c>], mark: Mark) {
        let b = self.unit.b;
        let places = self.place_of_each(address);
        let bits = values[0].ty().scalar_bits();
        let per = (values.len() as u32).min(BITS / bits);
        for (part, values) in (0..).zip(values.chunks(per as usize)) {
            let wide = self.join(values);
            for (place, lane) in places.iter().zip(0..) {
                let value = match per {
                    1 => b.extract(wide, lane),
                    _ => b.subvector(wide, lane * per, per),
                };
                let ptr = b.inttoptr(self.offset(*place, i64::from(part * per * bits / 8)));
                self.marked(b.store(value, ptr, bits / 8), mark);
            }
        }
    }
}
