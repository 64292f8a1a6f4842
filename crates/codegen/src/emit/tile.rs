//! Accesses of a tile by its columns.
//!
//! Where threads that lie side by side take elements a row apart, as in a transposition, each lane's element is in another line of memory. The lanes
//! of a gang have several columns that lie side by side, though, and with them whole pieces of rows: these are accessed as vectors, and
//! transposed in registers, which takes a third of the time of gathering.

use kernel_abi::CompileError;

use super::Unit;
use super::address::Address;
use super::full::ActiveLanes;
use super::function::Emitter;
use super::mark::Mark;
use crate::llvm::{Type, Value};

/// Bytes of a row's piece from which on this is faster than lane by lane.
const PIECE: u32 = 16;

/// Rows of pieces: the lanes go down the first column, then down the next. All numbers are powers of two, and no two rows overlap.
#[derive(Debug, PartialEq)]
pub(super) struct Tile {
    rows: u32,
    columns: u32,
    /// Where the first row begins, and bytes from each to the next.
    first: i64,
    pitch: i64,
    /// Bytes of an element.
    size: u32,
}

impl Tile {
    /// What lanes with these offsets access, if it is a tile.
    pub(super) fn of(offsets: &[i64], size: u32) -> Option<Tile> {
        let &[first, second, ..] = offsets else { return None };
        let pitch = second.wrapping_sub(first);
        let step = |pair: &[i64]| pair[1].wrapping_sub(pair[0]) == pitch;
        let rows = 1 + offsets.windows(2).take_while(|pair| step(pair)).count();
        let columns = offsets.len() / rows;
        let tile = Tile { rows: rows as u32, columns: columns as u32, first, pitch, size };
        let at = |lane: usize| tile.place((lane % rows) as u32, (lane / rows) as u32);
        let fits = rows >= 4
            && rows.is_power_of_two()
            && columns.is_power_of_two()
            && tile.columns * size >= PIECE
            && pitch.unsigned_abs() >= u64::from(tile.columns * size);
        (fits && offsets.iter().enumerate().all(|(lane, offset)| *offset == at(lane))).then_some(tile)
    }

    /// The offset of an element.
    fn place(&self, row: u32, column: u32) -> i64 {
        let down = self.pitch.wrapping_mul(row.into());
        self.first.wrapping_add(down).wrapping_add((column * self.size).into())
    }

    /// The squares that fit into the registers of this machine: their side, and how many of them, one below the other, a register has a column of.
    fn squares(&self, unit: Unit<'_, '_>) -> (u32, u32) {
        let most = unit.machine.cpu().vector_bits() / 8 / self.size;
        let tall = self.rows.min(most);
        let side = self.columns.min(tall);
        (side, tall / side)
    }
}

impl<'c> Emitter<'_, 'c> {
    /// What is accessed as a tile, with its base, unless some lane is known not to access it.
    pub(super) fn tile(&self, address: &Address<'c>, size: u32, count: u32) -> Option<(Value<'c>, Tile)> {
        match address {
            Address::Affine(base, offsets)
                if count == 1 && self.active_lanes != ActiveLanes::NotAll && !self.is_quick() =>
            {
                Some((*base, Tile::of(offsets, size)?))
            }
            _ => None,
        }
    }

    /// Accesses a tile as a whole where all lanes are active, and otherwise as usual.
    pub(super) fn for_tile(
        &mut self,
        whole: impl FnOnce(&mut Self) -> Vec<Value<'c>>,
        usual: impl FnOnce(&mut Self) -> Result<Vec<Value<'c>>, CompileError>,
    ) -> Result<Vec<Value<'c>>, CompileError> {
        if self.is_full() {
            return Ok(whole(self));
        }
        let all = self.unit.b.all(self.active());
        self.either(all, |this| Ok(whole(this)), |this| this.knowing(ActiveLanes::NotAll, usual))
    }

    /// Loads a tile, of which each element has an active lane.
    pub(super) fn load_tile(&self, tile: &Tile, base: Value<'c>, lane: Type<'c>, mark: Mark) -> Value<'c> {
        let b = self.unit.b;
        let (side, stacked) = tile.squares(self.unit);
        let mut columns = vec![Vec::new(); tile.columns as usize];
        for left in (0..tile.columns).step_by(side as usize) {
            for top in (0..tile.rows).step_by((side * stacked) as usize) {
                let row = |row: u32| {
                    let ptr = b.inttoptr(self.offset(base, tile.place(row, left)));
                    self.loaded(lane.vector(side), ptr, mark)
                };
                let rows = |at: u32| (0..stacked).map(|square| row(top + square * side + at)).collect();
                let squares = (0..side).map(|at| self.concatenated(rows(at))).collect();
                for (column, part) in columns[left as usize..].iter_mut().zip(self.transposed(squares)) {
                    column.push(part);
                }
            }
        }
        self.concatenated(columns.into_iter().flatten().collect())
    }

    /// Stores a tile likewise.
    pub(super) fn store_tile(&self, tile: &Tile, base: Value<'c>, value: Value<'c>, mark: Mark) {
        let b = self.unit.b;
        let (side, stacked) = tile.squares(self.unit);
        for left in (0..tile.columns).step_by(side as usize) {
            for top in (0..tile.rows).step_by((side * stacked) as usize) {
                let part = |at: u32| b.subvector(value, (left + at) * tile.rows + top, side * stacked);
                for (at, rows) in self.transposed((0..side).map(part).collect()).into_iter().enumerate() {
                    for square in 0..stacked {
                        let place = tile.place(top + square * side + at as u32, left);
                        let row = b.subvector(rows, square * side, side);
                        self.marked(b.store(row, b.inttoptr(self.offset(base, place)), tile.size), mark);
                    }
                }
            }
        }
    }

    /// Squares, as wide as there are vectors, transposed: each vector has a row of each, and then a column. In each step squares of
    /// half the size change places across the diagonal.
    fn transposed(&self, mut rows: Vec<Value<'c>>) -> Vec<Value<'c>> {
        let b = self.unit.b;
        let lanes = rows[0].ty().lanes() as i32;
        let mut half = rows.len() / 2;
        while half > 0 {
            for upper in (0..rows.len()).filter(|row| row & half == 0) {
                let (above, below) = (rows[upper], rows[upper + half]);
                let far = half as i32;
                let pick = |left: i32, right: i32| -> Vec<i32> {
                    (0..lanes).map(|at| at + if at & far == 0 { left } else { right }).collect()
                };
                rows[upper] = b.shuffle(above, below, &pick(0, lanes - far));
                rows[upper + half] = b.shuffle(above, below, &pick(far, lanes));
            }
            half /= 2;
        }
        rows
    }
}
