//! The sums of the tensor cores.

use std::ops::Range;

use simt_ir::matrix::{Accumulator, Element, MatrixMultiply};

use super::super::LaneHalves;
use super::scaled::Scaled;
use super::vectors::{Plain, Vectors};
use super::{COLUMNS, Lanes, Places, ROWS, addends, by_columns, by_definition, by_rows, set_results, spread};

/// Products of floats, for these eights of columns. False, and nothing done, if the first factor is left to the definition.
///
/// # Safety
/// It runs where the vectors `V` are.
#[inline(always)]
pub(super) unsafe fn multiply<V: Vectors, const DEPTH: usize>(
    op: &MatrixMultiply,
    places: &Places,
    words: &mut [LaneHalves],
    eights: Range<usize>,
) -> bool {
    let mut rest = eights.clone();
    if let Some(scaled) = Scaled::<V, DEPTH>::new(op, places, words) {
        while rest.start < rest.end && scaled.eight(op, places, words, rest.start) {
            rest.start += 1;
        }
    }
    rest.is_empty() || by_exponents::<DEPTH>(op, places, words, eights.start, rest)
}

/// The rest, of whatever exponents.
#[inline(always)]
fn by_exponents<const DEPTH: usize>(
    op: &MatrixMultiply,
    places: &Places,
    words: &mut [LaneHalves],
    first: usize,
    eights: Range<usize>,
) -> bool {
    let mut sums = FloatSums::<DEPTH>::new(op);
    let taken = sums.take_all(op, places, words);
    if !taken && eights.start == first {
        return false;
    }
    for eight in eights {
        if !taken || !sums.eight(op, places, words, eight) {
            by_definition(op, places, words, eight);
        }
    }
    true
}

/// A float format of at most 32 bits.
#[derive(Clone, Copy)]
pub(super) struct Format {
    pub(super) fraction: u32,
    exponent: u32,
    /// The largest magnitude alone is no number.
    finite: bool,
}

impl Format {
    #[inline(always)]
    pub(super) fn of(element: Element) -> Format {
        let (fraction, exponent) = match element {
            Element::F16 => (10, 5),
            Element::BF16 => (7, 8),
            Element::TF32 => (10, 8),
            Element::E4M3 => (3, 4),
            _ => (2, 5),
        };
        Format { fraction, exponent, finite: element == Element::E4M3 }
    }

    #[inline(always)]
    pub(super) fn of_sum(sum: Accumulator) -> Format {
        match sum {
            Accumulator::F16 => Format { fraction: 10, exponent: 5, finite: false },
            _ => Format { fraction: 23, exponent: 8, finite: false },
        }
    }

    /// The significand as a signed integer, the exponent of its first place, and whether this is no finite number.
    #[inline(always)]
    pub(super) fn split(self, bits: u32) -> (f32, i32, bool) {
        let field = bits >> self.fraction & ((1 << self.exponent) - 1);
        let fraction = bits & ((1 << self.fraction) - 1);
        let bias = (1 << (self.exponent - 1)) - 1;
        let magnitude = if field == 0 { fraction } else { fraction | 1 << self.fraction };
        let exponent = if magnitude == 0 { NOTHING } else { field.max(1) as i32 - bias };
        let negative = bits >> (self.fraction + self.exponent) & 1 != 0;
        let value = magnitude as i32 as f32;
        let top = (1 << self.exponent) - 1;
        let special = field == top && (!self.finite || fraction == (1 << self.fraction) - 1);
        (if negative { -value } else { value }, exponent, special)
    }
}

/// Less than the exponent of anything, and so is the sum of two.
const NOTHING: i32 = -20_000;

/// The first factor, taken apart, and how sums go.
struct FloatSums<const DEPTH: usize> {
    significands: [Lanes<f32>; DEPTH],
    exponents: [Lanes<i32>; DEPTH],
    depth: usize,
    /// Sums that follow each other: 1, or 2 over halves of `k`.
    steps: usize,
    /// Places kept below the largest exponent.
    places: i32,
}

impl<const DEPTH: usize> FloatSums<DEPTH> {
    #[inline(always)]
    fn new(op: &MatrixMultiply) -> FloatSums<DEPTH> {
        let small = op.a.bits() == 8;
        FloatSums {
            significands: [[0.0; ROWS]; DEPTH],
            exponents: [[NOTHING; ROWS]; DEPTH],
            depth: usize::from(op.k),
            steps: if small && !op.warpgroup { 2 } else { 1 },
            places: if small && op.warpgroup { 13 } else { 25 },
        }
    }

