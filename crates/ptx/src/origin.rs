//! Where a place in a PTX text comes from: what `.loc`, `.file` and the section `.debug_str` tell of the program's source.
//!
//! Read from the text when something has gone wrong there, so that it works for texts that cannot be parsed too and costs nothing
//! otherwise.

use std::collections::HashMap;
use std::fmt;

use crate::lexer::{Lexer, Token, TokenKind};

/// A line of a program's source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The file, as its compiler was told of it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The function that the line is in, if it was inlined and its name is known; C++ names are as the linker knows them.
    pub function: Option<String>,
}

/// Where a place in PTX comes from: the line, then the call by which its function was inlined, and so on outwards.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    places: Vec<Place>,
}

impl Origin {
    /// Where the statement at byte `offset` of a text comes from; nothing without line information.
    pub fn of(source: &str, offset: usize) -> Option<Origin> {
        // A text without line information, the usual case, is not read at all.
        if !source.contains(".loc") {
            return None;
        }
        let scan = Scan::of(source, offset);
        let mut at = scan.locs.len().checked_sub(1)?;
        let mut places = Vec::new();
        loop {
            let loc = &scan.locs[at];
            let function = loc.inlined.as_ref().and_then(|inlined| scan.name(inlined));
            places.push(scan.place(loc.file, loc.line, function)?);
            let Some(inlined) = &loc.inlined else { break };
            // A call in a function that was inlined itself has a `.loc` of its own before.
            let is_call = |earlier: &Loc| earlier.place() == inlined.at && earlier.inlined.is_some();
            match scan.locs[..at].iter().rposition(is_call) {
                Some(call) => at = call,
                None => {
                    places.push(scan.place(inlined.at.0, inlined.at.1, None)?);
                    break;
                }
            }
        }
        Some(Origin { places })
    }

    /// Where the statements on a line of a text, counted from 1, come from.
    pub fn of_line(source: &str, line: u32) -> Option<Origin> {
        let end = source.split_inclusive('\n').take(line as usize).map(str::len).sum();
        Origin::of(source, end)
    }

    /// The line itself first, the call that nothing was inlined into last. Never empty.
    pub fn places(&self) -> &[Place] {
        &self.places
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Place { file, line, function }) in self.places.iter().enumerate() {
            if index > 0 {
                f.write_str(", inlined at ")?;
            }
            write!(f, "{file}:{line}")?;
            if let Some(function) = function {
                write!(f, " in {function}")?;
            }
        }
        Ok(())
    }
}

/// `.loc file line column`, perhaps with where its function was inlined.
struct Loc {
    file: u64,
    line: u64,
    column: u64,
    inlined: Option<Inlined>,
}

/// `, function_name label+offset, inlined_at file line column`
struct Inlined {
    label: String,
    offset: u64,
    at: (u64, u64, u64),
}

impl Loc {
    fn place(&self) -> (u64, u64, u64) {
        (self.file, self.line, self.column)
    }
}

/// What a text says about its source up to a place.
#[derive(Default)]
struct Scan {
    files: HashMap<u64, String>,
    /// Those of the function that the place is in, before it.
    locs: Vec<Loc>,
    /// Bytes of `.debug_str`, and where its labels are.
    strings: Vec<u8>,
    labels: HashMap<String, usize>,
}

impl Scan {
    fn of(source: &str, offset: usize) -> Scan {
        let mut scan = Scan::default();
        let mut reader = Reader::new(source);
        let (mut depth, mut passed) = (0usize, false);
        while reader.token.kind != TokenKind::End {
            // What comes after the place does not count, but for names.
            passed |= reader.token.span.start as usize >= offset;
            match reader.token.kind {
                TokenKind::Punctuation(b'{') => depth += 1,
                TokenKind::Punctuation(b'}') => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 && !passed {
                        scan.locs.clear();
                    }
                }
                TokenKind::Dotted => match reader.text() {
                    ".file" => scan.file(&mut reader),
                    ".section" => scan.section(&mut reader),
                    ".loc" if !passed => {
                        reader.advance();
                        scan.locs.extend(reader.loc());
                        continue;
                    }
                    _ => {}
                },
                _ => {}
            }
            reader.advance();
        }
        scan
    }

    /// `.file index "name"`
    fn file(&mut self, reader: &mut Reader<'_>) {
        reader.advance();
        let Some(index) = reader.number() else { return };
        if reader.token.kind == TokenKind::String {
            self.files.insert(index, reader.text().trim_matches('"').to_owned());
        }
    }

    /// `.section .debug_str { label: .b8 byte, … }`; other sections are passed over.
    fn section(&mut self, reader: &mut Reader<'_>) {
        reader.advance();
        let wanted = reader.text() == ".debug_str";
        while !matches!(reader.token.kind, TokenKind::End | TokenKind::Punctuation(b'}')) {
            match reader.token.kind {
                TokenKind::Word if wanted => {
                    self.labels.insert(reader.text().to_owned(), self.strings.len());
                }
                TokenKind::Number if wanted => {
                    self.strings.extend(reader.text().parse::<u8>());
                }
                _ => {}
            }
            reader.advance();
        }
    }

    fn place(&self, file: u64, line: u64, function: Option<String>) -> Option<Place> {
        Some(Place { file: self.files.get(&file)?.clone(), line: u32::try_from(line).ok()?, function })
    }

    fn name(&self, inlined: &Inlined) -> Option<String> {
        let start = self.labels.get(&inlined.label)?.checked_add(usize::try_from(inlined.offset).ok()?)?;
        let bytes = self.strings.get(start..)?.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(bytes).into_owned()).filter(|name| !name.is_empty())
    }
}

