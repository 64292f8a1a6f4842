//! What the device can do at most, and the limits that a context can set.

pub use kernel_abi::MAX_CLUSTER;

use crate::{Error, Result};

/// Threads of a block.
pub const MAX_THREADS_PER_BLOCK: u32 = 1024;
/// Threads of a block in x, y, z.
pub const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];
/// Blocks of a grid in x, y, z.
pub const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65535, 65535];
/// Blocks of a cluster on every device that has clusters; kernels may ask for [`MAX_CLUSTER`].
pub const PORTABLE_CLUSTER: u32 = 8;
/// Blocks of clusters that one processor runs together.
pub const CLUSTER_BLOCKS_PER_SM: u32 = 8;
/// Blocks that one processor of any device runs together.
pub const MAX_BLOCKS_PER_SM: u32 = 32;
/// Bytes of shared memory of a block, unless its kernel asks for more.
pub const SHARED_PER_BLOCK: u32 = 48 << 10;
/// Bytes of shared memory of a processor of any device.
pub const MAX_SHARED_PER_SM: u32 = 228 << 10;
/// Registers of a processor.
pub const REGISTERS_PER_SM: u32 = 65536;
/// Bytes of constant memory of a module.
pub const CONSTANT_MEMORY: u32 = 64 << 10;
/// Bytes of parameters of a kernel.
pub const MAX_PARAMS: u32 = 32764;
/// Bytes of local memory of a thread.
pub const MAX_STACK: u64 = 512 << 10;
/// The least and the most that a buffer of output has, and bytes that it is a multiple of; likewise the heap of kernels.
const LEAST_PRINTF: u64 = 512 << 10;
const MOST_PRINTF: u64 = 2 << 30;
const PRINTF_PIECE: u64 = 256;
const LEAST_HEAP: u64 = 4 << 20;
const HEAP_PIECE: u64 = 64 << 10;
/// Launches by kernels that can be outstanding, at most.
const MOST_PENDING: u64 = 1 << 20;
/// Least and most urgent priority of a stream.
pub const PRIORITIES: (i32, i32) = (0, -5);
/// Most bytes of a window of memory for which a program says how it is accessed.
pub const ACCESS_WINDOW: u64 = 128 << 20;
/// Domains whose accesses fences may order apart from each other; here they order all.
pub const SYNC_DOMAINS: u32 = 4;

/// What one multiprocessor holds. Programs that reckon for themselves how many blocks that makes take a device of a capability to have the
/// numbers of that capability: NVIDIA's header for it refuses others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multiprocessor {
    /// Threads that it runs together.
    pub threads: u32,
    /// Blocks that it runs together.
    pub blocks: u32,
    /// Bytes of shared memory.
    pub shared: u32,
    /// Bytes of shared memory of a block whose kernel asks for as much.
    pub shared_per_block: u32,
    /// Bytes of shared memory that each block takes besides its own.
    pub shared_reserved: u32,
    /// Bytes that are shared memory as long as each block fits, the rest of it being cache: all, unless a kernel prefers less.
    pub preferred: u32,
}

/// KiB of shared memory that a multiprocessor can be divided into, and all that it has.
const DIVISIONS: [u32; 8] = [8, 16, 32, 64, 100, 132, 164, 196];

impl Multiprocessor {
    /// That of a compute capability; of one that is newer than all known, the newest with as much memory.
    pub fn of(capability: (u32, u32)) -> Multiprocessor {
        let (threads, blocks, shared) = match capability {
            (0..=4, _) => (2048, 16, 48),
            (5 | 6, 2) | (6, 1) => (2048, 32, 96),
            (5 | 6, _) => (2048, 32, 64),
            (7, 5..) => (1024, 16, 64),
            (7, _) => (2048, 32, 96),
            (8, 0) => (2048, 32, 164),
            (8, 7) => (1536, 16, 164),
            (8, 9..) => (1536, 24, 100),
            (8, _) => (1536, 16, 100),
            (11, _) => (1536, 24, 228),
            (12, _) => (1536, 24, 100),
            _ => (2048, 32, 228),
        };
        let shared_reserved = if capability.0 >= 8 { kernel_abi::RESERVED_SHARED } else { 0 };
        let shared = shared << 10;
        let shared_per_block = if capability.0 >= 7 { shared - shared_reserved } else { SHARED_PER_BLOCK };
        Multiprocessor { threads, blocks, shared, shared_per_block, shared_reserved, preferred: shared }
    }

    /// The same for a kernel that prefers so many percent of the memory to be shared; a negative number is no preference.
    pub fn preferring(self, percent: i32) -> Multiprocessor {
        let Ok(percent) = u32::try_from(percent) else { return self };
        // Before 7.0 the two are apart, and 7.5 gives at least half of it.
        let least = match self.threads {
            _ if self.shared_per_block == SHARED_PER_BLOCK => self.shared,
            1024 => self.shared / 2,
            _ => 0,
        };
        let wanted = (self.shared * percent.min(100)).div_ceil(100);
        Multiprocessor { preferred: self.division(wanted.max(least)), ..self }
    }

    /// The least memory, as it can be divided, that has so many bytes.
    fn division(&self, bytes: u32) -> u32 {
        let sizes = DIVISIONS.into_iter().map(|size| size << 10);
        sizes.take_while(|size| *size < self.shared).find(|size| *size >= bytes).unwrap_or(self.shared)
    }

