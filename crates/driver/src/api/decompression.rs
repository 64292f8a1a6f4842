//! Memory management: compressed memory.

use crate::error::CuResult;
use crate::platform::platform;
use crate::streams;
use cuda_abi::args::{Array, Out};
use cuda_abi::driver::*;
use cuda_abi::shim::DefaultStream;
use device::decompression::{Compressed, Format, MAX_LEN};
use entry_macros::entry_point;
use std::sync::Arc;

/// All pieces are checked before the first is unpacked; which one is wrong is told.
#[entry_point(ptsz)]
fn cuMemBatchDecompressAsync(
    default: DefaultStream,
    paramsArray: Array<CUmemDecompressParams>,
    count: usize,
    flags: u32,
    errorIndex: Out<usize>,
    stream: CUstream,
) -> CuResult {
    errorIndex.set_if_wanted(usize::MAX);
    if flags != 0 || count == 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let stream = streams::find(stream, default)?;
    let mut pieces = Vec::new();
    for index in 0..count {
        let piece = piece(&paramsArray.get(index)?);
        pieces.push(piece.inspect_err(|_| errorIndex.set_if_wanted(index))?);
    }
    stream.decompress(Arc::from(pieces))?;
    Ok(())
}

/// Checks one of them: a known format, and memory that the device knows on both sides.
fn piece(params: &CUmemDecompressParams) -> CuResult<Compressed> {
    let format = match params.algo {
        CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE => Format::Deflate,
        CU_MEM_DECOMPRESS_ALGORITHM_SNAPPY => Format::Snappy,
        CU_MEM_DECOMPRESS_ALGORITHM_LZ4 => Format::Lz4,
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    };
    let [source, destination, actual] = [params.src as u64, params.dst as u64, params.dstActBytes as u64];
    let memory = platform()?.memory();
    let end = memory.find(destination).ok_or(CUDA_ERROR_INVALID_VALUE)?.end();
    // The expected length may be left out: then there is room to the allocation's end.
    let room = match params.dstNumBytes as u64 {
        0 => (end - destination).min(MAX_LEN),
        len => len,
    };
    let source_len = params.srcNumBytes as u64;
    let fits = |address, len| (1..=MAX_LEN).contains(&len) && memory.covers(address, len);
    if !fits(source, source_len) || !fits(destination, room) || !fits(actual, 4) {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    Ok(Compressed { format, source, source_len, destination, room, actual })
}
