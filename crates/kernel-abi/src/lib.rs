//! What the host and compiled kernels share.
//!
//! * [`shape`]: what a kernel is specialised for;
//! * [`frame`]: the structures generated code reads and writes, with their offsets;
//! * [`artifact`]: a compiled kernel as bytes;
//! * [`library`]: the C interface of the compiler library;
//! * [`soft`], [`matrix`], [`bulk`]: arithmetic and copies that generated code leaves to the host, as numbers (`fields`);
//! * [`late`]: atomics that the thread which runs a block keeps for later;
//! * [`float_control`]: how the processor is set for a kernel;
//! * [`texture`]: instructions about textures and surfaces, which the device carries out;
//! * [`tier`]: code that is there soon, and code that is fast;
//! * [`backend`], [`fallback`]: the interface through which the device compiles and runs kernels, and one back end behind another.
//!
//! A compiled kernel has one entry, of one of two kinds ([`EntryKind`]). Kernels without barriers get a function
//! that runs a range of blocks. Kernels with barriers get a function that runs one warp up to its next suspension point; the back end's
//! scheduler calls it for each warp in turn ([`WarpEntry`]).

pub mod artifact;
pub mod backend;
pub mod bulk;
pub mod fallback;
mod fields;
pub mod float_control;
pub mod frame;
pub mod late;
pub mod library;
pub mod matrix;
pub mod shape;
pub mod soft;
pub mod texture;
mod tier;

pub use backend::*;
pub use fallback::WithFallback;
pub use frame::*;
pub use shape::{Gangs, Shape, XLayout};
pub use simt_ir::Approximations;
pub use tier::Tier;
