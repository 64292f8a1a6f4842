//! Matrix products that generated code leaves to the host (see [`simt_ir::matrix`]).

use simt_ir::Rounding;
use simt_ir::matrix::{Accumulator, Element, MatrixMultiply, Quads};

pub use simt_ir::matrix::LaneWords;

/// Name of [`anywarp_matrix`] in generated code.
pub const MATRIX_SYMBOL: &str = "anywarp_matrix";

const ROUNDINGS: [Rounding; 4] = [Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up];

/// Writes or reads fields of a number, from bit 0 upwards.
struct Fields {
    bits: u64,
    at: u32,
}

impl Fields {
    fn put(&mut self, width: u32, value: u64) {
        self.bits |= value << self.at;
        self.at += width;
    }

    fn take(&mut self, width: u32) -> u64 {
        let value = self.bits >> self.at & ((1 << width) - 1);
        self.at += width;
        value
    }
}

fn position<T: PartialEq>(all: &[T], value: T) -> u64 {
    all.iter().position(|known| *known == value).map_or(0, |at| at as u64)
}

/// The operation in the 64 bits that generated code passes.
pub fn encode(op: &MatrixMultiply) -> u64 {
    let mut fields = Fields { bits: 0, at: 0 };
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
    fields.put(1, op.quads.is_some().into());
    fields.put(1, op.quads.is_some_and(|quads| quads.a_by_column).into());
    fields.put(1, op.quads.is_some_and(|quads| quads.b_by_row).into());
    fields.bits
}

/// The operation of a code that [`encode`] made.
pub fn decode(code: u64) -> Option<MatrixMultiply> {
    let mut fields = Fields { bits: code, at: 0 };
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
        quads: (fields.take(1) != 0)
            .then(|| Quads { a_by_column: fields.take(1) != 0, b_by_row: fields.take(1) != 0 }),
    })
}

/// Multiplies the matrices of one warp. `registers` holds the operands, 32 words each, one a lane; the results replace
/// the first of them. Nothing happens if `code` is not a code.
///
/// # Safety
/// `registers` points to 32 words for each operand and for each result that the operation has, whichever are more, which
/// nobody else uses.
pub unsafe extern "C" fn anywarp_matrix(code: u64, registers: *mut LaneWords) {
    let Some(op) = decode(code) else { return };
    let (operands, results) = (op.operands().len(), op.results().len());
    // SAFETY: the caller's contract.
    let registers = unsafe { std::slice::from_raw_parts_mut(registers, operands.max(results)) };
    let products = op.multiply(&registers[..operands]);
    registers[..results].copy_from_slice(&products);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip() {
        let dense =
            MatrixMultiply::new(16, 256, Element::B1, Element::B1, Accumulator::S32, Accumulator::S32);
        let quads = Some(Quads { a_by_column: true, b_by_row: false });
        for op in [
            dense,
            MatrixMultiply { and: true, saturate: true, sparse: Some(3), ..dense },
            MatrixMultiply { a: Element::E5M2, b: Element::F64, d: Accumulator::F16, quads, ..dense },
            MatrixMultiply { round: Rounding::Up, c: Accumulator::F64, warpgroup: true, ..dense },
        ] {
            assert_eq!(decode(encode(&op)), Some(op));
        }
    }
}
