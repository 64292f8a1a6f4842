//! `tex` and `tld4` in one thread.

use super::anisotropy::{self, Footprint};
use super::coordinate::{Coordinate, address};
use super::cube;
use super::filter::{self, Quad, WHOLE, square};
use super::format::half_from_f32;
use super::op::{Lod, Sample};
use super::{
    AddressMode, Channel, Filter, Geometry, ImageView, Level, Packing, ReadMode, Sampler, Texels, gradient,
    level, srgb,
};
use crate::Rounding;

/// The texels of a sample: two levels of two slices of four at the most.
const MOST: usize = 16;

/// What a texture instruction gives: red, green, blue and alpha, or one channel of four texels; for pairs of halves only the
/// first two. `operands` are those after the handles.
///
/// # Errors
/// What reading texels gives.
///
/// # Panics
/// With fewer operands than the instruction has.
pub fn sample<T: Texels>(
    op: &Sample,
    view: &ImageView,
    sampler: &Sampler,
    operands: &[u64],
    texels: &mut T,
) -> Result<[u32; 4], T::Error> {
    if op.geometry == Geometry::D1 && op.integers != view.is_linear {
        // An index alone finds its way in plain memory only, and nothing else does there.
        return Ok([0; 4]);
    }
    let reading = Reading { view, sampler };
    let mut place = Place::new(op, &reading, operands);
    let result = match op.gather {
        Some(channel) => reading.gather(&place, channel.into(), texels)?,
        None => match place.footprint.take() {
            Some(footprint) => reading.sample_along(&place, &footprint, texels)?,
            None => reading.sample(&place, texels)?,
        },
    };
    if !op.halves {
        return Ok(result);
    }
    let half = |bits: u32| u32::from(half_from_f32(bits, Rounding::Nearest));
    let pair = |low: u32, high: u32| half(low) | half(high) << 16;
    Ok([pair(result[0], result[1]), pair(result[2], result[3]), 0, 0])
}

/// The layer of a fetch that is in none.
const OUTSIDE: u32 = u32::MAX;

/// Where a sample is taken.
struct Place {
    /// x, y, z.
    axes: [Coordinate; 3],
    /// z counts slices.
    deep: bool,
    /// There is no y between rows: a row is a layer.
    flat: bool,
    /// Added to the texel that a coordinate leads to.
    offsets: [i64; 3],
    /// The layer or face; 0 without.
    layer: u32,
    /// The face of a cube.
    face: Option<u32>,
    /// The mip level that is asked for.
    level: Option<f32>,
    /// Samples that make up this one.
    footprint: Option<Footprint>,
    /// Coordinates are integers: neither filter nor address modes act, and outside is black.
    fetched: bool,
    /// The same with a level: outside is the nearest texel, and black of a level that there is not.
    clamped: bool,
}

impl Place {
    fn new(op: &Sample, reading: &Reading<'_>, operands: &[u64]) -> Place {
        let (view, sampler) = (reading.view, reading.sampler);
        let mut rest = operands.iter().map(|word| *word as u32);
        let mut next = || rest.next().expect("the instruction has this operand");
        let layer = if op.geometry.is_layered() { next() } else { 0 };
        let count = op.geometry.coordinates();
        let mut given = [0u32; 3];
        given[..count].fill_with(&mut next);
        // With gradients, the bits of integers are taken for floats.
        let fetched = op.integers && op.lod != Lod::Gradients;
        let floats = given.map(f32::from_bits);
        let (mut face, mut directions) = (0, [0.0; 2]);
        let is_cube = op.geometry.is_cube();
        if is_cube {
            (face, directions) = cube::face(floats);
        }
        let axis = |axis: usize| {
            let mode = sampler.address[axis];
            if fetched {
                Coordinate::Texels(f64::from(given[axis] as i32))
            } else if is_cube {
                Coordinate::on_face(directions.get(axis).copied().unwrap_or(0.0))
            } else if sampler.normalized {
                Coordinate::fraction(floats[axis].into(), mode)
            } else {
                Coordinate::texels(floats[axis])
            }
        };
        let axes = [axis(0), axis(1), axis(2)];
        let extent = view.levels.first().map_or([1; 3], |level| level.extent).map(f64::from);
        let mut footprint = None;
        let level = match op.lod {
            Lod::Base => None,
            Lod::Level if op.integers => Some(next() as i32 as f32),
            Lod::Level => Some(f32::from_bits(next())),
            Lod::Gradients => {
                let mut vector = || {
                    let mut parts = [0.0; 3];
                    parts[..count].fill_with(|| f32::from_bits(next()));
                    parts
                };
                let (x, y) = (vector(), vector());
                let scale = if sampler.normalized { extent } else { [1.0; 3] };
                let gradients = match op.geometry {
                    _ if is_cube => gradient::on_cube(floats, x, y, extent[0] / 2.0),
                    Geometry::D3 => gradient::between(floats, x, y, scale),
                    _ => gradient::of_coordinates(x, y, scale),
                };
                let is_flat = matches!(op.geometry, Geometry::D2 | Geometry::D2Layered);
                let is_linear = sampler.filter == Filter::Linear && reading.can_filter();
                if is_flat && is_linear && sampler.max_anisotropy > 1 {
                    let scaled = |[x, y, _]: [f32; 3]| [f64::from(x) * scale[0], f64::from(y) * scale[1]];
                    footprint = anisotropy::footprint(scaled(x), scaled(y), sampler.max_anisotropy);
                }
                Some(level::of_gradients(gradients))
            }
        };
        let mut offsets = [0; 3];
        if op.offsets {
            // The instruction has four bits for each.
            offsets[..count].fill_with(|| i64::from(next() as i32) << 60 >> 60);
        }
        let layers = view.layers.max(1);
        let clamped = fetched && op.lod == Lod::Level;
        let layer = if fetched && !clamped && layer >= layers {
            OUTSIDE
        } else if is_cube {
            let cubes = (layers / 6).max(1);
            (layer.min(cubes - 1) * 6 + face).min(layers - 1)
        } else {
            layer.min(layers - 1)
        };
        let (deep, flat) = (op.geometry == Geometry::D3, op.geometry == Geometry::D1Layered);
        let face = is_cube.then_some(face);
        Place { axes, deep, flat, offsets, layer, face, level, footprint, fetched, clamped }
    }
}

