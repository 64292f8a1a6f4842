//! Products of f16, bf16 and tf32 in the registers of AVX2.
//!
//! Two vectors hold one column of 16 rows, one its exponents. How it goes is in `elements`.
//!
//! What stands in a vector's lanes is what shuffling within 128 bits makes of the registers: its eight rows are 0, 2, 4, 6, 1, 3, 5, 7.
//! Words of exponents are in pairs of a row of the first eight and that eight further.

use std::arch::x86_64::*;
use std::array::from_fn;
use std::mem::MaybeUninit;

use super::super::LaneHalves;
use super::elements::{Form, HIGHEST, Kind, LEFT_ZERO, LOWEST, NOTHING, PLACES, RIGHT_ZERO, product_for};

/// A sum's columns, and those that are in registers at one time.
const COLUMNS: usize = 8;
const GROUP: usize = 2;

/// The first eight rows of a column, and the others.
type Column = [__m256; 2];

/// The registers of AVX2.
pub(super) struct Avx2;

impl Form for Avx2 {
    product_for!("avx2,f16c");
}

/// The first factor, by columns.
struct Left<const K: usize> {
    values: [Column; K],
    exponents: [__m256i; K],
}

impl<const K: usize> Left<K> {
    /// Fills all of `left`. False if an element is no finite number.
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn fill<T: Kind>(left: *mut Left<K>, registers: *const LaneHalves) -> bool {
        // SAFETY: the caller has it there.
        let (values, all) = unsafe {
            ((&raw mut (*left).values).cast::<Column>(), (&raw mut (*left).exponents).cast::<__m256i>())
        };
        let mut largest = _mm256_setzero_si256();
        for first in (0..K).step_by(4 * T::PER_WORD) {
            // SAFETY: the caller has the registers there.
            let halves = [0, 1].map(|half| unsafe { four(registers.add(first / (2 * T::PER_WORD) + half)) });
            let halves =
                halves.map(|rows| if T::PER_WORD == 1 { transposed(rows) } else { transposed_halves(rows) });
            for at in 0..4 {
                let k = first + T::PER_WORD * at;
                let column = halves.map(|half| half[at]);
                let [upper, lower] =
                    column.map(|half| exponents::<T>(half, T::BIAS, LEFT_ZERO, &mut largest));
                // SAFETY: there are as many places, and as many elements in a vector.
                unsafe {
                    if T::PER_WORD == 1 {
                        values.add(k).write(column.map(|words| T::eight((&raw const words).cast())));
                        all.add(k).write(_mm256_blend_epi16::<0xaa>(upper, lower));
                    } else {
                        for (odd, k) in [k, k + 1].into_iter().enumerate() {
                            values.add(k).write(column.map(|words| {
                                let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(words);
                                T::eight((&raw const words).cast::<u32>().add(4 * odd))
                            }));
                        }
                        all.add(k).write(_mm256_unpacklo_epi16(upper, lower));
                        all.add(k + 1).write(_mm256_unpackhi_epi16(upper, lower));
                    }
                }
            }
        }
        !is_special::<T>(largest)
    }
}

/// Eight columns of the second factor.
#[repr(align(32))]
struct Right<const K: usize> {
    /// Steps of as many k as four words have, columns in these, k in columns.
    values: [[f32; COLUMNS]; K],
    /// Steps of four k, columns in these, k in columns; each twice.
    exponents: [[u32; COLUMNS]; K],
}

