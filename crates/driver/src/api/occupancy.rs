//! Occupancy.

use crate::error::CuResult;
use crate::functions;
use cuda_abi::args::{In, Out};
use cuda_abi::driver::*;
use device::Launch;
use device::limits;
use device::module::FunctionAttribute;
use device::occupancy::{BlockShape, available_dynamic_shared, best_block_size};
use entry_macros::entry_point;
use std::sync::Arc;

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
    let function = functions::find(function)?;
    let threads =
        u32::try_from(threads).ok().filter(|threads| *threads > 0).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    place.set(function.resident_blocks(threads, shared as u64)? as i32)?;
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
    let most = function.function.kernel().declared_max_threads();
    let most = if limit == 0 { most } else { limit.min(most) };
    let fixed = function.function.attribute(FunctionAttribute::SharedSize)?;
    let count = function.function.module()?.context()?.attributes().multiprocessors;
    let (threads, blocks) = best_block_size(function.multiprocessor()?, fixed, most, count, shared_of);
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
    let function = functions::find(func)?;
    let shape = BlockShape { threads, shared: function.function.attribute(FunctionAttribute::SharedSize)? };
    let available = available_dynamic_shared(function.multiprocessor()?, shape, blocks)
        .ok_or(CUDA_ERROR_INVALID_VALUE)?;
    dynamicSmemSize.set(available.min(function.function.max_dynamic_shared()?) as usize)?;
    Ok(())
}

/// The largest cluster that such a launch may have; 0 if not even a block of it can run.
#[entry_point]
unsafe fn cuOccupancyMaxPotentialClusterSize(
    clusterSize: Out<i32>,
    func: CUfunction,
    config: In<CUlaunchConfig>,
) -> CuResult {
    clusterSize.check()?;
    // SAFETY: the caller's duty.
    let (function, launch) = unsafe { cluster_launch(func, &config.get()?) }?;
    let blocks = cluster_blocks(&function, &launch)?;
    let most = match function.attribute(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED)? {
        0 => limits::PORTABLE_CLUSTER,
        _ => limits::MAX_CLUSTER,
    };
    clusterSize.set(if blocks == 0 { 0 } else { most as i32 })?;
    Ok(())
}

/// How many clusters of such a launch run together; 0 if it has none.
#[entry_point]
unsafe fn cuOccupancyMaxActiveClusters(
    numClusters: Out<i32>,
    func: CUfunction,
    config: In<CUlaunchConfig>,
) -> CuResult {
    numClusters.check()?;
    // SAFETY: the caller's duty.
    let (function, launch) = unsafe { cluster_launch(func, &config.get()?) }?;
    let cluster = function.function.cluster_of(&launch)?;
    let blocks = cluster_blocks(&function, &launch)?;
    let clusters = match cluster {
        None => 0,
        // A processor runs a cluster whole, however large it is.
        Some(_) if blocks == 0 => 0,
        Some(cluster) => {
            let multiprocessors = function.function.module()?.context()?.attributes().multiprocessors;
            (blocks * multiprocessors / cluster.iter().product::<u32>()).max(1)
        }
    };
    numClusters.set(clusters as i32)?;
    Ok(())
}

/// A function and its launch, whose clusters are possible.
///
/// # Safety
/// The configuration leads to as many attributes as it says.
unsafe fn cluster_launch(
    handle: CUfunction,
    config: &CUlaunchConfig,
) -> CuResult<(Arc<functions::Function>, Launch)> {
    let function = functions::find(handle)?;
    // SAFETY: the caller's duty.
    let asked = unsafe { functions::asked(config.attrs, config.numAttrs) }?;
    let grid = [config.gridDimX, config.gridDimY, config.gridDimZ];
    if !asked.is_preference_possible(handle, grid)? {
        return Err(CUDA_ERROR_INVALID_CLUSTER_SIZE.into());
    }
    asked.events(|| Ok(false))?;
    if asked.updatable {
        return Err(CUDA_ERROR_NOT_SUPPORTED.into());
    }
    let launch = Launch {
        grid,
        block: [config.blockDimX, config.blockDimY, config.blockDimZ],
        dynamic_shared: config.sharedMemBytes,
        cooperative: asked.cooperative,
        cluster: asked.cluster,
    };
    let is_size = |size: &u32| (1..=i32::MAX as u32).contains(size);
    if !launch.grid.iter().chain(&launch.block).all(is_size) {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    function.function.cluster_of(&launch)?;
    Ok((function, launch))
}

/// Blocks of a launch in clusters that one processor runs together.
fn cluster_blocks(function: &functions::Function, launch: &Launch) -> CuResult<u32> {
    let threads = launch.block.iter().fold(1_u32, |all, threads| all.saturating_mul(*threads));
    let blocks = function.resident_blocks(threads, launch.dynamic_shared.into())?;
    Ok(blocks.min(limits::CLUSTER_BLOCKS_PER_SM))
}

fn check_flags(flags: u32) -> CuResult {
    match flags {
        CU_OCCUPANCY_DEFAULT | CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE => Ok(()),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}
