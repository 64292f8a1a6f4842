//! Runs kernels as machine code.
//!
//! [`Jit`] is the [`kernel_abi::KernelBackend`] that programs get by default. It looks a kernel up in memory, then in the
//! [cache on disk](cache), and only then opens the [compiler library](compiler), which is large. Code comes as a relocatable
//! object, which [`object`] loads, and runs inside a guarded call, so that a kernel's bad access ends the launch and not the
//! process.
//!
//! What is in no cache is compiled quickly for a kernel's first launch, to slower code that does the same; the fast code is
//! made beside that, and takes its place: [`CompiledKernel::successor`](kernel_abi::CompiledKernel::successor).
//!
//! * [`backend`], [`cache`], [`compiler`], [`cpu`]: from a kernel's name and shape to an object;
//! * [`object`], [`symbols`], [`perf`]: from an object to code in memory, what that may call, and its names for profilers;
//! * [`kernel`], [`scheduler`]: how blocks are run, and how warps meet at barriers;
//! * [`better`]: the fast code;
//! * [`bulk`], [`matrix`], [`late`]: what generated code leaves to the host.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `ANYWARP_CPU` | compile for `native` (default), `baseline`, `avx2` or `avx512` |
//! | `ANYWARP_COMPILER_LIB` | the compiler library, if not beside ours |
//! | `ANYWARP_TIERS` | 0: a kernel's first launch waits for fast code, as all others do |
//! | `ANYWARP_PERF_MAP` | 1: tell `perf` the kernels' names |
//!
//! The cache's variables are in [`cache`].

mod backend;
mod better;
mod bulk;
pub mod cache;
pub mod compiler;
mod cpu;
mod kernel;
pub mod late;
mod matrix;
pub mod object;
mod perf;
mod scheduler;
mod symbols;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use backend::Jit;
pub use symbols::host_symbol;

/// Locks one of the tables here. They are changed by single calls that leave them whole, so a panic elsewhere does not spoil them.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
