//! Tensor maps: 128 bytes that say how a tensor lies in global memory and which boxes of it are moved.
//!
//! Programs get them from the driver and may change single fields in kernels; which bits say what is `layout`'s.

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
    /// How much of what is read goes to the second-level cache (`CUtensorMapL2promotion`): no matter here, but part of a map's bytes.
    pub promotion: u8,
    /// Which elements.
    pub mode: Mode,
}

/// A map that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapError;

/// Shared memory of a multiprocessor, which a box has to fit.
const SHARED_BYTES: u64 = 228 << 10;

/// Bytes that only our maps begin with.
impl TensorMap {
    /// Bytes of a map.
    pub const BYTES: usize = 128;

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.rank.into()
    }

    /// Whether copies go by columns of pixels.
    pub fn is_im2col(&self) -> bool {
        matches!(self.mode, Mode::Im2col { .. })
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
                must(u64::from(channels) * u64::from(pixels) * self.element.bytes() <= SHARED_BYTES)?;
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
}

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
