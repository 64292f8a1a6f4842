use crate::error::FatbinError;
use crate::{WRAPPER_MAGIC, container::Bytes};

/// Size of a wrapper.
pub const WRAPPER_LEN: usize = 24;

/// The structure that a host program hands to the runtime for each of its fat binaries.
///
/// Its pointers are those of the process it lives in; [`crate::raw`] follows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrapper {
    /// What the pointers mean.
    pub version: WrapperVersion,
    /// Address of the container.
    pub container: u64,
    /// In a linked wrapper the address of an array of container addresses that ends with a null.
    pub linked: u64,
}

/// The kinds of wrapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrapperVersion {
    /// Version 1: one container holds the whole program.
    Whole,
    /// Version 2, from relocatable device code: the program is the link of several containers.
    Linked,
}

impl Wrapper {
    /// Reads a wrapper from its 24 bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, FatbinError> {
        let bytes = Bytes { what: "wrapper", bytes };
        let magic = bytes.u32(0)?;
        if magic != WRAPPER_MAGIC {
            return Err(FatbinError::BadMagic { what: "wrapper", found: magic });
        }
        let version = match bytes.u32(4)? {
            1 => WrapperVersion::Whole,
            2 => WrapperVersion::Linked,
            found => return Err(FatbinError::UnsupportedVersion { what: "wrapper", found }),
        };
        Ok(Self { version, container: bytes.u64(8)?, linked: bytes.u64(16)? })
    }
}
