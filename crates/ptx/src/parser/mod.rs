//! Tokens to syntax tree, by recursive descent. Nesting is limited, so no input can exhaust the stack, and
//! after an error reading goes on at the next statement, so one run reports several.

mod declaration;
mod expression;
mod item;
mod operand;
mod statement;

use crate::ast::{Body, Function, Module, Name, Version};
use crate::error::{Errors, LoadError, LoadErrorKind};
use crate::lexer::{Lexer, Token, TokenKind};
use crate::span::Span;
use crate::target::{self, Device};

/// How to read a module.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What the module must be able to run on; `None` where that was asked before.
    pub device: Option<Device>,
    /// Whether to read function bodies.
    pub bodies: Bodies,
}

impl Default for Options {
    fn default() -> Options {
        Options { device: Some(Device::default()), bodies: Bodies::default() }
    }
}

/// Which function bodies are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bodies {
    /// All.
    #[default]
    Parsed,
    /// None: they become [`Body::Skipped`], which [`Module::parse_body`] reads one by one.
    Skipped,
}

/// Reads a whole module for the default device, with all its errors.
pub fn parse(source: &str) -> Result<Module<'_>, Errors> {
    parse_with(source, &Options::default())
}

/// Reads a module.
pub fn parse_with<'a>(source: &'a str, options: &Options) -> Result<Module<'a>, Errors> {
    if source.len() >= MAX_SOURCE {
        let message = format!("the text is longer than {MAX_SOURCE} bytes");
        return Err(LoadError::without_place(LoadErrorKind::TooLarge, "", message).into());
    }
    let mut parser = Parser::new(source, 0, *options);
    let module = parser.module();
    Errors::from_list(parser.errors)?;
    Ok(module.expect("a module that is not returned has errors"))
}

impl<'a> Module<'a> {
    /// Reads the text of a PTX module.
    pub fn parse(source: &'a str) -> Result<Module<'a>, Errors> {
        parse(source)
    }

    /// Reads the body of `function`, which stands in `source`, the text its module was read from, and was
    /// skipped. Nothing happens if it is declared only, or has been read already.
    pub fn parse_body(source: &'a str, function: &mut Function<'a>) -> Result<(), Errors> {
        let Body::Skipped(span) = function.body else { return Ok(()) };
        let mut parser = Parser::new(source, span.start as usize, Options::default());
        let body = parser.code();
        Errors::from_list(parser.errors)?;
        function.body = Body::Parsed(body.expect("a body that is not returned has errors"));
        Ok(())
    }
}

const MAX_SOURCE: usize = u32::MAX as usize;
/// Deepest nesting of blocks, initialisers, vectors or expressions. Far beyond what compilers make, and few
/// enough stack frames for any thread.
const MAX_DEPTH: u32 = 128;

/// An error has been recorded, and what was being read is abandoned.
#[derive(Debug)]
struct Failed;
type Parsed<T> = Result<T, Failed>;

struct Parser<'a> {
    source: &'a str,
    lexer: Lexer<'a>,
    /// The next token, not yet consumed.
    token: Token,
    /// End of the last consumed token.
    last_end: u32,
    depth: u32,
    errors: Vec<LoadError>,
    options: Options,
    /// Of the module.
    version: Version,
    locs: statement::Locs<'a>,
}

impl<'a> Parser<'a> {
    fn new(source: &'a str, offset: usize, options: Options) -> Parser<'a> {
        let mut lexer = Lexer::at(source, offset);
        let token = lexer.next_token();
        let locs = statement::Locs::default();
        let errors = Vec::new();
        // A body read by itself has no header any more.
        let version = target::NEWEST_VERSION;
        let last_end = offset as u32;
        Parser { source, lexer, token, last_end, depth: 0, errors, options, version, locs }
    }

    /// Consumes the next token.
    fn advance(&mut self) -> Token {
        let token = self.token;
        self.last_end = token.span.end;
        self.token = self.lexer.next_token();
        token
    }

    /// Continues reading at byte `offset`.
    fn jump(&mut self, offset: usize) {
        self.lexer = Lexer::at(self.source, offset);
        self.last_end = offset as u32;
        self.token = self.lexer.next_token();
    }

    fn text(&self, span: Span) -> &'a str {
        span.text(self.source)
    }

    /// From `start` to the end of what has been consumed.
    fn since(&self, start: Span) -> Span {
        Span::new(start.start, self.last_end.max(start.start))
    }

    fn error(&mut self, span: Span, message: impl Into<String>) -> Failed {
        self.error_of(LoadErrorKind::Syntax, span, message)
    }

    fn error_of(&mut self, kind: LoadErrorKind, span: Span, message: impl Into<String>) -> Failed {
        if self.errors.len() < Errors::LIMIT {
            self.errors.push(LoadError::at(kind, self.source, span, message));
        }
        Failed
    }

