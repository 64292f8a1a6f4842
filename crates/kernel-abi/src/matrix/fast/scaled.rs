//! The sums of the tensor cores, where all factors are of one order.
//!
//! An element is kept as its value and as the power of two it begins with; both of a row (or a column) are scaled by one power, so
//! that the largest begins with 1. Then every product is exact in f32, none is subnormal, and the largest product of the powers says
//! where sums are cut: one multiplication takes a product there, one conversion cuts it off.

use std::marker::PhantomData;
use std::ops::Range;

use simt_ir::matrix::{Accumulator, Element, MatrixMultiply};

use super::super::LaneHalves;
use super::floats::{Format, added, cut, narrowed, odd, truncated, widened, without_sign_of_zero};
use super::vectors::Vectors;
use super::{COLUMNS, Lanes, Places, ROWS, addends, by_columns, by_rows, set_results};

/// Products of powers begin at 2^-90 or later: they leave room for their places, and for those that are kept below the largest.
const LEAST: f32 = f32::from_bits((127 - 90) << 23);
/// Columns whose sums are computed side by side, since each step waits for the last.
const GROUP: usize = 4;
/// The exponents of addends that can be beside them, and what stands for those below.
const HIGHEST: i32 = 90;
const BELOW: i32 = -100;

/// Lines of a matrix: `N` rows or columns, element by element.
struct Lines<const DEPTH: usize, const N: usize> {
    values: [[f32; N]; DEPTH],
    /// The powers of two that values begin with; 0 for zeros. Subnormals begin as the smallest normal number does.
    powers: [[f32; N]; DEPTH],
    /// The exponents that were taken from all elements of a line.
    shifts: [i32; N],
    /// What the powers are not below.
    least: f32,
}

impl<const DEPTH: usize, const N: usize> Lines<DEPTH, N> {
    /// Takes the elements in these words, which begin at the multiples of `words.len()`. Nothing if they are left to others.
    #[inline(always)]
    fn new(element: Element, words: &[[u32; N]], place: Place) -> Option<Lines<DEPTH, N>> {
        let mut lines = Lines {
            values: [[0.0; N]; DEPTH],
            powers: [[0.0; N]; DEPTH],
            shifts: [0; N],
            // The products of the narrow formats' smallest elements begin at 2^-32.
            least: 1.0,
        };
        // Each format by itself, so that its numbers are constants.
        let odd = match element {
            Element::F16 => lines.take_narrow::<2>(Format::of(Element::F16), words, place),
            Element::E4M3 => lines.take_narrow::<4>(Format::of(Element::E4M3), words, place),
            Element::E5M2 => lines.take_narrow::<4>(Format::of(Element::E5M2), words, place),
            Element::BF16 => lines.take_wide::<2>(words, 0xffff_0000, place) || lines.scale(2 * words.len()),
            _ => lines.take_wide::<1>(words, 0xffff_e000, place) || lines.scale(words.len()),
        };
        if odd { None } else { Some(lines) }
    }

    /// Elements of narrow exponents. Whether one is no finite number.
    #[inline(always)]
    fn take_narrow<const PER_WORD: usize>(
        &mut self,
        format: Format,
        words: &[[u32; N]],
        place: Place,
    ) -> bool {
        let bits = 32 / PER_WORD;
        let unit = f32::from_bits((127 - format.fraction) << 23);
        let mut any = [0u32; N];
        for (at, words) in words.iter().enumerate() {
            for inside in 0..PER_WORD {
                let k = place.of(at * PER_WORD + inside);
                for line in 0..N {
                    let (significand, exponent, special) = format.split(words[line] >> (bits * inside));
                    // Of a zero the exponent is out of range.
                    let power = f32::from_bits(((exponent.max(-30) + 127) << 23) as u32);
                    self.powers[k][line] = if significand == 0.0 { 0.0 } else { power };
                    self.values[k][line] = significand * unit * power;
                    any[line] |= u32::from(special);
                }
            }
        }
        flagged(&any)
    }

    /// Elements that are the first bits of an f32. Whether one is no finite number, or subnormal.
    #[inline(always)]
    fn take_wide<const PER_WORD: usize>(&mut self, words: &[[u32; N]], mask: u32, place: Place) -> bool {
        let mut any = [0u32; N];
        for (at, words) in words.iter().enumerate() {
            for inside in 0..PER_WORD {
                let k = place.of(at * PER_WORD + inside);
                for line in 0..N {
                    let bits = words[line] << (32 / PER_WORD * (PER_WORD - 1 - inside)) & mask;
                    let power = bits & 0x7f80_0000;
                    self.powers[k][line] = f32::from_bits(power);
                    self.values[k][line] = f32::from_bits(bits);
                    any[line] |=
                        u32::from(power == 0x7f80_0000) | u32::from(power == 0) & u32::from(bits << 1 != 0);
                }
            }
        }
        flagged(&any)
    }

