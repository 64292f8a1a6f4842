//! Texture and surface descriptions in the runtime's and the driver's terms.

use std::ptr;

use cuda_abi::driver::*;
use cuda_abi::runtime::*;

use crate::copy::{array_descriptor, device_pointer};
use crate::driver::call;
use crate::formats::{of_channels, to_channels};

/// The driver's description of a resource.
pub fn to_driver(resource: &cudaResourceDesc) -> CudaResult<CUDA_RESOURCE_DESC> {
    let mut res = CUDA_RESOURCE { reserved: [0; 32] };
    match resource.resType {
        cudaResourceTypeArray => {
            // SAFETY: the caller set the member that resType names. Every bit pattern of it is a value.
            res.hArray = CUarray(unsafe { resource.res.array }.0);
        }
        cudaResourceTypeMipmappedArray => {
            // SAFETY: as above.
            res.hMipmappedArray = CUmipmappedArray(unsafe { resource.res.mipmap }.0);
        }
        cudaResourceTypeLinear => {
            // SAFETY: as above.
            let linear = unsafe { resource.res.linear };
            let (format, channels) = of_channels(&linear.desc)?;
            res.linear = CUDA_RESOURCE_LINEAR {
                devPtr: device_pointer(linear.devPtr),
                format,
                numChannels: channels,
                sizeInBytes: linear.sizeInBytes,
            };
        }
        cudaResourceTypePitch2D => {
            // SAFETY: as above.
            let rows = unsafe { resource.res.pitch2D };
            let (format, channels) = of_channels(&rows.desc)?;
            res.pitch2D = CUDA_RESOURCE_PITCH2D {
                devPtr: device_pointer(rows.devPtr),
                format,
                numChannels: channels,
                width: rows.width,
                height: rows.height,
                pitchInBytes: rows.pitchInBytes,
            };
        }
        _ => return Err(cudaErrorInvalidValue),
    }
    Ok(CUDA_RESOURCE_DESC { resType: CUresourcetype(resource.resType.0), res, flags: resource.flags })
}

/// The runtime's description of a resource.
pub fn from_driver(resource: &CUDA_RESOURCE_DESC) -> CudaResult<cudaResourceDesc> {
    let mut res = cudaResource { reserved: [0; 32] };
    match resource.resType {
        CU_RESOURCE_TYPE_ARRAY => {
            // SAFETY: the driver set the member that resType names, a plain number.
            res.array = cudaArray_t(unsafe { resource.res.hArray }.0);
        }
        CU_RESOURCE_TYPE_MIPMAPPED_ARRAY => {
            // SAFETY: as above.
            res.mipmap = cudaMipmappedArray_t(unsafe { resource.res.hMipmappedArray }.0);
        }
        CU_RESOURCE_TYPE_LINEAR => {
            // SAFETY: as above.
            let linear = unsafe { resource.res.linear };
            res.linear = cudaResourceLinear {
                devPtr: ptr::with_exposed_provenance_mut(linear.devPtr.0 as usize),
                desc: to_channels(linear.format, linear.numChannels)?,
                sizeInBytes: linear.sizeInBytes,
            };
        }
        CU_RESOURCE_TYPE_PITCH2D => {
            // SAFETY: as above.
            let rows = unsafe { resource.res.pitch2D };
            res.pitch2D = cudaResourcePitch2D {
                devPtr: ptr::with_exposed_provenance_mut(rows.devPtr.0 as usize),
                desc: to_channels(rows.format, rows.numChannels)?,
                width: rows.width,
                height: rows.height,
                pitchInBytes: rows.pitchInBytes,
            };
        }
        _ => return Err(cudaErrorNotSupported),
    }
    Ok(cudaResourceDesc { resType: cudaResourceType(resource.resType.0), res, flags: resource.flags })
}

