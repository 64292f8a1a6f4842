//! Weighted sums of texels.
//!
//! Weights have eight fractional bits and always make 256 together: the whole is divided between two mip levels, each part
//! between two slices, each of those between two columns and then two rows, and every division is rounded.
//!
//! Floats are added four at a time, those of one slice: each is cut at four places below the last one of the largest;
//! nothing else is lost until the sum of all is rounded. Integers that are read as floats become 16-bit ones.

use super::Channel;
use crate::soft::{Exact, Format};
use crate::{Rounding, Type};

/// The whole.
pub(super) const WHOLE: u32 = 256;

/// A part of a weight: `fraction` of 256, rounded to nearest.
#[inline]
pub(super) fn part(weight: u32, fraction: u32) -> u32 {
    (weight * fraction + 128) >> 8
}

/// The weights of the two columns of the first row, then of the second.
#[inline]
pub(super) fn square(weight: u32, x: u32, y: u32) -> [u32; 4] {
    let right = part(weight, x);
    let left = weight - right;
    let lower_right = part(right, y);
    // Half-way goes to the upper one here.
    let lower_left = (left * y + 127) >> 8;
    [left - lower_left, right - lower_right, lower_left, lower_right]
}

/// Four texels of a slice, or fewer, and their weights: what a channel has in memory, widened.
pub(super) type Quad = [(u32, u32); 4];

/// The sum of texels of this kind as the bits of an `f32`.
#[inline]
pub(super) fn sum(channel: Channel, quads: &[Quad]) -> u32 {
    match channel {
        Channel::F32 => usual_sum(quads).unwrap_or_else(|| float_sum(quads, Type::F32, Cut::of(Type::F32))),
        Channel::F16 => float_sum(quads, Type::F16, Cut::of(Type::F16)),
        _ => integer_sum(channel, quads).to_bits(),
    }
}

/// The sum of linear values of sRGB texels, which are floats. Of each as many places count as the largest has, seven; numbers
/// just below a power of two count as those above.
pub(super) fn linear_sum(quads: &[Quad]) -> u32 {
    let just_below = |exponent: i32| match exponent {
        -2 => 243,
        -3 => 249,
        -5 => 226,
        _ => 240,
    };
    float_sum(quads, Type::F16, Cut { places: 7, least: -7, just_below })
}

/// Where texels are cut before they are added.
struct Cut {
    /// Binary places below the leading one of the largest.
    places: i32,
    /// The exponent that the largest has at the least.
    least: i32,
    /// From which mantissa on, in 1/256, a number of this exponent counts as one of the next.
    just_below: fn(i32) -> u32,
}

impl Cut {
    fn of(kind: Type) -> Cut {
        let Format { precision, min_exp, .. } = Format::of(kind);
        Cut { places: precision as i32 - 1 + 4, least: min_exp, just_below: |_| 256 }
    }
}

/// An integer as the float from 0, or -1, to 1 that it stands for.
pub(super) fn normalized(channel: Channel, bits: u32) -> f32 {
    let value = f64::from(bits as i32);
    let most = match channel {
        Channel::U8 | Channel::Unorm8 => 255.0,
        Channel::U16 | Channel::Unorm16 => 65535.0,
        Channel::S8 | Channel::Snorm8 => 127.0,
        Channel::Unorm10 => 1023.0,
        Channel::Unorm2 => 3.0,
        _ => 32767.0,
    };
    (value / most).max(-1.0) as f32
}

/// The integer that stands for a float from 0, or -1, to 1, in a border: the nearest, half-way towards zero.
pub(super) fn denormalized(channel: Channel, value: f32) -> u32 {
    let (value, most) = within(channel, value);
    ((value.abs() * most - 0.5).ceil().copysign(value)) as i32 as u32
}

/// The integer that a surface has for such a float, of which as many binary places count as the integer has, and four more.
pub(super) fn stored(channel: Channel, value: f32) -> u32 {
    let (value, most) = within(channel, value);
    let places = 16.0 * (most + 1.0);
    let cut = (value.abs() * places).floor() / places;
    ((cut * most + 0.5).floor().copysign(value)) as i32 as u32
}

/// The value within what the channel can have, and the integer for 1.
fn within(channel: Channel, value: f32) -> (f64, f64) {
    let most = match channel.bytes() {
        _ if channel == Channel::Unorm10 => 1023.0,
        _ if channel == Channel::Unorm2 => 3.0,
        1 if channel.is_signed() => 127.0,
        1 => 255.0,
        _ if channel.is_signed() => 32767.0,
        _ => 65535.0,
    };
    let least = if channel.is_signed() { -1.0 } else { 0.0 };
    let value = if value.is_nan() { 0.0 } else { f64::from(value) };
    (value.clamp(least, 1.0), most)
}

