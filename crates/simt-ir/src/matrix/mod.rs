//! Products of small matrices whose elements lie spread over the registers of a warp (PTX `mma`).
//!
//! Every lane holds a fragment of each matrix: a few registers, each with one or more elements side by side. Which
//! element lies where is the PTX ISA's ("Matrix Fragments for mma"); `wmma` and `wgmma` are expansions into these.
//!
//! PTX leaves the order and the rounding of the sums open. Here they are what the hardware of compute capability 9.0
//! does, which its answers tell (`tests/golden`):
//!
//! * f16, bf16, tf32: all products and the addend are added at once. Each is cut, towards zero, at 25 places below the
//!   largest exponent among them (that of a product is the sum of its factors' exponents); the exact sum of these is
//!   rounded towards zero to f32, or to nearest even to f16.
//! * e4m3, e5m2: two such steps that start from zero, the first over those k for which `k % 4 < 2`; then the addend is
//!   added as by `add.rn`. In products of a warpgroup one step as for f16, but cut at 13 places, and so is a sum of f32.
//! * f64: fused multiply-adds in the order of k.
//! * `m8n8k4` of f16: fused multiply-adds of f32 from zero, then the addend. With results of f16 two chains of
//!   two products, of which the first gets the addend, and then their sum.

mod factor;
mod sum;

use crate::soft::Format;
use crate::{FloatMode, Op, Rounding, Type};
pub use factor::InMemory;
use sum::{Sum, add_f32, scalar, to_f32};

/// Lanes of a warp.
const LANES: usize = 32;

/// One register of each lane.
pub type LaneWords = [u64; LANES];

/// What the elements of a factor are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "PTX's types by name")]
pub enum Element {
    F16,
    BF16,
    TF32,
    E4M3,
    E5M2,
    F64,
    S8,
    U8,
    S4,
    U4,
    B1,
}

impl Element {
    /// All of them.
    pub const ALL: [Element; 11] = [
        Element::F16,
        Element::BF16,
        Element::TF32,
        Element::E4M3,
        Element::E5M2,
        Element::F64,
        Element::S8,
        Element::U8,
        Element::S4,
        Element::U4,
        Element::B1,
    ];

    /// Bits that an element takes in a register.
    pub const fn bits(self) -> usize {
        match self {
            Element::F64 => 64,
            Element::TF32 => 32,
            Element::F16 | Element::BF16 => 16,
            Element::E4M3 | Element::E5M2 | Element::S8 | Element::U8 => 8,
            Element::S4 | Element::U4 => 4,
            Element::B1 => 1,
        }
    }

    /// Type of the registers that hold elements.
    pub const fn register(self) -> Type {
        match self {
            Element::F64 => Type::F64,
            _ => Type::I32,
        }
    }

    /// The signs of all elements of a register.
    pub const fn signs(self) -> u64 {
        match self {
            Element::F16 | Element::BF16 => 0x8000_8000,
            Element::TF32 => 0x8000_0000,
            _ => 0x8080_8080,
        }
    }

    /// Elements of one register.
    const fn per_register(self) -> usize {
        match self {
            Element::F64 => 1,
            _ => 32 / self.bits(),
        }
    }

    /// The format, of a float that the tensor cores multiply.
    const fn format(self) -> Option<Format> {
        let (bits, precision, min_exp) = match self {
            Element::F16 => (16, 11, -14),
            Element::BF16 => (16, 8, -126),
            Element::TF32 => (19, 11, -126),
            Element::E4M3 => (8, 4, -6),
            Element::E5M2 => (8, 3, -14),
            _ => return None,
        };
        Some(Format { bits, precision, min_exp })
    }
}

/// What the elements of the addend and of the result are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "PTX's types by name")]
pub enum Accumulator {
    F16,
    F32,
    F64,
    S32,
}

impl Accumulator {
    /// All of them.
    pub const ALL: [Accumulator; 4] =
        [Accumulator::F16, Accumulator::F32, Accumulator::F64, Accumulator::S32];

    /// Type of the registers that hold elements; f16 come in pairs.
    pub const fn register(self) -> Type {
        match self {
            Accumulator::F16 | Accumulator::S32 => Type::I32,
            Accumulator::F32 => Type::F32,
            Accumulator::F64 => Type::F64,
        }
    }

    const fn per_register(self) -> usize {
        match self {
            Accumulator::F16 => 2,
            _ => 1,
        }
    }
}

