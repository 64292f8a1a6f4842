//! The bits of a tensor map, as the hardware and NVIDIA's driver have them (read off an H200 and its driver, 580.159).
//!
//! Kernels write whole maps of their own, beginning with 128 zero bytes (Triton's do), so single fields and what zeros mean must be right, not
//! only the way back and forth.

use super::map::{Element, Field, Interleave, Mode, Swizzle, TensorMap};

/// A number in a map: its first bit, and how many.
#[derive(Clone, Copy)]
struct Bits(u32, u32);

const ADDRESS: Bits = Bits(0, 64);
const IM2COL: Bits = Bits(64, 1);
/// Dimensions less one.
const RANK: Bits = Bits(68, 3);
const ELEMENT: Bits = Bits(71, 4);
const INTERLEAVE: Bits = Bits(75, 2);
const SWIZZLE: Bits = Bits(77, 2);
const FILL: Bits = Bits(79, 1);
/// Elements are rounded to tf32.
const ROUND: Bits = Bits(80, 1);
const PROMOTION: Bits = Bits(81, 2);
/// Later architectures permute in more ways; kernels that choose one of ours clear this.
const SWIZZLE_MORE: Bits = Bits(86, 1);
/// Channels of a column, less one; in tiled maps the extent of the first dimension.
const CHANNELS: Bits = Bits(440, 8);
/// Pixels of a column, less one.
const PIXELS: Bits = Bits(480, 10);
/// For whoever debugs: bytes of a box, and the alignment in shared memory that its permutation wants. The hardware does not read them.
const BOX_BYTES: Bits = Bits(512, 32);
const SHARED_ALIGN: Bits = Bits(576, 32);

/// Units of 16 bytes from one element of the next dimension to the next, without the upper bits.
const fn stride(axis: u32) -> Bits {
    Bits(96 + 32 * axis, 32)
}

/// Their upper bits.
const fn stride_above(axis: u32) -> Bits {
    Bits(224 + 4 * axis, 4)
}

/// Elements less one.
const fn size(axis: u32) -> Bits {
    Bits(256 + 32 * axis, 32)
}

/// Steps less one.
const fn step(axis: u32) -> Bits {
    Bits(416 + 3 * axis, 3)
}

/// Elements of a box, less one.
const fn extent(axis: u32) -> Bits {
    Bits(440 + 8 * axis, 8)
}

/// How many bits a corner of the pixels' box has for each of so many dimensions.
const fn corner_bits(rank: u32) -> u32 {
    match rank {
        ..=3 => 16,
        4 => 8,
        _ => 5,
    }
}

const fn lower(rank: u32, axis: u32) -> Bits {
    Bits(448 + corner_bits(rank) * axis, corner_bits(rank))
}

const fn upper(rank: u32, axis: u32) -> Bits {
    Bits(464 + corner_bits(rank) * axis, corner_bits(rank))
}

impl Bits {
    /// The word of 64 bits that the number is in, which none leaves, and how far up it lies there.
    const fn place(self) -> (usize, u32) {
        ((self.0 / 64 * 8) as usize, self.0 % 64)
    }

    const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.1)
    }

    fn word(self, bytes: &[u8; TensorMap::BYTES]) -> u64 {
        let (at, _) = self.place();
        u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
    }

    fn get(self, bytes: &[u8; TensorMap::BYTES]) -> u64 {
        self.word(bytes) >> self.place().1 & self.mask()
    }

    /// The number with its sign.
    fn signed(self, bytes: &[u8; TensorMap::BYTES]) -> i32 {
        let above = 64 - self.1;
        ((self.get(bytes) << above) as i64 >> above) as i32
    }

    /// Writes the number's lower bits, as many as there is room for.
    fn put(self, bytes: &mut [u8; TensorMap::BYTES], value: u64) {
        let (at, shift) = self.place();
        let word = self.word(bytes) & !(self.mask() << shift) | (value & self.mask()) << shift;
        bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
}

