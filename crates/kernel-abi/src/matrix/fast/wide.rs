//! Products of f16, bf16 and tf32 in the registers of AVX-512.
//!
//! A vector holds one column of 16 rows, or the exponents of two. How it goes is in `elements`.
//!
//! What stands in a vector's lanes is what shuffling within 128 bits makes of the registers: four lanes side by side are the rows
//! `j`, `j + 4`, `j + 8`, `j + 12`.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::super::LaneHalves;
use super::elements::{Form, HIGHEST, Kind, LEFT_ZERO, LOWEST, NOTHING, PLACES, RIGHT_ZERO, product_for};

/// A sum's columns, and the registers they are in.
const COLUMNS: usize = 8;
/// Pairs of columns: one of the first four with that four further.
const PAIRS: usize = 4;

/// The registers of AVX-512.
pub(super) struct Wide;

impl Form for Wide {
    product_for!("avx512f,avx512bw,avx512dq,avx512vl");
}

/// The first factor, by columns.
struct Left<const K: usize> {
    values: [__m512; K],
    /// Each row's exponent, twice.
    exponents: [__m512i; K],
}

impl<const K: usize> Left<K> {
    /// Fills all of `left`. False if an element is no finite number.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn fill<T: Kind>(left: *mut Left<K>, registers: *const LaneHalves) -> bool {
        // SAFETY: the caller has it there, and the registers.
        let (values, all) = unsafe {
            ((&raw mut (*left).values).cast::<__m512>(), (&raw mut (*left).exponents).cast::<__m512i>())
        };
        let mut largest = _mm512_setzero_si512();
        let put = |k: usize, value: __m512, exponents: __m512i| {
            // SAFETY: there are as many.
            unsafe {
                values.add(k).write(value);
                all.add(k).write(exponents);
            }
        };
        for first in (0..K).step_by(4 * T::PER_WORD) {
            // SAFETY: as above.
            let rows = unsafe { four(registers.add(first / (2 * T::PER_WORD)), 1) };
            if T::PER_WORD == 1 {
                for (at, words) in transposed(rows).into_iter().enumerate() {
                    let both = exponents::<T>(words, T::BIAS, LEFT_ZERO, &mut largest);
                    // SAFETY: 16 elements are there.
                    put(first + at, unsafe { T::sixteen((&raw const words).cast()) }, both);
                }
                continue;
            }
            for (pair, halves) in transposed_halves(rows).into_iter().enumerate() {
                let k = first + 2 * pair;
                let both = exponents::<T>(halves, T::BIAS, LEFT_ZERO, &mut largest);
                let halves = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), halves);
                // SAFETY: 32 elements are there.
                let [even, odd] =
                    [0, 8].map(|at| unsafe { T::sixteen((&raw const halves).cast::<u32>().add(at)) });
                put(k, even, _mm512_unpacklo_epi16(both, both));
                put(k + 1, odd, _mm512_unpackhi_epi16(both, both));
            }
        }
        !is_special::<T>(largest)
    }
}

/// Eight columns of the second factor.
#[repr(align(64))]
struct Right<const K: usize> {
    /// Steps of as many k as four words have, columns in these, k in columns.
    values: [[f32; COLUMNS]; K],
    /// Steps of four k, pairs of columns in these, k in pairs; the exponents of both.
    exponents: [[u32; PAIRS]; K],
}

