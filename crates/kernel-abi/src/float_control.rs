//! How the processor computes with floating-point numbers while a kernel runs: values of `MXCSR`.

/// What the ABI says: exceptions masked, rounding to nearest, subnormals kept.
pub const STANDARD: u32 = 0x1f80;

/// Likewise, with results flushed and operands taken for zero where they are subnormal
/// ([`KernelInfo::flush_subnormals`](crate::KernelInfo::flush_subnormals)).
pub const FLUSHING: u32 = STANDARD | 0x8000 | 0x0040;
