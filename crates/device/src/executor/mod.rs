//! The threads of a device.
//!
//! Workers, one for each core, take *ready queues* and run their commands, and take blocks of *grids* that others
//! have started. A thread of the program that waits does the same with the work it waits for. An idle worker looks at its own [desk](Desk), where it is
//! called, for a while, and then sleeps.
//!
//! Commands may block: a host function that waits for the program, a kernel that polls for the host or for another kernel. When
//! work is left and no command or block has ended for a while, another worker is started, so that whatever can run does run,
//! however few cores there are; such workers leave again when they have been idle.

mod desk;
mod frames;
pub(crate) mod grid;
mod order;
mod parts;
mod profile;
mod ready;
mod seats;
mod supply;
mod watch;
pub mod windows;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, AtomicUsize, Ordering, fence};
use std::time::Duration;

use desk::{Call, Desk};
pub(crate) use grid::{Grid, Sharing};
pub use parts::{GridParts, Locate, Params, Replay};
pub use profile::Profile;
pub use ready::Ready;
pub(crate) use seats::Seated;
use seats::{Processor, Seats};
use watch::{Remedy, WATCH, Watch};
use windows::BlockMemoryPool;

use crate::clock;
use crate::limits;
use crate::lock::{Rank, RankedMutex};
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
    /// Counts arrivals of work: what threads look at that wait, and workers once more before they sleep.
    arrivals: AtomicU64,
    /// Ready queues, to be looked at without the lock.
    ready: AtomicUsize,
    /// Likewise, grids of which something is left.
    open: AtomicUsize,
    /// Workers that are awake, or called, and run no queue: they run blocks, or look for some.
    roaming: AtomicIsize,
    shut_down: AtomicBool,
    /// Threads of the program have been woken up, and no worker has gone to sleep for them.
    woken: AtomicBool,
    /// No worker could be started, and there is none.
    alone: AtomicBool,
    /// When the last grid began that is short, but long enough for two.
    last_short: AtomicU64,
    progress: Progress,
    seats: Seats,
    watched: AtomicBool,
    /// Threads that run blocks which may wait for others.
    waiting: AtomicUsize,
    block_memory: BlockMemoryPool,
}

/// Counts commands and chunks that have ended, by processor: all threads count.
struct Progress(Box<[Count]>);

#[derive(Default)]
#[repr(align(128))]
struct Count(AtomicU64);

impl Progress {
    fn new() -> Progress {
        Progress((0..Processor::count()).map(|_| Count::default()).collect())
    }

    fn note(&self) {
        self.0[Processor::here().of(self.0.len())].0.fetch_add(1, Ordering::Relaxed);
    }

    fn so_far(&self) -> u64 {
        self.0.iter().fold(0, |all, count| all.wrapping_add(count.0.load(Ordering::Relaxed)))
    }
}

#[derive(Default)]
struct State {
    /// By priority and order of arrival.
    ready: BTreeMap<(i32, u64), Arc<Queue>>,
    arrived: u64,
    grids: Vec<Arc<Grid>>,
    /// Of all workers.
    desks: Vec<Arc<Desk>>,
    /// Workers beyond one for each core.
    extra: usize,
    /// When the watch looked last, there was work and nothing moved.
    stalls: bool,
}

enum Job {
    Queue(Arc<Queue>),
    Grid(Arc<Grid>),
}

