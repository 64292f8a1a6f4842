//! Memory management: arrays.

use crate::arrays;
use crate::error::CuResult;
use cuda_abi::args::{In, Out};
use cuda_abi::driver::*;
use device::memory::ArrayMemory;
use entry_macros::entry_point;
use simt_ir::texture::TILE;

#[entry_point]
fn cuArrayCreate_v2(pHandle: Out<CUarray>, pAllocateArray: In<CUDA_ARRAY_DESCRIPTOR>) -> CuResult {
    create(pHandle, in_space(&pAllocateArray.get()?))
}

#[entry_point]
fn cuArray3DCreate_v2(pHandle: Out<CUarray>, pAllocateArray: In<CUDA_ARRAY3D_DESCRIPTOR>) -> CuResult {
    create(pHandle, pAllocateArray.get()?)
}

#[entry_point]
fn cuArrayCreate(pHandle: Out<CUarray>, pAllocateArray: In<CUDA_ARRAY_DESCRIPTOR_v1>) -> CuResult {
    create(pHandle, in_space(&pAllocateArray.get()?.into()))
}

#[entry_point]
fn cuArray3DCreate(pHandle: Out<CUarray>, pAllocateArray: In<CUDA_ARRAY3D_DESCRIPTOR_v1>) -> CuResult {
    create(pHandle, pAllocateArray.get()?.into())
}

fn create(place: Out<CUarray>, descriptor: CUDA_ARRAY3D_DESCRIPTOR) -> CuResult {
    place.set(CUarray::NULL)?;
    place.set(arrays::create(descriptor)?)?;
    Ok(())
}

/// A flat array's descriptor as one of three dimensions.
fn in_space(flat: &CUDA_ARRAY_DESCRIPTOR) -> CUDA_ARRAY3D_DESCRIPTOR {
    let &CUDA_ARRAY_DESCRIPTOR { Width, Height, Format, NumChannels } = flat;
    CUDA_ARRAY3D_DESCRIPTOR { Width, Height, Depth: 0, Format, NumChannels, Flags: 0 }
}

/// What a flat descriptor tells of an array: layers and depth are left out.
fn flat(array: CUarray) -> CuResult<CUDA_ARRAY_DESCRIPTOR> {
    let CUDA_ARRAY3D_DESCRIPTOR { Width, Height, Format, NumChannels, .. } = arrays::find(array)?.descriptor;
    Ok(CUDA_ARRAY_DESCRIPTOR { Width, Height, Format, NumChannels })
}

#[entry_point]
fn cuArrayGetDescriptor_v2(pArrayDescriptor: Out<CUDA_ARRAY_DESCRIPTOR>, hArray: CUarray) -> CuResult {
    pArrayDescriptor.check()?.set(flat(hArray)?)?;
    Ok(())
}

#[entry_point]
fn cuArray3DGetDescriptor_v2(pArrayDescriptor: Out<CUDA_ARRAY3D_DESCRIPTOR>, hArray: CUarray) -> CuResult {
    pArrayDescriptor.check()?.set(arrays::find(hArray)?.descriptor)?;
    Ok(())
}

#[entry_point]
fn cuArrayGetDescriptor(pArrayDescriptor: Out<CUDA_ARRAY_DESCRIPTOR_v1>, hArray: CUarray) -> CuResult {
    pArrayDescriptor.check()?.set(flat(hArray)?.into())?;
    Ok(())
}

#[entry_point]
fn cuArray3DGetDescriptor(pArrayDescriptor: Out<CUDA_ARRAY3D_DESCRIPTOR_v1>, hArray: CUarray) -> CuResult {
    pArrayDescriptor.check()?.set(arrays::find(hArray)?.descriptor.into())?;
    Ok(())
}

#[entry_point]
fn cuArrayDestroy(hArray: CUarray) -> CuResult {
    arrays::destroy(hArray)
}

/// Only planar formats have planes, and no array here has one.
#[entry_point]
fn cuArrayGetPlane(pPlaneArray: Out<CUarray>, hArray: CUarray, _planeIdx: u32) -> CuResult {
    pPlaneArray.check()?;
    arrays::find(hArray)?;
    Err(CUDA_ERROR_INVALID_VALUE.into())
}

