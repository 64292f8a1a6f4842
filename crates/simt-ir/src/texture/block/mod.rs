//! Compressed texels: blocks of 4×4, decoded at every read.
//!
//! The formats are Direct3D's BC1 to BC7. Where they leave the precision open, results are those that an H100 gave: BC1 to BC3
//! are decoded to 8 bits, the single channels of BC4 and BC5 to 16.

mod bc6;
mod bc7;
mod partitions;

use super::Channel;

/// Texels along each side of a block.
pub const SIDE: u32 = 4;

/// How a block of texels is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Two colours of 16 bits, and texels between them, or between them and nothing.
    Bc1,
    /// As BC1, with four bits of alpha for each texel.
    Bc2,
    /// As BC1, with alpha as in BC4.
    Bc3,
    /// One channel: two ends, and texels between them.
    Bc4,
    /// The same from -1 to 1.
    Bc4Signed,
    /// Two channels as in BC4.
    Bc5,
    /// The same from -1 to 1.
    Bc5Signed,
    /// Three channels of halves that are not negative.
    Bc6,
    /// Three channels of halves.
    Bc6Signed,
    /// Three or four channels of 8 bits.
    Bc7,
}

impl Compression {
    /// Bytes of a block.
    pub const fn bytes(self) -> usize {
        match self {
            Compression::Bc1 | Compression::Bc4 | Compression::Bc4Signed => 8,
            _ => 16,
        }
    }

    /// What the channels of a texel are, once it is decoded.
    pub const fn channel(self) -> Channel {
        match self {
            Compression::Bc4 | Compression::Bc5 => Channel::Unorm16,
            Compression::Bc4Signed | Compression::Bc5Signed => Channel::Snorm16,
            Compression::Bc6 | Compression::Bc6Signed => Channel::F16,
            _ => Channel::Unorm8,
        }
    }

    /// How many channels it has.
    pub const fn channels(self) -> u8 {
        match self {
            Compression::Bc4 | Compression::Bc4Signed => 1,
            Compression::Bc5 | Compression::Bc5Signed => 2,
            Compression::Bc6 | Compression::Bc6Signed => 3,
            _ => 4,
        }
    }
}

