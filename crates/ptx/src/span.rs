//! Places in a source text.

/// A half-open byte range of the source text.
///
/// Spans never take part in comparisons: two syntax trees are equal when they mean the same text, wherever
/// it stands. So that trees can simply derive `PartialEq`, every span equals every other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}
impl Eq for Span {}

impl Span {
    /// The range from `start` up to `end`.
    pub fn new(start: u32, end: u32) -> Span {
        Span { start, end }
    }

    /// The smallest range that holds both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The spanned part of `source`; empty if the span is not of this text.
    pub fn text(self, source: &str) -> &str {
        source.get(self.start as usize..self.end as usize).unwrap_or("")
    }
}

/// A place for people: both count from 1, the column in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
}

/// Where a byte offset lies, found by counting: for single questions, such as an error's place.
pub fn position(source: &str, offset: u32) -> Position {
    let before = &source.as_bytes()[..(offset as usize).min(source.len())];
    let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1);
    let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
    Position { line: line as u32, column: (before.len() - line_start + 1) as u32 }
}

/// The line starts of a text, for many questions about it.
#[derive(Clone, Debug)]
pub struct LineIndex {
    starts: Vec<u32>,
}

impl LineIndex {
    /// Indexes `source`.
    pub fn new(source: &str) -> LineIndex {
        let ends = source.bytes().enumerate().filter(|&(_, b)| b == b'\n');
        LineIndex { starts: std::iter::once(0).chain(ends.map(|(i, _)| i as u32 + 1)).collect() }
    }

    /// Where the byte at `offset` lies.
    pub fn position(&self, offset: u32) -> Position {
        let line = self.starts.partition_point(|&s| s <= offset);
        let start = self.starts[line - 1];
        Position { line: line as u32, column: offset - start + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_and_count_agree() {
        let text = "ab\n\ncd\nx";
        let index = LineIndex::new(text);
        for offset in 0..=text.len() as u32 {
            assert_eq!(index.position(offset), position(text, offset), "offset {offset}");
        }
        assert_eq!(position(text, 5), Position { line: 3, column: 2 });
    }
}
