//! Machine code from transformed kernels. The only crate that knows LLVM.
//!
//! [`compile()`] takes a program in IR, the launch shape to specialise for and a CPU, and gives an object file. On the way:
//!
//! * `compile`: calls are inlined, the module is emitted, LLVM optimises it;
//! * `emit`: what a kernel does as SIMD code, instruction by instruction;
//! * [`math`]: what operations are whose result depends on their operands alone;
//! * `flush`: whether the kernel runs with the processor flushing subnormals;
//! * [`target`]: processors, and LLVM's way to machine code for them;
//! * [`llvm`]: LLVM's interface, as far as it is used, and passes of our own over its IR.

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
