//! The management library, `libnvidia-ml.so.1`.
//!
//! [`machine`] is what there is to tell: the devices of this machine (all of them, whatever `CUDA_VISIBLE_DEVICES` says) and
//! what the processes of this user do with them, which they tell by [`device::usage`]. `api/<group>.rs` holds the entry
//! points. It needs no CUDA driver in the process and makes no device of its own. What `cuda-abi/functions.in` calls missing is
//! a generated stub that answers `NVML_ERROR_NOT_SUPPORTED`, which is also what the manual has for a sensor that a device lacks.

mod api;
pub mod machine;
mod shim;
mod stubs;