/// What a deferred array is to be mapped to.
#[entry_point]
fn cuArrayGetMemoryRequirements(
    memoryRequirements: Out<CUDA_ARRAY_MEMORY_REQUIREMENTS>,
    array: CUarray,
    _device: CUdevice,
) -> CuResult {
    let array = arrays::find(array).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    requirements(memoryRequirements, array.memory())
}

/// How a sparse array is divided.
#[entry_point]
fn cuArrayGetSparseProperties(
    sparseProperties: Out<CUDA_ARRAY_SPARSE_PROPERTIES>,
    array: CUarray,
) -> CuResult {
    let array = arrays::find(array).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    properties(sparseProperties, array.memory(), false)
}

/// All devices ask for the same, and NVIDIA's driver does not look which it is.
fn requirements(place: Out<CUDA_ARRAY_MEMORY_REQUIREMENTS>, memory: Option<&ArrayMemory>) -> CuResult {
    place.check()?;
    let memory = memory.filter(|memory| memory.is_deferred()).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    let (_, size) = memory.deferred();
    place.set(CUDA_ARRAY_MEMORY_REQUIREMENTS {
        size: size as usize,
        alignment: TILE as usize,
        reserved: [0; 4],
    })?;
    Ok(())
}

fn properties(
    place: Out<CUDA_ARRAY_SPARSE_PROPERTIES>,
    memory: Option<&ArrayMemory>,
    is_mipmapped: bool,
) -> CuResult {
    place.check()?;
    let sparse = memory.and_then(ArrayMemory::sparse).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    place.set(CUDA_ARRAY_SPARSE_PROPERTIES {
        tileExtent: sparse.tile.map(|texels| texels as u32),
        // Without levels there is none that could be the first.
        miptailFirstLevel: if is_mipmapped { sparse.first_in_tail } else { 0 },
        miptailSize: sparse.tail,
        flags: if sparse.is_single { CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL } else { 0 },
        reserved: [0; 4],
    })?;
    Ok(())
}

/// The number of levels is brought to what an array of this size can have.
#[entry_point]
fn cuMipmappedArrayCreate(
    pHandle: Out<CUmipmappedArray>,
    pMipmappedArrayDesc: In<CUDA_ARRAY3D_DESCRIPTOR>,
    numMipmapLevels: u32,
) -> CuResult {
    pHandle.set(CUmipmappedArray::NULL)?;
    pHandle.set(arrays::create_mipmapped(pMipmappedArrayDesc.get()?, numMipmapLevels)?)?;
    Ok(())
}

#[entry_point]
fn cuMipmappedArrayGetLevel(
    pLevelArray: Out<CUarray>,
    hMipmappedArray: CUmipmappedArray,
    level: u32,
) -> CuResult {
    pLevelArray.check()?.set(arrays::find_mipmapped(hMipmappedArray)?.level(level)?)?;
    Ok(())
}

#[entry_point]
fn cuMipmappedArrayDestroy(hMipmappedArray: CUmipmappedArray) -> CuResult {
    arrays::destroy_mipmapped(hMipmappedArray)
}

/// As for arrays without levels.
#[entry_point]
fn cuMipmappedArrayGetMemoryRequirements(
    memoryRequirements: Out<CUDA_ARRAY_MEMORY_REQUIREMENTS>,
    mipmap: CUmipmappedArray,
    _device: CUdevice,
) -> CuResult {
    let array = arrays::find_mipmapped(mipmap).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    requirements(memoryRequirements, Some(array.memory()))
}

/// As for arrays without levels.
#[entry_point]
fn cuMipmappedArrayGetSparseProperties(
    sparseProperties: Out<CUDA_ARRAY_SPARSE_PROPERTIES>,
    mipmap: CUmipmappedArray,
) -> CuResult {
    let array = arrays::find_mipmapped(mipmap).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    properties(sparseProperties, Some(array.memory()), true)
}
