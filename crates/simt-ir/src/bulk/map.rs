//! Tensor maps: 128 bytes that say how a tensor lies in global memory and which boxes of it are moved.
//!
//! Programs get them from the driver and may change single fields in kernels; what the bytes mean is nobody else's business.

/// What the elements of a tensor are. The order is that of `CUtensorMapDataType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "CUDA's types by name; `Ftz` flushes subnormals")]
pub enum Element {
    U8,
    U16,
    U32,
    S32,
    U64,
    S64,
    F16,
    F32,
    F64,
    BF16,
    F32Ftz,
    TF32,
    TF32Ftz,
}

impl Element {
    /// All of them, in the order of their numbers in the driver's interface.
    pub const ALL: [Element; 13] = [
        Element::U8,
        Element::U16,
        Element::U32,
        Element::S32,
        Element::U64,
        Element::S64,
        Element::F16,
        Element::F32,
        Element::F64,
        Element::BF16,
        Element::F32Ftz,
        Element::TF32,
        Element::TF32Ftz,
    ];

    /// In the order of their numbers in PTX (`tensormap.replace.elemtype`).
    const IN_PTX: [Element; 13] = [
        Element::U8,
        Element::U16,
        Element::U32,
        Element::S32,
        Element::U64,
        Element::S64,
        Element::F16,
        Element::F32,
        Element::F32Ftz,
        Element::F64,
        Element::BF16,
        Element::TF32,
        Element::TF32Ftz,
    ];

    /// Bytes of an element.
    pub const fn bytes(self) -> u64 {
        match self {
            Element::U8 => 1,
            Element::U16 | Element::F16 | Element::BF16 => 2,
            Element::U32
            | Element::S32
            | Element::F32
            | Element::F32Ftz
            | Element::TF32
            | Element::TF32Ftz => 4,
            Element::U64 | Element::S64 | Element::F64 => 8,
        }
    }

    /// Whether elements are floats, so that a NaN can stand for what is outside.
    pub const fn is_float(self) -> bool {
        !matches!(
            self,
            Element::U8 | Element::U16 | Element::U32 | Element::S32 | Element::U64 | Element::S64
        )
    }
}

/// How channels are grouped in memory. Where they are, a slice of them is what lies together: the dimensions are width, height and depth as
/// far as there are, then the slices, then the images, and the channels of a slice are no dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interleave {
    /// They are not.
    None,
    /// In slices of 16 bytes.
    Bytes16,
    /// In slices of 32 bytes.
    Bytes32,
}

impl Interleave {
    const ALL: [Interleave; 3] = [Interleave::None, Interleave::Bytes16, Interleave::Bytes32];

    /// Bytes of a slice of channels.
    pub const fn slice(self) -> Option<u64> {
        match self {
            Interleave::None => None,
            Interleave::Bytes16 => Some(16),
            Interleave::Bytes32 => Some(32),
        }
    }

    /// The layout of this number in CUDA's interfaces.
    pub fn from_number(number: u64) -> Option<Interleave> {
        Interleave::ALL.get(usize::try_from(number).ok()?).copied()
    }
}

/// How 16-byte units are permuted in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Swizzle {
    /// They are not.
    None,
    /// Within 32 bytes.
    Bytes32,
    /// Within 64 bytes.
    Bytes64,
    /// Within 128 bytes.
    Bytes128,
}

impl Swizzle {
    const ALL: [Swizzle; 4] = [Swizzle::None, Swizzle::Bytes32, Swizzle::Bytes64, Swizzle::Bytes128];

    /// The pattern of this number in CUDA's interfaces.
    pub fn from_number(number: u64) -> Option<Swizzle> {
        Swizzle::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Bytes within which units are permuted.
    pub const fn span(self) -> Option<u64> {
        match self {
            Swizzle::None => None,
            Swizzle::Bytes32 => Some(32),
            Swizzle::Bytes64 => Some(64),
            Swizzle::Bytes128 => Some(128),
        }
    }

    /// Where the byte of this address in shared memory lies: the unit's number is combined with that of the 128 bytes it is in.
    pub const fn place(self, address: u64) -> u64 {
        match self.span() {
            None => address,
            Some(span) => address ^ (address >> 3 & (span - 1) & !15),
        }
    }
}

/// Which elements a copy moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// A box.
    Tiled {
        /// Elements that it spans in each dimension.
        extents: [u32; 5],
    },
    /// Pixels one after another from within a box of pixels, and of each some channels.
    Im2col {
        /// First pixel of the box in each dimension but the first and last: from the tensor's beginning.
        lower: [i32; 3],
        /// Last pixel: from the tensor's last.
        upper: [i32; 3],
        /// Elements along the first dimension.
        channels: u32,
        /// Pixels.
        pixels: u32,
        /// Only the width's pixels follow each other (`.im2col::w`): the driver makes such maps, but no instruction of the device's
        /// architecture takes them.
        wide: bool,
    },
}

