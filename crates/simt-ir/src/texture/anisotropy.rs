//! Samples of an area that is longer than it is wide, in images of two dimensions.
//!
//! The longer gradient gives the area's direction and length, the shorter one its width, which chooses the level; a sampler says how many
//! times the width the length may be, and the area is wider if it must. Samples lie along the area, one width apart, and count alike but for
//! the outermost, which count for what is left. This was fitted to samples of an H100, whose bits it does not have.

/// Where samples are taken and of which level.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Footprint {
    pub(super) level: f32,
    /// How far from the middle, in texels of the largest level, and how much of the whole.
    pub(super) samples: Vec<([f64; 2], f64)>,
}

/// The footprint of gradients in texels, with a ratio of at most `most`; none without a length.
pub(super) fn footprint(x: [f64; 2], y: [f64; 2], most: u32) -> Option<Footprint> {
    let length = |vector: [f64; 2]| vector[0].hypot(vector[1]);
    let (long, short) = if length(x) >= length(y) { (x, y) } else { (y, x) };
    let (long_length, short_length) = (length(long), length(short));
    if !long_length.is_normal() || !short_length.is_finite() {
        return None;
    }
    let width = short_length.max(long_length / f64::from(most));
    let ratio = long_length / width;
    let step = long.map(|part| part / ratio);
    let at = |widths: f64, weight: f64| (step.map(|part| part * widths), weight);
    let samples = if ratio < 2.0 {
        // With a ratio of one, both are in the middle.
        let apart = 1.0 - 1.0 / ratio;
        vec![at(-apart, 0.5), at(apart, 0.5)]
    } else {
        let pairs = (ratio / 2.0).ceil();
        let outermost = (ratio - 2.0 * pairs + 2.0) / 2.0 / ratio;
        let pair = |number: f64| {
            let weight = if number + 1.0 == pairs { outermost } else { 1.0 / ratio };
            [at(-0.5 - number, weight), at(0.5 + number, weight)]
        };
        (0..pairs as u32).flat_map(|number| pair(number.into())).collect()
    };
    Some(Footprint { level: width.log2() as f32, samples })
}

#[cfg(test)]
mod tests {
    use super::super::{
        AddressMode, Channel, Filter, Format, Geometry, ImageView, Level, Lod, Packing, Sample, Sampler,
        Texels, sample,
    };
    use super::*;

    fn of(x: [f32; 2], y: [f32; 2], most: u32) -> Footprint {
        footprint(x.map(f64::from), y.map(f64::from), most).expect("there is a length")
    }

    #[test]
    fn the_width_chooses_the_level() {
        assert_eq!(of([8.0, 0.0], [0.0, 2.0], 16).level, 1.0);
        // At most twice as long: four wide.
        assert_eq!(of([8.0, 0.0], [0.0, 2.0], 2).level, 2.0);
        assert_eq!(of([0.0, 3.0], [1.5, 0.0], 8).level, 1.5f64.log2() as f32);
        assert_eq!(of([16.0, 0.0], [0.0, 0.0], 8).level, 1.0);
        assert_eq!(footprint([0.0; 2], [0.0; 2], 4), None);
        assert_eq!(footprint([f64::INFINITY, 0.0], [1.0; 2], 4), None);
    }

    #[test]
    fn weights_make_one() {
        for most in [2, 4, 8, 16] {
            for length in [1.0, 1.5, 2.0, 2.25, 3.0, 4.0, 5.5, 8.0, 15.0, 16.0, 40.0] {
                let footprint = of([length, 0.0], [0.0, 1.0], most);
                let sum: f64 = footprint.samples.iter().map(|(_, weight)| weight).sum();
                assert!((sum - 1.0).abs() < 1e-12, "{most} {length}: {sum}");
                // They are as wide as the area, all in all, and lie around its middle.
                let middle: f64 = footprint.samples.iter().map(|([x, _], weight)| x * weight).sum();
                assert!(middle.abs() < 1e-12, "{most} {length}: {middle}");
            }
        }
        let three = of([6.0, 0.0], [0.0, 2.0], 16);
        assert_eq!(three.samples.len(), 4);
        assert!(
            three.samples.contains(&([3.0, 0.0], 1.0 / 6.0))
                && three.samples.contains(&([1.0, 0.0], 1.0 / 3.0))
        );
    }

    struct Image(Vec<f32>);

    impl Texels for Image {
        type Error = ();

        fn load(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), ()> {
            let texel = self.0.get(address as usize / 4).ok_or(())?;
            bytes.copy_from_slice(&texel.to_le_bytes());
            Ok(())
        }

        fn store(&mut self, _: u64, _: &[u8]) -> Result<(), ()> {
            Err(())
        }

        fn update(&mut self, _: u64, _: usize, _: &dyn Fn(u64) -> u64) -> Result<(), ()> {
            Err(())
        }
    }

    #[test]
    fn a_sample_is_the_sum_of_those_along_the_area() {
        const SIDE: u32 = 64;
        let texels = (0..SIDE * SIDE).map(|at| ((at % SIDE) as f32).powi(2) + (at / SIDE) as f32);
        let mut image = Image(texels.collect());
        let level = Level {
            extent: [SIDE, SIDE, 1],
            address: 0,
            row_pitch: u64::from(SIDE) * 4,
            slice_pitch: u64::from(SIDE * SIDE) * 4,
            tiles: None,
        };
        let view = ImageView {
            geometry: Geometry::D2,
            format: Format { channel: Channel::F32, channels: 1, packing: Packing::Plain },
            levels: vec![level],
            ..ImageView::default()
        };
        for (mode, normalized) in
            [(AddressMode::Clamp, true), (AddressMode::Wrap, true), (AddressMode::Clamp, false)]
        {
            let sampler = Sampler {
                address: [mode; 3],
                filter: Filter::Linear,
                mip_filter: Filter::Linear,
                level_clamp: [0.0, 99.0],
                normalized,
                max_anisotropy: 8,
                ..Sampler::default()
            };
            let scale = if normalized { SIDE as f32 } else { 1.0 };
            let op = Sample {
                geometry: Geometry::D2,
                integers: false,
                lod: Lod::Gradients,
                gather: None,
                offsets: false,
                halves: false,
                sampler: false,
            };
            let mut read = |op: &Sample, numbers: &[f32]| {
                let operands: Vec<u64> =
                    numbers.iter().map(|number| (number / scale).to_bits().into()).collect();
                let result =
                    sample(op, &view, &sampler, &operands, &mut image).expect("all texels are there");
                f64::from(f32::from_bits(result[0]))
            };
            for (length, at) in
                [(1.5, [30.5, 20.5]), (6.0, [30.0, 20.25]), (16.0, [62.0, 3.0]), (64.0, [1.0, 1.0])]
            {
                let given = read(&op, &[at[0], at[1], length, 0.0, 0.0, 1.0]);
                let base = Sample { lod: Lod::Base, ..op };
                let samples = of([length, 0.0], [0.0, 1.0], 8).samples;
                let expected: f64 = samples
                    .iter()
                    .map(|([x, y], weight)| weight * read(&base, &[at[0] + *x as f32, at[1] + *y as f32]))
                    .sum();
                assert!(
                    (given - expected).abs() <= expected.abs() * 1e-6,
                    "{length}: {given}, not {expected}"
                );
                assert!(length < 2.0 || given != read(&base, &at), "{length} is not along the area");
            }
        }
    }
}
