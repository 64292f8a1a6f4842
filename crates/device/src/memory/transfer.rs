//! Copies of one, two and three dimensions.

use simt_ir::texture::Tiles;

use super::{AddressSpace, PAGE};
use crate::{Error, Result};

/// An end of a copy: an address and what it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    address: u64,
    rule: Rule,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Known,
    Kernel,
    Host,
    Array,
    Sparse,
    Tiled(Corner),
}

/// Where in an array of tiles a copy begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corner {
    /// Of the level.
    pub tiles: Tiles,
    /// The level's address.
    pub level: u64,
    /// Byte of the row.
    pub x: u64,
    /// Row of the slice.
    pub y: u64,
    /// Slice.
    pub z: u64,
}

impl Side {
    /// Memory that the device knows: its own, or pinned or registered host memory.
    pub fn device(address: u64) -> Side {
        Side { address, rule: Rule::Known }
    }

    /// Memory that a kernel may name: what the device knows, and the heap that kernels allocate from.
    pub(crate) fn kernel(address: u64) -> Side {
        Side { address, rule: Rule::Kernel }
    }

    /// Texels of an array.
    pub(crate) fn array(address: u64) -> Side {
        Side { address, rule: Rule::Array }
    }

    /// Texels of an array parts of which may have no memory.
    pub(crate) fn sparse(address: u64) -> Side {
        Side { address, rule: Rule::Sparse }
    }

    /// Texels of such an array that lies in tiles.
    pub(crate) fn tiled(corner: Corner) -> Side {
        let Corner { tiles, level, x, y, z } = corner;
        Side { address: level + tiles.offset(x, y, z), rule: Rule::Tiled(corner) }
    }

    /// The place in an array that lies in tiles.
    pub fn corner(self) -> Option<Corner> {
        match self.rule {
            Rule::Tiled(corner) => Some(corner),
            _ => None,
        }
    }

    /// Any memory: what the device does not know is the program's.
    ///
    /// # Safety
    /// Until the copy is done, what is there may be read, or written if this is the destination, and nobody else touches it in
    /// conflict with that. An address without memory is allowed: the copy then fails.
    pub unsafe fn any(address: u64) -> Side {
        Side { address, rule: Rule::Host }
    }

    /// Whether it is in an array.
    pub fn is_array(self) -> bool {
        matches!(self.rule, Rule::Array | Rule::Sparse | Rule::Tiled(_))
    }

    /// Whether it is said to be where the other is: in an array, in memory that the device knows, or in any.
    pub(crate) fn is_like(self, other: Side) -> bool {
        self.is_array() == other.is_array() && self.is_known() == other.is_known()
    }

    /// Whether it is memory that the device knows, as whoever copies says.
    pub fn is_known(self) -> bool {
        matches!(self.rule, Rule::Known | Rule::Kernel)
    }

    /// Whether parts of it may have no memory.
    fn is_sparse(self) -> bool {
        matches!(self.rule, Rule::Sparse | Rule::Tiled(_))
    }

    /// The address.
    pub fn address(self) -> u64 {
        self.address
    }
}

/// How rows lie at one end of a copy, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The first byte to copy.
    pub start: Side,
    /// From one row to the next.
    pub pitch: u64,
    /// From one slice to the next.
    pub slice_pitch: u64,
}

/// How much is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Bytes of a row.
    pub width: u64,
    /// Rows of a slice.
    pub height: u64,
    /// Slices.
    pub depth: u64,
}

/// A copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// To.
    pub to: Region,
    /// From.
    pub from: Region,
    /// How much.
    pub extent: Extent,
}

impl Extent {
    /// Whether it is one row at most.
    pub fn is_row(self) -> bool {
        self.height <= 1 && self.depth <= 1
    }
}

/// What [`Transfer::check`] found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pageable {
    /// The destination is host memory that the device does not know.
    pub to: bool,
    /// Likewise the source.
    pub from: bool,
}