    /// Scales each line, which has so many elements, so that its largest power is 1. Whether a line's elements are too different.
    #[inline(always)]
    fn scale(&mut self, depth: usize) -> bool {
        let mut largest = [0.0f32; N];
        for powers in &self.powers[..depth] {
            for line in 0..N {
                largest[line] = if powers[line] > largest[line] { powers[line] } else { largest[line] };
            }
        }
        let mut scales = [0.0; N];
        let mut extreme = [0u32; N];
        for line in 0..N {
            let bits = if largest[line] == 0.0 { 127 << 23 } else { largest[line].to_bits() };
            self.shifts[line] = (bits >> 23) as i32 - 127;
            // The power with the opposite exponent, where there is one.
            extreme[line] = u32::from(bits > 253 << 23);
            scales[line] = f32::from_bits((254u32 << 23).wrapping_sub(bits));
        }
        let mut least = [1.0f32; N];
        for k in 0..depth {
            for line in 0..N {
                let (power, scale) = (self.powers[k][line], scales[line]);
                let scaled = power * scale;
                self.powers[k][line] = scaled;
                self.values[k][line] *= scale;
                let low = if power == 0.0 { 1.0 } else { scaled };
                least[line] = if low < least[line] { low } else { least[line] };
            }
        }
        self.least = 1.0;
        for low in least {
            self.least = if low < self.least { low } else { self.least };
        }
        flagged(&extreme) || self.least < LEAST
    }
}

/// The first factor, and how sums go.
pub(super) struct Scaled<V, const DEPTH: usize> {
    vectors: PhantomData<V>,
    left: Lines<DEPTH, ROWS>,
    depth: usize,
    in_halves: bool,
    /// Places kept below the largest exponent.
    places: i32,
}

impl<V: Vectors, const DEPTH: usize> Scaled<V, DEPTH> {
    /// Nothing if the factor is not of the kind.
    #[inline(always)]
    pub(super) fn new(
        op: &MatrixMultiply,
        places: &Places,
        words: &[LaneHalves],
    ) -> Option<Scaled<V, DEPTH>> {
        if op.sparse.is_some() || op.m != 16 {
            return None;
        }
        let depth = usize::from(op.k);
        let small = op.a.bits() == 8;
        let in_halves = small && !op.warpgroup;
        let mut rows = [[0; ROWS]; DEPTH];
        by_rows::<V>(ROWS, &words[..places.b], &mut rows);
        let left = Lines::new(op.a, &rows[..places.b * 2], Place { in_halves, depth })?;
        Some(Scaled {
            vectors: PhantomData,
            left,
            depth,
            in_halves,
            places: if small && op.warpgroup { 13 } else { 25 },
        })
    }

    /// Eight columns. False, and nothing done, if they are left to others.
    #[inline(always)]
    pub(super) fn eight(
        &self,
        op: &MatrixMultiply,
        places: &Places,
        words: &mut [LaneHalves],
        eight: usize,
    ) -> bool {
        let mut columns = [[0; COLUMNS]; DEPTH];
        by_columns::<V>(&words[places.b + eight * places.each_b..][..places.each_b], &mut columns);
        let place = Place { in_halves: self.in_halves, depth: self.depth };
        let Some(right) = Lines::<DEPTH, COLUMNS>::new(op.b, &columns[..places.each_b * 4], place) else {
            return false;
        };
        if self.left.least * right.least < LEAST {
            return false;
        }
        let addends = addends::<V>(op.c, &words[places.c + eight * places.each_c..][..places.each_c]);
        let mut results = [[0; ROWS]; COLUMNS];
        for first in (0..COLUMNS).step_by(GROUP) {
            let mut group = [[0; ROWS]; GROUP];
            group.copy_from_slice(&addends[first..][..GROUP]);
            if !self.columns(op, &right, first, &mut group) {
                return false;
            }
            results[first..][..GROUP].copy_from_slice(&group);
        }
        set_results::<V>(op.d, &results, &mut words[places.d + eight * places.each_d..][..places.each_d]);
        true
    }

    /// Some columns from the first on: addends become sums. False if they are left to others.
    #[inline(always)]
    fn columns(
        &self,
        op: &MatrixMultiply,
        right: &Lines<DEPTH, COLUMNS>,
        first: usize,
        sums: &mut [Lanes<u32>; GROUP],
    ) -> bool {
        if !self.in_halves {
            // Of mixed types the sum is one of f32.
            let ty = if op.c == op.d { op.d } else { Accumulator::F32 };
            if ty != op.c {
                for sum in sums.iter_mut() {
                    for bits in sum {
                        *bits = widened(*bits);
                    }
                }
            }
            let usual = self.sums_of(right, first, 0..self.depth, ty, sums);
            if ty != op.d {
                for sum in sums.iter_mut() {
                    for bits in sum {
                        *bits = narrowed(*bits);
                    }
                }
            }
            return usual;
        }
        let half = self.depth / 2;
        let addends = std::mem::replace(sums, [[0; ROWS]; GROUP]);
        if !self.sums_of(right, first, 0..half, op.d, sums)
            || !self.sums_of(right, first, half..self.depth, op.d, sums)
        {
            return false;
        }
        for column in 0..GROUP {
            sums[column] = added(op.c, op.d, &sums[column], &addends[column]);
        }
        true
    }