impl<const K: usize> Right<K> {
    /// Fills all of `right`. False if an element is no finite number.
    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn fill<T: Kind>(right: *mut Right<K>, registers: *const LaneHalves) -> bool {
        // SAFETY: the caller has it there.
        let (values, all) = unsafe {
            ((&raw mut (*right).values).cast::<f32>(), (&raw mut (*right).exponents).cast::<u32>())
        };
        let mut largest = _mm256_setzero_si256();
        for part in 0..K / T::PER_WORD {
            // SAFETY: the caller has the registers there, and the arrays have as many elements.
            unsafe {
                let words = registers.cast::<u32>().add(8 * part);
                let both = exponents::<T>(_mm256_load_si256(words.cast()), 0, RIGHT_ZERO, &mut largest);
                // Four parts are a step of words.
                let all = all.add(part / 4 * 32 * T::PER_WORD + part % 4 * 8);
                if T::PER_WORD == 1 {
                    _mm256_store_si256(all.cast(), both);
                } else {
                    _mm256_store_si256(all.cast(), _mm256_unpacklo_epi16(both, both));
                    _mm256_store_si256(all.add(32).cast(), _mm256_unpackhi_epi16(both, both));
                }
                for inside in 0..T::PER_WORD {
                    let floats = T::eight(words.add(8 / T::PER_WORD * inside));
                    _mm256_store_ps(values.add(8 * (T::PER_WORD * part + inside)), floats);
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
    fn exponents(&self, k: usize, column: usize) -> i32 {
        let at = k / 4 * 4 * COLUMNS + column * 4 + k % 4;
        self.exponents[at / COLUMNS][at % COLUMNS] as i32
    }
}

/// Adds the products of 16 rows and eight columns to what the registers hold. False, and nothing done, if one is left to others.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn add_products<T: Kind, const K: usize, const HALF: bool>(
    left: &Left<K>,
    right: &Right<K>,
    registers: *mut LaneHalves,
) -> bool {
    let mut largest = [_mm256_set1_epi16(NOTHING as i16); COLUMNS];
    for k in 0..K {
        for column in 0..COLUMNS {
            let sum = _mm256_add_epi16(left.exponents[k], _mm256_set1_epi32(right.exponents(k, column)));
            largest[column] = _mm256_max_epi16(largest[column], sum);
        }
    }
    // SAFETY: the caller has the registers there.
    let addends = unsafe { addends::<HALF>(registers) };
    let mut range = Range { least: _mm256_set1_epi32(FIELD), most: _mm256_setzero_si256() };
    let mut overflown = _mm256_setzero_si256();
    let mut results = MaybeUninit::<[Column; COLUMNS]>::uninit();
    for first in (0..COLUMNS).step_by(GROUP) {
        let scales: [Column; GROUP] = from_fn(|column| {
            let tops = tops::<T, HALF>(largest[first + column], &addends[first + column]);
            tops.map(|top| range.scale(top))
        });
        // A product is below 2^27 then, and no more than 16 of the largest stay below 2^31.
        let mut sums = [[_mm256_setzero_si256(); 2]; GROUP];
        for k in 0..K {
            for column in 0..GROUP {
                let other = _mm256_set1_ps(right.value::<T>(k, first + column));
                for half in 0..2 {
                    let product = _mm256_mul_ps(left.values[k][half], other);
                    let kept = _mm256_cvttps_epi32(_mm256_mul_ps(product, scales[column][half]));
                    sums[column][half] = _mm256_add_epi32(sums[column][half], kept);
                }
            }
        }
        for column in 0..GROUP {
            let result = from_fn(|half| {
                let addend = addends[first + column][half];
                total::<HALF>(sums[column][half], addend, scales[column][half], &mut overflown)
            });
            // SAFETY: there are as many columns.
            unsafe { results.as_mut_ptr().cast::<Column>().add(first + column).write(result) };
        }
    }
    if range.is_exceeded() && (range.is_too_high() || are_small::<T, HALF>(&largest, &addends))
        || _mm256_movemask_ps(_mm256_castsi256_ps(overflown)) != 0
    {
        return false;
    }
    // SAFETY: all columns were written; the caller has the registers there.
    unsafe { set_results::<HALF>(registers, results.assume_init_ref()) };
    true
}

/// Where an f32 has its exponent.
const FIELD: i32 = 0x7f80_0000;

/// What sums begin at.
struct Range {
    least: __m256i,
    most: __m256i,
}

impl Range {
    /// What makes integers of products and addends whose largest begins there.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn scale(&mut self, top: __m256i) -> __m256 {
        self.least = _mm256_min_epi32(self.least, top);
        self.most = _mm256_max_epi32(self.most, top);
        // The wrapped difference is that of the fields.
        let opposite = _mm256_set1_epi32(((2 * 127 + PLACES) as u32 * (1 << 23)) as i32);
        _mm256_castsi256_ps(_mm256_sub_epi32(opposite, top))
    }

    /// Whether a sum begins too high, or at the lowest place or below.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn is_exceeded(&self) -> bool {
        let normal = _mm256_cmpgt_epi32(self.least, _mm256_set1_epi32(LOWEST << 23));
        self.is_too_high() || _mm256_movemask_epi8(normal) != -1
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn is_too_high(&self) -> bool {
        let high = _mm256_cmpgt_epi32(self.most, _mm256_set1_epi32(HIGHEST << 23));
        _mm256_movemask_epi8(high) != 0
    }
}

/// The exponents that a column's sums begin at, where an f32 has them, no lower than they are kept.
#[inline]
#[target_feature(enable = "avx2")]
fn tops<T: Kind, const HALF: bool>(largest: __m256i, addends: &Column) -> [__m256i; 2] {
    let field = _mm256_set1_epi32(FIELD);
    let mut clamped = _mm256_max_epi16(largest, _mm256_set1_epi16(LOWEST as i16));
    if T::SPECIAL == 255 {
        clamped = _mm256_min_epi16(clamped, _mm256_set1_epi16(255));
    }
    let products =
        [_mm256_slli_epi32::<23>(clamped), _mm256_and_si256(_mm256_slli_epi32::<7>(clamped), field)];
    from_fn(|half| {
        let bits = _mm256_castps_si256(addends[half]);
        let mut exponent = _mm256_and_si256(bits, field);
        if HALF {
            // A subnormal begins as the smallest normal number does. In f32 it is too small to matter.
            let is_zero = _mm256_cmpeq_epi32(exponent, _mm256_setzero_si256());
            let lowest = _mm256_set1_epi32((127 - 14) << 23);
            exponent = _mm256_andnot_si256(is_zero, _mm256_max_epi32(exponent, lowest));
        }
        _mm256_max_epi32(exponent, products[half])
    })
}

/// Whether a sum is of nothing that begins above [`LOWEST`], and yet not of zeros alone.
#[cold]
#[target_feature(enable = "avx2")]
fn are_small<T: Kind, const HALF: bool>(largest: &[__m256i; COLUMNS], addends: &[Column; COLUMNS]) -> bool {
    (0..COLUMNS).any(|column| {
        let tops = tops::<T, HALF>(largest[column], &addends[column]);
        let products = [_mm256_slli_epi32::<16>(largest[column]), largest[column]];
        (0..2).any(|half| {
            let normal = _mm256_cmpgt_epi32(tops[half], _mm256_set1_epi32(LOWEST << 23));
            let products = _mm256_srai_epi32::<16>(products[half]);
            let any_product = _mm256_cmpgt_epi32(products, _mm256_set1_epi32(NOTHING));
            let magnitude = _mm256_slli_epi32::<1>(_mm256_castps_si256(addends[column][half]));
            let no_addend = _mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256());
            let nothing = _mm256_andnot_si256(any_product, no_addend);
            _mm256_movemask_epi8(_mm256_or_si256(normal, nothing)) != -1
        })
    })
}

/// The result of a sum of products and an addend. Signs of `overflown` are set where their sum is none of 32 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn total<const HALF: bool>(
    products: __m256i,
    addend: __m256,
    scale: __m256,
    overflown: &mut __m256i,
) -> __m256 {
    let own = _mm256_cvttps_epi32(_mm256_mul_ps(addend, scale));
    let sum = _mm256_add_epi32(products, own);
    // The sign is neither's.
    let odd = _mm256_and_si256(_mm256_xor_si256(products, sum), _mm256_xor_si256(own, sum));
    *overflown = _mm256_or_si256(*overflown, odd);
    let magnitude = _mm256_abs_epi32(sum);
    // Without the first bit that has no place in an f32, the nearest is what is left when all such bits are cut off.
    let low = _mm256_andnot_si256(_mm256_srli_epi32::<24>(magnitude), magnitude);
    let mut float = _mm256_cvtepi32_ps(_mm256_sign_epi32(low, sum));
    if HALF {
        // The last place says whether anything was cut off, so that it can be rounded again.
        let exact = _mm256_cmpeq_epi32(_mm256_cvttps_epi32(float), sum);
        let sticky = _mm256_andnot_si256(exact, _mm256_set1_epi32(1));
        float = _mm256_or_ps(float, _mm256_castsi256_ps(sticky));
    }
    // The opposite of the scale.
    let unit = _mm256_sub_epi32(_mm256_set1_epi32(254 << 23), _mm256_castps_si256(scale));
    _mm256_mul_ps(float, _mm256_castsi256_ps(unit))
}

