//! f16, bf16 and tf32: what their forms for AVX-512 (`wide`) and for AVX2 (`avx2`) have in common.
//!
//! Exponents are added and compared as words of 16 bits, which tells where each sum is cut; then every product, exact in f32, is scaled
//! by a power of two to its sum's unit and cut to an integer. The integers and that of the addend are added, and their sum becomes a
//! float by one conversion that rounds as the tensor cores do.

use std::arch::x86_64::*;

use simt_ir::matrix::{Accumulator, Element, MatrixMultiply};

use super::super::LaneHalves;

/// Places kept below the largest exponent.
pub(super) const PLACES: i32 = 25;
/// Exponents here are those of f32, with its bias. What begins at one of these is kept in normal numbers before and after.
pub(super) const LOWEST: i32 = 30;
pub(super) const HIGHEST: i32 = 250;
/// Exponents of zeros, and their sums with those of others: less than any.
pub(super) const LEFT_ZERO: i16 = -20_000;
pub(super) const RIGHT_ZERO: i16 = -10_000;
pub(super) const NOTHING: i32 = -5_000;

/// Where a kind of element is in a word, and what its bits are.
pub(super) trait Kind {
    const PER_WORD: usize;
    const FRACTION: u32;
    /// All ones: the exponent of what is no finite number.
    const SPECIAL: i16;
    /// Added to the exponents of both factors, it makes that of the product's first place one of f32.
    const BIAS: i16;

    /// 16 elements side by side, as f32.
    ///
    /// # Safety
    /// They are there, and so are the processor's features.
    unsafe fn sixteen(words: *const u32) -> __m512;

    /// Eight elements side by side, as f32.
    ///
    /// # Safety
    /// They are there, and so are the processor's features.
    unsafe fn eight(words: *const u32) -> __m256;
}

pub(super) struct F16;
pub(super) struct BF16;
pub(super) struct TF32;

impl Kind for F16 {
    const PER_WORD: usize = 2;
    const FRACTION: u32 = 10;
    const SPECIAL: i16 = 31;
    const BIAS: i16 = 127 - 15 - 15;

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn sixteen(words: *const u32) -> __m512 {
        // SAFETY: the caller has 16 elements there.
        _mm512_cvtph_ps(unsafe { _mm256_loadu_si256(words.cast()) })
    }

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn eight(words: *const u32) -> __m256 {
        // SAFETY: the caller has eight elements there.
        _mm256_cvtph_ps(unsafe { _mm_loadu_si128(words.cast()) })
    }
}

impl Kind for BF16 {
    const PER_WORD: usize = 2;
    const FRACTION: u32 = 7;
    const SPECIAL: i16 = 255;
    const BIAS: i16 = -127;

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn sixteen(words: *const u32) -> __m512 {
        // SAFETY: the caller has 16 elements there.
        let halves = _mm512_cvtepu16_epi32(unsafe { _mm256_loadu_si256(words.cast()) });
        _mm512_castsi512_ps(_mm512_slli_epi32::<16>(halves))
    }

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn eight(words: *const u32) -> __m256 {
        // SAFETY: the caller has eight elements there.
        let halves = _mm256_cvtepu16_epi32(unsafe { _mm_loadu_si128(words.cast()) });
        _mm256_castsi256_ps(_mm256_slli_epi32::<16>(halves))
    }
}

impl Kind for TF32 {
    const PER_WORD: usize = 1;
    const FRACTION: u32 = 23;
    const SPECIAL: i16 = 255;
    const BIAS: i16 = -127;

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn sixteen(words: *const u32) -> __m512 {
        // SAFETY: the caller has 16 elements there.
        let words = unsafe { _mm512_loadu_si512(words.cast()) };
        // The low bits are not looked at.
        _mm512_castsi512_ps(_mm512_and_si512(words, _mm512_set1_epi32(!0x1fff)))
    }

