//! Sums of products of bytes.

use super::Lowering;
use crate::llvm::Value;

/// Signs of four bytes, and four ones.
const SIGNS: u64 = 0x8080_8080;
const ONES: u64 = 0x0101_0101;

impl<'c> Lowering<'_, 'c> {
    /// `sum` and the products of the bytes of two words, which are signed or not.
    pub(super) fn dot_bytes(
        &self,
        (x, signed_x): (Value<'c>, bool),
        (y, signed_y): (Value<'c>, bool),
        sum: Value<'c>,
    ) -> Value<'c> {
        let lanes = self.cpu.vector_bits() / 32;
        self.in_chunks(lanes, &[x, y, sum], |chunk| {
            let &[x, y, sum] = chunk else { unreachable!("three go in") };
            match self.has_dots() {
                true => self.dot_at_once(lanes, (x, signed_x), (y, signed_y), sum),
                false => self.dot_of_halves(lanes, (x, signed_x), (y, signed_y), sum),
            }
        })
    }

    /// Whether there is an instruction for them.
    pub(super) fn has_dots(&self) -> bool {
        let (wide, narrow) = (self.cpu.has("avx512vnni"), self.cpu.has("avx512vl"));
        match self.cpu.vector_bits() {
            512 => wide,
            256 => wide && narrow,
            _ => false,
        }
    }

    /// By the instruction that multiplies unsigned bytes with signed ones.
    fn dot_at_once(
        &self,
        lanes: u32,
        (x, signed_x): (Value<'c>, bool),
        (y, signed_y): (Value<'c>, bool),
        sum: Value<'c>,
    ) -> Value<'c> {
        let b = self.b;
        let bytes = b.context().int(8).vector(4 * lanes);
        let dot = |sum: Value<'c>, unsigned: Value<'c>, signed: Value<'c>| {
            let name = format!("llvm.x86.avx512.vpdpbusd.{}", 32 * lanes);
            b.intrinsic(&name, &[], &[sum, b.bitcast(unsigned, bytes), b.bitcast(signed, bytes)])
        };
        let turned = |word: Value<'c>| b.xor(word, word.ty().int_const(SIGNS));
        let (zero, ones) = (sum.ty().zero(), sum.ty().int_const(ONES));
        let times_128 = |sum: Value<'c>| b.shl(sum, sum.ty().int_const(7));
        match (signed_x, signed_y) {
            (false, true) => dot(sum, x, y),
            (true, false) => dot(sum, y, x),
            // With its sign turned a signed byte is an unsigned one that is more by 128, and an unsigned one a signed one that is less.
            (true, true) => b.sub(dot(sum, turned(x), y), times_128(dot(zero, ones, y))),
            (false, false) => b.add(dot(sum, x, turned(y)), times_128(dot(zero, x, ones))),
        }
    }

    /// By that which multiplies signed halves of words and adds each two: of the even bytes and of the odd ones.
    fn dot_of_halves(
        &self,
        lanes: u32,
        x: (Value<'c>, bool),
        y: (Value<'c>, bool),
        sum: Value<'c>,
    ) -> Value<'c> {
        let b = self.b;
        let halves = b.context().int(16).vector(2 * lanes);
        let parts = |(word, signed): (Value<'c>, bool)| {
            let word = b.bitcast(word, halves);
            let eight = halves.int_const(8);
            match signed {
                true => [b.ashr(b.shl(word, eight), eight), b.ashr(word, eight)],
                false => [b.and(word, halves.int_const(0xff)), b.lshr(word, eight)],
            }
        };
        let name = match lanes {
            16 => "llvm.x86.avx512.pmaddw.d.512",
            8 => "llvm.x86.avx2.pmadd.wd",
            _ => "llvm.x86.sse2.pmadd.wd",
        };
        let ([even_x, odd_x], [even_y, odd_y]) = (parts(x), parts(y));
        let [even, odd] = [(even_x, even_y), (odd_x, odd_y)].map(|(x, y)| b.intrinsic(name, &[], &[x, y]));
        b.add(b.add(sum, even), odd)
    }
}
