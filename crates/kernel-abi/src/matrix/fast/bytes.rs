//! Products of integers of 8 and 4 bits by instructions that multiply bytes and add four products at once (VNNI). Generated code has its own way with
//! those of 8 bits that are no more than 16 columns of registers (`codegen::math`), but for code that is wanted soon.
//!
//! These multiply unsigned bytes by signed ones. A signed first factor is made unsigned by adding a bias, an unsigned second one signed by
//! subtracting one; what that adds to a sum, multiples of the sums of rows and columns, is taken off again.
//!
//! The tiles of AMX are not used. A sketch in C, with all that goes between tiles and the registers of lanes, took for 16 × 8 × 32 products of bytes
//! (2026-11-28), where each call configures its tiles, 33 to 48 ns in place of 42 to 48 for a warpgroup's 64 columns and more, and 140 in place of 73 for one
//! `mma.sync`. Each thread of the program would have to ask the system for tiles, too, and those of bf16 round otherwise than tensor cores.

use std::arch::x86_64::*;

use simt_ir::matrix::{Element, MatrixMultiply};

use super::super::LaneHalves;
use super::wide::{four, transposed};

const COLUMNS: usize = 8;
/// Words of four bytes in the longest rows.
const WORDS: usize = 16;

/// Multiplies; false, and nothing done, if the operation is left to others.
///
/// # Safety
/// `words` are all registers of the operation.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) unsafe fn multiply(op: &MatrixMultiply, words: &mut [LaneHalves]) -> bool {
    let both = |types: [Element; 2]| types.contains(&op.a) && types.contains(&op.b);
    let bytes = both([Element::S8, Element::U8]) && matches!(op.k, 16 | 32);
    let nibbles = both([Element::S4, Element::U4]) && matches!(op.k, 32 | 64);
    if op.m != 16 || op.sparse.is_some() || !(bytes || nibbles) {
        return false;
    }
    let words = words.as_mut_ptr();
    // Steps of one register of eight columns: 16 bytes, or 32 halves of them, of each.
    let steps = if bytes { usize::from(op.k) / 16 } else { usize::from(op.k) / 32 };
    let mut left = [_mm512_setzero_si512(); WORDS];
    let mut rows = _mm512_setzero_si512();
    // SAFETY: the caller has the registers there.
    unsafe {
        for step in 0..steps {
            for (at, word) in transposed(four(words.add(2 * step), 1)).into_iter().enumerate() {
                for (half, word) in halves(op.a, word).into_iter().take(if bytes { 1 } else { 2 }).enumerate()
                {
                    let word = unsigned(op.a, word);
                    left[4 * (step + half * steps) + at] = word;
                    rows = _mm512_dpbusd_epi32(rows, word, _mm512_set1_epi8(1));
                }
            }
        }
        let b = words.add(2 * steps);
        let c = b.add(usize::from(op.eights) * steps);
        for eight in 0..usize::from(op.eights) {
            eight_columns(op, &left, rows, steps, b.add(eight * steps), c.add(4 * eight));
        }
    }
    true
}

