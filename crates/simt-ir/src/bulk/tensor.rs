//! Moving boxes of tensors. A box is moved row by row, a row being what is moved along the first dimension; in shared memory rows lie
//! one after another.

use super::map::{Element, Mode, TensorMap};
use super::{BulkFault, Memory, Reduction, aligned, complete, reduce_elements};
use crate::{AtomicOp, Type};

/// The longest row: 256 elements of eight bytes.
const ROW: usize = 2048;

/// Shared memory that tensors go to and come from is aligned to this.
const SHARED_ALIGN: u64 = 128;

/// Moves a box into shared memory and tells the barriers. A target is an address there and the barrier of its block.
pub fn load(
    map: &TensorMap,
    start: &[i64],
    shifts: &[u64],
    targets: &[(u64, u64)],
    memory: &mut impl Memory,
) -> Result<(), BulkFault> {
    for (to, _) in targets {
        aligned(*to, SHARED_ALIGN)?;
    }
    if map.nan_outside && !map.element.is_float() {
        return Err(BulkFault::IllegalInstruction(map.address));
    }
    aligned(map.address, 16)?;
    begins(map, start).ok_or(BulkFault::IllegalInstruction(map.address))?;
    let rows = Rows::new(map, start, shifts);
    let mut buffer = [0; ROW];
    let row = &mut buffer[..rows.bytes];
    let pitch = pitch(map, row.len());
    let mut count = 0;
    for (at, position) in rows.enumerate() {
        outside(map, row);
        if let Ok(Some((address, inside))) = position {
            memory.read(address, &mut row[inside.clone()])?;
            if matches!(map.element, Element::TF32 | Element::TF32Ftz) {
                row[inside].chunks_exact_mut(4).for_each(round_to_tf32);
            }
        }
        for (to, _) in targets {
            write_row(map, to.wrapping_add(at as u64 * pitch), row, memory)?;
        }
        count += row.len() as u64;
    }
    targets.iter().try_for_each(|(_, barrier)| complete(*barrier, count, memory))
}

/// Moves shared memory into the part of a box that is inside the tensor.
pub fn store(
    map: &TensorMap,
    start: &[i64],
    from: u64,
    reduce: Option<AtomicOp>,
    memory: &mut impl Memory,
) -> Result<(), BulkFault> {
    aligned(from, SHARED_ALIGN)?;
    let reduction = match reduce {
        Some(op) => Some(reduction(op, map.element).ok_or(BulkFault::IllegalInstruction(from))?),
        None => None,
    };
    let illegal = BulkFault::IllegalInstruction(map.address);
    aligned(map.address, 16)?;
    begins(map, start).ok_or(illegal)?;
    // What lies before the tensor is no place to write to; what lies behind it is left out.
    let mut rows = Rows::new(map, start, &[]);
    let before = match map.mode {
        Mode::Tiled { .. } => start[0] < 0 || rows.any(|row| row.is_err()),
        // Nor may the box of pixels reach beyond the tensor.
        Mode::Im2col { lower, upper, .. } => {
            let spatial = map.rank() - 2;
            let beyond =
                lower[..spatial].iter().any(|at| *at < 0) || upper[..spatial].iter().any(|at| *at > 0);
            beyond || start.iter().any(|at| *at < 0)
        }
    };
    if before {
        return Err(illegal);
    }
    let rows = Rows::new(map, start, &[]);
    let mut buffer = [0; ROW];
    let row = &mut buffer[..rows.bytes];
    let pitch = pitch(map, row.len());
    for (at, position) in rows.enumerate() {
        let Ok(Some((address, inside))) = position else { continue };
        read_row(map, from.wrapping_add(at as u64 * pitch), row, memory)?;
        // The hardware writes whole units of 16 bytes, over what lies behind the tensor's last element too.
        let written = &row[inside.start..inside.end.next_multiple_of(16).min(row.len())];
        match reduction {
            None => memory.write(address, written)?,
            Some(reduction) => reduce_elements(address, written, reduction, memory)?,
        }
    }
    Ok(())
}

/// Bytes from one row in shared memory to the next. Slices of channels lie one after another whatever the permutation.
fn pitch(map: &TensorMap, bytes: usize) -> u64 {
    match map.interleave.slice() {
        Some(slice) => slice,
        None => map.swizzle.span().unwrap_or(0).max(bytes as u64),
    }
}

