//! Where a worker is called.
//!
//! Many workers that looked at one place, or wanted one lock, would wait for each other longer than a short grid lasts. So each looks at a place of
//! its own, and whoever has something for it leaves it there.

use std::ptr;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::thread::Thread;

use super::Grid;

/// A worker's place, which begins a pair of cache lines, as they are fetched together.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Desk {
    /// One of the values below, or a grid: what [`Arc::into_raw`] gave, and this owns.
    slot: AtomicPtr<Grid>,
    /// Whom to wake up.
    thread: OnceLock<Thread>,
}

/// The worker has something to do.
const BUSY: usize = 0;
/// It looks here for work.
const LOOKS: usize = 1;
/// It sleeps.
const SLEEPS: usize = 2;
/// It is to look for work where all do.
const CALLED: usize = 3;

const fn value(number: usize) -> *mut Grid {
    ptr::without_provenance_mut(number)
}

/// Why a worker was called.
pub(super) enum Call {
    /// There is some work.
    Look,
    /// For blocks of this.
    Grid(Arc<Grid>),
}

impl Desk {
    /// The worker's thread begins.
    pub(super) fn open(&self) {
        let _ = self.thread.set(std::thread::current());
    }

    /// Whether the worker looks here and nobody has called it yet.
    pub(super) fn looks(&self) -> bool {
        self.slot.load(Ordering::Relaxed).addr() == LOOKS
    }

    /// Whether the worker sleeps and nobody has called it yet.
    pub(super) fn sleeps(&self) -> bool {
        self.slot.load(Ordering::Relaxed).addr() == SLEEPS
    }

    /// Calls the worker if it looks here.
    pub(super) fn call_looking(&self, grid: Option<&Arc<Grid>>) -> bool {
        self.looks() && self.call(LOOKS, grid)
    }

    /// Calls the worker if it sleeps: it must be [woken up](Self::wake) then.
    pub(super) fn call_sleeping(&self, grid: Option<&Arc<Grid>>) -> bool {
        self.sleeps() && self.call(SLEEPS, grid)
    }

    fn call(&self, from: usize, grid: Option<&Arc<Grid>>) -> bool {
        let message = match grid {
            Some(grid) => Arc::into_raw(grid.clone()).cast_mut(),
            None => value(CALLED),
        };
        let called =
            self.slot.compare_exchange(value(from), message, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        if !called && grid.is_some() {
            // SAFETY: it is of `into_raw` above, and nobody else has seen it.
            drop(unsafe { Arc::from_raw(message) });
        }
        called
    }

    /// Wakes the worker up, which was called while it slept.
    pub(super) fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// The worker looks here from now on.
    pub(super) fn look(&self) {
        self.slot.swap(value(LOOKS), Ordering::SeqCst);
    }

    /// The worker sleeps from now on, unless it has been called.
    pub(super) fn sleep(&self) -> bool {
        self.slot.compare_exchange(value(LOOKS), value(SLEEPS), Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Whether the worker has been called.
    pub(super) fn is_called(&self) -> bool {
        !matches!(self.slot.load(Ordering::Relaxed).addr(), LOOKS | SLEEPS)
    }

    /// The worker does something else from now on; what it was called for, if it was.
    pub(super) fn leave(&self) -> Option<Call> {
        let found = self.slot.swap(value(BUSY), Ordering::AcqRel);
        match found.addr() {
            BUSY | LOOKS | SLEEPS => None,
            CALLED => Some(Call::Look),
            // SAFETY: it is of `into_raw` in `call`, and the swap has made it this thread's.
            _ => Some(Call::Grid(unsafe { Arc::from_raw(found) })),
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_looks_or_sleeps_is_called_and_once() {
        let desk = Desk::default();
        assert!(!desk.call_looking(None) && !desk.call_sleeping(None), "it is busy");
        desk.look();
        assert!(!desk.call_sleeping(None));
        assert!(desk.call_looking(None) && desk.is_called());
        assert!(!desk.call_looking(None), "it has been called");
        assert!(!desk.sleep(), "and does not sleep then");
        assert!(matches!(desk.leave(), Some(Call::Look)));
        desk.look();
        assert!(desk.sleep() && desk.sleeps());
        assert!(!desk.call_looking(None));
        assert!(desk.call_sleeping(None) && desk.is_called());
        assert!(matches!(desk.leave(), Some(Call::Look)));
        assert!(desk.leave().is_none());
    }

    #[test]
    fn a_call_is_never_lost() {
        let desk = Arc::new(Desk::default());
        let worker = {
            let desk = desk.clone();
            std::thread::spawn(move || {
                desk.open();
                for _ in 0..300 {
                    desk.look();
                    if desk.sleep() {
                        while desk.sleeps() {
                            std::thread::park();
                        }
                    }
                    assert!(matches!(desk.leave(), Some(Call::Look)));
                }
            })
        };
        for _ in 0..300 {
            while !desk.call_looking(None) {
                if desk.call_sleeping(None) {
                    desk.wake();
                    break;
                }
                std::thread::yield_now();
            }
        }
        worker.join().unwrap();
    }
}
