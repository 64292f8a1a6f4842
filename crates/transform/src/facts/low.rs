//! The low bits of bases: whether a lane's offset carries into the bits above them.

use kernel_abi::XLayout;
use simt_ir::{Convert, InstData, IntBinary, Op, Shift, SpecialReg, Type, Value};

use super::{DEPTH, Facts};
use crate::simplify::sign_extended;

/// What the base of an affine value ends in. The base is its instruction applied to the bases of its operands, or of `or` and `xor` with a constant the
/// other operand's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Low {
    /// So many bits of the base are known; 64 if all of them are.
    bits: u32,
    /// These bits.
    rest: u64,
}

impl Low {
    const NOTHING: Low = Low { bits: 0, rest: 0 };

    fn exactly(number: u64) -> Low {
        Low { bits: 64, rest: number }
    }

    fn zeros(bits: u32) -> Low {
        Low { bits: bits.min(64), rest: 0 }
    }

    /// The base, if all of it is known.
    pub fn number(self) -> Option<u64> {
        (self.bits == 64).then_some(self.rest)
    }

    /// The number of zero bits in which the base surely ends; 64 for base 0.
    pub fn trailing_zeros(self) -> u32 {
        self.rest.trailing_zeros().min(self.bits)
    }

    /// Whether no lane's value has other bits above so many low ones than the base has: the lanes are at these offsets from it.
    pub fn holds(self, offsets: &[i64], bits: u32) -> bool {
        bits < 63
            && bits <= self.bits
            && offsets.iter().all(|offset| (0..1 << bits).contains(&(self.low(bits) + offset)))
    }

    /// Whether no lane's value has other bits above those that are known than the base has.
    pub fn holds_all(self, offsets: &[i64]) -> bool {
        self.bits == 64 || self.holds(offsets, self.bits)
    }

    /// So many of the lowest bits.
    pub fn low(self, bits: u32) -> i64 {
        (self.rest & mask(bits)) as i64
    }

    /// How many bits are known.
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Of its known bits no more than so many.
    fn at_most(self, bits: u32) -> Low {
        if bits >= self.bits { self } else { Low { bits, rest: self.rest } }
    }

    /// The better known.
    fn or(self, other: Low) -> Low {
        if other.bits > self.bits { other } else { self }
    }

    /// Of a value of so many bits.
    fn of_width(self, width: u32) -> Low {
        let bits = if self.bits >= width { 64 } else { self.bits };
        Low { bits, rest: self.rest & mask(bits.min(width)) }
    }
}

fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// What an operation makes of two numbers that end so.
fn combined(op: IntBinary, a: Low, b: Low) -> Low {
    let each = |op: fn(u64, u64) -> u64| Low { bits: a.bits.min(b.bits), rest: op(a.rest, b.rest) };
    // A mask leaves nothing of a number above it.
    let masked = |low: Low, by: Low| match by.number() {
        Some(bits) if bits <= mask(low.bits) => Low::exactly(low.rest & bits),
        _ => Low::zeros(low.trailing_zeros()),
    };
    match op {
        IntBinary::Add => each(u64::wrapping_add),
        IntBinary::Sub => each(u64::wrapping_sub),
        IntBinary::Or => each(|a, b| a | b),
        IntBinary::Xor => each(|a, b| a ^ b),
        IntBinary::And => each(|a, b| a & b).or(masked(a, b)).or(masked(b, a)),
        IntBinary::Mul => each(u64::wrapping_mul).or(Low::zeros(a.trailing_zeros() + b.trailing_zeros())),
        _ => Low::NOTHING,
    }
}

