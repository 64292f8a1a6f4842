//! Vectors of 16 rows in the registers of a kind of processor, for the loops that take most of the time.

use super::super::LaneHalves;
use super::ROWS;

/// One kind of registers.
///
/// # Safety
/// The functions are called where the processor has what the kind is for.
pub(super) trait Vectors {
    /// 16 numbers of f32.
    type Floats: Copy;
    /// 16 integers of 32 bits.
    type Ints: Copy;

    unsafe fn splat(value: f32) -> Self::Floats;
    unsafe fn load(values: &[f32; ROWS]) -> Self::Floats;
    unsafe fn store(floats: Self::Floats) -> [f32; ROWS];
    unsafe fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// The larger of numbers that are no NaNs.
    unsafe fn max(a: Self::Floats, b: Self::Floats) -> Self::Floats;

    unsafe fn zeros() -> Self::Ints;
    unsafe fn store_ints(ints: Self::Ints) -> [i32; ROWS];
    /// The sum, which wraps, with numbers of less than 2^31 cut off to integers.
    unsafe fn add_cut(sum: Self::Ints, floats: Self::Floats) -> Self::Ints;

    /// Every fourth word of a register, from each of the first four on.
    #[inline(always)]
    unsafe fn quarters(register: &LaneHalves) -> [[u32; 8]; 4] {
        std::array::from_fn(|quarter| std::array::from_fn(|at| register[4 * at + quarter]))
    }
    /// The register that these are the quarters of.
    #[inline(always)]
    unsafe fn lanes(quarters: &[[u32; 8]; 4]) -> LaneHalves {
        std::array::from_fn(|lane| quarters[lane % 4][lane / 4])
    }
}

/// Any processor.
pub(super) struct Plain;

impl Vectors for Plain {
    type Floats = [f32; ROWS];
    type Ints = [i32; ROWS];

