//! BC6H: one or two lines between two colours of halves each, in fourteen modes.

use super::bc7::{Bits, between, weight};
use super::partitions::{is_short, set};

const R: usize = 0;
const G: usize = 1;
const B: usize = 2;

/// Bits of a channel of an end of a line: from the one to the other, in the order in which they stand in the block.
type Piece = (usize, usize, u32, u32);

/// What a mode has.
struct Mode {
    sets: usize,
    /// The ends but the first are told as differences from it.
    is_relative: bool,
    /// Bits of each channel of the first end.
    first: u32,
    /// Bits of each channel of the others.
    others: [u32; 3],
    pieces: &'static [Piece],
}

const fn two(first: u32, others: [u32; 3], pieces: &'static [Piece]) -> Mode {
    Mode { sets: 2, is_relative: true, first, others, pieces }
}

const fn one(first: u32, others: u32, pieces: &'static [Piece]) -> Mode {
    Mode { sets: 1, is_relative: true, first, others: [others; 3], pieces }
}

#[rustfmt::skip]
const MODES: [(u32, Mode); 14] = [
    (0b00000, two(10, [5, 5, 5], &[
        (G, 2, 4, 4), (B, 2, 4, 4), (B, 3, 4, 4), (R, 0, 0, 9), (G, 0, 0, 9), (B, 0, 0, 9), (R, 1, 0, 4), (G, 3, 4, 4),
        (G, 2, 0, 3), (G, 1, 0, 4), (B, 3, 0, 0), (G, 3, 0, 3), (B, 1, 0, 4), (B, 3, 1, 1), (B, 2, 0, 3), (R, 2, 0, 4),
        (B, 3, 2, 2), (R, 3, 0, 4), (B, 3, 3, 3),
    ])),
    (0b00001, two(7, [6, 6, 6], &[
        (G, 2, 5, 5), (G, 3, 4, 4), (G, 3, 5, 5), (R, 0, 0, 6), (B, 3, 0, 0), (B, 3, 1, 1), (B, 2, 4, 4), (G, 0, 0, 6),
        (B, 2, 5, 5), (B, 3, 2, 2), (G, 2, 4, 4), (B, 0, 0, 6), (B, 3, 3, 3), (B, 3, 5, 5), (B, 3, 4, 4), (R, 1, 0, 5),
        (G, 2, 0, 3), (G, 1, 0, 5), (G, 3, 0, 3), (B, 1, 0, 5), (B, 2, 0, 3), (R, 2, 0, 5), (R, 3, 0, 5),
    ])),
    (0b00010, two(11, [5, 4, 4], &[
        (R, 0, 0, 9), (G, 0, 0, 9), (B, 0, 0, 9), (R, 1, 0, 4), (R, 0, 10, 10), (G, 2, 0, 3), (G, 1, 0, 3), (G, 0, 10, 10),
        (B, 3, 0, 0), (G, 3, 0, 3), (B, 1, 0, 3), (B, 0, 10, 10), (B, 3, 1, 1), (B, 2, 0, 3), (R, 2, 0, 4), (B, 3, 2, 2),
        (R, 3, 0, 4), (B, 3, 3, 3),
    ])),
    (0b00110, two(11, [4, 5, 4], &[
        (R, 0, 0, 9), (G, 0, 0, 9), (B, 0, 0, 9), (R, 1, 0, 3), (R, 0, 10, 10), (G, 3, 4, 4), (G, 2, 0, 3), (G, 1, 0, 4),
        (G, 0, 10, 10), (G, 3, 0, 3), (B, 1, 0, 3), (B, 0, 10, 10), (B, 3, 1, 1), (B, 2, 0, 3), (R, 2, 0, 3), (B, 3, 0, 0),
        (B, 3, 2, 2), (R, 3, 0, 3), (G, 2, 4, 4), (B, 3, 3, 3),
    ])),
    (0b01010, two(11, [4, 4, 5], &[
        (R, 0, 0, 9), (G, 0, 0, 9), (B, 0, 0, 9), (R, 1, 0, 3), (R, 0, 10, 10), (B, 2, 4, 4), (G, 2, 0, 3), (G, 1, 0, 3),
        (G, 0, 10, 10), (B, 3, 0, 0), (G, 3, 0, 3), (B, 1, 0, 4), (B, 0, 10, 10), (B, 2, 0, 3), (R, 2, 0, 3), (B, 3, 1, 1),
        (B, 3, 2, 2), (R, 3, 0, 3), (B, 3, 4, 4), (B, 3, 3, 3),
    ])),
    (0b01110, two(9, [5, 5, 5], &[
        (R, 0, 0, 8), (B, 2, 4, 4), (G, 0, 0, 8), (G, 2, 4, 4), (B, 0, 0, 8), (B, 3, 4, 4), (R, 1, 0, 4), (G, 3, 4, 4),
        (G, 2, 0, 3), (G, 1, 0, 4), (B, 3, 0, 0), (G, 3, 0, 3), (B, 1, 0, 4), (B, 3, 1, 1), (B, 2, 0, 3), (R, 2, 0, 4),
        (B, 3, 2, 2), (R, 3, 0, 4), (B, 3, 3, 3),
    ])),
    (0b10010, two(8, [6, 5, 5], &[
        (R, 0, 0, 7), (G, 3, 4, 4), (B, 2, 4, 4), (G, 0, 0, 7), (B, 3, 2, 2), (G, 2, 4, 4), (B, 0, 0, 7), (B, 3, 3, 3),
        (B, 3, 4, 4), (R, 1, 0, 5), (G, 2, 0, 3), (G, 1, 0, 4), (B, 3, 0, 0), (G, 3, 0, 3), (B, 1, 0, 4), (B, 3, 1, 1),
        (B, 2, 0, 3), (R, 2, 0, 5), (R, 3, 0, 5),
    ])),
    (0b10110, two(8, [5, 6, 5], &[
        (R, 0, 0, 7), (B, 3, 0, 0), (B, 2, 4, 4), (G, 0, 0, 7), (G, 2, 5, 5), (G, 2, 4, 4), (B, 0, 0, 7), (G, 3, 5, 5),
        (B, 3, 4, 4), (R, 1, 0, 4), (G, 3, 4, 4), (G, 2, 0, 3), (G, 1, 0, 5), (G, 3, 0, 3), (B, 1, 0, 4), (B, 3, 1, 1),
        (B, 2, 0, 3), (R, 2, 0, 4), (B, 3, 2, 2), (R, 3, 0, 4), (B, 3, 3, 3),
    ])),
    (0b11010, two(8, [5, 5, 6], &[
        (R, 0, 0, 7), (B, 3, 1, 1), (B, 2, 4, 4), (G, 0, 0, 7), (B, 2, 5, 5), (G, 2, 4, 4), (B, 0, 0, 7), (B, 3, 5, 5),
        (B, 3, 4, 4), (R, 1, 0, 4), (G, 3, 4, 4), (G, 2, 0, 3), (G, 1, 0, 4), (B, 3, 0, 0), (G, 3, 0, 3), (B, 1, 0, 5),
        (B, 2, 0, 3), (R, 2, 0, 4), (B, 3, 2, 2), (R, 3, 0, 4), (B, 3, 3, 3),
    ])),
    (0b11110, Mode { is_relative: false, ..two(6, [6, 6, 6], &[
        (R, 0, 0, 5), (G, 3, 4, 4), (B, 3, 0, 0), (B, 3, 1, 1), (B, 2, 4, 4), (G, 0, 0, 5), (G, 2, 5, 5), (B, 2, 5, 5),
        (B, 3, 2, 2), (G, 2, 4, 4), (B, 0, 0, 5), (G, 3, 5, 5), (B, 3, 3, 3), (B, 3, 5, 5), (B, 3, 4, 4), (R, 1, 0, 5),
        (G, 2, 0, 3), (G, 1, 0, 5), (G, 3, 0, 3), (B, 1, 0, 5), (B, 2, 0, 3), (R, 2, 0, 5), (R, 3, 0, 5),
    ]) }),
    (0b00011, Mode { is_relative: false, ..one(10, 10, &[
        (R, 0, 0, 9), (G, 0, 0, 9), (B, 0, 0, 9), (R, 1, 0, 9), (G, 1, 0, 9), (B, 1, 0, 9),
    ]) }),
    (0b00111, one(11, 9, &[
        (R, 0, 0, 9), (G, 0, 0, 9), (B, 0, 0, 9), (R, 1, 0, 8), (R, 0, 10, 10), (G, 1, 0, 8), (G, 0, 10, 10), (B, 1, 0, 8),
        (B, 0, 10, 10),
    ])),
    (0b01011, one(12, 8, &[
        (R, 0, 0, 9), (G, 0, 0, 9), (B, 0, 0, 9), (R, 1, 0, 7), (R, 0, 11, 10), (G, 1, 0, 7), (G, 0, 11, 10), (B, 1, 0, 7),
        (B, 0, 11, 10),
    ])),
    (0b01111, one(16, 4, &[
        (R, 0, 0, 9), (G, 0, 0, 9), (B, 0, 0, 9), (R, 1, 0, 3), (R, 0, 15, 10), (G, 1, 0, 3), (G, 0, 15, 10), (B, 1, 0, 3),
        (B, 0, 15, 10),
    ])),
];

