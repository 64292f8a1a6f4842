//! Arrays without memory of their own: sparse ones, which memory is mapped to tile by tile, and those whose memory is deferred, which
//! get all of it at once.
//!
//! Addresses are set aside for the whole array, and read as zero; a tile's become those of a part of a [`PhysicalMemory`], real
//! pages. The levels of a sparse array that are at least as large as a tile in every dimension lie in tiles, level by level. The
//! others make up the *mip tail*, of each layer one, which is mapped as a range of bytes.

use std::sync::Arc;

use simt_ir::texture::{TILE, Tiles};

use super::array::Arrangement;
use super::mapping::{Access, GRANULARITY};
use super::{
    AddressSpace, Allocation, ArrayLayout, ArrayMemory, Backing, ContextId, Kind, Level, PhysicalMemory,
};
use crate::stream::{Stream, Work};
use crate::{Error, Result};

/// How a sparse array is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SparseLayout {
    /// Texels of a tile in x, y and z.
    pub tile: [u64; 3],
    /// The first level of the mip tail; the number of levels where there is none.
    pub first_in_tail: u32,
    /// Bytes of a mip tail, a multiple of [`TILE`]: as many as the hardware's has.
    pub tail: u64,
    /// There is one for all layers, rather than one of each: so it is where all levels are in it.
    pub is_single: bool,
    /// Where the first layer's tail begins.
    tail_offset: u64,
}

/// What becomes of a part of an array: it gets memory, or loses it.
pub struct TileMapping {
    /// The array.
    pub array: ArrayMemory,
    /// The addresses of the pieces.
    pub places: Vec<u64>,
    /// Bytes of each.
    pub len: u64,
    /// The memory, and where in it the first piece's part begins; the others' follow.
    pub memory: Option<(Arc<PhysicalMemory>, u64)>,
}

impl SparseLayout {
    /// How an array of this layout is divided.
    pub fn of(layout: &ArrayLayout) -> SparseLayout {
        let mut sparse =
            SparseLayout { tile: tile(layout), first_in_tail: 0, tail: 0, is_single: false, tail_offset: 0 };
        let is_small = |number: &u32| {
            let level = layout.level(*number);
            let depth = if layout.layered { 1 } else { level.depth };
            [level.width, level.height, depth].iter().zip(sparse.tile).any(|(texels, tile)| *texels < tile)
        };
        sparse.first_in_tail = (0..layout.levels).find(is_small).unwrap_or(layout.levels);
        sparse.is_single = sparse.first_in_tail == 0;
        sparse
    }

    /// The levels with addresses counted from the array's beginning, and the bytes of all; `None` where they cannot be counted.
    pub(super) fn levels(&mut self, layout: &ArrayLayout) -> Option<(Vec<Level>, u64)> {
        let (mut levels, mut end) = (Vec::new(), 0_u64);
        let layers = if layout.layered { layout.depth } else { 1 };
        for number in 0..self.first_in_tail {
            let mut level = layout.level(number);
            let tiles = self.tiles(layout, &level)?;
            level.address = end;
            level.arrangement = Arrangement::Tiled(tiles);
            let slices = level.depth.div_ceil(tiles.slices.into());
            let count = u64::from(tiles.across).checked_mul(tiles.down.into())?.checked_mul(slices)?;
            end = end.checked_add(count.checked_mul(TILE)?)?;
            levels.push(level);
        }
        self.tail_offset = end;
        let mut within = 0_u64;
        for number in self.first_in_tail..layout.levels {
            let mut level = layout.level(number);
            level.address = end.checked_add(within)?;
            let bytes = level.checked_bytes()? / layers;
            within = within.checked_add(bytes)?.checked_next_multiple_of(super::GRANULE)?;
            levels.push(level);
        }
        let of_layer = blocks(layout, self.first_in_tail, self.tile)?;
        let together = if self.is_single { layers } else { 1 };
        self.tail = of_layer.checked_mul(together)?.checked_next_multiple_of(TILE)?;
        if layout.layered {
            let pitch = if self.is_single { of_layer } else { self.tail };
            for level in &mut levels[self.first_in_tail as usize..] {
                level.arrangement = Arrangement::Mapped { layer_pitch: Some(pitch) };
            }
        }
        end = end.checked_add(self.tail.checked_mul(layers / together)?)?;
        Some((levels, end))
    }