    #[inline(always)]
    unsafe fn splat(value: f32) -> [f32; ROWS] {
        [value; ROWS]
    }
    #[inline(always)]
    unsafe fn load(values: &[f32; ROWS]) -> [f32; ROWS] {
        *values
    }
    #[inline(always)]
    unsafe fn store(floats: [f32; ROWS]) -> [f32; ROWS] {
        floats
    }
    #[inline(always)]
    unsafe fn mul(a: [f32; ROWS], b: [f32; ROWS]) -> [f32; ROWS] {
        std::array::from_fn(|row| a[row] * b[row])
    }
    #[inline(always)]
    unsafe fn max(a: [f32; ROWS], b: [f32; ROWS]) -> [f32; ROWS] {
        std::array::from_fn(|row| if a[row] > b[row] { a[row] } else { b[row] })
    }
    #[inline(always)]
    unsafe fn zeros() -> [i32; ROWS] {
        [0; ROWS]
    }
    #[inline(always)]
    unsafe fn store_ints(ints: [i32; ROWS]) -> [i32; ROWS] {
        ints
    }
    #[inline(always)]
    unsafe fn add_cut(sum: [i32; ROWS], floats: [f32; ROWS]) -> [i32; ROWS] {
        std::array::from_fn(|row| sum[row].wrapping_add(floats[row] as i32))
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{Avx2, Avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{LaneHalves, ROWS, Vectors};
    use std::arch::x86_64::*;

    /// Two vectors of 256 bits.
    pub(in super::super) struct Avx2;

    // SAFETY of all blocks: the processor has AVX2 by the trait's contract; arrays of 16 hold what is read and written.
    impl Vectors for Avx2 {
        type Floats = (__m256, __m256);
        type Ints = (__m256i, __m256i);

        #[inline(always)]
        unsafe fn splat(value: f32) -> Self::Floats {
            // SAFETY: as above.
            unsafe { (_mm256_set1_ps(value), _mm256_set1_ps(value)) }
        }
        #[inline(always)]
        unsafe fn load(values: &[f32; ROWS]) -> Self::Floats {
            // SAFETY: as above.
            unsafe { (_mm256_loadu_ps(values.as_ptr()), _mm256_loadu_ps(values.as_ptr().add(8))) }
        }
        #[inline(always)]
        unsafe fn store(floats: Self::Floats) -> [f32; ROWS] {
            let mut values = [0.0; ROWS];
            // SAFETY: as above.
            unsafe {
                _mm256_storeu_ps(values.as_mut_ptr(), floats.0);
                _mm256_storeu_ps(values.as_mut_ptr().add(8), floats.1);
            }
            values
        }
        #[inline(always)]
        unsafe fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats {
            // SAFETY: as above.
            unsafe { (_mm256_mul_ps(a.0, b.0), _mm256_mul_ps(a.1, b.1)) }
        }
        #[inline(always)]
        unsafe fn max(a: Self::Floats, b: Self::Floats) -> Self::Floats {
            // SAFETY: as above.
            unsafe { (_mm256_max_ps(a.0, b.0), _mm256_max_ps(a.1, b.1)) }
        }
        #[inline(always)]
        unsafe fn zeros() -> Self::Ints {
            // SAFETY: as above.
            unsafe { (_mm256_setzero_si256(), _mm256_setzero_si256()) }
        }
        #[inline(always)]
        unsafe fn store_ints(ints: Self::Ints) -> [i32; ROWS] {
            let mut values = [0; ROWS];
            // SAFETY: as above.
            unsafe {
                _mm256_storeu_si256(values.as_mut_ptr().cast(), ints.0);
                _mm256_storeu_si256(values.as_mut_ptr().add(8).cast(), ints.1);
            }
            values
        }
        #[inline(always)]
        unsafe fn add_cut(sum: Self::Ints, floats: Self::Floats) -> Self::Ints {
            // SAFETY: as above.
            unsafe {
                (
                    _mm256_add_epi32(sum.0, _mm256_cvttps_epi32(floats.0)),
                    _mm256_add_epi32(sum.1, _mm256_cvttps_epi32(floats.1)),
                )
            }
        }
    }

    /// One vector of 512 bits.
    pub(in super::super) struct Avx512;

    // SAFETY of all blocks: the processor has AVX-512 F by the trait's contract; arrays of 16 hold what is read and written.
    impl Vectors for Avx512 {
        type Floats = __m512;
        type Ints = __m512i;

        #[inline(always)]
        unsafe fn splat(value: f32) -> __m512 {
            // SAFETY: as above.
            unsafe { _mm512_set1_ps(value) }
        }
        #[inline(always)]
        unsafe fn load(values: &[f32; ROWS]) -> __m512 {
            // SAFETY: as above.
            unsafe { _mm512_loadu_ps(values.as_ptr()) }
        }
        #[inline(always)]
        unsafe fn store(floats: __m512) -> [f32; ROWS] {
            let mut values = [0.0; ROWS];
            // SAFETY: as above.
            unsafe { _mm512_storeu_ps(values.as_mut_ptr(), floats) };
            values
        }
        #[inline(always)]
        unsafe fn mul(a: __m512, b: __m512) -> __m512 {
            // SAFETY: as above.
            unsafe { _mm512_mul_ps(a, b) }
        }
        #[inline(always)]
        unsafe fn max(a: __m512, b: __m512) -> __m512 {
            // SAFETY: as above.
            unsafe { _mm512_max_ps(a, b) }
        }
        #[inline(always)]
        unsafe fn zeros() -> __m512i {
            // SAFETY: as above.
            unsafe { _mm512_setzero_si512() }
        }
        #[inline(always)]
        unsafe fn store_ints(ints: __m512i) -> [i32; ROWS] {
            let mut values = [0; ROWS];
            // SAFETY: as above.
            unsafe { _mm512_storeu_si512(values.as_mut_ptr().cast(), ints) };
            values
        }
        #[inline(always)]
        unsafe fn quarters(register: &LaneHalves) -> [[u32; 8]; 4] {
            let mut quarters = [[0; 8]; 4];
            // SAFETY: as above; the quarters are 32 words too.
            unsafe {
                let low = _mm512_loadu_si512(register.as_ptr().cast());
                let high = _mm512_loadu_si512(register.as_ptr().add(16).cast());
                let first = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
                let last = _mm512_add_epi32(first, _mm512_set1_epi32(2));
                let to: *mut u32 = quarters.as_mut_ptr().cast();
                _mm512_storeu_si512(to.cast(), _mm512_permutex2var_epi32(low, first, high));
                _mm512_storeu_si512(to.add(16).cast(), _mm512_permutex2var_epi32(low, last, high));
            }
            quarters
        }
        #[inline(always)]
        unsafe fn lanes(quarters: &[[u32; 8]; 4]) -> LaneHalves {
            let mut register = [0; 32];
            // SAFETY: as above; the quarters are 32 words too.
            unsafe {
                let from: *const u32 = quarters.as_ptr().cast();
                let low = _mm512_loadu_si512(from.cast());
                let high = _mm512_loadu_si512(from.add(16).cast());
                let first = _mm512_setr_epi32(0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27);
                let last = _mm512_add_epi32(first, _mm512_set1_epi32(4));
                let to = register.as_mut_ptr();
                _mm512_storeu_si512(to.cast(), _mm512_permutex2var_epi32(low, first, high));
                _mm512_storeu_si512(to.add(16).cast(), _mm512_permutex2var_epi32(low, last, high));
            }
            register
        }
        #[inline(always)]
        unsafe fn add_cut(sum: __m512i, floats: __m512) -> __m512i {
            // SAFETY: as above.
            unsafe { _mm512_add_epi32(sum, _mm512_cvttps_epi32(floats)) }
        }
    }
}
