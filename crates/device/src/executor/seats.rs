//! Which processors have a thread that runs blocks.
//!
//! The system wakes a worker up where it ran last, or where it was signalled, even if another thread runs blocks there and a processor is idle: in small
//! machines that are mostly busy it does not look for idle ones, and hardly ever moves a thread that is about to run. Two threads on one processor would
//! then share a whole grid. So a worker that finds its processor taken moves to one that is not.

use std::mem;
use std::sync::atomic::{AtomicU32, Ordering};

/// A processor of this machine.
#[derive(Clone, Copy)]
pub(super) struct Processor(pub(super) usize);

impl Processor {
    /// The one that the calling thread runs on.
    pub(super) fn here() -> Processor {
        // SAFETY: it takes nothing and only answers a number.
        let number = unsafe { libc::sched_getcpu() };
        Processor(usize::try_from(number).unwrap_or(0))
    }

    /// How many there are.
    pub(super) fn count() -> usize {
        // SAFETY: it only answers a number.
        let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
        usize::try_from(count).unwrap_or(1).max(1)
    }

    /// Its place among so many, which several share if there are fewer.
    pub(super) fn of(self, places: usize) -> usize {
        self.0 % places
    }
}

/// Threads that run blocks, by processor.
pub(super) struct Seats(Box<[Seat]>);

/// Threads that run blocks on one processor. Each begins a pair of cache lines, which is fetched together.
#[derive(Default)]
#[repr(align(128))]
struct Seat(AtomicU32);

/// A thread runs blocks, on this processor when it began.
pub(crate) struct Seated<'a>(&'a AtomicU32);

impl Drop for Seated<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Seats {
    /// For the processors of this machine.
    pub(super) fn new() -> Seats {
        Seats((0..Processor::count()).map(|_| Seat::default()).collect())
    }

    /// The calling thread is about to run blocks. If it may move, it does where another is there already and some processor has none.
    pub(super) fn take(&self, may_move: bool) -> Seated<'_> {
        let mut at = Processor::here();
        if may_move && self.is_taken(at) {
            at = self.move_to_free(at).unwrap_or(at);
        }
        let seat = &self.seat(at).0;
        seat.fetch_add(1, Ordering::Relaxed);
        Seated(seat)
    }

    fn seat(&self, processor: Processor) -> &Seat {
        &self.0[processor.of(self.0.len())]
    }

    fn is_taken(&self, processor: Processor) -> bool {
        self.seat(processor).0.load(Ordering::Relaxed) > 0
    }

    /// Goes to a processor without a thread that runs blocks, if there is one among those that the thread may use. It may use the same ones afterwards.
    fn move_to_free(&self, Processor(from): Processor) -> Option<Processor> {
        let allowed = affinity()?;
        let count = self.0.len().min(libc::CPU_SETSIZE as usize);
        let mut others = (from + 1..count).chain(0..from.min(count));
        let free = others.find(|&other| is_in(&allowed, other) && !self.is_taken(Processor(other)))?;
        let moved = set_affinity(&only(free));
        // Whatever came of that.
        set_affinity(&allowed);
        moved.then_some(Processor(free))
    }
}

/// The processors that the thread may run on.
fn affinity() -> Option<libc::cpu_set_t> {
    // SAFETY: a set is an array of integers, for which zeros are an empty one.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: the set is there to be written, and as long as told; 0 is the calling thread.
    let failed = unsafe { libc::sched_getaffinity(0, mem::size_of_val(&set), &mut set) };
    (failed == 0).then_some(set)
}

fn set_affinity(set: &libc::cpu_set_t) -> bool {
    // SAFETY: the set is only read, and as long as told; 0 is the calling thread.
    unsafe { libc::sched_setaffinity(0, mem::size_of_val(set), set) == 0 }
}

fn is_in(set: &libc::cpu_set_t, processor: usize) -> bool {
    // SAFETY: `processor` is below `CPU_SETSIZE`: the only caller limits it to that.
    unsafe { libc::CPU_ISSET(processor, set) }
}

fn only(processor: usize) -> libc::cpu_set_t {
    // SAFETY: as in `affinity`, and as in `is_in`.
    unsafe {
        let mut set = mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        set
    }
}

#[cfg(test)]
#[cfg(not(miri))] // asks the system where threads run
mod tests {
    use super::*;

    fn members(set: &libc::cpu_set_t) -> Vec<usize> {
        (0..libc::CPU_SETSIZE as usize).filter(|processor| is_in(set, *processor)).collect()
    }

    /// Runs on the first of the processors that it is given, and may use all.
    fn on_the_first(test: impl FnOnce(&[usize]) + Send) {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let before = affinity().expect("a thread has processors");
                let all = members(&before);
                assert!(set_affinity(&only(all[0])));
                test(&all);
                assert!(set_affinity(&before));
            });
        });
    }

    #[test]
    fn a_worker_goes_where_nobody_is_and_may_use_the_same_processors_as_before() {
        on_the_first(|all| {
            let seats = Seats::new();
            let first = seats.take(true);
            assert!(seats.is_taken(Processor(all[0])), "nobody was there");
            let mut allowed = only(all[0]);
            // SAFETY: those are members of another set.
            all.iter().for_each(|other| unsafe { libc::CPU_SET(*other, &mut allowed) });
            // The system may move the thread before it looks where it is, but nobody is there then.
            assert!(set_affinity(&allowed));
            let second = seats.take(true);
            let taken = all.iter().filter(|processor| seats.is_taken(Processor(**processor))).count();
            assert_eq!(taken, all.len().min(2));
            assert_eq!(members(&affinity().unwrap()), all);
            drop((first, second));
            assert!(all.iter().all(|processor| !seats.is_taken(Processor(*processor))));
        });
    }

    #[test]
    fn a_thread_of_the_program_stays_where_it_is() {
        on_the_first(|all| {
            let seats = Seats::new();
            let _both = [seats.take(false), seats.take(false)];
            assert_eq!(seats.seat(Processor(all[0])).0.load(Ordering::Relaxed), 2);
        });
    }

    #[test]
    fn a_worker_that_may_use_no_other_processor_stays() {
        on_the_first(|all| {
            let seats = Seats::new();
            let _both = [seats.take(true), seats.take(true)];
            assert_eq!(seats.seat(Processor(all[0])).0.load(Ordering::Relaxed), 2);
            assert_eq!(members(&affinity().unwrap()), all[..1]);
        });
    }
}