impl Transfer {
    /// `len` bytes in a row.
    pub fn linear(to: Side, from: Side, len: u64) -> Transfer {
        let region = |start| Region { start, pitch: len, slice_pitch: len };
        Transfer { to: region(to), from: region(from), extent: Extent { width: len, height: 1, depth: 1 } }
    }

    /// Whether it is one row.
    pub fn is_linear(&self) -> bool {
        self.extent.height == 1 && self.extent.depth == 1
    }

    /// Whether there is nothing to copy.
    pub fn is_empty(&self) -> bool {
        let Extent { width, height, depth } = self.extent;
        width == 0 || height == 0 || depth == 0
    }

    /// Bytes that are copied, if they can be counted.
    pub fn bytes(&self) -> Option<u64> {
        let Extent { width, height, depth } = self.extent;
        width.checked_mul(height)?.checked_mul(depth)
    }

    /// Bytes from the first to the last at either end, if they are in one row at both ends and the ends do not overlap.
    pub(crate) fn bytes_apart(&self) -> Option<u64> {
        let bytes = self.bytes().filter(|_| self.is_one_row())?;
        let distance = self.to.start.address.abs_diff(self.from.start.address);
        (distance >= bytes).then_some(bytes)
    }

    /// Copies up to `len` of the bytes behind the first `offset`, for a copy that [is made](Self::bytes_apart) of one row.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub(crate) fn run_part(&self, offset: u64, len: u64) -> Result<()> {
        let bytes = self.bytes().ok_or(Error::InvalidValue)?;
        let len = len.min(bytes.saturating_sub(offset));
        copy_upwards(self.to.start.address + offset, self.from.start.address + offset, len)
    }

    /// Whether rows follow each other without gaps, at both ends.
    fn is_one_row(&self) -> bool {
        if self.is_sparse() {
            return false;
        }
        let Extent { width, height, depth } = self.extent;
        let dense = |region: &Region| {
            region.pitch == width && (depth == 1 || Some(region.slice_pitch) == width.checked_mul(height))
        };
        (height == 1 && depth == 1) || (dense(&self.to) && dense(&self.from))
    }

    fn is_sparse(&self) -> bool {
        self.to.start.is_sparse() || self.from.start.is_sparse()
    }

    /// Checks that both ends lie in memory as their sides say, and rows do not overlap at their end.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] where they do not.
    pub fn check(&self, space: &AddressSpace) -> Result<Pageable> {
        if self.is_empty() {
            return Ok(Pageable { to: false, from: false });
        }
        Ok(Pageable {
            to: self.to.check(self.extent, space, true)?,
            from: self.from.check(self.extent, space, false)?,
        })
    }

    /// Copies. Where the ends overlap, the result is as if the source had been read first if it is one row.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] at the first byte that is not there; what comes before has been copied.
    pub fn run(&self) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let Extent { width, height, depth } = self.extent;
        let (to, from) = (self.to.start.address, self.from.start.address);
        if self.is_one_row() {
            return copy_row(to, from, self.bytes().ok_or(Error::InvalidValue)?);
        }
        if self.is_sparse() {
            return self.run_in_pieces();
        }
        for z in 0..depth {
            for y in 0..height {
                let row = |region: &Region| {
                    region.start.address.wrapping_add(z * region.slice_pitch).wrapping_add(y * region.pitch)
                };
                copy_row(row(&self.to), row(&self.from), width)?;
            }
        }
        Ok(())
    }
}

impl Transfer {
    /// Copies into or out of sparse arrays: as much of a row at once as lies together.
    fn run_in_pieces(&self) -> Result<()> {
        let Extent { width, height, depth } = self.extent;
        for (z, y) in (0..depth).flat_map(|z| (0..height).map(move |y| (z, y))) {
            let mut x = 0;
            while x < width {
                let (to, room) = self.to.piece(x, y, z);
                let (from, bytes) = self.from.piece(x, y, z);
                let len = room.min(bytes).min(width - x);
                if self.to.start.is_sparse() {
                    copy_where_mapped(to, from, len)?;
                } else {
                    copy_row(to, from, len)?;
                }
                x += len;
            }
        }
        Ok(())
    }
}