    /// The tiles of a level.
    fn tiles(&self, layout: &ArrayLayout, level: &Level) -> Option<Tiles> {
        let side = u64::from(layout.side);
        let [width, height, depth] = self.tile;
        let row = width / side * u64::from(layout.texel);
        Some(Tiles {
            row: row.try_into().ok()?,
            rows: (height / side).try_into().ok()?,
            slices: depth.try_into().ok()?,
            across: level.width.div_ceil(width).try_into().ok()?,
            down: level.height.div_ceil(height).try_into().ok()?,
        })
    }
}

/// Bytes that the hardware uses for a layer of the levels from `first` on. Its memory is made of blocks of 64 bytes by 8 rows, which lie
/// in columns of as many as a tile has at most, and as the level has rows; the last level needs no whole columns. What we put
/// there needs no more.
fn blocks(layout: &ArrayLayout, first: u32, tile: [u64; 3]) -> Option<u64> {
    let mut bytes = 0_u64;
    for number in first..layout.levels {
        let level = layout.level(number);
        let side = u64::from(layout.side);
        let row =
            level.width.div_ceil(side).checked_mul(layout.texel.into())?.checked_next_multiple_of(64)?;
        let needed = level.rows().checked_next_multiple_of(8)?;
        let column = needed.checked_next_power_of_two()?.min((tile[1] / side).max(8));
        let rows = if number + 1 == layout.levels { needed } else { needed.next_multiple_of(column) };
        let depth = if layout.layered { 1 } else { level.depth };
        let slices = depth.next_multiple_of(depth.next_power_of_two().min(tile[2]));
        bytes = bytes.checked_add(row.checked_mul(rows)?.checked_mul(slices)?)?;
    }
    Some(bytes)
}

/// Texels of a tile: as near to a square or a cube as powers of two allow, longer in x and then in y. Compressed texels go by blocks.
fn tile(layout: &ArrayLayout) -> [u64; 3] {
    let is_deep = layout.depth > 1 && !layout.layered;
    let texel = u64::from(layout.texel).next_power_of_two();
    let mut left = (TILE / texel).max(1).ilog2();
    let mut tile = [1, 1, 1_u64];
    let axes = if is_deep { 3 } else { 2 };
    while left > 0 {
        for side in tile.iter_mut().take(axes) {
            if left > 0 {
                *side *= 2;
                left -= 1;
            }
        }
    }
    let side = u64::from(layout.side);
    [tile[0] * side, tile[1] * side, tile[2]]
}

impl ArrayMemory {
    /// How it is divided, if it is sparse.
    pub fn sparse(&self) -> Option<&SparseLayout> {
        self.sparse.as_ref()
    }

    /// Whether it has layers.
    pub fn is_layered(&self) -> bool {
        self.layout.layered
    }

    /// Whether its memory is deferred.
    pub fn is_deferred(&self) -> bool {
        self.layout.backing == Backing::Deferred
    }

    /// The addresses of the tiles of a part of a level, in the order in which they take memory: x, y, z. A layer is a slice.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a level of the mip tail or none, and for a part that does not lie inside, or does not begin and
    /// end at tiles; it may end where the level does.
    pub fn tiles(&self, level: u32, offset: [u64; 3], extent: [u64; 3]) -> Result<Vec<u64>> {
        let sparse = self.sparse.ok_or(Error::InvalidValue)?;
        let level = self.levels.get(level as usize).ok_or(Error::InvalidValue)?;
        let tiles = level.tiles().ok_or(Error::InvalidValue)?;
        let mut ranges = [const { 0..0_u64 }; 3];
        for (axis, all) in [level.width, level.height, level.depth].into_iter().enumerate() {
            let tile = sparse.tile[axis];
            let end = offset[axis].checked_add(extent[axis]).ok_or(Error::InvalidValue)?;
            let is_whole = offset[axis].is_multiple_of(tile) && (end.is_multiple_of(tile) || end == all);
            if extent[axis] == 0 || !is_whole || end > all {
                return Err(Error::InvalidValue);
            }
            ranges[axis] = offset[axis] / tile..end.div_ceil(tile);
        }
        let [xs, ys, zs] = ranges;
        let mut places = Vec::new();
        for (z, y) in zs.flat_map(|z| ys.clone().map(move |y| (z, y))) {
            places.extend(xs.clone().map(|x| level.address + tiles.number(x, y, z) * TILE));
        }
        Ok(places)
    }