fn write_row(map: &TensorMap, to: u64, row: &[u8], memory: &mut impl Memory) -> Result<(), BulkFault> {
    if map.swizzle.span().is_none() {
        return memory.write(to, row);
    }
    let mut units = row.chunks(16).enumerate();
    units.try_for_each(|(at, unit)| memory.write(map.swizzle.place(to.wrapping_add(16 * at as u64)), unit))
}

fn read_row(map: &TensorMap, from: u64, row: &mut [u8], memory: &mut impl Memory) -> Result<(), BulkFault> {
    if map.swizzle.span().is_none() {
        return memory.read(from, row);
    }
    let mut units = row.chunks_mut(16).enumerate();
    units.try_for_each(|(at, unit)| memory.read(map.swizzle.place(from.wrapping_add(16 * at as u64)), unit))
}

/// Fills a row with what stands for elements outside the tensor: a NaN has the same bits in each half of whatever width.
fn outside(map: &TensorMap, row: &mut [u8]) {
    let bits: [u8; 2] = if map.nan_outside { [0xf7, 0x7f] } else { [0, 0] };
    row.chunks_exact_mut(2).for_each(|half| half.copy_from_slice(&bits));
}

/// Whether a copy may begin there. The hardware moves units of 16 bytes, and begins with a pixel that is in the box of pixels.
fn begins(map: &TensorMap, start: &[i64]) -> Option<()> {
    let slices = map.interleave.slice().is_some();
    let mut inside = slices || start[0] * map.element.bytes() as i64 % 16 == 0;
    if let Mode::Im2col { lower, upper, .. } = map.mode {
        let first = usize::from(!slices);
        for axis in 0..map.rank() - 2 {
            let last = map.sizes[axis + first] as i64 - 1 + i64::from(upper[axis]);
            inside &= (i64::from(lower[axis])..=last).contains(&start[axis + first]);
        }
    }
    inside.then_some(())
}

/// Rounds an f32 to the ten fraction bits of tf32, to nearest even; NaNs become one.
fn round_to_tf32(element: &mut [u8]) {
    let bits = u32::from_le_bytes([element[0], element[1], element[2], element[3]]);
    let rounded = if bits & 0x7fff_ffff > 0x7f80_0000 {
        0x7fff_e000
    } else {
        (bits + 0xfff + (bits >> 13 & 1)) & !0x1fff
    };
    element.copy_from_slice(&rounded.to_le_bytes());
}

/// What an element undergoes; `None` if elements of this type do not.
fn reduction(op: AtomicOp, element: Element) -> Option<Reduction> {
    let float = match element {
        Element::F16 => Some(Type::F16),
        Element::BF16 => Some(Type::BF16),
        Element::F32 | Element::F32Ftz | Element::TF32 | Element::TF32Ftz => Some(Type::F32),
        Element::F64 => Some(Type::F64),
        _ => None,
    };
    if let Some(ty) = float {
        return match (op, ty) {
            (AtomicOp::Add, _) => {
                let ftz = matches!(element, Element::F32Ftz | Element::TF32Ftz);
                Some((AtomicOp::FAdd { ftz }, ty))
            }
            (AtomicOp::MinU, Type::F16 | Type::BF16) => Some((AtomicOp::FMin, ty)),
            (AtomicOp::MaxU, Type::F16 | Type::BF16) => Some((AtomicOp::FMax, ty)),
            _ => None,
        };
    }
    let (ty, signed) = match element {
        Element::U32 => (Type::I32, false),
        Element::S32 => (Type::I32, true),
        Element::U64 => (Type::I64, false),
        Element::S64 => (Type::I64, true),
        _ => return None,
    };
    match (op, signed) {
        (AtomicOp::MinU, true) => Some((AtomicOp::MinS, ty)),
        (AtomicOp::MaxU, true) => Some((AtomicOp::MaxS, ty)),
        (AtomicOp::Inc | AtomicOp::Dec, _) => (element == Element::U32).then_some((op, ty)),
        _ => (element != Element::S64).then_some((op, ty)),
    }
}

