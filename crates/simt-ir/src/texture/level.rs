//! Which mip level a sample is of.
//!
//! Levels count in 1/256. The level that suits gradients is the logarithm of a length: the longest of both gradients, and
//! of 11/16 of their sum and difference. All of it is done with few places, and the logarithm is read from a table of 256.

use super::gradient::Gradients;
use super::{Filter, Sampler};

/// Levels between which a sample is taken, and how much of the second, in 1/256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blend {
    pub(super) first: usize,
    pub(super) second: usize,
    pub(super) fraction: u32,
}

/// What is read for a level as a number, of an image that has `count` of them; the base level without a number. All numbers are
/// cut to 1/256.
pub(super) fn blend(level: Option<f32>, sampler: &Sampler, count: usize) -> Blend {
    let last = count.saturating_sub(1);
    if last == 0 {
        return Blend { first: 0, second: 0, fraction: 0 };
    }
    // What is no number becomes 0, what is too large the largest number.
    let units = |number: f32| (f64::from(number) * 256.0) as i64;
    // No number is no limit, and a limit that all obey.
    let [least, most] = sampler.level_clamp.map(|limit| if limit.is_nan() { i64::MAX } else { units(limit) });
    // The bias belongs to levels that are asked for.
    let bias = units(if sampler.mip_bias.is_nan() { 15.0 } else { sampler.mip_bias.clamp(-15.0, 15.0) });
    let biased = level.map_or(0, |level| units(level).saturating_add(bias));
    let chosen = match sampler.mip_filter {
        Filter::Point => biased,
        Filter::Linear => steepened(biased, sampler.max_anisotropy),
    };
    let units = chosen.min(most).max(least).clamp(0, 256 * last as i64) as usize;
    match sampler.mip_filter {
        Filter::Point => {
            let nearest = (units + 128) >> 8;
            Blend { first: nearest, second: nearest, fraction: 0 }
        }
        Filter::Linear => {
            let first = units >> 8;
            Blend { first, second: (first + 1).min(last), fraction: (units & 255) as u32 }
        }
    }
}

/// What a level becomes that is not limited yet: samplers that may take areas up to `most` times as long as wide go from one level to the
/// next faster, around halfway. An H200 has these numbers for all samples of such a sampler, with a bias of 0; with one and up to 4 to 7 times,
/// its levels can be 1/256 or 2/256 less.
fn steepened(level: i64, most: u32) -> i64 {
    let (slope, offset) = match most {
        ..2 => return level,
        2..4 => (6, 252),
        4..8 => (7, 378),
        8.. => (8, 512),
    };
    let (whole, rest) = (level & !255, level & 255);
    whole.saturating_add(((rest * slope - offset) >> 2).clamp(0, 256))
}

/// The level that suits gradients. What goes around an edge of a cube has no sum and no difference.
pub(super) fn of_gradients(Gradients { x, y, bent }: Gradients) -> f32 {
    let diagonal = |sign: f64| {
        let halfway = std::array::from_fn(|axis| sum(x[axis], sign * y[axis]));
        if bent { 0.0 } else { length_of_half(halfway) }
    };
    logarithm(length(x).max(length(y)).max(diagonal(1.0)).max(diagonal(-1.0)))
}

/// The power of two below a number.
pub(super) fn power(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & 0x7ff << 52)
}

/// The multiple of a power of two towards zero.
fn cut(x: f64, unit: f64) -> f64 {
    if unit.is_normal() && x.is_finite() { (x / unit).trunc() * unit } else { x }
}

/// `places` binary places of a number's mantissa.
pub(super) fn places(x: f64, places: i32) -> f64 {
    cut(x, power(x) * 2f64.powi(-places))
}

/// The sum, of nine places. A difference is computed with one place more, and what it loses of the lesser number counts as a whole one.
pub(super) fn sum(x: f64, y: f64) -> f64 {
    let (larger, lesser) = if x.abs() >= y.abs() { (x, y) } else { (y, x) };
    let unit = power(larger) / 512.0;
    if x * y >= 0.0 {
        return places(cut(x, unit) + cut(y, unit), 9);
    }
    let unit = unit / 2.0;
    let whole = cut(lesser, unit);
    let lost = if whole == lesser { 0.0 } else { unit.copysign(lesser) };
    places(cut(larger, unit) + (whole + lost), 9)
}

