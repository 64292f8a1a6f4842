//! The threads of a device.
//!
//! Workers, one for each core, take *ready queues* and run their commands, and take blocks of *grids* that others
//! have started. A thread of the program that waits does the same with the work it waits for. Idle workers spin briefly, then
//! sleep.
//!
//! Commands may block: a host function that waits for the program, a kernel that polls for the host or for another kernel. When
//! work is left and no command or block has ended for a while, another worker is started, so that whatever can run does run,
//! however few cores there are; such workers leave again when they have been idle.

pub(crate) mod grid;
mod ready;
mod seats;
mod supply;
pub mod windows;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar};
use std::time::Duration;

pub(crate) use grid::{Grid, Sharing};
pub use grid::{GridParts, Locate, Params, Profile, Replay};
pub use ready::Ready;
use seats::{Seated, Seats};
use windows::BlockMemoryPool;

use crate::clock;
use crate::limits;
use crate::lock::{Rank, RankedGuard, RankedMutex};
use crate::stream::{Completion, Queue};

/// Why a thread runs commands.
#[derive(Clone, Copy)]
pub(crate) enum Role<'a> {
    /// It is a worker.
    Worker,
    /// It waits for this.
    Helper(&'a Arc<Completion>),
    /// It has submitted a short command, and runs that alone.
    Submitter,
}

impl Role<'_> {
    /// Whether the thread should stop.
    pub(crate) fn is_satisfied(&self) -> bool {
        matches!(self, Role::Helper(completion) if completion.is_finished())
    }
}

/// The workers of a device and what they have to do.
pub(crate) struct Executor {
    threads: usize,
    multiprocessors: u32,
    /// Most workers beyond one for each core: as many blocks as may wait for each other have a thread each.
    max_extra: usize,
    state: RankedMutex<State>,
    work_arrived: Condvar,
    /// Counts arrivals of work: what spinning workers look at.
    arrivals: AtomicU64,
    /// Ready queues, to be looked at without the lock.
    ready: AtomicUsize,
    /// Workers that are awake and run no queue: they run blocks, or look for some.
    roaming: AtomicUsize,
    /// Threads of the program have been woken up, and no worker has gone to sleep for them.
    woken: AtomicBool,
    /// When the last grid began that is short, but long enough for two.
    last_short: AtomicU64,
    progress: Progress,
    seats: Seats,
    watched: AtomicBool,
    block_memory: BlockMemoryPool,
}

/// Counts commands and chunks that have ended. All threads write here: apart from what those who look for work read.
#[derive(Default)]
#[repr(align(128))]
struct Progress(AtomicU64);

#[derive(Default)]
struct State {
    /// By priority and order of arrival.
    ready: BTreeMap<(i32, u64), Arc<Queue>>,
    arrived: u64,
    grids: Vec<Arc<Grid>>,
    workers: usize,
    /// Workers beyond one for each core.
    extra: usize,
    sleeping: usize,
    /// Workers that look at [`Executor::arrivals`].
    spinning: usize,
    /// Threads that are signalled, or will be by whoever gives the lock up, and have not woken up yet.
    waking: usize,
    /// Of those, the ones to be signalled.
    signals: usize,
    /// More threads that are to wake up: those who do so signal them.
    relayed: usize,
    /// When the watch looked last, there was work and nothing moved.
    stalls: bool,
    shut_down: bool,
}

enum Job {
    Queue(Arc<Queue>),
    Grid(Arc<Grid>),
}