/// Tokens one by one.
struct Reader<'a> {
    source: &'a str,
    lexer: Lexer<'a>,
    token: Token,
}

impl<'a> Reader<'a> {
    fn new(source: &'a str) -> Reader<'a> {
        let mut lexer = Lexer::new(source);
        let token = lexer.next_token();
        Reader { source, lexer, token }
    }

    fn advance(&mut self) {
        self.token = self.lexer.next_token();
    }

    fn text(&self) -> &'a str {
        self.token.span.text(self.source)
    }

    fn number(&mut self) -> Option<u64> {
        let number = self.text().parse().ok()?;
        self.advance();
        Some(number)
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let found = self.text() == word;
        found.then(|| self.advance())
    }

    /// What follows `.loc`; nothing if it is not as it should be.
    fn loc(&mut self) -> Option<Loc> {
        let (file, line, column) = (self.number()?, self.number()?, self.number()?);
        let inlined = match self.word(",") {
            Some(()) => Some(self.inlined()?),
            None => None,
        };
        Some(Loc { file, line, column, inlined })
    }

    fn inlined(&mut self) -> Option<Inlined> {
        self.word("function_name")?;
        let label = self.text().to_owned();
        self.advance();
        let offset = match self.word("+") {
            Some(()) => self.number()?,
            None => 0,
        };
        self.word(",")?;
        self.word("inlined_at")?;
        Some(Inlined { label, offset, at: (self.number()?, self.number()?, self.number()?) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
.file 1 \"a.cu\"
.visible .entry first()
{
    .loc 1 3 1
    trap;
}
.visible .entry second()
{
    mov.u32 %r1, 1;
    .loc 1 20 5
    .loc 2 7 3, function_name $names, inlined_at 1 20 5
    mov.b64 %rd1, {%r1, %r1}; trap;
    .loc 2 2 9, function_name $names+6, inlined_at 2 7 3
    trap;
    .loc 1 21 1 exit;
    .loc 3 1 1
    ret;
}
.file 2 \"b.h\"
.section .debug_str
{
$names:
.b8 111,117,116,101,114,0
.b8 105,110,110,101,114,0
}
";

    fn of_line(line: u32) -> Option<String> {
        Origin::of_line(TEXT, line).map(|origin| origin.to_string())
    }

    #[test]
    fn lines_are_found_with_the_calls_around_them() {
        assert_eq!(of_line(6).unwrap(), "a.cu:3");
        assert_eq!(of_line(10), None, "before the first .loc of the function");
        assert_eq!(of_line(13).unwrap(), "b.h:7 in outer, inlined at a.cu:20");
        assert_eq!(of_line(15).unwrap(), "b.h:2 in inner, inlined at b.h:7 in outer, inlined at a.cu:20");
        assert_eq!(of_line(16).unwrap(), "a.cu:21");
        assert_eq!(of_line(18), None, "a file without a name");
        assert_eq!(of_line(3), None, "between functions");
    }

    #[test]
    fn texts_that_are_no_ptx_have_no_origin() {
        for text in [
            "",
            ".loc",
            ".loc 1",
            "{ .loc 1 2 3, function_name",
            "{ .loc 1 2 3 /* ",
            ".file .loc \"",
            ".section {.loc",
        ] {
            assert_eq!(Origin::of(text, text.len()), None, "{text}");
        }
        let endless = ".file 1 \"f\" { .loc 1 1 1, function_name x, inlined_at 1 1 1 trap";
        assert_eq!(Origin::of(endless, endless.len()).unwrap().to_string(), "f:1, inlined at f:1");
    }
}
