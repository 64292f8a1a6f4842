//! One scope's names, among them ranges such as `%r<10>`, whose members are never listed.

use crate::ast::Name;
use crate::names::NameMap;

#[derive(Debug)]
pub(crate) struct Names<'a, T> {
    single: NameMap<&'a str, (Name<'a>, T)>,
    ranges: NameMap<&'a str, Range<'a, T>>,
}

#[derive(Debug)]
struct Range<'a, T> {
    stem: Name<'a>,
    count: u32,
    what: T,
}

impl<T> Default for Names<'_, T> {
    fn default() -> Self {
        Names { single: NameMap::default(), ranges: NameMap::default() }
    }
}

impl<'a, T: Copy> Names<'a, T> {
    /// Binds `name`; gives what it was bound to before.
    pub fn insert(&mut self, name: Name<'a>, what: T) -> Option<T> {
        self.single.insert(name.text, (name, what)).map(|(_, previous)| previous)
    }

    /// Binds `stem0` to `stem(count-1)`; an error if this stem has a range already.
    pub fn insert_range(&mut self, stem: Name<'a>, count: u32, what: T) -> Result<(), ()> {
        let previous = self.ranges.insert(stem.text, Range { stem, count, what });
        if previous.is_some() { Err(()) } else { Ok(()) }
    }

    /// What `name` is bound to, and its number if a range binds it.
    pub fn get(&self, name: &str) -> Option<(T, Option<u32>)> {
        if let Some((_, what)) = self.single.get(name) {
            return Some((*what, None));
        }
        let (range, index) = self.range_of(name)?;
        Some((range.what, Some(index)))
    }

    /// The declared form of the name that [`Names::get`] finds.
    pub fn declared(&self, name: &str) -> Option<Name<'a>> {
        self.single.get(name).map(|(name, _)| *name).or_else(|| Some(self.range_of(name)?.0.stem))
    }

    /// A name that is bound twice because a range holds it, if there is one.
    pub fn overlap(&self) -> Option<Name<'a>> {
        if self.ranges.is_empty() {
            return None;
        }
        let single = self.single.values().map(|(name, _)| *name).filter(|n| self.range_of(n.text).is_some());
        // The first name that `%r1<…>` adds to its stem is `%r10`.
        let stems = self.ranges.values().map(|r| r.stem).filter(|stem| {
            splits(stem.text).any(|(prefix, number)| {
                let count = self.ranges.get(prefix).map_or(0, |range| u64::from(range.count));
                number != 0 && u64::from(number) * 10 < count
            })
        });
        single.chain(stems).min_by_key(|name| name.span.start)
    }

    fn range_of(&self, name: &str) -> Option<(&Range<'a, T>, u32)> {
        if self.ranges.is_empty() {
            return None;
        }
        splits(name).find_map(|(stem, index)| {
            let range = self.ranges.get(stem)?;
            (index < range.count).then_some((range, index))
        })
    }
}

/// The ways to read `name` as a stem and a number, which has no leading zeros: `%r15` is `%r1`, 5 and `%r`, 15.
fn splits(name: &str) -> impl Iterator<Item = (&str, u32)> {
    let bytes = name.as_bytes();
    let digits = bytes.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let canonical = move |&at: &usize| bytes[at] != b'0' || at + 1 == bytes.len();
    (bytes.len() - digits.min(MAX_DIGITS).min(bytes.len())..bytes.len())
        .rev()
        .filter(canonical)
        .filter_map(|at| Some((&name[..at], name[at..].parse().ok()?)))
}

/// Digits of the largest 32-bit number.
const MAX_DIGITS: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::Span;

    fn name(text: &str) -> Name<'_> {
        Name { text, span: Span::default() }
    }

    #[test]
    fn ranges_bind_their_members_only() {
        let mut names = Names::default();
        names.insert_range(name("%r"), 12, 'r').unwrap();
        names.insert(name("%x"), 'x');
        for (text, expected) in [
            ("%r0", Some(('r', Some(0)))),
            ("%r11", Some(('r', Some(11)))),
            ("%r12", None),
            ("%r01", None),
            ("%r", None),
            ("%x", Some(('x', None))),
            ("%r99999999999999", None),
        ] {
            assert_eq!(names.get(text), expected, "{text}");
        }
        assert_eq!(names.overlap(), None);
    }

    #[test]
    fn overlaps_are_found() {
        let mut names = Names::default();
        names.insert_range(name("%r"), 20, ()).unwrap();
        names.insert_range(name("%r2"), 5, ()).unwrap();
        assert_eq!(names.overlap(), None, "%r20 to %r24 are beyond %r19");
        names.insert_range(name("%r1"), 1, ()).unwrap();
        assert_eq!(names.overlap(), Some(name("%r1")));
        let mut names = Names::default();
        names.insert_range(name("%r"), 20, ()).unwrap();
        names.insert(name("%r19"), ());
        assert_eq!(names.overlap(), Some(name("%r19")));
        assert!(names.insert_range(name("%r"), 2, ()).is_err());
    }
}
