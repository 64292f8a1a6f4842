//! Arrays: texels of one, two or three dimensions, in one or more mipmap levels, for textures and surfaces.
//!
//! The layout is the plainest: texels packed in rows, rows in slices, slices in levels, each level at an address aligned for
//! textures. Programs never see the addresses: they copy into and out of arrays, and no pointer of theirs leads there.
//! Sparse arrays lie in tiles ([`super::sparse`]).

use simt_ir::texture::Tiles;

use super::sparse::{SparseLayout, deferred_bytes};
use super::{AddressSpace, ContextId, Corner, Extent, Kind, Region, Side};
use crate::{Error, Result};

/// What each level of an array begins at a multiple of, in bytes. An allocation does so anyway.
const LEVEL_ALIGNMENT: u64 = super::GRANULE;

/// How an array is laid out: counts of texels, where 1 stands for a dimension that there is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayLayout {
    /// Texels of a row.
    pub width: u64,
    /// Rows of a slice.
    pub height: u64,
    /// Slices, layers or faces.
    pub depth: u64,
    /// Bytes of a texel; of a block of compressed ones.
    pub texel: u32,
    /// Texels along each side of a block; 1 where they are not compressed.
    pub side: u32,
    /// Mipmap levels, at least 1.
    pub levels: u32,
    /// The slices are layers, of which each level has as many.
    pub layered: bool,
    /// Where its memory comes from.
    pub backing: Backing,
}

/// Where an array's memory comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backing {
    /// It is allocated with the array.
    #[default]
    Own,
    /// All of it is mapped at once, later.
    Deferred,
    /// It is mapped tile by tile.
    Sparse,
}

/// How the texels of a level lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrangement {
    /// One row after the other, one slice after the other.
    Packed,
    /// Likewise, where there may be no memory yet; the bytes from one layer to the next, unless those are packed.
    Mapped { layer_pitch: Option<u64> },
    /// In tiles.
    Tiled(Tiles),
}

/// One level of an array, or an array without mipmaps: where its texels are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The first texel's.
    pub address: u64,
    /// Texels of a row.
    pub width: u64,
    /// Rows of a slice.
    pub height: u64,
    /// Slices, layers or faces.
    pub depth: u64,
    /// Bytes of a texel; of a block of compressed ones.
    pub texel: u32,
    /// Texels along each side of a block; 1 where they are not compressed.
    pub side: u32,
    pub(super) arrangement: Arrangement,
}

/// An array's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayMemory {
    pub(super) levels: Vec<Level>,
    pub(super) address: u64,
    size: u64,
    owner: ContextId,
    device: usize,
    pub(super) id: u64,
    pub(super) layout: ArrayLayout,
    pub(super) sparse: Option<SparseLayout>,
}

impl ArrayLayout {
    /// Most levels that an array of this size has: the last is of one texel.
    pub fn max_levels(&self) -> u32 {
        let depth = if self.layered { 1 } else { self.depth };
        self.width.max(self.height).max(depth).max(1).ilog2() + 1
    }

    /// The levels with addresses counted from the array's beginning, and the bytes of all; `None` where they cannot be counted.
    fn levels(&self) -> Option<(Vec<Level>, u64)> {
        let (mut levels, mut end) = (Vec::new(), 0_u64);
        for number in 0..self.levels.min(u64::BITS) {
            let mut level = self.level(number);
            level.address = end.checked_next_multiple_of(LEVEL_ALIGNMENT)?;
            end = level.address.checked_add(level.checked_bytes()?)?;
            levels.push(level);
        }
        Some((levels, end))
    }

    /// A level of this number, which has no address yet.
    pub(super) fn level(&self, number: u32) -> Level {
        let halved = |texels: u64| (texels >> number).max(1);
        Level {
            address: 0,
            width: halved(self.width),
            height: halved(self.height),
            depth: if self.layered { self.depth } else { halved(self.depth) },
            texel: self.texel,
            side: self.side,
            arrangement: match self.backing {
                Backing::Own => Arrangement::Packed,
                Backing::Deferred | Backing::Sparse => Arrangement::Mapped { layer_pitch: None },
            },
        }
    }
}

