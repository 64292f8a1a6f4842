//! What a texel is.

use super::block::{self, Compression, SIDE};
use crate::eval::eval;
use crate::{Convert, FloatMode, Op, Rounding, Type};

/// What one channel of a texel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "sign and bits by name; Unorm is read as 0 to 1, Snorm as -1 to 1")]
pub enum Channel {
    U8,
    U16,
    U32,
    S8,
    S16,
    S32,
    F16,
    F32,
    Unorm8,
    Unorm16,
    Snorm8,
    Snorm16,
    Unorm10,
    Unorm2,
}

impl Channel {
    /// Bytes of a channel; of one that is packed with others, those that it would need alone.
    pub const fn bytes(self) -> usize {
        match self {
            Channel::U8 | Channel::S8 | Channel::Unorm8 | Channel::Snorm8 | Channel::Unorm2 => 1,
            Channel::U16 | Channel::S16 | Channel::F16 => 2,
            Channel::Unorm16 | Channel::Snorm16 | Channel::Unorm10 => 2,
            Channel::U32 | Channel::S32 | Channel::F32 => 4,
        }
    }

    /// Whether it is a float in memory.
    pub const fn is_float(self) -> bool {
        matches!(self, Channel::F16 | Channel::F32)
    }

    /// Whether it is an integer that can be read as a float from 0, or -1, to 1.
    pub const fn can_normalize(self) -> bool {
        !self.is_float() && self.bytes() < 4
    }

    /// Whether it is read as a float from 0, or -1, to 1, whatever a sampler says.
    pub const fn is_normalized(self) -> bool {
        matches!(self, Channel::Unorm8 | Channel::Unorm16 | Channel::Snorm8 | Channel::Snorm16)
            || matches!(self, Channel::Unorm10 | Channel::Unorm2)
    }

    /// Whether it has a sign.
    pub const fn is_signed(self) -> bool {
        !matches!(self, Channel::U8 | Channel::U16 | Channel::U32 | Channel::Unorm8 | Channel::Unorm16)
            && !matches!(self, Channel::Unorm10 | Channel::Unorm2)
    }

    /// The bits in memory as a 32-bit word: integers extended by their sign, floats as `f32`.
    #[inline]
    pub fn widen(self, bytes: &[u8]) -> u32 {
        match (bytes, self) {
            ([a], _) if self.is_signed() => i32::from(*a as i8) as u32,
            ([a], _) => u32::from(*a),
            ([a, b], Channel::F16) => half_to_f32(u16::from_le_bytes([*a, *b])),
            ([a, b], _) if self.is_signed() => i32::from(i16::from_le_bytes([*a, *b])) as u32,
            ([a, b], _) => u32::from(u16::from_le_bytes([*a, *b])),
            ([a, b, c, d], _) => u32::from_le_bytes([*a, *b, *c, *d]),
            _ => 0,
        }
    }
}

/// The half that a float is rounded to.
pub(super) fn half_from_f32(bits: u32, round: Rounding) -> u16 {
    let convert = Op::Convert(Convert::FloatToFloat(FloatMode { round, ..FloatMode::default() }));
    eval(convert, &[bits.into()], &[Type::F32], Type::F16).unwrap_or(0) as u16
}

/// The bits of the `f32` of the same value; NaNs keep their payload.
fn half_to_f32(bits: u16) -> u32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let magnitude = u32::from(bits & 0x7fff);
    let value = match magnitude >> 10 {
        // Exact: subnormal halves are normal floats.
        0 => (magnitude as f32 * 2f32.powi(-24)).to_bits(),
        31 => magnitude << 13 | 0x7f80_0000,
        _ => (magnitude << 13) + (112 << 23),
    };
    sign | value
}

/// How texels lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Packing {
    /// Channel beside channel.
    Plain,
    /// Three channels of ten bits and one of two in a word, the first lowest.
    Word,
    /// Blocks of texels, decoded when they are read.
    Blocks(Compression),
}

/// What a texel is: up to four channels of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    /// What each channel is; in a word of 10, 10, 10 and 2 bits each but the last.
    pub channel: Channel,
    /// How many: 1, 2 or 4; 3 of compressed texels.
    pub channels: u8,
    /// How they lie in memory.
    pub packing: Packing,
}

impl Format {
    /// Words of three channels of ten bits and one of two.
    pub const WORD: Format = Format { channel: Channel::Unorm10, channels: 4, packing: Packing::Word };

    /// A texel of so many channels, side by side; `None` unless there are 1, 2 or 4.
    pub const fn new(channel: Channel, channels: u8) -> Option<Format> {
        match channels {
            1 | 2 | 4 => Some(Format { channel, channels, packing: Packing::Plain }),
            _ => None,
        }
    }

    /// Compressed texels.
    pub const fn compressed(compression: Compression) -> Format {
        let (channel, channels) = (compression.channel(), compression.channels());
        Format { channel, channels, packing: Packing::Blocks(compression) }
    }

    /// Bytes of a texel; of compressed ones, those of a block.
    pub const fn bytes(self) -> usize {
        match self.packing {
            Packing::Plain => self.channel.bytes() * self.channels as usize,
            Packing::Word => 4,
            Packing::Blocks(compression) => compression.bytes(),
        }
    }

    /// Texels along each side of what lies in memory as one.
    pub const fn side(self) -> u32 {
        match self.packing {
            Packing::Blocks(_) => SIDE,
            _ => 1,
        }
    }

    /// What a channel is.
    pub(super) fn channel_at(self, index: usize) -> Channel {
        if self.packing == Packing::Word && index == 3 { Channel::Unorm2 } else { self.channel }
    }

    /// The channels of a texel, widened, of the bytes in memory; `texel` is its number in a block.
    pub(super) fn unpack(self, bytes: &[u8; 16], texel: usize) -> [u32; 4] {
        match self.packing {
            Packing::Plain => {
                let mut words = [0; 4];
                let channels = bytes.chunks(self.channel.bytes()).take(self.channels.into());
                words.iter_mut().zip(channels).for_each(|(word, bytes)| *word = self.channel.widen(bytes));
                words
            }
            Packing::Word => {
                let word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                [word & 1023, word >> 10 & 1023, word >> 20 & 1023, word >> 30]
            }
            Packing::Blocks(compression) => {
                let words = block::decode(compression, *bytes, texel);
                match self.channel {
                    Channel::F16 => words.map(|half| half_to_f32(half as u16)),
                    _ => words,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_floats_of_the_same_value() {
        for (half, float) in [(0x3c00, 1.0), (0xc000, -2.0), (0x0001, 5.960_464_5e-8), (0x7bff, 65504.0)] {
            assert_eq!(Channel::F16.widen(&u16::to_le_bytes(half)), f32::to_bits(float));
        }
        assert_eq!(Channel::F16.widen(&[0x00, 0x7c]), f32::INFINITY.to_bits());
        assert_eq!(Channel::F16.widen(&[0x00, 0x80]), (-0.0f32).to_bits());
    }

    #[test]
    fn integers_are_extended_by_their_sign() {
        assert_eq!(Channel::U8.widen(&[0xff]), 255);
        assert_eq!(Channel::S8.widen(&[0xff]), u32::MAX);
        assert_eq!(Channel::S16.widen(&[0, 0x80]), 0xffff_8000);
    }
}