/// Whether a resource can be read so.
///
/// # Errors
/// [`cudaErrorInvalidResourceHandle`] for no array at all, [`cudaErrorInvalidNormSetting`] for what has more than 16 bits and is read as a fraction, or is one and is not, and [`cudaErrorInvalidFilterSetting`] for
/// integers between which there is nothing.
pub fn check_reading(resource: &CUDA_RESOURCE_DESC, texture: &cudaTextureDesc) -> CudaResult {
    let format = match resource.resType {
        CU_RESOURCE_TYPE_ARRAY => {
            // SAFETY: the type names the member that is set, a plain number.
            let array = unsafe { resource.res.hArray };
            if array.is_null() {
                return Err(cudaErrorInvalidResourceHandle);
            }
            // What else is no array is told by whoever makes the object.
            array_descriptor(array).ok().map(|array| array.Format)
        }
        CU_RESOURCE_TYPE_MIPMAPPED_ARRAY => {
            // SAFETY: as above.
            let array = unsafe { resource.res.hMipmappedArray };
            let mut first = CUarray::NULL;
            // What is none is told likewise.
            let known = !array.is_null() && call!(cuMipmappedArrayGetLevel(&mut first, array, 0)).is_ok();
            if known { array_descriptor(first).ok().map(|array| array.Format) } else { None }
        }
        // SAFETY: likewise, plain numbers.
        CU_RESOURCE_TYPE_LINEAR => Some(unsafe { resource.res.linear }.format),
        // SAFETY: likewise, plain numbers.
        CU_RESOURCE_TYPE_PITCH2D => Some(unsafe { resource.res.pitch2D }.format),
        _ => None,
    };
    let Some(format) = format else { return Ok(()) };
    let no_fraction = NO_FRACTIONS.contains(&format);
    let as_fraction = texture.readMode == cudaReadModeNormalizedFloat;
    let between = texture.filterMode == cudaFilterModeLinear;
    if between && INTEGERS.contains(&format) && (no_fraction || texture.readMode == cudaReadModeElementType) {
        return Err(cudaErrorInvalidFilterSetting);
    }
    let is_misread = if as_fraction { no_fraction } else { FRACTIONS.contains(&format) };
    if is_misread { Err(cudaErrorInvalidNormSetting) } else { Ok(()) }
}

/// Formats that are not read as fractions of one.
const NO_FRACTIONS: [CUarray_format; 5] = [
    CU_AD_FORMAT_HALF,
    CU_AD_FORMAT_UNSIGNED_INT32,
    CU_AD_FORMAT_SIGNED_INT32,
    CU_AD_FORMAT_FLOAT,
    CU_AD_FORMAT_UNORM_INT_101010_2,
];

/// Formats of fractions of one, which are not read otherwise.
const FRACTIONS: [CUarray_format; 22] = [
    CU_AD_FORMAT_UNORM_INT8X1,
    CU_AD_FORMAT_UNORM_INT8X2,
    CU_AD_FORMAT_UNORM_INT8X4,
    CU_AD_FORMAT_UNORM_INT16X1,
    CU_AD_FORMAT_UNORM_INT16X2,
    CU_AD_FORMAT_UNORM_INT16X4,
    CU_AD_FORMAT_SNORM_INT8X1,
    CU_AD_FORMAT_SNORM_INT8X2,
    CU_AD_FORMAT_SNORM_INT8X4,
    CU_AD_FORMAT_SNORM_INT16X1,
    CU_AD_FORMAT_SNORM_INT16X2,
    CU_AD_FORMAT_SNORM_INT16X4,
    CU_AD_FORMAT_BC1_UNORM,
    CU_AD_FORMAT_BC1_UNORM_SRGB,
    CU_AD_FORMAT_BC2_UNORM,
    CU_AD_FORMAT_BC2_UNORM_SRGB,
    CU_AD_FORMAT_BC3_UNORM,
    CU_AD_FORMAT_BC3_UNORM_SRGB,
    CU_AD_FORMAT_BC4_UNORM,
    CU_AD_FORMAT_BC4_SNORM,
    CU_AD_FORMAT_BC5_UNORM,
    CU_AD_FORMAT_BC5_SNORM,
];

/// Formats of whole numbers.
const INTEGERS: [CUarray_format; 6] = [
    CU_AD_FORMAT_UNSIGNED_INT8,
    CU_AD_FORMAT_UNSIGNED_INT16,
    CU_AD_FORMAT_UNSIGNED_INT32,
    CU_AD_FORMAT_SIGNED_INT8,
    CU_AD_FORMAT_SIGNED_INT16,
    CU_AD_FORMAT_SIGNED_INT32,
];

