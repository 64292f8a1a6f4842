use std::borrow::Cow;

use crate::error::FatbinError;
use crate::{CONTAINER_MAGIC, MAX_PAYLOAD_LEN, decompress};

const CONTAINER_VERSION: u16 = 1;
/// The fixed part of a container's header.
pub(crate) const CONTAINER_HEADER_LEN: usize = 16;
/// The fixed part of an entry's header; strings may follow it.
pub(crate) const ENTRY_HEADER_LEN: usize = 64;

/// Entry flags that this reader acts on.
pub(crate) mod flags {
    pub const ADDRESS_64: u64 = 0x1;
    pub const DEBUG: u64 = 0x2;
    pub const LINUX: u64 = 0x10;
    pub const LZ4: u64 = 0x2000;
    pub const ZSTD: u64 = 0x8000;
    pub const LTO: u64 = 0x1_0000;
    pub const ARCH_SPECIFIC: u64 = 0x10_0000;
    pub const FAMILY: u64 = 0x20_0000;
}

/// A container: a header and the entries that follow it.
#[derive(Clone, Copy, Debug)]
pub struct Container<'a> {
    entries: &'a [u8],
}

impl<'a> Container<'a> {
    /// Reads the header. Bytes after the container's own length are ignored.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FatbinError> {
        let header_len = Self::header_len(bytes)?;
        let len = Bytes { what: "container", bytes }.u64(8)?;
        let entries = Bytes { what: "container", bytes }.slice(header_len, len)?;
        Ok(Self { entries })
    }

    /// The whole length, header included, that a container whose first 16 bytes are given claims to have.
    pub fn claimed_len(header: &[u8]) -> Result<u64, FatbinError> {
        let header_len = Self::header_len(header)?;
        let len = Bytes { what: "container", bytes: header }.u64(8)?;
        let out_of_range =
            FatbinError::OutOfBounds { what: "container", offset: header_len, len, available: 0 };
        header_len.checked_add(len).ok_or(out_of_range)
    }

    /// The entries in file order. After the first error the iteration ends: where the next entry would begin is
    /// then unknown.
    pub fn entries(&self) -> Entries<'a> {
        Entries { rest: self.entries }
    }

    fn header_len(bytes: &[u8]) -> Result<u64, FatbinError> {
        let header = Bytes { what: "container", bytes };
        let magic = header.u32(0)?;
        if magic != CONTAINER_MAGIC {
            return Err(FatbinError::BadMagic { what: "container", found: magic });
        }
        let version = header.u16(4)?;
        if version != CONTAINER_VERSION {
            return Err(FatbinError::UnsupportedVersion { what: "container", found: version.into() });
        }
        let header_len = u64::from(header.u16(6)?);
        if header_len < CONTAINER_HEADER_LEN as u64 {
            return Err(FatbinError::HeaderTooShort { what: "container", found: header_len });
        }
        Ok(header_len)
    }
}

/// Iterator over the entries of a [`Container`].
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, FatbinError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match Entry::parse(self.rest) {
            Ok((entry, rest)) => {
                self.rest = rest;
                Some(Ok(entry))
            }
            Err(error) => {
                self.rest = &[];
                Some(Err(error))
            }
        }
    }
}

/// What an entry holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// PTX text.
    Ptx,
    /// A machine-code image for one architecture.
    Elf,
    /// Link-time IR.
    Lto,
    /// A kind that this reader does not know.
    Other(u16),
}

/// How an entry's payload is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// As it is.
    None,
    /// One raw LZ4 block.
    Lz4,
    /// One zstd frame.
    Zstd,
}

/// Version of a payload's format: for PTX that of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Before the dot.
    pub major: u16,
    /// After the dot.
    pub minor: u16,
}

/// One image of a container.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// What the payload is.
    pub kind: EntryKind,
    /// Version of the payload's format.
    pub version: Version,
    /// The architecture's number: 90 for sm_90 and sm_90a.
    pub sm: u32,
    /// The uninterpreted flag bits.
    pub flags: u64,
    /// How the payload is stored.
    pub compression: Compression,
    header: &'a [u8],
    stored: &'a [u8],
    payload_len: u64,
}

