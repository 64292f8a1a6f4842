//! The memory of blocks in flight: shared and local windows, and values that live across suspension points.
//!
//! Generated code addresses a window by a 32-bit offset, read with or without a sign. Every window lies between unmapped addresses
//! that far in both directions, so that no offset reaches anything else. A shared window ends where its mapped pages end: the first byte
//! past a block's shared memory faults.

use std::cell::RefCell;
use std::ptr;

use kernel_abi::{
    BlockFrame, CLUSTER_STRIDE, FaultRecord, LaunchFrame, MAX_CLUSTER, RESERVED_SHARED, RESERVED_SHARED_USED,
    Wait,
};

use crate::Result;
use crate::limits;
use crate::lock::{Rank, RankedGuard, RankedMutex};
use crate::memory::range::{AddressRange, PAGE};

/// Reach of a negative offset.
const BEFORE: u64 = 2 << 30;
/// Reach of a positive offset, and of the accesses there.
const AFTER: u64 = (4 << 30) + (1 << 20);
/// Largest local memory of the blocks of a cluster, and largest memory for suspended values.
const MAX_LOCAL: u64 = limits::MAX_THREADS_PER_BLOCK as u64 * limits::MAX_STACK * MAX_CLUSTER as u64;
const MAX_STATE: u64 = 1 << 30;
/// Mapped part of a shared window, whole pages.
const SHARED: u64 = limits::MAX_SHARED_PER_SM as u64;

/// Memory for one block at a time, for the blocks of one cluster, or for blocks that take turns.
pub struct BlockMemory {
    /// Number of this memory; what `%smid` is made of.
    index: u32,
    /// Windows of blocks by rank, [`CLUSTER_STRIDE`] apart.
    shared: AddressRange,
    /// How many of them are mapped.
    shared_mapped: u32,
    local: Window,
    state: Window,
    /// Windows of the blocks behind the first that takes turns.
    others: Vec<Windows>,
}

/// Windows of a block beside another of the same thread's.
struct Windows {
    shared: AddressRange,
    local: Window,
}

/// How much of each kind a launch needs for a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockNeeds {
    /// Bytes of the shared window.
    pub shared: u64,
    /// Bytes of local memory of all threads.
    pub local: u64,
    /// Bytes of suspended values of all warps.
    pub state: u64,
}

impl BlockNeeds {
    /// Whether any block memory can hold this for so many blocks together.
    pub fn are_possible(&self, blocks: u32) -> bool {
        let fit = |each: u64, most: u64| each.checked_mul(blocks.into()).is_some_and(|all| all <= most);
        self.shared <= SHARED
            && blocks <= MAX_CLUSTER
            && fit(self.local, MAX_LOCAL)
            && fit(self.state, MAX_STATE)
    }

    /// How many blocks one thread may run in turns.
    pub fn most_in_turns(&self) -> u64 {
        MAX_STATE / self.state.max(1)
    }
}

impl BlockMemory {
    fn new(index: u32) -> Result<BlockMemory> {
        Ok(BlockMemory {
            index,
            shared: AddressRange::reserve(BEFORE + u64::from(MAX_CLUSTER) * CLUSTER_STRIDE + AFTER)?,
            shared_mapped: 0,
            local: Window::new(MAX_LOCAL)?,
            state: Window::new(MAX_STATE)?,
            others: Vec::new(),
        })
    }

    /// A frame for blocks of `launch`. Its memory is this one's: one frame at a time.
    pub fn frame(&mut self, launch: &LaunchFrame, needs: BlockNeeds) -> Result<BlockFrame> {
        self.prepare(needs, 1)?;
        Ok(self.frame_of(launch, needs, 0))
    }

    /// Frames for the blocks of clusters of `launch`, by rank. Their memory is this one's.
    pub fn cluster_frames(&mut self, launch: &LaunchFrame, needs: BlockNeeds) -> Result<Vec<BlockFrame>> {
        let blocks = launch.cluster_blocks();
        self.prepare(needs, blocks)?;
        Ok((0..blocks).map(|rank| self.frame_of(launch, needs, rank)).collect())
    }

