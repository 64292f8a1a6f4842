//! Numbers and constant expressions, which are evaluated while they are read: 64-bit integers, wrapping, and
//! double-precision floats.

use super::{Failed, Parsed, Parser};
use crate::ast::Immediate;
use crate::lexer::TokenKind;
use crate::span::Span;

/// What `WARP_SZ` stands for.
const WARP_SIZE: i64 = 32;

impl<'a> Parser<'a> {
    /// A constant expression.
    pub(super) fn constant(&mut self) -> Parsed<Immediate> {
        self.nested(|p| {
            let condition = p.binary(0)?;
            if !p.eat(b'?') {
                return Ok(condition);
            }
            let yes = p.constant()?;
            p.expect(b':')?;
            let no = p.constant()?;
            Ok(if is_true(condition) { yes } else { no })
        })
    }

    /// A constant expression that is an integer; its 64 bits, signed.
    pub(super) fn integer(&mut self) -> Parsed<i64> {
        let start = self.token.span;
        let value = self.constant()?;
        match value.integer() {
            Some(bits) => Ok(bits as i64),
            None => Err(self.error(self.since(start), "expected an integer")),
        }
    }

    /// A constant expression that is an integer from 0 to 2^32-1.
    pub(super) fn small(&mut self) -> Parsed<u32> {
        let start = self.token.span;
        let value = self.integer()?;
        u32::try_from(value).map_err(|_| self.error(self.since(start), "integer out of range"))
    }

    /// A plain unsigned number, where the grammar has no expression.
    pub(super) fn number(&mut self) -> Parsed<u64> {
        if self.token.kind != TokenKind::Number {
            return Err(self.unexpected("a number"));
        }
        let span = self.advance().span;
        let value = self.literal(span)?.integer();
        value.ok_or_else(|| self.error(span, "expected an integer"))
    }

    /// Whether a constant expression can begin here with something other than a name.
    pub(super) fn at_constant(&self) -> bool {
        match self.token.kind {
            TokenKind::Number => true,
            TokenKind::Punctuation(c) => matches!(c, b'-' | b'+' | b'~' | b'!' | b'('),
            TokenKind::Word => self.word() == Some("WARP_SZ"),
            TokenKind::Dotted => self.dotted().is_some_and(|d| d.starts_with(|c: char| c.is_ascii_digit())),
            _ => false,
        }
    }

    fn binary(&mut self, min: u8) -> Parsed<Immediate> {
        let mut left = self.unary()?;
        while let Some((operator, precedence)) = self.operator() {
            if precedence < min {
                break;
            }
            let span = self.advance().span;
            let right = self.nested(|p| p.binary(precedence + 1))?;
            left = apply(operator, left, right).map_err(|message| self.error(span, message))?;
        }
        Ok(left)
    }

    fn operator(&self) -> Option<(Operator, u8)> {
        use Operator::*;
        Some(match self.token.kind {
            TokenKind::Operator([b'|', b'|']) => (LogicalOr, 0),
            TokenKind::Operator([b'&', b'&']) => (LogicalAnd, 1),
            TokenKind::Punctuation(b'|') => (Or, 2),
            TokenKind::Punctuation(b'^') => (Xor, 3),
            TokenKind::Punctuation(b'&') => (And, 4),
            TokenKind::Operator([b'=', _]) => (Equal, 5),
            TokenKind::Operator([b'!', _]) => (NotEqual, 5),
            TokenKind::Operator([b'<', b'=']) => (LessOrEqual, 6),
            TokenKind::Operator([b'>', b'=']) => (GreaterOrEqual, 6),
            TokenKind::Punctuation(b'<') => (Less, 6),
            TokenKind::Punctuation(b'>') => (Greater, 6),
            TokenKind::Operator([b'<', _]) => (ShiftLeft, 7),
            TokenKind::Operator([b'>', _]) => (ShiftRight, 7),
            TokenKind::Punctuation(b'+') => (Add, 8),
            TokenKind::Punctuation(b'-') => (Subtract, 8),
            TokenKind::Punctuation(b'*') => (Multiply, 9),
            TokenKind::Punctuation(b'/') => (Divide, 9),
            TokenKind::Punctuation(b'%') => (Remainder, 9),
            _ => return None,
        })
    }