/// Where a texel lies.
#[derive(Clone, Copy)]
struct Spot {
    /// Its own address, or that of its block.
    address: u64,
    /// Its number in the block.
    texel: usize,
}

/// Where texels of a sample lie; `None` for the border.
struct Taps {
    weights: [u32; MOST],
    spots: [Option<Spot>; MOST],
    count: usize,
}

impl Taps {
    fn new() -> Taps {
        Taps { weights: [0; MOST], spots: [None; MOST], count: 0 }
    }

    fn add(&mut self, weight: u32, spot: Option<Spot>) {
        self.weights[self.count] = weight;
        self.spots[self.count] = spot;
        self.count += 1;
    }
}

/// A texture.
pub(super) struct Reading<'a> {
    pub(super) view: &'a ImageView,
    pub(super) sampler: &'a Sampler,
}

impl Reading<'_> {
    pub(super) fn channel(&self) -> Channel {
        self.view.format.channel
    }

    /// Whether integers become floats.
    pub(super) fn normalizes(&self) -> bool {
        let channel = self.channel();
        channel.is_normalized() || channel.can_normalize() && self.sampler.read == ReadMode::Normalized
    }

    /// Whether a channel is sRGB: of four, and of two, the last is not.
    fn is_curved(&self, channel: usize) -> bool {
        let channels = if self.view.format.channels == 4 { 3 } else { 1 };
        let eight_bits = matches!(self.channel(), Channel::U8 | Channel::Unorm8);
        self.sampler.srgb && eight_bits && self.normalizes() && channel < channels
    }

    /// Whether a linear filter can act at all.
    pub(super) fn can_filter(&self) -> bool {
        !self.view.is_linear && (self.channel().is_float() || self.normalizes())
    }

    fn mode(&self, axis: usize, place: &Place) -> AddressMode {
        match place {
            Place { clamped: true, .. } => AddressMode::Clamp,
            Place { fetched: true, .. } => AddressMode::Border,
            _ => self.address_mode(axis),
        }
    }

    /// What stands for float coordinates outside the image.
    pub(super) fn address_mode(&self, axis: usize) -> AddressMode {
        match self.sampler.address[axis] {
            AddressMode::Wrap | AddressMode::Mirror if !self.sampler.normalized => AddressMode::Clamp,
            mode => mode,
        }
    }

    /// The sum of samples that lie around a place.
    fn sample_along<T: Texels>(
        &self,
        place: &Place,
        footprint: &Footprint,
        texels: &mut T,
    ) -> Result<[u32; 4], T::Error> {
        let extent = self.view.levels.first().map_or([1; 3], |level| level.extent);
        let mut sums = [0.0; 4];
        for (by, weight) in &footprint.samples {
            let mut axes = place.axes;
            for (axis, by) in by.iter().enumerate() {
                axes[axis] = axes[axis].moved(*by, extent[axis], self.mode(axis, place));
            }
            let at = Place { axes, level: Some(footprint.level), footprint: None, ..*place };
            for (sum, bits) in sums.iter_mut().zip(self.sample(&at, texels)?) {
                *sum += weight * f64::from(f32::from_bits(bits));
            }
        }
        Ok(sums.map(|sum| (sum as f32).to_bits()))
    }

    fn sample<T: Texels>(&self, place: &Place, texels: &mut T) -> Result<[u32; 4], T::Error> {
        let mut taps = Taps::new();
        let last = self.view.levels.len() as f32 - 1.0;
        if place.clamped && place.level.is_some_and(|level| !(0.0..=last).contains(&level)) {
            return Ok([0; 4]);
        }
        let blend = level::blend(place.level, self.sampler, self.view.levels.len());
        let linear = self.sampler.filter == Filter::Linear && self.can_filter() && !place.fetched;
        let parts = [(blend.first, WHOLE - blend.fraction), (blend.second, blend.fraction)];
        for (number, weight) in parts.into_iter().filter(|(_, weight)| *weight != 0) {
            let Some(level) = self.view.levels.get(number) else { continue };
            if linear {
                self.around(place, level, weight, &mut taps);
            } else {
                taps.add(weight, self.nearest(place, level));
                // Each level is a sum of its own.
                taps.count = taps.count.next_multiple_of(4);
            }
        }
        let filters = linear || blend.fraction != 0;
        self.resolve(place, &taps, filters, texels)
    }

    /// The texel that a place lies in.
    fn nearest(&self, place: &Place, level: &Level) -> Option<Spot> {
        if self.view.is_linear {
            let index = place.axes[0].nearest(level.extent[0]) + place.offsets[0];
            return Some(self.at(level, address(index, level.extent[0], AddressMode::Border)?, 0, 0));
        }
        let along = |axis: usize| {
            let extent = level.extent[axis];
            let texel = place.axes[axis].nearest(extent) + place.offsets[axis];
            address(texel, extent, self.mode(axis, place))
        };
        if place.layer == OUTSIDE {
            return None;
        }
        let slice = if place.deep { along(2)? } else { place.layer.into() };
        Some(self.at(level, along(0)?, along(1)?, slice))
    }

    /// The texels around a place.
    fn around(&self, place: &Place, level: &Level, weight: u32, taps: &mut Taps) {
        if let Some(face) = place.face.filter(|_| self.sampler.seamless_cube) {
            let (texels, x, y) = self.around_on_cube(place, level, face);
            let mut weights = square(weight, x, y);
            if let Some(corner) = texels.iter().position(Option::is_none) {
                weights = cube::without(corner, weights);
            }
            for (weight, texel) in weights.into_iter().zip(texels) {
                taps.add(weight, texel);
            }
            return;
        }
        let along = |axis: usize| {
            let extent = level.extent[axis];
            let mode = self.mode(axis, place);
            let mut between = place.axes[axis].between(extent) + place.offsets[axis] * 256;
            if mode == AddressMode::Clamp {
                between = between.clamp(0, i64::from(extent.saturating_sub(1)) << 8);
            }
            let texel = between >> 8;
            let pair = [address(texel, extent, mode), address(texel + 1, extent, mode)];
            (pair, (between & 255) as u32)
        };
        let (columns, x) = along(0);
        // Without a layer, one dimension is the lower half of the first row of two: at its edge the border shows.
        let (rows, y) = if place.flat { ([Some(0); 2], 0) } else { along(1) };
        let (slices, z) = if place.deep { along(2) } else { ([Some(place.layer.into()); 2], 0) };
        // Half-way goes to the first slice.
        let second = (weight * z + 127) >> 8;
        for (slice, weight) in [(slices[0], weight - second), (slices[1], second)] {
            if weight == 0 {
                continue;
            }
            let weights = square(weight, x, y);
            for (corner, weight) in weights.into_iter().enumerate() {
                let texel = columns[corner & 1].zip(rows[corner >> 1]).zip(slice);
                taps.add(weight, texel.map(|((x, y), slice)| self.at(level, x, y, slice)));
            }
        }
    }

    /// The texels around a place on a cube, which may lie on several faces, and how far it lies between them; none beyond a corner.
    fn around_on_cube(&self, place: &Place, level: &Level, face: u32) -> ([Option<Spot>; 4], u32, u32) {
        let extent = level.extent[0];
        let [x, y] = [0, 1].map(|axis| place.axes[axis].between(extent));
        let texels = [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(right, below)| {
            let texel = cube::across(face, (x >> 8) + right, (y >> 8) + below, extent)?;
            Some(self.at(level, texel.x, texel.y, (place.layer - face + texel.face).into()))
        });
        (texels, (x & 255) as u32, (y & 255) as u32)
    }

    fn gather<T: Texels>(&self, place: &Place, channel: usize, texels: &mut T) -> Result<[u32; 4], T::Error> {
        let Some(level) = self.view.levels.first() else { return Ok([0; 4]) };
        let along = |axis: usize| {
            let extent = level.extent[axis];
            let texel = (place.axes[axis].between(extent) >> 8) + place.offsets[axis];
            let mode = self.mode(axis, place);
            [address(texel, extent, mode), address(texel + 1, extent, mode)]
        };
        let corners = match place.face.filter(|_| self.sampler.seamless_cube) {
            Some(face) => self.around_on_cube(place, level, face).0.map(|texel| texel.map(Some)),
            None => {
                let (columns, rows) = (along(0), along(1));
                [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(x, y)| {
                    let texel = columns[x].zip(rows[y]);
                    Some(texel.map(|(x, y)| self.at(level, x, y, place.layer.into())))
                })
            }
        };
        // Signed bytes are made 16 bits wide here, as by a filter, before they are fractions.
        let is_wide = self.channel().bytes() == 1 && self.channel().is_signed() && self.normalizes();
        let mut result = [0; 4];
        for (result, corner) in result.iter_mut().zip([2, 3, 1, 0]) {
            let mut taps = Taps::new();
            let filters = match corners[corner] {
                Some(texel) => {
                    taps.add(WHOLE, texel);
                    is_wide
                }
                // Beyond the corner of a cube lies the mean of the others.
                None => {
                    let mut whole = [0; 4];
                    whole[corner] = WHOLE;
                    for (weight, texel) in cube::without(corner, whole).into_iter().zip(corners) {
                        taps.add(weight, texel.flatten());
                    }
                    true
                }
            };
            *result = self.resolve(place, &taps, filters, texels)?[channel & 3];
        }
        Ok(result)
    }

    fn at(&self, level: &Level, x: u64, y: u64, slice: u64) -> Spot {
        let side = u64::from(self.view.format.side());
        let address = level.locate(x / side * self.view.format.bytes() as u64, y / side, slice);
        Spot { address, texel: (y % side * side + x % side) as usize }
    }

    /// Each channel of the only texel, or the weighted sum of all.
    fn resolve<T: Texels>(
        &self,
        place: &Place,
        taps: &Taps,
        filters: bool,
        texels: &mut T,
    ) -> Result<[u32; 4], T::Error> {
        let format = self.view.format;
        let channels = usize::from(format.channels);
        let mut words = [[0u32; 4]; MOST];
        for (tap, words) in words.iter_mut().enumerate().take(taps.count) {
            if taps.weights[tap] == 0 {
                continue;
            }
            match taps.spots[tap] {
                None => *words = self.border(place),
                Some(Spot { address, texel }) => {
                    let mut bytes = [0; 16];
                    texels.load(address, &mut bytes[..format.bytes()])?;
                    *words = format.unpack(&bytes, texel);
                }
            }
        }
        let mut result = [0; 4];
        if matches!(format.packing, Packing::Blocks(_)) && channels < 4 {
            result[3] = 1f32.to_bits();
        }
        for (index, result) in result.iter_mut().enumerate().take(channels) {
            let (channel, curved) = (format.channel_at(index), self.is_curved(index));
            *result = match filters || curved {
                false => {
                    let bits = words[0][index];
                    if self.normalizes() { filter::normalized(channel, bits).to_bits() } else { bits }
                }
                true => {
                    let mut quads = [[(0, 0); 4]; MOST / 4];
                    for (tap, words) in words.iter().enumerate().take(taps.count) {
                        let bits = if curved { linear_from_srgb(words[index]) } else { words[index] };
                        quads[tap / 4][tap % 4] = (taps.weights[tap], bits);
                    }
                    let quads: &[Quad] = &quads[..taps.count.div_ceil(4)];
                    if curved { filter::linear_sum(quads) } else { filter::sum(channel, quads) }
                }
            };
        }
        Ok(result)
    }

    /// The border colour as a texel would have it.
    fn border(&self, place: &Place) -> [u32; 4] {
        if self.view.is_linear || place.fetched { [0; 4] } else { self.border_colour() }
    }

    /// What the sampler says of it.
    pub(super) fn border_colour(&self) -> [u32; 4] {
        std::array::from_fn(|index| {
            let (channel, colour) = (self.view.format.channel_at(index), self.sampler.border[index]);
            match channel.is_float() {
                // As many of the bits as there is room for.
                true if channel == Channel::F16 => colour.to_bits() & 0xffff_e000,
                true => colour.to_bits(),
                false if self.is_curved(index) => srgb::of_linear(colour).into(),
                false if self.normalizes() => filter::denormalized(channel, colour),
                false => channel.widen(&colour.to_bits().to_le_bytes()[..channel.bytes()]),
            }
        })
    }
}

/// An 8-bit sRGB value as the `f32` that it stands for.
fn linear_from_srgb(bits: u32) -> u32 {
    Channel::F16.widen(&srgb::linear(bits as u8).to_le_bytes())
}