/// The driver's description of how a texture reads: what is a field here is a flag there.
pub fn texture_to_driver(texture: &cudaTextureDesc) -> CUDA_TEXTURE_DESC {
    let flag = |wanted: bool, flag| if wanted { flag } else { 0 };
    CUDA_TEXTURE_DESC {
        addressMode: texture.addressMode.map(|mode| CUaddress_mode(mode.0)),
        filterMode: CUfilter_mode(texture.filterMode.0),
        flags: flag(texture.readMode == cudaReadModeElementType, CU_TRSF_READ_AS_INTEGER)
            | flag(texture.normalizedCoords != 0, CU_TRSF_NORMALIZED_COORDINATES)
            | flag(texture.sRGB != 0, CU_TRSF_SRGB)
            | flag(texture.disableTrilinearOptimization != 0, CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION)
            | flag(texture.seamlessCubemap != 0, CU_TRSF_SEAMLESS_CUBEMAP),
        maxAnisotropy: texture.maxAnisotropy,
        mipmapFilterMode: CUfilter_mode(texture.mipmapFilterMode.0),
        mipmapLevelBias: texture.mipmapLevelBias,
        minMipmapLevelClamp: texture.minMipmapLevelClamp,
        maxMipmapLevelClamp: texture.maxMipmapLevelClamp,
        borderColor: texture.borderColor,
        reserved: [0; 12],
    }
}

/// The runtime's description of how a texture reads.
pub fn texture_from_driver(texture: &CUDA_TEXTURE_DESC) -> cudaTextureDesc {
    let has = |flag| texture.flags & flag != 0;
    cudaTextureDesc {
        addressMode: texture.addressMode.map(|mode| cudaTextureAddressMode(mode.0)),
        filterMode: cudaTextureFilterMode(texture.filterMode.0),
        readMode: if has(CU_TRSF_READ_AS_INTEGER) {
            cudaReadModeElementType
        } else {
            cudaReadModeNormalizedFloat
        },
        sRGB: has(CU_TRSF_SRGB).into(),
        borderColor: texture.borderColor,
        normalizedCoords: has(CU_TRSF_NORMALIZED_COORDINATES).into(),
        maxAnisotropy: texture.maxAnisotropy,
        mipmapFilterMode: cudaTextureFilterMode(texture.mipmapFilterMode.0),
        mipmapLevelBias: texture.mipmapLevelBias,
        minMipmapLevelClamp: texture.minMipmapLevelClamp,
        maxMipmapLevelClamp: texture.maxMipmapLevelClamp,
        disableTrilinearOptimization: has(CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION).into(),
        seamlessCubemap: has(CU_TRSF_SEAMLESS_CUBEMAP).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_go_there_and_back() {
        let desc = cudaChannelFormatDesc { x: 16, y: 16, z: 0, w: 0, f: cudaChannelFormatKindSigned };
        let address = ptr::without_provenance_mut(0x1000);
        let rows = cudaResourcePitch2D { devPtr: address, desc, width: 5, height: 6, pitchInBytes: 64 };
        let resource = cudaResourceDesc {
            resType: cudaResourceTypePitch2D,
            res: cudaResource { pitch2D: rows },
            flags: 0,
        };
        let driver = to_driver(&resource).unwrap();
        // SAFETY: the type says that this member is set.
        let driver_rows = unsafe { driver.res.pitch2D };
        assert_eq!(
            (driver_rows.devPtr, driver_rows.format),
            (CUdeviceptr(0x1000), CU_AD_FORMAT_SIGNED_INT16)
        );
        // SAFETY: as above.
        let back = unsafe { from_driver(&driver).unwrap().res.pitch2D };
        assert_eq!((back.devPtr, back.desc), (address, desc));
        assert_eq!((back.width, back.height, back.pitchInBytes), (5, 6, 64));

        let unknown = cudaResourceDesc { resType: cudaResourceType(9), ..resource };
        assert_eq!(to_driver(&unknown).map(drop), Err(cudaErrorInvalidValue));
    }

    #[test]
    fn fields_of_textures_are_flags_in_the_driver() {
        for bit in 0..5 {
            let is = |n| i32::from(bit == n);
            let texture = cudaTextureDesc {
                addressMode: [cudaAddressModeClamp, cudaAddressModeMirror, cudaAddressModeBorder],
                filterMode: cudaFilterModeLinear,
                readMode: if bit == 0 { cudaReadModeElementType } else { cudaReadModeNormalizedFloat },
                sRGB: is(1),
                borderColor: [1.0, 2.0, 3.0, 4.0],
                normalizedCoords: is(2),
                maxAnisotropy: 3,
                mipmapFilterMode: cudaFilterModePoint,
                mipmapLevelBias: 0.5,
                minMipmapLevelClamp: 1.5,
                maxMipmapLevelClamp: 2.5,
                disableTrilinearOptimization: is(3),
                seamlessCubemap: is(4),
            };
            let driver = texture_to_driver(&texture);
            assert_eq!(driver.flags.count_ones(), 1);
            assert_eq!(format!("{:?}", texture_from_driver(&driver)), format!("{texture:?}"));
        }
    }
}
