//! Instructions about textures and surfaces, for the lanes of a warp.

use std::borrow::Cow;
use std::sync::Arc;

use kernel_abi::FaultKind;
use kernel_abi::matrix::LaneWords;
use kernel_abi::texture::{Failure, decode};
use simt_ir::texture::{
    AddressMode, Filter, Geometry, ImageView, Query, ReadMode, Sampler, SurfaceError, Texels, TextureOp,
    Usual, access, query, sample,
};

use super::{Object, find, table};

/// Operands that an instruction has at the most: handles, layer, coordinates, gradients, offsets.
const MOST_OPERANDS: usize = 16;

/// Carries out the instruction of this code in the lanes of `mask`, as [`kernel_abi::Callbacks::texture`] says.
///
/// # Safety
/// `registers` points to as many registers as the instruction has operands or results, whichever are more, and to one at
/// least, which nobody else uses.
pub unsafe fn serve(mask: u32, code: u64, registers: *mut LaneWords) -> u32 {
    let unknown = Failure { kind: FaultKind::IllegalInstruction, lane: mask.trailing_zeros() & 31 };
    let Some(op) = decode(code) else { return unknown.code() };
    let (operands, results) = (op.operands().len(), op.results().len());
    if operands > MOST_OPERANDS {
        return unknown.code();
    }
    // SAFETY: the caller's contract.
    let registers = unsafe { std::slice::from_raw_parts_mut(registers, operands.max(results)) };
    if let Some(code) = usual(mask, &op, &mut *registers) {
        return code;
    }
    let mut last: Option<(u64, Arc<Object>)> = None;
    let mut object = |handle: u64| {
        if last.as_ref().is_none_or(|(known, _)| *known != handle) {
            last = find(handle).map(|object| (handle, object));
        }
        last.as_ref().map(|(_, object)| object.clone())
    };
    let mut failure: Option<(u32, Wrong)> = None;
    for lane in order(&op).filter(|lane| mask >> lane & 1 != 0) {
        let at = lane as usize;
        let mut words = [0; MOST_OPERANDS];
        for (word, register) in words.iter_mut().zip(&registers[..operands]) {
            *word = register[at];
        }
        match lane_results(&op, &words[..operands], &mut object) {
            Ok(words) => {
                for (register, word) in registers[..results].iter_mut().zip(words) {
                    register[at] = word;
                }
            }
            // The lowest lane is told.
            Err(wrong) if failure.as_ref().is_none_or(|(known, _)| lane < *known) => {
                failure = Some((lane, wrong));
            }
            Err(_) => {}
        }
    }
    answer(failure, registers)
}

/// What the kernel is told.
fn answer(failure: Option<(u32, Wrong)>, registers: &mut [LaneWords]) -> u32 {
    match failure {
        None => 0,
        Some((lane, Wrong { kind, address })) => {
            registers[0][0] = address;
            Failure { kind, lane }.code()
        }
    }
}

/// What [`serve`] does where all lanes read one texture, and there is nothing unusual about it.
fn usual(mask: u32, op: &TextureOp, registers: &mut [LaneWords]) -> Option<u32> {
    let TextureOp::Sample(sample) = op else { return None };
    let lanes = || (0..32_u32).filter(|lane| mask >> lane & 1 != 0);
    let handle = registers[0][mask.trailing_zeros() as usize & 31];
    if sample.sampler || lanes().any(|lane| registers[0][lane as usize] != handle) {
        return None;
    }
    let object = find(handle)?;
    let Object::Texture(view, sampler) = &*object else { return None };
    let texture = Usual::new(sample, view, sampler)?;
    let mut memory = Memory { is_sparse: view.is_sparse };
    let (operands, results) = (op.operands().len(), op.results().len());
    let mut failure: Option<(u32, Wrong)> = None;
    for lane in lanes() {
        let at = lane as usize;
        let mut words = [0; MOST_OPERANDS];
        for (word, register) in words.iter_mut().zip(&registers[1..operands]) {
            *word = register[at];
        }
        match texture.sample(&words[..operands - 1], &mut memory) {
            Ok(texel) => {
                for (register, word) in registers[..results].iter_mut().zip(texel) {
                    register[at] = word.into();
                }
            }
            Err(address) => {
                // The lowest lane is told.
                failure.get_or_insert((lane, address.into()));
            }
        }
    }
    Some(answer(failure, registers))
}