/// Matrices of 8 × 4 and 4 × 8, one pair for each eight lanes, in the layouts that `m8n8k4` of f16 has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quads {
    /// The first factor comes by columns.
    pub a_by_column: bool,
    /// The second factor comes by rows.
    pub b_by_row: bool,
}

/// `d = a * b + c` with `a` of m × k, `b` of k × n.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixMultiply {
    /// Rows of the result: 8 or 16.
    pub m: u8,
    /// Products in a sum.
    pub k: u16,
    /// Elements of the first factor.
    pub a: Element,
    /// Elements of the second factor.
    pub b: Element,
    /// Elements of the addend.
    pub c: Accumulator,
    /// Elements of the result.
    pub d: Accumulator,
    /// Half of the first factor's elements are left out as zeros; metadata say which. Selects the lanes that hold it.
    pub sparse: Option<u8>,
    /// Integer sums are clamped rather than wrapped.
    pub saturate: bool,
    /// Bits are combined with `and` rather than exclusive or.
    pub and: bool,
    /// Rounding of f64 sums.
    pub round: Rounding,
    /// Set for `m8n8k4` of f16.
    pub quads: Option<Quads>,
    /// One quarter of a warpgroup's product (`wgmma`), whose sums of 8-bit floats have a way of their own.
    pub warpgroup: bool,
    /// Which factors its lanes have loaded from shared memory.
    pub in_memory: Option<InMemory>,
    /// Eights of columns. Registers of the second factor, the addend and the result come eight columns after eight.
    pub eights: u8,
}

/// Columns that are computed together.
const N: usize = 8;

impl MatrixMultiply {
    /// A dense product without modifiers.
    pub const fn new(
        m: u8,
        k: u16,
        a: Element,
        b: Element,
        c: Accumulator,
        d: Accumulator,
    ) -> MatrixMultiply {
        MatrixMultiply {
            m,
            k,
            a,
            b,
            c,
            d,
            sparse: None,
            saturate: false,
            and: false,
            round: Rounding::Nearest,
            quads: None,
            warpgroup: false,
            in_memory: None,
            eights: 1,
        }
    }

    /// Elements of a row of the first factor that are there.
    fn stored(&self) -> usize {
        usize::from(self.k) / if self.sparse.is_some() { 2 } else { 1 }
    }

    /// Registers of the first factor.
    pub fn a_registers(&self) -> usize {
        match self.quads {
            Some(_) => 2,
            None => usize::from(self.m) * self.stored() / self.a.per_register() / LANES,
        }
    }

    /// Registers of the second factor.
    pub fn b_registers(&self) -> usize {
        match self.quads {
            Some(_) => 2,
            None => self.eights() * (N * usize::from(self.k) / self.b.per_register() / LANES),
        }
    }

    fn eights(&self) -> usize {
        usize::from(self.eights)
    }

    /// Registers of the addend.
    pub fn c_registers(&self) -> usize {
        self.accumulators(self.c)
    }

    /// Registers of the result.
    pub fn d_registers(&self) -> usize {
        self.accumulators(self.d)
    }

    fn accumulators(&self, ty: Accumulator) -> usize {
        let elements = if self.quads.is_some() { 8 } else { usize::from(self.m) * N / LANES };
        self.eights() * elements / ty.per_register()
    }

    /// Types of the operands: registers of `a`, `b`, `c`, then the metadata, then the descriptors of `a` and `b` if some are in memory.
    pub fn operands(&self) -> Vec<Type> {
        let mut types = vec![self.a.register(); self.a_registers()];
        types.resize(types.len() + self.b_registers(), self.b.register());
        types.resize(types.len() + self.c_registers(), self.c.register());
        if self.sparse.is_some() {
            types.push(Type::I32);
        }
        if self.in_memory.is_some() {
            types.extend([Type::I64; 2]);
        }
        types
    }

    /// Types of the results.
    pub fn results(&self) -> Vec<Type> {
        vec![self.d.register(); self.d_registers()]
    }

    /// The results of a warp: as many registers as [`MatrixMultiply::results`] says, from as many as
    /// [`MatrixMultiply::operands`] says.
    ///
    /// # Panics
    /// With fewer operands.
    pub fn multiply(&self, operands: &[LaneWords]) -> Vec<LaneWords> {
        let (a, rest) = operands.split_at(self.a_registers());
        let (b, rest) = rest.split_at(self.b_registers());
        let (c, metadata) = rest.split_at(self.c_registers());
        let one = MatrixMultiply { eights: 1, ..*self };
        let eights = b.chunks(one.b_registers()).zip(c.chunks(one.c_registers()));
        eights.flat_map(|(b, c)| one.multiply_eight(a, b, c, metadata)).collect()
    }