    /// Products and addends of type `ty`, added at once.
    #[inline(always)]
    fn sums_of(
        &self,
        right: &Lines<DEPTH, COLUMNS>,
        first: usize,
        ks: Range<usize>,
        ty: Accumulator,
        sums: &mut [Lanes<u32>; GROUP],
    ) -> bool {
        match ty {
            Accumulator::F16 => self.sums::<true>(right, first, ks, sums),
            _ => self.sums::<false>(right, first, ks, sums),
        }
    }

    #[inline(always)]
    fn sums<const HALF: bool>(
        &self,
        right: &Lines<DEPTH, COLUMNS>,
        first: usize,
        ks: Range<usize>,
        sums: &mut [Lanes<u32>; GROUP],
    ) -> bool {
        let format = Format::of_sum(if HALF { Accumulator::F16 } else { Accumulator::F32 });
        let mut significands = [[0.0; ROWS]; GROUP];
        let mut own = [[0; ROWS]; GROUP];
        let mut largest = [[0.0f32; ROWS]; GROUP];
        let mut rare = [0u32; ROWS];
        for column in 0..GROUP {
            let shift = right.shifts[first + column];
            for row in 0..ROWS {
                let (significand, exponent, special) = format.split(sums[column][row]);
                significands[column][row] = significand;
                let exponent = exponent - (self.left.shifts[row] + shift);
                own[column][row] = exponent;
                rare[row] |= u32::from(special) | u32::from(exponent > HIGHEST);
                largest[column][row] = f32::from_bits(((exponent.clamp(BELOW, HIGHEST) + 127) << 23) as u32);
            }
        }
        // SAFETY: the caller runs this where the vectors are.
        unsafe {
            let mut most =
                [V::load(&largest[0]), V::load(&largest[1]), V::load(&largest[2]), V::load(&largest[3])];
            for k in ks.clone() {
                let powers = V::load(&self.left.powers[k]);
                for column in 0..GROUP {
                    let other = V::splat(right.powers[k][first + column]);
                    most[column] = V::max(most[column], V::mul(powers, other));
                }
            }
            for column in 0..GROUP {
                largest[column] = V::store(most[column]);
            }
        }
        let mut scales = [[0.0; ROWS]; GROUP];
        for column in 0..GROUP {
            for row in 0..ROWS {
                let bits = largest[column][row].to_bits();
                scales[column][row] = f32::from_bits(((self.places as u32 + 254) << 23).wrapping_sub(bits));
            }
        }
        let mut kept = [[0; ROWS]; GROUP];
        // A product is below four times its power, and that is no more than 2^25 now. The sums stay below 2^31: of no format are
        // there more products than that.
        // SAFETY: the caller runs this where the vectors are.
        unsafe {
            let scales = [V::load(&scales[0]), V::load(&scales[1]), V::load(&scales[2]), V::load(&scales[3])];
            let mut integers = [V::zeros(); GROUP];
            for k in ks {
                let values = V::load(&self.left.values[k]);
                for column in 0..GROUP {
                    let product = V::mul(values, V::splat(right.values[k][first + column]));
                    integers[column] = V::add_cut(integers[column], V::mul(product, scales[column]));
                }
            }
            for column in 0..GROUP {
                kept[column] = V::store_ints(integers[column]);
            }
        }
        let lowest = self.places - format.fraction as i32;
        for column in 0..GROUP {
            let shift = right.shifts[first + column] - self.places;
            for row in 0..ROWS {
                let top = (largest[column][row].to_bits() >> 23) as i32 - 127;
                let significand = significands[column][row];
                // Not even the addend counts, unless it is nothing.
                rare[row] |= u32::from(top == BELOW) & u32::from(significand != 0.0);
                let own = cut(significand, (own[column][row] - top).min(0), lowest);
                let total = f64::from(kept[column][row]) + f64::from(own);
                let exponent = top + self.left.shifts[row] + shift;
                let value = total * f64::from_bits(((i64::from(exponent) + 1023) << 52) as u64);
                let small = value.abs() < f64::from(f32::MIN_POSITIVE);
                rare[row] |= u32::from(!HALF) & u32::from(value != 0.0) & u32::from(small);
                sums[column][row] = match HALF {
                    true => without_sign_of_zero(narrowed(odd(value))),
                    // A normal number keeps as many places as its addends.
                    false if self.places == 13 => truncated(value) & !0x3ff,
                    false => truncated(value),
                };
            }
        }
        !flagged(&rare)
    }
}

/// Whether a flag is set. Flags are counted by lines: one for all would keep the loops around it from being vectors.
#[inline(always)]
fn flagged<const N: usize>(flags: &[u32; N]) -> bool {
    let mut any = 0;
    for flag in flags {
        any |= flag;
    }
    any != 0
}

/// Where the elements of some k stand: those of a step side by side.
#[derive(Clone, Copy)]
struct Place {
    in_halves: bool,
    depth: usize,
}

impl Place {
    #[inline(always)]
    fn of(self, k: usize) -> usize {
        if !self.in_halves {
            return k;
        }
        // Pairs take turns.
        k / 2 % 2 * (self.depth / 2) + k / 4 * 2 + k % 2
    }
}
