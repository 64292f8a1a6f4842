//! Products of matrices of bytes, from the registers of a warp into such.
//!
//! Lanes of the addend's registers hold four rows of four columns in each 16 lanes. The same shape is given to the factors: a word of the first
//! one, four bytes along a row, goes to the four lanes of its row, a word of the second, four along a column, to all lanes of its
//! column. Each pair of such vectors is then one [`Lowering::dot_bytes`] on a register of sums, and sums stay where they are from one
//! product to the next.

use simt_ir::matrix::{Element, MatrixMultiply};

use super::Lowering;
use crate::llvm::Value;

/// Lanes of a warp, and those that have a row of the first factor or a column of the second.
const LANES: i32 = 32;
const QUAD: i32 = 4;

impl<'c> Lowering<'_, 'c> {
    /// Whether [`Lowering::multiply_bytes`] is faster than the host's code.
    pub fn multiplies_bytes(&self, op: &MatrixMultiply) -> bool {
        let is_byte = |element| matches!(element, Element::S8 | Element::U8);
        let is_plain = is_byte(op.a) && is_byte(op.b) && op.sparse.is_none() && !op.warpgroup;
        // Sums of 16 columns are what registers hold.
        is_plain && op.eights <= 2 && self.has_dots() && self.cpu.vector_bits() == 512
    }

    /// The registers of the result; `args` are those of the first factor, the second and the addend.
    ///
    /// # Panics
    /// If the operation has no such form (see [`Lowering::multiplies_bytes`]) or operands are missing.
    pub fn multiply_bytes(&self, op: &MatrixMultiply, args: &[Value<'c>]) -> Vec<Value<'c>> {
        let b = self.b;
        let (left, args) = args.split_at(op.a_registers());
        let (right, addends) = args.split_at(op.b_registers());
        // Eights of rows, and steps of 16 along k, of which each register has one.
        let (eights, steps) = (usize::from(op.m) / 8, usize::from(op.k) / 16);
        let (signed_left, signed_right) = (op.a == Element::S8, op.b == Element::S8);
        // The instruction wants an unsigned and a signed factor. A second one that is like the first has its sign turned, which adds 128 to each byte,
        // and so 128 times the sum of the row to each sum; or takes as much away.
        let alike = signed_left == signed_right;
        let signs = left[0].ty().int_const(0x8080_8080);
        let right: Vec<_> = right.iter().map(|&word| if alike { b.xor(word, signs) } else { word }).collect();
        let zero = left[0].ty().zero();
        let offsets: Vec<_> = (0..eights)
            .filter(|_| alike)
            .map(|eight| {
                let ones = left[0].ty().int_const(0x0101_0101);
                let words = left.iter().skip(eight).step_by(eights);
                let sum = words
                    .fold(zero, |sum, &word| self.dot_bytes((word, signed_left), (ones, !signed_left), sum));
                let sum = [1, 2]
                    .into_iter()
                    .fold(sum, |sum, distance| b.add(sum, self.lanes_of(sum, |lane| lane ^ distance)));
                let offset = b.shl(sum, sum.ty().int_const(7));
                if signed_left { b.sub(zero, offset) } else { offset }
            })
            .collect();
        let offset = |index: usize| offsets.get(index / 2 % eights).copied().unwrap_or(zero);
        let mut results: Vec<_> = addends
            .iter()
            .enumerate()
            .map(|(index, &addend)| if op.saturate { offset(index) } else { b.add(addend, offset(index)) })
            .collect();
        // All sums a step further before the next one: what a step needs of the factors is not kept then.
        for (columns, results) in results.chunks_mut(2 * eights).enumerate() {
            for step in 0..steps {
                for word in 0..QUAD {
                    let of_rows: Vec<_> = left[step * eights..][..eights]
                        .iter()
                        .map(|&row| self.lanes_of(row, |lane| lane / QUAD * QUAD + word))
                        .collect();
                    let column = right[columns * steps + step];
                    let of_columns =
                        [0, 1].map(|odd| self.lanes_of(column, |lane| (lane % QUAD * 2 + odd) * QUAD + word));
                    let signed = if alike { !signed_left } else { signed_right };
                    for (index, sum) in results.iter_mut().enumerate() {
                        let (row, column) = (of_rows[index / 2], of_columns[index % 2]);
                        *sum = self.dot_bytes((row, signed_left), (column, signed), *sum);
                    }
                }
            }
        }
        if op.saturate {
            for (sum, &addend) in results.iter_mut().zip(addends) {
                *sum = b.intrinsic("llvm.sadd.sat", &[sum.ty()], &[*sum, addend]);
            }
        }
        results
    }

    /// The lanes of a warp's register that `from` names, in that order.
    fn lanes_of(&self, register: Value<'c>, from: impl Fn(i32) -> i32) -> Value<'c> {
        let lanes: Vec<_> = (0..LANES).map(from).collect();
        self.b.shuffle(register, register.ty().poison(), &lanes)
    }
}