    /// Eight columns of the result.
    fn multiply_eight(
        &self,
        a: &[LaneWords],
        b: &[LaneWords],
        c: &[LaneWords],
        metadata: &[LaneWords],
    ) -> Vec<LaneWords> {
        let mut d = vec![[0; LANES]; self.d_registers()];
        if let Some(quads) = self.quads {
            for quad in 0..4 {
                self.multiply_quad(quads, quad, a, b, c, &mut d);
            }
            return d;
        }
        let (rows, stored) = (usize::from(self.m), self.stored());
        let mut left = vec![0u64; rows * stored];
        for_each_element(self.a, a, |lane, register, place, value| {
            let row = lane / 4 + if rows == 16 { 8 * (register & 1) } else { 0 };
            let step = if rows == 16 { register / 2 } else { register };
            left[row * stored + column_of(self.a, lane, step, place)] = value;
        });
        let depth = usize::from(self.k);
        let mut right = vec![0u64; N * depth];
        for_each_element(self.b, b, |lane, register, place, value| {
            right[lane / 4 * depth + column_of(self.b, lane, register, place)] = value;
        });
        let sum = Sum::new(self, &left, &right, rows);
        let mut chosen: Vec<u16> = (0..self.k).collect();
        for row in 0..rows {
            if self.sparse.is_some() {
                chosen = self.columns(row, &metadata[0]).collect();
            }
            for column in 0..N {
                let (lane, element) = accumulator_place(row, column);
                let addend = get(c, self.c, lane, element);
                set(&mut d, self.d, lane, element, sum.of(row, column, &chosen, addend));
            }
        }
        d
    }

    /// One element of the result: the sum of the products of a row's elements with those of a column that they meet, and an
    /// addend. All are bits, each in the low end of its word.
    ///
    /// # Panics
    /// If there are not as many factors as the product has (of a sparse one half as many), or it is one of [`Quads`].
    pub fn element(&self, row: &[u64], column: &[u64], addend: u64) -> u64 {
        assert!(self.quads.is_none(), "quads have sums of their own");
        assert!(row.len() == self.stored() && column.len() == row.len(), "every factor is there");
        let met: Vec<u16> = (0..row.len() as u16).collect();
        let met_alone = MatrixMultiply { k: met.len() as u16, sparse: None, eights: 1, ..*self };
        Sum::new(&met_alone, row, column, 1).of(0, 0, &met, addend)
    }

    /// The columns at which the elements of a row stand, by the metadata.
    ///
    /// # Panics
    /// If the product is not sparse.
    pub fn columns(&self, row: usize, metadata: &LaneWords) -> impl Iterator<Item = u16> + use<> {
        let selector = usize::from(self.sparse.expect("the product is sparse"));
        let (group, upper) = (row % 8 * 4, row / 8);
        let word = |lane: usize| metadata[group + lane] & 0xffff_ffff;
        let stored = self.stored();
        // Of 4 bits, two stand and fall together.
        let units = if self.a.bits() == 4 { stored / 2 } else { stored };
        let bits = if self.a.bits() <= 8 {
            // A whole row's part in each lane, both halves of the rows beside each other.
            if units == 16 { word(selector % 2 * 2 + upper) } else { word(upper) | word(2 + upper) << 32 }
        } else {
            // Each lane has 16 bits of one row and 16 of the row 8 below.
            let half = |lane: usize| word(lane % 4) >> (16 * upper) & 0xffff;
            let places = stored * if self.a == Element::TF32 { 4 } else { 2 };
            if places == 16 { half(selector) } else { half(selector * 2) | half(selector * 2 + 1) << 16 }
        };
        let of_four = move |unit: u16| unit / 2 * 4 + (bits >> (2 * unit) & 3) as u16;
        let a = self.a;
        (0..stored as u16).map(move |index| match a {
            // Named by the pair of halves it would be.
            Element::TF32 => index * 2 + (bits >> (4 * index) >> 1 & 1) as u16,
            Element::S4 | Element::U4 => of_four(index / 2) * 2 + index % 2,
            _ => of_four(index),
        })
    }