/// How a tensor lies in memory, and what is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// Type of the elements.
    pub element: Element,
    /// Number of dimensions.
    pub rank: u8,
    /// Address of the first element.
    pub address: u64,
    /// Elements in each dimension, the first one changing fastest.
    pub sizes: [u64; 5],
    /// Bytes from one element to the next in each dimension but the first.
    pub strides: [u64; 4],
    /// Every how many-th element is moved in each dimension.
    pub steps: [u32; 5],
    /// Grouping of channels.
    pub interleave: Interleave,
    /// Permutation in shared memory.
    pub swizzle: Swizzle,
    /// What is outside reads as NaN, rather than zero.
    pub nan_outside: bool,
    /// Which elements.
    pub mode: Mode,
}

/// A map that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapError;

/// Shared memory of a block, which a box has to fit.
const SHARED_BYTES: u64 = 227 << 10;

/// Bytes that only our maps begin with.
const MAGIC: [u8; 4] = *b"AWtm";

impl TensorMap {
    /// Bytes of a map.
    pub const BYTES: usize = 128;

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.rank.into()
    }

    /// Whether copies go by columns of pixels.
    pub fn is_im2col(&self) -> bool {
        matches!(self.mode, Mode::Im2col { wide: false, .. })
    }

    /// Whether there can be a tensor at the address, as far as a map without groups of channels is concerned.
    pub fn may_begin_at(address: u64) -> bool {
        address.is_multiple_of(16) && address < 1 << 57
    }

    /// Checks what the driver checks when it makes a map.
    pub fn check(&self) -> Result<(), MapError> {
        let must = |holds: bool| if holds { Ok(()) } else { Err(MapError) };
        let rank = self.rank();
        let wide = self.interleave == Interleave::Bytes32;
        let align = if wide { 32 } else { 16 };
        must((1..=5).contains(&rank))?;
        must(rank >= 3 || self.interleave == Interleave::None && matches!(self.mode, Mode::Tiled { .. }))?;
        must(self.address.is_multiple_of(align) && TensorMap::may_begin_at(self.address))?;
        must(self.sizes[..rank].iter().all(|size| (1..=1 << 32).contains(size)))?;
        must(self.strides[..rank - 1].iter().all(|by| by.is_multiple_of(align) && *by < 1 << 40))?;
        must(self.steps[..rank].iter().all(|step| (1..=8).contains(step)))?;
        must(!self.nan_outside || self.element.is_float())?;
        let row = match self.mode {
            Mode::Tiled { extents } => {
                must(extents[..rank].iter().all(|extent| (1..=256).contains(extent)))?;
                let elements: u64 = extents[..rank].iter().map(|extent| u64::from(*extent)).product();
                must(elements * self.element.bytes() <= SHARED_BYTES)?;
                extents[0]
            }
            Mode::Im2col { lower, upper, channels, pixels, .. } => {
                let range = match rank {
                    3 => -32768..=32767,
                    4 => -128..=127,
                    _ => -16..=15,
                };
                must((1..=256).contains(&channels) && (1..=1024).contains(&pixels))?;
                // The first dimension is that of channels unless they are grouped.
                let first = usize::from(self.interleave == Interleave::None);
                for axis in 0..rank - 2 {
                    must(range.contains(&lower[axis]) && range.contains(&upper[axis]))?;
                    // The driver takes sizes for signed numbers of 32 bits here.
                    let end = (self.sizes[axis + first] as i32).wrapping_add(upper[axis]);
                    must(lower[axis] < end)?;
                }
                channels
            }
        };
        let row = u64::from(row) * self.element.bytes();
        must(row.is_multiple_of(16))?;
        must(self.interleave != Interleave::None || self.swizzle.span().is_none_or(|span| row <= span))
    }

    /// The map's bytes.
    pub fn to_bytes(&self) -> [u8; TensorMap::BYTES] {
        let mut bytes = [0; TensorMap::BYTES];
        let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
        put(0, &MAGIC);
        let element = Element::ALL.iter().position(|element| *element == self.element).unwrap_or(0);
        let mode = match self.mode {
            Mode::Tiled { .. } => 0,
            Mode::Im2col { wide, .. } => 1 + u8::from(wide),
        };
        put(ELEMENT, &[element as u8, self.rank, mode]);
        put(INTERLEAVE, &[self.interleave as u8, self.swizzle as u8, self.nan_outside.into()]);
        put(ADDRESS, &self.address.to_le_bytes());
        for axis in 0..5 {
            put(STEPS + axis, &[self.steps[axis] as u8]);
            put(SIZES + 4 * axis, &(self.sizes[axis] as u32).to_le_bytes());
        }
        for (axis, stride) in self.strides.iter().enumerate() {
            put(STRIDES + 8 * axis, &stride.to_le_bytes());
        }
        match self.mode {
            Mode::Tiled { extents } => {
                for (axis, extent) in extents.iter().enumerate() {
                    put(EXTENTS + 2 * axis, &(*extent as u16).to_le_bytes());
                }
            }
            Mode::Im2col { lower, upper, channels, pixels, .. } => {
                for axis in 0..3 {
                    put(LOWER + 2 * axis, &(lower[axis] as i16).to_le_bytes());
                    put(UPPER + 2 * axis, &(upper[axis] as i16).to_le_bytes());
                }
                put(CHANNELS, &(channels as u16).to_le_bytes());
                put(PIXELS, &(pixels as u16).to_le_bytes());
            }
        }
        bytes
    }

    /// The map of these bytes, which may be anybody's: what it says is within the limits of maps, but for sizes and strides, which may be anything.
    pub fn from_bytes(bytes: &[u8; TensorMap::BYTES]) -> Option<TensorMap> {
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let signed = |at: usize| i32::from(half(at) as i16);
        let rank = bytes[ELEMENT + 1];
        let mode = match bytes[ELEMENT + 2] {
            0 => Mode::Tiled { extents: std::array::from_fn(|axis| half(EXTENTS + 2 * axis).into()) },
            1 | 2 => Mode::Im2col {
                lower: std::array::from_fn(|axis| signed(LOWER + 2 * axis)),
                upper: std::array::from_fn(|axis| signed(UPPER + 2 * axis)),
                channels: half(CHANNELS).into(),
                pixels: half(PIXELS).into(),
                wide: bytes[ELEMENT + 2] == 2,
            },
            _ => return None,
        };
        let map = TensorMap {
            element: *Element::ALL.get(usize::from(bytes[ELEMENT]))?,
            rank,
            address: long(ADDRESS),
            // 2^32 elements do not fit a word.
            sizes: std::array::from_fn(|axis| match word(SIZES + 4 * axis) {
                0 => 1 << 32,
                size => size.into(),
            }),
            strides: std::array::from_fn(|axis| long(STRIDES + 8 * axis)),
            steps: std::array::from_fn(|axis| bytes[STEPS + axis].into()),
            interleave: Interleave::from_number(bytes[INTERLEAVE].into())?,
            swizzle: Swizzle::from_number(bytes[INTERLEAVE + 1].into())?,
            nan_outside: bytes[INTERLEAVE + 2] != 0,
            mode,
        };
        let extents = match mode {
            Mode::Tiled { extents } => {
                extents[..usize::from(rank).min(5)].iter().all(|n| (1..=256).contains(n))
            }
            Mode::Im2col { channels, pixels, .. } => {
                rank >= 3 && (1..=256).contains(&channels) && (1..=1024).contains(&pixels)
            }
        };
        // Where channels are grouped there is a dimension of groups and one of images behind at least one other.
        let grouped = map.interleave == Interleave::None || rank >= 3;
        let sound = bytes[..4] == MAGIC && (1..=5).contains(&rank) && extents && grouped;
        (sound && map.steps[1..usize::from(rank).max(1)].iter().all(|step| (1..=8).contains(step)))
            .then_some(map)
    }
}

