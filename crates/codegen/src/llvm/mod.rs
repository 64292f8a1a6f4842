//! A thin layer over LLVM's C interface: what emission needs and no more.
//!
//! [`Context`] owns everything made in it, modules included; [`Module`], [`Function`], [`Block`], [`Type`], [`Value`]
//! and [`Builder`] are plain handles that borrow from it. One compilation uses one context on one thread.
//!
//! LLVM checks little of what its builders are given and crashes on the rest. Every method here therefore asserts that
//! its operands have the types the instruction takes, and panics at the caller's line otherwise; the compiler's entry
//! turns a panic into an error. What a method cannot see (dominance, a phi that misses an edge) the verifier finds,
//! which runs before LLVM's passes. Those of our own are in `passes`.

mod arithmetic;
mod builder;
mod context;
mod memory;
mod metadata;
mod passes;
mod types;
mod value;
mod vector;

pub use arithmetic::{FloatPredicate, IntPredicate};
pub use builder::Builder;
pub use context::{Context, Linkage, Module, TELLS_FRAME};
pub use memory::{AtomicOp, Ordering};
pub use metadata::{AliasScope, LoopHint, Metadata};
pub use types::Type;
pub use value::{Block, Function, Phi, Value};

pub(crate) use context::take_message;

/// The empty name: values print as numbers, and naming them would cost compile time.
const UNNAMED: *const std::ffi::c_char = c"".as_ptr();

/// Length or count for a C interface that takes `unsigned`.
fn count(length: usize) -> u32 {
    u32::try_from(length).expect("a count that fits LLVM's unsigned")
}