/// The bits of the halves of a texel. A block without a mode is black.
pub(super) fn decode(block: u128, texel: usize, signed: bool) -> [u32; 4] {
    let mut bits = Bits { rest: block };
    let mut code = bits.take(2);
    if code & 2 != 0 {
        code |= bits.take(3) << 2;
    }
    let Some((_, mode)) = MODES.iter().find(|(known, _)| *known == code) else { return [0; 4] };
    let mut ends = [[0_i32; 3]; 4];
    for &(channel, end, from, to) in mode.pieces {
        let mut bit = from;
        loop {
            ends[end][channel] |= (bits.take(1) as i32) << bit;
            if bit == to {
                break;
            }
            bit = if from < to { bit + 1 } else { bit - 1 };
        }
    }
    let partition = if mode.sets == 2 { bits.take(5) as usize } else { 0 };
    let [first, others @ ..] = &mut ends;
    for channel in 0..3 {
        let whole = mode.first;
        if signed {
            first[channel] = extended(first[channel], whole);
        }
        for end in &mut *others {
            let end = &mut end[channel];
            if mode.is_relative {
                *end = first[channel].wrapping_add(extended(*end, mode.others[channel])) & ((1 << whole) - 1);
            }
            if signed {
                *end = extended(*end, whole);
            }
        }
    }
    let count = if mode.sets == 2 { 3 } else { 4 };
    let number = bits.number(count, texel, |at| is_short(mode.sets, partition, at));
    let (weight, set) = (weight(number, count), set(mode.sets, partition, texel));
    let channel = |channel: usize| {
        let [first, second] = [0, 1].map(|end| spread(ends[2 * set + end][channel], mode.first, signed));
        let value = between(first, second, weight);
        match signed {
            true if value < 0 => 0x8000 | ((-value * 31) >> 5) as u32,
            true => ((value * 31) >> 5) as u32,
            false => ((value * 31) >> 6) as u32,
        }
    };
    [channel(0), channel(1), channel(2), 0]
}

/// A number of so many bits with its sign.
fn extended(bits: i32, count: u32) -> i32 {
    bits << (32 - count) >> (32 - count)
}

/// A number of so many bits as one of 16, of which half are for negative ones.
fn spread(value: i32, bits: u32, signed: bool) -> i32 {
    if !signed {
        return match value {
            _ if bits >= 15 => value,
            0 => 0,
            _ if value == (1 << bits) - 1 => 0xffff,
            _ => ((value << 16) + 0x8000) >> bits,
        };
    }
    let magnitude = match value.abs() {
        size if bits >= 16 => size,
        0 => 0,
        size if size >= (1 << (bits - 1)) - 1 => 0x7fff,
        size => ((size << 15) + 0x4000) >> (bits - 1),
    };
    if value < 0 { -magnitude } else { magnitude }
}
