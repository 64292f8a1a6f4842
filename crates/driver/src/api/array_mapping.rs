//! Virtual memory management: memory for arrays without memory of their own.

use super::virtual_memory::find;
use crate::arrays;
use crate::error::CuResult;
use crate::streams;
use cuda_abi::args::Array;
use cuda_abi::driver::*;
use cuda_abi::shim::DefaultStream;
use device::memory::{ArrayMemory, PhysicalMemory, TileMapping};
use entry_macros::entry_point;
use simt_ir::texture::TILE;
use std::sync::Arc;

/// All changes are checked before the first is made, which the stream does when it gets there.
#[entry_point(ptsz)]
fn cuMemMapArrayAsync(
    default: DefaultStream,
    mapInfoList: Array<CUarrayMapInfo>,
    count: u32,
    hStream: CUstream,
) -> CuResult {
    if count == 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let stream = streams::find(hStream, default)?;
    let device = stream.context()?.device();
    let changes = (0..count as usize).map(|index| change(&mapInfoList.get(index)?, device));
    let changes = changes.collect::<CuResult<_>>()?;
    stream.map_tiles(changes)?;
    Ok(())
}

fn change(info: &CUarrayMapInfo, device: usize) -> CuResult<TileMapping> {
    // The device is the stream's, and no other.
    if info.flags != 0 || info.reserved != [0; 2] || info.deviceBitMask != 1 << device {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let array = array(info)?;
    let (places, len) = places(info, &array)?;
    let memory = match info.memOperationType {
        CU_MEM_OPERATION_TYPE_MAP => Some((memory(info, &array, device)?, info.offset)),
        CU_MEM_OPERATION_TYPE_UNMAP => None,
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    };
    // What is mapped lies in the memory.
    if let Some((memory, offset)) = &memory {
        let end = (places.len() as u64).checked_mul(len).and_then(|bytes| bytes.checked_add(*offset));
        if end.is_none_or(|end| end > memory.size()) {
            return Err(CUDA_ERROR_INVALID_VALUE.into());
        }
    }
    Ok(TileMapping { array, places, len, memory })
}

/// The array, which has no memory of its own. A level is none, but its mipmapped array is.
fn array(info: &CUarrayMapInfo) -> CuResult<ArrayMemory> {
    // SAFETY: the type names the member that is set; each is a plain number.
    let memory = unsafe {
        match info.resourceType {
            CU_RESOURCE_TYPE_ARRAY => arrays::find(info.resource.array)?.memory().cloned(),
            CU_RESOURCE_TYPE_MIPMAPPED_ARRAY => {
                Some(arrays::find_mipmapped(info.resource.mipmap)?.memory().clone())
            }
            _ => None,
        }
    };
    let without = |memory: &ArrayMemory| memory.is_deferred() || memory.sparse().is_some();
    memory.filter(without).ok_or(CUDA_ERROR_INVALID_VALUE.into())
}

/// The addresses of the pieces that are meant, and the bytes of each.
fn places(info: &CUarrayMapInfo, array: &ArrayMemory) -> CuResult<(Vec<u64>, u64)> {
    // SAFETY: the type names the member that is set; each is plain numbers.
    let (part, tail) = unsafe { (info.subresource.sparseLevel, info.subresource.miptail) };
    match info.subresourceType {
        CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL if array.is_deferred() => {
            whole(&part, array)?;
            let (address, len) = array.deferred();
            Ok((vec![address], len))
        }
        CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL => {
            let [x, y, z] = [part.offsetX, part.offsetY, part.offsetZ].map(u64::from);
            let extent = [part.extentWidth, part.extentHeight, part.extentDepth].map(u64::from);
            // A layer has no depth; what has no layers has the first alone.
            let z = match (array.is_layered(), part.layer, z, extent[2]) {
                (true, layer, 0, 1) => layer.into(),
                (false, 0, z, _) => z,
                _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
            };
            Ok((array.tiles(part.level, [x, y, z], extent)?, TILE))
        }
        CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL => {
            Ok((array.tail(tail.layer.into(), tail.offset, tail.size)?, TILE))
        }
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

/// Deferred memory is mapped to all of an array at once.
fn whole(part: &CUarrayMapInfo_sparseLevel, array: &ArrayMemory) -> CuResult {
    let first = array.levels()[0];
    let all = [first.width, first.height, first.depth];
    let extent = [part.extentWidth, part.extentHeight, part.extentDepth].map(u64::from);
    let offsets = [part.level, part.layer, part.offsetX, part.offsetY, part.offsetZ];
    if offsets == [0; 5] && extent == all { Ok(()) } else { Err(CUDA_ERROR_INVALID_VALUE.into()) }
}

/// The memory that a part gets: of the array's device, and for tiles if the array has such.
fn memory(info: &CUarrayMapInfo, array: &ArrayMemory, device: usize) -> CuResult<Arc<PhysicalMemory>> {
    if info.memHandleType != CU_MEM_HANDLE_TYPE_GENERIC || !info.offset.is_multiple_of(TILE) {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let memory = find(info.memHandle)?;
    let is_fit = memory.device() == device && (array.is_deferred() || memory.purpose().tiles);
    if is_fit { Ok(memory) } else { Err(CUDA_ERROR_INVALID_VALUE.into()) }
}
