//! Sums of integers and of bits.

use simt_ir::matrix::{Element, MatrixMultiply};

use super::super::LaneHalves;
use super::vectors::Vectors;
use super::{COLUMNS, LONG, Lanes, Places, ROWS, addends, by_columns, by_rows, set_results, spread};

/// Products of integers, whose sums are exact in f32: no more than 64 of 16 bits.
#[inline(always)]
pub(super) fn multiply<V: Vectors>(op: &MatrixMultiply, places: &Places, words: &mut [LaneHalves]) -> bool {
    let mut rows = [[0; ROWS]; LONG / 4];
    by_rows::<V>(op.m.into(), &words[..places.b], &mut rows);
    let mut left = [[0.0; ROWS]; LONG];
    let stored = usize::from(op.k) / if op.sparse.is_some() { 2 } else { 1 };
    take_all(op.a, stored, &rows, &mut left);
    if op.sparse.is_some() && !spread_integers(op, &words[places.metadata], &mut left) {
        return false;
    }
    for eight in 0..usize::from(op.eights) {
        let mut columns = [[0; COLUMNS]; LONG / 4];
        by_columns::<V>(&words[places.b + eight * places.each_b..][..places.each_b], &mut columns);
        let mut right = [[0.0; COLUMNS]; LONG];
        take_all(op.b, op.k.into(), &columns, &mut right);
        let mut results = addends::<V>(op.c, &words[places.c + eight * places.each_c..][..places.each_c]);
        for column in 0..COLUMNS {
            let mut sums = [0.0f32; ROWS];
            for k in 0..usize::from(op.k) {
                for row in 0..ROWS {
                    sums[row] += left[k][row] * right[k][column];
                }
            }
            for row in 0..ROWS {
                // SAFETY: no more than 64 products of 16 bits are added.
                let sum: i32 = unsafe { sums[row].to_int_unchecked() };
                let addend = results[column][row] as i32;
                let sum = if op.saturate { addend.saturating_add(sum) } else { addend.wrapping_add(sum) };
                results[column][row] = sum as u32;
            }
        }
        set_results::<V>(op.d, &results, &mut words[places.d + eight * places.each_d..][..places.each_d]);
    }
    true
}

/// Takes so many elements of each line. Each type by itself, so that its numbers are constants.
#[inline(always)]
fn take_all<const LINE: usize>(
    element: Element,
    count: usize,
    words: &[[u32; LINE]],
    out: &mut [[f32; LINE]; LONG],
) {
    match element {
        Element::S8 => take::<LINE, 8, true>(count, words, out),
        Element::U8 => take::<LINE, 8, false>(count, words, out),
        Element::S4 => take::<LINE, 4, true>(count, words, out),
        _ => take::<LINE, 4, false>(count, words, out),
    }
}

#[inline(always)]
fn take<const LINE: usize, const BITS: u32, const SIGNED: bool>(
    count: usize,
    words: &[[u32; LINE]],
    out: &mut [[f32; LINE]; LONG],
) {
    let per_word = 32 / BITS as usize;
    for (words, out) in words.iter().zip(out.chunks_exact_mut(per_word)).take(count / per_word) {
        for (place, out) in out.iter_mut().enumerate() {
            for at in 0..LINE {
                // At the top, so that it comes down with its sign.
                let top = words[at] << (32 - BITS - BITS * place as u32);
                let value = if SIGNED { top as i32 >> (32 - BITS) } else { (top >> (32 - BITS)) as i32 };
                out[at] = value as f32;
            }
        }
    }
}

/// Puts the elements of a sparse factor where they belong. False if two belong to one place.
#[cold]
#[inline(never)]
fn spread_integers(op: &MatrixMultiply, metadata: &LaneHalves, left: &mut [Lanes<f32>; LONG]) -> bool {
    let stored = std::mem::replace(left, [[0.0; ROWS]; LONG]);
    spread(op, metadata, |row, at, k| left[k][row] = stored[at][row])
}

/// Numbers of bits that both factors have, or that only one has.
#[inline(always)]
pub(super) fn count_bits<V: Vectors>(op: &MatrixMultiply, places: &Places, words: &mut [LaneHalves]) {
    let mut left = [[0; ROWS]; 8];
    by_rows::<V>(op.m.into(), &words[..places.b], &mut left);
    for eight in 0..usize::from(op.eights) {
        let mut right = [[0; COLUMNS]; 8];
        by_columns::<V>(&words[places.b + eight * places.each_b..][..places.each_b], &mut right);
        let mut results = addends::<V>(op.c, &words[places.c + eight * places.each_c..][..places.each_c]);
        for column in 0..COLUMNS {
            for k in 0..usize::from(op.k) / 32 {
                let other = right[k][column];
                for row in 0..ROWS {
                    let word = if op.and { left[k][row] & other } else { left[k][row] ^ other };
                    results[column][row] = results[column][row].wrapping_add(word.count_ones());
                }
            }
        }
        set_results::<V>(op.d, &results, &mut words[places.d + eight * places.each_d..][..places.each_d]);
    }
}