    fn unary(&mut self) -> Parsed<Immediate> {
        use Immediate::*;
        let token = self.token;
        match token.kind {
            TokenKind::Number => {
                self.advance();
                self.literal(token.span)
            }
            TokenKind::Dotted if self.at_constant() => {
                self.advance();
                self.literal(token.span)
            }
            TokenKind::Word if self.at_constant() => {
                self.advance();
                Ok(Signed(WARP_SIZE))
            }
            TokenKind::Punctuation(b'(') => self.parenthesis(),
            TokenKind::Punctuation(operator @ (b'-' | b'+' | b'~' | b'!')) => {
                self.advance();
                let value = self.nested(Self::unary)?;
                match (operator, value) {
                    (b'+', value) => Ok(value),
                    (b'-', Signed(v)) => Ok(Signed(v.wrapping_neg())),
                    (b'-', Unsigned(v)) => Ok(Unsigned(v.wrapping_neg())),
                    (b'-', F32(v)) => Ok(F32(v ^ 1 << 31)),
                    (b'-', F64(v)) => Ok(F64(v ^ 1 << 63)),
                    // A complement is unsigned, whatever it is of.
                    (b'~', Signed(v)) => Ok(Unsigned(!v as u64)),
                    (b'~', Unsigned(v)) => Ok(Unsigned(!v)),
                    (b'!', Signed(_) | Unsigned(_)) => Ok(Signed(i64::from(!is_true(value)))),
                    _ => Err(self.error(token.span, "this operator takes integers")),
                }
            }
            _ => Err(self.unexpected("a constant")),
        }
    }

    /// `(expression)`, or a cast such as `(.s64) expression`.
    fn parenthesis(&mut self) -> Parsed<Immediate> {
        self.advance();
        if let Some(to) = self.dotted().filter(|d| matches!(*d, "s64" | "u64" | "f64")) {
            self.advance();
            self.expect(b')')?;
            let value = self.nested(Self::unary)?;
            return Ok(cast(value, to));
        }
        let value = self.constant()?;
        self.expect(b')')?;
        Ok(value)
    }

    /// What the number at `span` is worth.
    pub(super) fn literal(&mut self, span: Span) -> Parsed<Immediate> {
        literal(self.text(span)).map_err(|message| -> Failed { self.error(span, message) })
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Operator {
    LogicalOr,
    LogicalAnd,
    Or,
    Xor,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

fn literal(text: &str) -> Result<Immediate, &'static str> {
    const NOT_A_NUMBER: &str = "not a number";
    let bytes = text.as_bytes();
    let (radix, digits) = match bytes {
        [b'0', b'f' | b'F', ..] => return float_bits(&text[2..], 8).map(|bits| Immediate::F32(bits as u32)),
        [b'0', b'd' | b'D', ..] => return float_bits(&text[2..], 16).map(Immediate::F64),
        [b'0', b'x' | b'X', ..] => (16, &text[2..]),
        [b'0', b'b' | b'B', ..] => (2, &text[2..]),
        _ if bytes.iter().any(|b| matches!(b, b'.' | b'e' | b'E')) => {
            let plain = bytes.iter().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
            let value = text.parse::<f64>().ok().filter(|_| plain).ok_or(NOT_A_NUMBER)?;
            let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
            let is_zero = !mantissa.bytes().any(|b| matches!(b, b'1'..=b'9'));
            // Decimal numbers must be normal doubles; infinity and subnormal numbers are written in hexadecimal.
            if !value.is_normal() && !is_zero {
                return Err("the number is out of the range of a double");
            }
            return Ok(Immediate::F64(value.to_bits()));
        }
        [b'0', _, ..] if text != "0U" => (8, &text[1..]),
        _ => (10, text),
    };
    let (digits, unsigned) = match digits.strip_suffix('U') {
        Some(rest) => (rest, true),
        None => (digits, false),
    };
    if digits.is_empty() || !digits.bytes().all(|b| (b as char).is_digit(radix)) {
        return Err(NOT_A_NUMBER);
    }
    let value = integer_bits(digits, radix).ok_or("the number does not fit into 64 bits")?;
    Ok(match i64::try_from(value) {
        Ok(value) if !unsigned => Immediate::Signed(value),
        _ => Immediate::Unsigned(value),
    })
}

/// The low 64 bits of a number. As NVIDIA's assembler has it, it is too large only if bit 63 is set before the last digit: of others,
/// what is above 64 bits is lost.
fn integer_bits(digits: &str, radix: u32) -> Option<u64> {
    digits.chars().try_fold(0u64, |value, digit| {
        let is_full = value >> 63 != 0;
        (!is_full)
            .then(|| value.wrapping_mul(radix.into()).wrapping_add(digit.to_digit(radix).unwrap_or(0).into()))
    })
}

fn float_bits(digits: &str, length: usize) -> Result<u64, &'static str> {
    if digits.len() != length || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err("a hexadecimal float has 8 digits after 0f, 16 after 0d");
    }
    u64::from_str_radix(digits, 16).map_err(|_| "not a number")
}

