//! Module scope: the header, functions, files, sections.

use super::declaration::Whose;
use super::{Bodies, Parsed, Parser};
use crate::ast::{
    Alias, Attributes, Body, Directives, File, Function, Item, Linkage, Module, Section, StateSpace, Target,
    Version,
};
use crate::directives::{self, Place};
use crate::error::LoadErrorKind;
use crate::lexer::TokenKind;
use crate::span::Span;
use crate::target;

/// Since then debugging information is in sections.
const NO_DWARF: Version = Version { major: 2, minor: 0 };

impl<'a> Parser<'a> {
    /// The whole module; `None` if even its header cannot be used.
    pub(super) fn module(&mut self) -> Option<Module<'a>> {
        let (version, target, address_size) = self.header().ok()?;
        let mut module = Module { version, target, address_size, items: Vec::new() };
        while self.token.kind != TokenKind::End && !self.gives_up() {
            let start = self.token.span.start;
            if self.item(&mut module).is_err() {
                if self.token.kind == TokenKind::Unterminated {
                    break;
                }
                if self.token.span.start == start {
                    self.advance();
                }
                self.recover_item();
            }
        }
        self.has_promised_sections(&module);
        Some(module)
    }

    /// A target with `debug` comes with sections of debugging information.
    fn has_promised_sections(&mut self, module: &Module<'a>) {
        let promise = module.target.options.iter().find(|option| option.text == "debug");
        let is_kept = module.items.iter().any(|item| matches!(item, Item::Section(_)));
        if let Some(promise) = promise.filter(|_| !is_kept && self.errors.is_empty()) {
            self.error(promise.span, "no debugging information, which .target 'debug' announces");
        }
    }

    /// `.version`, `.target`, `.address_size`. A module for another world is not read further: its later
    /// syntax need not be ours.
    fn header(&mut self) -> Parsed<(Version, Target<'a>, Option<u32>)> {
        if !self.eat_dotted("version") {
            let kind = LoadErrorKind::NotPtx;
            return Err(self.error_of(kind, self.token.span, "PTX begins with a .version directive"));
        }
        let span = self.token.span;
        let version = self.version()?;
        if let Err((kind, message)) = target::check_version(version) {
            return Err(self.error_of(kind, span, message));
        }
        self.version = version;
        if self.dotted() != Some("target") {
            return Err(self.unexpected("a .target directive"));
        }
        let target = self.target(version)?;
        let address_size =
            if self.dotted() == Some("address_size") { Some(self.address_size()?) } else { None };
        Ok((version, target, address_size))
    }

    fn address_size(&mut self) -> Parsed<u32> {
        self.advance();
        let span = self.token.span;
        match self.small()? {
            64 => Ok(64),
            32 => {
                let kind = LoadErrorKind::AddressSize;
                Err(self.error_of(kind, span, "32-bit addresses are not supported"))
            }
            _ => Err(self.error(span, "an address has 32 or 64 bits")),
        }
    }

    fn version(&mut self) -> Parsed<Version> {
        let span = self.token.span;
        let parsed = self
            .text(span)
            .split_once('.')
            .and_then(|(major, minor)| Some(Version { major: digits(major)?, minor: digits(minor)? }));
        match parsed.filter(|_| self.token.kind == TokenKind::Number) {
            Some(version) => {
                self.advance();
                Ok(version)
            }
            None => Err(self.unexpected("a version such as 8.3")),
        }
    }

    /// One `.target` or more: the first begins with the architecture.
    fn target(&mut self, version: Version) -> Parsed<Target<'a>> {
        self.advance();
        let mut words = self.comma_separated(|p| p.name("a target"))?;
        while self.eat_dotted("target") {
            words.extend(self.comma_separated(|p| p.name("a target"))?);
        }
        let architecture = words.remove(0);
        let Some(parsed) = target::Architecture::parse(architecture.text) else {
            return Err(self.error(architecture.span, format!("unknown .target '{}'", architecture.text)));
        };
        for (at, option) in words.iter().enumerate() {
            if let Err(message) = target::check_option(version, parsed.sm, &words[..at], option.text) {
                return Err(self.error(option.span, message));
            }
        }
        let target = Target { architecture, options: words };
        if let Err((kind, message)) = target::check_target(version, &target, self.options.device) {
            return Err(self.error_of(kind, target.architecture.span, message));
        }
        Ok(target)
    }

    fn item(&mut self, module: &mut Module<'a>) -> Parsed<()> {
        let start = self.token.span;
        if self.token.kind == TokenKind::Dwarf {
            let span = self.advance().span;
            if self.version >= NO_DWARF {
                let message = format!(
                    "the directive '@@DWARF' is not there any more since PTX ISA .version {NO_DWARF}"
                );
                self.error(span, message);
            }
            return Ok(());
        }
        let linkage = self.linkage();
        match self.dotted() {
            Some("entry" | "func") => {
                let function = self.function(start, linkage)?;
                module.items.push(Item::Function(function));
            }
            Some(word) if StateSpace::from_name(word).is_some_and(|space| space != StateSpace::Reg) => {
                let variables = self.variables_after_linkage(start, linkage)?;
                module.items.extend(variables.into_iter().map(Item::Variable));
            }
            _ if linkage != Linkage::Private => return Err(self.unexpected("a function or variable")),
            Some("file") => module.items.push(Item::File(self.file()?)),
            Some("section") => module.items.push(Item::Section(self.section()?)),
            Some("pragma") => {
                let pragma = self.pragma()?;
                // Functions may say what nobody knows, modules may not.
                if let Some(unknown) = pragma.iter().find(|text| !directives::is_pragma(text)) {
                    let message = format!("the pragma \"{unknown}\" is not supported");
                    return Err(self.error(self.since(start), message));
                }
                module.items.push(Item::Pragma(pragma));
            }
            Some("alias") => module.items.push(Item::Alias(self.alias()?)),
            Some("loc") => self.loc()?,
            Some("address_size") if module.address_size.is_none() => {
                module.address_size = Some(self.address_size()?);
            }
            Some("version" | "target" | "address_size") => {
                return Err(self.error(start, "this directive stands at the start only"));
            }
            _ => return Err(self.unexpected("a directive")),
        }
        Ok(())
    }

    fn function(&mut self, start: Span, linkage: Linkage) -> Parsed<Function<'a>> {
        let is_entry = self.dotted() == Some("entry");
        self.advance();
        let mut attributes = Attributes::default();
        while self.dotted() == Some("attribute") {
            self.attributes(&mut attributes)?;
        }
        let whose = if is_entry { Whose::Kernel } else { Whose::Callee };
        let returns = if is_entry { Vec::new() } else { self.parameters(whose)? };
        let name = self.name("a function's name")?;
        let params = self.parameters(whose)?;
        let directives = self.function_directives(is_entry)?;
        let span = self.since(start);
        let body = Body::Declared;
        let mut function =
            Function { linkage, is_entry, attributes, name, returns, params, directives, body, span };
        if self.eat(b';') {
            return Ok(function);
        }
        if !self.at(b'{') {
            return Err(self.unexpected("'{' or ';'"));
        }
        function.body = match self.options.bodies {
            Bodies::Parsed => Body::Parsed(self.code()?),
            Bodies::Skipped => {
                let open = self.token.span;
                match self.skip_braces() {
                    Some(span) => Body::Skipped(span),
                    None => return Err(self.error(open, "this '{' is not closed")),
                }
            }
        };
        Ok(function)
    }

    /// Directives between a function's parameters and its body.
    pub(super) fn function_directives(&mut self, is_entry: bool) -> Parsed<Directives<'a>> {
        let mut d = Directives::default();
        let start = self.token.span;
        while let Some(word) = self.dotted() {
            self.directive_of_function(word, is_entry)?;
            match word {
                "maxntid" => d.maxntid = Some(self.triple()?),
                "reqntid" => d.reqntid = Some(self.triple()?),
                "reqnctapercluster" => d.reqnctapercluster = Some(self.triple()?),
                "minnctapersm" => d.minnctapersm = Some(self.single()?),
                "maxnreg" => d.maxnreg = Some(self.single()?),
                "maxclusterrank" => d.maxclusterrank = Some(self.single()?),
                "abi_preserve" => d.abi_preserve = Some(self.single()?),
                "abi_preserve_control" => d.abi_preserve_control = Some(self.single()?),
                "noreturn" => d.noreturn = self.flag(),
                "explicitcluster" => d.explicitcluster = self.flag(),
                "blocksareclusters" => d.blocksareclusters = self.flag(),
                "pragma" => d.pragmas.extend(self.pragma()?),
                _ => return Err(self.unexpected("a directive of functions, '{' or ';'")),
            }
        }
        if let Some(why) = contradiction(&d) {
            let span = self.since(start);
            self.error_of(LoadErrorKind::Type, span, why);
        }
        Ok(d)
    }

    /// Whether the directive may stand at such a function, in this version.
    fn directive_of_function(&mut self, word: &str, is_entry: bool) -> Parsed<()> {
        let span = self.token.span;
        let Some(directive) = directives::of_function(word) else {
            let gone = "this directive is not there any more since PTX ISA .version 2.1";
            return if word == "maxnctapersm" { Err(self.error(span, gone)) } else { Ok(()) };
        };
        let place = if is_entry { Place::Kernel } else { Place::Callee };
        if directive.place != place {
            let whose = if is_entry { "functions that are called" } else { "kernels" };
            return Err(self.error(span, format!("the directive '.{word}' is for {whose}")));
        }
        if self.version < directive.version {
            let Version { major, minor } = directive.version;
            let message =
                format!("the directive '.{word}' requires PTX ISA .version {major}.{minor} or later");
            self.error_of(LoadErrorKind::VersionTooOld, span, message);
        }
        Ok(())
    }

    fn flag(&mut self) -> bool {
        self.advance();
        true
    }

    fn single(&mut self) -> Parsed<u32> {
        self.advance();
        self.small()
    }

    fn triple(&mut self) -> Parsed<[u32; 3]> {
        self.advance();
        let mut values = [1; 3];
        for (i, value) in values.iter_mut().enumerate() {
            if i > 0 && !self.eat(b',') {
                break;
            }
            *value = self.small()?;
        }
        Ok(values)
    }

    /// `.pragma "…", "…";`
    pub(super) fn pragma(&mut self) -> Parsed<Vec<&'a str>> {
        self.advance();
        let strings = self.comma_separated(Self::string)?;
        self.expect(b';')?;
        Ok(strings)
    }

    fn alias(&mut self) -> Parsed<Alias<'a>> {
        self.advance();
        let name = self.name("a function")?;
        self.expect(b',')?;
        let target = self.name("a function")?;
        self.expect(b';')?;
        Ok(Alias { name, target })
    }

    /// `.file index "name", timestamp, size`, no semicolon.
    pub(super) fn file(&mut self) -> Parsed<File<'a>> {
        self.advance();
        let index = self.number()?;
        let name = self.string()?;
        let details = if self.eat(b',') {
            let timestamp = self.number()?;
            self.expect(b',')?;
            Some((timestamp, self.number()?))
        } else {
            None
        };
        Ok(File { index, name, details })
    }

    /// `.section .name { … }`
    fn section(&mut self) -> Parsed<Section<'a>> {
        self.advance();
        let start = self.token.span;
        while matches!(self.token.kind, TokenKind::Dotted | TokenKind::Word) {
            self.advance();
        }
        let name = self.text(self.since(start)).trim();
        if name.is_empty() {
            return Err(self.unexpected("a section's name"));
        }
        if !self.at(b'{') {
            return Err(self.unexpected("'{'"));
        }
        let open = self.token.span;
        let Some(span) = self.skip_braces() else {
            return Err(self.error(open, "this '{' is not closed"));
        };
        Ok(Section { name, text: self.text(Span::new(span.start + 1, span.end - 1)) })
    }
}

/// What is wrong with the directives of one kernel.
fn contradiction(d: &Directives<'_>) -> Option<&'static str> {
    let zero = |sizes: Option<[u32; 3]>| sizes.is_some_and(|sizes| sizes.contains(&0));
    if d.maxntid.is_some() && d.reqntid.is_some() {
        Some(".maxntid and .reqntid contradict each other")
    } else if d.maxclusterrank.is_some() && d.reqnctapercluster.is_some() {
        Some(".maxclusterrank and .reqnctapercluster contradict each other")
    } else if d.blocksareclusters && (d.reqntid.is_none() || d.reqnctapercluster.is_none()) {
        Some(".blocksareclusters requires .reqntid and .reqnctapercluster")
    } else if zero(d.maxntid) || zero(d.reqntid) || d.maxnreg == Some(0) {
        Some("a limit of zero leaves nothing")
    } else {
        None
    }
}

fn digits(text: &str) -> Option<u32> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}