const ELEMENT: usize = 4;
const INTERLEAVE: usize = 7;
const STEPS: usize = 10;
const ADDRESS: usize = 16;
const SIZES: usize = 24;
const STRIDES: usize = 48;
const EXTENTS: usize = 80;
const LOWER: usize = 90;
const UPPER: usize = 96;
const CHANNELS: usize = 102;
const PIXELS: usize = 104;

/// A field that kernels can change (`tensormap.replace`), with its dimension where there is one for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "PTX's fields by name")]
pub enum Field {
    Address,
    Rank,
    Extent(u8),
    Size(u8),
    Stride(u8),
    Step(u8),
    Element,
    Interleave,
    Swizzle,
    Fill,
}

impl Field {
    /// Changes the field in the bytes of a map. `None` if there is no such value.
    pub fn replace(self, bytes: &mut [u8; TensorMap::BYTES], value: u64) -> Option<()> {
        let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
        let number = usize::try_from(value).ok()?;
        match self {
            Field::Address => put(ADDRESS, &value.to_le_bytes()),
            // PTX counts dimensions from zero here.
            Field::Rank => put(ELEMENT + 1, &[u8::try_from(number).ok()?.checked_add(1)?]),
            Field::Extent(axis) => {
                put(EXTENTS + 2 * usize::from(axis), &u16::try_from(number).ok()?.to_le_bytes())
            }
            Field::Size(axis) => put(SIZES + 4 * usize::from(axis), &(value as u32).to_le_bytes()),
            // The tensor has a stride less than dimensions.
            Field::Stride(axis) if axis > 3 => {}
            Field::Stride(axis) => put(STRIDES + 8 * usize::from(axis), &value.to_le_bytes()),
            Field::Step(axis) => put(STEPS + usize::from(axis), &[u8::try_from(number).ok()?]),
            Field::Element => {
                let element = Element::IN_PTX.get(number)?;
                let number = Element::ALL.iter().position(|known| known == element)?;
                put(ELEMENT, &[number as u8]);
            }
            Field::Interleave => put(INTERLEAVE, &[Interleave::from_number(value)? as u8]),
            Field::Swizzle => put(INTERLEAVE + 1, &[Swizzle::from_number(value)? as u8]),
            Field::Fill => put(INTERLEAVE + 2, &[u8::from(value != 0)]),
        }
        Some(())
    }
}