    /// The memory that blocks of so many bytes share: what is preferred, or more if one would not fit.
    pub fn shared_for(&self, block: u32) -> u32 {
        if block <= self.preferred { self.preferred } else { self.division(block) }
    }
}

/// Something a context can be told to provide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Bytes of stack of a thread, for kernels whose depth of calls is not known.
    StackSize,
    /// Bytes of output that kernels can print between two synchronisations.
    PrintfFifoSize,
    /// Bytes of the heap that kernels allocate from.
    MallocHeapSize,
    /// Depth of synchronisation in kernels launched by kernels: there is none.
    DevRuntimeSyncDepth,
    /// Launches by kernels that can be outstanding.
    DevRuntimePendingLaunchCount,
    /// A hint.
    MaxL2FetchGranularity,
    /// A hint.
    PersistingL2CacheSize,
    /// Bytes of shared memory of a block; cannot be set.
    SharedMemorySize,
    /// Whether the context works together with graphics: no.
    CigEnabled,
    /// Shared memory of such a context: there is none.
    CigSharedMemoryFallback,
}

/// The limits of one context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    stack: u64,
    printf: u64,
    heap: u64,
    pending_launches: u64,
    fetch_granularity: u64,
    persisting: u64,
    shared: u64,
}

impl Limits {
    /// Those that a context begins with, of a device with such multiprocessors.
    pub fn of(multiprocessor: Multiprocessor) -> Limits {
        Limits {
            shared: multiprocessor.shared_per_block.into(),
            stack: 1024,
            printf: 8_650_752,
            heap: 8 << 20,
            pending_launches: 2048,
            fetch_granularity: 64,
            persisting: 0,
        }
    }

    /// The value of a limit.
    ///
    /// # Errors
    /// [`Error::UnsupportedLimit`] for what the device does not have.
    pub fn get(&self, limit: Limit) -> Result<u64> {
        Ok(match limit {
            Limit::StackSize => self.stack,
            Limit::PrintfFifoSize => self.printf,
            Limit::MallocHeapSize => self.heap,
            Limit::DevRuntimeSyncDepth | Limit::CigSharedMemoryFallback => {
                return Err(Error::UnsupportedLimit);
            }
            Limit::DevRuntimePendingLaunchCount => self.pending_launches,
            Limit::MaxL2FetchGranularity => self.fetch_granularity,
            Limit::PersistingL2CacheSize => self.persisting,
            Limit::SharedMemorySize => self.shared,
            Limit::CigEnabled => 0,
        })
    }

    /// Sets a limit, to the next value that the device can keep.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for what is out of range, [`Error::UnsupportedLimit`] for what cannot be set.
    pub fn set(&mut self, limit: Limit, value: u64) -> Result<()> {
        let at_most = |most: u64| if value <= most { Ok(value) } else { Err(Error::InvalidValue) };
        match limit {
            Limit::StackSize => self.stack = at_most(MAX_STACK - 16)?.next_multiple_of(16),
            Limit::PrintfFifoSize => {
                self.printf = value.clamp(LEAST_PRINTF, MOST_PRINTF).next_multiple_of(PRINTF_PIECE);
            }
            Limit::MallocHeapSize => {
                self.heap = at_most(1 << 40)?.max(LEAST_HEAP).next_multiple_of(HEAP_PIECE);
            }
            Limit::DevRuntimePendingLaunchCount => self.pending_launches = value.clamp(32, MOST_PENDING),
            Limit::MaxL2FetchGranularity => self.fetch_granularity = at_most(128)?,
            Limit::PersistingL2CacheSize => self.persisting = at_most(1 << 30)?,
            Limit::DevRuntimeSyncDepth
            | Limit::SharedMemorySize
            | Limit::CigEnabled
            | Limit::CigSharedMemoryFallback => {
                return Err(Error::UnsupportedLimit);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stack_is_rounded_and_bounded() {
        let mut limits = Limits::of(Multiprocessor::of((9, 0)));
        assert_eq!(limits.get(Limit::StackSize), Ok(1024));
        limits.set(Limit::StackSize, 1000).unwrap();
        assert_eq!(limits.get(Limit::StackSize), Ok(1008));
        for bad in [1 << 30, 1 << 40, u64::MAX] {
            assert_eq!(limits.set(Limit::StackSize, bad), Err(Error::InvalidValue));
        }
        assert_eq!(limits.get(Limit::DevRuntimeSyncDepth), Err(Error::UnsupportedLimit));
    }
    #[test]
    fn a_multiprocessor_is_that_of_its_capability() {
        let of = |capability| {
            let it = Multiprocessor::of(capability);
            (it.threads, it.blocks, it.shared >> 10, it.shared_per_block >> 10, it.shared_reserved)
        };
        assert_eq!(of((7, 5)), (1024, 16, 64, 64, 0));
        assert_eq!(of((8, 0)), (2048, 32, 164, 163, 1024));
        assert_eq!(of((8, 6)), (1536, 16, 100, 99, 1024));
        assert_eq!(of((8, 9)), (1536, 24, 100, 99, 1024));
        assert_eq!(of((9, 0)), (2048, 32, 228, 227, 1024));
        assert_eq!(of((12, 0)), (1536, 24, 100, 99, 1024));
        let most = (1..30).flat_map(|major| (0..10).map(move |minor| Multiprocessor::of((major, minor))));
        assert!(most.into_iter().all(|it| it.shared <= MAX_SHARED_PER_SM && it.blocks <= MAX_BLOCKS_PER_SM));
    }
}
