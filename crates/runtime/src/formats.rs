//! Texel formats in the runtime's and the driver's terms.

use cuda_abi::driver::*;
use cuda_abi::runtime::*;

/// The driver's format and number of channels for a channel description.
pub fn of_channels(channels: &cudaChannelFormatDesc) -> CudaResult<(CUarray_format, u32)> {
    let bits = [channels.x, channels.y, channels.z, channels.w];
    let count = bits.iter().take_while(|&&bits| bits != 0).count();
    // All channels are alike, and those that are there come first. Three are never stored.
    let alike = bits[..count].iter().all(|&b| b == bits[0]) && bits[count..].iter().all(|&b| b == 0);
    if !alike || !matches!(count, 1 | 2 | 4) {
        return Err(cudaErrorInvalidChannelDescriptor);
    }
    let format = match (channels.f, bits[0]) {
        (cudaChannelFormatKindUnsigned, 8) => CU_AD_FORMAT_UNSIGNED_INT8,
        (cudaChannelFormatKindUnsigned, 16) => CU_AD_FORMAT_UNSIGNED_INT16,
        (cudaChannelFormatKindUnsigned, 32) => CU_AD_FORMAT_UNSIGNED_INT32,
        (cudaChannelFormatKindSigned, 8) => CU_AD_FORMAT_SIGNED_INT8,
        (cudaChannelFormatKindSigned, 16) => CU_AD_FORMAT_SIGNED_INT16,
        (cudaChannelFormatKindSigned, 32) => CU_AD_FORMAT_SIGNED_INT32,
        (cudaChannelFormatKindFloat, 16) => CU_AD_FORMAT_HALF,
        (cudaChannelFormatKindFloat, 32) => CU_AD_FORMAT_FLOAT,
        _ => return Err(cudaErrorInvalidChannelDescriptor),
    };
    Ok((format, count as u32))
}

/// The channel description of the driver's format.
pub fn to_channels(format: CUarray_format, count: u32) -> CudaResult<cudaChannelFormatDesc> {
    let (kind, bits) = match format {
        CU_AD_FORMAT_UNSIGNED_INT8 => (cudaChannelFormatKindUnsigned, 8),
        CU_AD_FORMAT_UNSIGNED_INT16 => (cudaChannelFormatKindUnsigned, 16),
        CU_AD_FORMAT_UNSIGNED_INT32 => (cudaChannelFormatKindUnsigned, 32),
        CU_AD_FORMAT_SIGNED_INT8 => (cudaChannelFormatKindSigned, 8),
        CU_AD_FORMAT_SIGNED_INT16 => (cudaChannelFormatKindSigned, 16),
        CU_AD_FORMAT_SIGNED_INT32 => (cudaChannelFormatKindSigned, 32),
        CU_AD_FORMAT_HALF => (cudaChannelFormatKindFloat, 16),
        CU_AD_FORMAT_FLOAT => (cudaChannelFormatKindFloat, 32),
        _ => return Err(cudaErrorNotSupported),
    };
    let channel = |index: u32| if index < count { bits } else { 0 };
    Ok(cudaChannelFormatDesc { x: channel(0), y: channel(1), z: channel(2), w: channel(3), f: kind })
}

/// The size of one texel in bytes.
pub fn texel_size(format: CUarray_format, count: u32) -> CudaResult<usize> {
    let channels = to_channels(format, count)?;
    Ok((channels.x + channels.y + channels.z + channels.w) as usize / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_go_there_and_back() {
        for kind in [cudaChannelFormatKindUnsigned, cudaChannelFormatKindSigned, cudaChannelFormatKindFloat] {
            for bits in [8, 16, 32] {
                for (y, z, w) in [(0, 0, 0), (bits, 0, 0), (bits, bits, bits)] {
                    let channels = cudaChannelFormatDesc { x: bits, y, z, w, f: kind };
                    let Ok((format, count)) = of_channels(&channels) else {
                        assert_eq!((kind, bits), (cudaChannelFormatKindFloat, 8));
                        continue;
                    };
                    assert_eq!(to_channels(format, count), Ok(channels));
                    assert_eq!(texel_size(format, count), Ok(((bits + y + z + w) / 8) as usize));
                }
            }
        }
    }

    #[test]
    fn three_or_unequal_channels_are_refused() {
        for (x, y, z, w) in
            [(8, 8, 8, 0), (8, 16, 0, 0), (0, 8, 0, 0), (0, 0, 0, 0), (64, 0, 0, 0), (-8, 0, 0, 0)]
        {
            let channels = cudaChannelFormatDesc { x, y, z, w, f: cudaChannelFormatKindUnsigned };
            assert_eq!(of_channels(&channels), Err(cudaErrorInvalidChannelDescriptor), "{channels:?}");
        }
    }
}
