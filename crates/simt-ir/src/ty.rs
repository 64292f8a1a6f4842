//! Value types.

use std::fmt;

/// The type of a value in one thread.
///
/// Integers carry no sign: an operation says how it reads them. PTX's untyped `.bN` and its `.sN`/`.uN`
/// registers all become `I{N}`; `.pred` becomes [`Type::Pred`]. Addresses are `I64`, or `I32` in the shared and
/// local windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// One bit, the outcome of a comparison.
    Pred,
    /// Eight bits.
    I8,
    /// Sixteen bits.
    I16,
    /// Thirty-two bits.
    I32,
    /// Sixty-four bits.
    I64,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16: binary32's exponent with seven fraction bits.
    BF16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

impl Type {
    /// Every type, smallest first.
    pub const ALL: [Type; 9] =
        [Type::Pred, Type::I8, Type::I16, Type::I32, Type::I64, Type::F16, Type::BF16, Type::F32, Type::F64];

    /// Width in bits; 1 for predicates.
    pub const fn bits(self) -> u32 {
        match self {
            Type::Pred => 1,
            Type::I8 => 8,
            Type::I16 | Type::F16 | Type::BF16 => 16,
            Type::I32 | Type::F32 => 32,
            Type::I64 | Type::F64 => 64,
        }
    }

    /// Bytes the value takes in memory. A predicate is kept as one byte; PTX never stores one.
    pub const fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// All value bits set.
    pub const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// Whether this is one of the four integer types (predicates are not).
    pub const fn is_int(self) -> bool {
        matches!(self, Type::I8 | Type::I16 | Type::I32 | Type::I64)
    }

    /// Whether this is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, Type::F16 | Type::BF16 | Type::F32 | Type::F64)
    }

    /// The integer type of `bits` bits, if there is one.
    pub const fn int(bits: u32) -> Option<Type> {
        match bits {
            8 => Some(Type::I8),
            16 => Some(Type::I16),
            32 => Some(Type::I32),
            64 => Some(Type::I64),
            _ => None,
        }
    }

    /// The integer type of the same width; predicates have none.
    pub const fn as_int(self) -> Option<Type> {
        Type::int(self.bits())
    }

    /// The name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            Type::Pred => "pred",
            Type::I8 => "i8",
            Type::I16 => "i16",
            Type::I32 => "i32",
            Type::I64 => "i64",
            Type::F16 => "f16",
            Type::BF16 => "bf16",
            Type::F32 => "f32",
            Type::F64 => "f64",
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