    /// Frames for so many blocks of `launch` that take turns: their states follow each other, and no offset leads from one to another. Their
    /// memory is this one's.
    pub fn frames_in_turns(
        &mut self,
        launch: &LaunchFrame,
        needs: BlockNeeds,
        blocks: u32,
    ) -> Result<Vec<BlockFrame>> {
        self.prepare(BlockNeeds { state: needs.state * u64::from(blocks), ..needs }, 1)?;
        let first = self.frame_of(launch, needs, 0);
        let mut frames = Vec::with_capacity(blocks as usize);
        for number in 1..blocks as usize {
            if self.others.len() < number {
                let shared = AddressRange::reserve(BEFORE + SHARED + AFTER)?;
                shared.commit(shared.base() + BEFORE, SHARED)?;
                self.others.push(Windows { shared, local: Window::new(MAX_LOCAL / u64::from(MAX_CLUSTER))? });
            }
            let Windows { shared, local } = &mut self.others[number - 1];
            local.grow(needs.local)?;
            frames.push(BlockFrame {
                shared: begin_shared(shared.base() + BEFORE, needs),
                local: local.start() as *mut u8,
                state: first.state.wrapping_add(number * needs.state as usize),
                ..first
            });
        }
        frames.insert(0, first);
        Ok(frames)
    }

    /// Maps what so many blocks need.
    fn prepare(&mut self, needs: BlockNeeds, blocks: u32) -> Result<()> {
        while self.shared_mapped < blocks {
            self.shared.commit(self.shared_window(self.shared_mapped), SHARED)?;
            self.shared_mapped += 1;
        }
        self.local.grow(needs.local * u64::from(blocks))?;
        self.state.grow(needs.state * u64::from(blocks))
    }

    fn shared_window(&self, rank: u32) -> u64 {
        self.shared.base() + BEFORE + u64::from(rank) * CLUSTER_STRIDE
    }

    fn frame_of(&self, launch: &LaunchFrame, needs: BlockNeeds, rank: u32) -> BlockFrame {
        BlockFrame {
            launch,
            shared: begin_shared(self.shared_window(rank), needs),
            local: (self.local.start() + u64::from(rank) * needs.local) as *mut u8,
            state: (self.state.start() + u64::from(rank) * needs.state) as *mut u8,
            ctaid: [0; 3],
            warp: 0,
            from_warp: 0,
            worker: self.index % launch.sm_count.max(1),
            wait: Wait::default(),
            fault: FaultRecord::default(),
            misses: [0; kernel_abi::MISSES],
        }
    }
}

/// Where a block's shared memory begins in a mapped window, at whose end it ends. Nothing runs in it yet.
fn begin_shared(window: u64, needs: BlockNeeds) -> *mut u8 {
    let shared = (window + SHARED - needs.shared.next_multiple_of(1024)) as *mut u8;
    if needs.shared >= RESERVED_SHARED.into() {
        // Barriers that code keeps there begin at zero, whatever a launch that failed has left.
        // SAFETY: the window is mapped for what is needed, and this memory's owner runs nothing in it yet.
        unsafe { shared.write_bytes(0, RESERVED_SHARED_USED as usize) };
    }
    shared
}

/// Memory between unmapped addresses, mapped from its start as far as needed.
struct Window {
    range: AddressRange,
    mapped: u64,
    max: u64,
}

impl Window {
    fn new(max: u64) -> Result<Window> {
        Ok(Window { range: AddressRange::reserve(BEFORE + max + AFTER)?, mapped: 0, max })
    }

    fn start(&self) -> u64 {
        self.range.base() + BEFORE
    }

    fn grow(&mut self, len: u64) -> Result<()> {
        if len > self.mapped {
            let len = len.next_multiple_of(PAGE).max(self.mapped * 2).min(self.max);
            self.range.commit(self.start() + self.mapped, len - self.mapped)?;
            self.mapped = len;
        }
        Ok(())
    }
}

/// Block memories that are not in use: as many as there are threads as a rule. Those of threads that waiting blocks made necessary go when
/// these do.
pub struct BlockMemoryPool {
    state: RankedMutex<PoolState>,
    kept: usize,
}

#[derive(Default)]
struct PoolState {
    free: Vec<BlockMemory>,
    /// How many numbers were given out, and those of memories that are gone.
    numbered: u32,
    unused: Vec<u32>,
    /// Threads that are gone and whose memories were in use elsewhere then.
    owed: usize,
}

thread_local! {
    /// The pool that the thread keeps a memory of for itself, and the memory while it is not in use. The pool is not looked at by this.
    static OWN: RefCell<(*const BlockMemoryPool, Option<BlockMemory>)> = const { RefCell::new((ptr::null(), None)) };
}

