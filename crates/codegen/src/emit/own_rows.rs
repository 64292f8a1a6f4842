//! Loads of a few elements that each lane has in a row, wherever that is: the members of a structure, or what a loop over a lane's own row takes in
//! one of its unrolled iterations.
//!
//! A gather touches memory once for each lane and each element. Here each lane's row is one load of 16 bytes, and shuffles within parts of
//! registers make of four lanes' rows of four elements one vector of each element. A lane that is not active has a row that anyone may read.

use super::address::Address;
use super::each::ANYWHERE;
use super::function::Emitter;
use super::memory::Mark;
use crate::llvm::{Type, Value};

/// The bytes of a load.
pub(super) const BYTES: u32 = 16;

/// The most bytes of a row.
pub(super) const MOST: u32 = transform::packs::MOST_BYTES as u32;

impl<'c> Emitter<'_, 'c> {
    /// Whether `count` elements of so many bytes are loaded so.
    pub(super) fn loads_own_rows(&self, size: u32, count: u32) -> bool {
        let parts = self.unit.machine.cpu().vector_bits() / (8 * BYTES);
        let is_whole = matches!(size, 4 | 8) && (size * count).is_multiple_of(BYTES) && size * count <= MOST;
        is_whole && self.unit.lanes.is_multiple_of(parts * BYTES / size) && !self.wants_less_code()
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
        (0..count)
            .step_by(per as usize)
            .flat_map(|at| self.load_parts(&places, at * size, lane, mark))
            .collect()
    }

    /// Loads 16 bytes at this offset for every lane.
    fn load_parts(&self, places: &[Value<'c>], offset: u32, lane: Type<'c>, mark: Mark) -> Vec<Value<'c>> {
        let b = self.unit.b;
        let size = lane.scalar_bits() / 8;
        let per = (BYTES / size) as usize;
        let row = lane.vector(per as u32);
        let parts = (self.unit.machine.cpu().vector_bits() / (8 * BYTES)) as usize;
        let load = |place: Value<'c>| {
            let ptr = b.inttoptr(self.offset(place, offset.into()));
            self.marked(b.load(row, ptr, ANYWHERE), mark)
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
