//! Sums of f64.

use simt_ir::matrix::{LaneWords, MatrixMultiply};

use super::{COLUMNS, Places, ROWS, SHORT};

/// Products of f64: fused multiply-adds in the order of k. False, and nothing done, if a result is a NaN.
#[inline(always)]
pub(super) fn multiply(op: &MatrixMultiply, words: &mut [LaneWords]) -> bool {
    let places = Places::new(op);
    let halves = usize::from(op.m) / 8;
    let (mut left, mut right) = ([[0.0; ROWS]; SHORT], [[0.0; COLUMNS]; SHORT]);
    for (at, register) in words[..places.b].iter().enumerate() {
        for row in 0..8 {
            for quarter in 0..4 {
                left[at / halves * 4 + quarter][at % halves * 8 + row] =
                    f64::from_bits(register[4 * row + quarter]);
            }
        }
    }
    for (step, register) in words[places.b..places.c].iter().enumerate() {
        for column in 0..COLUMNS {
            for quarter in 0..4 {
                right[4 * step + quarter][column] = f64::from_bits(register[4 * column + quarter]);
            }
        }
    }
    let mut results = [[0.0; ROWS]; COLUMNS];
    for (at, register) in words[places.c..places.metadata].iter().enumerate() {
        for row in 0..8 {
            for pair in 0..4 {
                results[2 * pair + at % 2][at / 2 * 8 + row] = f64::from_bits(register[4 * row + pair]);
            }
        }
    }
    let mut odd = false;
    for column in 0..COLUMNS {
        for k in 0..usize::from(op.k) {
            for row in 0..ROWS {
                results[column][row] = left[k][row].mul_add(right[k][column], results[column][row]);
            }
        }
        odd |= results[column].iter().any(|result| result.is_nan());
    }
    if odd {
        return false;
    }
    for (at, register) in words[places.d..][..places.each_d].iter_mut().enumerate() {
        for row in 0..8 {
            for pair in 0..4 {
                register[4 * row + pair] = results[2 * pair + at % 2][at / 2 * 8 + row].to_bits();
            }
        }
    }
    true
}