impl Level {
    /// Rows of texels, or of blocks of them, in a slice.
    pub(super) fn rows(&self) -> u64 {
        self.height.div_ceil(self.side.into())
    }

    /// Bytes of its texels, packed; `None` where they cannot be counted.
    pub(super) fn checked_bytes(&self) -> Option<u64> {
        let row = self.width.div_ceil(self.side.into()).checked_mul(self.texel.into())?;
        row.checked_mul(self.rows())?.checked_mul(self.depth)
    }

    /// The tiles that it lies in, if it does.
    pub fn tiles(&self) -> Option<Tiles> {
        match self.arrangement {
            Arrangement::Tiled(tiles) => Some(tiles),
            _ => None,
        }
    }

    /// Bytes from one row to the next.
    pub fn pitch(&self) -> u64 {
        self.width.div_ceil(self.side.into()) * u64::from(self.texel)
    }

    /// Bytes from one slice to the next.
    pub fn slice_pitch(&self) -> u64 {
        match self.arrangement {
            Arrangement::Mapped { layer_pitch: Some(pitch) } => pitch,
            Arrangement::Tiled(tiles) => tiles.offset(0, 0, tiles.slices.into()) / u64::from(tiles.slices),
            _ => self.packed_slice(),
        }
    }

    /// Bytes of a slice.
    fn packed_slice(&self) -> u64 {
        self.pitch() * self.rows()
    }

    /// Bytes of all its texels, and of what lies between them.
    pub fn bytes(&self) -> u64 {
        match self.arrangement {
            Arrangement::Tiled(tiles) => tiles.offset(0, 0, self.depth.next_multiple_of(tiles.slices.into())),
            _ => self.slice_pitch() * (self.depth - 1) + self.packed_slice(),
        }
    }

    /// Whether the texel at an address is its.
    pub fn contains(&self, address: u64) -> bool {
        let Some(offset) = address.checked_sub(self.address) else { return false };
        // Other levels may lie between the layers.
        let is_its = self.tiles().is_some() || offset % self.slice_pitch() < self.packed_slice();
        is_its && offset < self.bytes()
    }

    /// The part that begins `x` bytes, `y` rows and `z` slices in: one end of a copy. Rows of compressed texels are of blocks.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if it does not all lie inside. It may cut through texels, but not through blocks of them.
    pub fn region(&self, x: u64, y: u64, z: u64, extent: Extent) -> Result<Region> {
        let lies_in =
            |start: u64, count: u64, all: u64| start.checked_add(count).is_some_and(|end| end <= all);
        let is_inside = lies_in(x, extent.width, self.pitch())
            && lies_in(y, extent.height, self.rows())
            && lies_in(z, extent.depth, self.depth)
            && (self.side == 1
                || [x, extent.width].iter().all(|bytes| bytes.is_multiple_of(self.texel.into())));
        if !is_inside {
            return Err(Error::InvalidValue);
        }
        let (pitch, slice_pitch) = (self.pitch(), self.slice_pitch());
        let address = self.address + z * slice_pitch + y * pitch + x;
        let start = match self.arrangement {
            Arrangement::Packed => Side::array(address),
            Arrangement::Mapped { .. } => Side::sparse(address),
            Arrangement::Tiled(tiles) => Side::tiled(Corner { tiles, level: self.address, x, y, z }),
        };
        Ok(Region { start, pitch, slice_pitch })
    }

    /// Slice, row and byte of the row of a [region](Self::region)'s start.
    pub fn position(&self, start: Side) -> (u64, u64, u64) {
        if let Some(Corner { x, y, z, .. }) = start.corner() {
            return (z, y, x);
        }
        let offset = start.address() - self.address;
        let (z, rest) = (offset / self.slice_pitch(), offset % self.slice_pitch());
        (z, rest / self.pitch(), rest % self.pitch())
    }
}

impl ArrayMemory {
    /// Its levels, the largest first.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Bytes of all levels.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The context that it goes with.
    pub fn owner(&self) -> ContextId {
        self.owner
    }

    /// Number of its device.
    pub fn device(&self) -> usize {
        self.device
    }
}