    /// The addresses of the pieces, of [`TILE`] bytes each, of a part of a layer's mip tail.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] where that is none.
    pub fn tail(&self, layer: u64, offset: u64, size: u64) -> Result<Vec<u64>> {
        let sparse = self.sparse.ok_or(Error::InvalidValue)?;
        let layers = if self.layout.layered && !sparse.is_single { self.layout.depth } else { 1 };
        let end = offset.checked_add(size).filter(|end| *end <= sparse.tail).ok_or(Error::InvalidValue)?;
        let is_whole = size > 0 && [offset, size].iter().all(|bytes| bytes.is_multiple_of(TILE));
        if layer >= layers || !is_whole {
            return Err(Error::InvalidValue);
        }
        let start = self.address + sparse.tail_offset + layer * sparse.tail;
        Ok((offset..end).step_by(TILE as usize).map(|offset| start + offset).collect())
    }

    /// The address of all that is deferred, and the bytes that are mapped to it.
    pub fn deferred(&self) -> (u64, u64) {
        (self.address, self.size())
    }
}

/// Bytes of an array whose memory is deferred; `None` where they cannot be counted.
pub(super) fn deferred_bytes(layout: &ArrayLayout) -> Option<u64> {
    let layers = if layout.layered { layout.depth } else { 1 };
    let bytes = blocks(layout, 0, tile(layout))?.checked_mul(layers)?;
    bytes.checked_next_multiple_of(TILE)
}

impl AddressSpace {
    /// Addresses for an array without memory; all reads as zero.
    pub(super) fn place_unmapped(&self, device: usize, owner: ContextId, size: u64) -> Result<u64> {
        let len = size.checked_next_multiple_of(GRANULARITY).ok_or(Error::OutOfMemory)?;
        let mut mappings = self.mappings.lock();
        let mut heap = self.device(device)?.own.heap.lock();
        let start = heap.take_addresses(len, GRANULARITY)?;
        if let Err(error) = heap.protect_shared(start, len, Access::Read) {
            heap.give_addresses(start, len);
            return Err(error);
        }
        drop(heap);
        mappings.external.insert(start, (start, len));
        let allocation = Allocation::new(start, size, Kind::Array, owner, device);
        self.insert(allocation).map_err(|_| Error::InvalidValue)?;
        Ok(start)
    }

    /// Gives a part of an array memory, or takes it back.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if the array is gone, or the memory too small.
    pub(crate) fn map_tiles(&self, mapping: &TileMapping) -> Result<()> {
        let TileMapping { array, places, len, memory } = mapping;
        let mut mappings = self.mappings.lock();
        let found = self.find_array(array.address).filter(|found| found.id == array.id);
        let device = found.ok_or(Error::InvalidValue)?.device;
        if let Some((memory, offset)) = memory {
            let bytes = (places.len() as u64).checked_mul(*len).and_then(|bytes| bytes.checked_add(*offset));
            bytes.filter(|end| *end <= memory.size()).ok_or(Error::InvalidValue)?;
        }
        let mut heap = self.devices[device].own.heap.lock();
        for (index, place) in (0..).zip(places) {
            match memory {
                Some((memory, offset)) => {
                    heap.map_shared(*place, *len, memory.file(), offset + index * len, Access::ReadWrite)?;
                    mappings.tiles.insert(*place, memory.clone());
                }
                None => {
                    heap.unmap_shared(*place, *len)?;
                    heap.protect_shared(*place, *len, Access::Read)?;
                    mappings.tiles.remove(place);
                }
            }
        }
        Ok(())
    }
}

impl Stream {
    /// Queues changes of what memory arrays have.
    ///
    /// # Errors
    /// Those of [`check`](crate::Context::check); [`Error::StreamCaptureUnsupported`] while the stream captures.
    pub fn map_tiles(&self, changes: Vec<TileMapping>) -> Result<()> {
        let context = self.context()?;
        context.check()?;
        self.check_not_capturing()?;
        let space = context.memory().clone();
        let task = move || changes.iter().try_for_each(|change| space.map_tiles(change));
        self.submit(Vec::new(), Work::Task(Box::new(task))).map(drop)
    }
}

#[cfg(test)]
#[cfg(not(miri))] // reserved address space
mod tests {
    use super::super::{Extent, Purpose, Region, Side, Transfer};
    use super::*;

    const FLAT: ArrayLayout = ArrayLayout {
        width: 300,
        height: 200,
        depth: 1,
        texel: 4,
        side: 1,
        levels: 1,
        layered: false,
        backing: Backing::Sparse,
    };

