//! What the manual's descriptions of resources, views and textures mean to the device.

use crate::arrays::{self, Array, MipmappedArray};
use crate::attributes;
use crate::error::CuResult;
use crate::formats;
use cuda_abi::driver::*;
use device::attributes::Attributes;
use device::memory::{self, Backing};
use simt_ir::texture::{
    AddressMode, Channel, Filter, Format, Geometry, ImageView, Level, Packing, ReadMode, Sampler,
};

/// An image, and what it comes from as far as that limits how it may be seen.
#[derive(Clone, Debug)]
pub struct Image {
    /// Its texels.
    pub view: ImageView,
    /// The extent of the array, with 0 for a dimension that there is not; memory has none.
    extent: Option<[usize; 3]>,
    /// It can be read as sRGB only.
    is_srgb: bool,
    /// It has several levels, whatever part of them is seen.
    has_levels: bool,
}

/// All of an array.
pub fn of_array(array: &Array) -> Image {
    let CUDA_ARRAY3D_DESCRIPTOR { Width, Height, Depth, Format, .. } = array.descriptor;
    let mut view = view(array.shape.geometry, array.shape.format, &[array.level]);
    view.is_sparse = array.shape.layout.backing != Backing::Own;
    let (extent, is_srgb) = (Some([Width, Height, Depth]), formats::is_srgb(Format));
    Image { view, extent, is_srgb, has_levels: false }
}

/// All of a mipmapped array.
pub fn of_mipmapped(array: &MipmappedArray) -> CuResult<Image> {
    let mut image = of_array(&*arrays::find(array.level(0)?)?);
    let is_sparse = image.view.is_sparse;
    image.view = ImageView { is_sparse, ..view(array.shape.geometry, array.shape.format, array.levels()) };
    image.has_levels = image.view.levels.len() > 1;
    Ok(image)
}

