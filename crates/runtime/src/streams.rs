//! The default stream's two meanings.

use cuda_abi::driver::{CU_STREAM_PER_THREAD, CUstream};
use cuda_abi::runtime::cudaStream_t;
use cuda_abi::shim::DefaultStream;

/// The driver's stream for one that a program named: null is the default stream of the variant that it called.
pub fn resolve(default: DefaultStream, stream: cudaStream_t) -> CUstream {
    match default {
        DefaultStream::PerThread if stream.is_null() => CU_STREAM_PER_THREAD,
        _ => stream,
    }
}