#[inline]
fn integer_sum(channel: Channel, quads: &[Quad]) -> f32 {
    // Ten bits are made 16 before they are added.
    let wide = |bits: u32| if channel == Channel::Unorm10 { bits << 6 | bits >> 4 } else { bits };
    let weighted: i64 =
        quads.iter().flatten().map(|(weight, bits)| i64::from(*weight) * i64::from(wide(*bits) as i32)).sum();
    match channel {
        Channel::U8 | Channel::Unorm8 => (((weighted * 257 + 128) >> 8) as f64 / 65535.0) as f32,
        Channel::U16 | Channel::Unorm16 | Channel::Unorm10 => {
            (((weighted + 128) >> 8) as f64 / 65535.0) as f32
        }
        Channel::Unorm2 => (((weighted * 0x5555 + 128) >> 8) as f64 / 65535.0) as f32,
        Channel::S8 | Channel::Snorm8 => {
            let wide = (8 * weighted + (weighted >> 4) + (weighted >> 12) + 4) >> 3;
            (wide.clamp(-32767, 32767) as f64 / 32767.0) as f32
        }
        _ => (((weighted + 128) >> 8).clamp(-32767, 32767) as f64 / 32767.0) as f32,
    }
}

/// A number: `value * 2^unit`.
#[derive(Clone, Copy)]
struct Scaled {
    value: i128,
    unit: i32,
}

impl Scaled {
    /// The sum; of what lies far below the other, only its sign is kept.
    fn plus(self, other: Scaled) -> Scaled {
        let (high, low) = if self.unit >= other.unit { (self, other) } else { (other, self) };
        if high.value == 0 || low.value == 0 {
            return if high.value == 0 { low } else { high };
        }
        let apart = high.unit - low.unit;
        if apart <= 70 {
            return Scaled { value: (high.value << apart) + low.value, unit: low.unit };
        }
        Scaled { value: (high.value << 70) + low.value.signum(), unit: high.unit - 70 }
    }
}

/// [`float_sum`] of four numbers that are neither very large nor very small beside each other, in words that processors have.
#[inline]
fn usual_sum(quads: &[Quad]) -> Option<u32> {
    let [quad] = quads else { return None };
    let largest = quad.iter().filter(|(weight, _)| *weight != 0).map(|(_, bits)| bits >> 23 & 0xff).max()?;
    if !(64..=253).contains(&largest) {
        return None;
    }
    // In units of the 27th place below the leading one of the largest, and 1/256 of that.
    let mut value = 0;
    for (weight, bits) in quad {
        let exponent = bits >> 23 & 0xff;
        let mantissa = if exponent == 0 { 0 } else { i64::from(bits & 0x7f_ffff | 1 << 23) };
        let cut = if *weight == 0 { 0 } else { (mantissa << 4) >> (largest - exponent).min(63) };
        let product = cut * i64::from(*weight);
        value += if bits >> 31 != 0 { -product } else { product };
    }
    let magnitude = value.unsigned_abs();
    let places = 64 - magnitude.leading_zeros();
    // To nearest, half-way away from zero.
    let lost = places.saturating_sub(24);
    let rounded = (magnitude + (1 << lost >> 1)) >> lost << lost;
    // Exact: 24 places, and an exponent that is far from the least.
    let unit = f32::from_bits((largest - 35) << 23);
    let sum = rounded as f32 * unit;
    Some(if value < 0 { -sum } else { sum }.to_bits())
}

fn float_sum(quads: &[Quad], kind: Type, cut: Cut) -> u32 {
    let used = || quads.iter().flatten().filter(|(weight, _)| *weight != 0);
    let special = used().fold(0f32, |sum, (_, bits)| {
        let value = f32::from_bits(*bits);
        if value.is_finite() { sum } else { sum + value }
    });
    if special.is_nan() {
        return if kind == Type::F16 { 0x7fff_e000 } else { 0x7fff_ffff };
    }
    if special != 0.0 {
        return special.to_bits();
    }
    if used().all(|(_, bits)| *bits == 0x8000_0000) {
        return 0x8000_0000;
    }
    let mut total = Scaled { value: 0, unit: 0 };
    for quad in quads {
        let taps = quad.iter().filter(|(weight, _)| *weight != 0);
        let exponent = |bits: u32| (bits >> 23 & 0xff).max(1) as i32 - 127;
        let rank = |bits: u32| {
            let mantissa = (bits >> 15 & 0xff | 0x100) / 2;
            exponent(bits) + i32::from(mantissa >= (cut.just_below)(exponent(bits)))
        };
        let Some(largest) =
            taps.clone().filter(|(_, bits)| bits << 1 != 0).map(|(_, bits)| rank(*bits)).max()
        else {
            continue;
        };
        let unit = largest.max(cut.least) - cut.places;
        let mut value = 0;
        for (weight, bits) in taps {
            // Numbers below the normal ones count as zero.
            let mantissa = if bits >> 23 & 0xff == 0 { 0 } else { i128::from(bits & 0x7f_ffff | 1 << 23) };
            let shift = unit - (exponent(*bits) - 23);
            let cut = if shift >= 0 { mantissa >> shift.min(120) } else { mantissa << -shift };
            let product = cut * i128::from(*weight);
            value += if bits >> 31 != 0 { -product } else { product };
        }
        // Weights count in 1/256.
        total = total.plus(Scaled { value, unit: unit - 8 });
    }
    round(total, kind)
}