    /// Takes the first factor. False if an element is no finite number, or its metadata make no sense.
    #[inline(always)]
    fn take_all(&mut self, op: &MatrixMultiply, places: &Places, words: &[LaneHalves]) -> bool {
        let mut rows = [[0; ROWS]; DEPTH];
        by_rows::<Plain>(ROWS, &words[..places.b], &mut rows);
        let rows = &rows[..places.b * 2];
        // Each format by itself, so that its numbers are constants.
        let special = match op.a {
            Element::F16 => self.take::<2>(op, Format::of(Element::F16), rows),
            Element::BF16 => self.take::<2>(op, Format::of(Element::BF16), rows),
            Element::TF32 => self.take::<1>(op, Format::of(Element::TF32), rows),
            Element::E4M3 => self.take::<4>(op, Format::of(Element::E4M3), rows),
            _ => self.take::<4>(op, Format::of(Element::E5M2), rows),
        };
        !special && (op.sparse.is_none() || self.spread(op, &words[places.metadata]))
    }

    /// Takes the elements of the first factor in order, sparse ones side by side.
    #[inline(always)]
    fn take<const PER_WORD: usize>(
        &mut self,
        op: &MatrixMultiply,
        format: Format,
        rows: &[Lanes<u32>],
    ) -> bool {
        let bits = 32 / PER_WORD as u32;
        let unused = op.a.bits() as u32 - (format.fraction + format.exponent + 1);
        let mut any = false;
        for (at, words) in rows.iter().enumerate() {
            for place in 0..PER_WORD {
                let k = at * PER_WORD + place;
                let k = if op.sparse.is_some() { k } else { self.place(k, op) };
                for row in 0..ROWS {
                    let raw = words[row] >> (bits * place as u32) >> unused;
                    let (significand, exponent, special) = format.split(raw);
                    self.significands[k][row] = significand;
                    self.exponents[k][row] = exponent;
                    any |= special;
                }
            }
        }
        any
    }

    /// Where the elements of some k stand: those of a step side by side.
    #[inline(always)]
    fn place(&self, k: usize, op: &MatrixMultiply) -> usize {
        if self.steps == 1 {
            return k;
        }
        // Pairs of stored elements take turns.
        let pair = if op.sparse.is_some() { 4 } else { 2 };
        let (turn, inside) = (k / pair, k % pair);
        turn % 2 * (self.depth / 2) + turn / 2 * pair + inside
    }

    /// Puts the elements of a sparse factor where they belong. False if two belong to one place.
    #[cold]
    #[inline(never)]
    fn spread(&mut self, op: &MatrixMultiply, metadata: &LaneHalves) -> bool {
        let (significands, exponents) = (self.significands, self.exponents);
        self.significands = [[0.0; ROWS]; DEPTH];
        self.exponents = [[NOTHING; ROWS]; DEPTH];
        spread(op, metadata, |row, at, k| {
            let place = self.place(k, op);
            self.significands[place][row] = significands[at][row];
            self.exponents[place][row] = exponents[at][row];
        })
    }

    /// Eight columns. False, and nothing done, if they are left to the definition.
    #[inline(always)]
    fn eight(&self, op: &MatrixMultiply, places: &Places, words: &mut [LaneHalves], eight: usize) -> bool {
        let mut columns = [[0; COLUMNS]; DEPTH];
        by_columns::<Plain>(&words[places.b + eight * places.each_b..][..places.each_b], &mut columns);
        let stored = places.each_b * 4;
        let mut right =
            Right::<DEPTH> { significands: [[0.0; COLUMNS]; DEPTH], exponents: [[0; COLUMNS]; DEPTH] };
        let special = match op.b {
            Element::F16 => right.take::<2>(self, op, Format::of(Element::F16), &columns[..stored]),
            Element::BF16 => right.take::<2>(self, op, Format::of(Element::BF16), &columns[..stored]),
            Element::TF32 => right.take::<1>(self, op, Format::of(Element::TF32), &columns[..stored]),
            Element::E4M3 => right.take::<4>(self, op, Format::of(Element::E4M3), &columns[..stored]),
            _ => right.take::<4>(self, op, Format::of(Element::E5M2), &columns[..stored]),
        };
        if special {
            return false;
        }
        let addends = addends::<Plain>(op.c, &words[places.c + eight * places.each_c..][..places.each_c]);
        let mut results = [[0; ROWS]; COLUMNS];
        let fraction = (Format::of(op.a).fraction + Format::of(op.b).fraction) as i32;
        for column in 0..COLUMNS {
            let Some(result) = self.column(op, &right, column, fraction, &addends[column]) else {
                return false;
            };
            results[column] = result;
        }
        set_results::<Plain>(op.d, &results, &mut words[places.d + eight * places.each_d..][..places.each_d]);
        true
    }

