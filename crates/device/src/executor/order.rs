//! Which block comes after which.

use super::parts::GridParts;

/// The order in which the blocks of a grid are handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// x fastest, as they are numbered.
    Rows,
    /// Two rows at a time: a block, the one below it, then those beside them. What blocks of one column load is in the caches for the second of them.
    PairsOfRows,
}

impl Order {
    pub(super) fn of(parts: &GridParts) -> Order {
        let is_plain = parts.cluster.is_none() && !parts.cooperative && parts.grid[1] > 1;
        if is_plain && parts.ready.kernel.info().tiled { Order::PairsOfRows } else { Order::Rows }
    }
}

/// Which block has its turn so many blocks after the first, where rows go in pairs. Where their number is odd, the last goes by itself.
pub(super) fn in_pairs_of_rows(turn: u64, grid: [u32; 3]) -> u64 {
    let [width, height, _] = grid.map(u64::from);
    let (slice, turn) = (turn / (width * height), turn % (width * height));
    let (pair, turn) = (turn / (2 * width), turn % (2 * width));
    let rows = (height - 2 * pair).min(2);
    let (x, y) = (turn / rows, 2 * pair + turn % rows);
    (slice * height + y) * width + x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_go_along_the_rows() {
        let order: Vec<u64> = (0..12).map(|turn| in_pairs_of_rows(turn, [3, 4, 1])).collect();
        assert_eq!(order, [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]);
    }

    #[test]
    fn every_block_has_one_turn() {
        for grid in [[1, 1, 1], [5, 1, 3], [1, 7, 2], [4, 5, 3], [6, 2, 1]] {
            let count: u64 = grid.iter().map(|n| u64::from(*n)).product();
            let mut blocks: Vec<u64> = (0..count).map(|turn| in_pairs_of_rows(turn, grid)).collect();
            blocks.sort_unstable();
            assert!(blocks.into_iter().eq(0..count), "{grid:?}");
        }
    }
}
