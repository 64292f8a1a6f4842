//! Texel formats in the runtime's and the driver's terms.

use cuda_abi::driver::*;
use cuda_abi::runtime::*;

/// The driver's formats, with the kind and the bits of their channels, and how many those are where the format says so.
const FORMATS: &[(CUarray_format, cudaChannelFormatKind, i32, Option<u32>)] = &[
    (CU_AD_FORMAT_UNSIGNED_INT8, cudaChannelFormatKindUnsigned, 8, None),
    (CU_AD_FORMAT_UNSIGNED_INT16, cudaChannelFormatKindUnsigned, 16, None),
    (CU_AD_FORMAT_UNSIGNED_INT32, cudaChannelFormatKindUnsigned, 32, None),
    (CU_AD_FORMAT_SIGNED_INT8, cudaChannelFormatKindSigned, 8, None),
    (CU_AD_FORMAT_SIGNED_INT16, cudaChannelFormatKindSigned, 16, None),
    (CU_AD_FORMAT_SIGNED_INT32, cudaChannelFormatKindSigned, 32, None),
    (CU_AD_FORMAT_HALF, cudaChannelFormatKindFloat, 16, None),
    (CU_AD_FORMAT_FLOAT, cudaChannelFormatKindFloat, 32, None),
    (CU_AD_FORMAT_UNORM_INT8X1, cudaChannelFormatKindUnsignedNormalized8X1, 8, Some(1)),
    (CU_AD_FORMAT_UNORM_INT8X2, cudaChannelFormatKindUnsignedNormalized8X2, 8, Some(2)),
    (CU_AD_FORMAT_UNORM_INT8X4, cudaChannelFormatKindUnsignedNormalized8X4, 8, Some(4)),
    (CU_AD_FORMAT_UNORM_INT16X1, cudaChannelFormatKindUnsignedNormalized16X1, 16, Some(1)),
    (CU_AD_FORMAT_UNORM_INT16X2, cudaChannelFormatKindUnsignedNormalized16X2, 16, Some(2)),
    (CU_AD_FORMAT_UNORM_INT16X4, cudaChannelFormatKindUnsignedNormalized16X4, 16, Some(4)),
    (CU_AD_FORMAT_SNORM_INT8X1, cudaChannelFormatKindSignedNormalized8X1, 8, Some(1)),
    (CU_AD_FORMAT_SNORM_INT8X2, cudaChannelFormatKindSignedNormalized8X2, 8, Some(2)),
    (CU_AD_FORMAT_SNORM_INT8X4, cudaChannelFormatKindSignedNormalized8X4, 8, Some(4)),
    (CU_AD_FORMAT_SNORM_INT16X1, cudaChannelFormatKindSignedNormalized16X1, 16, Some(1)),
    (CU_AD_FORMAT_SNORM_INT16X2, cudaChannelFormatKindSignedNormalized16X2, 16, Some(2)),
    (CU_AD_FORMAT_SNORM_INT16X4, cudaChannelFormatKindSignedNormalized16X4, 16, Some(4)),
];

/// The driver's format and number of channels for a channel description.
pub fn of_channels(channels: &cudaChannelFormatDesc) -> CudaResult<(CUarray_format, u32)> {
    let bits = [channels.x, channels.y, channels.z, channels.w];
    let count = bits.iter().take_while(|&&bits| bits != 0).count();
    // All channels are alike, and those that are there come first. Three are never stored.
    let alike = bits[..count].iter().all(|&b| b == bits[0]) && bits[count..].iter().all(|&b| b == 0);
    let count = count as u32;
    let found = FORMATS.iter().find(|(_, kind, each, named)| {
        (*kind, *each) == (channels.f, bits[0]) && named.is_none_or(|named| named == count)
    });
    match found {
        Some((format, ..)) if alike && matches!(count, 1 | 2 | 4) => Ok((*format, count)),
        _ => Err(cudaErrorInvalidChannelDescriptor),
    }
}

/// The channel description of the driver's format.
pub fn to_channels(format: CUarray_format, count: u32) -> CudaResult<cudaChannelFormatDesc> {
    let found = FORMATS.iter().find(|(known, ..)| *known == format);
    let (_, kind, bits, _) = *found.ok_or(cudaErrorNotSupported)?;
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
    fn normalized_formats_say_how_many_channels_they_have() {
        let kind = cudaChannelFormatKindSignedNormalized16X2;
        let channels = |x, y, z, w| cudaChannelFormatDesc { x, y, z, w, f: kind };
        let two = channels(16, 16, 0, 0);
        assert_eq!(of_channels(&two), Ok((CU_AD_FORMAT_SNORM_INT16X2, 2)));
        assert_eq!(to_channels(CU_AD_FORMAT_SNORM_INT16X2, 2), Ok(two));
        for wrong in [channels(16, 0, 0, 0), channels(8, 8, 0, 0), channels(16, 16, 16, 16)] {
            assert_eq!(of_channels(&wrong), Err(cudaErrorInvalidChannelDescriptor));
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
