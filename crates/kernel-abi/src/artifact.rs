//! A compiled kernel as bytes: what the compiler library hands over and the cache keeps.
//!
//! Little-endian numbers, strings with their length before them, the object last. The reader trusts nothing.

use crate::{AlignedParam, EntryKind, Gangs, KernelInfo, Shape, XLayout};

/// [`VERSION`], for texts.
macro_rules! version {
    () => {
        12
    };
}
pub(crate) use version;

/// Version of the format, of the frames and of the entries: code of another version is compiled anew.
pub const VERSION: u32 = version!();

/// Name of a kernel's entry in its object.
pub const ENTRY_SYMBOL: &str = "anywarp_kernel";

/// The symbol of a [`TogetherEntry`](crate::TogetherEntry), where a kernel has one beside its [`WarpEntry`](crate::WarpEntry).
pub const TOGETHER_SYMBOL: &str = "anywarp_together";

/// A compiled kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// What the device must provide for it.
    pub info: KernelInfo,
    /// A relocatable object that defines [`ENTRY_SYMBOL`].
    pub object: Vec<u8>,
}

impl Artifact {
    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        let info = &self.info;
        let mut bytes = Vec::with_capacity(self.object.len() + 256);
        let entry = match info.entry {
            EntryKind::Blocks => 0,
            EntryKind::Warps => 1,
        };
        for number in [
            VERSION,
            info.param_bytes,
            info.shared_bytes,
            info.shared_align,
            info.local_bytes,
            info.stack_limits,
            info.stack_bytes,
            info.state_bytes,
            info.flush_subnormals.into(),
            info.waits.into(),
            info.may_wait.into(),
            info.gang,
            info.retraced.into(),
            info.tiled.into(),
            info.walks.into(),
            info.turned.into(),
            entry,
            info.globals.len() as u32,
            info.aligned.len() as u32,
        ] {
            bytes.extend(number.to_le_bytes());
        }
        for param in &info.aligned {
            bytes.extend(param.offset.to_le_bytes());
            bytes.extend(param.bytes.to_le_bytes());
        }
        for name in &info.globals {
            bytes.extend((name.len() as u32).to_le_bytes());
            bytes.extend(name.as_bytes());
        }
        bytes.extend(&self.object);
        bytes
    }

    /// The kernel of these bytes, or nothing if [`Artifact::encode`] of this version did not make them.
    pub fn decode(bytes: &[u8]) -> Option<Artifact> {
        let mut rest = bytes;
        let mut number = || take_number(&mut rest);
        if number()? != VERSION {
            return None;
        }
        let mut info = KernelInfo {
            param_bytes: number()?,
            shared_bytes: number()?,
            shared_align: number()?,
            local_bytes: number()?,
            stack_limits: number()?,
            stack_bytes: number()?,
            state_bytes: number()?,
            flush_subnormals: number()? != 0,
            waits: number()? != 0,
            may_wait: number()? != 0,
            gang: number().filter(|gang| matches!(gang, 1 | 2 | 4 | 8))?,
            retraced: number()? != 0,
            tiled: number()? != 0,
            walks: number()? != 0,
            turned: number().filter(|axis| *axis < 3)? as u8,
            entry: match number()? {
                0 => EntryKind::Blocks,
                1 => EntryKind::Warps,
                _ => return None,
            },
            globals: Vec::new(),
            aligned: Vec::new(),
        };
        let (globals, aligned) = (number()?, number()?);
        for _ in 0..aligned {
            let (offset, bytes) = (number()?, number()?);
            let is_inside = offset.checked_add(8).is_some_and(|end| end <= info.param_bytes);
            if !is_inside || !bytes.is_power_of_two() {
                return None;
            }
            info.aligned.push(AlignedParam { offset, bytes });
        }
        for _ in 0..globals {
            let length = take_number(&mut rest)? as usize;
            let (name, after) = rest.split_at_checked(length)?;
            info.globals.push(std::str::from_utf8(name).ok()?.to_owned());
            rest = after;
        }
        Some(Artifact { info, object: rest.to_vec() })
    }
}

fn take_number(rest: &mut &[u8]) -> Option<u32> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_le_bytes(*number))
}

/// A number below 16 for a size that a shape tells: 0 or a power of two up to 128.
fn of_size(size: u8) -> u32 {
    if size == 0 { 0 } else { size.trailing_zeros() + 1 }
}

fn size_of(number: u32) -> Option<u8> {
    match number {
        0 => Some(0),
        _ => 1u8.checked_shl(number - 1),
    }
}

/// The widths of rows that gangs have several of, 0 for one.
const WIDTHS: [u8; 4] = [0, 32, 64, 128];

