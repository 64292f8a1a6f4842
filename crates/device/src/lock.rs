//! Locks with ranks.
//!
//! A thread that holds a lock may take only locks of higher [`Rank`]. Debug builds check it at every acquisition, so that
//! an order that could deadlock is found the first time it is taken, not the first time it deadlocks.
//!
//! A lock whose holder panicked stays usable: what is guarded here is consistent between statements, and a wait that
//! never ended would be worse than what the panic left undone.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// Every kind of lock, in the order in which they may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Rank {
    /// Retain count of a primary context.
    Primary = 1,
    /// Captures in progress.
    Captures,
    /// A stream's part in a capture.
    CaptureSlot,
    /// Streams that take part in a capture.
    Capture,
    /// Nodes of a graph.
    Graph,
    /// Memory of a graph.
    GraphMemory,
    /// Modules of a library.
    Library,
    /// Streams, modules and limits of a context.
    Context,
    /// Kernels of a module.
    Module,
    /// Order of submission in a context.
    Submission,
    /// What an event was recorded for.
    Event,
    /// What a grid has launched.
    Nested,
    /// What kernels leave for the end of their graph.
    GraphLaunch,
    /// Which nodes kernels change.
    UpdatableKernels,
    /// What such a node does.
    UpdatableKernel,
    /// Commands of a stream.
    Stream,
    /// Ready streams and running grids.
    Executor,
    /// Threads and streams that wait for a command.
    Completion,
    /// Free memory of windows.
    BlockMemory,
    /// The device heap of a context.
    DeviceHeap,
    /// Reserved addresses and what is mapped there; memory of shared pools.
    Mappings,
    /// Known allocations.
    Allocations,
    /// What is said about memory.
    Advice,
    /// Bytes in use of pools.
    Pools,
    /// Free memory of a device.
    Heap,
    /// Which contexts exist.
    Registry,
    /// What a texture reference is bound to.
    TextureReference,
    /// Texture and surface objects that are about to go.
    RetiredTextures,
    /// Texture and surface objects.
    Textures,
    /// Output of kernels, and why one failed.
    Output,
}

/// A mutex that knows its place in the order.
#[derive(Debug)]
pub struct RankedMutex<T> {
    rank: Rank,
    mutex: Mutex<T>,
}

impl<T> RankedMutex<T> {
    /// A lock of this rank.
    pub const fn new(rank: Rank, value: T) -> RankedMutex<T> {
        RankedMutex { rank, mutex: Mutex::new(value) }
    }

    /// The value, of a lock that nobody else has.
    pub fn get_mut(&mut self) -> &mut T {
        self.mutex.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the lock.
    pub fn lock(&self) -> RankedGuard<'_, T> {
        let held = Held::take(self.rank);
        RankedGuard { guard: self.mutex.lock().unwrap_or_else(PoisonError::into_inner), held }
    }

    /// Likewise, for a lock that many threads want at the same time and none holds for long: it looks again and again for a while. Threads
    /// that sleep here would be woken up one by one.
    pub fn lock_soon(&self) -> RankedGuard<'_, T> {
        const LOOKS: usize = 200;
        for _ in 0..LOOKS {
            match self.mutex.try_lock() {
                Ok(guard) => return RankedGuard { guard, held: Held::take(self.rank) },
                Err(TryLockError::Poisoned(poisoned)) => {
                    return RankedGuard { guard: poisoned.into_inner(), held: Held::take(self.rank) };
                }
                Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
            }
        }
        self.lock()
    }
}

/// Holds a [`RankedMutex`].
pub struct RankedGuard<'a, T> {
    guard: MutexGuard<'a, T>,
    held: Held,
}

impl<'a, T> RankedGuard<'a, T> {
    /// Waits for a signal at most so long, giving the lock up meanwhile.
    pub fn wait_timeout(self, condvar: &Condvar, limit: Duration) -> RankedGuard<'a, T> {
        let RankedGuard { guard, held } = self;
        let (guard, _) = condvar.wait_timeout(guard, limit).unwrap_or_else(PoisonError::into_inner);
        RankedGuard { guard, held }
    }
}

impl<T> Deref for RankedGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for RankedGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

thread_local! {
    /// The ranks this thread holds, one bit each.
    static RANKS: Cell<u32> = const { Cell::new(0) };
}

/// The entry of one held lock in [`RANKS`]; stays on its thread.
struct Held {
    rank: Rank,
    thread: PhantomData<*const ()>,
}

impl Held {
    fn take(rank: Rank) -> Held {
        if cfg!(debug_assertions) {
            let ranks = RANKS.get();
            assert!(
                ranks >> rank as u8 == 0,
                "{rank:?} is taken while a lock of its rank or a higher one is held ({ranks:#b})"
            );
            RANKS.set(ranks | 1 << rank as u8);
        }
        Held { rank, thread: PhantomData }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            RANKS.set(RANKS.get() & !(1 << self.rank as u8));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upwards_is_allowed_and_releases() {
        let low = RankedMutex::new(Rank::Context, 1);
        let high = RankedMutex::new(Rank::Heap, 2);
        for _ in 0..2 {
            let a = low.lock();
            let b = high.lock();
            assert_eq!(*a + *b, 3);
            drop(a); // out of order on purpose
            drop(b);
        }
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "Context is taken while")]
    fn downwards_is_not() {
        let low = RankedMutex::new(Rank::Context, ());
        let high = RankedMutex::new(Rank::Heap, ());
        let _held = high.lock();
        drop(low.lock());
    }

    #[test]
    fn usable_after_a_panic() {
        let lock = RankedMutex::new(Rank::Stream, 7);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _held = lock.lock();
            panic!("on purpose");
        }));
        assert!(result.is_err());
        assert_eq!(*lock.lock(), 7);
    }
}
