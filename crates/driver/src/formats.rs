//! Texel formats: the manual's numbers and what they mean.

use crate::error::CuResult;
use cuda_abi::driver::*;
use simt_ir::texture::{Channel, Compression, Format};

/// What texels of a format and number of channels are.
///
/// # Errors
/// [`CUDA_ERROR_INVALID_VALUE`] for what is no format of an array or has another number of channels.
pub fn of_array(format: CUarray_format, channels: u32) -> CuResult<Format> {
    use Channel::*;
    if let Some(packed) = packed(format) {
        let is_named = u32::from(packed.channels) == channels;
        return if is_named { Ok(packed) } else { Err(CUDA_ERROR_INVALID_VALUE.into()) };
    }
    // Formats with a number of channels in their name have that number.
    let (channel, named) = match format {
        CU_AD_FORMAT_UNSIGNED_INT8 => (U8, None),
        CU_AD_FORMAT_UNSIGNED_INT16 => (U16, None),
        CU_AD_FORMAT_UNSIGNED_INT32 => (U32, None),
        CU_AD_FORMAT_SIGNED_INT8 => (S8, None),
        CU_AD_FORMAT_SIGNED_INT16 => (S16, None),
        CU_AD_FORMAT_SIGNED_INT32 => (S32, None),
        CU_AD_FORMAT_HALF => (F16, None),
        CU_AD_FORMAT_FLOAT => (F32, None),
        CU_AD_FORMAT_UNORM_INT8X1 => (Unorm8, Some(1)),
        CU_AD_FORMAT_UNORM_INT8X2 => (Unorm8, Some(2)),
        CU_AD_FORMAT_UNORM_INT8X4 => (Unorm8, Some(4)),
        CU_AD_FORMAT_UNORM_INT16X1 => (Unorm16, Some(1)),
        CU_AD_FORMAT_UNORM_INT16X2 => (Unorm16, Some(2)),
        CU_AD_FORMAT_UNORM_INT16X4 => (Unorm16, Some(4)),
        CU_AD_FORMAT_SNORM_INT8X1 => (Snorm8, Some(1)),
        CU_AD_FORMAT_SNORM_INT8X2 => (Snorm8, Some(2)),
        CU_AD_FORMAT_SNORM_INT8X4 => (Snorm8, Some(4)),
        CU_AD_FORMAT_SNORM_INT16X1 => (Snorm16, Some(1)),
        CU_AD_FORMAT_SNORM_INT16X2 => (Snorm16, Some(2)),
        CU_AD_FORMAT_SNORM_INT16X4 => (Snorm16, Some(4)),
        // The planar formats, and those of video packed otherwise, are those of arrays that other APIs make.
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    };
    if named.is_some_and(|named| named != channels) {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let channels = u8::try_from(channels).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    Ok(Format::new(channel, channels).ok_or(CUDA_ERROR_INVALID_VALUE)?)
}

/// Formats whose channels are not side by side.
fn packed(format: CUarray_format) -> Option<Format> {
    use Compression::*;
    let compression = match format {
        CU_AD_FORMAT_BC1_UNORM | CU_AD_FORMAT_BC1_UNORM_SRGB => Bc1,
        CU_AD_FORMAT_BC2_UNORM | CU_AD_FORMAT_BC2_UNORM_SRGB => Bc2,
        CU_AD_FORMAT_BC3_UNORM | CU_AD_FORMAT_BC3_UNORM_SRGB => Bc3,
        CU_AD_FORMAT_BC4_UNORM => Bc4,
        CU_AD_FORMAT_BC4_SNORM => Bc4Signed,
        CU_AD_FORMAT_BC5_UNORM => Bc5,
        CU_AD_FORMAT_BC5_SNORM => Bc5Signed,
        CU_AD_FORMAT_BC6H_UF16 => Bc6,
        CU_AD_FORMAT_BC6H_SF16 => Bc6Signed,
        CU_AD_FORMAT_BC7_UNORM | CU_AD_FORMAT_BC7_UNORM_SRGB => Bc7,
        CU_AD_FORMAT_UNORM_INT_101010_2 => return Some(Format::WORD),
        _ => return None,
    };
    Some(Format::compressed(compression))
}

/// Whether textures of such an array must be read as sRGB.
pub fn is_srgb(format: CUarray_format) -> bool {
    matches!(
        format,
        CU_AD_FORMAT_BC1_UNORM_SRGB
            | CU_AD_FORMAT_BC2_UNORM_SRGB
            | CU_AD_FORMAT_BC3_UNORM_SRGB
            | CU_AD_FORMAT_BC7_UNORM_SRGB
    )
}

/// What a resource view makes of texels.
///
/// # Errors
/// [`CUDA_ERROR_INVALID_VALUE`] for what is no format of a view.
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
        CU_RES_VIEW_FORMAT_UNSIGNED_BC1 => Ok(Format::compressed(Compression::Bc1)),
        CU_RES_VIEW_FORMAT_UNSIGNED_BC2 => Ok(Format::compressed(Compression::Bc2)),
        CU_RES_VIEW_FORMAT_UNSIGNED_BC3 => Ok(Format::compressed(Compression::Bc3)),
        CU_RES_VIEW_FORMAT_UNSIGNED_BC4 => Ok(Format::compressed(Compression::Bc4)),
        CU_RES_VIEW_FORMAT_SIGNED_BC4 => Ok(Format::compressed(Compression::Bc4Signed)),
        CU_RES_VIEW_FORMAT_UNSIGNED_BC5 => Ok(Format::compressed(Compression::Bc5)),
        CU_RES_VIEW_FORMAT_SIGNED_BC5 => Ok(Format::compressed(Compression::Bc5Signed)),
        CU_RES_VIEW_FORMAT_UNSIGNED_BC6H => Ok(Format::compressed(Compression::Bc6)),
        CU_RES_VIEW_FORMAT_SIGNED_BC6H => Ok(Format::compressed(Compression::Bc6Signed)),
        CU_RES_VIEW_FORMAT_UNSIGNED_BC7 => Ok(Format::compressed(Compression::Bc7)),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simt_ir::texture::Packing;

    #[test]
    fn every_format_has_its_bytes() {
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
        assert_eq!(bytes(CU_AD_FORMAT_BC1_UNORM, 4), Ok(8));
        assert_eq!(bytes(CU_AD_FORMAT_BC6H_SF16, 3), Ok(16));
        assert_eq!(bytes(CU_AD_FORMAT_UNORM_INT_101010_2, 4), Ok(4));
    }

    #[test]
    fn formats_of_views_are_what_their_names_say() {
        for (name, format) in CUresourceViewFormat::NAMES {
            let told = match of_view(*format) {
                Ok(Format { packing: Packing::Blocks(compression), .. }) => {
                    let called = format!("{compression:?}").to_uppercase();
                    let (called, is_signed) = match called.strip_suffix("SIGNED") {
                        Some(called) => (called, true),
                        None => (called.as_str(), false),
                    };
                    let half = if called == "BC6" { "H" } else { "" };
                    format!("{}_{called}{half}", if is_signed { "SIGNED" } else { "UNSIGNED" })
                }
                Ok(format) => {
                    let kind = match format.channel {
                        Channel::F16 | Channel::F32 => "FLOAT",
                        channel if channel.is_signed() => "SINT",
                        _ => "UINT",
                    };
                    format!("{kind}_{}X{}", format.channels, 8 * format.channel.bytes())
                }
                Err(failure) => {
                    assert_eq!(failure, CUDA_ERROR_INVALID_VALUE.into());
                    assert_eq!(*name, "CU_RES_VIEW_FORMAT_NONE");
                    continue;
                }
            };
            assert_eq!(*name, format!("CU_RES_VIEW_FORMAT_{told}"));
        }
        assert_eq!(of_view(CUresourceViewFormat(35)), Err(CUDA_ERROR_INVALID_VALUE.into()));
    }
}