/// The exponents of elements of 16 or 32 bits, of a word twice, with something added; and the largest there was, without it.
#[inline]
#[target_feature(enable = "avx2")]
fn exponents<T: Kind>(words: __m256i, added: i16, zero: i16, largest: &mut __m256i) -> __m256i {
    let nothing = _mm256_setzero_si256();
    let (field, is_zero) = if T::PER_WORD == 1 {
        let field = _mm256_srli_epi32::<24>(_mm256_slli_epi32::<1>(words));
        let magnitude = _mm256_and_si256(words, _mm256_set1_epi32(0x7fff_e000));
        (_mm256_or_si256(field, _mm256_slli_epi32::<16>(field)), _mm256_cmpeq_epi32(magnitude, nothing))
    } else {
        let magnitude = _mm256_slli_epi16::<1>(words);
        let field = _mm256_srl_epi16(magnitude, _mm_cvtsi32_si128(T::FRACTION as i32 + 1));
        (field, _mm256_cmpeq_epi16(magnitude, nothing))
    };
    *largest = _mm256_max_epi16(*largest, field);
    // A subnormal begins as the smallest normal number does.
    let start = _mm256_add_epi16(_mm256_max_epi16(field, _mm256_set1_epi16(1)), _mm256_set1_epi16(added));
    _mm256_blendv_epi8(start, _mm256_set1_epi16(zero), is_zero)
}