    /// One column; nothing if a part of it is rare.
    #[inline(always)]
    fn column(
        &self,
        op: &MatrixMultiply,
        right: &Right<DEPTH>,
        column: usize,
        fraction: i32,
        addends: &Lanes<u32>,
    ) -> Option<Lanes<u32>> {
        if self.steps == 1 {
            // Of mixed types the sum is one of f32.
            let ty = if op.c == op.d { op.d } else { Accumulator::F32 };
            let addends = if ty == op.c { *addends } else { addends.map(widened) };
            let sum = self.sum(right, column, 0..self.depth, fraction, ty, &addends)?;
            return Some(if ty == op.d { sum } else { sum.map(narrowed) });
        }
        let half = self.depth / 2;
        let sum = self.sum(right, column, 0..half, fraction, op.d, &[0; ROWS])?;
        let sum = self.sum(right, column, half..self.depth, fraction, op.d, &sum)?;
        Some(added(op.c, op.d, &sum, addends))
    }

    /// Products and addends of type `ty`, added at once.
    #[inline(always)]
    fn sum(
        &self,
        right: &Right<DEPTH>,
        column: usize,
        ks: Range<usize>,
        fraction: i32,
        ty: Accumulator,
        addends: &Lanes<u32>,
    ) -> Option<Lanes<u32>> {
        match ty {
            Accumulator::F16 => self.sum_of::<true>(right, column, ks, fraction, addends),
            _ => self.sum_of::<false>(right, column, ks, fraction, addends),
        }
    }

    #[inline(always)]
    fn sum_of<const HALF: bool>(
        &self,
        right: &Right<DEPTH>,
        column: usize,
        ks: Range<usize>,
        fraction: i32,
        addends: &Lanes<u32>,
    ) -> Option<Lanes<u32>> {
        let format = Format::of_sum(if HALF { Accumulator::F16 } else { Accumulator::F32 });
        let (mut significands, mut largest) = ([0.0; ROWS], [0; ROWS]);
        let mut special = false;
        for row in 0..ROWS {
            let odd;
            (significands[row], largest[row], odd) = format.split(addends[row]);
            special |= odd;
        }
        if special {
            return None;
        }
        let own = largest;
        for k in ks.clone() {
            let other = right.exponents[k][column];
            for row in 0..ROWS {
                largest[row] = largest[row].max(self.exponents[k][row] + other);
            }
        }
        let mut sums = [0i32; ROWS];
        let lowest = self.places - fraction;
        for k in ks {
            let (other, factor) = (right.exponents[k][column], right.significands[k][column]);
            for row in 0..ROWS {
                let exponent = self.exponents[k][row] + other - largest[row];
                let kept = cut(self.significands[k][row] * factor, exponent, lowest);
                // It stays below 2^31: of no format are there more products than that.
                sums[row] = sums[row].wrapping_add(kept);
            }
        }
        let lowest = self.places - format.fraction as i32;
        let mut rare = false;
        let mut results = [0; ROWS];
        for row in 0..ROWS {
            let own = cut(significands[row], own[row] - largest[row], lowest);
            let total = f64::from(sums[row]) + f64::from(own);
            let scale = i64::from(largest[row].max(-900) - self.places + 1023) << 52;
            let value = total * f64::from_bits(scale as u64);
            rare |= value != 0.0 && value.abs() < f64::from(f32::MIN_POSITIVE);
            results[row] = match HALF {
                true => without_sign_of_zero(narrowed(odd(value))),
                // A normal number keeps as many places as its addends.
                false if self.places == 13 => truncated(value) & !0x3ff,
                false => truncated(value),
            };
        }
        // Of f16 nothing is left of such a number.
        if rare && !HALF { None } else { Some(results) }
    }
}

/// The second factor, taken apart.
struct Right<const DEPTH: usize> {
    significands: [[f32; COLUMNS]; DEPTH],
    exponents: [[i32; COLUMNS]; DEPTH],
}