/// The lanes in the order in which they are served. Of lanes that store to one place, PTX leaves open which is last. The hardware
/// stores 128 bytes at a time, those of the lowest lanes first, and of lanes that store together the lowest counts.
fn order(op: &TextureOp) -> impl Iterator<Item = u32> {
    let together = match op {
        TextureOp::Surface(access) if op.is_store() => {
            128 / (u32::from(access.bytes) * u32::from(access.elements)).clamp(4, 128)
        }
        _ => 1,
    };
    (0..32).step_by(together as usize).flat_map(move |first| (first..first + together).rev())
}

/// What is wrong with an address or a handle.
struct Wrong {
    kind: FaultKind,
    address: u64,
}

impl From<u64> for Wrong {
    fn from(address: u64) -> Wrong {
        Wrong { kind: FaultKind::IllegalAddress, address }
    }
}

/// What one lane gets.
fn lane_results(
    op: &TextureOp,
    words: &[u64],
    object: &mut impl FnMut(u64) -> Option<Arc<Object>>,
) -> Result<[u64; 4], Wrong> {
    let handle = words[0];
    if handle == 0 {
        // No object: an image without texels, wherever one looks.
        return Ok([0; 4]);
    }
    if let TextureOp::Query { query: Query::IsTexture | Query::IsSampler | Query::IsSurface, .. } = op {
        let known = object(handle);
        let holds = match op {
            TextureOp::Query { query: Query::IsTexture, .. } => {
                matches!(known.as_deref(), Some(Object::Texture(..)))
            }
            TextureOp::Query { query: Query::IsSurface, .. } => {
                matches!(known.as_deref(), Some(Object::Surface(_)))
            }
            _ => matches!(known.as_deref(), Some(Object::Sampler(_))),
        };
        return Ok([holds.into(), 0, 0, 0]);
    }
    let known = object(handle);
    let (view, own) = match known.as_deref() {
        Some(Object::Texture(view, sampler)) => (Cow::Borrowed(view), Some(sampler)),
        Some(Object::Surface(view)) => (Cow::Borrowed(view), None),
        Some(Object::Sampler(sampler)) => (Cow::Owned(ImageView::default()), Some(sampler)),
        // One that is gone has no texels either; one that never was is a mistake.
        None if table::was_given(handle) => return Ok([0; 4]),
        None => return Err(handle.into()),
    };
    let mut memory = Memory { is_sparse: view.is_sparse };
    match op {
        TextureOp::Sample(op) => {
            let other = op.sampler.then(|| object(words[1]).ok_or(words[1])).transpose()?;
            let operands = &words[1 + usize::from(op.sampler)..];
            let (view, own) = match own {
                Some(own) => (view, Cow::Borrowed(own)),
                None => (of_surface(view), Cow::Owned(SURFACE_SAMPLER)),
            };
            let sampler = match other.as_deref() {
                None => own,
                Some(Object::Texture(_, sampler) | Object::Sampler(sampler)) => {
                    // What the image's numbers mean stays its own.
                    Cow::Owned(Sampler {
                        normalized: own.normalized && sampler.normalized,
                        read: own.read,
                        srgb: own.srgb,
                        ..sampler.clone()
                    })
                }
                Some(Object::Surface(_)) => return Err(words[1].into()),
            };
            Ok(sample(op, &view, &sampler, operands, &mut memory)?.map(u64::from))
        }
        TextureOp::Query { query: asked, .. } => {
            let level = words.get(1).map_or(0, |level| *level as u32);
            Ok([query(*asked, &view, own, level).into(), 0, 0, 0])
        }
        TextureOp::Surface(op) => {
            // A surface of one dimension is a row in memory, which other instructions do not see, and the other way round.
            let is_row = own.is_none() && view.geometry == Geometry::D1;
            if is_row != (op.geometry == Geometry::D1) {
                return Ok([0; 4]);
            }
            let start = || view.levels.first().map_or(0, |level| level.address);
            access(op, &view, &words[1..], &mut memory).map_err(|error| match error {
                SurfaceError::Outside => Wrong::from(start()),
                SurfaceError::Misaligned => Wrong { kind: FaultKind::Misaligned, address: start() },
                SurfaceError::Memory(address) => Wrong::from(address),
            })
        }
    }
}