fn is_true(value: Immediate) -> bool {
    match value {
        Immediate::Signed(v) => v != 0,
        Immediate::Unsigned(v) => v != 0,
        Immediate::F32(v) => f32::from_bits(v) != 0.0,
        Immediate::F64(v) => f64::from_bits(v) != 0.0,
    }
}

fn as_f64(value: Immediate) -> f64 {
    match value {
        Immediate::Signed(v) => v as f64,
        Immediate::Unsigned(v) => v as f64,
        Immediate::F32(v) => f64::from(f32::from_bits(v)),
        Immediate::F64(v) => f64::from_bits(v),
    }
}

fn cast(value: Immediate, to: &str) -> Immediate {
    match (value.integer(), to) {
        (_, "f64") => Immediate::F64(as_f64(value).to_bits()),
        (Some(bits), "s64") => Immediate::Signed(bits as i64),
        (Some(bits), _) => Immediate::Unsigned(bits),
        (None, "s64") => Immediate::Signed(as_f64(value) as i64),
        (None, _) => Immediate::Unsigned(as_f64(value) as u64),
    }
}

/// One operator on two constants. Integers are unsigned if either is; comparisons and logic give `.s64`.
fn apply(operator: Operator, left: Immediate, right: Immediate) -> Result<Immediate, &'static str> {
    use Operator::*;
    let truth = |b: bool| Ok(Immediate::Signed(i64::from(b)));
    match operator {
        LogicalOr => return truth(is_true(left) || is_true(right)),
        LogicalAnd => return truth(is_true(left) && is_true(right)),
        _ => {}
    }
    let (Some(a), Some(b)) = (left.integer(), right.integer()) else {
        return apply_floats(operator, as_f64(left), as_f64(right));
    };
    if matches!(operator, ShiftLeft | ShiftRight) {
        // Modulo 64, as NVIDIA's assembler has it.
        let amount = b as u32;
        return Ok(match (operator, left) {
            (ShiftLeft, Immediate::Signed(v)) => Immediate::Signed(v.wrapping_shl(amount)),
            (ShiftLeft, _) => Immediate::Unsigned(a.wrapping_shl(amount)),
            (_, Immediate::Signed(v)) => Immediate::Signed(v.wrapping_shr(amount)),
            _ => Immediate::Unsigned(a.wrapping_shr(amount)),
        });
    }
    const BY_ZERO: &str = "division by zero";
    if operator == Remainder {
        // Unsigned, whatever it is of.
        return a.checked_rem(b).map(Immediate::Unsigned).ok_or(BY_ZERO);
    }
    if let (Immediate::Signed(a), Immediate::Signed(b)) = (left, right) {
        return Ok(match operator {
            Equal => return truth(a == b),
            NotEqual => return truth(a != b),
            Less => return truth(a < b),
            LessOrEqual => return truth(a <= b),
            Greater => return truth(a > b),
            GreaterOrEqual => return truth(a >= b),
            Or => Immediate::Signed(a | b),
            Xor => Immediate::Signed(a ^ b),
            And => Immediate::Signed(a & b),
            Add => Immediate::Signed(a.wrapping_add(b)),
            Subtract => Immediate::Signed(a.wrapping_sub(b)),
            Multiply => Immediate::Signed(a.wrapping_mul(b)),
            _ if b == 0 => return Err(BY_ZERO),
            _ => Immediate::Signed(a.wrapping_div(b)),
        });
    }
    Ok(Immediate::Unsigned(match operator {
        Equal => return truth(a == b),
        NotEqual => return truth(a != b),
        Less => return truth(a < b),
        LessOrEqual => return truth(a <= b),
        Greater => return truth(a > b),
        GreaterOrEqual => return truth(a >= b),
        Or => a | b,
        Xor => a ^ b,
        And => a & b,
        Add => a.wrapping_add(b),
        Subtract => a.wrapping_sub(b),
        Multiply => a.wrapping_mul(b),
        _ => a.checked_div(b).ok_or(BY_ZERO)?,
    }))
}

