//! Tensor map object management.
//!
//! A map's bytes are those of NVIDIA's driver (`simt_ir::bulk`), and so are the checks, which are fewer than the manual's: where the map lies
//! is not looked at, strides may be anything that is aligned.

use crate::contexts;
use crate::error::CuResult;
use cuda_abi::args::{Array, NullPointer, Out};
use cuda_abi::driver::*;
use device::tensor_map::{Element, Field, Interleave, Mode, Swizzle, TensorMap};
use entry_macros::entry_point;
use std::ffi::c_void;

/// The first `count` elements of an array of at most `N`, zeros above.
fn elements<T: Copy + Default, const N: usize>(array: Array<T>, count: usize) -> Result<[T; N], NullPointer> {
    let mut all = [T::default(); N];
    for (index, element) in all.iter_mut().enumerate().take(count) {
        *element = array.get(index)?;
    }
    Ok(all)
}

/// What both kinds of maps have.
struct Tensor {
    data_type: CUtensorMapDataType,
    rank: u32,
    address: *mut c_void,
    sizes: Array<u64>,
    strides: Array<u64>,
    steps: Array<u32>,
    interleave: CUtensorMapInterleave,
    swizzle: CUtensorMapSwizzle,
    promotion: CUtensorMapL2promotion,
    fill: CUtensorMapFloatOOBfill,
}

/// Ranks that maps have.
fn rank_of(rank: u32) -> CuResult<usize> {
    if (1..=5).contains(&rank) { Ok(rank as usize) } else { Err(CUDA_ERROR_INVALID_VALUE.into()) }
}

/// Makes a map and writes it where the program wants it.
fn encode(place: Out<CUtensorMap>, tensor: &Tensor, mode: Mode) -> CuResult {
    let invalid = || CUDA_ERROR_INVALID_VALUE;
    let rank = rank_of(tensor.rank)?;
    // Element types and permutations beyond these are those of later architectures.
    let element = *Element::ALL.get(tensor.data_type.0 as usize).ok_or_else(invalid)?;
    tensor.promotion.name().ok_or_else(invalid)?;
    tensor.fill.name().ok_or_else(invalid)?;
    // A tensor of one dimension has no strides, and yet a list of them.
    if tensor.strides.is_null() {
        return Err(invalid().into());
    }
    let map = TensorMap {
        element,
        rank: rank as u8,
        address: tensor.address as u64,
        sizes: elements(tensor.sizes, rank)?,
        strides: elements(tensor.strides, rank - 1)?,
        steps: elements(tensor.steps, rank)?,
        interleave: Interleave::from_number(tensor.interleave.0.into()).ok_or_else(invalid)?,
        swizzle: Swizzle::from_number(tensor.swizzle.0.into()).ok_or_else(invalid)?,
        promotion: tensor.promotion.0 as u8,
        nan_outside: tensor.fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
        mode,
    };
    map.check().map_err(|_| invalid())?;
    write(place, &map.to_bytes())
}

fn write(place: Out<CUtensorMap>, bytes: &[u8; TensorMap::BYTES]) -> CuResult {
    let word = |index: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[8 * index + byte]));
    place.set(CUtensorMap { opaque: std::array::from_fn(word) })?;
    Ok(())
}

#[entry_point]
fn cuTensorMapEncodeTiled(
    tensorMap: Out<CUtensorMap>,
    tensorDataType: CUtensorMapDataType,
    tensorRank: u32,
    globalAddress: *mut c_void,
    globalDim: Array<u64>,
    globalStrides: Array<u64>,
    boxDim: Array<u32>,
    elementStrides: Array<u32>,
    interleave: CUtensorMapInterleave,
    swizzle: CUtensorMapSwizzle,
    l2Promotion: CUtensorMapL2promotion,
    oobFill: CUtensorMapFloatOOBfill,
) -> CuResult {
    contexts::usable()?;
    tensorMap.check()?;
    let tensor = Tensor {
        data_type: tensorDataType,
        rank: tensorRank,
        address: globalAddress,
        sizes: globalDim,
        strides: globalStrides,
        steps: elementStrides,
        interleave,
        swizzle,
        promotion: l2Promotion,
        fill: oobFill,
    };
    encode(tensorMap, &tensor, Mode::Tiled { extents: elements(boxDim, rank_of(tensorRank)?)? })
}