    /// The product of the lanes of one quad and of those 16 further.
    fn multiply_quad(
        &self,
        quads: Quads,
        quad: usize,
        a: &[LaneWords],
        b: &[LaneWords],
        c: &[LaneWords],
        d: &mut [LaneWords],
    ) {
        let lane_of = |index: usize| quad * 4 + index % 4 + index / 4 * 16;
        let half = |words: &[LaneWords], lane: usize, element: usize| {
            to_f32(Accumulator::F16, words[element / 2][lane] >> (16 * (element % 2)) & 0xffff)
        };
        // Lane and element of what stands at (row, column) of the addend and the result.
        let place = |ty: Accumulator, row: usize, column: usize| match ty {
            Accumulator::F16 => (lane_of(row), column),
            _ => (lane_of((row & 5) | (column & 2)), (column & 4) | (row & 2) | (column & 1)),
        };
        for row in 0..8 {
            for column in 0..N {
                let factors: [[u64; 2]; 4] = std::array::from_fn(|k| {
                    let left = match quads.a_by_column {
                        false => half(a, lane_of(row), k),
                        true => half(a, lane_of(row / 4 * 4 + k), row % 4),
                    };
                    let right = match quads.b_by_row {
                        false => half(b, lane_of(column), k),
                        true => half(b, lane_of(column / 4 * 4 + k), column % 4),
                    };
                    [left, right]
                });
                let fma = |sum: u64, [left, right]: [u64; 2]| {
                    scalar(Op::Fma(FloatMode::default()), Type::F32, &[left, right, sum])
                };
                let (lane, element) = place(self.c, row, column);
                let addend = to_f32(self.c, get(c, self.c, lane, element));
                let sum = match self.d {
                    Accumulator::F16 => {
                        let halves =
                            [&factors[..2], &factors[2..]].map(|half| half.iter().copied().fold(0, fma));
                        let first = add_f32(halves[0], addend, Accumulator::F32);
                        add_f32(first, halves[1], self.d)
                    }
                    _ => add_f32(factors.iter().copied().fold(0, fma), addend, self.d),
                };
                let (lane, element) = place(self.d, row, column);
                set(d, self.d, lane, element, sum);
            }
        }
    }
}

/// Calls `visit(lane, register, place in the register, bits)` for every element.
fn for_each_element(ty: Element, words: &[LaneWords], mut visit: impl FnMut(usize, usize, usize, u64)) {
    let (bits, per) = (ty.bits(), ty.per_register());
    let mask = u64::MAX >> (64 - bits);
    for (register, word) in words.iter().enumerate() {
        for (lane, value) in word.iter().enumerate() {
            for place in 0..per {
                visit(lane, register, place, value >> (bits * place) & mask);
            }
        }
    }
}

/// Position along k of an element, in registers that go on every four times their elements.
fn column_of(ty: Element, lane: usize, step: usize, place: usize) -> usize {
    let per = ty.per_register();
    (step * 4 + lane % 4) * per + place
}

/// Lane and element of what stands at (row, column) of the addend and the result.
fn accumulator_place(row: usize, column: usize) -> (usize, usize) {
    (row % 8 * 4 + column / 2, row / 8 * 2 + column % 2)
}

fn get(words: &[LaneWords], ty: Accumulator, lane: usize, element: usize) -> u64 {
    match ty {
        Accumulator::F16 => words[element / 2][lane] >> (16 * (element % 2)) & 0xffff,
        Accumulator::F32 | Accumulator::S32 => words[element][lane] & 0xffff_ffff,
        Accumulator::F64 => words[element][lane],
    }
}