/// How long an idle worker spins, and how long one beyond the number of cores then sleeps before it leaves.
const SPIN: Duration = Duration::from_micros(30);
const LINGER: Duration = Duration::from_millis(500);
/// Bytes of a worker's stack: a kernel that launches another has it compiled there.
const WORKER_STACK: usize = 8 << 20;
/// Bytes that a thread of the program must have left of its to run kernels, or more where code with larger frames has been loaded. Most want less than a tenth
/// of that. Threads that Rust starts have 2 MiB.
const ENOUGH_STACK: usize = 3 << 19;
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
            arrivals: AtomicU64::new(0),
            ready: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            roaming: AtomicIsize::new(0),
            shut_down: AtomicBool::new(false),
            woken: AtomicBool::new(false),
            alone: AtomicBool::new(false),
            last_short: AtomicU64::new(0),
            progress: Progress::new(),
            seats: Seats::new(),
            watched: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            // One more for who submits.
            block_memory: BlockMemoryPool::keeping(threads + 1),
        })
    }

    /// Ends the workers once they are idle. What is queued then runs when somebody waits for it.
    pub(crate) fn shut_down(&self) {
        self.shut_down.store(true, Ordering::SeqCst);
        let mut calls = Calls::default();
        {
            let state = self.state.lock();
            self.announce();
            self.call_looking(&state, usize::MAX, None);
            self.call_sleeping(&state, usize::MAX, None, &mut calls);
        }
        calls.wake();
    }

    /// Has a worker look at a queue.
    pub(crate) fn schedule(self: &Arc<Executor>, queue: Arc<Queue>) {
        let mut state = self.state.lock_soon();
        state.arrived += 1;
        let key = (queue.priority(), state.arrived);
        state.ready.insert(key, queue);
        self.ready.store(state.ready.len(), Ordering::Relaxed);
        self.announce();
        let mut calls = Calls::default();
        if self.call_looking(&state, 1, None) == 0 {
            self.summon(&mut state, 1, None, &mut calls);
        }
        drop(state);
        calls.wake();
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

    /// Whether a thread of the program may run kernels: their frames lie on its stack, which may be a small one. Where no worker will, it must.
    pub(crate) fn may_run_here(&self) -> bool {
        guard::has_stack(ENOUGH_STACK)
            || self.alone.load(Ordering::Relaxed)
            || self.shut_down.load(Ordering::Relaxed)
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
        let some_come = near() + self.roaming() > 0;
        let (looking, sleeping) = match grid.start(some_come) {
            Sharing::Among { looking, sleeping } => (looking as usize, sleeping as usize),
            Sharing::None => return,
            Sharing::IfSomeCome => return self.expect_more(grid),
        };
        let mut calls = Calls::default();
        let mut state = self.state.lock_soon();
        let others_wait = state.grids.iter().any(|other| other.has_blocks_left());
        self.list(&mut state, grid);
        if grid.blocks_wait() {
            // The calling thread is one of those that the grid needs.
            let needed = grid.threads_needed().saturating_sub(1) as usize;
            self.call_for_waiting(&mut state, Some(grid), looking, sleeping, needed, &mut calls);
        } else {
            let most = (self.threads - 1).saturating_sub(near());
            let called = self.call_looking(&state, looking.min(most), Some(grid));
            // Those who look for work by now find the grid.
            let coming = if others_wait { called } else { called.max(self.roaming()) };
            self.summon(&mut state, sleeping.min(most).saturating_sub(coming), Some(grid), &mut calls);
            if called == 0 {
                // Whoever is coming may find something else first.
                self.watch();
            }
        }
        drop(state);
        calls.wake();
    }

    /// From now on, whoever looks for work finds the grid.
    fn list(&self, state: &mut State, grid: &Arc<Grid>) {
        // Somebody who waits for it may have come, and taken all, before this.
        if !grid.is_unlisted() {
            state.grids.push(grid.clone());
            self.open.store(state.grids.len(), Ordering::Relaxed);
        }
        self.announce();
    }

    /// Nothing is left of the grid.
    fn unlist(&self, grid: &Arc<Grid>) {
        let mut state = self.state.lock_soon();
        state.grids.retain(|other| !Arc::ptr_eq(other, grid));
        self.open.store(state.grids.len(), Ordering::Relaxed);
    }

    /// Work has arrived. Who looks for some once more before it sleeps finds it; everybody else can be seen after this.
    fn announce(&self) {
        self.arrivals.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Has threads come for a grid whose blocks may wait for each other, as far as they are `needed` more than there are processors.
    fn call_for_waiting(
        self: &Arc<Executor>,
        state: &mut State,
        grid: Option<&Arc<Grid>>,
        looking: usize,
        sleeping: usize,
        needed: usize,
        calls: &mut Calls,
    ) {
        let most = self.threads.max(needed);
        let mut called = self.call_looking(state, looking.min(most), grid);
        called += self.summon(state, sleeping.min(most).saturating_sub(called), grid, calls);
        while called < needed && state.extra < self.max_extra && self.add_worker(state, grid) {
            called += 1;
        }
        // A block may wait for one that none of those who come has begun.
        self.watch();
    }

    fn roaming(&self) -> usize {
        // Who has been woken up may have gone to a queue before it was counted.
        self.roaming.load(Ordering::Relaxed).max(0) as usize
    }

    /// A grid runs on one thread that two would run sooner, were another awake. If there was such a grid just before, one wakes up
    /// for the next.
    fn expect_more(self: &Arc<Executor>, grid: &Grid) {
        let now = grid.started_at();
        let last = self.last_short.swap(now, Ordering::Relaxed);
        if self.threads > 1 && now.saturating_sub(last) < SPIN.as_nanos() as u64 {
            let mut calls = Calls::default();
            if self.roaming() == 0 {
                self.summon(&mut self.state.lock_soon(), 1, None, &mut calls);
            }
            calls.wake();
        }
    }

    /// Has workers join a grid that was thought to be too short for that.
    fn share(self: &Arc<Executor>, grid: &Arc<Grid>) {
        let helpers = grid.share().min(self.threads as u64) as usize;
        let mut calls = Calls::default();
        let mut state = self.state.lock_soon();
        self.list(&mut state, grid);
        if grid.blocks_wait() {
            self.call_for_waiting(&mut state, Some(grid), helpers, helpers, 0, &mut calls);
        } else {
            let called = self.call_looking(&state, helpers, Some(grid));
            self.summon(&mut state, helpers.saturating_sub(called), Some(grid), &mut calls);
        }
        drop(state);
        calls.wake();
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
        // The thread may be one of the program's, which blocks signals and rounds as it likes.
        let _receptive = guard::receptive();
        let _control = guard::FloatControl::standard();
        let resume = match self.block_memory.take() {
            Ok(mut memory) => {
                let waits = grid.blocks_wait();
                if waits {
                    self.waiting.fetch_add(1, Ordering::Relaxed);
                }
                let resume = grid.run_blocks(&mut memory, stop);
                if waits {
                    self.waiting.fetch_sub(1, Ordering::Relaxed);
                }
                self.block_memory.give(memory);
                resume
            }
            Err(error) => grid.fail_to_start(&error),
        };
        if grid.ends_listing() {
            self.unlist(grid);
        }
        resume
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
        self.progress.note();
    }

    /// Calls so many of the workers that look for work; how many there were.
    fn call_looking(&self, state: &State, count: usize, grid: Option<&Arc<Grid>>) -> usize {
        state.desks.iter().filter(|desk| desk.call_looking(grid)).take(count).count()
    }

    /// Likewise of those that sleep.
    fn call_sleeping(
        &self,
        state: &State,
        count: usize,
        grid: Option<&Arc<Grid>>,
        calls: &mut Calls,
    ) -> usize {
        let before = calls.0.len();
        calls.0.extend(state.desks.iter().filter(|desk| desk.call_sleeping(grid)).take(count).cloned());
        let called = calls.0.len() - before;
        // They count as awake from now on.
        self.roaming.fetch_add(called as isize, Ordering::Relaxed);
        called
    }

    /// Has so many workers come that sleep or are not there yet; how many there are.
    fn summon(
        self: &Arc<Executor>,
        state: &mut State,
        count: usize,
        grid: Option<&Arc<Grid>>,
        calls: &mut Calls,
    ) -> usize {
        let mut called = self.call_sleeping(state, count, grid, calls);
        while called < count {
            if state.desks.len() >= self.threads || !self.add_worker(state, grid) {
                self.watch();
                break;
            }
            called += 1;
        }
        called
    }

    /// Starts a worker, for the grid first of all.
    fn add_worker(self: &Arc<Executor>, state: &mut State, grid: Option<&Arc<Grid>>) -> bool {
        if self.shut_down.load(Ordering::Relaxed) {
            return false;
        }
        let executor = self.clone();
        let is_extra = state.desks.len() >= self.threads;
        let desk = Arc::new(Desk::default());
        desk.look();
        desk.call_looking(grid);
        let place = desk.clone();
        let thread = std::thread::Builder::new().name("anywarp-worker".into()).stack_size(WORKER_STACK);
        let started = thread.spawn(move || executor.work(&place, is_extra)).is_ok();
        if started {
            self.roaming.fetch_add(1, Ordering::Relaxed);
            state.desks.push(desk);
            state.extra += usize::from(is_extra);
        }
        self.alone.store(state.desks.is_empty(), Ordering::Relaxed);
        started
    }

    fn work(self: Arc<Executor>, desk: &Arc<Desk>, is_extra: bool) {
        guard::stay_receptive();
        desk.open();
        self.block_memory.keep_one_here();
        while let Some(job) = self.next_job(desk, is_extra) {
            // A panic has dropped its command, which ends it; the worker goes on.
            let _ = catch_unwind(AssertUnwindSafe(|| match job {
                Job::Queue(queue) => self.in_queue(|| queue.run()),
                Job::Grid(grid) => self.participate(&grid, Role::Worker),
            }));
        }
        let mut state = self.state.lock();
        self.roaming.fetch_sub(1, Ordering::Relaxed);
        state.desks.retain(|other| !Arc::ptr_eq(other, desk));
        state.extra -= usize::from(is_extra);
        drop(state);
        self.block_memory.keep_none_here();
        if is_extra {
            self.block_memory.shrink();
        }
    }

    fn next_job(self: &Arc<Executor>, desk: &Desk, is_extra: bool) -> Option<Job> {
        let mut idle_since = None;
        let mut called = desk.leave();
        loop {
            let seen = self.arrivals.load(Ordering::SeqCst);
            let some = self.ready.load(Ordering::Relaxed) > 0 || self.open.load(Ordering::Relaxed) > 0;
            let was_called = called.is_some();
            if let Some(Call::Grid(grid)) = called.take()
                && wants_thread(&grid, self.threads)
            {
                return Some(Job::Grid(grid));
            }
            let mut all_run = false;
            if some || was_called {
                let mut state = self.state.lock_soon();
                if let Some(job) = state.take_job(self.threads) {
                    self.ready.store(state.ready.len(), Ordering::Relaxed);
                    return Some(job);
                }
                all_run = state.has_job();
            }
            if self.shut_down.load(Ordering::SeqCst) {
                return None;
            }
            if all_run {
                // Who runs it may wait for what is left of it.
                self.watch();
            }
            let start = *idle_since.get_or_insert_with(clock::now);
            let none_is_left = self.woken.swap(false, Ordering::Relaxed) && self.roaming() >= self.threads;
            let crowded = all_run || none_is_left;
            desk.look();
            // What has arrived before this thread could be called for it.
            let missed = || self.arrivals.load(Ordering::SeqCst) != seen;
            if !missed() {
                while !crowded && !desk.is_called() && clock::since(start) < SPIN {
                    std::hint::spin_loop();
                }
            }
            if missed() || !desk.sleep() {
                called = desk.leave();
                continue;
            }
            self.roaming.fetch_sub(1, Ordering::SeqCst);
            // Others may need it meanwhile: there are never more than were in use at a time.
            self.block_memory.keep_none_here();
            while desk.sleeps() && !missed() && !(is_extra && clock::since(start) > LINGER) {
                if is_extra { std::thread::park_timeout(LINGER) } else { std::thread::park() }
            }
            self.block_memory.keep_one_here();
            called = desk.leave();
            if called.is_none() {
                self.roaming.fetch_add(1, Ordering::Relaxed);
                if is_extra && clock::since(start) > LINGER && !missed() {
                    return None;
                }
            }
            idle_since = None;
        }
    }

    /// Starts the watch unless it is on.
    fn watch(self: &Arc<Executor>) {
        if self.watched.swap(true, Ordering::AcqRel) {
            return;
        }
        let executor = Arc::downgrade(self);
        let mut watch = Watch::new(self.max_extra);
        let thread = std::thread::Builder::new().name("anywarp-watch".into());
        let started = thread.spawn(move || {
            loop {
                std::thread::sleep(WATCH);
                let Some(executor) = executor.upgrade() else { return };
                let progress = executor.progress.so_far();
                let mut state = executor.state.lock();
                let shut_down = executor.shut_down.load(Ordering::Relaxed);
                let waiting = executor.waiting.load(Ordering::Relaxed) > 0;
                let remedy = watch.look(&state, progress, waiting, state.runs_first_code(), shut_down);
                let mut calls = Calls::default();
                state.stalls = matches!(remedy, Remedy::Wake | Remedy::Add(_));
                match remedy {
                    Remedy::Nothing => {}
                    Remedy::Wake => {
                        executor.call_sleeping(&state, usize::MAX, None, &mut calls);
                    }
                    Remedy::Add(count) => {
                        for _ in 0..count {
                            executor.add_worker(&mut state, None);
                        }
                    }
                    Remedy::End => {
                        executor.watched.store(false, Ordering::Release);
                        return;
                    }
                }
                drop(state);
                calls.wake();
            }
        });
        if started.is_err() {
            self.watched.store(false, Ordering::Release);
        }
    }
}

/// Workers that slept and have been called: to be woken up when the lock is given up, since that takes a while.
#[derive(Default)]
#[must_use]
struct Calls(Vec<Arc<Desk>>);

impl Calls {
    fn wake(self) {
        self.0.iter().for_each(|desk| desk.wake());
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

    /// Whether a worker sleeps.
    fn some_sleep(&self) -> bool {
        self.desks.iter().any(|desk| desk.sleeps())
    }

    fn has_job(&self) -> bool {
        !self.ready.is_empty() || self.grids.iter().any(|grid| grid.takes_threads())
    }
}

#[cfg(test)]
#[cfg(not(miri))] // reserved address space
mod tests;