    /// Whether enough errors have been seen.
    fn gives_up(&self) -> bool {
        self.errors.len() >= Errors::LIMIT
    }

    /// The error that the next token is not what is `expected`.
    fn unexpected(&mut self, expected: &str) -> Failed {
        let span = self.token.span;
        let message = match self.token.kind {
            TokenKind::End => format!("unexpected end of the text, expected {expected}"),
            TokenKind::Unknown => "unexpected character".to_owned(),
            TokenKind::Unterminated => "a comment or string does not end".to_owned(),
            _ => format!("syntax error near '{}', expected {expected}", shorten(self.text(span))),
        };
        self.error(span, message)
    }

    fn at(&self, punctuation: u8) -> bool {
        self.token.kind == TokenKind::Punctuation(punctuation)
    }

    fn eat(&mut self, punctuation: u8) -> bool {
        let found = self.at(punctuation);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, punctuation: u8) -> Parsed<()> {
        if self.eat(punctuation) {
            Ok(())
        } else {
            Err(self.unexpected(&format!("'{}'", punctuation as char)))
        }
    }

    /// The next token's text if it is a dotted word, without the dot.
    fn dotted(&self) -> Option<&'a str> {
        (self.token.kind == TokenKind::Dotted).then(|| &self.text(self.token.span)[1..])
    }

    fn eat_dotted(&mut self, word: &str) -> bool {
        let found = self.dotted() == Some(word);
        if found {
            self.advance();
        }
        found
    }

    /// The next token's text if it is an identifier.
    fn word(&self) -> Option<&'a str> {
        (self.token.kind == TokenKind::Word).then(|| self.text(self.token.span))
    }

    fn name(&mut self, expected: &str) -> Parsed<Name<'a>> {
        let Some(text) = self.word() else { return Err(self.unexpected(expected)) };
        Ok(Name { text, span: self.advance().span })
    }

    /// A string's characters, without the quotes.
    fn string(&mut self) -> Parsed<&'a str> {
        if self.token.kind != TokenKind::String {
            return Err(self.unexpected("a string"));
        }
        let span = self.advance().span;
        let text = self.text(span);
        Ok(&text[1..text.len() - 1])
    }

    /// `first separator second …` up to what is no separator.
    fn comma_separated<T>(&mut self, mut one: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut list = vec![one(self)?];
        while self.eat(b',') {
            list.push(one(self)?);
        }
        Ok(list)
    }

    /// `open first, second … close`, possibly empty; `open` has been seen but not consumed.
    fn delimited<T>(&mut self, close: u8, one: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.advance();
        if self.eat(close) {
            return Ok(Vec::new());
        }
        let list = self.comma_separated(one)?;
        self.expect(close)?;
        Ok(list)
    }

    /// Runs `inner` one level deeper.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_DEPTH {
            let message = format!("nested more than {MAX_DEPTH} levels deep");
            return Err(self.error_of(LoadErrorKind::TooLarge, self.token.span, message));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// After an error in a statement: past its `;`, or to the `}` that ends the block around it.
    fn recover_statement(&mut self) {
        let mut open = 0u32;
        loop {
            match self.token.kind {
                TokenKind::End | TokenKind::Unterminated => return,
                TokenKind::Punctuation(b';') => {
                    self.advance();
                    return;
                }
                TokenKind::Punctuation(b'{') => open += 1,
                TokenKind::Punctuation(b'}') if open == 0 => return,
                TokenKind::Punctuation(b'}') => open -= 1,
                _ => {}
            }
            self.advance();
        }
    }

    /// After an error at module scope: past a `;` or a body, or to the next thing that can only begin an item.
    fn recover_item(&mut self) {
        loop {
            match self.token.kind {
                TokenKind::End | TokenKind::Unterminated => return,
                TokenKind::Punctuation(b';') => {
                    self.advance();
                    return;
                }
                TokenKind::Punctuation(b'{') => {
                    self.skip_braces();
                    return;
                }
                TokenKind::Dotted
                    if matches!(
                        self.dotted(),
                        Some(
                            "visible" | "entry" | "func" | "global" | "const" | "extern" | "weak" | "common"
                        )
                    ) =>
                {
                    return;
                }
                _ => {
                    self.advance();
                }
            }
        }
    }

    /// Past the `}` that closes the `{` which is the next token; to the end if there is none.
    fn skip_braces(&mut self) -> Option<Span> {
        let open = self.token.span;
        let end = crate::lexer::skip_braces(self.source, open.start as usize);
        self.jump(end.unwrap_or(self.source.len()));
        end.map(|_| self.since(open))
    }
}

fn shorten(text: &str) -> &str {
    text.char_indices().nth(40).map_or(text, |(end, _)| &text[..end])
}