fn apply_floats(operator: Operator, a: f64, b: f64) -> Result<Immediate, &'static str> {
    use Operator::*;
    let truth = |b: bool| Ok(Immediate::Signed(i64::from(b)));
    let value = match operator {
        Equal => return truth(a == b),
        NotEqual => return truth(a != b),
        Less => return truth(a < b),
        LessOrEqual => return truth(a <= b),
        Greater => return truth(a > b),
        GreaterOrEqual => return truth(a >= b),
        Add => a + b,
        Subtract => a - b,
        Multiply => a * b,
        Divide => a / b,
        _ => return Err("this operator takes integers"),
    };
    Ok(Immediate::F64(value.to_bits()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::Options;

    fn value(text: &str) -> Option<Immediate> {
        let mut parser = Parser::new(text, 0, Options::default());
        let value = parser.constant().ok()?;
        (parser.token.kind == TokenKind::End).then_some(value)
    }

    #[test]
    fn literals() {
        use Immediate::*;
        for (text, expected) in [
            ("0", Signed(0)),
            ("0U", Unsigned(0)),
            ("017", Signed(15)),
            ("0b101U", Unsigned(5)),
            ("0x7fffffffffffffff", Signed(i64::MAX)),
            ("0x8000000000000000", Unsigned(1 << 63)),
            ("0f3F800000", F32(0x3f80_0000)),
            ("0dBFF0000000000000", F64(0xbff0_0000_0000_0000)),
            ("-0f3F800000", F32(0xbf80_0000)),
            ("1.5", F64(1.5f64.to_bits())),
            (".5", F64(0.5f64.to_bits())),
            ("25e-1", F64(2.5f64.to_bits())),
        ] {
            assert_eq!(value(text), Some(expected), "{text}");
        }
        for bad in ["08", "0x", "0f3F8", "1.2.3", "12ab", "0b2", "99999999999999999999", "1infinity"] {
            assert!(literal(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn expressions() {
        use Immediate::*;
        for (text, expected) in [
            ("1+2*3", Signed(7)),
            ("(1+2)*3", Signed(9)),
            ("-7/2", Signed(-3)),
            ("-7 % 3", Unsigned(0)),
            ("-1 % 10", Unsigned(5)),
            ("~7 >> 63", Unsigned(1)),
            ("1 << 65", Signed(2)),
            ("-1 >> 64", Signed(-1)),
            ("-1 < 1", Signed(1)),
            ("-1 < 1U", Signed(0)),
            ("1<<4|1", Signed(17)),
            ("-8>>1", Signed(-4)),
            ("(.u64)-8>>1", Unsigned(0x7fff_ffff_ffff_fffc)),
            ("1 ? 2 : 3", Signed(2)),
            ("!5 || 0 && 1", Signed(0)),
            ("(.s64) 2.75", Signed(2)),
            ("1.5*2", F64(3f64.to_bits())),
            ("WARP_SZ-1", Signed(31)),
            ("10-3-2", Signed(5)),
            ("0x8000000000000000/-1", Unsigned(0)),
        ] {
            assert_eq!(value(text), Some(expected), "{text}");
        }
        for bad in ["1/0", "1U % 0", "~1.5", "1.0%2.0", "(1", "1+"] {
            assert_eq!(value(bad), None, "{bad}");
        }
    }
}