    #[test]
    fn tiles_are_as_the_hardwares() {
        let tile = |texel, side, depth| tile(&ArrayLayout { texel, side, depth, ..FLAT });
        let flat = [1, 2, 4, 8, 16].map(|texel| tile(texel, 1, 1));
        assert_eq!(flat, [[256, 256, 1], [256, 128, 1], [128, 128, 1], [128, 64, 1], [64, 64, 1]]);
        let deep = [1, 2, 4, 8, 16].map(|texel| tile(texel, 1, 64));
        assert_eq!(deep, [[64, 32, 32], [32, 32, 32], [32, 32, 16], [32, 16, 16], [16, 16, 16]]);
        assert_eq!([tile(8, 4, 1), tile(16, 4, 1)], [[512, 256, 1], [256, 256, 1]]);
    }

    /// What an H100 told: texels, their bytes, levels, the first of the tail, and its bytes.
    #[test]
    fn tails_are_as_large_as_the_hardwares() {
        for ([width, height, depth], texel, levels, first, tail) in [
            ([100, 50, 1], 1, 1, 0, 1),
            ([100, 50, 1], 16, 1, 0, 2),
            ([100, 50, 20], 1, 1, 0, 4),
            ([100, 50, 20], 2, 1, 0, 7),
            ([1024, 1024, 1], 4, 20, 4, 1),
            ([1000, 700, 1], 1, 20, 2, 2),
            ([1000, 700, 1], 2, 3, 2, 2),
            ([1000, 700, 1], 2, 20, 2, 3),
            ([1000, 700, 1], 4, 20, 3, 2),
            ([1000, 700, 1], 8, 20, 3, 3),
            ([1000, 700, 1], 16, 20, 4, 2),
            ([256, 256, 256], 1, 20, 3, 2),
            ([256, 256, 256], 2, 20, 4, 1),
        ] {
            let mut layout = ArrayLayout { width, height, depth, texel, ..FLAT };
            layout.levels = levels.min(layout.max_levels());
            let mut sparse = SparseLayout::of(&layout);
            sparse.levels(&layout).unwrap();
            assert_eq!((sparse.first_in_tail, sparse.tail), (first, tail * TILE), "{layout:?}");
        }
        for ([width, height, depth], texel, levels, layered, bytes) in [
            ([1024, 1, 1], 16, 1, false, 131_072),
            ([1024, 1, 4], 4, 1, true, 131_072),
            ([100, 60, 4], 16, 1, true, 458_752),
            ([100, 50, 20], 4, 1, false, 851_968),
            ([100, 50, 20], 16, 1, false, 2_883_584),
            ([512, 512, 6], 4, 1, true, 6_291_456),
            ([1024, 1024, 1], 4, 11, false, 5_636_096),
            ([64, 64, 4], 4, 3, true, 131_072),
        ] {
            let layout = ArrayLayout { width, height, depth, texel, levels, layered, ..FLAT };
            assert_eq!(deferred_bytes(&layout), Some(bytes), "{layout:?}");
        }
    }

    #[test]
    fn small_levels_are_in_the_tail_of_their_layer() {
        let space = AddressSpace::new(&[64 << 20]).unwrap();
        let layout = ArrayLayout { width: 512, height: 256, depth: 3, levels: 10, layered: true, ..FLAT };
        let array = space.allocate_array(0, ContextId(1), &layout).unwrap();
        let sparse = *array.sparse().unwrap();
        assert_eq!((sparse.tile, sparse.first_in_tail, sparse.tail), ([128, 128, 1], 2, TILE));
        let levels = array.levels();
        for (index, level) in levels.iter().enumerate() {
            assert_eq!(level.tiles().is_some(), index < 2);
            for (other, beside) in levels.iter().enumerate() {
                assert!(index == other || !beside.contains(level.address + 2 * level.slice_pitch()));
            }
            assert!(level.contains(level.address + 2 * level.slice_pitch()));
        }
        assert_eq!(array.tiles(0, [0, 0, 0], [512, 256, 3]).unwrap().len(), 24);
        assert_eq!(array.tiles(1, [128, 0, 2], [128, 128, 1]).unwrap().len(), 1);
        assert_eq!(array.tiles(2, [0; 3], [128, 64, 1]), Err(Error::InvalidValue));
        assert_eq!(array.tail(2, 0, TILE).unwrap().len(), 1);
        for (layer, offset, size) in [(3, 0, TILE), (0, 1, TILE), (0, 0, 0), (0, TILE, TILE), (0, 0, 1)] {
            assert_eq!(array.tail(layer, offset, size), Err(Error::InvalidValue));
        }
        let used = space.devices[0].used.load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!(used, 0, "addresses are no memory");
        space.free_array(&array).unwrap();
    }

