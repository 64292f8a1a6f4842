//! Characters to tokens. Nothing is copied: a token is a kind and a byte range.

use crate::span::Span;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// An identifier, with `%`, `$` or `_` where it has them.
    Word,
    /// A dot and a word: directive, modifier or component. Parts may be joined by `::`.
    Dotted,
    /// An integer in any base, or a float in any form.
    Number,
    /// `"…"`
    String,
    /// A punctuation character.
    Punctuation(u8),
    /// One of the two-character operators of constant expressions, by its characters.
    Operator([u8; 2]),
    /// `@@` at the start of a line: an obsolete form of debugging information; reaches to the end of the line.
    Dwarf,
    /// The end of the text.
    End,
    /// A character that begins no token.
    Unknown,
    /// A comment or string without an end.
    Unterminated,
}

/// A token: kind and place.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Where it stands.
    pub span: Span,
}

/// Reads tokens one by one.
#[derive(Clone, Debug)]
pub struct Lexer<'a> {
    source: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    /// A lexer at the start of `source`, which must be shorter than 4 GiB.
    pub fn new(source: &'a str) -> Lexer<'a> {
        Lexer::at(source, 0)
    }

    /// A lexer at byte `offset` of `source`.
    pub fn at(source: &'a str, offset: usize) -> Lexer<'a> {
        debug_assert!(source.len() < u32::MAX as usize);
        Lexer { source, at: offset }
    }

    /// The next token; [`TokenKind::End`] for ever once the text is used up.
    pub fn next_token(&mut self) -> Token {
        let bytes = self.source.as_bytes();
        if let Err(start) = self.skip_blank() {
            self.at = bytes.len();
            return self.token(TokenKind::Unterminated, start);
        }
        let start = self.at;
        let Some(&first) = bytes.get(start) else { return self.token(TokenKind::End, start) };
        let kind = match CLASS[first as usize] {
            Class::Letter => {
                self.at = skip_word(bytes, start + 1);
                if first == b'%' && self.at == start + 1 {
                    TokenKind::Punctuation(b'%')
                } else {
                    TokenKind::Word
                }
            }
            Class::Digit => {
                self.at = skip_number(bytes, start);
                TokenKind::Number
            }
            Class::Dot => self.dotted(),
            Class::Quote => match bytes[start + 1..].iter().position(|&b| b == b'"') {
                Some(length) => {
                    self.at = start + length + 2;
                    TokenKind::String
                }
                None => {
                    self.at = bytes.len();
                    TokenKind::Unterminated
                }
            },
            Class::Punctuation => self.punctuation(first),
            Class::Blank | Class::Other => {
                self.at = start + self.source[start..].chars().next().map_or(1, char::len_utf8);
                TokenKind::Unknown
            }
        };
        self.token(kind, start)
    }

    fn token(&self, kind: TokenKind, start: usize) -> Token {
        Token { kind, span: Span::new(start as u32, self.at as u32) }
    }

    /// `.word`, `.word::word`, and `.128x256b`; a dot alone is punctuation.
    fn dotted(&mut self) -> TokenKind {
        let bytes = self.source.as_bytes();
        let mut end = skip_word(bytes, self.at + 1);
        if end == self.at + 1 {
            self.at = end;
            return TokenKind::Punctuation(b'.');
        }
        while bytes[end..].starts_with(b"::") && bytes.get(end + 2).is_some_and(|&b| is_word(b)) {
            end = skip_word(bytes, end + 2);
        }
        self.at = end;
        TokenKind::Dotted
    }

    fn punctuation(&mut self, first: u8) -> TokenKind {
        let bytes = self.source.as_bytes();
        let start = self.at;
        let second = bytes.get(start + 1).copied().unwrap_or(0);
        if first == b'@' && second == b'@' {
            self.at = end_of_line(bytes, start);
            return TokenKind::Dwarf;
        }
        if matches!(
            (first, second),
            (b'<', b'<') | (b'>', b'>') | (b'&', b'&') | (b'|', b'|') | (b'<' | b'>' | b'=' | b'!', b'=')
        ) {
            self.at = start + 2;
            return TokenKind::Operator([first, second]);
        }
        self.at = start + 1;
        TokenKind::Punctuation(first)
    }

    /// Skips blanks, comments and `#` lines; the start of a comment that does not end is the error.
    fn skip_blank(&mut self) -> Result<(), usize> {
        let bytes = self.source.as_bytes();
        while let Some(&b) = bytes.get(self.at) {
            match b {
                b' ' | b'\t' | b'\n' | b'\r' | b'\x0b' | b'\x0c' => self.at += 1,
                b'/' if bytes.get(self.at + 1) == Some(&b'/') => self.at = end_of_line(bytes, self.at),
                b'/' if bytes.get(self.at + 1) == Some(&b'*') => {
                    let inside = self.at + 2;
                    let length = self.source[inside..].find("*/").ok_or(self.at)?;
                    self.at = inside + length + 2;
                }
                b'#' if starts_line(bytes, self.at) => self.at = end_of_line(bytes, self.at),
                _ => break,
            }
        }
        Ok(())
    }
}

/// Where the body that opens at byte `open` closes: the offset after its `}`. Comments and strings are
/// honoured, nothing else is looked at, so this is several times faster than reading tokens.
pub fn skip_braces(source: &str, open: usize) -> Option<usize> {
    let bytes = source.as_bytes();
    let mut depth = 0usize;
    let mut at = open;
    while let Some(&b) = bytes.get(at) {
        match b {
            b'{' => depth += 1,
            b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            b'"' => at += 1 + bytes[at + 1..].iter().position(|&b| b == b'"')?,
            b'/' if bytes.get(at + 1) == Some(&b'/') => at = end_of_line(bytes, at),
            b'/' if bytes.get(at + 1) == Some(&b'*') => at += 3 + source[at + 2..].find("*/")?,
            _ => {}
        }
        at += 1;
    }
    None
}

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Letter,
    Digit,
    Dot,
    Quote,
    Punctuation,
    Blank,
    Other,
}