impl<const DEPTH: usize> Right<DEPTH> {
    /// Takes the elements; true if one of them is no finite number.
    #[inline(always)]
    fn take<const PER_WORD: usize>(
        &mut self,
        left: &FloatSums<DEPTH>,
        op: &MatrixMultiply,
        format: Format,
        columns: &[[u32; COLUMNS]],
    ) -> bool {
        let bits = 32 / PER_WORD as u32;
        let unused = op.b.bits() as u32 - (format.fraction + format.exponent + 1);
        let mut any = false;
        for (at, words) in columns.iter().enumerate() {
            for place in 0..PER_WORD {
                let k = left.place(at * PER_WORD + place, op);
                for column in 0..COLUMNS {
                    let raw = words[column] >> (bits * place as u32) >> unused;
                    let (significand, exponent, special) = format.split(raw);
                    self.significands[k][column] = significand;
                    self.exponents[k][column] = exponent;
                    any |= special;
                }
            }
        }
        any
    }
}

/// `significand × 2^(exponent + lowest)`, cut to an integer. The exponent is at most 0, the result less than 2^28.
#[inline(always)]
pub(super) fn cut(significand: f32, exponent: i32, lowest: i32) -> i32 {
    // What is so much smaller leaves nothing.
    let power = f32::from_bits(((exponent.max(-64) + lowest + 127) << 23) as u32);
    // SAFETY: significands are below 2^24 (of products 2^22), and scaled so that of a number with exponent 0 so many places stand
    // before the point: 25 and two more of a product.
    unsafe { (significand * power).to_int_unchecked() }
}

/// The f32 that is left when further places are cut off; zeros have no sign, what is too large is an infinity.
#[inline(always)]
pub(super) fn truncated(value: f64) -> u32 {
    let kept = f64::from_bits(value.to_bits() & !((1 << 29) - 1));
    (kept as f32).to_bits()
}

/// The f32 whose last place says whether anything was cut off, so that it can be rounded again.
#[inline(always)]
pub(super) fn odd(value: f64) -> u32 {
    let bits = value.to_bits();
    let low = (1 << 29) - 1;
    let sticky = if bits & low == 0 { 0 } else { 1 << 29 };
    (f64::from_bits(bits & !low | sticky) as f32).to_bits()
}

/// The nearest f16, even of two. A NaN is the canonical one.
#[inline(always)]
pub(super) fn narrowed(bits: u32) -> u32 {
    let magnitude = bits & 0x7fff_ffff;
    let small = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let normal = magnitude.wrapping_add(0xfff + (magnitude >> 13 & 1)).wrapping_sub(112 << 23) >> 13;
    let value = if magnitude < 0x3880_0000 { small } else { normal };
    // From 65520 on the nearest is the infinity.
    let value = if magnitude >= 0x477f_f000 { 0x7c00 } else { value };
    let value = value | bits >> 16 & 0x8000;
    if magnitude > 0x7f80_0000 { 0x7fff } else { value }
}

#[inline(always)]
pub(super) fn without_sign_of_zero(half: u32) -> u32 {
    if half == 0x8000 { 0 } else { half }
}

/// The f32 of an f16. A NaN is the canonical one.
#[inline(always)]
pub(super) fn widened(bits: u32) -> u32 {
    let (significand, exponent, special) = Format::of_sum(Accumulator::F16).split(bits);
    let power = f32::from_bits(((exponent.max(-24) - 10 + 127) << 23) as u32);
    let infinity = 0x7f80_0000 | (bits & 0x8000) << 16;
    let nan = 0x7fff_ffff;
    match (special, bits & 0x3ff == 0) {
        (false, _) => (significand * power).to_bits(),
        (true, true) => infinity,
        (true, false) => nan,
    }
}

/// Sums of type `d` and addends of type `c`, added as f32 and rounded to the nearest.
#[inline(always)]
pub(super) fn added(c: Accumulator, d: Accumulator, sums: &Lanes<u32>, addends: &Lanes<u32>) -> Lanes<u32> {
    let wide = |ty: Accumulator, bits: u32| if ty == Accumulator::F16 { widened(bits) } else { bits };
    std::array::from_fn(|row| {
        let sum = f32::from_bits(wide(d, sums[row])) + f32::from_bits(wide(c, addends[row]));
        let bits = if sum.is_nan() { 0x7fff_ffff } else { sum.to_bits() };
        if d == Accumulator::F16 { narrowed(bits) } else { bits }
    })
}