impl<'a> Entry<'a> {
    /// Splits the first entry off `bytes`.
    fn parse(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), FatbinError> {
        let fixed = Bytes { what: "entry", bytes };
        let header_len = u64::from(fixed.u32(4)?);
        if header_len < ENTRY_HEADER_LEN as u64 {
            return Err(FatbinError::HeaderTooShort { what: "entry", found: header_len });
        }
        let header = fixed.slice(0, header_len)?;
        let padded_len = fixed.u64(8)?;
        let padded = Bytes { what: "payload", bytes }.slice(header_len, padded_len)?;
        let rest = &bytes[header.len() + padded.len()..];

        let compressed_len = u64::from(fixed.u32(16)?);
        let flags = fixed.u64(40)?;
        let compression = match (flags & flags::LZ4 != 0, flags & flags::ZSTD != 0, compressed_len != 0) {
            (false, false, false) => Compression::None,
            (true, false, true) => Compression::Lz4,
            (false, true, true) => Compression::Zstd,
            _ => return Err(FatbinError::BadCompression { flags }),
        };
        let (stored, payload_len) = match compression {
            Compression::None => (padded, padded_len),
            Compression::Lz4 | Compression::Zstd => {
                let payload_len = fixed.u64(56)?;
                if payload_len > MAX_PAYLOAD_LEN {
                    return Err(FatbinError::TooLarge {
                        what: "decompressed size",
                        found: payload_len,
                        limit: MAX_PAYLOAD_LEN,
                    });
                }
                (Bytes { what: "payload", bytes: padded }.slice(0, compressed_len)?, payload_len)
            }
        };
        let kind = match fixed.u16(0)? {
            1 => EntryKind::Ptx,
            2 => EntryKind::Elf,
            8 => EntryKind::Lto,
            other => EntryKind::Other(other),
        };
        let version = Version { minor: fixed.u16(24)?, major: fixed.u16(26)? };
        let sm = fixed.u32(28)?;
        Ok((Self { kind, version, sm, flags, compression, header, stored, payload_len }, rest))
    }

    /// Whether the entry is for its own architecture alone ("90a").
    pub fn is_arch_specific(&self) -> bool {
        self.flags & flags::ARCH_SPECIFIC != 0
    }

    /// Whether the entry is for its architecture's family ("100f").
    pub fn is_family(&self) -> bool {
        self.flags & flags::FAMILY != 0
    }

    /// Whether the entry was built for debugging.
    pub fn is_debug(&self) -> bool {
        self.flags & flags::DEBUG != 0
    }

    /// The source file's name, where the compiler recorded it.
    pub fn source_name(&self) -> Result<Option<&'a str>, FatbinError> {
        let header = Bytes { what: "source name", bytes: self.header };
        let (offset, len) = (header.u32(32)?, header.u32(36)?);
        if offset == 0 || len == 0 {
            return Ok(None);
        }
        header.text(offset.into(), len.into()).map(Some)
    }

    /// The options that the compiler passed to the assembler, where it recorded them; they may be empty.
    pub fn options(&self) -> Result<Option<&'a str>, FatbinError> {
        let header = Bytes { what: "options", bytes: self.header };
        let record = u64::from(header.u32(20)?);
        if record == 0 {
            return Ok(None);
        }
        let (offset, len) = (header.u32(record)?, header.u32(record.saturating_add(4))?);
        header.text(offset.into(), len.into()).map(|text| Some(text.trim()))
    }

    /// The payload's size once decompressed, padding included where it is stored plain.
    pub fn payload_len(&self) -> u64 {
        self.payload_len
    }

    /// The payload, decompressed. PTX comes without the NULs that end it.
    pub fn payload(&self) -> Result<Cow<'a, [u8]>, FatbinError> {
        let payload = match self.compression {
            Compression::None => Cow::Borrowed(self.stored),
            Compression::Lz4 => Cow::Owned(decompress::lz4(self.stored, self.payload_len)?),
            Compression::Zstd => Cow::Owned(decompress::zstd(self.stored, self.payload_len)?),
        };
        Ok(if self.kind == EntryKind::Ptx { without_trailing_nuls(payload) } else { payload })
    }
}

fn without_trailing_nuls(text: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let len = text.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[..len]),
        Cow::Owned(mut text) => {
            text.truncate(len);
            Cow::Owned(text)
        }
    }
}

/// Bounds-checked little-endian reads; `what` names the structure in errors.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a> {
    pub what: &'static str,
    pub bytes: &'a [u8],
}

impl<'a> Bytes<'a> {
    pub fn slice(&self, offset: u64, len: u64) -> Result<&'a [u8], FatbinError> {
        let available = self.bytes.len() as u64;
        match offset.checked_add(len) {
            // Both ends are at most `available`, which came from a usize.
            Some(end) if end <= available => Ok(&self.bytes[offset as usize..end as usize]),
            _ => Err(FatbinError::OutOfBounds { what: self.what, offset, len, available }),
        }
    }

    pub fn text(&self, offset: u64, len: u64) -> Result<&'a str, FatbinError> {
        let bytes = self.slice(offset, len)?;
        std::str::from_utf8(bytes).map_err(|_| FatbinError::NotText { what: self.what })
    }

    pub fn u16(&self, offset: u64) -> Result<u16, FatbinError> {
        self.array(offset).map(u16::from_le_bytes)
    }

    pub fn u32(&self, offset: u64) -> Result<u32, FatbinError> {
        self.array(offset).map(u32::from_le_bytes)
    }

    pub fn u64(&self, offset: u64) -> Result<u64, FatbinError> {
        self.array(offset).map(u64::from_le_bytes)
    }

    fn array<const N: usize>(&self, offset: u64) -> Result<[u8; N], FatbinError> {
        let bytes = self.slice(offset, N as u64)?;
        Ok(bytes.try_into().expect("a slice of N bytes"))
    }
}
