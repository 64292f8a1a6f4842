//! Builds containers, for tests and for tools that pack PTX.

use crate::CONTAINER_MAGIC;
use crate::container::{CONTAINER_HEADER_LEN, Compression, ENTRY_HEADER_LEN, EntryKind, Version, flags};

/// Builds a container from entries.
#[derive(Clone, Debug, Default)]
pub struct ContainerWriter {
    entries: Vec<EntryWriter>,
}

impl ContainerWriter {
    /// A container without entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an entry after those already there.
    pub fn entry(mut self, entry: EntryWriter) -> Self {
        self.entries.push(entry);
        self
    }

    /// The container's bytes.
    pub fn finish(self) -> Vec<u8> {
        let entries: Vec<u8> = self.entries.iter().flat_map(EntryWriter::bytes).collect();
        let mut out = Vec::with_capacity(CONTAINER_HEADER_LEN + entries.len());
        out.extend(CONTAINER_MAGIC.to_le_bytes());
        out.extend(1u16.to_le_bytes());
        out.extend((CONTAINER_HEADER_LEN as u16).to_le_bytes());
        out.extend((entries.len() as u64).to_le_bytes());
        out.extend(entries);
        out
    }
}

/// Describes one entry of a container.
#[derive(Clone, Debug)]
pub struct EntryWriter {
    kind: EntryKind,
    version: Version,
    sm: u32,
    flags: u64,
    compression: Compression,
    source_name: Option<String>,
    options: Option<String>,
    payload: Vec<u8>,
}

impl EntryWriter {
    /// PTX text for architecture `sm` and later. It has options, though none: NVIDIA's driver reads them without asking
    /// whether there are any.
    pub fn ptx(sm: u32, text: impl Into<Vec<u8>>) -> Self {
        Self::new(EntryKind::Ptx, Version { major: 9, minor: 0 }, sm, text.into()).options("")
    }

    /// A machine-code image for architecture `sm`.
    pub fn elf(sm: u32, image: impl Into<Vec<u8>>) -> Self {
        Self::new(EntryKind::Elf, Version { major: 1, minor: 8 }, sm, image.into())
    }

    /// Link-time IR for architecture `sm`.
    pub fn lto(sm: u32, ir: impl Into<Vec<u8>>) -> Self {
        let entry = Self::new(EntryKind::Lto, Version { major: 1, minor: 65 }, sm, ir.into());
        Self { flags: entry.flags | flags::LTO, ..entry }
    }

    /// For this architecture alone ("90a").
    pub fn arch_specific(mut self) -> Self {
        self.flags |= flags::ARCH_SPECIFIC;
        self
    }

    /// For this architecture's family ("100f").
    pub fn family(mut self) -> Self {
        self.flags |= flags::FAMILY;
        self
    }

    /// Marked as built for debugging.
    pub fn debug(mut self) -> Self {
        self.flags |= flags::DEBUG;
        self
    }

    /// Stores the payload compressed.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Records the source file's name.
    pub fn source_name(mut self, name: impl Into<String>) -> Self {
        self.source_name = Some(name.into());
        self
    }

    /// Records the options given to the assembler.
    pub fn options(mut self, options: impl Into<String>) -> Self {
        self.options = Some(options.into());
        self
    }