impl Shape {
    /// The shape as a number, for keys and for the compiler library.
    pub fn code(&self) -> u32 {
        let x = match self.x {
            XLayout::Rows => 0,
            XLayout::Period(period) => u32::from(period),
            XLayout::Irregular => 0xff,
        };
        let width = WIDTHS.iter().position(|width| *width == self.gangs.width).unwrap_or(0);
        x | u32::from(self.dims) << 8
            | u32::from(self.threads / 8).min(3) << 10
            | u32::from(self.x_bits) << 12
            | u32::from(self.whole_warps) << 16
            | u32::from(self.ids_fit_i32) << 17
            | u32::from(self.assume_no_wrap) << 18
            | self.gangs.most.trailing_zeros() << 19
            | u32::from(self.gangs.whole) << 21
            | (width as u32) << 22
            | of_size(self.height) << 24
            | of_size(self.depth) << 28
    }

    /// The shape of a number that [`Shape::code`] made.
    pub fn from_code(code: u32) -> Option<Shape> {
        let x = match code & 0xff {
            0 => XLayout::Rows,
            0xff => XLayout::Irregular,
            period @ 1..32 if period.is_power_of_two() => XLayout::Period(period as u8),
            _ => return None,
        };
        let (dims, x_bits) = ((code >> 8 & 3) as u8, (code >> 12 & 0xf) as u8);
        let flag = |bit: u32| code >> bit & 1 != 0;
        let size = |bit: u32| size_of(code >> bit & 0xf);
        let gangs =
            Gangs { most: 1 << (code >> 19 & 3), whole: flag(21), width: WIDTHS[(code >> 22 & 3) as usize] };
        let threads = [0, 8, 16, 32][(code >> 10 & 3) as usize];
        let (height, depth) = (size(24)?, size(28)?);
        let has = |size: u8, axis: u8| size == 0 || dims > axis;
        let known = has(height, 1) && has(depth, 2) && (5..=10).contains(&x_bits);
        ((1..=3).contains(&dims) && known).then_some(Shape {
            x,
            dims,
            x_bits,
            whole_warps: flag(16),
            ids_fit_i32: flag(17),
            assume_no_wrap: flag(18),
            gangs,
            gang: 1,
            strips: 1,
            threads,
            is_block: false,
            height,
            depth,
            turned: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact() -> Artifact {
        let info = KernelInfo {
            param_bytes: 24,
            shared_bytes: 1024,
            shared_align: 16,
            local_bytes: 8,
            stack_limits: 3,
            stack_bytes: 1 << 20,
            state_bytes: 192,
            flush_subnormals: true,
            waits: true,
            may_wait: true,
            gang: 4,
            retraced: true,
            tiled: true,
            walks: true,
            turned: 2,
            globals: vec!["table".into(), "größe".into()],
            aligned: vec![AlignedParam { offset: 0, bytes: 4 }, AlignedParam { offset: 16, bytes: 8 }],
            entry: EntryKind::Warps,
        };
        Artifact { info, object: vec![0x7f, b'E', b'L', b'F'] }
    }

    #[test]
    fn artifacts_round_trip() {
        let artifact = artifact();
        assert_eq!(Artifact::decode(&artifact.encode()), Some(artifact));
    }

    #[test]
    fn a_cut_artifact_is_refused() {
        let artifact = artifact();
        let bytes = artifact.encode();
        for length in 0..bytes.len() - artifact.object.len() {
            assert_eq!(Artifact::decode(&bytes[..length]), None, "cut to {length}");
        }
        let mut other = bytes.clone();
        other[0] ^= 1;
        assert_eq!(Artifact::decode(&other), None);
    }

    #[test]
    fn shapes_round_trip() {
        let shapes = [
            Shape::ANY,
            Shape::of([1000, 1, 1], [256, 1, 1]),
            Shape::of([64, 64, 1], [16, 16, 1]),
            Shape::of([1, 1, 1], [1, 1, 1]),
            Shape::of([1, 1, 1], [33, 1, 2]),
            Shape::of([1, 1, 1], [32, 32, 1]),
            Shape::of([1, 1, 1], [128, 3, 2]),
            Shape::of([1, 1, 1], [2, 16, 4]),
            Shape::of([1, 1, 1], [2, 1, 64]),
            Shape::of([1, 1, 1], [128, 1, 2]),
            Shape::of([1, 1, 1], [4, 128, 1]),
        ];
        for shape in shapes {
            assert_eq!(Shape::from_code(shape.code()), Some(shape));
        }
        assert_eq!(Shape::from_code(3 | 1 << 8), None);
        assert_eq!(Shape::from_code(u32::MAX), None);
    }
}
