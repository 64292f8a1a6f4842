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

/// The block size, a multiple of the warp, that keeps most threads of a processor busy, and the number of blocks that
/// then fill a device of so many processors. `dynamic_shared` tells the dynamic shared memory of a block of a size.
pub fn best_block_size(
    static_shared: u32,
    max_threads: u32,
    multiprocessors: u32,
    dynamic_shared: impl Fn(u32) -> u64,
) -> (u32, u32) {
    let (mut best, mut best_threads, mut best_blocks) = (0, 0, 0);
    let mut threads = max_threads.min(limits::MAX_THREADS_PER_BLOCK) / kernel_abi::WARP * kernel_abi::WARP;
    while threads > 0 {
        let shared = dynamic_shared(threads).saturating_add(static_shared.into());
        let shared = u32::try_from(shared).unwrap_or(u32::MAX);
        let blocks = blocks_per_multiprocessor(BlockShape { threads, shared });
        // Of equals the largest block stays.
        if blocks * threads > best_threads {
            (best, best_threads, best_blocks) = (threads, blocks * threads, blocks);
        }
        threads -= kernel_abi::WARP;
    }
    (best, best_blocks * multiprocessors)
}

/// Dynamic shared memory that a block can have so that `blocks` of them still run together.
pub fn available_dynamic_shared(static_shared: u32, threads: u32, blocks: u32) -> Option<u32> {
    let possible = blocks_per_multiprocessor(BlockShape { threads, shared: 0 });
    if blocks == 0 || blocks > possible {
        return None;
    }
    let each = limits::SHARED_PER_SM / blocks / 128 * 128;
    let each = each.checked_sub(limits::SHARED_RESERVED)?.min(limits::SHARED_PER_BLOCK_OPTIN);
    each.checked_sub(static_shared)
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
        assert_eq!(best_block_size(0, 1024, 4, |_| u64::MAX), (0, 0));
    }

    #[test]
    fn shared_memory_left() {
        let left = available_dynamic_shared(1024, 128, 4).unwrap();
        assert_eq!(blocks(128, left + 1024), 4);
        assert_eq!(available_dynamic_shared(0, 1024, 3), None);
    }
}
