//! What is wrong with a PTX text, in terms that a driver can map to its codes and a person can act on.

use std::fmt;

use crate::origin::Origin;
use crate::span::{Span, position};

/// The class of an error, which decides the code a loader answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoadErrorKind {
    /// The text does not begin as PTX does, with `.version`: an invalid image rather than invalid PTX.
    NotPtx,
    /// The grammar is violated.
    Syntax,
    /// A name is undefined, or defined twice.
    Name,
    /// Operands, types or modifiers do not fit the instruction.
    Type,
    /// `.version` names a major version later than is understood.
    UnsupportedVersion,
    /// `.target` names an architecture this device cannot stand in for.
    NewerTarget,
    /// `.version` is older than the first version that knows the `.target`, or an instruction.
    VersionTooOld,
    /// The module asks for 32-bit addresses.
    AddressSize,
    /// A symbol that is declared and used is defined nowhere.
    Unresolved,
    /// A symbol is defined in more than one module.
    MultiplyDefined,
    /// Correct PTX that is not implemented; the text names it.
    Unsupported,
    /// A limit is exceeded: nesting depth, text size.
    TooLarge,
}

/// One error with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// The class.
    pub kind: LoadErrorKind,
    /// Line, from 1; 0 if the error has no place.
    pub line: u32,
    /// Column in bytes, from 1; 0 if the error has no place.
    pub column: u32,
    /// The offending text; may be empty at the end of the input.
    pub text: String,
    /// What is wrong, for people.
    pub message: String,
    /// Where the program's source has the place, if the text tells.
    pub origin: Option<Origin>,
}

impl LoadError {
    /// An error at `span` of `source`.
    pub fn at(kind: LoadErrorKind, source: &str, span: Span, message: impl Into<String>) -> LoadError {
        let place = position(source, span.start);
        let mut text = span.text(source);
        if let Some((end, _)) = text.char_indices().nth(MAX_QUOTED) {
            text = &text[..end];
        }
        LoadError {
            kind,
            line: place.line,
            column: place.column,
            text: text.to_owned(),
            message: message.into(),
            origin: Origin::of(source, span.start as usize),
        }
    }

    /// An error about a whole module or symbol, with no place in a text.
    pub fn without_place(
        kind: LoadErrorKind,
        text: impl Into<String>,
        message: impl Into<String>,
    ) -> LoadError {
        LoadError { kind, line: 0, column: 0, text: text.into(), message: message.into(), origin: None }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line != 0 {
            write!(f, "line {}, column {}: ", self.line, self.column)?;
        }
        f.write_str(&self.message)?;
        let quoted = format!("'{}'", self.text);
        if !self.text.is_empty() && !self.message.contains(&quoted) {
            write!(f, " ({quoted})")?;
        }
        match &self.origin {
            Some(origin) => write!(f, ", from {origin}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for LoadError {}

/// The errors of one text, in order of place, at least one and at most [`Errors::LIMIT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors {
    list: Vec<LoadError>,
}

impl Errors {
    /// After this many errors a text is not looked at further.
    pub const LIMIT: usize = 20;

    /// The errors as a value, if there are any; puts them in order.
    pub fn from_list(mut list: Vec<LoadError>) -> Result<(), Errors> {
        list.sort_by_key(|error| (error.line, error.column));
        list.truncate(Errors::LIMIT);
        if list.is_empty() { Ok(()) } else { Err(Errors { list }) }
    }

    /// The class that decides how the whole load is answered: the first error's.
    pub fn kind(&self) -> LoadErrorKind {
        self.list[0].kind
    }

    /// All of them.
    pub fn list(&self) -> &[LoadError] {
        &self.list
    }
}

impl From<LoadError> for Errors {
    fn from(error: LoadError) -> Errors {
        Errors { list: vec![error] }
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.list.iter().enumerate() {
            if i != 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}

/// Longest piece of source quoted in an error, in characters.
const MAX_QUOTED: usize = 80;