    #[inline]
    #[target_feature(enable = "avx2,f16c")]
    unsafe fn eight(words: *const u32) -> __m256 {
        // SAFETY: the caller has eight elements there.
        let words = unsafe { _mm256_loadu_si256(words.cast()) };
        // The low bits are not looked at.
        _mm256_castsi256_ps(_mm256_and_si256(words, _mm256_set1_epi32(!0x1fff)))
    }
}

/// Code for one kind of registers.
pub(super) trait Form {
    /// Multiplies `K` elements by eights of columns, with addends and sums of f16 (`HALF`) or f32. The eights that are left to others, a
    /// bit for each.
    ///
    /// # Safety
    /// The operation's registers are there, and the processor has what the form is for.
    unsafe fn product<T: Kind, const K: usize, const HALF: bool>(eights: u8, words: *mut LaneHalves) -> u64;
}

/// [`Form::product`] in a file that says what `Left`, `Right` and `add_products` are in its registers: the same for all, and compiled for each.
macro_rules! product_for {
    ($features:literal) => {
        #[inline]
        #[target_feature(enable = $features)]
        unsafe fn product<T: Kind, const K: usize, const HALF: bool>(
            eights: u8,
            words: *mut LaneHalves,
        ) -> u64 {
            let eights = usize::from(eights);
            let each_b = K / (4 * T::PER_WORD);
            let each_c = if HALF { 2 } else { 4 };
            // SAFETY: the caller has these registers there; both factors are there once they were filled.
            unsafe {
                let b = words.add(K / (2 * T::PER_WORD));
                let c = b.add(eights * each_b);
                let all = u64::MAX >> (64 - eights);
                let mut left = MaybeUninit::uninit();
                if !Left::<K>::fill::<T>(left.as_mut_ptr(), words) {
                    return all;
                }
                let left = left.assume_init_ref();
                let mut rest = 0;
                for eight in 0..eights {
                    let mut right = MaybeUninit::uninit();
                    let done = Right::<K>::fill::<T>(right.as_mut_ptr(), b.add(eight * each_b))
                        && add_products::<T, K, HALF>(left, right.assume_init_ref(), c.add(eight * each_c));
                    rest |= u64::from(!done) << eight;
                }
                rest
            }
        }
    };
}
pub(super) use product_for;

/// Multiplies what it can. The eights of columns that are left to others, a bit for each; nothing if the operation is.
///
/// # Safety
/// `words` are all registers of the operation, and the processor has what the form is for.
#[inline(always)]
pub(super) unsafe fn multiply<F: Form>(op: &MatrixMultiply, words: &mut [LaneHalves]) -> Option<u64> {
    if op.m != 16 || op.sparse.is_some() || op.quads.is_some() || op.a != op.b || op.c != op.d {
        return None;
    }
    let words = words.as_mut_ptr();
    // SAFETY: the caller's contract; each is called for the number of registers that its operation has.
    unsafe {
        Some(match (op.a, op.k, op.d) {
            (Element::F16, 16, Accumulator::F32) => F::product::<F16, 16, false>(op.eights, words),
            (Element::F16, 8, Accumulator::F32) => F::product::<F16, 8, false>(op.eights, words),
            (Element::F16, 16, Accumulator::F16) => F::product::<F16, 16, true>(op.eights, words),
            (Element::F16, 8, Accumulator::F16) => F::product::<F16, 8, true>(op.eights, words),
            (Element::BF16, 16, Accumulator::F32) => F::product::<BF16, 16, false>(op.eights, words),
            (Element::BF16, 8, Accumulator::F32) => F::product::<BF16, 8, false>(op.eights, words),
            (Element::TF32, 8, Accumulator::F32) => F::product::<TF32, 8, false>(op.eights, words),
            (Element::TF32, 4, Accumulator::F32) => F::product::<TF32, 4, false>(op.eights, words),
            _ => return None,
        })
    }
}
