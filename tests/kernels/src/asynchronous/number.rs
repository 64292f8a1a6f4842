//! Numbers as the model computes with them: exactly, in the width and kind of their type.

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Unsigned,
    Signed,
    /// With so many bits of exponent.
    Float(u32),
}

/// A type of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    pub bytes: usize,
    pub kind: Kind,
}

impl Number {
    /// A type by its name in PTX.
    pub fn named(name: &str) -> Option<Number> {
        let (bytes, kind) = match name {
            "b32" | "u32" => (4, Kind::Unsigned),
            "b64" | "u64" => (8, Kind::Unsigned),
            "s32" => (4, Kind::Signed),
            "s64" => (8, Kind::Signed),
            "f16" => (2, Kind::Float(5)),
            "bf16" => (2, Kind::Float(8)),
            "f32" => (4, Kind::Float(8)),
            "f64" => (8, Kind::Float(11)),
            _ => return None,
        };
        Some(Number { bytes, kind })
    }

    /// Values that the model computes with exactly: any bits for integers, small whole numbers for floats.
    pub fn sample(self, seed: u64) -> u64 {
        match self.kind {
            Kind::Float(_) => self.bits_of((seed % 15) as i64 - 7),
            _ => seed & self.mask(),
        }
    }

    /// What an instruction makes of an old value and its operand.
    pub fn combine(self, op: &str, old: u64, operand: u64) -> u64 {
        let (a, b) = (self.whole(old), self.whole(operand));
        let unsigned = |value: i128| value as u64 & self.mask();
        match op {
            "add" => match self.kind {
                Kind::Float(_) => self.bits_of((a + b) as i64),
                _ => unsigned(a + b),
            },
            "min" => {
                if a <= b {
                    old
                } else {
                    operand
                }
            }
            "max" => {
                if a >= b {
                    old
                } else {
                    operand
                }
            }
            "and" => old & operand,
            "or" => old | operand,
            "xor" => old ^ operand,
            "inc" => {
                if a >= b {
                    0
                } else {
                    unsigned(a + 1)
                }
            }
            "dec" => {
                if a == 0 || a > b {
                    operand
                } else {
                    unsigned(a - 1)
                }
            }
            _ => operand,
        }
    }

    fn mask(self) -> u64 {
        u64::MAX >> (64 - 8 * self.bytes)
    }

    /// The value, which is whole.
    fn whole(self, bits: u64) -> i128 {
        match self.kind {
            Kind::Unsigned => bits.into(),
            Kind::Signed => {
                let unused = 64 - 8 * self.bytes as u32;
                (((bits << unused) as i64) >> unused).into()
            }
            Kind::Float(exponent) => {
                let fraction = 8 * self.bytes as u32 - 1 - exponent;
                let power = (bits >> fraction & ((1 << exponent) - 1)) as i32 - ((1 << (exponent - 1)) - 1);
                let magnitude = if bits & (self.mask() >> 1) == 0 {
                    0
                } else {
                    let mantissa = i128::from(bits & ((1 << fraction) - 1) | 1 << fraction);
                    mantissa >> (fraction as i32 - power)
                };
                if bits >> (8 * self.bytes - 1) != 0 { -magnitude } else { magnitude }
            }
        }
    }

    fn bits_of(self, value: i64) -> u64 {
        let Kind::Float(exponent) = self.kind else { return value as u64 & self.mask() };
        if value == 0 {
            return 0;
        }
        let fraction = 8 * self.bytes as u32 - 1 - exponent;
        let magnitude = value.unsigned_abs();
        let power = magnitude.ilog2();
        let mantissa = (magnitude << (fraction - power)) & ((1 << fraction) - 1);
        let biased = u64::from(power) + (1 << (exponent - 1)) - 1;
        u64::from(value < 0) << (8 * self.bytes - 1) | biased << fraction | mantissa
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_whole_numbers_are_exact() {
        for value in -20..=20i64 {
            for name in ["f16", "bf16", "f32", "f64"] {
                let number = Number::named(name).unwrap();
                assert_eq!(number.whole(number.bits_of(value)), value.into(), "{name} {value}");
            }
            let [single, double] = ["f32", "f64"].map(|name| Number::named(name).unwrap().bits_of(value));
            assert_eq!(single, (value as f32).to_bits().into());
            assert_eq!(double, (value as f64).to_bits());
        }
        assert_eq!(Number::named("f16").unwrap().bits_of(-3), 0xc200);
        assert_eq!(Number::named("bf16").unwrap().bits_of(5), 0x40a0);
    }
}
