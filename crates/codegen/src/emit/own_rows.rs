//! Loads of a few elements that each lane has in a row, wherever that is: the members of a structure, or what a loop over a lane's own row takes in
//! one of its unrolled iterations.
//!
//! A gather touches memory once for each lane and each element. Here each lane's row is one load of 16 bytes, or of the 12 that a point in space
//! has, and shuffles within parts of registers make of four lanes' rows of four elements one vector of each element. A lane that is not active has
//! a row that anyone may read.
//!
//! A row of less than a word, as the colours of a pixel, is gathered as a word, from which each element is shifted out.

use super::address::Address;
use super::each::ANYWHERE;
use super::function::Emitter;
use super::mark::Mark;
use crate::llvm::{Type, Value};

/// The bytes of a load.
pub(super) const BYTES: u32 = 16;

/// The most bytes of a row.
pub(super) const MOST: u32 = transform::packs::MOST_BYTES as u32;

/// The words of a point.
const POINT: u32 = 3;

/// Bytes of a word.
pub(super) const WORD: u32 = 4;

impl<'c> Emitter<'_, 'c> {
    /// The numbers of elements of so many bytes that are loaded at once as a row, most first.
    pub(super) fn row_counts(&self, size: u32) -> Vec<i64> {
        let fits = |count: &u32| match size * count {
            bytes if bytes < WORD => self.loads_part_of_word(size, *count),
            bytes => bytes.is_power_of_two() || self.loads_own_rows(size, *count),
        };
        (2..=BYTES / size).rev().filter(fits).map(i64::from).collect()
    }

    /// Whether `count` elements of so many bytes are loaded as rows.
    pub(super) fn loads_own_rows(&self, size: u32, count: u32) -> bool {
        let parts = self.unit.machine.cpu().vector_bits() / (8 * BYTES);
        let is_whole =
            matches!(size, WORD | 8) && (size * count).is_multiple_of(BYTES) && size * count <= MOST;
        let is_point = size == WORD && count == POINT;
        (is_whole || is_point)
            && self.unit.lanes.is_multiple_of(parts * BYTES / size)
            && !self.wants_less_code()
    }

    /// Whether they are loaded as part of a word.
    pub(super) fn loads_part_of_word(&self, size: u32, count: u32) -> bool {
        let bytes = size * count;
        count > 1 && bytes < WORD && self.has_gather(WORD) && !self.wants_less_code()
    }

    /// Loads `count` elements for each active lane, which are part of a word that begins with them. What else the word has can be read as well if it is in
    /// the same page; at its end, they are the end of a word.
    pub(super) fn load_part_of_word(
        &mut self,
        address: &Address<'c>,
        lane: Type<'c>,
        count: u32,
    ) -> Vec<Value<'c>> {
        let b = self.unit.b;
        let bits = lane.scalar_bits();
        let others = WORD - bits / 8 * count;
        let word = self.unit.types.i32;
        let addresses = self.all_addresses(address);
        let in_page = self.in_one_page(addresses, WORD);
        let sooner = b.sub(addresses, addresses.ty().int_const(others.into()));
        let words = self.gather(word, b.select(in_page, addresses, sooner));
        let shifted = |by: u32| b.lshr(words, words.ty().int_const(by.into()));
        let words = b.select(in_page, words, shifted(8 * others));
        let element = |at: u32| {
            let element = b.trunc(b.lshr(words, words.ty().int_const((at * bits).into())), lane.to_int());
            b.bitcast(element, lane.vector(self.unit.lanes))
        };
        (0..count).map(element).collect()
    }

    /// Loads `count` elements for each active lane, which lie at multiples of `size`: all lanes' first, all lanes' second and so on.
    pub(super) fn load_own_rows(
        &mut self,
        address: &Address<'c>,
        lane: Type<'c>,
        count: u32,
        mark: Mark,
    ) -> Vec<Value<'c>> {
        let b = self.unit.b;
        let size = lane.scalar_bits() / 8;
        let places = match self.is_full() {
            true => self.place_of_each(address),
            false => {
                let (addresses, mask) = (self.all_addresses(address), self.active());
                let anyone = b.splat(self.readable_row(), self.unit.lanes);
                self.place_of_each(&Address::Varying(b.select(mask, addresses, anyone)))
            }
        };
        let per = BYTES / size;
        let part = |at: u32| {
            let mut elements = self.load_parts(&places, at * size, per.min(count - at), lane, mark);
            elements.truncate((count - at) as usize);
            elements
        };
        (0..count).step_by(per as usize).flat_map(part).collect()
    }

    /// Loads so many elements at this offset for every lane: all of 16 bytes, or three words of them.
    fn load_parts(
        &self,
        places: &[Value<'c>],
        offset: u32,
        count: u32,
        lane: Type<'c>,
        mark: Mark,
    ) -> Vec<Value<'c>> {
        let b = self.unit.b;
        let size = lane.scalar_bits() / 8;
        let per = (BYTES / size) as usize;
        let row = lane.vector(per as u32);
        let parts = (self.unit.machine.cpu().vector_bits() / (8 * BYTES)) as usize;
        let load = |place: Value<'c>| {
            let ptr = b.inttoptr(self.offset(place, offset.into()));
            if count as usize == per {
                return self.marked(b.load(row, ptr, ANYWHERE), mark);
            }
            // Processors take their time over loads under masks.
            let first = self.marked(b.load(lane.vector(2), ptr, ANYWHERE), mark);
            let last = b.ptr_add(ptr, self.unit.types.i64.int_const((2 * size).into()));
            let last = self.marked(b.load(lane, last, ANYWHERE), mark);
            b.insert(b.shuffle(first, first.ty().poison(), &[0, 1, -1, -1]), last, 2)
        };
        let mut elements = vec![Vec::new(); per];
        for lanes in places.chunks(parts * per) {
            // A register has the rows of lanes that are `per` apart, so that each of its parts ends with neighbours.
            let register = |first: usize| {
                self.concatenated(lanes[first..].iter().step_by(per).map(|place| load(*place)).collect())
            };
            let mut rows: Vec<Value<'c>> = (0..per).map(register).collect();
            if per == 4 {
                // The first two elements of two lanes, and the last two; then pairs of lanes go as one.
                let [first, other] = [0, 2].map(|at| self.interleaved(rows[at], rows[at + 1], per));
                let ty = rows[0].ty();
                let wide = self.unit.types.i64.vector(ty.lanes() / 2);
                let halves = |half: usize| {
                    let both = [first[half], other[half]].map(|pair| b.bitcast(pair, wide));
                    self.interleaved(both[0], both[1], 2).map(|all| b.bitcast(all, ty))
                };
                rows = [halves(0), halves(1)].concat();
            } else {
                rows = self.interleaved(rows[0], rows[1], 2).to_vec();
            }
            for (elements, register) in elements.iter_mut().zip(rows) {
                elements.push(register);
            }
        }
        elements.into_iter().map(|registers| self.concatenated(registers)).collect()
    }

    /// The lower halves of each 16 bytes of two registers interleaved, and the upper halves; so many elements are 16 bytes.
    fn interleaved(&self, one: Value<'c>, other: Value<'c>, per: usize) -> [Value<'c>; 2] {
        let lanes = one.ty().lanes() as usize;
        [0, per / 2].map(|from| {
            let order = |at: usize| {
                let element = at / per * per + from + at % per / 2;
                (if at.is_multiple_of(2) { element } else { element + lanes }) as i32
            };
            self.unit.b.shuffle(one, other, &(0..lanes).map(order).collect::<Vec<_>>())
        })
    }

    /// The address of a row that may always be read.
    fn readable_row(&mut self) -> Value<'c> {
        if let Some(row) = self.readable_row {
            return row;
        }
        let b = self.unit.b;
        let ty = self.unit.types.i64.vector(MOST / 8);
        let memory = self.stack(ty);
        let here = b.block();
        b.position_at_end(self.prologue);
        b.store(ty.zero(), memory, 8);
        let row = b.ptrtoint(memory, self.unit.types.i64);
        b.position_at_end(here);
        self.readable_row = Some(row);
        row
    }
}
