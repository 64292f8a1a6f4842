//! Images that lie in tiles, each of which memory is mapped to apart from the others.

/// Bytes of a tile.
pub const TILE: u64 = 64 << 10;

/// How a level's bytes lie in tiles: tiles in rows, rows in slices, and the same again within each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiles {
    /// Bytes of a row in a tile.
    pub row: u32,
    /// Rows of a slice in a tile.
    pub rows: u32,
    /// Slices of a tile.
    pub slices: u32,
    /// Tiles side by side.
    pub across: u32,
    /// Tiles one below the other.
    pub down: u32,
}

impl Tiles {
    /// Where a byte of a row lies, counted from the first tile.
    pub fn offset(&self, x: u64, y: u64, z: u64) -> u64 {
        let (row, rows, slices) = (u64::from(self.row), u64::from(self.rows), u64::from(self.slices));
        let tile = self.number(x / row, y / rows, z / slices);
        let within = ((z % slices) * rows + y % rows) * row + x % row;
        tile.wrapping_mul(TILE).wrapping_add(within)
    }

    /// The number of a tile by its place among the others.
    pub fn number(&self, x: u64, y: u64, z: u64) -> u64 {
        let row = z.wrapping_mul(self.down.into()).wrapping_add(y);
        row.wrapping_mul(self.across.into()).wrapping_add(x)
    }

    /// Bytes that follow a byte of a row, and itself, before the next tile.
    pub fn left_of_row(&self, x: u64) -> u64 {
        let row = u64::from(self.row);
        row - x % row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_place() {
        let tiles = Tiles { row: 128, rows: 32, slices: 16, across: 2, down: 3 };
        let mut places = vec![false; 12 * TILE as usize];
        for (z, y, x) in (0..32).flat_map(|z| (0..96).flat_map(move |y| (0..256).map(move |x| (z, y, x)))) {
            let place = &mut places[tiles.offset(x, y, z) as usize];
            assert!(!std::mem::replace(place, true), "{x} {y} {z}");
        }
        assert!(places.iter().all(|taken| *taken));
        assert_eq!(tiles.offset(127, 31, 15), TILE - 1);
        assert_eq!(tiles.offset(128, 0, 0), TILE);
        assert_eq!(tiles.offset(0, 32, 0), 2 * TILE);
        assert_eq!(tiles.offset(0, 0, 16), 6 * TILE);
        assert_eq!([tiles.left_of_row(0), tiles.left_of_row(130)], [128, 126]);
    }
}
