//! BC7: one to three lines between two colours each, in eight modes.

use super::partitions::{is_short, set};

/// What a mode has: sets of texels, then how many bits each part of the block has.
struct Mode {
    sets: usize,
    partition: u32,
    rotation: u32,
    selection: u32,
    colour: u32,
    alpha: u32,
    /// A last bit for each end of a line.
    last: bool,
    /// A last bit for both ends of a line.
    last_of_both: bool,
    index: u32,
    /// Numbers of their own for alpha, or with the selection for the colour.
    second_index: u32,
}

/// A mode without a second number, without rotation.
const fn mode(sets: usize, partition: u32, colour: u32, alpha: u32, last: [bool; 2], index: u32) -> Mode {
    let [last, last_of_both] = last;
    let (rotation, selection, second_index) = (0, 0, 0);
    Mode { sets, partition, rotation, selection, colour, alpha, last, last_of_both, index, second_index }
}

const MODES: [Mode; 8] = [
    mode(3, 4, 4, 0, [true, false], 3),
    mode(2, 6, 6, 0, [false, true], 3),
    mode(3, 6, 5, 0, [false, false], 2),
    mode(2, 6, 7, 0, [true, false], 2),
    Mode { rotation: 2, selection: 1, second_index: 3, ..mode(1, 0, 5, 6, [false, false], 2) },
    Mode { rotation: 2, second_index: 2, ..mode(1, 0, 7, 8, [false, false], 2) },
    mode(1, 0, 7, 7, [true, false], 4),
    mode(2, 6, 5, 5, [true, false], 2),
];

/// How far along a line a number is, in 64ths.
pub(super) fn weight(number: u32, bits: u32) -> i32 {
    const TWO: [i32; 4] = [0, 21, 43, 64];
    const THREE: [i32; 8] = [0, 9, 18, 27, 37, 46, 55, 64];
    const FOUR: [i32; 16] = [0, 4, 9, 13, 17, 21, 26, 30, 34, 38, 43, 47, 51, 55, 60, 64];
    let number = number as usize;
    match bits {
        2 => TWO[number & 3],
        3 => THREE[number & 7],
        _ => FOUR[number & 15],
    }
}

/// The place between two ends.
pub(super) fn between(first: i32, second: i32, weight: i32) -> i32 {
    ((64 - weight) * first + weight * second + 32) >> 6
}

/// Bits of a block, taken from the lowest.
pub(super) struct Bits {
    pub(super) rest: u128,
}

impl Bits {
    pub(super) fn take(&mut self, count: u32) -> u32 {
        let bits = (self.rest & ((1 << count) - 1)) as u32;
        self.rest >>= count;
        bits
    }

    /// The number of one texel, of those of all.
    pub(super) fn number(&mut self, bits: u32, texel: usize, is_short: impl Fn(usize) -> bool) -> u32 {
        let mut found = 0;
        for at in 0..16 {
            let number = self.take(bits - u32::from(is_short(at)));
            if at == texel {
                found = number;
            }
        }
        found
    }
}

/// The channels of a texel, of 8 bits each. A block without a mode is black and clear.
pub(super) fn decode(block: u128, texel: usize) -> [u32; 4] {
    let Some(mode) = MODES.get(block.trailing_zeros() as usize) else { return [0; 4] };
    let mut bits = Bits { rest: block >> (block.trailing_zeros() + 1) };
    let partition = bits.take(mode.partition) as usize;
    let rotation = bits.take(mode.rotation) as usize;
    let is_selected = bits.take(mode.selection) == 1;
    // Channels, sets, ends.
    let mut ends = [[[0; 2]; 3]; 4];
    for (channel, ends) in ends.iter_mut().enumerate() {
        let count = if channel == 3 { mode.alpha } else { mode.colour };
        for end in ends[..mode.sets].iter_mut().flatten() {
            *end = bits.take(count);
        }
    }
    let mut last = [[None; 2]; 3];
    for last in &mut last[..mode.sets] {
        if mode.last {
            *last = [Some(bits.take(1)), Some(bits.take(1))];
        } else if mode.last_of_both {
            *last = [Some(bits.take(1)); 2];
        }
    }
    let set = set(mode.sets, partition, texel);
    let number = bits.number(mode.index, texel, |at| is_short(mode.sets, partition, at));
    let own = weight(number, mode.index);
    let (mut colour, mut alpha) = (own, own);
    if mode.second_index > 0 {
        let number = bits.number(mode.second_index, texel, |at| at == 0);
        *(if is_selected { &mut colour } else { &mut alpha }) = weight(number, mode.second_index);
    }
    let mut channels = [0, 1, 2, 3].map(|channel| {
        let (count, weight) = if channel == 3 { (mode.alpha, alpha) } else { (mode.colour, colour) };
        if count == 0 {
            return 255;
        }
        let [first, second] = [0, 1].map(|end| {
            let bits = ends[channel][set][end];
            let (bits, count) = match last[set][end] {
                Some(last) => (bits << 1 | last, count + 1),
                None => (bits, count),
            };
            (bits << (8 - count) | bits >> (2 * count - 8)) as i32
        });
        between(first, second, weight) as u32
    });
    if rotation > 0 {
        channels.swap(3, rotation - 1);
    }
    channels
}