    fn new(kind: EntryKind, version: Version, sm: u32, payload: Vec<u8>) -> Self {
        let flags = flags::ADDRESS_64 | flags::LINUX;
        let compression = Compression::None;
        Self { kind, version, sm, flags, compression, source_name: None, options: None, payload }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut payload = self.payload.clone();
        if self.kind == EntryKind::Ptx {
            payload.push(0);
        }
        let payload_len = payload.len() as u64;
        let (mut stored, compression_flag) = match self.compression {
            Compression::None => (payload, 0),
            Compression::Lz4 => (lz4_flex::block::compress(&payload), flags::LZ4),
            Compression::Zstd => {
                let level = ruzstd::encoding::CompressionLevel::Fastest;
                (ruzstd::encoding::compress_to_vec(payload.as_slice(), level), flags::ZSTD)
            }
        };
        let compressed = self.compression != Compression::None;
        let stored_len = stored.len() as u32;
        pad_to_8(&mut stored);

        let mut strings = Vec::new();
        let (name_offset, name_len) = match &self.source_name {
            None => (0, 0),
            Some(name) => {
                let offset = ENTRY_HEADER_LEN as u32;
                strings.extend(name.as_bytes());
                pad_to_8(&mut strings);
                (offset, name.len() as u32)
            }
        };
        let options_record = match &self.options {
            None => 0,
            Some(options) => {
                let record = (ENTRY_HEADER_LEN + strings.len()) as u32;
                strings.extend((record + 8).to_le_bytes());
                strings.extend((options.len() as u32).to_le_bytes());
                strings.extend(options.as_bytes());
                strings.push(0);
                pad_to_8(&mut strings);
                record
            }
        };

        let kind = match self.kind {
            EntryKind::Ptx => 1,
            EntryKind::Elf => 2,
            EntryKind::Lto => 8,
            EntryKind::Other(kind) => kind,
        };
        let mut out = Vec::with_capacity(ENTRY_HEADER_LEN + strings.len() + stored.len());
        out.extend(u16::to_le_bytes(kind));
        out.extend(0x0101u16.to_le_bytes());
        out.extend(((ENTRY_HEADER_LEN + strings.len()) as u32).to_le_bytes());
        out.extend((stored.len() as u64).to_le_bytes());
        out.extend(if compressed { stored_len } else { 0 }.to_le_bytes());
        out.extend(u32::to_le_bytes(options_record));
        out.extend(self.version.minor.to_le_bytes());
        out.extend(self.version.major.to_le_bytes());
        out.extend(self.sm.to_le_bytes());
        out.extend(u32::to_le_bytes(name_offset));
        out.extend(u32::to_le_bytes(name_len));
        out.extend((self.flags | compression_flag).to_le_bytes());
        out.extend(0u64.to_le_bytes());
        out.extend(if compressed { payload_len } else { 0 }.to_le_bytes());
        debug_assert_eq!(out.len(), ENTRY_HEADER_LEN);
        out.extend(strings);
        out.extend(stored);
        out
    }
}

fn pad_to_8(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(8), 0);
}

/// A machine-code image without code that carries these PTX texts.
pub fn machine_code(texts: &[&str]) -> Vec<u8> {
    let names: Vec<String> = (0..texts.len()).map(|at| format!(".nv_debug_ptx_txt.{at}")).collect();
    let mut strings = vec![0];
    let mut table = vec![[0u64; 6]];
    let mut content = Vec::new();
    let mut section = |name: &str, kind: u64, bytes: &[u8], strings: &mut Vec<u8>| {
        table.push([
            strings.len() as u64,
            kind,
            HEADER_OF_ELF + content.len() as u64,
            bytes.len() as u64,
            0,
            1,
        ]);
        strings.extend(name.bytes().chain([0]));
        content.extend_from_slice(bytes);
    };
    for (name, text) in names.iter().zip(texts) {
        section(name, 1, text.replace('\n', "\0").as_bytes(), &mut strings);
    }
    let mut all = strings.clone();
    all.extend(b".shstrtab\0");
    section(".shstrtab", 3, &all, &mut strings);
    content.resize(content.len().next_multiple_of(8), 0);
    let mut image = b"\x7fELF\x02\x01\x01\x33\x07\0\0\0\0\0\0\0\x02\0\xbe\0\x01\0\0\0".to_vec();
    image.extend([0, 0, HEADER_OF_ELF + content.len() as u64].iter().flat_map(|word| word.to_le_bytes()));
    let count = table.len() as u16;
    let shape = [0, 0, HEADER_OF_ELF as u16, 56, 0, 64, count, count - 1];
    image.extend(shape.iter().flat_map(|half: &u16| half.to_le_bytes()));
    image.extend(content);
    for [name, kind, start, len, link, align] in table {
        image.extend([name as u32, kind as u32].iter().flat_map(|word| word.to_le_bytes()));
        image.extend([0, 0, start, len, link, align, 0].iter().flat_map(|word| word.to_le_bytes()));
    }
    image
}

const HEADER_OF_ELF: u64 = 64;
