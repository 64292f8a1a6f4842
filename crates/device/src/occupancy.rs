//! How many blocks of a kernel run on one processor together.
//!
//! The arithmetic of a compute capability 9.0 device, except that registers never are the limit: compiled kernels have none
//! to share out.

use crate::limits;

/// What a block takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockShape {
    /// Threads.
    pub threads: u32,
    /// Bytes of shared memory, static and dynamic.
    pub shared: u32,
}

/// Blocks that run on one processor together; 0 if not even one can.
pub fn blocks_per_multiprocessor(block: BlockShape) -> u32 {
    if block.threads == 0
        || block.threads > limits::MAX_THREADS_PER_BLOCK
        || block.shared > limits::SHARED_PER_BLOCK_OPTIN
    {
        return 0;
    }
    let threads = block.threads.next_multiple_of(kernel_abi::WARP);
    let by_threads = limits::MAX_THREADS_PER_SM / threads;
    let shared = (block.shared + limits::SHARED_RESERVED).next_multiple_of(128);
    let by_shared = limits::SHARED_PER_SM / shared;
    by_threads.min(by_shared).min(limits::MAX_BLOCKS_PER_SM)
}

/// The block size that keeps most threads of a processor busy, and the number of blocks that then fill a device of so
/// many processors: `max_threads`, or a multiple of the warp below it. `dynamic_shared` tells the dynamic shared memory of
/// a block of a size.
pub fn best_block_size(
    static_shared: u32,
    max_threads: u32,
    multiprocessors: u32,
    dynamic_shared: impl Fn(u32) -> u64,
) -> (u32, u32) {
    let (mut best, mut best_threads, mut best_blocks) = (0, 0, 0);
    let most = max_threads.min(limits::MAX_THREADS_PER_BLOCK);
    for warps in (1..=most.div_ceil(kernel_abi::WARP)).rev() {
        let threads = most.min(warps * kernel_abi::WARP);
        let shared = dynamic_shared(threads).saturating_add(static_shared.into());
        let shared = u32::try_from(shared).unwrap_or(u32::MAX);
        let blocks = blocks_per_multiprocessor(BlockShape { threads, shared });
        // Of equals the largest block stays.
        if blocks * threads > best_threads {
            (best, best_threads, best_blocks) = (threads, blocks * threads, blocks);
        }
    }
    (best, best_blocks * multiprocessors)
}

/// What is left for dynamic shared memory when `blocks` blocks that run together share a processor's memory evenly;
/// `None` if so many cannot run together. NVIDIA's driver does not take off what it reserves for each block, nor does this.
pub fn available_dynamic_shared(block: BlockShape, blocks: u32) -> Option<u32> {
    if blocks == 0 || blocks > blocks_per_multiprocessor(block) {
        return None;
    }
    let each = limits::SHARED_PER_SM / blocks / 128 * 128;
    each.min(limits::SHARED_PER_BLOCK_OPTIN).checked_sub(block.shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(threads: u32, shared: u32) -> u32 {
        blocks_per_multiprocessor(BlockShape { threads, shared })
    }

    #[test]
    fn as_a_9_0_device() {
        assert_eq!(blocks(128, 32768), 6, "seen on an H200");
        assert_eq!(blocks(1024, 0), 2);
        assert_eq!(blocks(33, 0), 32);
        assert_eq!(blocks(96, 0), 21);
        assert_eq!(blocks(1, 227 << 10), 1);
        assert_eq!(blocks(1, (227 << 10) + 1), 0);
        assert_eq!(blocks(1025, 0), 0);
    }

    #[test]
    fn best_sizes() {
        assert_eq!(best_block_size(32768, 1024, 132, |_| 0), (1024, 264), "seen on an H200");
        let (size, grid) = best_block_size(0, 64, 4, |_| 0);
        assert_eq!((size, grid), (64, 128));
        // Seen on an H100: the limit itself, though it is no multiple of the warp, where that keeps more threads busy.
        assert_eq!(best_block_size(32768, 65, 132, |_| 0), (65, 792));
        assert_eq!(best_block_size(0, 65, 132, |_| 0), (64, 4224));
        assert_eq!(best_block_size(0, 1024, 4, |_| u64::MAX), (0, 0));
    }

    #[test]
    fn shared_memory_left() {
        let left = |threads, shared, blocks| available_dynamic_shared(BlockShape { threads, shared }, blocks);
        // Seen on an H100.
        assert_eq!(left(64, 0, 1), Some(232448));
        assert_eq!(left(64, 0, 8), Some(29184));
        assert_eq!(left(64, 0, 17), Some(13696));
        assert_eq!(left(64, 1000, 7), Some(32280));
        assert_eq!(left(64, 32768, 6), Some(6144));
        assert_eq!(left(64, 32768, 7), None);
        assert_eq!(left(1024, 0, 3), None);
        assert_eq!(left(1025, 0, 1), None);
    }
}
