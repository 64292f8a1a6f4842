//! From coordinates to texels.
//!
//! A coordinate between 0 and 1 is cut to 21 binary places before it is multiplied by the extent. A place between texels is
//! rounded to 1/256 of a texel.

use super::AddressMode;

/// Binary places of a coordinate from 0 to 1.
const PLACES: u32 = 21;

/// Far outside of every image, and far from overflow.
const FAR: f64 = 1.0e9;

/// One coordinate of a sample along an axis of a level.
#[derive(Clone, Copy)]
pub(super) enum Coordinate {
    /// In texels.
    Texels(f64),
    /// A fraction of the extent, in units of 2^-21.
    Fraction(i64),
}

impl Coordinate {
    /// A coordinate in texels. What is no number is 0, and what is less than every normal one.
    #[inline]
    pub(super) fn texels(x: f32) -> Coordinate {
        let is_number = x.is_normal() || x.is_infinite();
        Coordinate::Texels(if is_number { f64::from(x).clamp(-FAR, FAR) } else { 0.0 })
    }

    /// A coordinate from 0 to 1, brought near there as the mode says.
    #[inline]
    pub(super) fn fraction(x: f64, mode: AddressMode) -> Coordinate {
        // Where an image repeats, large numbers are whole ones.
        let repeats = matches!(mode, AddressMode::Wrap | AddressMode::Mirror);
        let tiny = x.abs() < f64::from(f32::MIN_POSITIVE);
        let x = if tiny || repeats && x.abs() > FAR { 0.0 } else { x };
        // What is no number becomes 0, what is too large the largest number.
        let units = floor(x * f64::from(1 << PLACES));
        Coordinate::Fraction(match mode {
            AddressMode::Wrap => units.rem_euclid(1 << PLACES),
            AddressMode::Mirror => units.rem_euclid(2 << PLACES),
            AddressMode::Clamp | AddressMode::Border => units.clamp(-(64 << PLACES), 64 << PLACES),
        })
    }

    /// So many texels further along an axis of this extent.
    pub(super) fn moved(self, by: f64, extent: u32, mode: AddressMode) -> Coordinate {
        match self {
            Coordinate::Texels(x) => Coordinate::Texels((x + by).clamp(-FAR, FAR)),
            Coordinate::Fraction(units) => {
                let places = f64::from(1 << PLACES);
                Coordinate::fraction(units as f64 / places + by / f64::from(extent.max(1)), mode)
            }
        }
    }

    /// A coordinate from -1 to 1 on a face of a cube.
    pub(super) fn on_face(x: f64) -> Coordinate {
        let half = 1 << (PLACES - 1);
        Coordinate::Fraction((x * f64::from(half)).floor() as i64 + i64::from(half))
    }

    /// The texel that the place lies in, perhaps outside.
    #[inline]
    pub(super) fn nearest(self, extent: u32) -> i64 {
        match self {
            Coordinate::Texels(x) => floor(x),
            Coordinate::Fraction(units) => (units * i64::from(extent)) >> PLACES,
        }
    }

    /// How far the place lies from the centre of texel 0, in 1/256 of a texel.
    #[inline]
    pub(super) fn between(self, extent: u32) -> i64 {
        match self {
            Coordinate::Texels(x) => floor(x * 256.0 - 127.5),
            // No word is too short for what lies near an image.
            Coordinate::Fraction(units) if extent < 1 << 24 && units.unsigned_abs() < 1 << 29 => {
                (units * i64::from(extent) * 512 - (255 << PLACES)) >> (PLACES + 1)
            }
            Coordinate::Fraction(units) => {
                ((i128::from(units) * i128::from(extent) * 512 - (255 << PLACES)) >> (PLACES + 1)) as i64
            }
        }
    }
}

/// The whole number below, also where processors have no instruction for it; 0 for what is no number.
#[inline]
fn floor(x: f64) -> i64 {
    let towards_zero = x as i64;
    towards_zero.saturating_sub(i64::from(towards_zero as f64 > x))
}

/// The texel that stands for one that may lie outside; `None` for the border, and where there is no texel at all.
#[inline]
pub(super) fn address(texel: i64, extent: u32, mode: AddressMode) -> Option<u64> {
    if extent == 0 {
        return None;
    }
    let extent = i64::from(extent);
    if (0..extent).contains(&texel) {
        return Some(texel as u64);
    }
    let inside = match mode {
        AddressMode::Wrap => texel.rem_euclid(extent),
        AddressMode::Clamp => texel.clamp(0, extent - 1),
        AddressMode::Mirror => {
            let twice = texel.rem_euclid(2 * extent);
            twice.min(2 * extent - 1 - twice)
        }
        AddressMode::Border => return None,
    };
    Some(inside as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texels_outside_are_stood_for() {
        let modes = [AddressMode::Wrap, AddressMode::Clamp, AddressMode::Mirror, AddressMode::Border];
        let at = |texel| modes.map(|mode| address(texel, 5, mode));
        assert_eq!(at(-1), [Some(4), Some(0), Some(0), None]);
        assert_eq!(at(3), [Some(3); 4]);
        assert_eq!(at(6), [Some(1), Some(4), Some(3), None]);
        assert_eq!(at(i64::from(i32::MIN))[3], None);
    }

    #[test]
    fn places_are_cut_before_they_are_multiplied() {
        // As an H200 has them; with one place more each would be one more.
        for (x, extent, place) in
            [(0.510_082_54_f32, 37, 4703), (0.125_475_17, 37, 1060), (0.929_041_2, 1000, 237_706)]
        {
            for mode in [AddressMode::Wrap, AddressMode::Clamp, AddressMode::Mirror, AddressMode::Border] {
                assert_eq!(Coordinate::fraction(x.into(), mode).between(extent), place);
            }
        }
    }

    #[test]
    fn odd_coordinates_lead_somewhere() {
        for x in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -1.0e-40] {
            for mode in [AddressMode::Wrap, AddressMode::Clamp, AddressMode::Mirror, AddressMode::Border] {
                for place in [Coordinate::texels(x), Coordinate::fraction(x.into(), mode)] {
                    address(place.nearest(1 << 27), 1 << 27, mode);
                    address(place.between(1 << 27) >> 8, 1 << 27, mode);
                }
            }
        }
    }
}
