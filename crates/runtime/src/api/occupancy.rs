//! Occupancy.

use super::execution::launch_config;
use super::prelude::*;
use crate::kernels;

/// How many blocks of a kernel fit on one multiprocessor at a time.
#[entry_point]
fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    numBlocks: Out<i32>,
    func: *const c_void,
    blockSize: i32,
    dynamicSMemSize: usize,
) -> CudaResult {
    max_active_blocks(numBlocks, func, blockSize, dynamicSMemSize, cudaOccupancyDefault)
}

/// The same, with flags on caching.
#[entry_point]
fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    numBlocks: Out<i32>,
    func: *const c_void,
    blockSize: i32,
    dynamicSMemSize: usize,
    flags: u32,
) -> CudaResult {
    max_active_blocks(numBlocks, func, blockSize, dynamicSMemSize, flags)
}

/// How much dynamic shared memory blocks may have if so many are to fit on one multiprocessor.
#[entry_point]
fn cudaOccupancyAvailableDynamicSMemPerBlock(
    dynamicSmemSize: Out<usize>,
    func: *const c_void,
    numBlocks: i32,
    blockSize: i32,
) -> CudaResult {
    let function = kernels::launchable(func)?;
    let bytes = dynamicSmemSize.check()?;
    call!(cuOccupancyAvailableDynamicSMemPerBlock(bytes.as_ptr(), function, numBlocks, blockSize))
}

/// How many clusters of a launch fit on the device at a time.
#[entry_point]
fn cudaOccupancyMaxActiveClusters(
    numClusters: Out<i32>,
    func: *const c_void,
    launchConfig: In<cudaLaunchConfig_t>,
) -> CudaResult {
    let clusters = numClusters.check()?;
    let config = launch_config(DefaultStream::Legacy, launchConfig)?;
    call!(cuOccupancyMaxActiveClusters(clusters.as_ptr(), kernels::launchable(func)?, &config))
}

/// The largest cluster that a launch may have.
#[entry_point]
fn cudaOccupancyMaxPotentialClusterSize(
    clusterSize: Out<i32>,
    func: *const c_void,
    launchConfig: In<cudaLaunchConfig_t>,
) -> CudaResult {
    let size = clusterSize.check()?;
    let config = launch_config(DefaultStream::Legacy, launchConfig)?;
    call!(cuOccupancyMaxPotentialClusterSize(size.as_ptr(), kernels::launchable(func)?, &config))
}

fn max_active_blocks(
    blocks: Out<i32>,
    function: *const c_void,
    block_size: i32,
    dynamic_bytes: usize,
    flags: u32,
) -> CudaResult {
    let function = kernels::launchable(function)?;
    let blocks = blocks.check()?;
    call!(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks.as_ptr(),
        function,
        block_size,
        dynamic_bytes,
        flags
    ))
}