impl AddressSpace {
    /// Allocates an array.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for one without texels or levels; [`Error::OutOfMemory`] when the device has not as much left.
    pub fn allocate_array(
        &self,
        device: usize,
        owner: ContextId,
        layout: &ArrayLayout,
    ) -> Result<ArrayMemory> {
        match layout.backing {
            Backing::Own => {
                self.array_at(device, owner, layout, |size| self.allocate(device, owner, size, Kind::Array))
            }
            Backing::Deferred | Backing::Sparse => {
                self.array_at(device, owner, layout, |size| self.place_unmapped(device, owner, size))
            }
        }
    }

    /// An array in memory that `place` finds for it.
    pub(super) fn array_at(
        &self,
        device: usize,
        owner: ContextId,
        layout: &ArrayLayout,
        place: impl FnOnce(u64) -> Result<u64>,
    ) -> Result<ArrayMemory> {
        let counts = [layout.width, layout.height, layout.depth, layout.texel.into(), layout.side.into()];
        if counts.contains(&0) {
            return Err(Error::InvalidValue);
        }
        let mut sparse = (layout.backing == Backing::Sparse).then(|| SparseLayout::of(layout));
        let laid_out = match &mut sparse {
            Some(sparse) => sparse.levels(layout),
            None => layout.levels(),
        };
        let deferred = if layout.backing == Backing::Deferred { deferred_bytes(layout) } else { Some(0) };
        let laid_out = laid_out.zip(deferred).map(|((levels, size), deferred)| (levels, size.max(deferred)));
        let (mut levels, size) = laid_out.ok_or(Error::OutOfMemory)?;
        let address = place(size)?;
        let id = self.find_array(address).ok_or(Error::OutOfMemory)?.id;
        for level in &mut levels {
            level.address += address;
        }
        Ok(ArrayMemory { levels, address, size, owner, device, id, layout: *layout, sparse })
    }

    /// Frees an array.
    ///
    /// # Errors
    /// [`Error::InvalidHandle`] if it has been freed, alone or with its context.
    pub(crate) fn free_array(&self, array: &ArrayMemory) -> Result<()> {
        self.take_out(array.address, |found| found.kind == Kind::Array && found.id == array.id)
            .map(drop)
            .map_err(|_| Error::InvalidHandle)
    }
}

#[cfg(test)]
#[cfg(not(miri))] // reserves address space with mmap flags that Miri lacks
mod tests {
    use super::*;
    use crate::memory::Transfer;

    const FLAT: ArrayLayout = ArrayLayout {
        width: 20,
        height: 5,
        depth: 1,
        texel: 4,
        side: 1,
        levels: 1,
        layered: false,
        backing: Backing::Own,
    };

    fn space() -> AddressSpace {
        AddressSpace::new(&[64 << 20]).unwrap()
    }

    fn allocate(space: &AddressSpace, layout: ArrayLayout) -> Result<ArrayMemory> {
        space.allocate_array(0, ContextId(1), &layout)
    }

    #[test]
    fn levels_halve_but_layers_stay() {
        let space = space();
        let sizes = |layout: ArrayLayout| -> Vec<_> {
            let array = allocate(&space, layout).unwrap();
            assert!(array.levels().iter().all(|level| level.address % LEVEL_ALIGNMENT == 0));
            let ends = array.levels().windows(2);
            assert!(ends.into_iter().all(|two| two[0].address + two[0].bytes() <= two[1].address));
            array.levels().iter().map(|level| (level.width, level.height, level.depth)).collect()
        };
        let layout = ArrayLayout { depth: 6, levels: 5, ..FLAT };
        assert_eq!(layout.max_levels(), 5);
        assert_eq!(sizes(layout), [(20, 5, 6), (10, 2, 3), (5, 1, 1), (2, 1, 1), (1, 1, 1)]);
        let layers = ArrayLayout { levels: 2, layered: true, ..layout };
        assert_eq!(sizes(layers), [(20, 5, 6), (10, 2, 6)]);
        assert_eq!(ArrayLayout { depth: 1 << 20, layered: true, ..FLAT }.max_levels(), 5);
    }

