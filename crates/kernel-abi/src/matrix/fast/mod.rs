//! Products as vectors of 16 rows: the sums that [`simt_ir::matrix`] defines, bit for bit.
//!
//! Rows lie side by side, so that a sum over k is one of vectors. A product of two elements is exact in f32 once they are scaled alike
//! (`scaled`), or that of their significands where exponents are too different for it (`floats`); scaled to the largest exponent of its
//! sum and cut to an integer it is what the tensor cores add. These integers fit in 32 bits, and their sum with the addend in f64, which
//! rounds once in the end.
//!
//! f16, bf16 and tf32 have a form of their own (`elements`) for the registers of AVX-512 (`wide`) and of AVX2 (`avx2`), integers of 8 and
//! 4 bits one for VNNI (`bytes`).
//!
//! What is rare goes to the definition itself, eight columns at a time: infinities, NaNs, results that are subnormal, roundings of f64 other than
//! to nearest. The code is plain arrays but for the inner loops (`vectors`); it is compiled for several kinds of processors, and the best
//! is chosen when it runs.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod bytes;
mod doubles;
#[cfg(target_arch = "x86_64")]
mod elements;
mod floats;
mod integers;
mod scaled;
mod vectors;
#[cfg(target_arch = "x86_64")]
mod wide;

use std::ops::Range;

use simt_ir::Rounding;
use simt_ir::matrix::{Accumulator, Element, LaneWords, MatrixMultiply};

use self::vectors::Vectors;
use super::{LaneHalves, results_at};

/// Rows of a product; those of 8 use half.
const ROWS: usize = 16;
/// Columns that are computed together.
const COLUMNS: usize = 8;
/// The longest sums: what most have, and what all have but sparse ones of 4 bits, which go to the definition, and those of bits.
const SHORT: usize = 16;
const LONG: usize = 64;

type Lanes<T> = [T; ROWS];

/// Multiplies, with operands and results in `words` as [`super::anywarp_matrix`] has them.
pub(super) fn multiply(op: &MatrixMultiply, words: &mut [LaneHalves]) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
        {
            // SAFETY: the processor has what the function is compiled for.
            return unsafe { multiply_avx512(op, words) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c") {
            // SAFETY: the processor has what the function is compiled for.
            return unsafe { multiply_f16c(op, words) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has what the function is compiled for.
            return unsafe { multiply_avx2(op, words, 0..op.eights.into()) };
        }
    }
    multiply_anywhere(op, words);
}

