//! The small SIMT intermediate representation between PTX and machine code.
//!
//! A [`Program`] is one kernel and the device functions it reaches. Each [`Function`] is written from the view of one
//! thread, in SSA form with block parameters; operations that look beyond their thread (shuffles, votes, barriers,
//! atomics) are explicit. Types carry no signs, operations do ([`op`]).
//!
//! Rules, checked by [`verify()`]:
//! * every use is dominated by its definition, and operand types are those that [`Op`] lists;
//! * the entry block has no predecessors; its parameters are the function's;
//! * a kernel has no parameters and no results.
//!
//! Two independent meanings exist for every program: the interpreter (through [`eval`]) and generated code. They agree bit
//! for bit.

pub mod approx;
pub mod builder;
pub mod bulk;
pub mod cfg;
pub mod device_runtime;
mod effect;
pub mod eval;
pub mod function;
pub mod matrix;
pub mod mbarrier;
pub mod mufu;
pub mod op;
mod pressure;
pub mod quotient;
pub mod soft;
mod special;
pub mod text;
pub mod texture;
mod ty;
pub mod verify;

pub use approx::Approximations;
pub use builder::{FunctionBuilder, Var};
pub use cfg::{Cfg, DomTree};
pub use device_runtime::RuntimeFunction;
pub use function::*;
pub use op::*;
pub use pressure::registers;
pub use special::SpecialReg;
pub use ty::Type;
pub use verify::{VerifyError, verify};
