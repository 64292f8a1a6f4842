//! Runs kernels as machine code.

pub mod object;
mod symbols;

pub use symbols::host_symbol;
