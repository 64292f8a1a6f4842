//! Decompression with a known, bounded result size.

use std::io::Read;

use crate::error::FatbinError;

/// A byte of an LZ4 block can stand for no more than 255 bytes of output.
const LZ4_MAX_RATIO: u64 = 255;
/// A zstd decoder may ask for this much at a time beyond what it has produced.
const ZSTD_STEP: usize = 1 << 20;

/// Decompresses one raw LZ4 block of exactly `len` bytes.
pub(crate) fn lz4(block: &[u8], len: u64) -> Result<Vec<u8>, FatbinError> {
    // Before allocating: a header can claim any size, the block cannot produce it.
    let most = (block.len() as u64).saturating_mul(LZ4_MAX_RATIO);
    if len > most {
        return Err(FatbinError::SizeMismatch { expected: len, found: most });
    }
    let mut out = vec![0; len as usize];
    match lz4_flex::block::decompress_into(block, &mut out) {
        Ok(found) if found as u64 == len => Ok(out),
        Ok(found) => Err(FatbinError::SizeMismatch { expected: len, found: found as u64 }),
        Err(error) => Err(FatbinError::Damaged { compression: "LZ4", reason: error.to_string() }),
    }
}

/// Decompresses one zstd frame of exactly `len` bytes.
pub(crate) fn zstd(frame: &[u8], len: u64) -> Result<Vec<u8>, FatbinError> {
    let damaged = |reason: String| FatbinError::Damaged { compression: "zstd", reason };
    let decoder =
        ruzstd::decoding::StreamingDecoder::new(frame).map_err(|error| damaged(error.to_string()))?;
    // Grown as output appears: a claimed size alone allocates nothing.
    let mut out = Vec::with_capacity((len as usize).min(ZSTD_STEP));
    decoder.take(len.saturating_add(1)).read_to_end(&mut out).map_err(|error| damaged(error.to_string()))?;
    if out.len() as u64 != len {
        return Err(FatbinError::SizeMismatch { expected: len, found: out.len() as u64 });
    }
    Ok(out)
}
