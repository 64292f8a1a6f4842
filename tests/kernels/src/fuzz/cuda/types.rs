//! Types of values, and which numbers an integer may be.
//!
//! Every integer of a kernel has a range that follows from how it is made. It says where an index is in bounds, and where
//! signed arithmetic cannot overflow, so that it may be written as it is: compilers make other code of it.

/// A type that a value has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it; `H2` is two halves")]
pub enum Type {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
    H2,
}

use Type::{Bool, F16, F32, F64, H2, I8, I16, I32, I64, U8, U16, U32, U64};

impl Type {
    /// Types of integers, as often as they occur in programs.
    pub const INTEGERS: [Type; 12] = [I32, I32, I32, U32, U32, I64, U64, I16, U16, U8, I8, I32];

    /// What memory may consist of.
    pub const ELEMENTS: [Type; 12] = [I8, U8, I16, U16, I32, U32, I64, U64, F16, F32, F64, I32];

    /// Its name in the kernel's text, see [`super::print::prelude`].
    pub fn name(self) -> &'static str {
        match self {
            Bool => "bool",
            I8 => "i8",
            U8 => "u8",
            I16 => "i16",
            U16 => "u16",
            I32 => "i32",
            U32 => "u32",
            I64 => "i64",
            U64 => "u64",
            F16 => "f16",
            F32 => "f32",
            F64 => "f64",
            H2 => "h2",
        }
    }

    /// Its bytes in memory.
    pub fn bytes(self) -> usize {
        match self {
            Bool | I8 | U8 => 1,
            I16 | U16 | F16 => 2,
            I32 | U32 | F32 | H2 => 4,
            I64 | U64 | F64 => 8,
        }
    }

    /// Whether it is a type of whole numbers.
    pub fn is_integer(self) -> bool {
        matches!(self, I8 | U8 | I16 | U16 | I32 | U32 | I64 | U64)
    }

    /// Whether it has negative numbers.
    pub fn is_signed(self) -> bool {
        matches!(self, I8 | I16 | I32 | I64)
    }

    /// The unsigned type in which arithmetic of this one is done where it may overflow: products of 16 bits would overflow `int`.
    pub fn wrapping(self) -> Type {
        match self {
            I64 | U64 => U64,
            _ => U32,
        }
    }

    /// All numbers of an integer type, and the two of `bool`.
    pub fn range(self) -> Range {
        let bits = 8 * self.bytes() as u32;
        match self {
            Bool => Range { low: 0, high: 1 },
            _ if self.is_signed() => Range { low: -(1 << (bits - 1)), high: (1 << (bits - 1)) - 1 },
            _ => Range { low: 0, high: (1 << bits) - 1 },
        }
    }
}

/// The integers from one to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Range {
    pub low: i128,
    pub high: i128,
}

impl Range {
    /// From `low` to `high`, both included.
    pub fn new(low: i128, high: i128) -> Range {
        assert!(low <= high, "a range has some number");
        Range { low, high }
    }

    /// A single number.
    pub fn of(number: i128) -> Range {
        Range { low: number, high: number }
    }

    /// The smallest range with all of these numbers.
    pub fn around(numbers: &[i128]) -> Range {
        let bound = |best: Option<&i128>| *best.expect("there are numbers");
        Range { low: bound(numbers.iter().min()), high: bound(numbers.iter().max()) }
    }

    /// Whether all of these numbers are in the other range too.
    pub fn is_within(self, other: Range) -> bool {
        other.low <= self.low && self.high <= other.high
    }

    /// This range and another one, and what is between them.
    pub fn join(self, other: Range) -> Range {
        Range { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// The ends of both, combined: where an operation is monotonic in each operand its results are among these.
    pub fn corners(self, other: Range, operation: impl Fn(i128, i128) -> i128) -> Range {
        let ends = |range: Range| [range.low, range.high];
        let all: Vec<i128> = ends(self).iter().flat_map(|a| ends(other).map(|b| operation(*a, b))).collect();
        Range::around(&all)
    }
}
