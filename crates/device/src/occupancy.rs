//! How many blocks of a kernel run on one processor together.
//!
//! The arithmetic of a device of its compute capability, except that registers never are the limit: compiled kernels have none
//! to share out.

use crate::limits::{self, Multiprocessor};

/// What a block takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockShape {
    /// Threads.
    pub threads: u32,
    /// Bytes of shared memory, static and dynamic.
    pub shared: u32,
}

/// Blocks that run on one such processor together; 0 if not even one can.
pub fn blocks_per_multiprocessor(of: Multiprocessor, block: BlockShape) -> u32 {
    if block.threads == 0
        || block.threads > limits::MAX_THREADS_PER_BLOCK
        || block.shared > of.shared_per_block
    {
        return 0;
    }
    let threads = block.threads.next_multiple_of(kernel_abi::WARP);
    let by_threads = of.threads / threads;
    let shared = (block.shared + of.shared_reserved).next_multiple_of(128);
    let by_shared = of.shared_for(shared).checked_div(shared).unwrap_or(of.blocks);
    by_threads.min(by_shared).min(of.blocks)
}

/// The block size that keeps most threads of such a processor busy, and the number of blocks that then fill a device of so
/// many: `max_threads`, or a multiple of the warp below it. `dynamic_shared` tells the dynamic shared memory of
/// a block of a size.
pub fn best_block_size(
    of: Multiprocessor,
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
        let blocks = blocks_per_multiprocessor(of, BlockShape { threads, shared });
        // Of equals the largest block stays.
        if blocks * threads > best_threads {
            (best, best_threads, best_blocks) = (threads, blocks * threads, blocks);
        }
    }
    (best, best_blocks * multiprocessors)
}

/// What is left for dynamic shared memory when `blocks` blocks that run together share such a processor's memory evenly;
/// `None` if so many cannot run together. NVIDIA's driver does not take off what it reserves for each block, nor does this.
pub fn available_dynamic_shared(of: Multiprocessor, block: BlockShape, blocks: u32) -> Option<u32> {
    if blocks == 0 || blocks > blocks_per_multiprocessor(of, block) {
        return None;
    }
    // A single block may have more than its kernel prefers.
    let all = if blocks == 1 { of.shared } else { of.shared_for(block.shared + of.shared_reserved) };
    let each = all / blocks / 128 * 128;
    each.min(of.shared_per_block).checked_sub(block.shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    const H100: (u32, u32) = (9, 0);

    fn blocks(threads: u32, shared: u32) -> u32 {
        blocks_per_multiprocessor(Multiprocessor::of(H100), BlockShape { threads, shared })
    }

    #[test]
    fn a_kernel_may_prefer_more_cache() {
        let percents =
            [-1, 0, 10, 25, 50, 75, 90].map(|percent| Multiprocessor::of(H100).preferring(percent));
        let blocks =
            |shared| percents.map(|of| blocks_per_multiprocessor(of, BlockShape { threads: 128, shared }));
        // As an H200's driver answers.
        assert_eq!(blocks(0), [16, 8, 16, 16, 16, 16, 16]);
        assert_eq!(blocks(8000), [16, 1, 3, 7, 14, 16, 16]);
        assert_eq!(blocks(40000), [5, 1, 1, 1, 3, 4, 5]);
        let left = |blocks, shared| {
            let block = BlockShape { threads: 128, shared };
            percents
                .map(|of| available_dynamic_shared(of, block, blocks).map(|left| left.min(49152 - shared)))
        };
        let all = Some(49152);
        assert_eq!(left(1, 0), [all; 7]);
        assert_eq!(left(2, 0), [all, Some(4096), Some(16384), Some(32768), all, all, all]);
        assert_eq!(
            left(16, 0),
            [Some(14592), None, Some(2048), Some(4096), Some(8448), Some(12544), Some(14592)]
        );
        assert_eq!(
            left(4, 8000),
            [Some(41152), None, None, Some(8384), Some(25792), Some(41152), Some(41152)]
        );
    }

    #[test]
    fn as_devices_of_other_capabilities() {
        let blocks = |capability, threads, shared| {
            blocks_per_multiprocessor(Multiprocessor::of(capability), BlockShape { threads, shared })
        };
        assert_eq!(blocks((8, 6), 128, 0), 12, "1536 threads");
        assert_eq!(blocks((8, 6), 32, 0), 16);
        assert_eq!(blocks((8, 6), 32, 100 << 10), 0, "a block has 99 KiB at most");
        assert_eq!(blocks((8, 0), 128, 32768), 4);
        assert_eq!(blocks((7, 5), 32, 0), 16, "no shared memory is reserved");
        assert_eq!(blocks((7, 5), 64, 32768), 2);
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
        let of = Multiprocessor::of(H100);
        assert_eq!(best_block_size(of, 32768, 1024, 132, |_| 0), (1024, 264), "seen on an H200");
        let (size, grid) = best_block_size(of, 0, 64, 4, |_| 0);
        assert_eq!((size, grid), (64, 128));
        // Seen on an H100: the limit itself, though it is no multiple of the warp, where that keeps more threads busy.
        assert_eq!(best_block_size(of, 32768, 65, 132, |_| 0), (65, 792));
        assert_eq!(best_block_size(of, 0, 65, 132, |_| 0), (64, 4224));
        assert_eq!(best_block_size(of, 0, 1024, 4, |_| u64::MAX), (0, 0));
    }

    #[test]
    fn shared_memory_left() {
        let of = Multiprocessor::of(H100);
        let left =
            |threads, shared, blocks| available_dynamic_shared(of, BlockShape { threads, shared }, blocks);
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