fn set(words: &mut [LaneWords], ty: Accumulator, lane: usize, element: usize, value: u64) {
    match ty {
        Accumulator::F16 => words[element / 2][lane] |= value << (16 * (element % 2)),
        _ => words[element][lane] = value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval;

    /// Registers in which every element of the first factor is `a`, of the second `b`, of the addend `c`.
    fn filled(op: &MatrixMultiply, a: u64, b: u64, c: u64) -> Vec<LaneWords> {
        let mut words = vec![[a; LANES]; op.a_registers()];
        words.resize(words.len() + op.b_registers(), [b; LANES]);
        words.resize(words.len() + op.c_registers(), [c; LANES]);
        words
    }

    fn f32(value: f32) -> u64 {
        value.to_bits().into()
    }

    #[test]
    fn register_counts_are_those_of_ptx() {
        let count =
            |op: MatrixMultiply| [op.a_registers(), op.b_registers(), op.c_registers(), op.d_registers()];
        let (f16, f32) = (Accumulator::F16, Accumulator::F32);
        assert_eq!(count(MatrixMultiply::new(16, 16, Element::F16, Element::F16, f32, f32)), [4, 2, 4, 4]);
        assert_eq!(count(MatrixMultiply::new(16, 8, Element::F16, Element::F16, f16, f16)), [2, 1, 2, 2]);
        let double = Accumulator::F64;
        assert_eq!(
            count(MatrixMultiply::new(16, 16, Element::F64, Element::F64, double, double)),
            [8, 4, 4, 4]
        );
        let sparse =
            MatrixMultiply::new(16, 64, Element::S8, Element::S8, Accumulator::S32, Accumulator::S32);
        assert_eq!(count(MatrixMultiply { sparse: Some(0), ..sparse }), [4, 4, 4, 4]);
    }

    #[test]
    fn of_4_bits_two_elements_of_a_sparse_factor_stand_side_by_side() {
        let ints = Accumulator::S32;
        let op = MatrixMultiply::new(16, 64, Element::S4, Element::U4, ints, ints);
        let op = MatrixMultiply { sparse: Some(1), ..op };
        // The last two pairs of eight, then the second and the third; the first two everywhere else.
        let mut metadata = [0x4444_4444; LANES];
        metadata[4 * 3 + 2] = 0x4444_449e;
        let columns: Vec<u16> = op.columns(3, &metadata).take(12).collect();
        assert_eq!(columns, [4, 5, 6, 7, 10, 11, 12, 13, 16, 17, 18, 19]);
        let columns: Vec<u16> = op.columns(11, &metadata).skip(28).collect();
        assert_eq!(columns, [56, 57, 58, 59]);
        // With 128 columns, two lanes have a row.
        let op = MatrixMultiply { k: 128, sparse: Some(0), ..op };
        let columns: Vec<u16> = op.columns(3, &metadata).skip(32).take(4).collect();
        assert_eq!(columns, [68, 69, 70, 71]);
    }

    #[test]
    fn products_are_cut_25_places_below_the_largest_exponent() {
        let op = MatrixMultiply::new(16, 8, Element::F16, Element::F16, Accumulator::F32, Accumulator::F32);
        let tiny = 0x1400_1400; // 2^-10 in both halves
        // Eight products of 2^-20 beside 2^5: each keeps its place.
        let d = op.multiply(&filled(&op, tiny, tiny, f32(32.0)));
        assert_eq!(d[0][0], f32(32.0 + 8.0 / (1 << 20) as f32));
        // Beside 2^6 the same products are below what is kept.
        let d = op.multiply(&filled(&op, tiny, tiny, f32(64.0)));
        assert_eq!(d[3][31], f32(64.0));
    }

    #[test]
    fn infinities_and_nans_come_out_as_such() {
        let op = MatrixMultiply::new(16, 8, Element::BF16, Element::BF16, Accumulator::F32, Accumulator::F32);
        let (one, infinity, zero) = (0x3f80_3f80, 0x7f80_7f80, 0);
        assert_eq!(op.multiply(&filled(&op, infinity, one, 0))[0][5], f32(f32::INFINITY));
        assert_eq!(op.multiply(&filled(&op, infinity, zero, 0))[0][5], eval::canonical_nan(Type::F32));
        let negative = f32(f32::NEG_INFINITY);
        assert_eq!(op.multiply(&filled(&op, infinity, one, negative))[0][5], eval::canonical_nan(Type::F32));
    }

    #[test]
    fn integer_sums_wrap_unless_they_are_clamped() {
        let ints = Accumulator::S32;
        let op = MatrixMultiply::new(8, 16, Element::S8, Element::U8, ints, ints);
        let (minus_one, two) = (0xffff_ffff, 0x0202_0202);
        let d = op.multiply(&filled(&op, minus_one, two, 0x8000_0000));
        assert_eq!(d[1][7], 0x8000_0000u32.wrapping_sub(32).into());
        let op = MatrixMultiply { saturate: true, ..op };
        let d = op.multiply(&filled(&op, minus_one, two, 0x8000_0000));
        assert_eq!(d[1][7], 0x8000_0000);
    }
}
