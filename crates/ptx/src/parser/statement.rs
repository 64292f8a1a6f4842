//! Function bodies.

use super::declaration::Whose;
use super::{Parsed, Parser};
use crate::ast::{
    Block, Code, Guard, Inlined, Instruction, Linkage, Loc, Name, NameList, Prototype, RegisterName,
    Registers, StateSpace, Statement,
};
use crate::lexer::TokenKind;
use crate::span::Span;

/// The `.loc` lines of the function being read.
#[derive(Default)]
pub(super) struct Locs<'a> {
    used: Vec<Loc<'a>>,
    /// The last line, if no instruction has used it yet.
    pending: Option<Loc<'a>>,
}

impl<'a> Locs<'a> {
    /// Index of the line that holds for an instruction here.
    fn current(&mut self) -> Option<u32> {
        if let Some(loc) = self.pending.take()
            && self.used.last() != Some(&loc)
        {
            self.used.push(loc);
        }
        self.used.len().checked_sub(1).map(|last| last as u32)
    }
}

impl<'a> Parser<'a> {
    /// A function's body; the next token is its `{`.
    pub(super) fn code(&mut self) -> Parsed<Code<'a>> {
        self.locs = Locs::default();
        let block = self.block()?;
        Ok(Code { block, locs: std::mem::take(&mut self.locs.used) })
    }

    fn block(&mut self) -> Parsed<Block<'a>> {
        let start = self.token.span;
        self.expect(b'{')?;
        let mut statements = Vec::new();
        while !self.at(b'}') {
            if self.gives_up() || matches!(self.token.kind, TokenKind::End | TokenKind::Unterminated) {
                return Err(self.unexpected("'}'"));
            }
            if self.statement(&mut statements).is_err() {
                self.recover_statement();
            }
        }
        self.advance();
        Ok(Block { statements, span: self.since(start) })
    }

    fn statement(&mut self, into: &mut Vec<Statement<'a>>) -> Parsed<()> {
        match self.token.kind {
            TokenKind::Word => {
                let name = self.name("an instruction")?;
                if self.at(b':') {
                    self.advance();
                    into.push(self.labelled(name)?);
                } else {
                    let instruction = self.instruction(name.span, None, name)?;
                    into.push(Statement::Instruction(instruction));
                }
            }
            TokenKind::Punctuation(b'@') => {
                let start = self.advance().span;
                let negated = self.eat(b'!');
                let register = self.name("a predicate")?;
                let opcode = self.name("an instruction")?;
                let instruction = self.instruction(start, Some(Guard { negated, register }), opcode)?;
                into.push(Statement::Instruction(instruction));
            }
            TokenKind::Punctuation(b'{') => {
                let block = self.nested(Self::block)?;
                into.push(Statement::Block(block));
            }
            TokenKind::Dotted => self.directive(into)?,
            _ => return Err(self.unexpected("a statement")),
        }
        Ok(())
    }

    /// The rest of an instruction, up to its semicolon.
    fn instruction(
        &mut self,
        start: Span,
        guard: Option<Guard<'a>>,
        opcode: Name<'a>,
    ) -> Parsed<Instruction<'a>> {
        let mut modifiers = Vec::new();
        while let Some(text) = self.dotted() {
            modifiers.push(Name { text, span: self.advance().span });
        }
        let in_call = opcode.text == "call";
        let operands = if self.at(b';') { Vec::new() } else { self.comma_separated(|p| p.operand(in_call))? };
        if !self.eat(b';') {
            return Err(self.unexpected("',' or ';'"));
        }
        let loc = self.locs.current();
        Ok(Instruction { guard, opcode, modifiers, operands, loc, span: self.since(start) })
    }

    /// What follows `name:`.
    fn labelled(&mut self, name: Name<'a>) -> Parsed<Statement<'a>> {
        let statement = match self.dotted() {
            Some("callprototype") => {
                self.advance();
                Statement::Prototype(self.prototype(name)?)
            }
            Some("calltargets") => {
                self.advance();
                let names = self.comma_separated(|p| p.name("a function"))?;
                Statement::CallTargets(NameList { name, names })
            }
            Some("branchtargets") => {
                self.advance();
                let names = self.comma_separated(|p| p.name("a label"))?;
                Statement::BranchTargets(NameList { name, names })
            }
            _ => return Ok(Statement::Label(name)),
        };
        self.expect(b';')?;
        Ok(statement)
    }

    /// `.callprototype (returns) _ (params) directives`
    fn prototype(&mut self, name: Name<'a>) -> Parsed<Prototype<'a>> {
        let returns = self.parameters(Whose::Callee)?;
        let placeholder = self.token.span;
        if self.name("'_'")?.text != "_" {
            return Err(self.error(placeholder, "a prototype has '_' for the function's name"));
        }
        let params = self.parameters(Whose::Callee)?;
        let directives = self.function_directives(false)?;
        Ok(Prototype { name, returns, params, directives })
    }

    fn directive(&mut self, into: &mut Vec<Statement<'a>>) -> Parsed<()> {
        match self.dotted().unwrap_or_default() {
            "reg" => into.push(Statement::Registers(self.registers()?)),
            "loc" => self.loc()?,
            "pragma" => into.push(Statement::Pragma(self.pragma()?)),
            "file" => {
                self.file()?;
            }
            word if StateSpace::from_name(word).is_some() => {
                for mut variable in self.variables()? {
                    if matches!(variable.space, StateSpace::Global | StateSpace::Const) {
                        variable.linkage = Linkage::Block;
                    }
                    into.push(Statement::Variable(variable));
                }
            }
            "extern" | "visible" | "weak" | "common" => {
                return Err(self.error(self.token.span, "only what stands at module scope has linkage"));
            }
            _ => return Err(self.unexpected("a directive")),
        }
        Ok(())
    }

    fn registers(&mut self) -> Parsed<Registers<'a>> {
        let start = self.advance().span;
        let head = self.type_head(Whose::Nobody)?;
        let names = self.comma_separated(|p| {
            let name = p.name("a register")?;
            let count = p.range_count()?;
            Ok(RegisterName { name, count })
        })?;
        self.expect(b';')?;
        Ok(Registers { align: head.align, vector: head.vector, ty: head.ty, names, span: self.since(start) })
    }

    /// `.loc file line column, function_name label+offset, inlined_at file line column`, no semicolon.
    pub(super) fn loc(&mut self) -> Parsed<()> {
        self.advance();
        let (file, line, column) = (self.number()?, self.number()?, self.number()?);
        let inlined = if self.eat(b',') { Some(self.inlined()?) } else { None };
        self.locs.pending = Some(Loc { file, line, column, inlined });
        Ok(())
    }

    fn inlined(&mut self) -> Parsed<Inlined<'a>> {
        if self.word() != Some("function_name") {
            return Err(self.unexpected("'function_name'"));
        }
        self.advance();
        let function = self.name("a label")?;
        let offset = self.optional_offset()?.unwrap_or(0);
        self.expect(b',')?;
        if self.word() != Some("inlined_at") {
            return Err(self.unexpected("'inlined_at'"));
        }
        self.advance();
        let (file, line, column) = (self.number()?, self.number()?, self.number()?);
        Ok(Inlined { function, offset, file, line, column })
    }
}