impl Element {
    /// The number in maps, which is PTX's (`tensormap.replace.elemtype`) but for tf32, and whether elements are rounded to that.
    const fn number(self) -> (u64, bool) {
        match self {
            Element::U8 => (0, false),
            Element::U16 => (1, false),
            Element::U32 => (2, false),
            Element::S32 => (3, false),
            Element::U64 => (4, false),
            Element::S64 => (5, false),
            Element::F16 => (6, false),
            Element::F32 => (7, false),
            Element::F32Ftz => (8, false),
            Element::F64 => (9, false),
            Element::BF16 => (10, false),
            Element::TF32 => (7, true),
            Element::TF32Ftz => (8, true),
        }
    }
}

impl TensorMap {
    /// The map's bytes.
    pub fn to_bytes(&self) -> [u8; TensorMap::BYTES] {
        let mut bytes = [0; TensorMap::BYTES];
        let mut put = |place: Bits, value: u64| place.put(&mut bytes, value);
        let (element, round) = self.element.number();
        let rank = u32::from(self.rank);
        put(ADDRESS, self.address);
        put(RANK, u64::from(rank - 1));
        put(ELEMENT, element);
        put(ROUND, round.into());
        put(INTERLEAVE, self.interleave as u64);
        put(SWIZZLE, self.swizzle as u64);
        put(FILL, self.nan_outside.into());
        put(PROMOTION, self.promotion.into());
        let dimensions = 0..self.rank();
        for (axis, at) in dimensions.clone().zip(0..) {
            put(size(at), self.sizes[axis].wrapping_sub(1));
            put(step(at), u64::from(self.steps[axis].wrapping_sub(1)));
        }
        for (axis, at) in dimensions.clone().skip(1).zip(0..) {
            put(stride(at), self.strides[axis - 1] >> 4);
            put(stride_above(at), self.strides[axis - 1] >> 36);
        }
        let elements = match self.mode {
            Mode::Tiled { extents } => {
                for (axis, at) in dimensions.clone().zip(0..) {
                    put(extent(at), u64::from(extents[axis].wrapping_sub(1)));
                }
                dimensions.map(|axis| u64::from(extents[axis] / self.steps[axis].max(1))).product()
            }
            Mode::Im2col { lower: from, upper: to, channels, pixels } => {
                put(IM2COL, 1);
                put(CHANNELS, u64::from(channels.wrapping_sub(1)));
                put(PIXELS, u64::from(pixels.wrapping_sub(1)));
                for (axis, at) in dimensions.skip(2).map(|axis| axis - 2).zip(0..) {
                    put(lower(rank, at), from[axis] as u64);
                    put(upper(rank, at), to[axis] as u64);
                }
                u64::from(channels) * u64::from(pixels)
            }
        };
        put(BOX_BYTES, elements * self.element.bytes());
        put(SHARED_ALIGN, self.swizzle.span().map_or(16, |span| 8 * span));
        bytes
    }