/// How a surface is read that an instruction takes for a texture.
const SURFACE_SAMPLER: Sampler = Sampler {
    address: [AddressMode::Wrap; 3],
    filter: Filter::Point,
    mip_filter: Filter::Point,
    mip_bias: 0.0,
    level_clamp: [0.0; 2],
    border: [0.0; 4],
    normalized: false,
    read: ReadMode::Element,
    srgb: false,
    max_anisotropy: 0,
    seamless_cube: false,
};

/// A surface as a texture.
fn of_surface(view: Cow<'_, ImageView>) -> Cow<'_, ImageView> {
    match view.geometry {
        Geometry::D1 => Cow::Owned(ImageView { is_linear: true, ..view.into_owned() }),
        _ => view,
    }
}

/// The program's memory, which may be gone. Where it is a sparse array's, nothing may be there.
struct Memory {
    is_sparse: bool,
}

impl Texels for Memory {
    type Error = u64;

    #[inline]
    fn load(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), u64> {
        self.unless_unmapped(load(address, bytes))
    }

    fn store(&mut self, address: u64, bytes: &[u8]) -> Result<(), u64> {
        self.unless_unmapped(store(address, bytes))
    }

    fn update(&mut self, address: u64, bytes: usize, change: &dyn Fn(u64) -> u64) -> Result<(), u64> {
        self.unless_unmapped(update(address, bytes, change))
    }
}

impl Memory {
    /// Where nothing is mapped, stores do nothing and all bytes are zero, as they are when this is called.
    #[inline]
    fn unless_unmapped(&self, outcome: Result<(), u64>) -> Result<(), u64> {
        if self.is_sparse { Ok(()) } else { outcome }
    }
}

#[inline]
fn load(address: u64, bytes: &mut [u8]) -> Result<(), u64> {
    // SAFETY: images lie in memory of the device or in what the program gave for one.
    let word = |at: u64| unsafe { guard::load::<u64>(at) }.map_err(|fault| fault.address);
    match bytes {
        // SAFETY: as above.
        [byte] => *byte = unsafe { guard::load::<u8>(address) }.map_err(|fault| fault.address)?,
        [_, _] => {
            // SAFETY: as above.
            let half = unsafe { guard::load::<u16>(address) }.map_err(|fault| fault.address)?;
            bytes.copy_from_slice(&half.to_le_bytes());
        }
        [_, _, _, _] => {
            // SAFETY: as above.
            let word = unsafe { guard::load::<u32>(address) }.map_err(|fault| fault.address)?;
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        _ => {
            for (bytes, at) in bytes.chunks_exact_mut(8).zip((address..).step_by(8)) {
                bytes.copy_from_slice(&word(at)?.to_le_bytes());
            }
        }
    }
    Ok(())
}

fn store(address: u64, bytes: &[u8]) -> Result<(), u64> {
    let failed = |fault: guard::Fault| fault.address;
    // SAFETY: as for loads; the program keeps stores and other accesses in order.
    unsafe {
        match *bytes {
            [a] => guard::store(address, a).map_err(failed),
            [a, b] => guard::store(address, u16::from_le_bytes([a, b])).map_err(failed),
            [a, b, c, d] => guard::store(address, u32::from_le_bytes([a, b, c, d])).map_err(failed),
            _ => bytes.chunks_exact(8).zip((address..).step_by(8)).try_for_each(|(bytes, at)| {
                let word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
                guard::store(at, word).map_err(failed)
            }),
        }
    }
}

fn update(address: u64, bytes: usize, change: &dyn Fn(u64) -> u64) -> Result<(), u64> {
    let failed = |fault: guard::Fault| fault.address;
    // SAFETY: as for stores.
    unsafe {
        if bytes == 4 {
            let mut old = guard::load::<u32>(address).map_err(failed)?;
            loop {
                let new = change(old.into()) as u32;
                match guard::compare_exchange(address, old, new).map_err(failed)? {
                    found if found == old => return Ok(()),
                    found => old = found,
                }
            }
        }
        let mut old = guard::load::<u64>(address).map_err(failed)?;
        loop {
            match guard::compare_exchange(address, old, change(old)).map_err(failed)? {
                found if found == old => return Ok(()),
                found => old = found,
            }
        }
    }
}
