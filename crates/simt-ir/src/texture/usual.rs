//! The usual sample: float coordinates in one level of texels that lie channel beside channel. What is the same for all lanes is looked at
//! once; [`sample`](super::sample()) does everything, and the same.

use super::coordinate::{Coordinate, address};
use super::filter::{self, Quad, WHOLE, square};
use super::sample::Reading;
use super::{
    AddressMode, Channel, Filter, Geometry, ImageView, Level, Lod, Packing, Sample, Sampler, Texels,
};

/// Where a texel is in a level.
#[derive(Clone, Copy)]
struct Texel {
    x: u64,
    y: u64,
    slice: u64,
}

/// A texture and an instruction that reads it in the usual way.
pub struct Usual<'a> {
    level: &'a Level,
    geometry: Geometry,
    layers: u32,
    normalized: bool,
    modes: [AddressMode; 3],
    /// As the sampler says, for coordinates that repeat.
    asked: [AddressMode; 3],
    linear: bool,
    /// Whether integers become floats.
    normalizes: bool,
    channel: Channel,
    channels: usize,
    border: [u32; 4],
}

impl<'a> Usual<'a> {
    /// `None` if there is anything unusual about it.
    pub fn new(op: &Sample, view: &'a ImageView, sampler: &Sampler) -> Option<Usual<'a>> {
        let [level] = &view.levels[..] else { return None };
        let is_plain = view.format.packing == Packing::Plain && level.tiles.is_none() && !view.is_linear;
        let is_box = matches!(op.geometry, Geometry::D1 | Geometry::D2 | Geometry::D3 | Geometry::D2Layered);
        // With one level it does not matter which is asked for.
        let is_simple = !op.integers && op.gather.is_none() && !op.offsets && !op.halves;
        if !(is_plain && is_box && is_simple) || op.lod == Lod::Gradients || sampler.srgb {
            return None;
        }
        let reading = Reading { view, sampler };
        Some(Usual {
            level,
            geometry: op.geometry,
            layers: view.layers.max(1),
            normalized: sampler.normalized,
            modes: [0, 1, 2].map(|axis| reading.address_mode(axis)),
            asked: sampler.address,
            linear: sampler.filter == Filter::Linear && reading.can_filter(),
            normalizes: reading.normalizes(),
            channel: reading.channel(),
            channels: view.format.channels.into(),
            border: reading.border_colour(),
        })
    }

    /// What one lane gets. `operands` are those after the handles.
    ///
    /// # Errors
    /// What reading texels gives.
    ///
    /// # Panics
    /// With fewer operands than the instruction has.
    #[inline]
    pub fn sample<T: Texels>(&self, operands: &[u64], texels: &mut T) -> Result<[u32; 4], T::Error> {
        let (layer, given) = match self.geometry.is_layered() {
            true => (u64::from((operands[0] as u32).min(self.layers - 1)), &operands[1..]),
            false => (0, operands),
        };
        let count = self.geometry.coordinates();
        let place = |axis: usize| {
            let x = if axis < count { f32::from_bits(given[axis] as u32) } else { 0.0 };
            match self.normalized {
                true => Coordinate::fraction(x.into(), self.asked[axis]),
                false => Coordinate::texels(x),
            }
        };
        let deep = self.geometry == Geometry::D3;
        if !self.linear {
            let along = |axis: usize| {
                let extent = self.level.extent[axis];
                address(place(axis).nearest(extent), extent, self.modes[axis])
            };
            let slice = if deep { along(2) } else { Some(layer) };
            let texel = along(0).zip(along(1)).zip(slice);
            let words = self.texel(texel.map(|((x, y), slice)| Texel { x, y, slice }), texels)?;
            return Ok(std::array::from_fn(|index| match index < self.channels {
                true if self.normalizes => filter::normalized(self.channel, words[index]).to_bits(),
                true => words[index],
                false => 0,
            }));
        }
        let around = |axis: usize| {
            let (extent, mode) = (self.level.extent[axis], self.modes[axis]);
            let mut between = place(axis).between(extent);
            if mode == AddressMode::Clamp {
                between = between.clamp(0, i64::from(extent.saturating_sub(1)) << 8);
            }
            let texel = between >> 8;
            ([address(texel, extent, mode), address(texel + 1, extent, mode)], (between & 255) as u32)
        };
        let ((columns, x), (rows, y)) = (around(0), around(1));
        let (slices, z) = if deep { around(2) } else { ([Some(layer); 2], 0) };
        let spots = |slice: Option<u64>| {
            [0, 1, 2, 3].map(|corner| {
                let ((x, y), slice) = columns[corner & 1].zip(rows[corner >> 1]).zip(slice)?;
                Some(Texel { x, y, slice })
            })
        };
        // Half-way goes to the first slice.
        let second = (WHOLE * z + 127) >> 8;
        let weights = [square(WHOLE - second, x, y), square(second, x, y)];
        if second == 0 {
            return self.sum(&[spots(slices[0])], &weights, texels);
        }
        if second == WHOLE {
            return self.sum(&[spots(slices[1])], &weights[1..], texels);
        }
        self.sum(&[spots(slices[0]), spots(slices[1])], &weights, texels)
    }

    /// The weighted sums of so many times four texels.
    #[inline]
    fn sum<const SLICES: usize, T: Texels>(
        &self,
        spots: &[[Option<Texel>; 4]; SLICES],
        weights: &[[u32; 4]],
        texels: &mut T,
    ) -> Result<[u32; 4], T::Error> {
        let mut words = [[[0; 4]; 4]; SLICES];
        for ((words, spots), weights) in words.iter_mut().zip(spots).zip(weights) {
            for ((words, spot), weight) in words.iter_mut().zip(spots).zip(weights) {
                if *weight != 0 {
                    *words = self.texel(*spot, texels)?;
                }
            }
        }
        let mut result = [0; 4];
        for (channel, result) in result.iter_mut().enumerate().take(self.channels) {
            let quads: [Quad; SLICES] = std::array::from_fn(|slice| {
                std::array::from_fn(|corner| (weights[slice][corner], words[slice][corner][channel]))
            });
            *result = filter::sum(self.channel, &quads);
        }
        Ok(result)
    }

    /// The channels of a texel, widened; those of the border for none.
    #[inline]
    fn texel<T: Texels>(&self, texel: Option<Texel>, texels: &mut T) -> Result<[u32; 4], T::Error> {
        let Some(Texel { x, y, slice }) = texel else { return Ok(self.border) };
        let bytes = self.channel.bytes() * self.channels;
        let address = self.level.locate(x * bytes as u64, y, slice);
        let mut memory = [0; 16];
        // Each size is a load of its own.
        match bytes {
            1 => texels.load(address, &mut memory[..1])?,
            2 => texels.load(address, &mut memory[..2])?,
            4 => texels.load(address, &mut memory[..4])?,
            _ => texels.load(address, &mut memory[..bytes])?,
        }
        let word = |index: usize| {
            let at = index * self.channel.bytes();
            match self.channel {
                Channel::F32 => {
                    u32::from_le_bytes([memory[at], memory[at + 1], memory[at + 2], memory[at + 3]])
                }
                channel => channel.widen(&memory[at..at + channel.bytes()]),
            }
        };
        let mut words = [0; 4];
        for (index, result) in words.iter_mut().enumerate().take(self.channels) {
            *result = word(index);
        }
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::texture::{Format, ReadMode, sample};

    const OP: Sample = Sample {
        geometry: Geometry::D2,
        integers: false,
        lod: Lod::Base,
        gather: None,
        offsets: false,
        halves: false,
        sampler: false,
    };

    /// Bytes from address 0 on.
    struct Bytes(Vec<u8>);

    impl Texels for Bytes {
        type Error = u64;

        fn load(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), u64> {
            let start = address as usize;
            bytes.copy_from_slice(self.0.get(start..start + bytes.len()).ok_or(address)?);
            Ok(())
        }

        fn store(&mut self, address: u64, _: &[u8]) -> Result<(), u64> {
            Err(address)
        }

        fn update(&mut self, address: u64, _: usize, _: &dyn Fn(u64) -> u64) -> Result<(), u64> {
            Err(address)
        }
    }

    fn random(state: &mut u64) -> u32 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as u32
    }

    fn coordinate(state: &mut u64, extent: u32, normalized: bool) -> u64 {
        let odd = [f32::NAN, f32::INFINITY, -0.0, 1e-40, -3e9, 1.5];
        let near = (random(state) % 4096) as f32 / 1024.0 - 1.5;
        let x = match random(state) % 16 {
            0 => odd[random(state) as usize % odd.len()],
            _ => near * if normalized { 1.0 } else { extent as f32 },
        };
        x.to_bits().into()
    }

    #[test]
    fn what_is_usual_is_sampled_the_same_way() {
        let mut state = 1;
        let mut memory = Bytes((0..64 * 1024).map(|_| random(&mut state) as u8).collect());
        let modes = [AddressMode::Wrap, AddressMode::Clamp, AddressMode::Mirror, AddressMode::Border];
        let channels = [Channel::U8, Channel::S16, Channel::F16, Channel::F32, Channel::U32, Channel::Unorm8];
        let geometries = [Geometry::D1, Geometry::D2, Geometry::D3, Geometry::D2Layered];
        for round in 0..4000 {
            let geometry = geometries[round % 4];
            let channel = channels[random(&mut state) as usize % channels.len()];
            let format = Format::new(channel, 1 << (random(&mut state) % 3)).unwrap();
            let mut extent = [0; 3].map(|_| random(&mut state) % 9 + 1);
            extent[geometry.coordinates()..].fill(1);
            let row_pitch = format.bytes() as u64 * 9;
            let level = Level { extent, address: 16, row_pitch, slice_pitch: row_pitch * 9, tiles: None };
            let layers = if geometry.is_layered() { 5 } else { 1 };
            let view = ImageView { geometry, format, layers, levels: vec![level], ..ImageView::default() };
            let pick = |state: &mut u64| modes[random(state) as usize % 4];
            let sampler = Sampler {
                address: [pick(&mut state), pick(&mut state), pick(&mut state)],
                filter: if random(&mut state).is_multiple_of(3) { Filter::Point } else { Filter::Linear },
                border: [0.25, -1.0, 3.0, 1e-3],
                normalized: random(&mut state).is_multiple_of(2),
                read: if random(&mut state).is_multiple_of(2) {
                    ReadMode::Normalized
                } else {
                    ReadMode::Element
                },
                ..Sampler::default()
            };
            let op = Sample { geometry, ..OP };
            let usual = Usual::new(&op, &view, &sampler).expect("nothing is unusual");
            for _ in 0..20 {
                let mut operands = Vec::new();
                if geometry.is_layered() {
                    operands.push(u64::from(random(&mut state) % 7));
                }
                for extent in &extent[..geometry.coordinates()] {
                    operands.push(coordinate(&mut state, *extent, sampler.normalized));
                }
                let wanted = sample(&op, &view, &sampler, &operands, &mut memory);
                let found = usual.sample(&operands, &mut memory);
                assert_eq!(found, wanted, "{operands:x?} of {view:?} by {sampler:?}");
            }
        }
    }

    #[test]
    fn what_is_unusual_is_left_to_others() {
        let level = Level { extent: [4; 3], address: 0, row_pitch: 4, slice_pitch: 16, tiles: None };
        let view = ImageView { geometry: Geometry::D2, levels: vec![level; 2], ..ImageView::default() };
        assert!(Usual::new(&OP, &view, &Sampler::default()).is_none(), "there are two levels");
        let view = ImageView { levels: vec![level], ..view };
        let sampler = Sampler { srgb: true, ..Sampler::default() };
        assert!(Usual::new(&OP, &view, &sampler).is_none(), "texels are curved");
        assert!(Usual::new(&Sample { integers: true, ..OP }, &view, &Sampler::default()).is_none());
        assert!(Usual::new(&Sample { lod: Lod::Gradients, ..OP }, &view, &Sampler::default()).is_none());
        assert!(Usual::new(&OP, &view, &Sampler::default()).is_some());
    }
}