impl Region {
    /// The address of a byte, and how many lie together from there on.
    fn piece(&self, x: u64, y: u64, z: u64) -> (u64, u64) {
        match self.start.corner() {
            Some(corner) => {
                let x = corner.x + x;
                let offset = corner.tiles.offset(x, corner.y + y, corner.z + z);
                (corner.level + offset, corner.tiles.left_of_row(x))
            }
            None => {
                let row = z.wrapping_mul(self.slice_pitch).wrapping_add(y.wrapping_mul(self.pitch));
                (self.start.address().wrapping_add(row).wrapping_add(x), u64::MAX)
            }
        }
    }

    /// Whether the region is host memory that the device does not know; an error if it is not in memory of its side.
    fn check(&self, extent: Extent, space: &AddressSpace, writes: bool) -> Result<bool> {
        if self.start.is_sparse() {
            // It was inside when it was described; the array may have been freed since.
            return space.find_array(self.start.address).map(|_| false).ok_or(Error::InvalidValue);
        }
        if (extent.height > 1 && self.pitch < extent.width)
            || (extent.depth > 1
                && u128::from(self.slice_pitch) < u128::from(self.pitch) * u128::from(extent.height))
        {
            return Err(Error::InvalidValue);
        }
        let len = self.len(extent).ok_or(Error::InvalidValue)?;
        let Side { address, rule } = self.start;
        let end = address.checked_add(len).ok_or(Error::InvalidValue)?;
        if rule == Rule::Array {
            // The array may have been freed since the copy was described.
            let is_inside = space.find_array(address).is_some_and(|array| end <= array.end());
            return if is_inside { Ok(false) } else { Err(Error::InvalidValue) };
        }
        let found = match rule {
            Rule::Kernel => space.find_for_kernel(address),
            _ => space.find(address),
        };
        match found {
            Some(allocation) if end <= allocation.end() || space.covers(address, len) => {
                space.check_access(&allocation, address, len, writes).map(|()| false)
            }
            // Registered memory may end inside a longer buffer of the program.
            Some(allocation) if allocation.kind.is_host() && rule == Rule::Host => Ok(true),
            Some(_) => Err(Error::InvalidValue),
            None if rule == Rule::Host && address != 0 && !space.is_device_address(address) => Ok(true),
            None => Err(Error::InvalidValue),
        }
    }

    /// Bytes from the first to the last that is copied.
    fn len(&self, extent: Extent) -> Option<u64> {
        let slices = (extent.depth - 1).checked_mul(self.slice_pitch)?;
        let rows = (extent.height - 1).checked_mul(self.pitch)?;
        slices.checked_add(rows)?.checked_add(extent.width)
    }
}

/// Copies bytes as if through a buffer.
fn copy_row(to: u64, from: u64, len: u64) -> Result<()> {
    let distance = to.wrapping_sub(from);
    if distance == 0 {
        return Ok(());
    }
    if distance >= len {
        return copy_upwards(to, from, len);
    }
    // The destination begins inside the source: from the end on, in pieces that do not overlap.
    let mut left = len;
    while left > 0 {
        let piece = distance.min(left);
        left -= piece;
        copy_upwards(to + left, from + left, piece)?;
    }
    Ok(())
}

/// Copies to a sparse array; what is copied to where nothing is mapped is lost.
fn copy_where_mapped(to: u64, from: u64, len: u64) -> Result<()> {
    let mut done = 0;
    while done < len {
        let at = to + done;
        let page = (PAGE - at % PAGE).min(len - done);
        // SAFETY: as for `copy_upwards`.
        match unsafe { guard::copy(at, from + done, page) } {
            Ok(()) => {}
            Err(fault) if fault.address.wrapping_sub(at) < page => {}
            Err(_) => return Err(Error::InvalidValue),
        }
        done += page;
    }
    Ok(())
}