/// To nearest, half-way away from zero; the bits of an `f32` that has the value.
fn round(number: Scaled, kind: Type) -> u32 {
    let Scaled { value, unit } = number;
    let exact = Exact { negative: value < 0, exp: unit, sig: value.unsigned_abs(), sticky: false };
    let bits = exact.round(Format::of(kind), Rounding::NearestAway, false);
    match kind {
        Type::F16 => Channel::F16.widen(&(bits as u16).to_le_bytes()),
        _ => bits as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_make_a_whole() {
        for x in 0..=255 {
            for y in 0..=255 {
                assert_eq!(square(WHOLE, x, y).iter().sum::<u32>(), WHOLE);
            }
        }
        assert_eq!(square(WHOLE, 170, 64), [65, 127, 21, 43]);
    }

    #[test]
    fn ten_bits_are_filtered_as_sixteen() {
        // Four texels, and what an H100 made of them.
        let channels = [[0, 1, 64, 65], [5, 18, 837, 850], [1023, 1022, 959, 958], [0, 1, 0, 1]];
        let filtered = channels.iter().enumerate().map(|(index, texels)| {
            let weights = square(WHOLE, 16, 8);
            let quad = std::array::from_fn(|texel| (weights[texel], texels[texel]));
            let channel = if index == 3 { Channel::Unorm2 } else { Channel::Unorm10 };
            (f32::from_bits(sum(channel, &[quad])) * 65535.0).round() as u32
        });
        assert_eq!(filtered.collect::<Vec<_>>(), [132, 2038, 65403, 1365]);
    }

    #[test]
    fn usual_sums_are_the_exact_ones() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32
        };
        let mut usual = 0;
        for round in 0..200_000 {
            let weights = square(WHOLE, random() & 255, random() & 255);
            let near = random() % 8 * 32;
            let quad = weights.map(|weight| {
                // Numbers that are alike, far apart, whole, and of all kinds.
                let bits = random() << 1 ^ random();
                let bits = match round % 4 {
                    0 => bits,
                    1 => bits & 0x80ff_ffff | near << 23,
                    2 => (bits as i32 >> 20).wrapping_mul(128).cast_unsigned() & 0xff,
                    _ => ((bits & 7) as f32 - 3.0).to_bits(),
                };
                (weight, bits)
            });
            if let Some(sum) = usual_sum(&[quad]) {
                usual += 1;
                assert_eq!(sum, float_sum(&[quad], Type::F32, Cut::of(Type::F32)), "{quad:x?}");
            }
        }
        assert!(usual > 50_000, "{usual}");
    }

    #[test]
    fn halves_round_away_from_zero() {
        let quad = |a: f32, b: f32| [(128, a.to_bits()), (128, b.to_bits()), (0, 0), (0, 0)];
        let next = f32::from_bits(1f32.to_bits() + 1);
        assert_eq!(sum(Channel::F32, &[quad(1.0, next)]), next.to_bits());
        assert_eq!(sum(Channel::F32, &[quad(-1.0, -next)]), (-next).to_bits());
        assert_eq!(sum(Channel::F32, &[quad(f32::INFINITY, 1.0)]), f32::INFINITY.to_bits());
        assert_eq!(sum(Channel::F32, &[quad(f32::MAX, f32::MAX)]), f32::MAX.to_bits());
        let tiny = f32::from_bits(1);
        assert_eq!(sum(Channel::F32, &[quad(tiny, tiny)]), 0);
        assert_eq!(sum(Channel::F32, &[quad(-0.0, -0.0)]), 0x8000_0000);
        assert_eq!(sum(Channel::F32, &[quad(-0.0, 0.0)]), 0);
        assert_eq!(sum(Channel::F16, &[quad(f32::NAN, 0.0)]), 0x7fff_e000);
    }
}
