//! Stream ordered memory allocator.

use crate::error::CuResult;
use crate::streams::find;
use cuda_abi::args::Out;
use cuda_abi::driver::*;
use cuda_abi::shim::DefaultStream;
use entry_macros::entry_point;

/// Memory for what the stream does from now on.
#[entry_point(ptsz)]
fn cuMemAllocAsync(
    default: DefaultStream,
    dptr: Out<CUdeviceptr>,
    bytesize: usize,
    hStream: CUstream,
) -> CuResult {
    dptr.check()?.set(CUdeviceptr(find(hStream, default)?.allocate(bytesize as u64)?))?;
    Ok(())
}

/// Freed when the stream has done what it was given before.
#[entry_point(ptsz)]
fn cuMemFreeAsync(default: DefaultStream, dptr: CUdeviceptr, hStream: CUstream) -> CuResult {
    let stream = find(hStream, default)?;
    if dptr.0 != 0 {
        stream.free(dptr.0)?;
    }
    Ok(())
}
