//! Matrix products that generated code leaves to the host: what [`simt_ir::matrix`] says, in a fast form.

#[expect(clippy::needless_range_loop, reason = "a row is an index into several arrays")]
mod fast;
#[cfg(test)]
mod tests;

use simt_ir::Rounding;
use simt_ir::matrix::{Accumulator, Element, InMemory, MatrixMultiply, Quads};

pub use simt_ir::matrix::LaneWords;

use crate::BlockFrame;
use crate::fields::{Fields, position};

/// Name of [`anywarp_matrix`] in generated code.
pub const MATRIX_SYMBOL: &str = "anywarp_matrix";

const ROUNDINGS: [Rounding; 4] = [Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up];

/// The operation in the 64 bits that generated code passes.
pub fn encode(op: &MatrixMultiply) -> u64 {
    let mut fields = Fields::new(0);
    fields.put(8, op.m.into());
    fields.put(16, op.k.into());
    fields.put(4, position(&Element::ALL, op.a));
    fields.put(4, position(&Element::ALL, op.b));
    fields.put(2, position(&Accumulator::ALL, op.c));
    fields.put(2, position(&Accumulator::ALL, op.d));
    fields.put(3, op.sparse.map_or(0, |selector| 1 + u64::from(selector)));
    fields.put(1, op.saturate.into());
    fields.put(1, op.and.into());
    fields.put(2, position(&ROUNDINGS, op.round));
    fields.put(1, op.warpgroup.into());
    fields.put(6, op.eights.into());
    let in_memory = op.in_memory.map_or([false; 5], |m| {
        [true, m.a_by_row.is_some(), m.a_by_row == Some(true), m.b_by_column, m.negated]
    });
    for flag in in_memory {
        fields.put(1, flag.into());
    }
    fields.put(1, op.quads.is_some().into());
    fields.put(1, op.quads.is_some_and(|quads| quads.a_by_column).into());
    fields.put(1, op.quads.is_some_and(|quads| quads.b_by_row).into());
    fields.bits
}

/// The operation of a code that [`encode`] made.
pub fn decode(code: u64) -> Option<MatrixMultiply> {
    let mut fields = Fields::new(code);
    Some(MatrixMultiply {
        m: fields.take(8) as u8,
        k: fields.take(16) as u16,
        a: *Element::ALL.get(fields.take(4) as usize)?,
        b: *Element::ALL.get(fields.take(4) as usize)?,
        c: Accumulator::ALL[fields.take(2) as usize],
        d: Accumulator::ALL[fields.take(2) as usize],
        sparse: fields.take(3).checked_sub(1).map(|selector| selector as u8),
        saturate: fields.take(1) != 0,
        and: fields.take(1) != 0,
        round: ROUNDINGS[fields.take(2) as usize],
        warpgroup: fields.take(1) != 0,
        eights: fields.take(6) as u8,
        in_memory: {
            let [is_some, has_a, a_by_row, b_by_column, negated] =
                std::array::from_fn(|_| fields.take(1) != 0);
            is_some.then(|| InMemory { a_by_row: has_a.then_some(a_by_row), b_by_column, negated })
        },
        quads: (fields.take(1) != 0)
            .then(|| Quads { a_by_column: fields.take(1) != 0, b_by_row: fields.take(1) != 0 }),
    })
}

/// Name of an [`AbsentFn`] in generated code.
pub const ABSENT_SYMBOL: &str = "anywarp_absent_lanes";

/// Puts what lanes that are not in the mask have of factors in shared memory (see [`MatrixMultiply::absent`]) where [`anywarp_matrix`]
/// finds the operands of this code. Behind `descriptors` lie two words of each lane. Answers 0, or 1 after a fault, which is then in `frame.fault` but for its line.
pub type AbsentFn = unsafe extern "C" fn(
    frame: *mut BlockFrame,
    code: u64,
    lanes: u32,
    memory: *mut u8,
    descriptors: *const [LaneWords; 2],
) -> u32;

/// One register of each lane, of 32 bits.
pub type LaneHalves = [u32; 32];

/// Bytes that one register of all lanes takes: words of 64 bits for products of f64, of 32 bits for all others.
pub fn register_bytes(op: &MatrixMultiply) -> usize {
    if op.a == Element::F64 { size_of::<LaneWords>() } else { size_of::<LaneHalves>() }
}

/// At which register the results start: in place of the addend if they are of its type, else after all operands.
pub fn results_at(op: &MatrixMultiply) -> usize {
    let factors = op.a_registers() + op.b_registers();
    match op.c == op.d {
        true => factors,
        false => op.fragments(),
    }
}

/// Registers that an operation's operands and results take.
pub fn registers(op: &MatrixMultiply) -> usize {
    op.fragments().max(results_at(op) + op.d_registers())
}

/// Multiplies the matrices of one warp. `memory` holds the operands one after another; the results go to where [`results_at`]
/// says. Nothing happens if `code` is not a code.
///
/// # Safety
/// `memory` is aligned to 64 bytes and has as many registers as [`registers`] says, each of [`register_bytes`], which nobody else
/// uses.
pub unsafe extern "C" fn anywarp_matrix(code: u64, memory: *mut u8) {
    let Some(op) = decode(code) else { return };
    let count = registers(&op);
    if op.a == Element::F64 {
        // SAFETY: the caller's contract.
        let words = unsafe { std::slice::from_raw_parts_mut(memory.cast::<LaneWords>(), count) };
        if !fast::multiply_doubles(&op, words) {
            let results = op.multiply(words);
            words[results_at(&op)..][..results.len()].copy_from_slice(&results);
        }
        return;
    }
    // SAFETY: the caller's contract.
    let words = unsafe { std::slice::from_raw_parts_mut(memory.cast::<LaneHalves>(), count) };
    fast::multiply(&op, words);
}
