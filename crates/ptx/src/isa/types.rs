//! The types that instructions name, and which registers may hold them.

use simt_ir::Type as Ir;

use crate::ast;

/// A type modifier of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the PTX type of the same spelling")]
pub enum Ty {
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    U16x2,
    S16x2,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    Tf32,
    F32,
    F64,
}

/// How an instruction reads the bits of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A truth value.
    Pred,
    /// Bits of no particular meaning.
    Bits,
    /// An unsigned integer.
    Unsigned,
    /// A signed integer.
    Signed,
    /// A float.
    Float,
}

const ALL: [(Ty, &str, u32, Kind); 23] = [
    (Ty::Pred, "pred", 1, Kind::Pred),
    (Ty::B8, "b8", 8, Kind::Bits),
    (Ty::B16, "b16", 16, Kind::Bits),
    (Ty::B32, "b32", 32, Kind::Bits),
    (Ty::B64, "b64", 64, Kind::Bits),
    (Ty::B128, "b128", 128, Kind::Bits),
    (Ty::U8, "u8", 8, Kind::Unsigned),
    (Ty::U16, "u16", 16, Kind::Unsigned),
    (Ty::U32, "u32", 32, Kind::Unsigned),
    (Ty::U64, "u64", 64, Kind::Unsigned),
    (Ty::S8, "s8", 8, Kind::Signed),
    (Ty::S16, "s16", 16, Kind::Signed),
    (Ty::S32, "s32", 32, Kind::Signed),
    (Ty::S64, "s64", 64, Kind::Signed),
    (Ty::U16x2, "u16x2", 32, Kind::Unsigned),
    (Ty::S16x2, "s16x2", 32, Kind::Signed),
    (Ty::F16, "f16", 16, Kind::Float),
    (Ty::F16x2, "f16x2", 32, Kind::Float),
    (Ty::Bf16, "bf16", 16, Kind::Float),
    (Ty::Bf16x2, "bf16x2", 32, Kind::Float),
    (Ty::Tf32, "tf32", 32, Kind::Float),
    (Ty::F32, "f32", 32, Kind::Float),
    (Ty::F64, "f64", 64, Kind::Float),
];

impl Ty {
    /// The type spelled so, without the dot.
    pub fn from_name(name: &str) -> Option<Ty> {
        ALL.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// Its spelling, without the dot.
    pub fn name(self) -> &'static str {
        ALL[self as usize].1
    }

    /// Width in bits; 1 for predicates.
    pub fn bits(self) -> u32 {
        ALL[self as usize].2
    }

    /// Bytes in memory.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// How its bits are read.
    pub fn kind(self) -> Kind {
        ALL[self as usize].3
    }

    /// Whether it is a signed integer.
    pub fn is_signed(self) -> bool {
        self.kind() == Kind::Signed
    }

    /// Whether it is a float, packed or not.
    pub fn is_float(self) -> bool {
        self.kind() == Kind::Float
    }

    /// The type of one half of a packed type.
    pub fn half(self) -> Option<Ty> {
        match self {
            Ty::U16x2 => Some(Ty::U16),
            Ty::S16x2 => Some(Ty::S16),
            Ty::F16x2 => Some(Ty::F16),
            Ty::Bf16x2 => Some(Ty::Bf16),
            _ => None,
        }
    }

    /// The type of this width that says nothing of the bits.
    pub fn untyped(bits: u32) -> Option<Ty> {
        ALL.iter().find(|row| row.2 == bits && row.3 == Kind::Bits).map(|row| row.0)
    }

    /// The integer or untyped type twice as wide, for `.wide` results.
    pub fn doubled(self) -> Option<Ty> {
        match self {
            Ty::U16 => Some(Ty::U32),
            Ty::U32 => Some(Ty::U64),
            Ty::S16 => Some(Ty::S32),
            Ty::S32 => Some(Ty::S64),
            _ => None,
        }
    }

    /// The type of the value in the IR. Packed types are the integer that holds them; `.b128` is two `I64`.
    pub fn ir(self) -> Ir {
        match self {
            Ty::Pred => Ir::Pred,
            Ty::F16 => Ir::F16,
            Ty::Bf16 => Ir::BF16,
            Ty::F32 => Ir::F32,
            Ty::F64 => Ir::F64,
            Ty::B8 | Ty::U8 | Ty::S8 => Ir::I8,
            Ty::B16 | Ty::U16 | Ty::S16 => Ir::I16,
            Ty::B32 | Ty::U32 | Ty::S32 | Ty::U16x2 | Ty::S16x2 | Ty::F16x2 | Ty::Bf16x2 | Ty::Tf32 => {
                Ir::I32
            }
            Ty::B64 | Ty::U64 | Ty::S64 | Ty::B128 => Ir::I64,
        }
    }

    /// Whether a register of type `register` may be an operand of this type. A `relaxed` operand (of loads, stores and
    /// conversions) may be wider than the type.
    pub fn accepts(self, register: ast::Type, relaxed: bool) -> bool {
        let Some(register) = Ty::from_name(register.name()) else { return false };
        if (self == Ty::Pred) != (register == Ty::Pred) {
            return false;
        }
        let same_width = self.bits() == register.bits();
        let wider = relaxed && register.bits() > self.bits();
        if !(same_width || wider) {
            return false;
        }
        // A register of two halves is one of 32 bits, but no float of 32 bits.
        let other = if register == Ty::F16x2 { Kind::Unsigned } else { register.kind() };
        match (self.kind(), other) {
            (Kind::Bits | Kind::Pred, _) | (_, Kind::Bits) => true,
            _ if matches!(self, Ty::F16x2 | Ty::U16x2 | Ty::S16x2) => register == Ty::F16x2,
            // There are no registers of these types, so they are in untyped ones.
            _ if matches!(self, Ty::Bf16 | Ty::Bf16x2 | Ty::Tf32) => false,
            (Kind::Float, Kind::Float) => same_width,
            (Kind::Float, _) | (_, Kind::Float) => false,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_variants() {
        for (index, row) in ALL.iter().enumerate() {
            assert_eq!(row.0 as usize, index, "{}", row.1);
        }
    }

    #[test]
    fn registers_fit_by_width_and_kind() {
        assert!(Ty::U32.accepts(ast::Type::S32, false));
        assert!(Ty::U32.accepts(ast::Type::B32, false));
        assert!(!Ty::U32.accepts(ast::Type::F32, false));
        assert!(Ty::B32.accepts(ast::Type::F32, false));
        assert!(Ty::F32.accepts(ast::Type::B32, false));
        assert!(Ty::F16x2.accepts(ast::Type::B32, false));
        assert!(!Ty::F32.accepts(ast::Type::U32, false));
        assert!(!Ty::U16.accepts(ast::Type::U32, false));
        assert!(Ty::U16.accepts(ast::Type::U32, true));
        assert!(!Ty::U32.accepts(ast::Type::U16, true));
        assert!(Ty::F64.accepts(ast::Type::B128, true));
        assert!(!Ty::U64.accepts(ast::Type::B128, false));
        assert!(!Ty::Pred.accepts(ast::Type::B8, true));
    }
}
