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

/// Formats whose texels are not channels side by side: their kind, the bits of each channel, and the bytes of a word or block.
type Packed = (CUarray_format, cudaChannelFormatKind, [i32; 4], usize);

const PACKED: &[Packed] = &[
    (CU_AD_FORMAT_BC1_UNORM, cudaChannelFormatKindUnsignedBlockCompressed1, [8; 4], 8),
    (CU_AD_FORMAT_BC1_UNORM_SRGB, cudaChannelFormatKindUnsignedBlockCompressed1SRGB, [8; 4], 8),
    (CU_AD_FORMAT_BC2_UNORM, cudaChannelFormatKindUnsignedBlockCompressed2, [8; 4], 16),
    (CU_AD_FORMAT_BC2_UNORM_SRGB, cudaChannelFormatKindUnsignedBlockCompressed2SRGB, [8; 4], 16),
    (CU_AD_FORMAT_BC3_UNORM, cudaChannelFormatKindUnsignedBlockCompressed3, [8; 4], 16),
    (CU_AD_FORMAT_BC3_UNORM_SRGB, cudaChannelFormatKindUnsignedBlockCompressed3SRGB, [8; 4], 16),
    (CU_AD_FORMAT_BC4_UNORM, cudaChannelFormatKindUnsignedBlockCompressed4, [8, 0, 0, 0], 8),
    (CU_AD_FORMAT_BC4_SNORM, cudaChannelFormatKindSignedBlockCompressed4, [8, 0, 0, 0], 8),
    (CU_AD_FORMAT_BC5_UNORM, cudaChannelFormatKindUnsignedBlockCompressed5, [8, 8, 0, 0], 16),
    (CU_AD_FORMAT_BC5_SNORM, cudaChannelFormatKindSignedBlockCompressed5, [8, 8, 0, 0], 16),
    (CU_AD_FORMAT_BC6H_UF16, cudaChannelFormatKindUnsignedBlockCompressed6H, [16, 16, 16, 0], 16),
    (CU_AD_FORMAT_BC6H_SF16, cudaChannelFormatKindSignedBlockCompressed6H, [16, 16, 16, 0], 16),
    (CU_AD_FORMAT_BC7_UNORM, cudaChannelFormatKindUnsignedBlockCompressed7, [8; 4], 16),
    (CU_AD_FORMAT_BC7_UNORM_SRGB, cudaChannelFormatKindUnsignedBlockCompressed7SRGB, [8; 4], 16),
    (CU_AD_FORMAT_UNORM_INT_101010_2, cudaChannelFormatKindUnsignedNormalized1010102, [10, 10, 10, 2], 4),
];

/// The driver's format and number of channels for a channel description.
pub fn of_channels(channels: &cudaChannelFormatDesc) -> CudaResult<(CUarray_format, u32)> {
    let bits = [channels.x, channels.y, channels.z, channels.w];
    if let Some((format, _, wanted, _)) = PACKED.iter().find(|(_, kind, ..)| *kind == channels.f) {
        let count = bits.iter().filter(|bits| **bits != 0).count() as u32;
        return if bits == *wanted { Ok((*format, count)) } else { Err(cudaErrorInvalidChannelDescriptor) };
    }
    // Frames of video: a format that there is, and that no array here has.
    if channels.f == cudaChannelFormatKindNV12 && bits == [8, 8, 8, 0] {
        return Err(cudaErrorInvalidValue);
    }
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
    if let Some((_, kind, [x, y, z, w], _)) = PACKED.iter().find(|(known, ..)| *known == format) {
        return Ok(cudaChannelFormatDesc { x: *x, y: *y, z: *z, w: *w, f: *kind });
    }
    let found = FORMATS.iter().find(|(known, ..)| *known == format);
    let (_, kind, bits, _) = *found.ok_or(cudaErrorNotSupported)?;
    let channel = |index: u32| if index < count { bits } else { 0 };
    Ok(cudaChannelFormatDesc { x: channel(0), y: channel(1), z: channel(2), w: channel(3), f: kind })
}

/// Texels along each side of a block; 1 where they are not compressed.
pub fn side(format: CUarray_format) -> usize {
    let is_compressed = PACKED.iter().any(|(known, ..)| *known == format);
    if is_compressed && format != CU_AD_FORMAT_UNORM_INT_101010_2 { 4 } else { 1 }
}

/// The size of one texel in bytes; of a block where they are compressed.
pub fn texel_size(format: CUarray_format, count: u32) -> CudaResult<usize> {
    if let Some((.., bytes)) = PACKED.iter().find(|(known, ..)| *known == format) {
        return Ok(*bytes);
    }
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
    fn packed_formats_have_their_channels() {
        for (format, kind, bits, bytes) in PACKED {
            let [x, y, z, w] = *bits;
            let channels = cudaChannelFormatDesc { x, y, z, w, f: *kind };
            let count = bits.iter().filter(|bits| **bits != 0).count() as u32;
            assert_eq!(of_channels(&channels), Ok((*format, count)));
            assert_eq!(to_channels(*format, count), Ok(channels));
            assert_eq!(texel_size(*format, count), Ok(*bytes));
            let wrong = cudaChannelFormatDesc { x: x + 1, ..channels };
            assert_eq!(of_channels(&wrong), Err(cudaErrorInvalidChannelDescriptor));
        }
        assert_eq!(side(CU_AD_FORMAT_BC4_SNORM), 4);
        assert_eq!([CU_AD_FORMAT_UNORM_INT_101010_2, CU_AD_FORMAT_FLOAT].map(side), [1, 1]);
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