#[entry_point]
fn cuTensorMapEncodeIm2col(
    tensorMap: Out<CUtensorMap>,
    tensorDataType: CUtensorMapDataType,
    tensorRank: u32,
    globalAddress: *mut c_void,
    globalDim: Array<u64>,
    globalStrides: Array<u64>,
    pixelBoxLowerCorner: Array<i32>,
    pixelBoxUpperCorner: Array<i32>,
    channelsPerPixel: u32,
    pixelsPerColumn: u32,
    elementStrides: Array<u32>,
    interleave: CUtensorMapInterleave,
    swizzle: CUtensorMapSwizzle,
    l2Promotion: CUtensorMapL2promotion,
    oobFill: CUtensorMapFloatOOBfill,
) -> CuResult {
    contexts::usable()?;
    tensorMap.check()?;
    let spatial = rank_of(tensorRank)?.checked_sub(2).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    let mode = Mode::Im2col {
        lower: elements(pixelBoxLowerCorner, spatial)?,
        upper: elements(pixelBoxUpperCorner, spatial)?,
        channels: channelsPerPixel,
        pixels: pixelsPerColumn,
    };
    let tensor = Tensor {
        data_type: tensorDataType,
        rank: tensorRank,
        address: globalAddress,
        sizes: globalDim,
        strides: globalStrides,
        steps: elementStrides,
        interleave,
        swizzle,
        promotion: l2Promotion,
        fill: oobFill,
    };
    encode(tensorMap, &tensor, mode)
}

/// On this architecture NVIDIA's driver makes the map that `cuTensorMapEncodeIm2col` makes of corners that differ in the width alone.
#[entry_point]
fn cuTensorMapEncodeIm2colWide(
    tensorMap: Out<CUtensorMap>,
    tensorDataType: CUtensorMapDataType,
    tensorRank: u32,
    globalAddress: *mut c_void,
    globalDim: Array<u64>,
    globalStrides: Array<u64>,
    pixelBoxLowerCornerWidth: i32,
    pixelBoxUpperCornerWidth: i32,
    channelsPerPixel: u32,
    pixelsPerColumn: u32,
    elementStrides: Array<u32>,
    interleave: CUtensorMapInterleave,
    mode: CUtensorMapIm2ColWideMode,
    swizzle: CUtensorMapSwizzle,
    l2Promotion: CUtensorMapL2promotion,
    oobFill: CUtensorMapFloatOOBfill,
) -> CuResult {
    contexts::usable()?;
    tensorMap.check()?;
    mode.name().ok_or(CUDA_ERROR_INVALID_VALUE)?;
    rank_of(tensorRank)?.checked_sub(2).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    let mode = Mode::Im2col {
        lower: [pixelBoxLowerCornerWidth, 0, 0],
        upper: [pixelBoxUpperCornerWidth, 0, 0],
        channels: channelsPerPixel,
        pixels: pixelsPerColumn,
    };
    let tensor = Tensor {
        data_type: tensorDataType,
        rank: tensorRank,
        address: globalAddress,
        sizes: globalDim,
        strides: globalStrides,
        steps: elementStrides,
        interleave,
        swizzle,
        promotion: l2Promotion,
        fill: oobFill,
    };
    encode(tensorMap, &tensor, mode)
}

#[entry_point]
fn cuTensorMapReplaceAddress(tensorMap: Out<CUtensorMap>, globalAddress: *mut c_void) -> CuResult {
    contexts::usable()?;
    tensorMap.check()?;
    // SAFETY: not null, so a map of the program's, 128 bytes that it keeps to itself during the call.
    let map = unsafe { tensorMap.as_ptr().read_unaligned() };
    let mut bytes = [0; TensorMap::BYTES];
    for (to, word) in bytes.chunks_exact_mut(8).zip(map.opaque) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    let address = globalAddress as u64;
    if address == 0 || !TensorMap::may_begin_at(address) {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    // Whether this is a map at all shows when it is used.
    Field::Address.replace(&mut bytes, address).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    write(tensorMap, &bytes)
}
