//! Variables, parameters and their initial values.

use super::{Parsed, Parser};
use crate::ast::{
    AddressInitialiser, Attributes, Field, FieldValue, Initialiser, Linkage, Pointer, StateSpace, Type,
    Variable, Version,
};
use crate::lexer::TokenKind;
use crate::span::Span;

/// What stands between the state space and the name.
pub(super) struct TypeHead {
    pub attributes: Attributes,
    pub align: Option<u32>,
    pub vector: Option<u32>,
    pub ty: Type,
    pub pointer: Option<Pointer>,
}

/// Since then constants are in no banks.
const NO_BANKS: Version = Version { major: 2, minor: 2 };

/// Whose parameter is declared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// A kernel's.
    Kernel,
    /// A function's that is called, or a prototype's.
    Callee,
    /// It is no parameter.
    Nobody,
}

impl<'a> Parser<'a> {
    /// A linkage directive, if one is next.
    pub(super) fn linkage(&mut self) -> Linkage {
        let linkage = match self.dotted() {
            Some("visible") => Linkage::Visible,
            Some("extern") => Linkage::Extern,
            Some("weak") => Linkage::Weak,
            Some("common") => Linkage::Common,
            _ => return Linkage::Private,
        };
        self.advance();
        linkage
    }

    /// Declarations of one type up to the semicolon, linkage included.
    pub(super) fn variables(&mut self) -> Parsed<Vec<Variable<'a>>> {
        let start = self.token.span;
        let linkage = self.linkage();
        self.variables_after_linkage(start, linkage)
    }

    pub(super) fn variables_after_linkage(
        &mut self,
        start: Span,
        linkage: Linkage,
    ) -> Parsed<Vec<Variable<'a>>> {
        let (space, bank) = self.state_space()?;
        let head = self.type_head(Whose::Nobody)?;
        let list = self.comma_separated(|p| p.declarator(start, linkage, space, bank, &head))?;
        self.expect(b';')?;
        Ok(list)
    }

    /// `( … )` of parameters, or nothing.
    pub(super) fn parameters(&mut self, whose: Whose) -> Parsed<Vec<Variable<'a>>> {
        if !self.at(b'(') {
            return Ok(Vec::new());
        }
        self.delimited(b')', |p| {
            let start = p.token.span;
            let (space, bank) = p.state_space()?;
            if !matches!(space, StateSpace::Param | StateSpace::Reg) {
                return Err(p.error(p.since(start), "parameters are in .param or .reg"));
            }
            let head = p.type_head(whose)?;
            let parameter = p.declarator(start, Linkage::Private, space, bank, &head)?;
            if parameter.count.is_some() {
                return Err(p.error(parameter.span, "parameters are declared one by one"));
            }
            Ok(parameter)
        })
    }

    fn state_space(&mut self) -> Parsed<(StateSpace, Option<u32>)> {
        let Some(space) = self.dotted().and_then(StateSpace::from_name) else {
            return Err(self.unexpected("a state space"));
        };
        self.advance();
        if space != StateSpace::Const || !self.eat(b'[') {
            return Ok((space, None));
        }
        let span = self.token.span;
        let bank = self.small()?;
        self.expect(b']')?;
        if self.version >= NO_BANKS {
            let message =
                format!("there are no banks of constants any more since PTX ISA .version {NO_BANKS}");
            return Err(self.error(span, message));
        }
        Ok((space, Some(bank)))
    }

    /// `.attribute(…) .align n .v4 .f32 .ptr .global .align n`, in any sensible order.
    pub(super) fn type_head(&mut self, whose: Whose) -> Parsed<TypeHead> {
        let mut attributes = Attributes::default();
        let (mut align, mut vector, mut ty, mut pointer) = (None, None, None, None);
        while let Some(word) = self.dotted() {
            match word {
                "attribute" => self.attributes(&mut attributes)?,
                "align" => align = Some(self.alignment()?),
                "v2" | "v4" if vector.is_none() => {
                    vector = Some(u32::from(word.as_bytes()[1] - b'0'));
                    self.advance();
                }
                "ptr" if ty.is_some() && pointer.is_none() => {
                    if whose != Whose::Kernel {
                        self.error(self.token.span, "'.ptr' is for parameters of kernels");
                    }
                    pointer = Some(self.pointer()?);
                }
                _ => match Type::from_name(word).filter(|_| ty.is_none()) {
                    Some(found) => {
                        ty = Some(found);
                        self.advance();
                    }
                    None => return Err(self.unexpected("a type")),
                },
            }
        }
        let Some(ty) = ty else { return Err(self.unexpected("a type")) };
        Ok(TypeHead { attributes, align, vector, ty, pointer })
    }

    /// `.attribute(.managed, .unified(a, b))`
    pub(super) fn attributes(&mut self, into: &mut Attributes) -> Parsed<()> {
        self.advance();
        if !self.at(b'(') {
            return Err(self.unexpected("'('"));
        }
        self.delimited(b')', |p| {
            if p.eat_dotted("managed") {
                into.managed = true;
            } else if p.eat_dotted("unified") {
                p.expect(b'(')?;
                let first = p.number()?;
                p.expect(b',')?;
                into.unified = Some((first, p.number()?));
                p.expect(b')')?;
            } else {
                return Err(p.unexpected("'.managed' or '.unified'"));
            }
            Ok(())
        })?;
        Ok(())
    }

    fn alignment(&mut self) -> Parsed<u32> {
        self.advance();
        let start = self.token.span;
        let value = self.small()?;
        if !value.is_power_of_two() {
            return Err(self.error(self.since(start), "an alignment is a power of two"));
        }
        Ok(value)
    }

    fn pointer(&mut self) -> Parsed<Pointer> {
        self.advance();
        let mut pointer = Pointer { space: None, align: None };
        let space = self.dotted().and_then(StateSpace::from_name);
        let to = |space: &StateSpace| {
            matches!(space, StateSpace::Const | StateSpace::Global | StateSpace::Local | StateSpace::Shared)
        };
        if let Some(space) = space.filter(to) {
            pointer.space = Some(space);
            self.advance();
        }
        if self.dotted() == Some("align") {
            pointer.align = Some(self.alignment()?);
        }
        Ok(pointer)
    }

    /// A name and what is particular to it.
    fn declarator(
        &mut self,
        start: Span,
        linkage: Linkage,
        space: StateSpace,
        bank: Option<u32>,
        head: &TypeHead,
    ) -> Parsed<Variable<'a>> {
        let name = self.name("a name")?;
        let count = self.range_count()?;
        let mut dimensions = Vec::new();
        while self.eat(b'[') {
            dimensions.push(if self.at(b']') { None } else { Some(self.dimension()?) });
            self.expect(b']')?;
        }
        let initialiser = if self.eat(b'=') { Some(self.initialiser()?) } else { None };
        let TypeHead { attributes, align, vector, ty, pointer } = *head;
        let span = self.since(start);
        Ok(Variable {
            linkage,
            space,
            bank,
            attributes,
            align,
            vector,
            ty,
            pointer,
            name,
            count,
            dimensions,
            initialiser,
            span,
        })
    }

    fn dimension(&mut self) -> Parsed<u64> {
        let start = self.token.span;
        let value = self.integer()?;
        u64::try_from(value).map_err(|_| self.error(self.since(start), "an array has no negative size"))
    }

    /// `<count>` after a name.
    pub(super) fn range_count(&mut self) -> Parsed<Option<u32>> {
        if !self.eat(b'<') {
            return Ok(None);
        }
        let start = self.token.span;
        let count = self.number()?;
        self.expect(b'>')?;
        let count = u32::try_from(count).map_err(|_| self.error(start, "too many variables"))?;
        Ok(Some(count))
    }

    fn initialiser(&mut self) -> Parsed<Initialiser<'a>> {
        self.nested(|p| {
            if p.at(b'{') {
                return p.initialiser_list();
            }
            if p.token.kind == TokenKind::Word && !p.at_constant() {
                return Ok(Initialiser::Address(p.address_initialiser(None)?));
            }
            let start = p.token.span;
            let value = p.constant()?;
            if !p.at(b'(') {
                return Ok(Initialiser::Value(value));
            }
            let Some(mask) = value.integer() else {
                return Err(p.error(p.since(start), "a mask is an integer"));
            };
            p.advance();
            let address = p.address_initialiser(Some(mask))?;
            p.expect(b')')?;
            Ok(Initialiser::Address(address))
        })
    }

    /// `{ … }`: values, or `field = value`.
    fn initialiser_list(&mut self) -> Parsed<Initialiser<'a>> {
        let mut ahead = self.lexer.clone();
        let is_field = ahead.next_token().kind == TokenKind::Word
            && ahead.next_token().kind == TokenKind::Punctuation(b'=');
        if is_field {
            return Ok(Initialiser::Fields(self.delimited(b'}', Self::field)?));
        }
        Ok(Initialiser::List(self.delimited(b'}', Self::initialiser)?))
    }

    fn field(&mut self) -> Parsed<Field<'a>> {
        let name = self.name("a field")?;
        self.expect(b'=')?;
        let value = if self.token.kind == TokenKind::Word {
            FieldValue::Word(self.name("a value")?)
        } else {
            FieldValue::Number(self.constant()?)
        };
        Ok(Field { name, value })
    }

    /// `symbol+offset` or `generic(symbol)+offset`.
    fn address_initialiser(&mut self, mask: Option<u64>) -> Parsed<AddressInitialiser<'a>> {
        let mut symbol = self.name("a symbol")?;
        let generic = symbol.text == "generic" && self.eat(b'(');
        if generic {
            symbol = self.name("a symbol")?;
            self.expect(b')')?;
        }
        let offset = self.optional_offset()?.unwrap_or(0);
        Ok(AddressInitialiser { symbol, generic, offset, mask })
    }
}
