//! CUDA's Runtime API, `libcudart.so.13`, `libcudart.so.12` and `libcudart.so.11.0`, over the Driver API.
//!
//! The library calls nothing but the C functions of the `libcuda.so.1` that the process has, opened at the first call
//! that needs it. It keeps little state of its own: what compiled programs register ([`registry`]), which primary
//! contexts it has retained ([`context`]), and for each thread the last error, the chosen device and the configuration
//! of a launch in the making ([`thread`]). Result codes of the driver reach the program as they are; the two APIs
//! share their numbers.
//!
//! `api/<group>.rs` holds the entry points, one file per heading of the manual. All libraries are linked from all of
//! them: what CUDA 12 has otherwise is in [`api::cuda12`], what CUDA 11 has in [`api::cuda11`], and the table says which library exports what by which name.
//! Inside, nothing differs but the number that [`version`] gives. What the table
//! `cuda-abi/functions.in` calls missing is a generated stub that answers `cudaErrorNotSupported`.
//!
//! Exit handlers call into the library after everything else is gone, so its statics are never dropped and its
//! thread-local state has no destructors.

#![allow(non_upper_case_globals, reason = "the manual's names stand in patterns")]

pub mod api;
mod context;
mod copy;
mod devices;
mod driver;
mod ending;
mod fork;
mod formats;
mod kernels;
mod registry;
mod resources;
mod shim;
mod streams;
mod stubs;
mod thread;
mod version;

#[cfg(fuzzing)]
pub use driver::replace_resolver as use_driver;

#[cfg(test)]
mod mock_driver;
#[cfg(test)]
mod tests;
