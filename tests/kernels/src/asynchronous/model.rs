//! What instructions should do, in the plainest way that can be written down: loops over elements.

use simt_ir::bulk::{Element, Interleave, Mode, Swizzle, TensorMap};

use super::number::Number;
use super::{TENSOR, WINDOW};

/// The memory that a case is about.
#[derive(Clone)]
pub struct World {
    /// Shared memory of both blocks.
    pub windows: [Vec<u8>; 2],
    /// Global memory.
    pub tensor: Vec<u8>,
    /// Bytes that the barrier of each block is told of.
    pub arrived: [u32; 2],
    /// Where in which window the bytes of a map lie, as the address of global memory is known only when the kernel runs.
    pub maps: Vec<(Place, Map, Map)>,
}

/// A place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Tensor(usize),
    Window(usize, usize),
}

impl World {
    /// Memory full of numbers that differ from case to case.
    pub fn new(seed: u64) -> World {
        let mut state = 0x9e37_79b9_7f4a_7c15 ^ (seed << 17);
        let mut bytes = |count: usize| -> Vec<u8> {
            let mut word = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state
            };
            (0..count / 8).flat_map(|_| word().to_le_bytes()).collect()
        };
        World {
            windows: [bytes(WINDOW), bytes(WINDOW)],
            tensor: bytes(TENSOR),
            arrived: [0; 2],
            maps: Vec::new(),
        }
    }

    /// The same with numbers of a type that the model computes with exactly.
    pub fn of(&self, number: Number) -> World {
        let mut world = self.clone();
        for bytes in world.windows.iter_mut().chain([&mut world.tensor]) {
            for element in bytes.chunks_exact_mut(number.bytes) {
                let mut seed = [0; 8];
                seed[..number.bytes].copy_from_slice(element);
                let value = number.sample(u64::from_le_bytes(seed));
                element.copy_from_slice(&value.to_le_bytes()[..number.bytes]);
            }
        }
        world
    }

    /// The bytes at a place.
    pub fn bytes(&self, place: Place, count: usize) -> &[u8] {
        match place {
            Place::Tensor(at) => &self.tensor[at..at + count],
            Place::Window(block, at) => &self.windows[block][at..at + count],
        }
    }

    /// Writes bytes to a place.
    pub fn put(&mut self, place: Place, bytes: &[u8]) {
        let to = match place {
            Place::Tensor(at) => &mut self.tensor[at..at + bytes.len()],
            Place::Window(block, at) => &mut self.windows[block][at..at + bytes.len()],
        };
        to.copy_from_slice(bytes);
    }

    /// Combines the elements at a place with others.
    pub fn combine(&mut self, place: Place, op: &str, number: Number, operands: &[u8]) {
        let old = self.bytes(place, operands.len()).to_vec();
        let value = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..number.bytes].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        };
        let pairs = old.chunks_exact(number.bytes).zip(operands.chunks_exact(number.bytes));
        let new: Vec<u8> = pairs
            .flat_map(|(old, operand)| {
                number.combine(op, value(old), value(operand)).to_le_bytes()[..number.bytes].to_vec()
            })
            .collect();
        self.put(place, &new);
    }

    /// The memory when the tensor lies at an address.
    pub fn at(&self, address: u64) -> World {
        let mut world = self.clone();
        for (place, before, map) in &self.maps {
            world.put(*place, &map.changed_from(before, address));
        }
        world
    }
}

/// A tensor map, but for the address of its tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    pub inner: TensorMap,
    /// What the kernel added to the address.
    pub moved: u64,
}

/// Bytes from one element to the next in all dimensions but the first.
const STRIDES: [u64; 4] = [64, 256, 768, 2304];
/// Elements in all dimensions but the first.
const SIZES: [u64; 4] = [4, 3, 3, 2];
/// Elements of a box in all dimensions but the first.
const BOX: [u32; 4] = [3, 3, 2, 1];

impl Map {
    /// A map of so many dimensions with elements of a type: boxes, rows of which have 32 bytes, of which some are left out.
    pub fn tiled(rank: usize, element: Element) -> Map {
        let bytes = element.bytes() as u32;
        let mut extents = [1; 5];
        extents[0] = 32 / bytes;
        extents[1..rank].copy_from_slice(&BOX[..rank - 1]);
        let mut steps = [1; 5];
        steps[1..rank].copy_from_slice(&[1, 2, 1, 1][..rank - 1]);
        Map::new(rank, element, steps, Mode::Tiled { extents })
    }