/// The channels of a texel, numbered in rows from the upper left one: integers, or the bits of halves.
pub(super) fn decode(compression: Compression, block: [u8; 16], texel: usize) -> [u32; 4] {
    let word = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&block[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    match compression {
        Compression::Bc1 => colour(word(0), texel, false),
        Compression::Bc2 => {
            let [red, green, blue, _] = colour(word(8), texel, true);
            [red, green, blue, (word(0) >> (4 * texel) & 15) as u32 * 17]
        }
        Compression::Bc3 => {
            let [red, green, blue, _] = colour(word(8), texel, true);
            [red, green, blue, alpha(word(0), texel)]
        }
        Compression::Bc4 => [fine(word(0), texel), 0, 0, 0],
        Compression::Bc4Signed => [fine_signed(word(0), texel), 0, 0, 0],
        Compression::Bc5 => [fine(word(0), texel), fine(word(8), texel), 0, 0],
        Compression::Bc5Signed => [fine_signed(word(0), texel), fine_signed(word(8), texel), 0, 0],
        Compression::Bc6 => bc6::decode(u128::from_le_bytes(block), texel, false),
        Compression::Bc6Signed => bc6::decode(u128::from_le_bytes(block), texel, true),
        Compression::Bc7 => bc7::decode(u128::from_le_bytes(block), texel),
    }
}

/// A texel of BC1. `is_opaque` where all blocks have four colours.
fn colour(block: u64, texel: usize, is_opaque: bool) -> [u32; 4] {
    let ends = [block & 0xffff, block >> 16 & 0xffff].map(|end| end as i32);
    let number = block >> (32 + 2 * texel) & 3;
    let has_four = is_opaque || ends[0] > ends[1];
    if number == 3 && !has_four {
        return [0; 4];
    }
    let parts = |shift: i32, mask: i32| ends.map(|end| end >> shift & mask);
    let [red, blue] = [parts(11, 31), parts(0, 31)].map(|[first, second]| {
        // Of 22 eighths for each unit of 31: almost 255.
        let mixed = match number {
            0 => return first << 3 | first >> 2,
            1 => return second << 3 | second >> 2,
            2 if has_four => 44 * first + 22 * second,
            2 => 33 * (first + second),
            _ => 22 * first + 44 * second,
        };
        mixed >> 3
    });
    let [first, second] = parts(5, 63).map(|green| green << 2 | green >> 4);
    let apart = second - first;
    let green = match number {
        0 => first,
        1 => second,
        2 if has_four => (256 * first + 80 * apart + apart / 4 + 128) >> 8,
        2 => (256 * first + 128 * apart + apart / 4 + 128) >> 8,
        _ => (256 * second - 80 * apart - apart / 4 + 128) >> 8,
    };
    [red as u32, green as u32, blue as u32, 255]
}

/// The ends of a block of one channel, and the number of a texel.
fn ends(block: u64, texel: usize) -> ([u8; 2], u64) {
    ([block as u8, (block >> 8) as u8], block >> (16 + 3 * texel) & 7)
}

/// A texel of BC3's alpha, of 8 bits: so many 256ths, and a little more, from the nearer end to the other.
fn alpha(block: u64, texel: usize) -> u32 {
    let (ends, number) = ends(block, texel);
    let [first, second] = ends.map(i32::from);
    let between = |near: i32, far: i32, weight: i32, shift: i32| {
        let apart = far - near;
        (256 * near + weight * apart + (apart >> shift) + 128) >> 8
    };
    let value = match (first > second, number) {
        (_, 0) => first,
        (_, 1) => second,
        (true, 2) => between(first, second, 36, 3),
        (true, 3) => between(first, second, 72, 2),
        (true, 4) => between(first, second, 111, 1),
        (true, 5) => between(second, first, 111, 1),
        (true, 6) => between(second, first, 72, 2),
        (true, _) => between(second, first, 36, 3),
        (false, 2) => between(first, second, 48, 3),
        (false, 3) => between(first, second, 96, 2),
        (false, 4) => between(second, first, 96, 2),
        (false, 5) => between(second, first, 48, 3),
        (false, 6) => 0,
        (false, _) => 255,
    };
    value as u32
}

/// What both ends count for, of 257, in a texel of BC4 with this number; `None` for the least value and the most.
fn weights(has_eight: bool, number: u64) -> Option<[i32; 2]> {
    Some(match (has_eight, number) {
        (_, 0) => [257, 0],
        (_, 1) => [0, 257],
        (true, 2) => [221, 36],
        (true, 3) => [185, 72],
        (true, 4) => [144, 113],
        (true, 5) => [113, 144],
        (true, 6) => [72, 185],
        (true, _) => [36, 221],
        (false, 2) => [209, 48],
        (false, 3) => [161, 96],
        (false, 4) => [96, 161],
        (false, 5) => [48, 209],
        _ => return None,
    })
}

/// A texel of BC4, of 16 bits.
fn fine(block: u64, texel: usize) -> u32 {
    let (ends, number) = ends(block, texel);
    match weights(ends[0] > ends[1], number) {
        Some(weights) => ends.iter().zip(weights).map(|(end, weight)| u32::from(*end) * weight as u32).sum(),
        None => {
            if number == 6 {
                0
            } else {
                0xffff
            }
        }
    }
}

/// A texel of signed BC4, of 16 bits.
fn fine_signed(block: u64, texel: usize) -> u32 {
    let (ends, number) = ends(block, texel);
    let ends = ends.map(|end| i32::from(end as i8).max(-127));
    let Some(weights) = weights(ends[0] > ends[1], number) else {
        return if number == 6 { -0x7fff } else { 0x7fff } as u32;
    };
    let parts = ends.into_iter().zip(weights).map(|(end, weight)| {
        // 127 stands for 127.5 times 257; the end whose weight is odd brings the rest.
        let rest = if weight & 1 == 1 { end + end / 64 } else { 0 };
        end * weight + rest
    });
    parts.sum::<i32>() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an H100 made of blocks of random bits, of every mode: format, bytes, and the channels of each texel as integers.
    const ANSWERS: &str = include_str!("answers.tsv");

    fn hex<const N: usize>(digits: &str) -> [u8; N] {
        let mut bytes = [0; N];
        for (byte, pair) in bytes.iter_mut().zip(0..digits.len() / 2) {
            *byte = u8::from_str_radix(&digits[2 * pair..2 * pair + 2], 16).unwrap();
        }
        bytes
    }

    #[test]
    fn blocks_are_decoded_as_on_the_hardware() {
        use Compression::*;
        let mut seen = std::collections::BTreeMap::new();
        for line in ANSWERS.lines() {
            let columns: Vec<_> = line.split('\t').collect();
            let all = [Bc1, Bc2, Bc3, Bc4, Bc4Signed, Bc5, Bc5Signed, Bc6, Bc6Signed, Bc7];
            let compression = all.into_iter().find(|known| format!("{known:?}") == columns[0]).unwrap();
            *seen.entry(columns[0]).or_insert(0) += 1;
            assert_eq!(columns[1].len(), 2 * compression.bytes());
            let block = hex(columns[1]);
            let digits = 2 * compression.channel().bytes();
            for (texel, told) in columns[2].split(' ').enumerate() {
                let channels = decode(compression, block, texel);
                let channels = channels[..compression.channels().into()].iter();
                let mask = (1_u64 << (4 * digits)) - 1;
                let words = channels.map(|word| format!("{:0digits$x}", u64::from(*word) & mask));
                assert_eq!(words.collect::<String>(), told, "{texel} of {line}");
            }
        }
        assert_eq!(seen.len(), 10);
    }
}