/// How long an idle worker spins, and how long one beyond the number of cores then sleeps before it leaves.
const SPIN: Duration = Duration::from_micros(30);
const LINGER: Duration = Duration::from_millis(500);
/// How often the watch looks for progress, and after how many looks without work it ends.
const WATCH: Duration = Duration::from_millis(4);
const WATCHES: u32 = 250;
/// After how many looks nothing gets on where blocks run in quickly made code. They may take as long as that by themselves, and more threads would only keep
/// processors from those who make better code.
const WATCHES_AT_FIRST: u32 = 12;
/// How many threads one thread signals. A signal takes as long as a short block, so a grid for many threads does not begin with one for each.
const SIGNALS: usize = 3;
/// Most workers that are started at a time.
const MAX_BATCH: usize = 32;
/// Bytes of a worker's stack: a kernel that launches another has it compiled there.
const WORKER_STACK: usize = 8 << 20;
/// Workers beyond one for each core that may always be started, for grids that wait for each other.
const MIN_MAX_EXTRA: usize = 2048;

impl Executor {
    /// An executor that starts up to so many workers when work arrives, of a device of so many multiprocessors.
    pub(crate) fn new(threads: usize, multiprocessors: u32) -> Arc<Executor> {
        let together = multiprocessors as usize * limits::MAX_BLOCKS_PER_SM as usize;
        Arc::new(Executor {
            threads: threads.max(1),
            multiprocessors,
            max_extra: together.max(MIN_MAX_EXTRA),
            state: RankedMutex::new(Rank::Executor, State::default()),
            work_arrived: Condvar::new(),
            arrivals: AtomicU64::new(0),
            ready: AtomicUsize::new(0),
            roaming: AtomicUsize::new(0),
            woken: AtomicBool::new(false),
            last_short: AtomicU64::new(0),
            progress: Progress::default(),
            seats: Seats::new(),
            watched: AtomicBool::new(false),
            // One more for who submits.
            block_memory: BlockMemoryPool::keeping(threads + 1),
        })
    }

    /// Ends the workers once they are idle. What is queued then runs when somebody waits for it.
    pub(crate) fn shut_down(&self) {
        self.state.lock().shut_down = true;
        self.work_arrived.notify_all();
    }

    /// Has a worker look at a queue.
    pub(crate) fn schedule(self: &Arc<Executor>, queue: Arc<Queue>) {
        let mut state = self.state.lock();
        state.arrived += 1;
        let key = (queue.priority(), state.arrived);
        state.ready.insert(key, queue);
        self.ready.store(state.ready.len(), Ordering::Relaxed);
        self.summon(&mut state, 1);
        self.give_up(state);
    }

    /// How many threads run blocks, unless blocks wait for each other.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// How many multiprocessors the device has.
    pub(crate) fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    /// Changes when there is work to look for.
    pub(crate) fn arrivals(&self) -> u64 {
        self.arrivals.load(Ordering::Acquire)
    }

    /// Whether a thread that waits for a grid should run blocks of it. One more than there are processors would take them from the others, and
    /// then all wait for the one that does not run.
    pub(crate) fn wants_help(&self, grid: &Grid) -> bool {
        wants_thread(grid, self.threads)
    }

    /// Whether a grid has a thread on each processor.
    pub(crate) fn all_run(&self, grid: &Grid) -> bool {
        grid.running() >= self.threads
    }

    /// A thread of the program wakes up. Where a worker looks for work on each processor, the next one to find none sleeps at once: two threads on
    /// one processor would stay there, and the system leaves another empty.
    pub(crate) fn make_room(&self) {
        self.woken.store(true, Ordering::Relaxed);
    }