impl<const K: usize> Right<K> {
    /// Fills all of `right`. False if an element is no finite number.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn fill<T: Kind>(right: *mut Right<K>, registers: *const LaneHalves) -> bool {
        // SAFETY: the caller has it there.
        let (values, pairs) = unsafe {
            ((&raw mut (*right).values).cast::<f32>(), (&raw mut (*right).exponents).cast::<u32>())
        };
        let mut largest = _mm512_setzero_si512();
        for register in 0..K / (4 * T::PER_WORD) {
            // SAFETY: the caller has the registers there, and the arrays have as many elements.
            unsafe {
                let words = registers.add(register).cast::<u32>();
                let [low, high] = [words, words.add(16)].map(|words| {
                    exponents::<T>(_mm512_load_si512(words.cast()), 0, RIGHT_ZERO, &mut largest)
                });
                if T::PER_WORD == 1 {
                    let both = _mm512_mask_blend_epi16(0xaaaa_aaaa, low, high);
                    _mm512_store_si512(pairs.add(16 * register).cast(), both);
                } else {
                    let pairs = pairs.add(32 * register);
                    _mm512_store_si512(pairs.cast(), _mm512_unpacklo_epi16(low, high));
                    _mm512_store_si512(pairs.add(16).cast(), _mm512_unpackhi_epi16(low, high));
                }
                for part in 0..2 * T::PER_WORD {
                    let floats = T::sixteen(words.add(16 / T::PER_WORD * part));
                    _mm512_store_ps(values.add(32 * T::PER_WORD * register + 16 * part), floats);
                }
            }
        }
        !is_special::<T>(largest)
    }

    #[inline(always)]
    fn value<T: Kind>(&self, k: usize, column: usize) -> f32 {
        let step = 4 * T::PER_WORD;
        let at = k / step * step * COLUMNS + column * step + k % step;
        self.values[at / COLUMNS][at % COLUMNS]
    }

    #[inline(always)]
    fn exponents(&self, k: usize, pair: usize) -> i32 {
        let at = k / 4 * 16 + pair * 4 + k % 4;
        self.exponents[at / PAIRS][at % PAIRS] as i32
    }
}

/// Adds the products of 16 rows and eight columns to what the registers hold. False, and nothing done, if one is left to others.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn add_products<T: Kind, const K: usize, const HALF: bool>(
    left: &Left<K>,
    right: &Right<K>,
    registers: *mut LaneHalves,
) -> bool {
    let mut largest = [_mm512_set1_epi16(NOTHING as i16); PAIRS];
    for k in 0..K {
        for pair in 0..PAIRS {
            let sum = _mm512_add_epi16(left.exponents[k], _mm512_set1_epi32(right.exponents(k, pair)));
            largest[pair] = _mm512_max_epi16(largest[pair], sum);
        }
    }
    let clamped = largest.map(|pair| {
        let pair = _mm512_max_epi16(pair, _mm512_set1_epi16(LOWEST as i16));
        if T::SPECIAL < 255 { pair } else { _mm512_min_epi16(pair, _mm512_set1_epi16(255)) }
    });
    // SAFETY: the caller has the registers there.
    let addends = unsafe { addends::<HALF>(registers) };
    // From here on exponents are where an f32 has them.
    let field = _mm512_set1_epi32(0x7f80_0000);
    let (mut least, mut most) = (field, _mm512_setzero_si512());
    let mut tops = [_mm512_setzero_si512(); COLUMNS];
    let mut scales = [_mm512_setzero_ps(); COLUMNS];
    let mut own = [_mm512_setzero_si512(); COLUMNS];
    for column in 0..COLUMNS {
        let pair = clamped[column % PAIRS];
        let products = if column < PAIRS {
            _mm512_slli_epi32::<23>(pair)
        } else {
            _mm512_and_si512(_mm512_slli_epi32::<7>(pair), field)
        };
        let bits = _mm512_castps_si512(addends[column]);
        let mut exponent = _mm512_and_si512(bits, field);
        if HALF {
            // A subnormal begins as the smallest normal number does. In f32 it is too small to matter.
            let is_there = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x7fff_ffff));
            let lowest = _mm512_set1_epi32((127 - 14) << 23);
            exponent = _mm512_mask_max_epi32(exponent, is_there, exponent, lowest);
        }
        tops[column] = _mm512_max_epi32(exponent, products);
        least = _mm512_min_epi32(least, tops[column]);
        most = _mm512_max_epi32(most, tops[column]);
        // The wrapped difference is that of the fields.
        let scale =
            _mm512_sub_epi32(_mm512_set1_epi32(((2 * 127 + PLACES) as u32 * (1 << 23)) as i32), tops[column]);
        scales[column] = _mm512_castsi512_ps(scale);
        own[column] = _mm512_cvttps_epi32(_mm512_mul_ps(addends[column], scales[column]));
    }
    if _mm512_cmpgt_epi32_mask(most, _mm512_set1_epi32(HIGHEST << 23)) != 0
        || _mm512_cmple_epi32_mask(least, _mm512_set1_epi32(LOWEST << 23)) != 0
            && are_small(&largest, &addends, &tops)
    {
        return false;
    }
    // A product is below 2^27 now, and no more than 16 of the largest stay below 2^31.
    let mut sums = [_mm512_setzero_si512(); COLUMNS];
    for k in 0..K {
        for column in 0..COLUMNS {
            let product = _mm512_mul_ps(left.values[k], _mm512_set1_ps(right.value::<T>(k, column)));
            let kept = _mm512_cvttps_epi32(_mm512_mul_ps(product, scales[column]));
            sums[column] = _mm512_add_epi32(sums[column], kept);
        }
    }
    let mut overflown = _mm512_setzero_si512();
    let mut results = [_mm512_setzero_ps(); COLUMNS];
    for column in 0..COLUMNS {
        let sum = _mm512_add_epi32(sums[column], own[column]);
        // The sign is neither's: (products ^ sum) & (addend ^ sum).
        let odd = _mm512_ternarylogic_epi32::<0b0100_0010>(sums[column], own[column], sum);
        overflown = _mm512_or_si512(overflown, odd);
        let mut float = _mm512_cvt_roundepi32_ps::<{ _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC }>(sum);
        if HALF {
            // The last place says whether anything was cut off, so that it can be rounded again.
            let inexact = _mm512_cmpneq_epi32_mask(_mm512_cvttps_epi32(float), sum);
            let bits = _mm512_castps_si512(float);
            float = _mm512_castsi512_ps(_mm512_mask_or_epi32(bits, inexact, bits, _mm512_set1_epi32(1)));
        }
        // The opposite of the scale.
        let unit = _mm512_sub_epi32(_mm512_set1_epi32(254 << 23), _mm512_castps_si512(scales[column]));
        results[column] = _mm512_mul_ps(float, _mm512_castsi512_ps(unit));
    }
    if _mm512_movepi32_mask(overflown) != 0 {
        return false;
    }
    // SAFETY: the caller has the registers there.
    unsafe { set_results::<HALF>(registers, results) };
    true
}