/// Adds the products of all rows and eight columns to what the registers hold.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn eight_columns(
    op: &MatrixMultiply,
    left: &[__m512i; WORDS],
    rows: __m512i,
    steps: usize,
    b: *const LaneHalves,
    c: *mut LaneHalves,
) {
    let parts = if op.a.bits() == 8 { 1 } else { 2 };
    let mut right = Words([[0; 32]; WORDS / 4]);
    let mut sums = [_mm512_setzero_si512(); 2];
    for step in 0..steps {
        for (side, sum) in sums.iter_mut().enumerate() {
            // SAFETY: the caller has the registers there, of two vectors.
            let word = unsafe { _mm512_load_si512(b.add(step).cast::<__m512i>().add(side)) };
            for (half, word) in halves(op.b, word).into_iter().take(parts).enumerate() {
                let word = signed(op.b, word);
                *sum = _mm512_dpbusd_epi32(*sum, _mm512_set1_epi8(1), word);
                let place = right.0[step + half * steps][16 * side..].as_mut_ptr();
                // SAFETY: 16 words are there.
                unsafe { _mm512_store_si512(place.cast(), word) };
            }
        }
    }
    let mut columns = Words([[0; 32]; 1]);
    for (side, sum) in sums.into_iter().enumerate() {
        let sum = _mm512_add_epi32(sum, _mm512_shuffle_epi32::<0xb1>(sum));
        let sum = _mm512_add_epi32(sum, _mm512_shuffle_epi32::<0x4e>(sum));
        // SAFETY: 16 words are there.
        unsafe { _mm512_store_si512(columns.0[0][16 * side..].as_mut_ptr().cast(), sum) };
    }
    let (left_bias, right_bias) = (left_bias(op.a), right_bias(op.b));
    let all = _mm512_set1_epi32(left_bias * right_bias * i32::from(op.k));
    let of_rows = _mm512_sub_epi32(_mm512_mullo_epi32(rows, _mm512_set1_epi32(right_bias)), all);
    let mut products = [of_rows; COLUMNS];
    for (column, product) in products.iter_mut().enumerate() {
        let of_column = columns.0[0][4 * column].wrapping_mul(left_bias);
        *product = _mm512_sub_epi32(*product, _mm512_set1_epi32(of_column));
    }
    for at in 0..4 * steps * parts {
        for (column, product) in products.iter_mut().enumerate() {
            let word = right.0[at / 4][4 * column + at % 4];
            *product = _mm512_dpbusd_epi32(*product, left[at], _mm512_set1_epi32(word));
        }
    }
    for odd in 0..2 {
        // SAFETY: the caller has four registers there.
        let mut words = transposed(unsafe { four(c.add(odd), 2) });
        for (at, word) in words.iter_mut().enumerate() {
            let (product, addend) = (products[2 * at + odd], *word);
            let sum = _mm512_add_epi32(product, addend);
            *word = sum;
            if op.saturate {
                // The sign is neither's: (product ^ sum) & (addend ^ sum).
                let wrapped = _mm512_ternarylogic_epi32::<0b0100_0010>(product, addend, sum);
                let limit = _mm512_xor_si512(_mm512_srai_epi32::<31>(addend), _mm512_set1_epi32(i32::MAX));
                *word = _mm512_mask_mov_epi32(sum, _mm512_movepi32_mask(wrapped), limit);
            }
        }
        for (at, rows) in transposed(words).into_iter().enumerate() {
            // SAFETY: as above.
            unsafe {
                let register = c.add(odd + at / 2 * 2).cast::<__m512i>();
                _mm512_store_si512(register.add(at % 2), rows);
            }
        }
    }
}

/// Registers in memory.
#[repr(align(64))]
struct Words<const N: usize>([[i32; 32]; N]);

/// What is added to an element of the first factor.
fn left_bias(element: Element) -> i32 {
    match element {
        Element::S8 => 128,
        Element::S4 => 8,
        _ => 0,
    }
}

/// What is subtracted from an element of the second factor.
fn right_bias(element: Element) -> i32 {
    if element == Element::U8 { 128 } else { 0 }
}

/// The bytes of a word; or the lower half of each byte, and the upper one.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn halves(element: Element, word: __m512i) -> [__m512i; 2] {
    if element.bits() == 8 {
        return [word, word];
    }
    let low = _mm512_set1_epi8(15);
    [_mm512_and_si512(word, low), _mm512_and_si512(_mm512_srli_epi16::<4>(word), low)]
}

/// Bytes with the bias added, which a flipped sign does.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn unsigned(element: Element, bytes: __m512i) -> __m512i {
    _mm512_xor_si512(bytes, _mm512_set1_epi8(left_bias(element) as i8))
}

/// Bytes with the bias subtracted; of nibbles, with their sign.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn signed(element: Element, bytes: __m512i) -> __m512i {
    if element == Element::S4 {
        let eight = _mm512_set1_epi8(8);
        return _mm512_sub_epi8(_mm512_xor_si512(bytes, eight), eight);
    }
    _mm512_xor_si512(bytes, _mm512_set1_epi8(right_bias(element) as i8))
}