fn multiply_anywhere(op: &MatrixMultiply, words: &mut [LaneHalves]) {
    // SAFETY: plain arrays are everywhere.
    unsafe { multiply_here::<vectors::Plain>(op, words, 0..op.eights.into()) };
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn multiply_avx512(op: &MatrixMultiply, words: &mut [LaneHalves]) {
    // SAFETY: the processor has what the function is compiled for, and these are all registers.
    if is_x86_feature_detected!("avx512vnni") && unsafe { bytes::multiply(op, words) } {
        return;
    }
    // SAFETY: the function is called where its features are, with all registers.
    let rest = unsafe { elements::multiply::<wide::Wide>(op, words) };
    for eights in ranges(op, rest) {
        // SAFETY: as above.
        unsafe { multiply_here::<vectors::Avx512>(op, words, eights) };
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,f16c")]
fn multiply_f16c(op: &MatrixMultiply, words: &mut [LaneHalves]) {
    // SAFETY: the function is called where its features are, with all registers.
    let rest = unsafe { elements::multiply::<avx2::Avx2>(op, words) };
    for eights in ranges(op, rest) {
        multiply_avx2(op, words, eights);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn multiply_avx2(op: &MatrixMultiply, words: &mut [LaneHalves], eights: Range<usize>) {
    // SAFETY: the function is called where its features are.
    unsafe { multiply_here::<vectors::Avx2>(op, words, eights) };
}

/// The eights of columns that a form left to others, in ranges: those with a bit, or all if it took none.
#[cfg(target_arch = "x86_64")]
fn ranges(op: &MatrixMultiply, rest: Option<u64>) -> impl Iterator<Item = Range<usize>> {
    let mut rest = rest.unwrap_or((1 << op.eights) - 1);
    std::iter::from_fn(move || {
        let first = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
        let end = first + (rest >> first).trailing_ones() as usize;
        rest &= u64::MAX.checked_shl(end as u32).unwrap_or(0);
        Some(first..end)
    })
}

/// The code for each kind of processor that this one can stand in for.
#[cfg(test)]
pub(super) fn kinds() -> Vec<fn(&MatrixMultiply, &mut [LaneHalves])> {
    let mut kinds: Vec<fn(&MatrixMultiply, &mut [LaneHalves])> = vec![multiply_anywhere, multiply];
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has what the function is compiled for.
        kinds.push(|op, words| unsafe { multiply_avx2(op, words, 0..op.eights.into()) });
        if is_x86_feature_detected!("f16c") {
            // SAFETY: as above.
            kinds.push(|op, words| unsafe { multiply_f16c(op, words) });
        }
    }
    kinds
}

/// Products of f64. False if that is left to the definition.
pub(super) fn multiply_doubles(op: &MatrixMultiply, words: &mut [LaneWords]) -> bool {
    if op.round != Rounding::Nearest || op.eights != 1 {
        return false;
    }
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor has what the function is compiled for.
        return unsafe { multiply_doubles_fma(op, words) };
    }
    false
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn multiply_doubles_fma(op: &MatrixMultiply, words: &mut [LaneWords]) -> bool {
    doubles::multiply(op, words)
}

/// Where the parts of an operation are among its registers.
struct Places {
    b: usize,
    c: usize,
    metadata: usize,
    d: usize,
    /// Registers of eight columns.
    each_b: usize,
    each_c: usize,
    each_d: usize,
}

impl Places {
    #[inline(always)]
    fn new(op: &MatrixMultiply) -> Places {
        let one = MatrixMultiply { eights: 1, ..*op };
        let b = op.a_registers();
        let c = b + op.b_registers();
        Places {
            b,
            c,
            metadata: c + op.c_registers(),
            d: results_at(op),
            each_b: one.b_registers(),
            each_c: one.c_registers(),
            each_d: one.d_registers(),
        }
    }
}

/// Multiplies these eights of columns; only floats may be given some of them.
///
/// # Safety
/// It runs where the vectors `V` are.
#[inline(always)]
unsafe fn multiply_here<V: Vectors>(op: &MatrixMultiply, words: &mut [LaneHalves], eights: Range<usize>) {
    let places = Places::new(op);
    let done = match op.a {
        _ if op.quads.is_some() => false,
        Element::F16 | Element::BF16 | Element::TF32 | Element::E4M3 | Element::E5M2 => {
            if usize::from(op.k) <= SHORT {
                // SAFETY: the caller's contract.
                unsafe { floats::multiply::<V, SHORT>(op, &places, words, eights.clone()) }
            } else {
                // SAFETY: the caller's contract.
                unsafe { floats::multiply::<V, LONG>(op, &places, words, eights.clone()) }
            }
        }
        _ if usize::from(op.k) > LONG && op.a != Element::B1 => false,
        Element::S8 | Element::U8 | Element::S4 | Element::U4 => integers::multiply::<V>(op, &places, words),
        Element::B1 => {
            integers::count_bits::<V>(op, &places, words);
            true
        }
        Element::F64 => false,
    };
    if !done {
        eights.into_iter().for_each(|eight| by_definition(op, &places, words, eight));
    }
}

/// Eight columns as the definition says.
#[cold]
#[inline(never)]
fn by_definition(op: &MatrixMultiply, places: &Places, words: &mut [LaneHalves], eight: usize) {
    let one = MatrixMultiply { eights: 1, ..*op };
    let parts = [
        0..places.b,
        places.b + eight * places.each_b..places.b + (eight + 1) * places.each_b,
        places.c + eight * places.each_c..places.c + (eight + 1) * places.each_c,
        places.metadata..places.metadata + usize::from(op.sparse.is_some()),
    ];
    let operands: Vec<LaneWords> =
        parts.into_iter().flatten().map(|register| words[register].map(u64::from)).collect();
    let results = one.multiply(&operands);
    for (register, result) in words[places.d + eight * places.each_d..].iter_mut().zip(results) {
        *register = result.map(|word| word as u32);
    }
}

/// Words of the first factor by rows: word `4 * step + quarter` of row r is that of lane `4 * (r % 8) + quarter`.
#[inline(always)]
fn by_rows<V: Vectors>(rows: usize, registers: &[LaneHalves], out: &mut [Lanes<u32>]) {
    let halves = rows / 8;
    for (at, register) in registers.iter().enumerate() {
        let (step, upper) = (at / halves, at % halves * 8);
        // SAFETY: the caller runs this where the vectors are.
        let quarters = unsafe { V::quarters(register) };
        for quarter in 0..4 {
            out[4 * step + quarter][upper..][..8].copy_from_slice(&quarters[quarter]);
        }
    }
}

/// Words of the second factor by columns, in the order of k.
#[inline(always)]
fn by_columns<V: Vectors>(registers: &[LaneHalves], out: &mut [[u32; COLUMNS]]) {
    for (step, register) in registers.iter().enumerate() {
        // SAFETY: the caller runs this where the vectors are.
        out[4 * step..][..4].copy_from_slice(&unsafe { V::quarters(register) });
    }
}

/// Gives each stored element of a sparse factor, by row and place there, the k it belongs to. False, with some given, if two belong to
/// one.
fn spread(op: &MatrixMultiply, metadata: &LaneHalves, mut put: impl FnMut(usize, usize, usize)) -> bool {
    let metadata = metadata.map(u64::from);
    for row in 0..ROWS {
        // Of 4 bits, pairs may belong to one place.
        let mut before = [None; 2];
        for (at, k) in op.columns(row, &metadata).enumerate() {
            if before.contains(&Some(k)) {
                return false;
            }
            before = [before[1], Some(k)];
            put(row, at, k.into());
        }
    }
    true
}

/// Eight columns of addends from their registers.
#[inline(always)]
fn addends<V: Vectors>(ty: Accumulator, registers: &[LaneHalves]) -> [Lanes<u32>; COLUMNS] {
    let mut columns = [[0; ROWS]; COLUMNS];
    for (at, register) in registers.iter().enumerate() {
        // SAFETY: the caller runs this where the vectors are.
        let pairs = unsafe { V::quarters(register) };
        for (pair, words) in pairs.iter().enumerate() {
            match ty {
                Accumulator::F16 => {
                    for row in 0..8 {
                        columns[2 * pair][8 * at + row] = words[row] & 0xffff;
                        columns[2 * pair + 1][8 * at + row] = words[row] >> 16;
                    }
                }
                _ => columns[2 * pair + at % 2][at / 2 * 8..][..8].copy_from_slice(words),
            }
        }
    }
    columns
}

/// Eight columns of results into their registers.
#[inline(always)]
fn set_results<V: Vectors>(ty: Accumulator, columns: &[Lanes<u32>; COLUMNS], registers: &mut [LaneHalves]) {
    for (at, register) in registers.iter_mut().enumerate() {
        let mut pairs = [[0; 8]; 4];
        for (pair, words) in pairs.iter_mut().enumerate() {
            match ty {
                Accumulator::F16 => {
                    for row in 0..8 {
                        words[row] =
                            columns[2 * pair][8 * at + row] | columns[2 * pair + 1][8 * at + row] << 16;
                    }
                }
                _ => words.copy_from_slice(&columns[2 * pair + at % 2][at / 2 * 8..][..8]),
            }
        }
        // SAFETY: the caller runs this where the vectors are.
        *register = unsafe { V::lanes(&pairs) };
    }
}
