//! What the targets over the two APIs share: calls of any exported function, with arguments made of the fuzzer's bytes.
//!
//! `cuda-abi/functions.in` says which functions there are and what types their parameters have. What a parameter of a type may
//! be is said once, in [`arguments`]: a handle is one that an earlier call gave, a destroyed one, one of another kind or
//! nonsense; a size is small or absurd; an address lies in memory of the device, in the program's, or nowhere. What no driver can
//! survive is left out: memory that a structure describes is really there, and what is called back is a function.

pub mod arguments;
pub mod host;
pub mod session;
pub mod symbols;
