//! What an array's descriptor asks for, and whether the device has such arrays.

use crate::attributes;
use crate::error::CuResult;
use crate::formats;
use cuda_abi::driver::*;
use device::attributes::Attributes;
use device::memory::{ArrayLayout, Backing};
use simt_ir::texture::{Format, Geometry};

/// What an array is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// What its dimensions are.
    pub geometry: Geometry,
    /// What its texels are.
    pub format: Format,
    /// How they lie in memory.
    pub layout: ArrayLayout,
}

/// Flags that say what an array is for, as far as there are such arrays. Those for graphics are not made here.
const KNOWN_FLAGS: u32 = CUDA_ARRAY3D_LAYERED
    | CUDA_ARRAY3D_SURFACE_LDST
    | CUDA_ARRAY3D_CUBEMAP
    | CUDA_ARRAY3D_TEXTURE_GATHER
    | CUDA_ARRAY3D_SPARSE
    | CUDA_ARRAY3D_DEFERRED_MAPPING
    | CUDA_ARRAY3D_VIDEO_ENCODE_DECODE;

/// What a descriptor asks for, with as many of `levels` as such an array has, if it is mipmapped.
pub fn shape(
    descriptor: &CUDA_ARRAY3D_DESCRIPTOR,
    levels: Option<u32>,
    device: &Attributes,
) -> CuResult<Shape> {
    let format = formats::of_array(descriptor.Format, descriptor.NumChannels)?;
    let geometry = geometry(descriptor).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    let flags = descriptor.Flags;
    let is_gathered = flags & CUDA_ARRAY3D_TEXTURE_GATHER != 0;
    if flags & !KNOWN_FLAGS != 0 || (is_gathered && geometry != Geometry::D2) {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let is_compressed = format.side() > 1;
    if is_compressed && matches!(geometry, Geometry::D1 | Geometry::D1Layered) {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let backing = backing(flags, geometry)?;
    // Compressed texels are only read. What decoders write to is like any other array.
    if is_compressed && flags & CUDA_ARRAY3D_SURFACE_LDST != 0 {
        return Err(CUDA_ERROR_NOT_SUPPORTED.into());
    }
    let extent = [descriptor.Width, descriptor.Height, descriptor.Depth];
    let fits = |alternatives: &[Limits]| {
        alternatives.iter().any(|limits| {
            let mut pairs = extent.iter().zip(limits);
            pairs.all(|(count, limit)| {
                attributes::attribute(device, *limit).is_some_and(|limit| *count as u64 <= limit as u64)
            })
        })
    };
    let is_surface = flags & CUDA_ARRAY3D_SURFACE_LDST != 0;
    if !fits(texture_limits(geometry, levels.is_some()))
        || (is_gathered && !fits(&GATHERED))
        || (is_surface && !fits(surface_limits(geometry)))
    {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let [width, height, depth] = extent.map(|count| count.max(1) as u64);
    let layered = geometry.is_layered() || geometry.is_cube();
    let (texel, side) = (format.bytes() as u32, format.side());
    let mut layout = ArrayLayout { width, height, depth, texel, side, levels: 1, layered, backing };
    layout.levels = levels.map_or(1, |levels| levels.clamp(1, layout.max_levels()));
    Ok(Shape { geometry, format, layout })
}

/// Where the memory comes from, by the flags.
fn backing(flags: u32, geometry: Geometry) -> CuResult<Backing> {
    let has_tiles = matches!(geometry, Geometry::D2 | Geometry::D2Layered | Geometry::D3);
    match (flags & CUDA_ARRAY3D_SPARSE != 0, flags & CUDA_ARRAY3D_DEFERRED_MAPPING != 0) {
        (false, false) => Ok(Backing::Own),
        (false, true) => Ok(Backing::Deferred),
        // Sparse arrays are no surfaces.
        (true, false) if has_tiles && flags & CUDA_ARRAY3D_SURFACE_LDST == 0 => Ok(Backing::Sparse),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

/// The dimensions that there are, and what the flags say of them.
fn geometry(descriptor: &CUDA_ARRAY3D_DESCRIPTOR) -> Option<Geometry> {
    let &CUDA_ARRAY3D_DESCRIPTOR { Width, Height, Depth, Flags, .. } = descriptor;
    let (layered, cube) = (Flags & CUDA_ARRAY3D_LAYERED != 0, Flags & CUDA_ARRAY3D_CUBEMAP != 0);
    let is_square = Width == Height;
    match (Height > 0, Depth > 0, cube, layered) {
        _ if Width == 0 => None,
        (false, false, false, false) => Some(Geometry::D1),
        (false, true, false, true) => Some(Geometry::D1Layered),
        (true, false, false, false) => Some(Geometry::D2),
        (true, true, false, false) => Some(Geometry::D3),
        (true, true, false, true) => Some(Geometry::D2Layered),
        (true, true, true, false) if is_square && Depth == 6 => Some(Geometry::Cube),
        (true, true, true, true) if is_square && Depth.is_multiple_of(6) => Some(Geometry::CubeLayered),
        _ => None,
    }
}

/// Attributes that say how large each dimension may be. Where there is no dimension it is 0, and any will do.
type Limits = [CUdevice_attribute; 3];

const GATHERED: [Limits; 1] = [[
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH,
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT,
    CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH,
]];

/// The manual's table of valid extents: one of these must be met.
fn texture_limits(geometry: Geometry, mipmapped: bool) -> &'static [Limits] {
    match (geometry, mipmapped) {
        (Geometry::D1, false) => &[[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH; 3]],
        (Geometry::D1, true) => &[[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH; 3]],
        (Geometry::D2, false) => &[[
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH,
        ]],
        (Geometry::D2, true) => &[[
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH,
        ]],
        (Geometry::D3, _) => &[
            [
                CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH,
                CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT,
                CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH,
            ],
            [
                CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE,
                CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE,
                CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE,
            ],
        ],
        (Geometry::D1Layered, _) => &[[
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS,
        ]],
        (Geometry::D2Layered, _) => &[[
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS,
        ]],
        // Six faces are fewer than any width is.
        (Geometry::Cube, _) => &[[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH; 3]],
        (Geometry::CubeLayered, _) => &[[
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS,
        ]],
    }
}

/// The column of the same table for arrays of surfaces.
fn surface_limits(geometry: Geometry) -> &'static [Limits] {
    match geometry {
        Geometry::D1 => &[[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH; 3]],
        Geometry::D2 => &[[
            CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH,
        ]],
        Geometry::D3 => &[[
            CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH,
        ]],
        Geometry::D1Layered => &[[
            CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS,
        ]],
        Geometry::D2Layered => &[[
            CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS,
        ]],
        Geometry::Cube => &[[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH; 3]],
        Geometry::CubeLayered => &[[
            CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH,
            CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS,
        ]],
    }
}
