//! Factors in shared memory that descriptors name (PTX `wgmma`), and what lanes of a warp bring to them that do not take part.
//!
//! The lanes that are there load their own parts of such a factor. Those of the others come from here: the hardware reads factors in
//! shared memory as a whole, whoever has exited. Of registers it takes what they still hold (an H200's answers).

use super::{LANES, MatrixMultiply};

/// Which factors of a warpgroup's product lie in shared memory, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InMemory {
    /// The elements of a row of the first factor stand side by side there, rather than a column's. It is in registers if there is nothing.
    pub a_by_row: Option<bool>,
    /// Those of a column of the second factor do.
    pub b_by_column: bool,
    /// The first factor's elements have got other signs.
    pub negated: bool,
}

/// A factor in shared memory, whose rows are those of the first factor, or the columns of the second.
///
/// Its units of 16 bytes lie in lines, eight to a piece. What stands side by side in memory goes on from unit to unit, what does not from
/// line to line; so the place of an element is a unit and bytes within it, and a group of eight with a line of that.
struct Factor {
    start: u32,
    /// Bytes from a piece to that of the next units, and to that of the next eight lines.
    next_units: u32,
    next_eight: u32,
    /// Units of a line, as a power of two. So many bits of an address's 128-byte number permute them, counted from the base.
    line_shift: u32,
    base: u32,
    by_row: bool,
}

impl Factor {
    fn new(descriptor: u64, by_row: bool) -> Factor {
        let field = |at: u32| ((descriptor >> at & 0x3fff) << 4) as u32;
        let (start, leading, stride) = (field(0), field(16), field(32));
        // Modes 1, 2, 3 permute 8, 4, 2 units.
        let line_shift = match (descriptor >> 62) as u32 {
            0 => 0,
            mode => 4 - mode,
        };
        // Without permutation the two distances of what lies by columns change places.
        let (next_units, next_eight) =
            if by_row || line_shift != 0 { (leading, stride) } else { (stride, leading) };
        Factor { start, next_units, next_eight, line_shift, base: (descriptor >> 49) as u32, by_row }
    }

    /// The address in the shared window of bytes within a unit.
    fn address(&self, line: u32, within: u32, unit: u32, eight: u32) -> u32 {
        let mask = (1 << self.line_shift) - 1;
        let address = [
            line << 4 << self.line_shift,
            within,
            (unit >> self.line_shift).wrapping_mul(self.next_units),
            eight.wrapping_mul(self.next_eight),
            (unit & mask) << 4,
        ]
        .into_iter()
        .fold(self.start, u32::wrapping_add);
        address ^ (((address >> 7).wrapping_sub(self.base)) & mask) << 4
    }

    /// A lane's register that holds elements of a group of eight rows and of a group of columns that takes 16 bytes of a row.
    fn register<E>(
        &self,
        lane: u32,
        [rows, columns]: [u32; 2],
        read: &mut impl FnMut(u32, usize) -> Result<u64, E>,
    ) -> Result<u64, E> {
        let (outer, quarter) = (lane / 4, lane % 4);
        if self.by_row {
            return read(self.address(outer, 4 * quarter, columns, rows), 4);
        }
        let mut half = |line: u32| read(self.address(line, 2 * outer, rows, columns), 2);
        Ok(half(2 * quarter)? | half(2 * quarter + 1)? << 16)
    }
}

impl MatrixMultiply {
    /// The register of a lane that does not take part, by its number among the operands: what the lane would have loaded of a factor in
    /// shared memory, with `warp` as its warp's number, or nothing if the register is no part of such a factor. `read` gives so many bytes at
    /// an address of the shared window.
    ///
    /// # Errors
    /// What `read` says.
    pub fn absent<E>(
        &self,
        (warp, lane): (u32, u32),
        register: usize,
        descriptors: [u64; 2],
        read: &mut impl FnMut(u32, usize) -> Result<u64, E>,
    ) -> Result<Option<u64>, E> {
        debug_assert!((lane as usize) < LANES);
        let Some(in_memory) = self.in_memory else { return Ok(None) };
        let of_first = self.a_registers();
        if let Some(number) = register.checked_sub(of_first) {
            if number >= self.b_registers() {
                return Ok(None);
            }
            let each = self.b_registers() / usize::from(self.eights);
            let factor = Factor::new(descriptors[1], in_memory.b_by_column);
            return factor.register(lane, [(number / each) as u32, (number % each) as u32], read).map(Some);
        }
        let Some(by_row) = in_memory.a_by_row else { return Ok(None) };
        let factor = Factor::new(descriptors[0], by_row);
        let groups = [warp % 4 * 2 + register as u32 % 2, register as u32 / 2];
        let signs = if in_memory.negated { self.a.signs() } else { 0 };
        Ok(Some(factor.register(lane, groups, read)? ^ signs))
    }

    /// How many registers of factors, addend and metadata there are; descriptors follow them.
    pub fn fragments(&self) -> usize {
        self.a_registers() + self.b_registers() + self.c_registers() + usize::from(self.sparse.is_some())
    }
}
