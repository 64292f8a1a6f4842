use std::fmt;

/// Why bytes are not a fat binary that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FatbinError {
    /// A structure does not begin with its magic number.
    BadMagic {
        /// The structure: "wrapper" or "container".
        what: &'static str,
        /// The number found.
        found: u32,
    },
    /// A version of a structure that this reader does not know.
    UnsupportedVersion {
        /// The structure: "wrapper" or "container".
        what: &'static str,
        /// The version found.
        found: u32,
    },
    /// A length or an offset leads outside the bytes that hold the structure.
    OutOfBounds {
        /// What was to be read.
        what: &'static str,
        /// Where it would begin.
        offset: u64,
        /// How long it would be.
        len: u64,
        /// How many bytes there are.
        available: u64,
    },
    /// A header that is shorter than its fixed fields.
    HeaderTooShort {
        /// The structure: "container" or "entry".
        what: &'static str,
        /// The length found.
        found: u64,
    },
    /// A size or a count above what this reader accepts.
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The size found.
        found: u64,
        /// The largest size accepted.
        limit: u64,
    },
    /// A text field that is not UTF-8.
    NotText {
        /// The field.
        what: &'static str,
    },
    /// An entry claims two compressions at once, or one without its sizes.
    BadCompression {
        /// The entry's flags.
        flags: u64,
    },
    /// The compressed bytes are damaged.
    Damaged {
        /// The compression.
        compression: &'static str,
        /// What the decompressor says.
        reason: String,
    },
    /// Decompression gives another size than the entry's header says.
    SizeMismatch {
        /// The size in the header.
        expected: u64,
        /// The size that came out; at least this much where decompression was stopped.
        found: u64,
    },
    /// A file of the host that should hold fat binaries cannot be read.
    Unreadable {
        /// The kind of file.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A pointer that is null where a structure must be.
    NullPointer {
        /// What it should point to.
        what: &'static str,
    },
}

impl fmt::Display for FatbinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadMagic { what, found } => write!(f, "no fat-binary {what}: it begins with {found:#010x}"),
            Self::UnsupportedVersion { what, found } => {
                write!(f, "fat-binary {what} of unknown version {found}")
            }
            Self::OutOfBounds { what, offset, len, available } => {
                write!(f, "{what}: {len} bytes at offset {offset} do not fit in the {available} there are")
            }
            Self::HeaderTooShort { what, found } => write!(f, "{what} header of only {found} bytes"),
            Self::TooLarge { what, found, limit } => {
                write!(f, "{what} of {found} is above the limit of {limit}")
            }
            Self::NotText { what } => write!(f, "{what} is not UTF-8 text"),
            Self::BadCompression { flags } => write!(f, "contradictory compression (entry flags {flags:#x})"),
            Self::Damaged { compression, reason } => write!(f, "damaged {compression} data: {reason}"),
            Self::SizeMismatch { expected, found } => {
                write!(f, "decompression gives {found} bytes where the header says {expected}")
            }
            Self::Unreadable { what, reason } => write!(f, "unreadable {what}: {reason}"),
            Self::NullPointer { what } => write!(f, "null pointer to a {what}"),
        }
    }
}

impl std::error::Error for FatbinError {}
