//! The end of a command, to wait for.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Weak};
use std::time::Duration;

use super::queue::{Help, Queue};
use crate::clock;
use crate::lock::{Rank, RankedMutex};

const PENDING: u8 = 0;
const DONE: u8 = 1;
const DROPPED: u8 = 2;

/// Becomes finished once: when its command has run, or when the command is dropped without having run. A wait always ends.
#[derive(Debug)]
pub struct Completion {
    state: AtomicU8,
    /// Nanoseconds of [`clock`].
    finished_at: AtomicU64,
    /// Where the command is queued: what a waiting thread helps with.
    queue: Weak<Queue>,
    waiters: RankedMutex<Waiters>,
    finished: Condvar,
}

#[derive(Debug, Default)]
struct Waiters {
    threads: usize,
    queues: Vec<Arc<Queue>>,
}

impl Completion {
    /// The end of a command that will be in `queue`.
    pub(crate) fn new(queue: Weak<Queue>) -> Arc<Completion> {
        Arc::new(Completion {
            state: AtomicU8::new(PENDING),
            finished_at: AtomicU64::new(0),
            queue,
            waiters: RankedMutex::new(Rank::Completion, Waiters::default()),
            finished: Condvar::new(),
        })
    }

    /// Whether the command is over.
    pub fn is_finished(&self) -> bool {
        self.state.load(Ordering::Acquire) != PENDING
    }

    /// Whether the command was dropped without having run.
    pub fn was_dropped(&self) -> bool {
        self.state.load(Ordering::Acquire) == DROPPED
    }

    /// When it finished, in nanoseconds of a clock that only runs forward.
    pub fn finished_at(&self) -> Option<u64> {
        self.is_finished().then(|| self.finished_at.load(Ordering::Relaxed))
    }

    /// Waits for the end. The thread executes the work it waits for where that has not been taken by another.
    pub fn wait(self: &Arc<Completion>) {
        // A worker that wakes up costs more than a short command; a thread that sleeps costs as much again.
        const SPIN: Duration = Duration::from_micros(20);
        const CHECK: Duration = Duration::from_millis(50);
        while !self.is_finished() {
            if let Some(queue) = self.queue()
                && queue.may_run_here()
            {
                let near = queue.come_near(self);
                let mut idle_since = clock::now();
                while !self.is_finished() && clock::since(idle_since) < SPIN {
                    let seen = near.arrivals();
                    match Queue::help(self) {
                        Help::Given => idle_since = clock::now(),
                        Help::NoneWanted => {}
                        // To look on would take one of them from the work.
                        Help::AllBusy => break,
                    }
                    while !self.is_finished() && near.arrivals() == seen && clock::since(idle_since) < SPIN {
                        std::hint::spin_loop();
                    }
                }
            }
            // Once more, for what began when this thread was counted on to come.
            if !self.is_finished() && Queue::help(self) != Help::Given {
                self.sleep(CHECK);
            }
        }
    }

    pub(crate) fn queue(&self) -> Option<Arc<Queue>> {
        self.queue.upgrade()
    }

    /// Has `queue` scheduled at the end; false if that has come already.
    pub(crate) fn then_schedule(&self, queue: &Arc<Queue>) -> bool {
        let mut waiters = self.waiters.lock();
        let pending = !self.is_finished();
        if pending {
            waiters.queues.push(queue.clone());
        }
        pending
    }

    /// The command has run. Only the first call counts.
    pub(crate) fn finish(&self) {
        self.finish_at(clock::now());
    }

    /// The command has run, by this time. Only the first call counts.
    pub(crate) fn finish_at(&self, now: u64) {
        self.end(DONE, now);
    }

    /// The command will not run.
    pub(crate) fn abandon(&self) {
        if !self.is_finished() {
            self.end(DROPPED, clock::now());
        }
    }

    fn end(&self, state: u8, now: u64) {
        let (sleepers, queues) = {
            let mut waiters = self.waiters.lock();
            if self.is_finished() {
                return;
            }
            self.finished_at.store(now, Ordering::Relaxed);
            self.state.store(state, Ordering::Release);
            (waiters.threads > 0, std::mem::take(&mut waiters.queues))
        };
        if sleepers {
            // Without the lock, which they want first of all.
            self.finished.notify_all();
            if let Some(queue) = self.queue() {
                queue.make_room();
            }
        }
        for queue in &queues {
            queue.schedule();
        }
    }

    fn sleep(&self, limit: Duration) {
        let mut waiters = self.waiters.lock();
        if self.is_finished() {
            return;
        }
        waiters.threads += 1;
        let mut waiters = waiters.wait_timeout(&self.finished, limit);
        waiters.threads -= 1;
    }
}