    /// A map for columns of seven pixels of which 16 bytes are moved. The pixels' box begins so far before the tensor in its second
    /// dimension, if it has one.
    pub fn im2col(rank: usize, element: Element, before: i32) -> Map {
        let channels = 16 / element.bytes() as u32;
        let (mut lower, mut upper) = ([0, -before, 0], [-1, 0, 0]);
        lower[rank - 2..].fill(0);
        upper[rank - 2..].fill(0);
        Map::new(rank, element, [1; 5], Mode::Im2col { lower, upper, channels, pixels: 7 })
    }

    fn new(rank: usize, element: Element, steps: [u32; 5], mode: Mode) -> Map {
        let mut map = TensorMap {
            element,
            rank: rank as u8,
            address: 0,
            // Rows of the tensor do not end with a whole unit of 16 bytes.
            sizes: [44 / element.bytes(), 1, 1, 1, 1],
            strides: [0; 4],
            steps,
            interleave: Interleave::None,
            swizzle: Swizzle::None,
            nan_outside: false,
            promotion: 0,
            mode,
        };
        map.sizes[1..rank].copy_from_slice(&SIZES[..rank - 1]);
        map.strides[..rank - 1].copy_from_slice(&STRIDES[..rank - 1]);
        Map { inner: map, moved: 0 }
    }

    /// The map's bytes when the tensor lies at an address.
    pub fn at(&self, address: u64) -> [u8; TensorMap::BYTES] {
        TensorMap { address: address + self.moved, ..self.inner }.to_bytes()
    }

    /// The map's bytes when its fields have been changed in a kernel. The words that nobody reads are those of the map before.
    pub fn changed_from(&self, before: &Map, address: u64) -> [u8; TensorMap::BYTES] {
        let mut bytes = self.at(address);
        bytes[64..].copy_from_slice(&before.at(address)[64..]);
        bytes
    }

    /// The same map as stores see it, which write whole units of 16 bytes.
    pub fn in_units(&self) -> Map {
        let mut map = self.clone();
        if map.inner.interleave == Interleave::None {
            map.inner.sizes[0] = map.inner.sizes[0].next_multiple_of(16 / map.inner.element.bytes());
        }
        map
    }

    /// The same map with channels in slices: its dimensions are spatial ones, slices and images, as far as there are.
    pub fn in_slices(mut self, interleave: Interleave) -> Map {
        self.inner.interleave = interleave;
        self.inner.sizes[0] = 4;
        if let Mode::Tiled { extents } = &mut self.inner.mode {
            (extents[0], self.inner.steps[0]) = (3, 2);
        }
        self
    }

    /// Where each element of a copy lies: from the beginning of shared memory's part, and in the tensor if it is inside.
    pub fn elements(&self, start: &[i32], shifts: &[u16]) -> Vec<(usize, Option<usize>)> {
        let map = &self.inner;
        let size = map.element.bytes() as usize;
        if let Some(slice) = map.interleave.slice() {
            return self.slices(start, shifts, slice as usize);
        }
        let (positions, row) = match map.mode {
            Mode::Tiled { extents } => (self.positions_in_box(start, extents), extents[0]),
            Mode::Im2col { lower, upper, channels, pixels, .. } => {
                (self.pixels(start, lower, upper, pixels as usize, shifts), channels)
            }
        };
        let mut elements = Vec::new();
        for position in positions {
            for x in 0..row as usize {
                let mut whole = [i64::from(start[0]) + x as i64, 0, 0, 0, 0];
                whole[1..].copy_from_slice(&position);
                let inside = (0..5).all(|axis| (0..map.sizes[axis] as i64).contains(&whole[axis]));
                let outer: i64 = (0..4).map(|axis| position[axis] * map.strides[axis] as i64).sum();
                let place = inside.then(|| (whole[0] * size as i64 + outer) as usize);
                elements.push((elements.len() * size, place));
            }
        }
        elements
    }

