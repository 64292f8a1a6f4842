//! Operands of instructions.

use super::{Parsed, Parser};
use crate::ast::{Address, Component, Name, Operand, OperandKind};
use crate::lexer::TokenKind;

impl<'a> Parser<'a> {
    /// One operand. Parentheses are argument lists in a call, and constant expressions elsewhere.
    pub(super) fn operand(&mut self, in_call: bool) -> Parsed<Operand<'a>> {
        self.nested(|p| {
            if in_call && p.at(b'(') {
                let start = p.token.span;
                let list = p.delimited(b')', |p| p.operand(false))?;
                return Ok(Operand { kind: OperandKind::List(list), span: p.since(start) });
            }
            let first = p.simple_operand()?;
            if !p.eat(b'|') {
                return Ok(first);
            }
            let second = p.simple_operand()?;
            let span = first.span.to(second.span);
            Ok(Operand { kind: OperandKind::Pair(Box::new(first), Box::new(second)), span })
        })
    }

    fn simple_operand(&mut self) -> Parsed<Operand<'a>> {
        let start = self.token.span;
        let kind = match self.token.kind {
            TokenKind::Punctuation(b'{') => OperandKind::Vector(self.delimited(b'}', |p| p.operand(false))?),
            TokenKind::Punctuation(b'[') => OperandKind::Address(Box::new(self.address()?)),
            TokenKind::Punctuation(sign @ (b'!' | b'-')) if self.word_follows() => {
                self.advance();
                let operand = Box::new(self.named_operand()?);
                if sign == b'!' { OperandKind::Not(operand) } else { OperandKind::Negate(operand) }
            }
            _ if self.at_constant() => OperandKind::Immediate(self.constant()?),
            TokenKind::Word => return self.named_operand(),
            _ => return Err(self.unexpected("an operand")),
        };
        Ok(Operand { kind, span: self.since(start) })
    }

    /// Whether the token after the next one is an identifier that stands for no number.
    fn word_follows(&self) -> bool {
        let mut ahead = self.lexer.clone();
        let token = ahead.next_token();
        token.kind == TokenKind::Word && self.text(token.span) != "WARP_SZ"
    }

    /// An operand that begins with a name.
    fn named_operand(&mut self) -> Parsed<Operand<'a>> {
        let name = self.name("a name")?;
        let kind = if name.text == "_" {
            OperandKind::Sink
        } else if let Some(suffix) = self.dotted() {
            let Some(component) = Component::from_name(suffix) else {
                return Err(self.unexpected("a component such as '.x' or '.b0'"));
            };
            self.advance();
            OperandKind::Component(name, component)
        } else if self.at(b'[') {
            self.element(name)?
        } else if let Some(offset) = self.optional_offset()? {
            OperandKind::SymbolOffset(name, offset)
        } else {
            OperandKind::Name(name)
        };
        Ok(Operand { kind, span: self.since(name.span) })
    }

    fn element(&mut self, array: Name<'a>) -> Parsed<OperandKind<'a>> {
        self.advance();
        let index = self.operand(false)?;
        self.expect(b']')?;
        Ok(OperandKind::Element(array, Box::new(index)))
    }

    /// `+ constant`, or nothing. What is less is added too: `a+-4`.
    pub(super) fn optional_offset(&mut self) -> Parsed<Option<i64>> {
        if self.at(b'-') {
            let message = "syntax error near '-': an offset is added, as in 'a+-4'";
            return Err(self.error(self.token.span, message));
        }
        if self.eat(b'+') { self.integer().map(Some) } else { Ok(None) }
    }

    /// `[base+offset, …]`
    fn address(&mut self) -> Parsed<Address<'a>> {
        self.advance();
        let start = self.token.span;
        let (kind, offset) = if self.token.kind == TokenKind::Word && !self.at_constant() {
            let name = self.name("a name")?;
            if self.at(b'[') {
                let message =
                    "syntax error near '[': an element of an array stands without brackets around it";
                return Err(self.error(self.token.span, message));
            }
            let span = self.since(start);
            let offset = self.optional_offset()?;
            if offset.is_some() && self.at(b',') {
                let message = "syntax error near ',': an object has no offset";
                return Err(self.error(self.token.span, message));
            }
            (Operand { kind: OperandKind::Name(name), span }, offset.unwrap_or(0))
        } else if self.at_constant() {
            let kind = OperandKind::Immediate(self.constant()?);
            (Operand { kind, span: self.since(start) }, 0)
        } else {
            return Err(self.unexpected("an address"));
        };
        let rest = if self.eat(b',') { self.comma_separated(|p| p.operand(false))? } else { Vec::new() };
        self.expect(b']')?;
        let unified = self.eat_dotted("unified");
        Ok(Address { base: kind, offset, rest, unified })
    }
}
