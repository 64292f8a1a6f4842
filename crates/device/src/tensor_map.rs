//! Tensor maps: how a tensor lies in memory, for kernels that copy boxes of it. What they mean is the copies' (`simt_ir::bulk`).

pub use kernel_abi::bulk::{Element, Field, Interleave, MapError, Mode, Swizzle, TensorMap};
