//! Machine code from transformed kernels. The only crate that knows LLVM.

pub mod llvm;
pub mod math;
pub mod target;
