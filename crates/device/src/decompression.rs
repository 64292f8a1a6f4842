//! Compressed memory, unpacked in a stream.

use std::sync::Arc;

use crate::stream::{Stream, Work};
use crate::{Error, Result};

/// How memory is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// RFC 1951, without a header.
    Deflate,
    /// One block of Snappy, which begins with its length.
    Snappy,
    /// One block of LZ4, without a frame.
    Lz4,
}

/// A piece of compressed memory.
#[derive(Clone, Copy, Debug)]
pub struct Compressed {
    /// How.
    pub format: Format,
    /// Where it begins.
    pub source: u64,
    /// Its bytes.
    pub source_len: u64,
    /// Where its content goes.
    pub destination: u64,
    /// Bytes that there is room for.
    pub room: u64,
    /// Where the content's length goes, in 32 bits.
    pub actual: u64,
}

/// Most bytes of a piece: its length is told in 32 bits.
pub const MAX_LEN: u64 = u32::MAX as u64;

impl Stream {
    /// Queues the unpacking of some pieces. What is no such data, or has no room, fails the context.
    ///
    /// # Errors
    /// Those of [`check`](crate::Context::check); [`Error::StreamCaptureUnsupported`] while the stream captures.
    pub fn decompress(&self, pieces: Arc<[Compressed]>) -> Result<()> {
        self.context()?.check()?;
        self.check_not_capturing()?;
        let task = move || pieces.iter().try_for_each(Compressed::run);
        self.submit(Vec::new(), Work::Task(Box::new(task))).map(drop)
    }
}

impl Compressed {
    fn run(&self) -> Result<()> {
        let faulted = |_| Error::InvalidValue;
        let mut packed = vec![0; self.source_len as usize];
        // SAFETY: the vector is ours; a bad source is noticed.
        unsafe { guard::copy(packed.as_mut_ptr() as u64, self.source, self.source_len) }.map_err(faulted)?;
        let content = unpack(self.format, &packed, self.room as usize)
            .ok_or_else(|| Error::NotSupported(format!("data that is not {:?}, or too long", self.format)))?;
        let len = (content.len() as u32).to_ne_bytes();
        // SAFETY: both sources are ours; bad destinations are noticed.
        unsafe {
            guard::copy(self.destination, content.as_ptr() as u64, content.len() as u64).map_err(faulted)?;
            guard::copy(self.actual, len.as_ptr() as u64, len.len() as u64).map_err(faulted)
        }
    }
}

/// The content of compressed data, unless it is none or is longer than `room`.
fn unpack(format: Format, packed: &[u8], room: usize) -> Option<Vec<u8>> {
    match format {
        Format::Deflate => miniz_oxide::inflate::decompress_to_vec_with_limit(packed, room).ok(),
        Format::Snappy => unpack_snappy(packed, room),
        Format::Lz4 => {
            let mut content = vec![0; room];
            let len = lz4_flex::block::decompress_into(packed, &mut content).ok()?;
            content.truncate(len);
            Some(content)
        }
    }
}

/// Literal runs and copies of what came before, behind the length of it all.
fn unpack_snappy(packed: &[u8], room: usize) -> Option<Vec<u8>> {
    let mut input = packed.iter().copied();
    let mut len = 0_u64;
    for shift in (0..35).step_by(7) {
        let byte = input.next()?;
        len |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
        if shift == 28 {
            return None;
        }
    }
    let len = usize::try_from(len).ok().filter(|len| *len <= room)?;
    let mut content = Vec::with_capacity(len);
    while let Some(tag) = input.next() {
        let number = |input: &mut dyn Iterator<Item = u8>, bytes: u32| -> Option<usize> {
            (0..bytes).try_fold(0, |number, byte| Some(number | usize::from(input.next()?) << (8 * byte)))
        };
        let high = usize::from(tag >> 2);
        let (count, offset) = match tag & 3 {
            0 => {
                let count = match high {
                    60..=63 => number(&mut input, high as u32 - 59)?,
                    short => short,
                };
                let count = count.checked_add(1).filter(|count| *count <= len - content.len())?;
                let before = content.len();
                content.extend(input.by_ref().take(count));
                if content.len() - before < count {
                    return None;
                }
                continue;
            }
            1 => (4 + (high & 7), (high >> 3) << 8 | number(&mut input, 1)?),
            2 => (1 + high, number(&mut input, 2)?),
            _ => (1 + high, number(&mut input, 4)?),
        };
        let start = content.len().checked_sub(offset).filter(|_| offset > 0)?;
        if count > len - content.len() {
            return None;
        }
        // A copy may reach into what it writes itself.
        for at in start..start + count {
            content.push(content[at]);
        }
    }
    (content.len() == len).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snappy_has_literals_and_copies() {
        // "abcd" as a literal, then 8 bytes from 4 before, which overlap what they write.
        let packed = [12, 3 << 2, b'a', b'b', b'c', b'd', 4 << 2 | 1, 4];
        assert_eq!(unpack(Format::Snappy, &packed, 12).unwrap(), b"abcdabcdabcd");
        assert_eq!(unpack(Format::Snappy, &packed, 11), None, "no room");
        // With two and with four bytes of offset; a literal whose length follows.
        let packed = [6, 0, b'x', 2 << 2 | 2, 1, 0, 1 << 2 | 3, 2, 0, 0, 0];
        assert_eq!(unpack(Format::Snappy, &packed, 6).unwrap(), b"xxxxxx");
        let mut long = vec![70, 60 << 2, 69];
        long.extend([7; 70]);
        assert_eq!(unpack(Format::Snappy, &long, 100).unwrap(), [7; 70]);
        assert_eq!(unpack(Format::Snappy, &[0], 0).unwrap(), []);
    }

    #[test]
    fn what_is_no_snappy_is_refused() {
        for bad in [
            &[][..],
            &[5],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[4, 3 << 2, b'a'],
            &[4, 4 << 2 | 1, 1],
            &[1, 3 << 2, b'a', b'b', b'c', b'd'],
            &[4, 0, b'a', 2 << 2 | 2, 0, 0],
            &[4, 0, b'a', 2 << 2 | 2, 9, 0],
            &[1, 63 << 2, 0xff, 0xff, 0xff, 0xff],
        ] {
            assert_eq!(unpack(Format::Snappy, bad, 1 << 20), None, "{bad:?}");
        }
    }

    #[test]
    fn deflate_and_lz4_are_unpacked_within_their_room() {
        // A stored block; and five literals.
        let stored = [1, 3, 0, 0xfc, 0xff, b'x', b'y', b'z'];
        assert_eq!(unpack(Format::Deflate, &stored, 3).unwrap(), b"xyz");
        assert_eq!(unpack(Format::Deflate, &stored, 2), None);
        let literals = [0x50, b'h', b'e', b'l', b'l', b'o'];
        assert_eq!(unpack(Format::Lz4, &literals, 9).unwrap(), b"hello");
        assert_eq!(unpack(Format::Lz4, &literals, 4), None);
        assert_eq!(unpack(Format::Lz4, &[0xff], 4), None);
        assert_eq!(unpack(Format::Deflate, &[0xff], 4), None);
    }
}
