//! `suld`, `sust` and `sured` in one thread.

use super::filter::stored;
use super::format::half_from_f32;
use super::{Access, Channel, ImageView, Outside, Packing, SurfaceAccess, Texels};
use crate::{AtomicOp, Rounding};

/// Why an access of a surface failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurfaceError<E> {
    /// It was outside, and traps then.
    Outside,
    /// The place is no multiple of the size of the access.
    Misaligned,
    /// What memory says.
    Memory(E),
}

impl<E> From<E> for SurfaceError<E> {
    fn from(error: E) -> SurfaceError<E> {
        SurfaceError::Memory(error)
    }
}

/// What an instruction on a surface gives; only loads give something. `operands` are those after the handle.
///
/// # Errors
/// [`SurfaceError`].
///
/// # Panics
/// With fewer operands than the instruction has.
pub fn access<T: Texels>(
    op: &SurfaceAccess,
    view: &ImageView,
    operands: &[u64],
    texels: &mut T,
) -> Result<[u64; 4], SurfaceError<T::Error>> {
    let coordinates = op.geometry.coordinates() + usize::from(op.geometry.is_layered());
    let (coordinates, values) = operands.split_at(coordinates);
    let size = usize::from(op.bytes) * usize::from(op.elements);
    let texel = view.format.bytes();
    let (in_texels, width) = match op.access {
        Access::StoreFormatted => (true, texel),
        Access::Reduce { texels, .. } => (texels, size),
        Access::Load | Access::Store => (false, size),
    };
    let Some(address) = locate(op, view, coordinates, in_texels, width)? else {
        return Ok([0; 4]);
    };
    let mut results = [0; 4];
    let element = usize::from(op.bytes);
    let mut bytes = [0; 32];
    match op.access {
        Access::Load => {
            move_in_words(size, |at, count| texels.load(address + at as u64, &mut bytes[at..at + count]))?;
            for (result, bytes) in results.iter_mut().zip(bytes[..size].chunks(element)) {
                let mut word = [0; 8];
                word[..element].copy_from_slice(bytes);
                *result = u64::from_le_bytes(word);
            }
        }
        Access::Store => {
            for (value, bytes) in values.iter().zip(bytes[..size].chunks_mut(element)) {
                bytes.copy_from_slice(&value.to_le_bytes()[..element]);
            }
            move_in_words(size, |at, count| texels.store(address + at as u64, &bytes[at..at + count]))?;
        }
        Access::StoreFormatted => {
            let given = &values[..usize::from(op.elements)];
            let channel = view.format.channel;
            if view.format.packing == Packing::Word {
                let part = |index: usize, channel| {
                    stored(channel, f32::from_bits(given.get(index).copied().unwrap_or(0) as u32))
                };
                let [red, green, blue] = [0, 1, 2].map(|index| part(index, Channel::Unorm10));
                let word = red | green << 10 | blue << 20 | part(3, Channel::Unorm2) << 30;
                texels.store(address, &word.to_le_bytes())?;
                return Ok(results);
            }
            for (index, bytes) in bytes[..texel].chunks_mut(channel.bytes()).enumerate() {
                let word = converted(channel, given.get(index).copied().unwrap_or(0) as u32);
                bytes.copy_from_slice(&word.to_le_bytes()[..channel.bytes()]);
            }
            texels.store(address, &bytes[..texel])?;
        }
        Access::Reduce { op: reduction, texels: typed } => {
            let value = values[0];
            let reduction = match reduction {
                // What the texels are says which order is meant.
                AtomicOp::MinU if typed && view.format.channel.is_signed() => AtomicOp::MinS,
                AtomicOp::MaxU if typed && view.format.channel.is_signed() => AtomicOp::MaxS,
                other => other,
            };
            texels.update(address, element, &|old| reduce(reduction, element, old, value))?;
        }
    }
    Ok(results)
}

/// Accesses of 32 bytes are two of 16.
fn move_in_words<E>(size: usize, mut part: impl FnMut(usize, usize) -> Result<(), E>) -> Result<(), E> {
    let step = size.min(16);
    (0..size).step_by(step.max(1)).try_for_each(|at| part(at, step))
}

/// The address of so many bytes; `None` if there is nothing to be done there.
fn locate<E>(
    op: &SurfaceAccess,
    view: &ImageView,
    coordinates: &[u64],
    in_texels: bool,
    size: usize,
) -> Result<Option<u64>, SurfaceError<E>> {
    let Some(level) = view.levels.first() else { return Err(SurfaceError::Outside) };
    let layered = op.geometry.is_layered();
    let count = op.geometry.coordinates();
    let axis = |axis: usize| match axis < count {
        true => i64::from(coordinates[usize::from(layered) + axis] as i32),
        false => 0,
    };
    let texel = view.format.bytes() as i64;
    let row = i64::from(level.extent[0]) * texel;
    let x = if in_texels { axis(0) * texel } else { axis(0) };
    if !in_texels && x % size as i64 != 0 {
        return Err(SurfaceError::Misaligned);
    }
    let slices = if op.geometry == super::Geometry::D3 { level.extent[2] } else { view.layers.max(1) };
    let slice = if layered { i64::from(coordinates[0] as u32) } else { axis(2) };
    let last = [row - size as i64, i64::from(level.extent[1]) - 1, i64::from(slices) - 1];
    let mut at = [x, axis(1), slice];
    for (at, last) in at.iter_mut().zip(last) {
        if *at >= 0 && *at <= last {
            continue;
        }
        match op.outside {
            Outside::Trap => return Err(SurfaceError::Outside),
            Outside::Zero => return Ok(None),
            Outside::Clamp => *at = (*at).clamp(0, last.max(0)),
        }
    }
    let [x, y, slice] = at.map(|at| at as u64);
    Ok(Some(level.locate(x, y, slice)))
}

/// What a channel has in memory for a value: a float if it is one or stands for one, else an integer within its range.
fn converted(channel: Channel, value: u32) -> u32 {
    match channel {
        Channel::F32 | Channel::U32 | Channel::S32 => value,
        Channel::F16 if f32::from_bits(value).is_nan() => 0x7e00,
        Channel::F16 => half_from_f32(value, Rounding::Zero).into(),
        Channel::U8 | Channel::U16 => value.min((1 << (8 * channel.bytes())) - 1),
        Channel::S8 => (value as i32).clamp(i8::MIN.into(), i8::MAX.into()) as u32,
        Channel::S16 => (value as i32).clamp(i16::MIN.into(), i16::MAX.into()) as u32,
        _ => stored(channel, f32::from_bits(value)),
    }
}

fn reduce(op: AtomicOp, bytes: usize, old: u64, value: u64) -> u64 {
    let signed = |word: u64| if bytes == 4 { i64::from(word as u32 as i32) } else { word as i64 };
    let unsigned = |word: u64| if bytes == 4 { u64::from(word as u32) } else { word };
    match op {
        AtomicOp::MinS => signed(old).min(signed(value)) as u64,
        AtomicOp::MaxS => signed(old).max(signed(value)) as u64,
        AtomicOp::MinU => unsigned(old).min(unsigned(value)),
        AtomicOp::MaxU => unsigned(old).max(unsigned(value)),
        AtomicOp::And => old & value,
        AtomicOp::Or => old | value,
        _ => old.wrapping_add(value),
    }
}
