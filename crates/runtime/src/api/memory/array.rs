//! Arrays for textures and surfaces.

use crate::api::prelude::*;
use crate::context;
use crate::copy::array_descriptor;
use crate::formats::{of_channels, to_channels};

/// Allocates a one- or two-dimensional array. The driver's flags have the same numbers.
#[entry_point]
fn cudaMallocArray(
    array: Out<cudaArray_t>,
    desc: In<cudaChannelFormatDesc>,
    width: usize,
    height: usize,
    flags: u32,
) -> CudaResult {
    let array = array.check()?;
    let descriptor = descriptor(desc, cudaExtent { width, height, depth: 0 }, flags)?;
    context::ensure_current()?;
    call!(cuArray3DCreate_v2(array.as_ptr().cast(), &descriptor))
}

/// Allocates an array of up to three dimensions, or with layers.
#[entry_point]
fn cudaMalloc3DArray(
    array: Out<cudaArray_t>,
    desc: In<cudaChannelFormatDesc>,
    extent: cudaExtent,
    flags: u32,
) -> CudaResult {
    let array = array.check()?;
    let descriptor = descriptor(desc, extent, flags)?;
    context::ensure_current()?;
    call!(cuArray3DCreate_v2(array.as_ptr().cast(), &descriptor))
}

/// Frees an array; null is allowed.
#[entry_point]
fn cudaFreeArray(array: cudaArray_t) -> CudaResult {
    context::ensure_current()?;
    if array.is_null() { Ok(()) } else { call!(cuArrayDestroy(CUarray(array.0))) }
}

/// An array's channels, size and flags; each may be unwanted.
#[entry_point]
fn cudaArrayGetInfo(
    desc: Out<cudaChannelFormatDesc>,
    extent: Out<cudaExtent>,
    flags: Out<u32>,
    array: cudaArray_t,
) -> CudaResult {
    context::ensure_current()?;
    let d = array_descriptor(CUarray(array.0))?;
    desc.set_if_wanted(to_channels(d.Format, d.NumChannels)?);
    extent.set_if_wanted(cudaExtent { width: d.Width, height: d.Height, depth: d.Depth });
    flags.set_if_wanted(d.Flags);
    Ok(())
}

/// Allocates an array with mipmap levels.
#[entry_point]
fn cudaMallocMipmappedArray(
    mipmappedArray: Out<cudaMipmappedArray_t>,
    desc: In<cudaChannelFormatDesc>,
    extent: cudaExtent,
    numLevels: u32,
    flags: u32,
) -> CudaResult {
    let array = mipmappedArray.check()?;
    let descriptor = descriptor(desc, extent, flags)?;
    context::ensure_current()?;
    call!(cuMipmappedArrayCreate(array.as_ptr().cast(), &descriptor, numLevels))
}

/// Frees an array with mipmap levels; null is allowed.
#[entry_point]
fn cudaFreeMipmappedArray(mipmappedArray: cudaMipmappedArray_t) -> CudaResult {
    context::ensure_current()?;
    let array = CUmipmappedArray(mipmappedArray.0);
    if array.is_null() { Ok(()) } else { call!(cuMipmappedArrayDestroy(array)) }
}

/// One level of an array with mipmap levels.
#[entry_point]
fn cudaGetMipmappedArrayLevel(
    levelArray: Out<cudaArray_t>,
    mipmappedArray: cudaMipmappedArray_const_t,
    level: u32,
) -> CudaResult {
    context::ensure_current()?;
    let array = levelArray.check()?;
    call!(cuMipmappedArrayGetLevel(array.as_ptr().cast(), CUmipmappedArray(mipmappedArray.0), level))
}

/// One plane of an array whose format has several.
#[entry_point]
fn cudaArrayGetPlane(pPlaneArray: Out<cudaArray_t>, hArray: cudaArray_t, planeIdx: u32) -> CudaResult {
    context::ensure_current()?;
    let plane = pPlaneArray.check()?;
    call!(cuArrayGetPlane(plane.as_ptr().cast(), CUarray(hArray.0), planeIdx))
}

/// The memory that an array without memory of its own needs on a device.
#[entry_point]
fn cudaArrayGetMemoryRequirements(
    memoryRequirements: Out<cudaArrayMemoryRequirements>,
    array: cudaArray_t,
    device: i32,
) -> CudaResult {
    context::ensure_current()?;
    let requirements = memoryRequirements.check()?;
    call!(cuArrayGetMemoryRequirements(requirements.as_ptr(), CUarray(array.0), device))
}

/// The same for an array with mipmap levels.
#[entry_point]
fn cudaMipmappedArrayGetMemoryRequirements(
    memoryRequirements: Out<cudaArrayMemoryRequirements>,
    mipmap: cudaMipmappedArray_t,
    device: i32,
) -> CudaResult {
    context::ensure_current()?;
    let requirements = memoryRequirements.check()?;
    call!(cuMipmappedArrayGetMemoryRequirements(requirements.as_ptr(), CUmipmappedArray(mipmap.0), device))
}

/// How a sparse array is divided into tiles.
#[entry_point]
fn cudaArrayGetSparseProperties(
    sparseProperties: Out<cudaArraySparseProperties>,
    array: cudaArray_t,
) -> CudaResult {
    context::ensure_current()?;
    let properties = sparseProperties.check()?;
    call!(cuArrayGetSparseProperties(properties.as_ptr(), CUarray(array.0)))
}

/// How a sparse array with mipmap levels is divided into tiles.
#[entry_point]
fn cudaMipmappedArrayGetSparseProperties(
    sparseProperties: Out<cudaArraySparseProperties>,
    mipmap: cudaMipmappedArray_t,
) -> CudaResult {
    context::ensure_current()?;
    let properties = sparseProperties.check()?;
    call!(cuMipmappedArrayGetSparseProperties(properties.as_ptr(), CUmipmappedArray(mipmap.0)))
}

fn descriptor(
    channels: In<cudaChannelFormatDesc>,
    extent: cudaExtent,
    flags: u32,
) -> CudaResult<CUDA_ARRAY3D_DESCRIPTOR> {
    describe(&channels.get()?, extent, flags)
}

/// The driver's description of an array.
pub fn describe(
    channels: &cudaChannelFormatDesc,
    extent: cudaExtent,
    flags: u32,
) -> CudaResult<CUDA_ARRAY3D_DESCRIPTOR> {
    let (format, count) = of_channels(channels)?;
    Ok(CUDA_ARRAY3D_DESCRIPTOR {
        Width: extent.width,
        Height: extent.height,
        Depth: extent.depth,
        Format: format,
        NumChannels: count,
        Flags: flags,
    })
}