    /// Has workers join a grid that begins, if it is worth it. The calling thread will run blocks.
    pub(crate) fn start(self: &Arc<Executor>, grid: &Arc<Grid>, role: Role<'_>) {
        // Those who wait for it come by themselves.
        let near = || grid.queue().near().saturating_sub(usize::from(matches!(role, Role::Helper(_))));
        let some_come = near() + self.roaming.load(Ordering::Relaxed) > 0;
        let helpers = match grid.start(some_come) {
            Sharing::Among(helpers) => helpers,
            Sharing::None => return,
            Sharing::IfSomeCome => return self.expect_more(grid),
        };
        let mut state = self.state.lock();
        state.grids.push(grid.clone());
        // The calling thread is one of those that the grid needs.
        let needed = grid.threads_needed().saturating_sub(1) as usize;
        while state.sleeping < needed && state.extra < self.max_extra && state.extra < needed {
            if !self.add_worker(&mut state) {
                break;
            }
        }
        if grid.blocks_wait() {
            let helpers = helpers.min(self.threads.max(needed) as u64) as usize;
            let coming = state.spinning;
            self.call_for_blocks(&mut state, helpers, coming, true);
            return self.give_up(state);
        }
        let others_wait =
            state.grids.iter().any(|other| !Arc::ptr_eq(other, grid) && other.has_blocks_left());
        let roaming = if others_wait { state.spinning } else { self.roaming() + state.coming() };
        let helpers = helpers.min(self.threads as u64 - 1) as usize;
        // Whoever is near by now looks once more before it sleeps, and finds the grid.
        fence(Ordering::SeqCst);
        self.call_for_blocks(&mut state, helpers, near() + roaming, false);
        self.give_up(state);
    }

    fn roaming(&self) -> usize {
        self.roaming.load(Ordering::Relaxed)
    }

    /// A grid runs on one thread that two would run sooner, were another awake. If there was such a grid just before, one wakes up
    /// for the next.
    fn expect_more(self: &Arc<Executor>, grid: &Grid) {
        let now = grid.started_at();
        let last = self.last_short.swap(now, Ordering::Relaxed);
        if self.threads > 1 && now.saturating_sub(last) < SPIN.as_nanos() as u64 {
            let mut state = self.state.lock();
            if self.roaming() + state.coming() == 0 {
                self.wake(&mut state, 1);
            }
            self.give_up(state);
        }
    }

    /// Has workers join a grid that was thought to be too short for that.
    fn share(self: &Arc<Executor>, grid: &Arc<Grid>) {
        let helpers = grid.share().min(self.threads as u64) as usize;
        let mut state = self.state.lock();
        state.grids.push(grid.clone());
        let coming = state.spinning;
        self.call_for_blocks(&mut state, helpers, coming, grid.blocks_wait());
        self.give_up(state);
    }

    /// Has so many threads come for blocks that may wait for each other, or never do; some are coming already.
    fn call_for_blocks(
        self: &Arc<Executor>,
        state: &mut State,
        helpers: usize,
        coming: usize,
        blocks_wait: bool,
    ) {
        let nobody_comes = helpers <= coming;
        self.arrivals.fetch_add(1, Ordering::Release);
        self.wake(state, helpers.saturating_sub(coming));
        if nobody_comes || blocks_wait {
            // A block may wait for one that none of those who come has begun, and a spinning worker may find something else first.
            self.watch();
        }
    }

    /// Takes blocks of a grid that another thread started, and goes on with its queue if that falls to this thread.
    pub(crate) fn participate(self: &Arc<Executor>, grid: &Arc<Grid>, role: Role<'_>) {
        let seated = self.take_seat(role);
        let resume = self.run_blocks(grid, role);
        drop(seated);
        if resume {
            match role {
                Role::Worker => self.in_queue(|| grid.queue().run_claimed(role)),
                Role::Helper(_) | Role::Submitter => grid.queue().run_claimed(role),
            }
        }
    }

