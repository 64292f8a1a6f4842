//! Runs kernels as machine code.
//!
//! [`Jit`] is the [`kernel_abi::KernelBackend`] that programs get by default. It looks a kernel up in memory, then in the
//! [cache on disk](cache), and only then opens the [compiler library](compiler), which is large. Code comes as a relocatable
//! object, which [`object`] loads, and runs inside a guarded call, so that a kernel's bad access ends the launch and not the
//! process.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `ANYWARP_CPU` | compile for `native` (default), `baseline`, `avx2` or `avx512` |
//! | `ANYWARP_COMPILER_LIB` | the compiler library, if not beside ours |
//! | `ANYWARP_PERF_MAP` | 1: tell `perf` the kernels' names |
//!
//! The cache's variables are in [`cache`].

mod backend;
mod bulk;
pub mod cache;
pub mod compiler;
mod cpu;
mod kernel;
pub mod object;
mod perf;
mod scheduler;
mod symbols;

pub use backend::Jit;
pub use symbols::host_symbol;