    #[test]
    fn parts_are_of_whole_tiles() {
        let space = AddressSpace::new(&[64 << 20]).unwrap();
        let array = space.allocate_array(0, ContextId(1), &FLAT).unwrap();
        let tiles = |offset, extent| array.tiles(0, offset, extent).map(|places| places.len());
        assert_eq!(tiles([0; 3], [300, 200, 1]), Ok(6));
        assert_eq!(tiles([256, 128, 0], [44, 72, 1]), Ok(1));
        for (offset, extent) in [
            ([64, 0, 0], [128, 128, 1]),
            ([0, 0, 0], [64, 128, 1]),
            ([0, 0, 0], [128, 128, 0]),
            ([0, 0, 1], [128, 128, 1]),
            ([384, 0, 0], [128, 128, 1]),
            ([256, 128, 0], [128, 128, 1]),
            ([u64::MAX - 127, 0, 0], [128, 128, 1]),
        ] {
            assert_eq!(tiles(offset, extent), Err(Error::InvalidValue), "{offset:?} {extent:?}");
        }
    }

    /// Copies a region of 16-bit... bytes between a buffer and the level, and back.
    fn copy(array: &ArrayMemory, host: &mut [u8], into: bool, x: u64, y: u64, extent: Extent) {
        let region = array.levels()[0].region(x, y, 0, extent).unwrap();
        // SAFETY: the buffer is the test's.
        let start = unsafe { Side::any(host.as_mut_ptr() as u64) };
        let (pitch, slice_pitch) = (extent.width, extent.width * extent.height);
        let buffer = Region { start, pitch, slice_pitch };
        let (to, from) = if into { (region, buffer) } else { (buffer, region) };
        Transfer { to, from, extent }.run().unwrap();
    }

    #[test]
    fn what_is_mapped_keeps_what_is_written_and_the_rest_is_zero() {
        let space = Arc::new(AddressSpace::new(&[64 << 20]).unwrap());
        let array = space.allocate_array(0, ContextId(1), &FLAT).unwrap();
        let other = space.allocate_array(0, ContextId(1), &FLAT).unwrap();
        let memory = PhysicalMemory::create(&space, 0, GRANULARITY, false, Purpose::default()).unwrap();
        let map = |array: &ArrayMemory, offset, extent, memory| {
            let places = array.tiles(0, offset, extent).unwrap();
            space.map_tiles(&TileMapping { array: array.clone(), places, len: TILE, memory })
        };
        map(&array, [0; 3], [256, 200, 1], Some((memory.clone(), TILE))).unwrap();
        // All of two rows, beyond what is mapped too.
        let extent = Extent { width: 1200, height: 2, depth: 1 };
        let mut bytes = Vec::from_iter((0..2400).map(|index| (index % 251) as u8 + 1));
        copy(&array, &mut bytes, true, 0, 127, extent);
        let mut back = vec![9; 2400];
        copy(&array, &mut back, false, 0, 127, extent);
        for (index, (back, byte)) in back.iter().zip(&bytes).enumerate() {
            assert_eq!(*back, if index % 1200 < 1024 { *byte } else { 0 }, "{index}");
        }
        // The same memory at another place: the second tile of the second row is the fourth.
        map(&other, [128, 0, 0], [128, 128, 1], Some((memory.clone(), 4 * TILE))).unwrap();
        let row = Extent { width: 512, height: 1, depth: 1 };
        let mut part = vec![9; 512];
        copy(&other, &mut part, false, 512, 0, row);
        assert_eq!(part, bytes[1200 + 512..][..512]);
        map(&array, [0; 3], [128, 128, 1], None).unwrap();
        copy(&array, &mut part, false, 0, 127, row);
        assert_eq!(part, [0; 512]);
        let far = map(&array, [0; 3], [300, 200, 1], Some((memory.clone(), GRANULARITY - TILE)));
        assert_eq!(far, Err(Error::InvalidValue));
        // Tiles keep memory; an array that goes gives it back.
        drop(memory);
        assert!(space.devices[0].used.load(std::sync::atomic::Ordering::Relaxed) > 0);
        space.free_array(&array).unwrap();
        space.free_array(&other).unwrap();
        assert_eq!(space.devices[0].used.load(std::sync::atomic::Ordering::Relaxed), 0);
        assert_eq!(map(&array, [0; 3], [128, 128, 1], None), Err(Error::InvalidValue));
    }
}