    /// The map of these bytes, which may be anybody's. `None` if the hardware refuses them; what it says is then within the limits of maps,
    /// but for strides, which may be anything.
    pub fn from_bytes(bytes: &[u8; TensorMap::BYTES]) -> Option<TensorMap> {
        let get = |place: Bits| place.get(bytes);
        let rank = get(RANK) as u32 + 1;
        let number = (get(ELEMENT), get(ROUND) == 1);
        let axes: [u32; 5] = [0, 1, 2, 3, 4];
        let one_more = |place: Bits| get(place) as u32 + 1;
        let corner = |place: fn(u32, u32) -> Bits| {
            [0, 1, 2].map(|axis| if axis + 2 < rank { place(rank, axis).signed(bytes) } else { 0 })
        };
        let mode = if get(IM2COL) == 0 {
            Mode::Tiled { extents: axes.map(|axis| one_more(extent(axis))) }
        } else {
            Mode::Im2col {
                lower: corner(lower),
                upper: corner(upper),
                channels: one_more(CHANNELS),
                pixels: one_more(PIXELS),
            }
        };
        let map = TensorMap {
            element: Element::ALL.into_iter().find(|element| element.number() == number)?,
            rank: rank as u8,
            // The hardware's addresses have 57 bits.
            address: get(ADDRESS) & ((1 << 57) - 1),
            sizes: axes.map(|axis| get(size(axis)) + 1),
            strides: [0, 1, 2, 3].map(|axis| (get(stride(axis)) | get(stride_above(axis)) << 32) << 4),
            steps: axes.map(|axis| one_more(step(axis))),
            interleave: Interleave::from_number(get(INTERLEAVE))?,
            swizzle: Swizzle::from_number(get(SWIZZLE))?,
            nan_outside: get(FILL) == 1,
            promotion: get(PROMOTION) as u8,
            mode,
        };
        map.is_usable().then_some(map)
    }

    /// What the hardware asks of a map, whose numbers are otherwise within their limits.
    fn is_usable(&self) -> bool {
        let rank = self.rank();
        let (least, row) = match self.mode {
            Mode::Tiled { extents } => (1, extents[0]),
            Mode::Im2col { channels, .. } => (3, channels),
        };
        let row = u64::from(row) * self.element.bytes();
        let rows_fit = match self.interleave {
            Interleave::None => row.is_multiple_of(16) && self.swizzle.span().is_none_or(|span| row <= span),
            Interleave::Bytes16 => rank >= 3,
            Interleave::Bytes32 => {
                rank >= 3 && self.strides[..rank - 1].iter().all(|stride| stride.is_multiple_of(32))
            }
        };
        (least..=5).contains(&rank) && rows_fit && self.sizes[..rank].iter().all(|size| *size <= 1 << 31)
    }
}

