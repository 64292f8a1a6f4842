//! CUDA fat binaries: the container in which a compiler ships one program for several devices.
//!
//! A *container* is a header and a row of *entries*; an entry is PTX text, a machine-code image (ELF) or
//! link-time IR, for one architecture, perhaps compressed. A host program points at a container through a
//! 24-byte *wrapper*; separately compiled programs have a wrapper with an array of containers, one per unit,
//! which are to be linked together.
//!
//! Everything works on slices and checks every length and offset; whatever the bytes, the answer is an entry or
//! a [`FatbinError`]. Only [`raw`], which turns the pointers that a C caller hands over into slices, is unsafe.
//!
//! ```
//! use fatbin::{Container, Target, writer::{ContainerWriter, EntryWriter}};
//!
//! let bytes = ContainerWriter::new().entry(EntryWriter::ptx(90, ".version 8.0\n.target sm_90\n")).finish();
//! let container = Container::parse(&bytes)?;
//! let image = container.choose_ptx(Target::new(90))?.expect("sm_90 runs on a 9.0 device");
//! assert!(image.payload()?.starts_with(b".version"));
//! # Ok::<(), fatbin::FatbinError>(())
//! ```

mod choice;
mod container;
mod decompress;
mod error;
pub mod objects;
pub mod raw;
mod wrapper;
pub mod writer;

pub use choice::{Fatbin, Target};
pub use container::{Compression, Container, Entry, EntryKind, Version};
pub use error::FatbinError;
pub use wrapper::{WRAPPER_LEN, Wrapper, WrapperVersion};

/// First word of a wrapper.
pub const WRAPPER_MAGIC: u32 = 0x4662_43B1;
/// First word of a container.
pub const CONTAINER_MAGIC: u32 = 0xBA55_ED50;

/// Largest decompressed entry that is accepted. Real PTX modules stay below a hundred megabytes.
pub const MAX_PAYLOAD_LEN: u64 = 1 << 30;
/// Largest container that a raw pointer may claim to hold.
pub const MAX_CONTAINER_LEN: u64 = 1 << 32;
/// Most containers that one linked set may name.
pub const MAX_LINKED_CONTAINERS: usize = 1 << 16;