/// Texels in a row in memory. How far it reaches is the program's word: kernels that read what is not there fail.
pub fn of_linear(linear: &CUDA_RESOURCE_LINEAR, device: &Attributes) -> CuResult<Image> {
    let format = uncompressed(linear.format, linear.numChannels)?;
    let (address, bytes) = (linear.devPtr.0, linear.sizeInBytes as u64);
    let alignment = limit(device, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    if address == 0 || !address.is_multiple_of(alignment) {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let texels = bytes / format.bytes() as u64;
    if texels > most_in_a_row(device, format.bytes() as u64) {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let texels = texels as u32;
    let level = Level { extent: [texels, 1, 1], address, row_pitch: bytes, slice_pitch: bytes, tiles: None };
    let (geometry, levels) = (Geometry::D1, vec![level]);
    let view =
        ImageView { geometry, format, layers: 1, levels, first_level: 0, is_linear: true, is_sparse: false };
    Ok(Image { view, extent: None, is_srgb: false, has_levels: false })
}

/// How many texels of so many bytes a row in memory has at most.
pub fn most_in_a_row(device: &Attributes, texel_bytes: u64) -> u64 {
    // The attribute is for the widest, four numbers of 32 bits. It is bytes that are limited, and the number of texels.
    let bytes = 16 * limit(device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
    (bytes / texel_bytes.max(1)).min(1 << 30)
}

/// What texels in memory are: arrays alone are compressed.
fn uncompressed(format: CUarray_format, channels: u32) -> CuResult<Format> {
    let format = formats::of_array(format, channels)?;
    if format.side() == 1 { Ok(format) } else { Err(CUDA_ERROR_INVALID_VALUE.into()) }
}

/// Texels in rows in memory. Likewise.
pub fn of_rows(rows: &CUDA_RESOURCE_PITCH2D, device: &Attributes) -> CuResult<Image> {
    let format = uncompressed(rows.format, rows.numChannels)?;
    let (width, height, pitch) = (rows.width as u64, rows.height as u64, rows.pitchInBytes as u64);
    let limit = |attribute| limit(device, attribute);
    let is_sized = width <= limit(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH)
        && height <= limit(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT)
        && pitch <= limit(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH);
    let address = rows.devPtr.0;
    let is_aligned = address.is_multiple_of(limit(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT))
        && pitch.is_multiple_of(limit(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT));
    if address == 0 || !is_sized || !is_aligned {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    // One of no texels may be made, and is not for reading: where it is read nevertheless, it has one.
    let extent = [width.max(1) as u32, height.max(1) as u32, 1];
    let level = Level { extent, address, row_pitch: pitch, slice_pitch: pitch * height, tiles: None };
    let (geometry, levels) = (Geometry::D2, vec![level]);
    let view =
        ImageView { geometry, format, layers: 1, levels, first_level: 0, is_linear: false, is_sparse: false };
    Ok(Image { view, extent: None, is_srgb: false, has_levels: false })
}

fn limit(device: &Attributes, attribute: CUdevice_attribute) -> u64 {
    attributes::attribute(device, attribute).map_or(0, |limit| limit as u64)
}

/// The levels of an array; arrays are no larger than 32 bits say.
fn view(geometry: Geometry, format: Format, levels: &[memory::Level]) -> ImageView {
    let is_layered = geometry.is_layered() || geometry.is_cube();
    let levels_of = |level: &memory::Level| Level {
        extent: [level.width, level.height, if is_layered { 1 } else { level.depth }].map(|n| n as u32),
        address: level.address,
        row_pitch: level.pitch(),
        slice_pitch: level.slice_pitch(),
        tiles: level.tiles(),
    };
    let layers = if is_layered { levels[0].depth as u32 } else { 1 };
    let levels = levels.iter().map(levels_of).collect();
    ImageView { geometry, format, layers, levels, first_level: 0, is_linear: false, is_sparse: false }
}

/// The image of a resource.
///
/// # Errors
/// [`CUDA_ERROR_INVALID_VALUE`] where the description contradicts itself, the manual or the device.
pub fn of_resource(resource: &CUDA_RESOURCE_DESC, device: &Attributes) -> CuResult<Image> {
    // No flags are defined.
    if resource.flags != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    // SAFETY: the type names the member that is set, each of which is plain numbers.
    unsafe {
        match resource.resType {
            CU_RESOURCE_TYPE_ARRAY => {
                let array = arrays::find(resource.res.hArray).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
                Ok(of_array(&array))
            }
            CU_RESOURCE_TYPE_MIPMAPPED_ARRAY => {
                let array = arrays::find_mipmapped(resource.res.hMipmappedArray);
                of_mipmapped(&*array.map_err(|_| CUDA_ERROR_INVALID_VALUE)?)
            }
            CU_RESOURCE_TYPE_LINEAR => of_linear(&resource.res.linear, device),
            CU_RESOURCE_TYPE_PITCH2D => of_rows(&resource.res.pitch2D, device),
            _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
        }
    }
}

impl Image {
    /// The same texels as other channels of as many bits.
    pub fn read_as(mut self, format: Format) -> CuResult<Image> {
        let is_known = format == self.view.format || [format, self.view.format].iter().all(is_plain);
        if !is_known || format.bytes() != self.view.format.bytes() {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
        self.view.format = format;
        Ok(self)
    }

    /// Texels of two or four integers of 32 bits as the blocks of compressed ones.
    fn decoded_as(mut self, format: Format) -> CuResult<Image> {
        let view = &mut self.view;
        let are_blocks = view.format.channel == Channel::U32
            && view.format.bytes() == format.bytes()
            && view.geometry.coordinates() > 1;
        if !are_blocks {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
        let side = format.side();
        view.format = format;
        for level in &mut view.levels {
            level.extent[0] *= side;
            level.extent[1] *= side;
        }
        self.extent = self.extent.map(|[width, height, depth]| {
            [width.saturating_mul(side as usize), height.saturating_mul(side as usize), depth]
        });
        Ok(self)
    }

    /// The same texels seen in another way: other channels of as many bits, some of the levels, some of the layers. Memory has
    /// one way to be seen.
    pub fn seen_as(self, desc: &CUDA_RESOURCE_VIEW_DESC) -> CuResult<Image> {
        if self.extent.is_none() {
            return Ok(self);
        }
        let format = formats::of_view(desc.format)?;
        let mut image = if format.side() > 1 { self.decoded_as(format)? } else { self.read_as(format)? };
        let (view, extent) = (&mut image.view, image.extent.unwrap_or_default());
        let most_levels = view.levels.len() as u32;
        let levels = range(desc.firstMipmapLevel, desc.lastMipmapLevel, most_levels)?;
        if [desc.width, desc.height, desc.depth] != extent {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
        view.levels = view.levels[levels.start as usize..levels.end as usize].to_vec();
        view.first_level = levels.start;
        // Faces count as layers. The first is layer 0 from now on.
        let most_layers = if view.geometry.is_layered() { view.layers } else { 1 };
        let layers = range(desc.firstLayer, desc.lastLayer, most_layers)?;
        if view.geometry.is_layered() {
            let count = layers.end - layers.start;
            if view.geometry.is_cube() && (layers.start % 6, count % 6) != (0, 0) {
                return Err(CUDA_ERROR_INVALID_VALUE.into());
            }
            for level in &mut view.levels {
                level.address += u64::from(layers.start) * level.slice_pitch;
            }
            view.layers = count;
        }
        Ok(image)
    }

    /// How this image is read.
    ///
    /// # Errors
    /// [`CUDA_ERROR_INVALID_VALUE`] for what is no way to read, or none to read this image.
    pub fn sampler(&self, desc: &CUDA_TEXTURE_DESC) -> CuResult<Sampler> {
        let view = &self.view;
        let has = |flag| desc.flags & flag != 0;
        // Dimensions that there are not may have any number for a mode. A mode acts all the same: a filter looks for a second row.
        let mut address = [AddressMode::Clamp; 3];
        for (axis, (mode, given)) in address.iter_mut().zip(desc.addressMode).enumerate() {
            match address_mode(given) {
                Ok(given) => *mode = given,
                Err(error) if axis < view.geometry.coordinates() => return Err(error),
                Err(_) => {}
            }
        }
        let mut sampler = Sampler {
            address,
            filter: filter(desc.filterMode)?,
            mip_filter: filter(desc.mipmapFilterMode)?,
            mip_bias: desc.mipmapLevelBias,
            level_clamp: [desc.minMipmapLevelClamp, desc.maxMipmapLevelClamp],
            border: desc.borderColor,
            // Where there are levels, coordinates go from 0 to 1 whatever is said, as on an H200.
            normalized: has(CU_TRSF_NORMALIZED_COORDINATES) || self.has_levels,
            read: read_mode(view.format, has(CU_TRSF_READ_AS_INTEGER)),
            srgb: has(CU_TRSF_SRGB),
            max_anisotropy: desc.maxAnisotropy.clamp(1, 16),
            seamless_cube: has(CU_TRSF_SEAMLESS_CUBEMAP),
        };
        let contradicts =
            (sampler.seamless_cube && !view.geometry.is_cube()) || (self.is_srgb && !sampler.srgb);
        if desc.flags & !TEXTURE_FLAGS != 0 || contradicts {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
        // Between integers there is nothing.
        let channel = view.format.channel;
        let is_float = channel.is_float() || channel.is_normalized() || sampler.read == ReadMode::Normalized;
        if !is_float {
            (sampler.filter, sampler.mip_filter) = (Filter::Point, Filter::Point);
        }
        Ok(sampler)
    }

    /// The image as a surface has it: of an array alone, whose texels are not compressed.
    pub fn surface(self) -> CuResult<ImageView> {
        let is_array = self.extent.is_some() && self.view.levels.len() == 1 && self.view.format.side() == 1;
        if is_array { Ok(self.view) } else { Err(CUDA_ERROR_INVALID_VALUE.into()) }
    }
}

fn is_plain(format: &Format) -> bool {
    format.packing == Packing::Plain
}

/// Flags that may be set, four of which mean something; two have no name.
pub const TEXTURE_FLAGS: u32 = 0x7f;

/// From the first to the last; the last may lie behind the end, where there are several.
fn range(first: u32, last: u32, count: u32) -> CuResult<std::ops::Range<u32>> {
    if first > last || first >= count || (count == 1 && last != 0) {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    Ok(first..last.saturating_add(1).min(count))
}

fn address_mode(mode: CUaddress_mode) -> CuResult<AddressMode> {
    match mode {
        CU_TR_ADDRESS_MODE_WRAP => Ok(AddressMode::Wrap),
        CU_TR_ADDRESS_MODE_CLAMP => Ok(AddressMode::Clamp),
        CU_TR_ADDRESS_MODE_MIRROR => Ok(AddressMode::Mirror),
        CU_TR_ADDRESS_MODE_BORDER => Ok(AddressMode::Border),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

fn filter(mode: CUfilter_mode) -> CuResult<Filter> {
    match mode {
        CU_TR_FILTER_MODE_POINT => Ok(Filter::Point),
        CU_TR_FILTER_MODE_LINEAR => Ok(Filter::Linear),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

/// Integers of 32 bits stay what they are, and floats are no integers.
fn read_mode(format: Format, as_integer: bool) -> ReadMode {
    let promotes = matches!(format.channel, Channel::U8 | Channel::U16 | Channel::S8 | Channel::S16);
    if promotes && !as_integer { ReadMode::Normalized } else { ReadMode::Element }
}
