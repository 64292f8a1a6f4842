//! What `libcuda.so.1` and the crate `anywarp` have in common above the device: which back ends run kernels, and the codes
//! that CUDA has for failures.

mod backend;
mod codes;

pub use backend::{WithoutCompiler, backend};
pub use codes::code;

use device::{Options, Platform, Result};
use jit::cache::DiskCache;
use std::path::PathBuf;

/// Makes the devices that the environment asks for.
///
/// # Errors
/// As for [`Platform::new`] and [`backend()`].
pub fn from_environment(without: WithoutCompiler) -> Result<Platform> {
    Platform::check_process()?;
    Platform::new(Options::from_environment(), backend(without)?)
}

/// Where compiled kernels are kept between runs; `None` if they are not.
pub fn kernel_cache() -> Option<PathBuf> {
    DiskCache::from_environment().map(|cache| cache.directory().to_owned())
}