#[inline]
#[target_feature(enable = "avx2")]
fn is_special<T: Kind>(largest: __m256i) -> bool {
    _mm256_movemask_epi8(_mm256_cmpeq_epi16(largest, _mm256_set1_epi16(T::SPECIAL))) != 0
}

/// The rows of a register, two in each vector.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn four(register: *const LaneHalves) -> [__m256i; 4] {
    // SAFETY: the caller has it there.
    from_fn(|part| unsafe { _mm256_load_si256(register.cast::<__m256i>().add(part)) })
}

/// Lines of four words become columns of them, in each 128 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn transposed([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
    let (ab, ab_high) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    let (cd, cd_high) = (_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
    [
        _mm256_unpacklo_epi64(ab, cd),
        _mm256_unpackhi_epi64(ab, cd),
        _mm256_unpacklo_epi64(ab_high, cd_high),
        _mm256_unpackhi_epi64(ab_high, cd_high),
    ]
}

/// Lines of eight halves become columns of four, two side by side, in each 128 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn transposed_halves([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
    let (ab, ab_high) = (_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b));
    let (cd, cd_high) = (_mm256_unpacklo_epi16(c, d), _mm256_unpackhi_epi16(c, d));
    [
        _mm256_unpacklo_epi32(ab, cd),
        _mm256_unpackhi_epi32(ab, cd),
        _mm256_unpacklo_epi32(ab_high, cd_high),
        _mm256_unpackhi_epi32(ab_high, cd_high),
    ]
}

/// Eight columns of addends, as f32.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn addends<const HALF: bool>(registers: *const LaneHalves) -> [Column; COLUMNS] {
    let mut columns = [[_mm256_setzero_ps(); 2]; COLUMNS];
    for half in 0..2 {
        if HALF {
            // SAFETY: the caller has two registers there.
            let pairs = transposed_halves(unsafe { four(registers.add(half)) });
            for (at, pair) in pairs.into_iter().enumerate() {
                let pair = _mm256_permute4x64_epi64::<0b11_01_10_00>(pair);
                columns[2 * at][half] = _mm256_cvtph_ps(_mm256_castsi256_si128(pair));
                columns[2 * at + 1][half] = _mm256_cvtph_ps(_mm256_extracti128_si256::<1>(pair));
            }
        } else {
            for odd in 0..2 {
                // SAFETY: the caller has four registers there.
                let words = transposed(unsafe { four(registers.add(2 * half + odd)) });
                for (at, words) in words.into_iter().enumerate() {
                    columns[2 * at + odd][half] = _mm256_castsi256_ps(words);
                }
            }
        }
    }
    columns
}

/// Eight columns of results into their registers.
#[inline]
#[target_feature(enable = "avx2,f16c")]
unsafe fn set_results<const HALF: bool>(registers: *mut LaneHalves, columns: &[Column; COLUMNS]) {
    let put = |register: usize, words: [__m256i; 4]| {
        for (at, rows) in transposed(words).into_iter().enumerate() {
            // SAFETY: the caller has as many registers there, of four vectors.
            unsafe { _mm256_store_si256(registers.add(register).cast::<__m256i>().add(at), rows) };
        }
    };
    for half in 0..2 {
        if HALF {
            let mut pairs = [_mm256_setzero_si256(); 4];
            for pair in 0..4 {
                let (even, odd) = (narrowed(columns[2 * pair][half]), narrowed(columns[2 * pair + 1][half]));
                pairs[pair] = _mm256_set_m128i(_mm_unpackhi_epi16(even, odd), _mm_unpacklo_epi16(even, odd));
            }
            put(half, pairs);
        } else {
            for odd in 0..2 {
                put(2 * half + odd, from_fn(|at| _mm256_castps_si256(columns[2 * at + odd][half])));
            }
        }
    }
}

/// The nearest f16.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn narrowed(floats: __m256) -> __m128i {
    let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(floats);
    // What rounding makes nothing has no sign.
    let negative = _mm_set1_epi16(i16::MIN);
    _mm_andnot_si128(_mm_cmpeq_epi16(halves, negative), halves)
}