/// Whether a sum is of nothing that begins above [`LOWEST`], and yet not of zeros alone.
#[cold]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn are_small(products: &[__m512i; PAIRS], addends: &[__m512; COLUMNS], tops: &[__m512i; COLUMNS]) -> bool {
    (0..COLUMNS).any(|column| {
        let small = _mm512_cmple_epi32_mask(tops[column], _mm512_set1_epi32(LOWEST << 23));
        let pair = products[column % PAIRS];
        let pair = if column < PAIRS { _mm512_slli_epi32::<16>(pair) } else { pair };
        let product = _mm512_cmpgt_epi32_mask(_mm512_srai_epi32::<16>(pair), _mm512_set1_epi32(NOTHING));
        let bits = _mm512_castps_si512(addends[column]);
        let addend = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x7fff_ffff));
        small & (product | addend) != 0
    })
}

/// The exponents of elements of 16 or 32 bits, of a word twice, with something added; and the largest there was, without it.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn exponents<T: Kind>(words: __m512i, added: i16, zero: i16, largest: &mut __m512i) -> __m512i {
    let zero = _mm512_set1_epi16(zero);
    let added = _mm512_set1_epi16(added);
    let field = if T::PER_WORD == 1 {
        let field = _mm512_srli_epi32::<24>(_mm512_slli_epi32::<1>(words));
        _mm512_or_si512(field, _mm512_slli_epi32::<16>(field))
    } else {
        _mm512_srl_epi16(_mm512_slli_epi16::<1>(words), _mm_cvtsi32_si128(T::FRACTION as i32 + 1))
    };
    *largest = _mm512_max_epi16(*largest, field);
    // A subnormal begins as the smallest normal number does.
    let start = _mm512_add_epi16(_mm512_max_epi16(field, _mm512_set1_epi16(1)), added);
    if T::PER_WORD == 1 {
        let is_there = _mm512_test_epi32_mask(words, _mm512_set1_epi32(0x7fff_e000));
        _mm512_mask_mov_epi32(zero, is_there, start)
    } else {
        let is_there = _mm512_test_epi16_mask(words, _mm512_set1_epi16(0x7fff));
        _mm512_mask_mov_epi16(zero, is_there, start)
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn is_special<T: Kind>(largest: __m512i) -> bool {
    _mm512_cmpeq_epi16_mask(largest, _mm512_set1_epi16(T::SPECIAL)) != 0
}

/// The rows of a register and of that `apart` further, four in each vector.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) unsafe fn four(registers: *const LaneHalves, apart: usize) -> [__m512i; 4] {
    // SAFETY: the caller has both there.
    unsafe {
        let [upper, lower] = [registers, registers.add(apart)].map(|register| register.cast::<__m512i>());
        [upper, upper.add(1), lower, lower.add(1)].map(|part| _mm512_load_si512(part))
    }
}

