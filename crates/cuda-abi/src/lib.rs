//! The binary interface of CUDA's Driver and Runtime APIs and of the management library, as facts: numbers, layouts, names and signatures.
//!
//! * [`driver`], [`runtime`] and [`nvml`]: C types and codes under the manual's own names, so that a search finds them; `macros` says how
//!   handles, codes and enumerations are written.
//! * [`args`]: types for parameters that make an entry point's body safe code.
//! * [`functions`]: `functions.in`, the table of every exported function, and what is generated from it.
//! * [`shim`]: what the C side of every entry point does besides its work: tracing and catching panics.
//!
//! C enumerations are transparent integers, never Rust enums: a caller may pass any number.
//! Handles are transparent integers too; only the driver knows what they stand for.
//!
//! # How the two shared libraries are made
//!
//! `crates/driver`, `crates/runtime` and `crates/nvml` are `staticlib`s. Their build scripts call [`functions::generate`] for stubs and
//! the `cuGetProcAddress` table; `scripts/link-library` links the archive into the `.so` with the version script of
//! [`functions::version_script`], so that exactly the names of `functions.in` are exported, bound inside the library,
//! and cudart's carry their version node. `libcudart.so.13`, `libcudart.so.12` and `libcudart.so.11.0` are the same
//! archive: where versions mean different functions by one name it has them all, and [`functions::renames`] gives each the
//! name that it has in the library.

#[macro_use]
mod macros;
pub mod args;
pub mod driver;
pub mod functions;
pub mod nvml;
pub mod runtime;
pub mod shim;
