//! Texel formats: the manual's numbers and what they mean.

use crate::error::CuResult;
use cuda_abi::driver::*;
use simt_ir::texture::{Channel, Format};

/// What texels of a format and number of channels are.
///
/// # Errors
/// [`CUDA_ERROR_INVALID_VALUE`] for what is no format of an array or has another number of channels;
/// [`CUDA_ERROR_NOT_SUPPORTED`] for formats whose channels are not side by side: compressed and packed ones.
pub fn of_array(format: CUarray_format, channels: u32) -> CuResult<Format> {
    use Channel::*;
    // Formats with a number of channels in their name have that number.
    let (channel, named) = match format {
        CU_AD_FORMAT_UNSIGNED_INT8 => (Some(U8), None),
        CU_AD_FORMAT_UNSIGNED_INT16 => (Some(U16), None),
        CU_AD_FORMAT_UNSIGNED_INT32 => (Some(U32), None),
        CU_AD_FORMAT_SIGNED_INT8 => (Some(S8), None),
        CU_AD_FORMAT_SIGNED_INT16 => (Some(S16), None),
        CU_AD_FORMAT_SIGNED_INT32 => (Some(S32), None),
        CU_AD_FORMAT_HALF => (Some(F16), None),
        CU_AD_FORMAT_FLOAT => (Some(F32), None),
        CU_AD_FORMAT_UNORM_INT8X1 => (Some(Unorm8), Some(1)),
        CU_AD_FORMAT_UNORM_INT8X2 => (Some(Unorm8), Some(2)),
        CU_AD_FORMAT_UNORM_INT8X4 => (Some(Unorm8), Some(4)),
        CU_AD_FORMAT_UNORM_INT16X1 => (Some(Unorm16), Some(1)),
        CU_AD_FORMAT_UNORM_INT16X2 => (Some(Unorm16), Some(2)),
        CU_AD_FORMAT_UNORM_INT16X4 => (Some(Unorm16), Some(4)),
        CU_AD_FORMAT_SNORM_INT8X1 => (Some(Snorm8), Some(1)),
        CU_AD_FORMAT_SNORM_INT8X2 => (Some(Snorm8), Some(2)),
        CU_AD_FORMAT_SNORM_INT8X4 => (Some(Snorm8), Some(4)),
        CU_AD_FORMAT_SNORM_INT16X1 => (Some(Snorm16), Some(1)),
        CU_AD_FORMAT_SNORM_INT16X2 => (Some(Snorm16), Some(2)),
        CU_AD_FORMAT_SNORM_INT16X4 => (Some(Snorm16), Some(4)),
        CU_AD_FORMAT_BC4_UNORM | CU_AD_FORMAT_BC4_SNORM => (None, Some(1)),
        CU_AD_FORMAT_BC5_UNORM | CU_AD_FORMAT_BC5_SNORM => (None, Some(2)),
        CU_AD_FORMAT_BC6H_UF16 | CU_AD_FORMAT_BC6H_SF16 => (None, Some(3)),
        CU_AD_FORMAT_BC1_UNORM
        | CU_AD_FORMAT_BC1_UNORM_SRGB
        | CU_AD_FORMAT_BC2_UNORM
        | CU_AD_FORMAT_BC2_UNORM_SRGB
        | CU_AD_FORMAT_BC3_UNORM
        | CU_AD_FORMAT_BC3_UNORM_SRGB
        | CU_AD_FORMAT_BC7_UNORM
        | CU_AD_FORMAT_BC7_UNORM_SRGB
        | CU_AD_FORMAT_UNORM_INT_101010_2 => (None, Some(4)),
        // The planar formats are those of arrays that other APIs make.
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    };
    if named.is_some_and(|named| named != channels) {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let channel = channel.ok_or(CUDA_ERROR_NOT_SUPPORTED)?;
    let channels = u8::try_from(channels).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    Ok(Format::new(channel, channels).ok_or(CUDA_ERROR_INVALID_VALUE)?)
}

/// What a resource view makes of texels.
///
/// # Errors
/// As for [`of_array`].
pub fn of_view(format: CUresourceViewFormat) -> CuResult<Format> {
    use Channel::*;
    // The formats go by channel type, and for each by 1, 2 and 4 channels.
    const CHANNELS: [Channel; 8] = [U8, S8, U16, S16, U32, S32, F16, F32];
    const COUNTS: [u8; 3] = [1, 2, 4];
    match format {
        CUresourceViewFormat(number @ 1..=24) => {
            let (channel, count) = ((number as usize - 1) / 3, (number as usize - 1) % 3);
            Ok(Format::new(CHANNELS[channel], COUNTS[count]).ok_or(CUDA_ERROR_INVALID_VALUE)?)
        }
        CU_RES_VIEW_FORMAT_NONE => Err(CUDA_ERROR_INVALID_VALUE.into()),
        other if other.name().is_some() => Err(CUDA_ERROR_NOT_SUPPORTED.into()),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_its_bytes_or_says_why_not() {
        let bytes = |format, channels| of_array(format, channels).map(Format::bytes);
        assert_eq!(bytes(CU_AD_FORMAT_UNSIGNED_INT8, 4), Ok(4));
        assert_eq!(bytes(CU_AD_FORMAT_HALF, 2), Ok(4));
        assert_eq!(bytes(CU_AD_FORMAT_FLOAT, 4), Ok(16));
        assert_eq!(bytes(CU_AD_FORMAT_SNORM_INT16X2, 2), Ok(4));
        let invalid = Err(CUDA_ERROR_INVALID_VALUE.into());
        for channels in [0, 3, 5, 256, 257] {
            assert_eq!(bytes(CU_AD_FORMAT_FLOAT, channels), invalid);
        }
        assert_eq!(bytes(CU_AD_FORMAT_UNORM_INT8X2, 4), invalid);
        assert_eq!(bytes(CUarray_format(0x777), 1), invalid);
        assert_eq!(bytes(CU_AD_FORMAT_NV12, 3), invalid);
        assert_eq!(bytes(CU_AD_FORMAT_BC1_UNORM, 3), invalid);
        assert_eq!(bytes(CU_AD_FORMAT_BC1_UNORM, 4), Err(CUDA_ERROR_NOT_SUPPORTED.into()));
    }

    #[test]
    fn formats_of_views_are_what_their_names_say() {
        for (name, format) in CUresourceViewFormat::NAMES {
            let told = match of_view(*format) {
                Ok(format) => {
                    let kind = match format.channel {
                        Channel::F16 | Channel::F32 => "FLOAT",
                        channel if channel.is_signed() => "SINT",
                        _ => "UINT",
                    };
                    format!("{kind}_{}X{}", format.channels, 8 * format.channel.bytes())
                }
                Err(failure) => {
                    let is_compressed = name.contains("_BC");
                    let code =
                        if is_compressed { CUDA_ERROR_NOT_SUPPORTED } else { CUDA_ERROR_INVALID_VALUE };
                    assert_eq!(failure, code.into());
                    assert!(is_compressed || *name == "CU_RES_VIEW_FORMAT_NONE");
                    continue;
                }
            };
            assert_eq!(*name, format!("CU_RES_VIEW_FORMAT_{told}"));
        }
        assert_eq!(of_view(CUresourceViewFormat(35)), Err(CUDA_ERROR_INVALID_VALUE.into()));
    }
}