impl BlockMemoryPool {
    /// A pool that keeps so many memories for the next grids.
    pub fn keeping(kept: usize) -> BlockMemoryPool {
        BlockMemoryPool { state: RankedMutex::new(Rank::BlockMemory, PoolState::default()), kept }
    }

    /// From now on the calling thread keeps the first memory that it gives back, so that it need not meet others here for each grid, and finds the
    /// memory in its caches.
    pub fn keep_one_here(&self) {
        OWN.set((self, None));
    }

    /// No longer.
    pub fn keep_none_here(&self) {
        let (_, memory) = OWN.replace((ptr::null(), None));
        if let Some(memory) = memory {
            self.give(memory);
        }
    }

    /// What the calling thread keeps, if it keeps one of this pool.
    fn with_own<R>(&self, f: impl FnOnce(&mut Option<BlockMemory>) -> R) -> Option<R> {
        let own = |own: &RefCell<(*const BlockMemoryPool, Option<BlockMemory>)>| {
            let (pool, memory) = &mut *own.borrow_mut();
            ptr::eq(*pool, self).then(|| f(memory))
        };
        OWN.try_with(own).ok().flatten()
    }

    /// The memory that was given back last, or a new one.
    pub fn take(&self) -> Result<BlockMemory> {
        if let Some(memory) = self.with_own(Option::take).flatten() {
            return Ok(memory);
        }
        let index = {
            let mut state = self.state.lock_soon();
            if let Some(memory) = state.free.pop() {
                return Ok(memory);
            }
            state.unused.pop().unwrap_or_else(|| {
                state.numbered += 1;
                state.numbered - 1
            })
        };
        BlockMemory::new(index)
    }

    /// Takes a memory back.
    pub fn give(&self, memory: BlockMemory) {
        let mut memory = Some(memory);
        self.with_own(|own| {
            if own.is_none() {
                *own = memory.take();
            }
        });
        let Some(memory) = memory else { return };
        let mut state = self.state.lock_soon();
        state.free.push(memory);
        if state.owed > 0 {
            state.owed -= 1;
            self.shrink_with(state);
        }
    }

    /// A thread that used a memory now and then is gone: the system gets one back, if more are free than are kept.
    pub fn shrink(&self) {
        self.shrink_with(self.state.lock());
    }

    fn shrink_with(&self, mut state: RankedGuard<'_, PoolState>) {
        if state.free.len() <= self.kept {
            let there = state.numbered as usize - state.unused.len();
            state.owed = (state.owed + 1).min(there.saturating_sub(self.kept));
            return;
        }
        let memory = state.free.pop();
        state.unused.extend(memory.as_ref().map(|memory| memory.index));
        // Unmapping takes a while.
        drop(state);
        drop(memory);
    }
}

#[cfg(test)]
#[cfg(not(miri))] // signals and reserved address space
mod tests {
    use super::*;

    #[test]
    fn offsets_out_of_a_window_fault() {
        let pool = BlockMemoryPool::keeping(2);
        let mut memory = pool.take().unwrap();
        let launch = crate::executor::grid::empty_launch_frame();
        let needs = BlockNeeds { shared: 3000, local: 100_000, state: 5000 };
        let frame = memory.frame(&launch, needs).unwrap();
        let (shared, local, state) = (frame.shared as u64, frame.local as u64, frame.state as u64);
        assert_eq!((shared % 1024, local % 64, state % 64), (0, 0, 0));
        // SAFETY: the windows are the test's alone.
        unsafe {
            for inside in [shared, shared + 3068, local, local + 99_996, state, state + 4996] {
                guard::store(inside, 1_u32).unwrap();
            }
            for outside in [shared + 3072, shared + u64::from(u32::MAX), shared - (2 << 30)] {
                assert!(guard::load::<u8>(outside).is_err(), "{outside:#x}");
            }
            assert!(guard::load::<u8>(local + u64::from(u32::MAX)).is_err());
            assert!(guard::load::<u8>(local - 1).is_err());
        }
        pool.give(memory);
    }