    #[test]
    fn no_pointer_leads_into_an_array() {
        let space = space();
        let array = allocate(&space, FLAT).unwrap();
        let address = array.levels()[0].address;
        assert_eq!(space.find(address), None);
        assert!(!space.covers(address, 4));
        assert_eq!(space.free(address, |_| true), Err(Error::InvalidValue));
        let host = [0_u8; 4];
        // SAFETY: no copy is made.
        let host = unsafe { Side::any(host.as_ptr() as u64) };
        assert!(Transfer::linear(Side::device(address), host, 4).check(&space).is_err());
        assert!(Transfer::linear(host, Side::device(address), 4).check(&space).is_err());
        assert!(Transfer::linear(Side::array(address), host, 4).check(&space).is_ok());
        assert!(Transfer::linear(Side::array(address), host, 401).check(&space).is_err());
        let linear = space.allocate(0, ContextId(1), 400, Kind::Device).unwrap();
        assert!(Transfer::linear(Side::array(linear), host, 4).check(&space).is_err());
    }

    #[test]
    fn regions_lie_inside() {
        let space = space();
        let array = allocate(&space, ArrayLayout { depth: 3, ..FLAT }).unwrap();
        let level = array.levels()[0];
        let region = |x, y, z, [width, height, depth]: [u64; 3]| {
            level.region(x, y, z, Extent { width, height, depth })
        };
        let inner = region(8, 2, 1, [72, 3, 2]).unwrap();
        assert_eq!((inner.pitch, inner.slice_pitch), (80, 400));
        assert_eq!(inner.start.address(), level.address + 400 + 160 + 8);
        assert_eq!(level.position(inner.start), (1, 2, 8));
        for (x, y, z, extent) in [
            (12, 0, 0, [72, 1, 1]),
            (0, 3, 0, [4, 3, 1]),
            (0, 0, 2, [4, 1, 2]),
            (u64::MAX - 3, 0, 0, [4, 1, 1]),
            (0, u64::MAX, 0, [4, 1, 1]),
            (0, 0, 1, [4, 1, u64::MAX]),
        ] {
            assert_eq!(region(x, y, z, extent), Err(Error::InvalidValue), "{x} {y} {z} {extent:?}");
        }
    }

    #[test]
    fn rows_of_blocks_are_copied_whole() {
        let space = space();
        let array = allocate(&space, ArrayLayout { texel: 8, side: 4, levels: 4, ..FLAT }).unwrap();
        let levels = array.levels();
        assert_eq!(levels.iter().map(Level::pitch).collect::<Vec<_>>(), [40, 24, 16, 8]);
        assert_eq!(levels.iter().map(Level::bytes).collect::<Vec<_>>(), [80, 24, 16, 8]);
        let region = |x, y, width, height| levels[0].region(x, y, 0, Extent { width, height, depth: 1 });
        assert_eq!(region(8, 1, 32, 1).unwrap().start.address(), levels[0].address + 48);
        for (x, y, width, height) in [(4, 0, 8, 1), (0, 0, 12, 1), (0, 0, 48, 1), (0, 0, 8, 3)] {
            assert_eq!(region(x, y, width, height), Err(Error::InvalidValue));
        }
    }

    #[test]
    fn arrays_are_counted_freed_once_and_go_with_their_context() {
        let space = space();
        let unused = || space.info(0).unwrap().0;
        let before = unused();
        let array = allocate(&space, ArrayLayout { width: 1 << 20, height: 1, ..FLAT }).unwrap();
        assert_eq!(before - unused(), 4 << 20);
        space.free_array(&array).unwrap();
        assert_eq!(unused(), before);
        assert_eq!(space.free_array(&array), Err(Error::InvalidHandle));
        let array = allocate(&space, FLAT).unwrap();
        space.free_owned(ContextId(1));
        assert_eq!(space.free_array(&array), Err(Error::InvalidHandle));
        for layout in [
            ArrayLayout { width: u64::MAX, ..FLAT },
            ArrayLayout { width: 1 << 32, height: 1 << 32, ..FLAT },
            ArrayLayout { depth: 1 << 30, ..FLAT },
        ] {
            assert_eq!(allocate(&space, layout), Err(Error::OutOfMemory), "{layout:?}");
        }
        assert_eq!(allocate(&space, ArrayLayout { width: 0, ..FLAT }), Err(Error::InvalidValue));
        assert_eq!(allocate(&space, ArrayLayout { levels: 0, ..FLAT }), Err(Error::InvalidValue));
    }
}
