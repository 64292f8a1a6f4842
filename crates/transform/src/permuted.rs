//! Lanes at known distances from each other that lie in runs, but in another order than the lanes'.
//!
//! The threads of a block of three axes, or of rows that are accessed down their columns, often have among them all that lies in some piece of memory,
//! each something else of it. That is a few accesses of whole runs, and elements that change places in the register.

/// The fewest elements of a run.
pub const LEAST: usize = 4;

/// How lanes have the elements of runs of one length, one run after another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation {
    /// For each element, a lane that has it.
    pub lanes: Vec<i32>,
    /// For each lane, which element it has.
    pub elements: Vec<i32>,
    /// The elements of a run, a power of two.
    pub run: usize,
}

impl Permutation {
    /// The runs of lanes at these offsets, of elements of so many bytes, where each row of so many lanes has runs of its own. Nothing if there are none of
    /// [`LEAST`] elements or more, or if lanes have them in order already. Where lanes `share` elements, each is there once.
    pub fn of(offsets: &[i64], row: usize, bytes: i64, share: bool) -> Option<Permutation> {
        let mut lanes: Vec<i32> = Vec::with_capacity(offsets.len());
        let mut elements = vec![0; offsets.len()];
        let mut of_row = None;
        for first in (0..offsets.len()).step_by(row) {
            let mut sorted: Vec<i32> = (first as i32..(first + row).min(offsets.len()) as i32).collect();
            sorted.sort_by_key(|lane| offsets[*lane as usize]);
            let before = lanes.len();
            for lane in sorted {
                match lanes.last() {
                    Some(last)
                        if lanes.len() > before && offsets[*last as usize] == offsets[lane as usize] =>
                    {
                        if !share {
                            return None;
                        }
                    }
                    _ => lanes.push(lane),
                }
                elements[lane as usize] = lanes.len() as i32 - 1;
            }
            let count = lanes.len() - before;
            if !count.is_power_of_two() || of_row.is_some_and(|of_row| of_row != count) {
                return None;
            }
            of_row = Some(count);
        }
        let is_run = |lanes: &[i32]| {
            lanes
                .windows(2)
                .all(|pair| offsets[pair[1] as usize].wrapping_sub(offsets[pair[0] as usize]) == bytes)
        };
        let mut lengths = std::iter::successors(of_row, |length| Some(length / 2));
        let run = lengths
            .by_ref()
            .take_while(|length| *length >= LEAST)
            .find(|length| lanes.chunks(*length).all(is_run))?;
        let is_in_order = elements.iter().enumerate().all(|(lane, element)| lane as i32 == *element);
        (!is_in_order).then_some(Permutation { lanes, elements, run })
    }

    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.lanes.len() / self.run
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(offsets: impl Fn(i64) -> i64, share: bool) -> Option<(usize, usize)> {
        let offsets: Vec<i64> = (0..32).map(offsets).collect();
        Permutation::of(&offsets, 32, 4, share).map(|permutation| {
            for (lane, offset) in offsets.iter().enumerate() {
                let element = permutation.elements[lane] as usize;
                let first = offsets[permutation.lanes[element - element % permutation.run] as usize];
                assert_eq!(*offset, first + 4 * (element % permutation.run) as i64);
            }
            (permutation.runs(), permutation.run)
        })
    }

    #[test]
    fn lanes_in_another_order_have_runs() {
        assert_eq!(of(|lane| -4 * lane, false), Some((1, 32)), "down");
        assert_eq!(of(|lane| 1024 * (lane % 2) + 4 * (lane / 2), false), Some((2, 16)), "two rows in turns");
        assert_eq!(
            of(|lane| 4 * (lane / 8 + lane % 8 * 4), false),
            Some((1, 32)),
            "a tile that lies on its side"
        );
        assert_eq!(of(|lane| 1000 * (lane / 4) - 4 * (lane % 4), false), Some((8, 4)));
    }

    #[test]
    fn lanes_without_runs_or_in_order_have_none() {
        assert_eq!(of(|lane| 4 * lane, false), None, "in order");
        assert_eq!(of(|lane| 8 * lane, false), None, "every other");
        assert_eq!(of(|lane| 4096 * (lane / 2) + 4 * (lane % 2), false), None, "pairs");
        assert_eq!(of(|lane| 6 * lane, false), None);
        assert_eq!(of(|lane| 4 * (lane % 24), true), None, "runs of one length");
    }

    #[test]
    fn lanes_may_share() {
        assert_eq!(of(|lane| 4 * (lane / 4), true), Some((1, 8)));
        assert_eq!(of(|lane| 4 * (lane % 8), true), Some((1, 8)));
        assert_eq!(of(|lane| 4 * (lane / 4), false), None);
    }

    #[test]
    fn rows_have_runs_of_their_own() {
        let offsets: Vec<i64> = (0..32).map(|lane| -4 * (lane % 8)).collect();
        let found = Permutation::of(&offsets, 8, 4, false).unwrap();
        assert_eq!((found.runs(), found.run), (4, 8));
        assert_eq!(found.lanes[..9], [7, 6, 5, 4, 3, 2, 1, 0, 15]);
    }
}