    #[test]
    fn windows_of_a_cluster_lie_a_stride_apart() {
        let pool = BlockMemoryPool::keeping(2);
        let mut memory = pool.take().unwrap();
        let launch = LaunchFrame {
            grid: [4, 1, 1],
            cluster: [4, 1, 1],
            ..crate::executor::grid::empty_launch_frame()
        };
        let needs = BlockNeeds { shared: 3000, local: 100_032, state: 5056 };
        assert!(needs.are_possible(16) && !needs.are_possible(17));
        let frames = memory.cluster_frames(&launch, needs).unwrap();
        assert_eq!(frames.len(), 4);
        for (rank, frame) in (0..).zip(&frames) {
            let shared = frame.shared as u64;
            assert_eq!(shared, frames[0].shared as u64 + rank * CLUSTER_STRIDE);
            // SAFETY: the windows are the test's alone.
            unsafe {
                guard::store(shared + 3068, 1_u32).unwrap();
                guard::store(frame.local as u64 + 100_028, 1_u32).unwrap();
                guard::store(frame.state as u64 + 5052, 1_u32).unwrap();
                assert!(guard::load::<u8>(shared + 3072).is_err(), "each ends where it ends");
            }
        }
        // SAFETY: as above.
        let beyond = unsafe { guard::load::<u8>(frames[0].shared as u64 + 4 * CLUSTER_STRIDE) };
        assert!(beyond.is_err(), "there is no fifth block");
    }

    #[test]
    fn blocks_that_take_turns_have_windows_of_their_own() {
        let pool = BlockMemoryPool::keeping(2);
        let mut memory = pool.take().unwrap();
        let launch = crate::executor::grid::empty_launch_frame();
        let needs = BlockNeeds { shared: 3000, local: 100_000, state: 5056 };
        let frames = memory.frames_in_turns(&launch, needs, 20).unwrap();
        assert_eq!(frames.len(), 20);
        let far = |a: u64, b: u64| a == b || a.abs_diff(b) > u64::from(u32::MAX);
        for (number, frame) in frames.iter().enumerate() {
            let (shared, local) = (frame.shared as u64, frame.local as u64);
            assert_eq!(frame.state as usize, frames[0].state as usize + 5056 * number);
            // SAFETY: the windows are the test's alone.
            unsafe {
                for inside in [shared, shared + 3068, local, local + 99_996, frame.state as u64 + 5052] {
                    guard::store(inside, 1_u32).unwrap();
                }
                assert!(guard::load::<u8>(shared + 3072).is_err(), "each ends where it ends");
            }
            assert!(frames.iter().all(|other| far(shared, other.shared as u64)));
        }
        assert_eq!(needs.most_in_turns(), (1 << 30) / 5056);
        pool.give(memory);
    }

    #[test]
    fn a_thread_that_keeps_a_memory_has_it_for_itself() {
        let (pool, other) = (BlockMemoryPool::keeping(2), BlockMemoryPool::keeping(2));
        pool.keep_one_here();
        let memories = [pool.take().unwrap(), pool.take().unwrap()];
        memories.into_iter().for_each(|memory| pool.give(memory));
        assert_eq!(pool.state.lock().free.len(), 1, "the first stays here");
        let taken = std::thread::scope(|scope| scope.spawn(|| pool.take().unwrap().index).join().unwrap());
        assert_eq!((taken, pool.take().unwrap().index), (1, 0));
        other.give(other.take().unwrap());
        assert_eq!(other.state.lock().free.len(), 1, "of one pool");
        let memory = BlockMemory::new(7).unwrap();
        pool.give(memory);
        pool.keep_none_here();
        assert_eq!(pool.state.lock().free.len(), 1, "given back when the thread ends");
    }

    #[test]
    fn no_more_is_kept_than_was_asked_for() {
        let pool = BlockMemoryPool::keeping(2);
        let memories: Vec<_> = (0..5).map(|_| pool.take().unwrap()).collect();
        let mut numbers: Vec<u32> = memories.iter().map(|memory| memory.index).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4]);
        memories.into_iter().for_each(|memory| pool.give(memory));
        (0..5).for_each(|_| pool.shrink());
        assert_eq!(pool.state.lock().free.len(), 2);
        let memories: Vec<_> = (0..5).map(|_| pool.take().unwrap()).collect();
        // Those that are in use go when they come back.
        (0..5).for_each(|_| pool.shrink());
        memories.into_iter().for_each(|memory| pool.give(memory));
        assert_eq!(pool.state.lock().free.len(), 2);
        // Numbers of what is gone are used again, each once.
        let again: Vec<_> = (0..5).map(|_| pool.take().unwrap()).collect();
        numbers = again.iter().map(|memory| memory.index).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 1, 2, 3, 4]);
    }
}