fn copy_upwards(to: u64, from: u64, len: u64) -> Result<()> {
    // SAFETY: both ends are device memory, which no host object lies in, or were vouched for when their `Side` was made.
    unsafe { guard::copy(to, from, len) }.map_err(|_| Error::InvalidValue)
}

#[cfg(test)]
#[cfg(not(miri))] // signals and inline assembly
mod tests {
    use super::super::{ContextId, Kind};
    use super::*;

    fn any<T>(slice: &mut [T]) -> Side {
        // SAFETY: the tests use a buffer for one copy at a time.
        unsafe { Side::any(slice.as_mut_ptr() as u64) }
    }

    #[test]
    fn rows_are_copied_with_their_pitches() {
        let mut from: Vec<u8> = (0..64).collect();
        let mut to = vec![0xff_u8; 64];
        let transfer = Transfer {
            to: Region { start: any(&mut to), pitch: 10, slice_pitch: 32 },
            from: Region { start: any(&mut from), pitch: 8, slice_pitch: 24 },
            extent: Extent { width: 5, height: 3, depth: 2 },
        };
        transfer.run().unwrap();
        for (index, byte) in to.iter().enumerate() {
            let (z, y, x) = (index / 32, index % 32 / 10, index % 32 % 10);
            let copied = z < 2 && y < 3 && x < 5;
            assert_eq!(*byte, if copied { (z * 24 + y * 8 + x) as u8 } else { 0xff }, "{index}");
        }
    }

    #[test]
    fn overlapping_rows() {
        for (to, from) in [(3, 0), (0, 3), (5, 5), (1, 0), (40, 0)] {
            let mut bytes: Vec<u8> = (0..100).collect();
            let mut expected = bytes.clone();
            expected.copy_within(from..from + 50, to);
            let start = bytes.as_mut_ptr() as u64;
            copy_row(start + to as u64, start + from as u64, 50).unwrap();
            assert_eq!(bytes, expected, "{from} to {to}");
        }
    }

    #[test]
    fn ends_are_checked() {
        let space = AddressSpace::new(&[64 << 20]).unwrap();
        let device = space.allocate(0, ContextId(1), 1000, Kind::Device).unwrap();
        let mut host = vec![0_u8; 2000];
        let check = |to, from, len| Transfer::linear(to, from, len).check(&space);
        let side = Side::device;
        assert_eq!(check(side(device), any(&mut host), 1000), Ok(Pageable { to: false, from: true }));
        assert_eq!(check(side(device), any(&mut host), 1001), Err(Error::InvalidValue));
        assert_eq!(check(side(device + 990), any(&mut host), 11), Err(Error::InvalidValue));
        assert_eq!(check(any(&mut host), side(device + 500), 500), Ok(Pageable { to: true, from: false }));
        assert_eq!(check(side(host.as_ptr() as u64), side(device), 4), Err(Error::InvalidValue));
        // SAFETY: no copy is made.
        let null = unsafe { Side::any(0) };
        assert_eq!(check(side(device), null, 4), Err(Error::InvalidValue));
        assert_eq!(check(side(device), null, 0), Ok(Pageable { to: false, from: false }));
        assert_eq!(check(side(0x1234), side(device), 4), Err(Error::InvalidValue));
        let far = Transfer {
            to: Region { start: side(device), pitch: u64::MAX / 2, slice_pitch: 0 },
            from: Region { start: any(&mut host), pitch: 4, slice_pitch: 0 },
            extent: Extent { width: 4, height: 4, depth: 1 },
        };
        assert_eq!(far.check(&space), Err(Error::InvalidValue));
    }

    #[test]
    fn unreadable_host_memory_is_an_error() {
        let mut host = vec![0_u8; 16];
        // SAFETY: nothing is mapped there, which the copy must find out.
        let nowhere = unsafe { Side::any(0x10) };
        assert_eq!(Transfer::linear(any(&mut host), nowhere, 16).run(), Err(Error::InvalidValue));
        assert_eq!(Transfer::linear(nowhere, any(&mut host), 16).run(), Err(Error::InvalidValue));
    }
}