/// The rows of a box in order: for each the address of its part inside the tensor, and which bytes of the row that is; nothing if all of it
/// is outside, and an error if it lies before the tensor.
///
/// A row is what is moved along the first dimension, which is that of channels. Where channels are grouped, a slice of them is a row: then
/// the first dimensions are the spatial ones, the last but one counts slices, of which one is moved, and the elements of a slice are no
/// dimension at all.
struct Rows {
    /// Bytes of a row.
    bytes: usize,
    /// The part of a row that is inside, and the address that it has in a tensor whose other coordinates are zero.
    inside: std::ops::Range<usize>,
    base: u64,
    /// The other dimensions, the first one turning fastest.
    axes: [Axis; 5],
    count: usize,
    /// Rows still to come.
    left: usize,
}

/// A dimension along which rows follow each other.
#[derive(Clone, Copy, Default)]
struct Axis {
    /// Where the next row is, and an offset added to that.
    at: i64,
    shift: i64,
    /// Elements of the tensor, and bytes from one to the next.
    size: i64,
    stride: u64,
    /// From one row to the next.
    step: i64,
    /// Where it begins anew after the last one.
    again: i64,
    last: i64,
}

impl Rows {
    fn new(map: &TensorMap, start: &[i64], shifts: &[u64]) -> Rows {
        let (rank, size, slice) = (map.rank(), map.element.bytes(), map.interleave.slice());
        // The dimension of channels, or of their slices; the last dimension is that of images.
        let (first, channels) = if slice.is_some() { (0, rank.wrapping_sub(2)) } else { (1, 0) };
        let mut rows = Rows {
            bytes: slice.unwrap_or(0) as usize,
            inside: 0..slice.unwrap_or(0) as usize,
            base: map.address,
            axes: [Axis::default(); 5],
            count: rank - first,
            left: 1,
        };
        for (index, axis) in (first..rank).enumerate() {
            let at = start.get(axis).copied().unwrap_or(0);
            let step = i64::from(map.steps[axis].max(1));
            let stride = if axis == 0 { slice.unwrap_or(size) } else { map.strides[axis - 1] };
            let (again, last) = match map.mode {
                _ if axis == channels => (at, at),
                Mode::Tiled { extents } => {
                    let count = (i64::from(extents[axis]) + step - 1) / step;
                    rows.left = rows.left.saturating_mul(count as usize);
                    (at, at + (count - 1) * step)
                }
                Mode::Im2col { .. } if axis + 1 == rank => (0, i64::MAX),
                Mode::Im2col { lower, upper, .. } => {
                    (lower[index].into(), map.sizes[axis] as i64 - 1 + i64::from(upper[index]))
                }
            };
            let spatial = map.is_im2col() && axis != channels && axis + 1 < rank;
            let shift = if spatial { shifts.get(index).map_or(0, |shift| *shift as i64) } else { 0 };
            rows.axes[index] = Axis { at, shift, size: map.sizes[axis] as i64, stride, step, again, last };
        }
        let elements = match map.mode {
            Mode::Tiled { extents } => extents[0],
            Mode::Im2col { channels, pixels, .. } => {
                rows.left = pixels as usize;
                channels
            }
        };
        if slice.is_none() {
            let first = start.first().copied().unwrap_or(0);
            let begin = (-first).clamp(0, elements.into());
            let end = (map.sizes[0] as i64 - first).clamp(begin, elements.into());
            rows.bytes = elements as usize * size as usize;
            rows.inside = begin as usize * size as usize..end as usize * size as usize;
            rows.base = map.address.wrapping_add((first + begin) as u64 * size);
        }
        rows
    }

    fn advance(&mut self) {
        for axis in &mut self.axes[..self.count] {
            axis.at = axis.at.saturating_add(axis.step);
            if axis.at <= axis.last {
                return;
            }
            axis.at = axis.again;
        }
    }
}

impl Iterator for Rows {
    type Item = Result<Option<(u64, std::ops::Range<usize>)>, ()>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let mut address = self.base;
        let (mut present, mut before) = (!self.inside.is_empty(), false);
        for axis in &self.axes[..self.count] {
            let at = axis.at + axis.shift;
            present &= (0..axis.size).contains(&at);
            before |= at < 0;
            address = address.wrapping_add((at as u64).wrapping_mul(axis.stride));
        }
        self.advance();
        Some(if before { Err(()) } else { Ok(present.then(|| (address, self.inside.clone()))) })
    }
}