    /// The same of channels in slices: a slice of each pixel, one pixel after another.
    fn slices(&self, start: &[i32], shifts: &[u16], slice: usize) -> Vec<(usize, Option<usize>)> {
        let (map, rank) = (&self.inner, self.inner.rank());
        let spatial = rank - 2;
        let end = |axis: usize| map.sizes[axis] as i64;
        let range = |axis: usize| -> Vec<i64> {
            let first = start.get(axis).map_or(0, |at| i64::from(*at));
            match map.mode {
                _ if axis == spatial => vec![first],
                Mode::Tiled { extents } if axis < rank => (0..extents[axis])
                    .step_by(map.steps[axis] as usize)
                    .map(|by| first + i64::from(by))
                    .collect(),
                Mode::Im2col { lower, upper, .. } if axis < spatial => {
                    (i64::from(lower[axis])..=end(axis) - 1 + i64::from(upper[axis])).collect()
                }
                Mode::Im2col { .. } if axis + 1 == rank => (first..first + 9).collect(),
                _ => vec![0],
            }
        };
        let mut positions: Vec<[i64; 5]> = vec![[0; 5]];
        for axis in (0..5).rev() {
            let along = range(axis);
            positions = positions
                .iter()
                .flat_map(|position| {
                    along.iter().map(move |at| {
                        let mut position = *position;
                        position[axis] = *at;
                        position
                    })
                })
                .collect();
        }
        if let Mode::Im2col { pixels, .. } = map.mode {
            let first = positions
                .iter()
                .position(|position| (0..rank).all(|axis| position[axis] == start[axis].into()));
            let first = first.unwrap_or(0);
            positions = positions[first..first + pixels as usize].to_vec();
        }
        let size = map.element.bytes() as usize;
        let mut elements = Vec::new();
        for mut position in positions {
            for (at, shift) in position.iter_mut().zip(&shifts[..shifts.len().min(spatial)]) {
                *at += i64::from(*shift);
            }
            let inside = (0..rank).all(|axis| (0..end(axis)).contains(&position[axis]));
            let outer: i64 = (1..rank).map(|axis| position[axis] * map.strides[axis - 1] as i64).sum();
            for byte in (0..slice).step_by(size) {
                let place = inside.then(|| (position[0] * slice as i64 + outer) as usize + byte);
                elements.push((elements.len() * size, place));
            }
        }
        elements
    }

    /// Positions in all dimensions but the first, the second changing fastest.
    fn positions_in_box(&self, start: &[i32], extents: [u32; 5]) -> Vec<[i64; 4]> {
        let mut positions = vec![[0; 4]];
        for axis in (0..self.inner.rank() - 1).rev() {
            let steps = (0..extents[axis + 1]).step_by(self.inner.steps[axis + 1] as usize);
            positions = positions
                .iter()
                .flat_map(|position| {
                    steps.clone().map(move |step| {
                        let mut position = *position;
                        position[axis] = i64::from(start[axis + 1]) + i64::from(step);
                        position
                    })
                })
                .collect();
        }
        positions
    }

    /// Pixels of the boxes of this image and those after it, from the first one on, each moved by the offsets.
    fn pixels(
        &self,
        start: &[i32],
        lower: [i32; 3],
        upper: [i32; 3],
        count: usize,
        shifts: &[u16],
    ) -> Vec<[i64; 4]> {
        let spatial = self.inner.rank() - 2;
        let range = |axis: usize| {
            if axis >= spatial {
                return 0..=0;
            }
            let last = self.inner.sizes[axis + 1] as i64 - 1 + i64::from(upper[axis]);
            i64::from(lower[axis])..=last
        };
        let first: [i64; 3] =
            std::array::from_fn(|axis| if axis < spatial { start[axis + 1].into() } else { 0 });
        let image = i64::from(start[spatial + 1]);
        let mut all = Vec::new();
        for n in image..image + 9 {
            for z in range(2) {
                for y in range(1) {
                    for x in range(0) {
                        all.push(([x, y, z], n));
                    }
                }
            }
        }
        let begin = all.iter().position(|pixel| *pixel == (first, image)).unwrap_or(0);
        let place = |(pixel, n): &([i64; 3], i64)| {
            let mut position = [0; 4];
            for axis in 0..spatial {
                position[axis] = pixel[axis] + shifts.get(axis).map_or(0, |shift| i64::from(*shift));
            }
            position[spatial] = *n;
            position
        };
        all[begin..begin + count].iter().map(place).collect()
    }
}