static CLASS: [Class; 256] = {
    let mut table = [Class::Other; 256];
    let mut b = 0;
    while b < 256 {
        table[b] = match b as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | b'%' => Class::Letter,
            b'0'..=b'9' => Class::Digit,
            b'.' => Class::Dot,
            b'"' => Class::Quote,
            b' ' | b'\t' | b'\n' | b'\r' | b'\x0b' | b'\x0c' => Class::Blank,
            b'{' | b'}' | b'(' | b')' | b'[' | b']' | b'<' | b'>' | b',' | b';' | b':' | b'=' | b'+'
            | b'-' | b'*' | b'/' | b'!' | b'~' | b'&' | b'|' | b'^' | b'?' | b'@' => Class::Punctuation,
            _ => Class::Other,
        };
        b += 1;
    }
    table
};

fn is_word(b: u8) -> bool {
    matches!(CLASS[b as usize], Class::Letter | Class::Digit) && b != b'%'
}

fn skip_word(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|&b| is_word(b)) {
        at += 1;
    }
    at
}

/// Past a number and everything glued to it; what it is worth, and whether it is one, is found later.
fn skip_number(bytes: &[u8], start: usize) -> usize {
    let mut at = skip_word(bytes, start);
    let letters_after_zero =
        bytes[start] == b'0' && bytes.get(start + 1).is_some_and(u8::is_ascii_alphabetic);
    if letters_after_zero {
        return at;
    }
    if bytes.get(at) == Some(&b'.') {
        at = skip_word(bytes, at + 1);
    }
    let exponent = matches!(bytes[at - 1], b'e' | b'E');
    if exponent && matches!(bytes.get(at), Some(b'+' | b'-')) {
        at = skip_word(bytes, at + 1);
    }
    at
}

fn end_of_line(bytes: &[u8], from: usize) -> usize {
    bytes[from..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |length| from + length)
}

fn starts_line(bytes: &[u8], at: usize) -> bool {
    bytes[..at].iter().rev().find(|b| !matches!(b, b' ' | b'\t')).is_none_or(|&b| b == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(source: &str) -> Vec<(TokenKind, &str)> {
        let mut lexer = Lexer::new(source);
        std::iter::from_fn(|| {
            let token = lexer.next_token();
            (token.kind != TokenKind::End).then(|| (token.kind, token.span.text(source)))
        })
        .collect()
    }

    #[test]
    fn every_kind() {
        use TokenKind::*;
        assert_eq!(
            tokens(
                "@!%p1 ld.L2::128B.v4 {%f1,_}, [$x+0x1F]; // c\n# 3 \"x\"\n/* */ 0f3F800000 1.5e-3 8U \"s\""
            ),
            [
                (Punctuation(b'@'), "@"),
                (Punctuation(b'!'), "!"),
                (Word, "%p1"),
                (Word, "ld"),
                (Dotted, ".L2::128B"),
                (Dotted, ".v4"),
                (Punctuation(b'{'), "{"),
                (Word, "%f1"),
                (Punctuation(b','), ","),
                (Word, "_"),
                (Punctuation(b'}'), "}"),
                (Punctuation(b','), ","),
                (Punctuation(b'['), "["),
                (Word, "$x"),
                (Punctuation(b'+'), "+"),
                (Number, "0x1F"),
                (Punctuation(b']'), "]"),
                (Punctuation(b';'), ";"),
                (Number, "0f3F800000"),
                (Number, "1.5e-3"),
                (Number, "8U"),
                (String, "\"s\""),
            ]
        );
    }

    #[test]
    fn ends_that_are_missing() {
        assert_eq!(tokens("a /* b"), [(TokenKind::Word, "a"), (TokenKind::Unterminated, "/* b")]);
        assert_eq!(tokens("\"b"), [(TokenKind::Unterminated, "\"b")]);
        assert_eq!(tokens("é"), [(TokenKind::Unknown, "é")]);
    }

    #[test]
    fn hexadecimal_digits_are_no_exponent() {
        let plus = (TokenKind::Punctuation(b'+'), "+");
        assert_eq!(tokens("0x1e+1"), [(TokenKind::Number, "0x1e"), plus, (TokenKind::Number, "1")]);
    }

    #[test]
    fn braces_in_comments_and_strings_do_not_count() {
        let text = "{ { } \"}\" // }\n /* } */ } }";
        assert_eq!(skip_braces(text, 0), Some(text.len() - 2));
        assert_eq!(skip_braces("{ {", 0), None);
    }
}
