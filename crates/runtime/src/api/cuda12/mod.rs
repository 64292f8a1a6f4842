//! Functions that CUDA 12 has and CUDA 13 has not, or has with other parameters or structures; those of the same name
//! end in `_cuda12` here. All else in `libcudart.so.12` is shared.

pub mod device;
pub mod execution;
pub mod external;
pub mod graph;
pub mod memory;
pub mod objects;
pub mod stream;
pub mod thread;