    /// The calling thread is about to run blocks that others run too, as long as the answer lives.
    pub(crate) fn take_seat(&self, role: Role<'_>) -> Option<Seated<'_>> {
        match role {
            Role::Submitter => None,
            Role::Worker | Role::Helper(_) => Some(self.seats.take(matches!(role, Role::Worker))),
        }
    }

    /// Runs a worker's part of a queue.
    fn in_queue(&self, run: impl FnOnce()) {
        struct Roams<'a>(&'a Executor);
        impl Drop for Roams<'_> {
            fn drop(&mut self) {
                self.0.roaming.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.roaming.fetch_sub(1, Ordering::Relaxed);
        let _again = Roams(self);
        run();
    }

    /// Takes blocks of a grid. A worker leaves them to others when there is a queue to look at, who submitted them when there are others.
    pub(crate) fn run_blocks(self: &Arc<Executor>, grid: &Arc<Grid>, role: Role<'_>) -> bool {
        let stop = || {
            self.note_progress();
            if grid.drags_on() {
                self.share(grid);
            }
            self.give_way(grid);
            match role {
                Role::Worker => self.ready.load(Ordering::Relaxed) > 0 && grid.has_blocks_left(),
                Role::Helper(_) => false,
                Role::Submitter => grid.is_late() && grid.has_blocks_left(),
            }
        };
        match self.block_memory.take() {
            Ok(mut memory) => {
                let resume = grid.run_blocks(&mut memory, stop);
                self.block_memory.give(memory);
                resume
            }
            Err(error) => grid.fail_to_start(&error),
        }
    }

    /// Where blocks have run for long in quickly made code, a thread waits for better, and leaves its processor to whoever makes that: beside as many
    /// threads as there are processors it would take several times as long. The thread comes back where there is something else to do. Blocks that
    /// wait for others which nobody begins get threads from the watch.
    fn give_way(self: &Arc<Executor>, grid: &Arc<Grid>) {
        let Some(better) = grid.step_aside(self.threads) else { return };
        if grid.blocks_wait() {
            self.watch();
        }
        while !better.wait_a_while(WATCH) && grid.has_blocks_left() && self.ready.load(Ordering::Relaxed) == 0
        {
        }
        grid.step_back();
    }

    /// A command or a chunk of blocks has ended.
    pub(crate) fn note_progress(&self) {
        self.progress.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Has up to `count` workers come, those who spin first.
    fn summon(self: &Arc<Executor>, state: &mut State, count: usize) {
        self.arrivals.fetch_add(1, Ordering::Release);
        self.wake(state, count.saturating_sub(state.spinning));
    }

    /// Starts so many workers, or has those who sleep signalled when the lock is [given up](Self::give_up).
    fn wake(self: &Arc<Executor>, state: &mut State, count: usize) {
        for _ in 0..count {
            if state.coming() < state.sleeping {
                state.relayed += 1;
                state.relay();
            } else if state.workers >= self.threads || !self.add_worker(state) {
                self.watch();
                return;
            }
        }
    }

    /// Gives the lock up, and signals those who are to wake up: not before, since they want it first of all.
    fn give_up(&self, mut state: RankedGuard<'_, State>) {
        let signals = std::mem::take(&mut state.signals);
        drop(state);
        for _ in 0..signals {
            self.work_arrived.notify_one();
        }
    }

    fn add_worker(self: &Arc<Executor>, state: &mut State) -> bool {
        if state.shut_down {
            return false;
        }
        let executor = self.clone();
        let is_extra = state.workers >= self.threads;
        let thread = std::thread::Builder::new().name("anywarp-worker".into()).stack_size(WORKER_STACK);
        let started = thread.spawn(move || executor.work(is_extra)).is_ok();
        if started {
            state.workers += 1;
            state.extra += usize::from(is_extra);
        }
        started
    }

    fn work(self: Arc<Executor>, is_extra: bool) {
        self.roaming.fetch_add(1, Ordering::Relaxed);
        while let Some(job) = self.next_job(is_extra) {
            // A panic has dropped its command, which ends it; the worker goes on.
            let _ = catch_unwind(AssertUnwindSafe(|| match job {
                Job::Queue(queue) => self.in_queue(|| queue.run()),
                Job::Grid(grid) => self.participate(&grid, Role::Worker),
            }));
        }
        let mut state = self.state.lock();
        self.roaming.fetch_sub(1, Ordering::Relaxed);
        state.workers -= 1;
        state.extra -= usize::from(is_extra);
        drop(state);
        if is_extra {
            self.block_memory.shrink();
        }
    }

    fn next_job(self: &Arc<Executor>, is_extra: bool) -> Option<Job> {
        let mut seen = self.arrivals.load(Ordering::Acquire);
        let mut idle_since = None;
        let mut state = self.state.lock_soon();
        loop {
            if let Some(job) = state.take_job(self.threads) {
                self.ready.store(state.ready.len(), Ordering::Relaxed);
                // Nobody was woken for what arrived while this thread was about to look for work; it may not wait for the job
                // that was found first, which may even wait for it.
                if !state.ready.is_empty() {
                    self.summon(&mut state, 1);
                }
                self.give_up(state);
                return Some(job);
            }
            if state.shut_down {
                return None;
            }
            let start = *idle_since.get_or_insert_with(clock::now);
            let all_run = state.has_job();
            if all_run {
                // Who runs it may wait for what is left of it.
                self.watch();
            }
            let none_is_left =
                self.woken.swap(false, Ordering::Relaxed) && state.spinning + 1 >= self.threads;
            let crowded = all_run || none_is_left;
            if clock::since(start) < SPIN && !crowded {
                state.spinning += 1;
                self.give_up(state);
                while self.arrivals.load(Ordering::Acquire) == seen && clock::since(start) < SPIN {
                    std::hint::spin_loop();
                }
                seen = self.arrivals.load(Ordering::Acquire);
                state = self.state.lock_soon();
                state.spinning -= 1;
                continue;
            }
            if state.signals > 0 {
                // What others were called for is gone already.
                self.give_up(state);
                state = self.state.lock_soon();
                continue;
            }
            state.sleeping += 1;
            self.roaming.fetch_sub(1, Ordering::Relaxed);
            state = if is_extra {
                state.wait_timeout(&self.work_arrived, LINGER)
            } else {
                state.wait(&self.work_arrived)
            };
            state.sleeping -= 1;
            self.roaming.fetch_add(1, Ordering::Relaxed);
            state.waking = state.waking.saturating_sub(1);
            let has_job = state.has_job();
            if has_job {
                state.relay();
            } else {
                // Those who were to come are too late as well.
                state.relayed = 0;
            }
            if is_extra && !has_job && clock::since(start) > LINGER {
                return None;
            }
        }
    }

    /// Starts the watch unless it is on.
    fn watch(self: &Arc<Executor>) {
        if self.watched.swap(true, Ordering::AcqRel) {
            return;
        }
        let executor = Arc::downgrade(self);
        let mut watch = Watch { max_extra: self.max_extra, ..Watch::default() };
        let thread = std::thread::Builder::new().name("anywarp-watch".into());
        let started = thread.spawn(move || {
            loop {
                std::thread::sleep(WATCH);
                let Some(executor) = executor.upgrade() else { return };
                let progress = executor.progress.0.load(Ordering::Relaxed);
                let mut state = executor.state.lock();
                let remedy = watch.look(&state, progress, state.runs_first_code());
                state.stalls = matches!(remedy, Remedy::Wake | Remedy::Add(_));
                match remedy {
                    Remedy::Nothing => {}
                    Remedy::Wake => executor.work_arrived.notify_all(),
                    Remedy::Add(count) => {
                        for _ in 0..count {
                            executor.add_worker(&mut state);
                        }
                    }
                    Remedy::End => {
                        executor.watched.store(false, Ordering::Release);
                        return;
                    }
                }
            }
        });
        if started.is_err() {
            self.watched.store(false, Ordering::Release);
        }
    }
}

/// What the watch has seen.
#[derive(Default)]
struct Watch {
    /// [`Executor::progress`] when it looked last.
    last: u64,
    /// Looks in a row that found no work.
    quiet: u32,
    /// Looks in a row that found work, and that nothing had moved, since something was done about that.
    still: u32,
    /// Workers that it added last, if it has to again.
    batch: usize,
    /// [`Executor::max_extra`].
    max_extra: usize,
}

/// What is to be done about work that does not get on.
#[derive(Debug, PartialEq, Eq)]
enum Remedy {
    Nothing,
    /// Those who sleep are to look for work.
    Wake,
    /// So many more workers.
    Add(usize),
    /// There has been none for long.
    End,
}

impl Watch {
    fn look(&mut self, state: &State, progress: u64, first_code: bool) -> Remedy {
        let waits = state.has_job();
        self.quiet = if waits { 0 } else { self.quiet + 1 };
        if self.quiet > WATCHES || state.shut_down {
            return Remedy::End;
        }
        let moved = progress != std::mem::replace(&mut self.last, progress);
        self.still = if waits && !moved { self.still + 1 } else { 0 };
        let stalls = self.still >= if first_code { WATCHES_AT_FIRST } else { 1 };
        if stalls {
            self.still = 0;
        }
        // The longer nothing moves, the more blocks wait for others that have not begun.
        let some_wait = state.grids.iter().any(|grid| grid.blocks_wait() && grid.has_blocks_left());
        let batch = self.batch.max(1);
        self.batch = match self.still {
            0 if stalls && some_wait => (batch * 2).min(MAX_BATCH),
            0 => 1,
            _ => batch,
        };
        match stalls {
            false => Remedy::Nothing,
            // Whoever was to come for it found something else, and what that was may wait for this.
            true if state.sleeping > 0 => Remedy::Wake,
            true => Remedy::Add(batch.min(self.max_extra.saturating_sub(state.extra))),
        }
    }
}

/// Whether one more thread should run blocks of a grid, on so many processors. A thread too many would take one of them from another, which has
/// begun a chunk that all wait for in the end.
fn wants_thread(grid: &Grid, processors: usize) -> bool {
    grid.takes_threads() && (grid.blocks_wait() || grid.running() < processors)
}

impl State {
    fn take_job(&mut self, threads: usize) -> Option<Job> {
        if let Some((_, queue)) = self.ready.pop_first() {
            return Some(Job::Queue(queue));
        }
        self.grids.retain(|grid| grid.has_blocks_left());
        let stalls = self.stalls;
        let wants =
            |grid: &&Arc<Grid>| if stalls { grid.takes_threads() } else { wants_thread(grid, threads) };
        self.grids.iter().find(wants).map(|grid| Job::Grid(grid.clone()))
    }

    /// Whether all that is left are blocks in quickly made code.
    fn runs_first_code(&self) -> bool {
        let left = || self.grids.iter().filter(|grid| grid.has_blocks_left());
        self.ready.is_empty() && left().next().is_some() && left().all(|grid| grid.better().is_some())
    }

    /// Threads that sleep and will wake up.
    fn coming(&self) -> usize {
        self.waking + self.relayed
    }

    /// Has some of the threads that are to wake up signalled when the lock is given up.
    fn relay(&mut self) {
        let room = SIGNALS.saturating_sub(self.signals);
        let count = self.relayed.min(room).min(self.sleeping.saturating_sub(self.waking));
        self.relayed -= count;
        self.waking += count;
        self.signals += count;
    }

    fn has_job(&self) -> bool {
        !self.ready.is_empty() || self.grids.iter().any(|grid| grid.takes_threads())
    }
}

#[cfg(test)]
#[cfg(not(miri))] // reserved address space
mod tests {
    use super::*;
    use crate::callbacks::{DeviceHeap, Output};
    use crate::domain::Domain;
    use crate::fault::Health;
    use crate::memory::{AddressSpace, ContextId};
    use crate::usage::Usage;

    fn queue(executor: &Arc<Executor>) -> Arc<Queue> {
        let space = Arc::new(AddressSpace::new(&[1 << 20]).unwrap());
        let heap = DeviceHeap::new(space.clone(), 0, ContextId(1), 0);
        let domain = Arc::new(Domain {
            health: Health::new(false, ContextId(1)),
            output: Output::new(0),
            heap,
            memory: space,
            usage: Usage::private(),
        });
        Queue::new(executor.clone(), domain, 0)
    }

    #[test]
    fn what_a_spinning_worker_leaves_is_passed_on() {
        let executor = Executor::new(2, 16);
        // As if a worker were about to look for work: nobody else is called for what arrives.
        executor.state.lock().spinning = 1;
        for _ in 0..2 {
            executor.schedule(queue(&executor));
        }
        assert_eq!(executor.state.lock().workers, 0);
        executor.state.lock().spinning = 0;
        // It finds one of two queues. What is in that may wait for the other.
        assert!(matches!(executor.next_job(false), Some(Job::Queue(_))));
        assert_eq!(executor.state.lock().workers, 1, "called for the other queue");
        executor.shut_down();
    }

    #[test]
    fn work_that_nobody_comes_for_wakes_those_who_sleep_and_then_others_come() {
        let executor = Executor::new(1, 16);
        let mut state = State::default();
        let mut watch = Watch { max_extra: 2, ..Watch::default() };
        assert_eq!(watch.look(&state, 7, false), Remedy::Nothing, "there is no work");
        // As if the worker that was called for it had found something else: one sleeps, and there is work.
        state.ready.insert((0, 1), queue(&executor));
        state.sleeping = 1;
        assert_eq!(watch.look(&state, 7, false), Remedy::Wake);
        assert_eq!(watch.look(&state, 8, false), Remedy::Nothing, "something has moved");
        state.sleeping = 0;
        assert_eq!(watch.look(&state, 8, false), Remedy::Add(1));
        // Blocks in quickly made code may take that long.
        for _ in 1..WATCHES_AT_FIRST {
            assert_eq!(watch.look(&state, 8, true), Remedy::Nothing);
        }
        assert_eq!(watch.look(&state, 8, true), Remedy::Add(1));
        assert_eq!(watch.look(&state, 8, true), Remedy::Nothing, "they are given as long again");
        state.extra = 2;
        assert_eq!(watch.look(&state, 8, false), Remedy::Add(0));
        state.ready.clear();
        for _ in 0..WATCHES {
            assert_eq!(watch.look(&state, 8, false), Remedy::Nothing);
        }
        assert_eq!(watch.look(&state, 8, false), Remedy::End);
    }

    #[test]
    fn those_who_wake_up_signal_the_rest() {
        let executor = Executor::new(16, 16);
        let mut state = executor.state.lock();
        (state.workers, state.sleeping) = (15, 15);
        executor.wake(&mut state, 12);
        assert_eq!((state.waking, state.relayed, state.signals), (SIGNALS, 12 - SIGNALS, SIGNALS));
        assert_eq!(state.coming(), 12);
        // Nobody is called twice.
        executor.wake(&mut state, 3);
        assert_eq!(state.coming(), 15);
        state.signals = 0;
        let mut rounds = 0;
        while state.waking > 0 {
            // One wakes up.
            state.sleeping -= 1;
            state.waking -= 1;
            state.relay();
            state.signals = 0;
            rounds += 1;
        }
        assert_eq!((rounds, state.sleeping, state.relayed), (15, 0, 0));
        state.workers = 0;
        drop(state);
        executor.shut_down();
    }

    #[test]
    fn blocks_that_wait_for_each_other_are_watched_from_the_start() {
        for (blocks_wait, spinning, watched) in [(false, 0, false), (true, 0, true), (false, 1, true)] {
            let executor = Executor::new(4, 16);
            let mut state = executor.state.lock();
            state.spinning = spinning;
            executor.call_for_blocks(&mut state, 1, spinning, blocks_wait);
            assert_eq!(executor.watched.load(Ordering::Relaxed), watched, "{blocks_wait}, {spinning} spin");
            state.spinning = 0;
            drop(state);
            executor.shut_down();
        }
    }
}
