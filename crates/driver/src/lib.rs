//! CUDA's Driver API, `libcuda.so.1`.
//!
//! `api/<group>.rs` holds the entry points, one file per heading of the manual: each converts its arguments, calls the
//! virtual device and returns. What the table `cuda-abi/functions.in` calls missing is a generated stub that answers
//! `CUDA_ERROR_NOT_SUPPORTED`.

pub mod api;
mod shim;
mod stubs;
