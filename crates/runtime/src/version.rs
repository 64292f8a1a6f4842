//! The version of the API that the library has.
//!
//! `libcudart.so.13`, `libcudart.so.12` and `libcudart.so.11.0` are linked from one archive. The linker makes the symbol
//! `anywarp_cudart_version` stand for one of the numbers here (`cuda_abi::functions::definitions`).

use cuda_abi::runtime::CUDART_VERSION;

#[unsafe(no_mangle)]
static anywarp_cudart_version_13: i32 = CUDART_VERSION;

/// CUDA 12.8, whose functions those of 12.9 are too.
#[unsafe(no_mangle)]
static anywarp_cudart_version_12: i32 = 12080;

/// CUDA 11.8, the last one.
#[unsafe(no_mangle)]
static anywarp_cudart_version_11: i32 = 11080;

#[cfg(not(any(test, fuzzing)))]
unsafe extern "C" {
    safe static anywarp_cudart_version: i32;
}

#[cfg(any(test, fuzzing))]
use anywarp_cudart_version_13 as anywarp_cudart_version;

/// 1000 × major + 10 × minor, as `cudaRuntimeGetVersion` gives it.
pub fn version() -> i32 {
    anywarp_cudart_version
}
