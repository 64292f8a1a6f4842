//! Occupancy.

use crate::error::CuResult;
use crate::functions;
use cuda_abi::args::Out;
use cuda_abi::driver::*;
use device::module::FunctionAttribute;
use device::occupancy::{available_dynamic_shared, best_block_size};
use entry_macros::entry_point;

#[entry_point]
fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
    numBlocks: Out<i32>,
    func: CUfunction,
    blockSize: i32,
    dynamicSMemSize: usize,
) -> CuResult {
    active_blocks(numBlocks, func, blockSize, dynamicSMemSize, CU_OCCUPANCY_DEFAULT)
}

#[entry_point]
fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    numBlocks: Out<i32>,
    func: CUfunction,
    blockSize: i32,
    dynamicSMemSize: usize,
    flags: u32,
) -> CuResult {
    active_blocks(numBlocks, func, blockSize, dynamicSMemSize, flags)
}

fn active_blocks(place: Out<i32>, function: CUfunction, threads: i32, shared: usize, flags: u32) -> CuResult {
    place.check()?;
    check_flags(flags)?;
    let threads =
        u32::try_from(threads).ok().filter(|threads| *threads > 0).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    place.set(functions::find(function)?.resident_blocks(threads, shared as u64)? as i32)?;
    Ok(())
}

#[entry_point]
unsafe fn cuOccupancyMaxPotentialBlockSize(
    minGridSize: Out<i32>,
    blockSize: Out<i32>,
    func: CUfunction,
    blockSizeToDynamicSMemSize: CUoccupancyB2DSize,
    dynamicSMemSize: usize,
    blockSizeLimit: i32,
) -> CuResult {
    best_block(
        (minGridSize, blockSize),
        func,
        blockSizeToDynamicSMemSize,
        dynamicSMemSize,
        blockSizeLimit,
        CU_OCCUPANCY_DEFAULT,
    )
}

#[entry_point]
unsafe fn cuOccupancyMaxPotentialBlockSizeWithFlags(
    minGridSize: Out<i32>,
    blockSize: Out<i32>,
    func: CUfunction,
    blockSizeToDynamicSMemSize: CUoccupancyB2DSize,
    dynamicSMemSize: usize,
    blockSizeLimit: i32,
    flags: u32,
) -> CuResult {
    best_block(
        (minGridSize, blockSize),
        func,
        blockSizeToDynamicSMemSize,
        dynamicSMemSize,
        blockSizeLimit,
        flags,
    )
}

fn best_block(
    (grid, block): (Out<i32>, Out<i32>),
    function: CUfunction,
    shared_of: CUoccupancyB2DSize,
    shared: usize,
    limit: i32,
    flags: u32,
) -> CuResult {
    grid.check()?;
    block.check()?;
    check_flags(flags)?;
    let limit = u32::try_from(limit).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    let function = functions::find(function)?;
    let most_shared = u64::from(function.function.max_dynamic_shared()?);
    let shared_of = |threads: u32| {
        let bytes = match shared_of {
            // SAFETY: the program gave the function to be asked so.
            Some(shared_of) => unsafe { shared_of(threads as i32) as u64 },
            None => shared as u64,
        };
        // A launch with more is refused: no block of that size fits.
        if bytes <= most_shared { bytes } else { u64::MAX }
    };
    let most = function.function.kernel().max_threads();
    let most = if limit == 0 { most } else { limit.min(most) };
    let fixed = function.function.attribute(FunctionAttribute::SharedSize)?;
    let multiprocessors = function.function.module()?.context()?.attributes().multiprocessors;
    let (threads, blocks) = best_block_size(fixed, most, multiprocessors, shared_of);
    grid.set(blocks as i32)?;
    block.set(threads as i32)?;
    Ok(())
}

#[entry_point]
fn cuOccupancyAvailableDynamicSMemPerBlock(
    dynamicSmemSize: Out<usize>,
    func: CUfunction,
    numBlocks: i32,
    blockSize: i32,
) -> CuResult {
    dynamicSmemSize.check()?;
    let positive = |number: i32| u32::try_from(number).ok().filter(|number| *number > 0);
    let (blocks, threads) = positive(numBlocks).zip(positive(blockSize)).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    let fixed = functions::find(func)?.function.attribute(FunctionAttribute::SharedSize)?;
    let most = available_dynamic_shared(fixed, threads, blocks).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    dynamicSmemSize.set(most as usize)?;
    Ok(())
}

fn check_flags(flags: u32) -> CuResult {
    match flags {
        CU_OCCUPANCY_DEFAULT | CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE => Ok(()),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}