impl Facts<'_> {
    /// What the base of an affine value ends in.
    pub fn base_low(&self, value: Value) -> Low {
        self.low(value, DEPTH)
    }

    fn low(&self, value: Value, depth: u32) -> Low {
        let ty = self.func.ty(value);
        let Some(data) = self.func.def_inst(value).filter(|_| depth > 0 && ty.is_int()) else {
            return Low::NOTHING;
        };
        self.low_of(data, depth).of_width(ty.bits())
    }

    fn low_of(&self, data: &InstData, depth: u32) -> Low {
        let arg = |at: usize| self.low(data.args[at], depth - 1);
        let constant = |at: usize| self.func.constant(data.args[at]);
        match data.op {
            Op::Const(bits) => Low::exactly(bits),
            Op::Int(op) => match (op, constant(0), constant(1)) {
                // Below its lowest bit a constant changes nothing, whether it is in the base or in the offsets.
                (IntBinary::Or | IntBinary::Xor, _, Some(bits)) => arg(0).at_most(bits.trailing_zeros()),
                (IntBinary::Or | IntBinary::Xor, Some(bits), _) => arg(1).at_most(bits.trailing_zeros()),
                _ => combined(op, arg(0), arg(1)),
            },
            Op::Shift(op) => match (op, constant(1)) {
                (Shift::Left, Some(amount @ ..64)) => {
                    Low { bits: (arg(0).bits + amount as u32).min(64), rest: arg(0).rest << amount }
                }
                (Shift::RightU | Shift::RightS, Some(amount @ ..64)) => {
                    let low = arg(0);
                    match low.number() {
                        Some(number) if op == Shift::RightU => Low::exactly(number >> amount),
                        Some(number) => {
                            let bits = self.func.ty(data.args[0]).bits();
                            Low::exactly((sign_extended(number, bits) >> amount) as u64)
                        }
                        None => {
                            Low { bits: low.bits.saturating_sub(amount as u32), rest: low.rest >> amount }
                        }
                    }
                }
                _ => Low::NOTHING,
            },
            // The base of what is extended is extended by its sign, whatever the kind.
            Op::Convert(Convert::SExt | Convert::ZExt) if self.func.ty(data.args[0]) != Type::Pred => {
                match arg(0).number() {
                    Some(number) => {
                        Low::exactly(sign_extended(number, self.func.ty(data.args[0]).bits()) as u64)
                    }
                    None => arg(0),
                }
            }
            Op::Convert(Convert::Trunc) => arg(0),
            Op::SpecialReg(reg) => Low::zeros(self.zeros_of(reg)),
            _ => Low::NOTHING,
        }
    }

    /// In how many zeros the base of a special register ends.
    fn zeros_of(&self, reg: SpecialReg) -> u32 {
        match reg {
            SpecialReg::LaneId => 64,
            // The first lane is the block's first thread.
            SpecialReg::Tid(_)
                if self.shape.block_is_gang() && (self.shape.dims < 3 || self.shape.rows().is_some()) =>
            {
                64
            }
            SpecialReg::Tid(0) => match self.shape.x {
                _ if self.shape.dims == 1 => self.shape.lanes().trailing_zeros(),
                XLayout::Rows => self.shape.lanes().trailing_zeros(),
                XLayout::Period(_) => 64,
                XLayout::Irregular => 0,
            },
            SpecialReg::Tid(axis) => match (self.shape.rows(), axis) {
                (Some(rows), 1) if rows.in_z > 1 => 64,
                (Some(rows), 1) => rows.in_y.trailing_zeros(),
                (Some(rows), _) => rows.in_z.trailing_zeros(),
                (None, _) => 0,
            },
            SpecialReg::Ntid(0) => match self.shape.x {
                // Rows of whole warps, or of whole strips.
                XLayout::Rows => self.shape.lanes().min(32).trailing_zeros(),
                XLayout::Period(period) => period.trailing_zeros(),
                XLayout::Irregular => 0,
            },
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel_abi::Shape;
    use simt_ir::{Cfg, DomTree, FunctionBuilder, Signature, Terminator};

    use super::*;

    const SOME: Low = Low { bits: 8, rest: 0b1010_0100 };

    #[test]
    fn sums_and_products_end_as_their_operands_tell() {
        assert_eq!(
            combined(IntBinary::Add, SOME, Low::exactly(0x1ff)).of_width(32),
            Low { bits: 8, rest: 0xa3 }
        );
        assert_eq!(combined(IntBinary::Sub, Low::exactly(0), SOME).of_width(32), Low { bits: 8, rest: 0x5c });
        assert_eq!(combined(IntBinary::Mul, SOME, Low::zeros(9)).of_width(32), Low { bits: 11, rest: 0 });
        assert_eq!(combined(IntBinary::Or, SOME, Low::zeros(3)).of_width(32), Low { bits: 3, rest: 4 });
        assert_eq!(combined(IntBinary::Xor, SOME, Low::NOTHING).of_width(32), Low::NOTHING);
    }

    /// `(tid & 7) | constant` in blocks of eight threads a row: the constant is in the offsets, not in the base.
    #[test]
    fn a_constant_that_is_united_with_lanes_is_not_of_the_base() {
        let mut b = FunctionBuilder::new("k", Signature::default());
        let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
        let [seven, constant] = [7, 0x1f00].map(|bits| b.constant(Type::I32, bits));
        let low = b.inst(Op::Int(IntBinary::And), &[tid, seven], Type::I32);
        let unions =
            [[low, constant], [constant, low]].map(|args| b.inst(Op::Int(IntBinary::Or), &args, Type::I32));
        b.terminate(Terminator::Exit);
        let func = b.finish();
        let cfg = Cfg::new(&func);
        let (dom, shape) = (DomTree::new(&cfg), Shape::of([1, 1, 1], [8, 4, 1]));
        let facts = Facts::new(&func, &cfg, &dom, &shape);
        assert_eq!(facts.base_low(low).number(), Some(0));
        for union in unions {
            assert_eq!(facts.base_low(union), Low { bits: 8, rest: 0 });
        }
    }

    #[test]
    fn a_mask_of_known_bits_leaves_a_number() {
        assert_eq!(combined(IntBinary::And, SOME, Low::exactly(0x3f)).number(), Some(0x24));
        assert_eq!(combined(IntBinary::And, SOME, Low::exactly(0x13f)).number(), None);
        assert_eq!(combined(IntBinary::And, Low::exactly(0xff00), Low::NOTHING).trailing_zeros(), 8);
    }

    #[test]
    fn offsets_that_carry_no_further_are_held() {
        let low = Low { bits: 6, rest: 27 };
        assert!(low.holds_all(&[0, 1, 36]) && !low.holds_all(&[37]), "27 + 37 = 64");
        assert!(low.holds_all(&[-27]) && !low.holds_all(&[-28]));
        assert!(low.holds(&[4], 5) && !low.holds(&[5], 5) && !low.holds(&[0], 7));
        assert!(Low::exactly(3).holds_all(&[i64::MAX, i64::MIN]));
        assert_eq!(Low { bits: 32, rest: 5 }.of_width(32).number(), Some(5), "there are no other bits");
    }
}
