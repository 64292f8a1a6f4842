//! Machine code from transformed kernels. The only crate that knows LLVM.
//!
//! [`compile()`] takes a program in IR, the launch shape to specialise for and a CPU, and gives an object file.

mod compile;
mod emit;
mod flush;
pub mod llvm;
pub mod math;
pub mod target;

pub use compile::{
    ENTRY_SYMBOL, Object, Plan, Stage, Text, compile, compile_as, compile_in_stages, emit_text, emit_text_as,
};
pub use transform::gang::Choice;