/// Lines of four words become columns of them, in each 128 bits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn transposed([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let (ab, ab_high) = (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let (cd, cd_high) = (_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    [
        _mm512_unpacklo_epi64(ab, cd),
        _mm512_unpackhi_epi64(ab, cd),
        _mm512_unpacklo_epi64(ab_high, cd_high),
        _mm512_unpackhi_epi64(ab_high, cd_high),
    ]
}

/// Lines of eight halves become columns of four, two side by side, in each 128 bits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn transposed_halves([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let (ab, ab_high) = (_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b));
    let (cd, cd_high) = (_mm512_unpacklo_epi16(c, d), _mm512_unpackhi_epi16(c, d));
    [
        _mm512_unpacklo_epi32(ab, cd),
        _mm512_unpackhi_epi32(ab, cd),
        _mm512_unpacklo_epi32(ab_high, cd_high),
        _mm512_unpackhi_epi32(ab_high, cd_high),
    ]
}

/// Eight columns of addends, as f32.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn addends<const HALF: bool>(registers: *const LaneHalves) -> [__m512; COLUMNS] {
    let mut columns = [_mm512_setzero_ps(); COLUMNS];
    if HALF {
        // SAFETY: the caller has two registers there.
        let pairs = transposed(unsafe { four(registers, 1) });
        for (at, pair) in pairs.into_iter().enumerate() {
            columns[2 * at] = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(pair));
            columns[2 * at + 1] = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(pair)));
        }
    } else {
        for odd in 0..2 {
            // SAFETY: the caller has four registers there.
            let words = transposed(unsafe { four(registers.add(odd), 2) });
            for (at, words) in words.into_iter().enumerate() {
                columns[2 * at + odd] = _mm512_castsi512_ps(words);
            }
        }
    }
    columns
}

/// Eight columns of results into their registers.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn set_results<const HALF: bool>(registers: *mut LaneHalves, columns: [__m512; COLUMNS]) {
    let put = |register: usize, apart: usize, words: [__m512i; 4]| {
        for (at, rows) in transposed(words).into_iter().enumerate() {
            // SAFETY: the caller has as many registers there, of two vectors.
            unsafe {
                let register = registers.add(register + at / 2 * apart).cast::<__m512i>();
                _mm512_store_si512(register.add(at % 2), rows);
            }
        }
    };
    if HALF {
        let halves = columns.map(|column| {
            let halves = _mm512_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(column);
            // What rounding makes nothing has no sign.
            let negative = _mm256_set1_epi16(i16::MIN);
            let halves = _mm256_maskz_mov_epi16(_mm256_cmpneq_epi16_mask(halves, negative), halves);
            _mm512_cvtepu16_epi32(halves)
        });
        let pair = |at: usize| _mm512_or_si512(halves[2 * at], _mm512_slli_epi32::<16>(halves[2 * at + 1]));
        put(0, 1, [pair(0), pair(1), pair(2), pair(3)]);
    } else {
        for odd in 0..2 {
            let column = |at: usize| _mm512_castps_si512(columns[2 * at + odd]);
            put(odd, 2, [column(0), column(1), column(2), column(3)]);
        }
    }
}