impl Field {
    /// Changes the field in the bytes of a map, which gets the value's lower bits. `None` if there is no such value.
    pub fn replace(self, bytes: &mut [u8; TensorMap::BYTES], value: u64) -> Option<()> {
        let mut put = |place: Bits, value: u64| place.put(bytes, value);
        match self {
            Field::Address => put(ADDRESS, value),
            // PTX counts dimensions from zero here, as maps do.
            Field::Rank => put(RANK, value),
            Field::Extent(axis) => put(extent(axis.into()), value.wrapping_sub(1)),
            Field::Size(axis) => put(size(axis.into()), value.wrapping_sub(1)),
            // The tensor has a stride less than dimensions.
            Field::Stride(axis) if axis > 3 => {}
            Field::Stride(axis) => {
                put(stride(axis.into()), value >> 4);
                put(stride_above(axis.into()), value >> 36);
            }
            Field::Step(axis) => put(step(axis.into()), value.wrapping_sub(1)),
            Field::Element => {
                let (element, round) = match value {
                    0..=10 => (value, false),
                    11 | 12 => (value - 4, true),
                    _ => return None,
                };
                put(ELEMENT, element);
                // Types without the rounding leave it as it was.
                if round {
                    put(ROUND, 1);
                }
            }
            Field::Interleave => put(INTERLEAVE, Interleave::from_number(value)? as u64),
            Field::Swizzle => {
                put(SWIZZLE, Swizzle::from_number(value)? as u64);
                put(SWIZZLE_MORE, 0);
            }
            Field::Fill => put(FILL, u64::from(value != 0)),
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns of a tensor of four dimensions, and the words that NVIDIA's driver made of it.
    fn columns() -> (TensorMap, [u64; 10]) {
        let map = TensorMap {
            element: Element::TF32,
            rank: 4,
            address: 324_878_323_117_600,
            sizes: [144_041_512, 3_270_025, 3, 931_951_837, 1],
            strides: [2_178_592_000, 616_352_192, 143_372_192, 0],
            steps: [3, 6, 2, 4, 1],
            interleave: Interleave::Bytes16,
            swizzle: Swizzle::None,
            nan_outside: true,
            promotion: 0,
            mode: Mode::Im2col { lower: [-4, -105, 0], upper: [17, 105, 0], channels: 16, pixels: 602 },
        };
        let words = [
            0x1_2779_a10b_6e20,
            0x81d_aad0_0001_8bb1,
            0x88_bafa_024b_cc9c,
            0,
            0x31_e588_0895_e627,
            0x378c_74dc_0000_0002,
            0xf00_066a_0000_0000,
            0x259_6911_97fc,
            0x9680,
            0x10,
        ];
        (map, words)
    }

    #[test]
    fn the_drivers_bits_say_what_they_were_made_from() {
        let (map, words) = columns();
        let bytes = map.to_bytes();
        for (at, word) in words.into_iter().enumerate() {
            assert_eq!(bytes[8 * at..8 * at + 8], word.to_le_bytes(), "word {at}");
        }
        assert_eq!(bytes[80..], [0; 48]);
        assert_eq!(TensorMap::from_bytes(&bytes), Some(map));
    }

    #[test]
    fn a_kernel_makes_a_map_from_zeros() {
        let mut bytes = [0; TensorMap::BYTES];
        let fields = [
            (Field::Address, 0x7f00_0000_1000),
            (Field::Rank, 1),
            (Field::Extent(0), 64),
            (Field::Extent(1), 256),
            (Field::Size(0), 100),
            (Field::Size(1), 1 << 31),
            (Field::Stride(0), 0xab_cdef_0120),
            (Field::Step(0), 1),
            (Field::Step(1), 8),
            (Field::Element, 6),
            (Field::Swizzle, 3),
        ];
        for (field, value) in fields {
            field.replace(&mut bytes, value).unwrap();
        }
        let map = TensorMap::from_bytes(&bytes).unwrap();
        assert_eq!((map.element, map.rank, map.address), (Element::F16, 2, 0x7f00_0000_1000));
        assert_eq!((map.sizes[..2].to_vec(), map.strides[0]), (vec![100, 1 << 31], 0xab_cdef_0120));
        assert_eq!((map.steps[..2].to_vec(), map.swizzle), (vec![1, 8], Swizzle::Bytes128));
        assert_eq!(map.mode, Mode::Tiled { extents: [64, 256, 1, 1, 1] });
        assert_eq!(TensorMap::from_bytes(&map.to_bytes()), Some(map));
    }

    #[test]
    fn what_the_hardware_refuses_is_no_map() {
        let refused = |field: Field, value: u64| {
            let mut bytes = columns().0.to_bytes();
            field.replace(&mut bytes, value).unwrap();
            TensorMap::from_bytes(&bytes).is_none()
        };
        assert!(refused(Field::Rank, 5), "six dimensions");
        assert!(refused(Field::Rank, 1), "columns in two dimensions");
        assert!(refused(Field::Size(0), (1 << 31) + 1), "sizes that are no positive coordinates");
        assert!(refused(Field::Element, 6), "rounding to tf32 stays from before");
        assert!(!refused(Field::Interleave, 2) && !refused(Field::Stride(1), 48));
        let narrow = TensorMap { interleave: Interleave::Bytes32, strides: [64, 80, 96, 0], ..columns().0 };
        assert_eq!(
            TensorMap::from_bytes(&narrow.to_bytes()),
            None,
            "a stride of 80 bytes between slices of 32"
        );
        let none = TensorMap { interleave: Interleave::None, ..columns().0 };
        assert!(TensorMap::from_bytes(&none.to_bytes()).is_some());
        let permuted = TensorMap { swizzle: Swizzle::Bytes32, ..none };
        assert_eq!(
            TensorMap::from_bytes(&permuted.to_bytes()),
            None,
            "a row of 64 bytes, permuted within 32"
        );
    }
}