/// Eleven sixteenths of a number, of whose parts the places below the twelfth are cut; a constant makes up for the loss.
fn eleven_sixteenths(x: f64) -> f64 {
    if !x.is_normal() {
        return x;
    }
    let magnitude = places(x.abs(), 9);
    let unit = power(magnitude) / 4096.0;
    let parts: f64 = [2.0, 8.0, 16.0].iter().map(|part| cut(magnitude / part, unit)).sum();
    (parts + 2.0 * unit).copysign(x)
}

/// Nine places of the largest component, and of what the others add: 11/32 of the next, and a quarter of the least.
fn length(vector: [f64; 3]) -> f64 {
    let [least, middle, largest] = by_size(vector);
    length_of(largest, eleven_sixteenths(middle) / 2.0, least / 4.0, power(middle))
}

/// The same of 11/16 of a vector: the component in the middle is multiplied once by both factors.
fn length_of_half(vector: [f64; 3]) -> f64 {
    let [least, middle, largest] = by_size(vector);
    let part = middle * 121.0 / 512.0 + power(middle) / 8192.0;
    length_of(
        eleven_sixteenths(largest),
        part,
        eleven_sixteenths(least) / 4.0,
        power(eleven_sixteenths(middle)),
    )
}

fn by_size(vector: [f64; 3]) -> [f64; 3] {
    let mut sorted = vector.map(f64::abs);
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The sum of the largest component and of parts of the others; places of the last part count from the middle component's.
fn length_of(largest: f64, middle: f64, least: f64, of_middle: f64) -> f64 {
    let unit = power(largest) / 512.0;
    let others = places(middle, 9) + cut(least, of_middle / 2048.0);
    cut(largest, unit) + cut(others, unit)
}

/// What the hardware has for 1 + i/256.
#[rustfmt::skip]
const LOGARITHMS: [u8; 256] = [
    0, 2, 4, 5, 6, 8, 9, 11, 12, 13, 15, 16, 18, 19, 20, 22,
    23, 24, 26, 27, 28, 30, 31, 32, 34, 35, 36, 38, 39, 40, 42, 43,
    44, 45, 47, 48, 49, 50, 52, 53, 54, 55, 57, 58, 59, 60, 62, 63,
    64, 65, 66, 68, 69, 70, 71, 72, 74, 75, 76, 77, 78, 79, 81, 82,
    83, 84, 85, 86, 88, 89, 90, 91, 92, 93, 94, 95, 97, 98, 99, 100,
    101, 102, 103, 104, 105, 106, 107, 109, 110, 111, 112, 113, 114, 115, 116, 117,
    118, 119, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 130, 131, 132, 133,
    135, 136, 137, 137, 138, 139, 140, 141, 142, 143, 144, 145, 146, 147, 148, 149,
    150, 151, 152, 153, 154, 155, 156, 157, 158, 159, 160, 161, 162, 162, 163, 164,
    165, 166, 167, 168, 169, 170, 171, 172, 173, 173, 174, 175, 176, 177, 178, 179,
    180, 181, 181, 182, 183, 184, 185, 186, 187, 188, 188, 189, 190, 191, 192, 193,
    194, 195, 195, 196, 197, 198, 199, 200, 200, 201, 202, 203, 204, 205, 205, 206,
    207, 208, 209, 210, 210, 211, 212, 213, 214, 214, 215, 216, 217, 218, 218, 219,
    220, 221, 222, 222, 223, 224, 225, 226, 226, 227, 228, 229, 229, 230, 231, 232,
    233, 233, 234, 235, 236, 236, 237, 238, 239, 239, 240, 241, 242, 242, 243, 244,
    245, 245, 246, 247, 248, 248, 249, 250, 251, 251, 252, 253, 253, 254, 255, 255,
];

/// In units of 1/256.
fn logarithm(length: f64) -> f32 {
    if !length.is_normal() || length < 0.0 {
        // Also what is no number.
        return if length == f64::INFINITY { f32::INFINITY } else { f32::NEG_INFINITY };
    }
    let bits = length.to_bits();
    let exponent = (bits >> 52) as i32 - 1023;
    let place = (bits >> 44 & 255) as usize;
    (exponent * 256 + i32::from(LOGARITHMS[place])) as f32 / 256.0
}

#[cfg(test)]
mod tests {
    use super::super::gradient::of_coordinates;
    use super::*;

    #[test]
    fn the_hardwares_logarithms() {
        let all = [
            (2.0, 1.0),
            (1.0, 0.0),
            (0.0, f32::NEG_INFINITY),
            (1.375, 118.0 / 256.0),
            (1.34375, 110.0 / 256.0),
        ];
        for (length, level) in all {
            assert_eq!(logarithm(length), level, "{length}");
        }
        let of_gradients = |x, y| of_gradients(of_coordinates(x, y, [1.0; 3]));
        assert_eq!(of_gradients([1.0, 0.0, 0.0], [1.0, 0.0, 0.0]), 118.0 / 256.0);
        assert_eq!(of_gradients([2.0, 1.0, 1.0], [0.0; 3]), 1.0 + 97.0 / 256.0);
        assert_eq!(of_gradients([0.25, 4.0, 0.0], [4.0, 0.25, 0.0]), 2.0 + 8.0 / 256.0);
        // As an H100 has them, of images of 1024 by 1024 and of 128 by 128 by 128 texels.
        let of_scaled = |x, scale| super::of_gradients(of_coordinates(x, [0.0; 3], scale));
        let flat = of_scaled([0.21520552, 0.24148183, 0.0], [1024.0, 1024.0, 1.0]);
        assert_eq!(flat, 2133.0 / 256.0);
        let deep = of_scaled([0.04962246, -0.10318865, 0.023129517], [128.0; 3]);
        assert_eq!(deep, 1028.0 / 256.0);
    }

    #[test]
    fn levels_stay_within_what_there_is() {
        let sampler = Sampler { level_clamp: [0.0, 99.0], ..Sampler::default() };
        let nearest = |level| blend(Some(level), &sampler, 4).first;
        assert_eq!([-1.0, 0.25, 0.5, 2.5, 9.0, f32::NAN].map(nearest), [0, 0, 1, 3, 3, 0]);
        let linear = Sampler { mip_filter: Filter::Linear, ..sampler };
        assert_eq!(blend(Some(1.25), &linear, 4), Blend { first: 1, second: 2, fraction: 64 });
        // Of an H200, with ratios of up to 2, 4 and 16.
        let steep = |most, level: f32| {
            let sampler = Sampler { max_anisotropy: most, ..linear.clone() };
            blend(Some(level / 256.0), &sampler, 4).fraction
        };
        assert_eq!(
            [42.0, 53.0, 65.0, 128.0, 209.0, 212.0].map(|level| steep(2, level)),
            [0, 16, 34, 129, 250, 255]
        );
        assert_eq!(
            [53.0, 58.0, 65.0, 73.0, 197.0, 202.0].map(|level| steep(4, level)),
            [0, 7, 19, 33, 250, 0]
        );
        assert_eq!([64.0, 65.0, 128.0, 186.0, 192.0].map(|level| steep(16, level)), [0, 2, 128, 244, 0]);
        // Limits are those of what comes of it.
        let limited = Sampler { max_anisotropy: 8, level_clamp: [0.2, 2.4], ..linear.clone() };
        assert_eq!([0.0, 3.0].map(|level| blend(Some(level), &limited, 4).fraction), [51, 102]);
        let biased = Sampler { mip_bias: 0.3, ..linear.clone() };
        assert_eq!(blend(Some(0.0), &biased, 4), Blend { first: 0, second: 1, fraction: 76 });
        assert_eq!(blend(None, &biased, 4).fraction, 0);
        let narrow = Sampler { level_clamp: [1.3, 3.7], ..linear.clone() };
        assert_eq!(blend(None, &narrow, 6), Blend { first: 1, second: 2, fraction: 76 });
        assert_eq!(blend(Some(7.0), &linear, 4), Blend { first: 3, second: 3, fraction: 0 });
    }
}
