//! One launch: its blocks, and who still has to run them.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use kernel_abi::{Fault, FaultKind, LaunchFrame, Successor};

use super::frames::{Frames, is_same};
use super::order::{self, Order};
use super::parts::{GridParts, Line};
use super::seats::Processor;
use super::supply::{Supply, Taker};
use super::windows::{BlockMemory, BlockNeeds};
use crate::callbacks::{self, Services};
use crate::domain::Domain;
use crate::fault::FaultReport;
use crate::lock::{Rank, RankedMutex};
use crate::nested::Remainder;
use crate::stream::describe_panic;
use crate::stream::{Completion, Queue, Work};
use crate::{Error, clock};

/// Who runs a grid that begins.
pub(crate) enum Sharing {
    /// One thread.
    None,
    /// One thread, for nobody else is awake.
    IfSomeCome,
    /// Any thread: as many more as are worth calling of those that look for work, and of those that sleep, which comes dearer.
    Among { looking: u64, sleeping: u64 },
}

/// A launch in a queue.
pub struct Grid {
    /// Apart from what it points to in this grid: see [`Grid::launch_frame`].
    frame: LaunchFrame,
    needs: BlockNeeds,
    parts: GridParts,
    workspace: Option<Box<Workspace>>,
    services: Services,
    /// What threads take: blocks, or clusters where there are some, which one thread runs whole.
    supply: Supply,
    /// How many blocks a thread runs in turns, if it does.
    in_turns: Option<u32>,
    order: Order,
    /// Nothing is left to be taken: sooner seen than by a look at the whole supply.
    exhausted: AtomicBool,
    /// The executor does not list the grid any more.
    unlisted: AtomicBool,
    tally: Tally,
    fault: RankedMutex<Option<Fault>>,
    continuation: AtomicU8,
    /// Other threads may take blocks.
    shared_out: AtomicBool,
    /// How many threads may run its blocks at a time, where that is limited.
    most_threads: Option<u32>,
    /// How many of those that run blocks wait for better code instead.
    aside: AtomicU32,
    started_at: AtomicU64,
    queue: Arc<Queue>,
    completion: Arc<Completion>,
}

/// What all threads count: apart from what they read. Not aligned, for memory that is takes long to allocate.
struct Tally {
    _before: [u64; 16],
    /// Blocks that have not ended.
    left: AtomicU64,
    /// How many threads run blocks.
    running: AtomicU32,
    /// Nanoseconds that threads have run blocks.
    spent: AtomicU64,
    _behind: [u64; 16],
}

impl Tally {
    fn of(blocks: u64) -> Tally {
        Tally {
            _before: [0; _],
            left: AtomicU64::new(blocks),
            running: AtomicU32::new(0),
            spent: AtomicU64::new(0),
            _behind: [0; _],
        }
    }
}

/// Where the blocks of a cooperative grid meet; kernels alone touch it.
struct Workspace(UnsafeCell<Line>);

// SAFETY: no Rust code reads or writes it.
unsafe impl Sync for Workspace {}

// The thread that started the grid will go on with its queue.
const RUNNER_HERE: u8 = 0;
// It will not: whoever runs the last block must.
const RUNNER_LEFT: u8 = 1;
// The last block has run.
const FINISHED: u8 = 2;

impl Grid {
    /// A launch that will run in `queue`.
    pub(crate) fn new(
        parts: GridParts,
        queue: Arc<Queue>,
        services: Services,
        completion: Arc<Completion>,
    ) -> Arc<Grid> {
        static LAST_ID: AtomicU64 = AtomicU64::new(0);
        let needs = Grid::needs_of(&parts);
        let threads = parts.threads();
        let cluster = parts.cluster.unwrap_or([1; 3]);
        let size: u64 = cluster.iter().map(|n| u64::from(*n)).product();
        let total = parts.grid.iter().map(|n| u64::from(*n)).product::<u64>() / size;
        let multiprocessors = queue.executor().multiprocessors();
        let together = u64::from(multiprocessors) * (u64::from(parts.resident_blocks) / size).max(1);
        let threads_there = queue.executor().threads() as u32;
        let in_turns = in_turns(&parts, needs, total, queue.threads().unwrap_or(threads_there));
        let supply = match in_turns {
            Some(blocks) => Supply::in_order(total, blocks.into()),
            None => supply_of(&parts, total, threads_there, together),
        };
        let order = if in_turns.is_none() { Order::of(&parts) } else { Order::Rows };
        // Blocks that wait for each other need as many threads as they are.
        let waits = parts.cooperative || parts.ready.kernel.info().waits;
        let most_threads = queue.threads().filter(|_| !waits);
        let frame = LaunchFrame {
            grid: parts.grid,
            block: parts.block,
            params: std::ptr::null(),
            globals: parts.ready.globals.as_ptr(),
            callbacks: &callbacks::TABLE,
            context: std::ptr::null(),
            dynamic_shared_bytes: parts.dynamic_shared,
            shared_bytes: parts.shared_window(),
            local_bytes: parts.local_stride(),
            warps: parts.warps(),
            threads,
            sm_count: multiprocessors,
            grid_id: LAST_ID.fetch_add(1, Ordering::Relaxed) + 1,
            grid_workspace: 0,
            cluster,
            explicit_cluster: parts.cluster.is_some().into(),
            graph: services.nested.graph_handle(),
        };
        let workspace = parts.cooperative.then(|| Box::new(Workspace(UnsafeCell::new(Line([0; 64])))));
        let mut grid = Arc::new(Grid {
            frame,
            needs,
            parts,
            workspace,
            services,
            supply,
            in_turns,
            order,
            exhausted: AtomicBool::new(false),
            unlisted: AtomicBool::new(false),
            tally: Tally::of(total),
            fault: RankedMutex::new(Rank::Output, None),
            continuation: AtomicU8::new(RUNNER_HERE),
            shared_out: AtomicBool::new(false),
            most_threads,
            aside: AtomicU32::new(0),
            started_at: AtomicU64::new(0),
            queue,
            completion,
        });
        Arc::get_mut(&mut grid).expect("a new grid is nobody else's").parts.params.settle();
        grid
    }

    /// What blocks see of the launch, as long as the grid stays where it is.
    fn launch_frame(&self) -> LaunchFrame {
        LaunchFrame {
            params: self.parts.params.as_ptr(),
            context: std::ptr::from_ref(&self.services).cast(),
            grid_workspace: self.workspace.as_ref().map_or(0, |workspace| workspace.0.get() as u64),
            ..self.frame
        }
    }

    /// What each block needs.
    pub(crate) fn needs_of(parts: &GridParts) -> BlockNeeds {
        BlockNeeds {
            shared: parts.shared_window().into(),
            // Of whole warps: code may let the windows of a warp lie in each other.
            local: u64::from(parts.local_stride()) * u64::from(parts.warps() * 32),
            state: u64::from(parts.ready.kernel.info().state_bytes) * u64::from(parts.warps()),
        }
    }

    /// Its end.
    pub(crate) fn completion(&self) -> &Arc<Completion> {
        &self.completion
    }

    /// The queue it is in.
    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// Whether blocks remain to be taken by any thread.
    pub(crate) fn has_blocks_left(&self) -> bool {
        self.shared_out.load(Ordering::Acquire)
            && !self.exhausted.load(Ordering::Relaxed)
            && !self.supply.is_empty()
    }

    /// Whether the executor need not list the grid any more.
    pub(crate) fn is_unlisted(&self) -> bool {
        self.unlisted.load(Ordering::Relaxed)
    }

    /// Whether the calling thread is the first to see that others could take blocks and nothing is left.
    pub(crate) fn ends_listing(&self) -> bool {
        self.shared_out.load(Ordering::Acquire)
            && !self.has_blocks_left()
            && !self.unlisted.swap(true, Ordering::Relaxed)
    }

    /// Whether another thread may come and take blocks.
    pub(crate) fn takes_threads(&self) -> bool {
        let room = self.most_threads.is_none_or(|most| self.tally.running.load(Ordering::Relaxed) < most);
        room && self.has_blocks_left()
    }

    /// How many threads run its blocks.
    pub(crate) fn running(&self) -> usize {
        self.tally.running.load(Ordering::Relaxed) as usize
    }

    /// Whether its blocks may wait for each other.
    pub(crate) fn blocks_wait(&self) -> bool {
        self.parts.cooperative || self.parts.ready.kernel.info().waits
    }

    /// Whether better code is being made, and the calling thread should leave the processor to that, once blocks have run for long in the code
    /// that there is: one processor of so many is to be free, and one thread goes on. Until [`step_back`](Self::step_back).
    pub(crate) fn step_aside(&self, processors: usize) -> Option<&dyn Successor> {
        let better = self.better()?;
        // Many short launches are as one long one.
        let time = clock::since(self.started_at()) + better.ran(Duration::ZERO);
        if time >= worth_better(better) {
            better.begin();
        }
        if time < LONG.max(better.cost() / PARTS_ASIDE) || !self.has_blocks_left() {
            return None;
        }
        let most = (processors as u32).saturating_sub(1).max(1);
        let running = || self.tally.running.load(Ordering::Relaxed);
        let step = |aside: u32| (running().saturating_sub(aside) > most).then_some(aside + 1);
        self.aside.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step).ok()?;
        Some(better)
    }

    /// Better code that is being made.
    pub(crate) fn better(&self) -> Option<&dyn Successor> {
        better_of(&self.parts)
    }

    /// The thread goes on.
    pub(crate) fn step_back(&self) {
        self.aside.fetch_sub(1, Ordering::Relaxed);
    }

    fn domain(&self) -> &Domain {
        &self.parts.ready.domain
    }

    fn blocks(&self) -> u64 {
        self.parts.grid.iter().map(|n| u64::from(*n)).product()
    }

    /// How many threads all blocks need at once; 0 if none must wait for another.
    pub(crate) fn threads_needed(&self) -> u64 {
        if self.parts.cooperative { self.supply.chunks() } else { 0 }
    }

    /// The grid begins. `some_come`: other threads look for work already.
    pub(crate) fn start(&self, some_come: bool) -> Sharing {
        let now = clock::now();
        self.started_at.store(now, Ordering::Relaxed);
        if self.parts.ready.is_kernel {
            self.domain().usage.begin(now);
        }
        let chunks = self.supply.chunks();
        let is_short =
            !self.parts.cooperative && self.parts.ready.profile.is_short(self.blocks(), WORTH_SHARING);
        let info = self.parts.ready.kernel.info();
        let may_wait = info.waits || info.may_wait;
        if chunks == 1 {
            return Sharing::None;
        }
        if is_short && !may_wait {
            if self.parts.ready.profile.is_short(self.blocks(), ENOUGH_FOR_TWO) {
                return Sharing::None;
            }
            if !some_come {
                return Sharing::IfSomeCome;
            }
        }
        self.shared_out.store(true, Ordering::Release);
        let worth = |each: u64| match self.parts.ready.profile.time_of(self.blocks()) {
            Some(time) if !self.blocks_wait() => (time / each).min(chunks - 1),
            _ => chunks - 1,
        };
        let sleeping = if is_short { 0 } else { worth(WORTH_SHARING) };
        Sharing::Among { looking: worth(WORTH_CALLING), sleeping }
    }

    /// When it began.
    pub(crate) fn started_at(&self) -> u64 {
        self.started_at.load(Ordering::Relaxed)
    }

    /// Whether it takes longer than one thread should have taken for all.
    pub(crate) fn is_late(&self) -> bool {
        clock::since(self.started_at()) > Duration::from_nanos(2 * WORTH_SHARING)
    }

    /// Whether one thread has blocks left to run, after longer than one should have taken for all.
    pub(crate) fn drags_on(&self) -> bool {
        let alone = !self.shared_out.load(Ordering::Relaxed) && !self.supply.is_empty();
        alone && self.is_late()
    }

    /// From now on other threads may take blocks. Answers for how many there are some.
    pub(crate) fn share(&self) -> u64 {
        self.shared_out.store(true, Ordering::Release);
        self.supply.chunks_left()
    }

    /// Takes and runs blocks until none is left or `stop` says so. Answers whether this thread must go on with the
    /// queue: it ran the last block, and the thread that started the grid has left.
    pub(crate) fn run_blocks(&self, memory: &mut BlockMemory, stop: impl Fn() -> bool) -> bool {
        let running = self.tally.running.fetch_add(1, Ordering::Relaxed);
        // A thread too many leaves the blocks to those that are there.
        let resume =
            self.most_threads.is_none_or(|most| running < most) && self.run_blocks_here(memory, stop);
        self.tally.running.fetch_sub(1, Ordering::Relaxed);
        resume
    }

    fn run_blocks_here(&self, memory: &mut BlockMemory, stop: impl Fn() -> bool) -> bool {
        let launch = self.launch_frame();
        let frames = match (self.parts.cluster, self.in_turns) {
            (None, None) => memory.frame(&launch, self.needs).map(Frames::Block),
            (_, Some(blocks)) => memory.frames_in_turns(&launch, self.needs, blocks).map(Frames::InTurns),
            (Some(_), None) => memory.cluster_frames(&launch, self.needs).map(Frames::Cluster),
        };
        let mut frames = match frames {
            Ok(frames) => frames,
            Err(error) => return self.fail_to_start(&error),
        };
        // What this thread has done is counted in the end: all threads count in one place, which they would take from each other.
        let (begin, mut done) = (clock::now(), 0);
        loop {
            let shared_out = self.shared_out.load(Ordering::Relaxed);
            let taker = if shared_out { Taker::On(Processor::here()) } else { Taker::Alone };
            if self.is_given_up() {
                done += self.supply.drain();
            }
            let Some((first, count)) = self.supply.take(taker) else {
                if !self.exhausted.load(Ordering::Relaxed) {
                    self.exhausted.store(true, Ordering::Relaxed);
                }
                break;
            };
            done += count;
            let (mut next, end) = (first, first + count);
            while next < end {
                // One by one where some have failed: that may be the end for the others at any time.
                let upto = if self.services.failed.load(Ordering::Relaxed) { next + 1 } else { end };
                // SAFETY: the frame is as the kernel's interface asks: parameters, variables and windows were sized from
                // the kernel's own description when the grid was made, and `end` is within the grid.
                let run = AssertUnwindSafe(|| unsafe { self.run_taken(&mut frames, next, upto - next) });
                let fault = match catch_unwind(run) {
                    Ok(Ok(())) => {
                        next = if self.is_given_up() { end } else { upto };
                        continue;
                    }
                    Ok(Err(fault)) => fault,
                    Err(panic) => FaultReport::of_command(describe_panic(&*panic)).fault,
                };
                // What must be explained leaves the frames to the run that does.
                let stopped_itself = matches!(fault.kind, FaultKind::Assert | FaultKind::Trap);
                let others_go_on = stopped_itself && fault.lane.is_some();
                let fault = self.explained(fault, &mut frames);
                let fault = frames.in_cluster(fault);
                let behind = self.behind(&frames, &fault).filter(|_| others_go_on);
                self.note(fault);
                if !others_go_on {
                    done += self.supply.drain();
                    return self.count_done(done);
                }
                next = behind.filter(|behind| *behind > next && !self.is_given_up()).unwrap_or(end);
            }
            if stop() {
                break;
            }
        }
        if let Err(fault) = frames.settle(&*self.parts.ready.kernel) {
            return self.fail(frames.in_cluster(fault), done);
        }
        self.tally.spent.fetch_add(clock::now().saturating_sub(begin), Ordering::Relaxed);
        self.count_done(done)
    }

    /// Runs what has been taken of the supply.
    ///
    /// # Safety
    /// As for [`Frames::run`].
    unsafe fn run_taken(&self, frames: &mut Frames, first: u64, count: u64) -> Result<(), Fault> {
        let kernel = &*self.parts.ready.kernel;
        match (self.order, frames) {
            (Order::PairsOfRows, Frames::Block(frame)) => {
                let block = |turn| order::in_pairs_of_rows(turn, self.parts.grid);
                // SAFETY: the caller's contract; each turn is of another block within the grid.
                unsafe { kernel.run_each(frame, &mut (first..first + count).map(block)) }
            }
            // SAFETY: the caller's contract.
            (_, frames) => unsafe { frames.run(kernel, first, count) },
        }
    }

    /// The thread that started the grid leaves it. True if it must go on with the queue itself.
    pub(crate) fn leave(&self) -> bool {
        self.continuation.swap(RUNNER_LEFT, Ordering::AcqRel) == FINISHED
    }

    /// The grid will not run.
    pub(crate) fn skip(&self) {
        self.supply.drain();
        self.completion.finish();
    }

    /// There is no memory to run blocks in.
    pub(crate) fn fail_to_start(&self, error: &Error) -> bool {
        self.fail(FaultReport::of_command(format!("no memory for its blocks ({error})")).fault, 0)
    }

    /// Ends the grid early; `count` blocks were this thread's.
    fn fail(&self, fault: Fault, count: u64) -> bool {
        self.note(fault);
        let untaken = self.supply.drain();
        self.count_done(count + untaken)
    }

    /// The launch has failed.
    fn note(&self, fault: Fault) {
        self.parts.ready.kernel.forget();
        self.fault.lock().get_or_insert(fault);
        let now = clock::now().max(1);
        let _ = self.services.failed_at.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        self.services.failed.store(true, Ordering::Release);
    }

    /// Whether the launch has failed so long ago that no more of its blocks begin.
    fn is_given_up(&self) -> bool {
        self.services.failed.load(Ordering::Acquire)
            && clock::since(self.services.failed_at.load(Ordering::Relaxed)) > OTHERS_GO_ON
    }

    /// The number behind that of the block, or cluster, that failed, where those are run in order.
    fn behind(&self, frames: &Frames, fault: &Fault) -> Option<u64> {
        let launch = &self.frame;
        match (self.order, frames) {
            (Order::Rows, Frames::Block(_)) if !self.parts.ready.kernel.info().retraced => {
                Some(launch.number_of(fault.ctaid) + 1)
            }
            (_, Frames::Cluster(_)) => Some(launch.cluster_of(fault.ctaid) + 1),
            _ => None,
        }
    }

    /// The fault with its thread and line, where generated code could not tell and a second run of the block fails in the same
    /// way. The launch has failed, so what that run writes does not matter.
    fn explained(&self, fault: Fault, frames: &mut Frames) -> Fault {
        if fault.lane.is_some() || fault.kind == FaultKind::Deadlock {
            return fault;
        }
        let Some(kernel) = self.parts.ready.replay.as_ref().and_then(|replay| replay()) else { return fault };
        let (needed, given) = (kernel.info(), self.parts.ready.kernel.info());
        if needed.globals != given.globals || needed.param_bytes > given.param_bytes {
            return fault;
        }
        let launch = LaunchFrame { callbacks: &callbacks::QUIET, ..self.launch_frame() };
        let at = match frames {
            Frames::Block(frame) => {
                frame.launch = &launch;
                launch.number_of(fault.ctaid)
            }
            Frames::Cluster(frames) => {
                frames.iter_mut().for_each(|frame| frame.launch = &launch);
                launch.cluster_of(fault.ctaid)
            }
            // The one that failed, where it ran before.
            Frames::InTurns(frames) => {
                let failed = frames.iter().position(|frame| frame.ctaid == fault.ctaid);
                frames.swap(0, failed.unwrap_or(0));
                frames.truncate(1);
                frames[0].launch = &launch;
                launch.number_of(fault.ctaid)
            }
        };
        // SAFETY: as for the first run: this kernel was made of the same program, and needs the same parameters and variables.
        let run = AssertUnwindSafe(|| unsafe { frames.run(&*kernel, at, 1) });
        let found = catch_unwind(run);
        kernel.forget();
        match found {
            Ok(Err(found)) if is_same(&fault, &found, given.gang) => Fault {
                warp: found.warp,
                lane: found.lane,
                ptx_line: found.ptx_line,
                address: found.address,
                ..fault
            },
            _ => fault,
        }
    }

    fn count_done(&self, count: u64) -> bool {
        if count == 0 || self.tally.left.fetch_sub(count, Ordering::AcqRel) != count {
            return false;
        }
        self.finish();
        self.continuation.swap(FINISHED, Ordering::AcqRel) == RUNNER_LEFT
    }

    fn finish(&self) {
        let now = clock::now();
        if self.parts.ready.is_kernel {
            self.domain().usage.end(now);
        }
        let fault =
            if self.services.failed.load(Ordering::Relaxed) { self.fault.lock().take() } else { None };
        match fault {
            None => {
                let spent = self.tally.spent.load(Ordering::Relaxed);
                self.parts.ready.profile.note(self.blocks(), spent);
                let time = now.saturating_sub(self.started_at.load(Ordering::Relaxed));
                if let Some(better) = self.better()
                    && better.ran(Duration::from_nanos(time)) >= worth_better(better)
                {
                    better.begin();
                }
            }
            Some(mut fault) => {
                // Where there could be an instruction, a GPU finds that there is no code to load, whether there is memory or not.
                let could_be = |to| to < ADDRESSES && to % INSTRUCTION == 0;
                if fault.kind == FaultKind::InvalidPc && fault.address.is_none_or(could_be) {
                    fault.kind = FaultKind::IllegalAddress;
                    fault.detail = "call of what is no function".into();
                }
                let locate = self.parts.ready.locate.as_ref();
                let source = fault.ptx_line.and_then(|line| locate?(line));
                let kernel = self.parts.ready.name.to_string();
                let report = FaultReport { kernel, block_dim: self.parts.block, source, fault };
                self.queue.domain().health.fail_at(report, now);
            }
        }
        self.queue.retire(self, self.remainder(), now);
    }

    /// What its blocks have launched, as commands for its queue: in order, the first behind what has begun.
    fn remainder(&self) -> Option<Vec<(Vec<Arc<Completion>>, Work)>> {
        let Remainder { mut begun, tail } = self.services.nested.take_remainder()?;
        let later = tail.into_iter().map(|later| (std::mem::take(&mut begun), later.into_work(&self.queue)));
        let mut commands: Vec<_> = later.collect();
        commands.push((begun, Work::Nothing));
        Some(commands)
    }
}

impl Drop for Grid {
    fn drop(&mut self) {
        self.completion.abandon();
    }
}

/// How long blocks begin after one has stopped itself: what they say and store where the host sees it is seen on a GPU, which ends them some time later.
const OTHERS_GO_ON: Duration = Duration::from_millis(100);
/// Addresses beyond which no memory can be.
const ADDRESSES: u64 = 1 << 49;
/// Bytes of an instruction, which lies at a multiple of them.
const INSTRUCTION: u64 = 16;
/// Nanoseconds of a launch for each thread that is called for it, of those that look for work.
const WORTH_CALLING: u64 = 2_000;
/// Nanoseconds below which a launch runs on one thread: waking another takes longer. Each that is woken up takes as much.
const WORTH_SHARING: u64 = 20_000;
/// Nanoseconds below which it does even if another thread is awake.
const ENOUGH_FOR_TWO: u64 = 5_000;
/// How long launches run quickly made code before better is asked for: most kernels of programs that end soon never do, and what runs for so long
/// may well run for as long as compiling takes, some ten times that.
const WORTH_BETTER: Duration = Duration::from_millis(3);
/// Likewise, for code that takes long to make: a part of that time. Programs that render an image now and then would else have a processor busy with
/// minutes of compiling that never comes to its end.
const PARTS_BETTER: u32 = 32;
/// How long blocks run in quickly made code before a thread waits for better.
const LONG: Duration = Duration::from_millis(100);
/// Likewise, for code that takes long to make.
const PARTS_ASIDE: u32 = 3;
/// Chunks for each thread, so that all end at about the same time.
const CHUNKS_PER_THREAD: u64 = 64;
/// Fewest where blocks are so short that taking some would take as long.
const FEWEST_CHUNKS_PER_THREAD: u64 = 8;
/// Nanoseconds up to which one thread takes a grid as a whole whose blocks walk along memory together.
const WHOLE: u64 = 20_000_000;
/// Nanoseconds that a chunk takes at least.
const CHUNK: u64 = 2_000;

/// Better code of the kernel that is being made.
fn better_of(parts: &GridParts) -> Option<&dyn Successor> {
    parts.ready.kernel.successor().filter(|better| !better.is_settled())
}

/// How long launches run before this code is asked for.
fn worth_better(better: &dyn Successor) -> Duration {
    WORTH_BETTER.max(better.cost() / PARTS_BETTER)
}

/// How many of so many blocks each thread has, where all must run at the same time and those of one thread can take turns: a thread for each block
/// would have to wait for its turn of the processor, which takes as long as thousands of turns here.
fn in_turns(parts: &GridParts, needs: BlockNeeds, total: u64, threads: u32) -> Option<u32> {
    let can = parts.cooperative && parts.cluster.is_none() && parts.ready.kernel.takes_turns();
    let each = total.div_ceil(threads.max(1).into()).min(needs.most_in_turns());
    (can && each > 1).then(|| u32::try_from(each).ok()).flatten()
}

/// How threads take so many blocks, or clusters.
fn supply_of(parts: &GridParts, total: u64, workers: u32, together: u64) -> Supply {
    // Blocks that wait for each other must not be in one thread's hands, so a kernel whose blocks may is spread one by one. One that
    // could hide it can do so as long as its blocks could all be on the device together; larger grids cannot rely on that.
    let info = parts.ready.kernel.info();
    let may_wait = info.may_wait && total <= together;
    if parts.cooperative || info.waits || may_wait {
        return Supply::in_order(total, 1);
    }
    let share = total / u64::from(workers);
    let row = u64::from(parts.grid[0] / parts.cluster.map_or(1, |cluster| cluster[0]));
    if better_of(parts).is_some() {
        // Soon left for better code, which is there when the next chunk begins.
        return Supply::in_sections(total, chunk_of(share, row), workers).one_by_one();
    }
    // None that takes no time worth mentioning, but some of what each thread has.
    let profile = &parts.ready.profile;
    let least = profile.blocks_in(CHUNK).min(share / FEWEST_CHUNKS_PER_THREAD);
    let supply = Supply::in_sections(total, chunk_of(share, row).max(least), workers);
    match info.walks {
        true if workers == 1 && profile.is_short(total, WHOLE) => supply.in_parts_of(1),
        true => supply.in_parts_of(2),
        false => supply,
    }
}

/// How many blocks are taken at least, of a thread's share.
fn chunk_of(share: u64, row: u64) -> u64 {
    let chunk = (share / CHUNKS_PER_THREAD).clamp(1, 1 << 20);
    // Whole rows of the grid, where that leaves enough chunks.
    if chunk > row { chunk / row * row } else { chunk }
}

#[cfg(test)]
pub(crate) fn empty_launch_frame() -> LaunchFrame {
    LaunchFrame {
        grid: [1; 3],
        block: [1; 3],
        params: std::ptr::null(),
        globals: std::ptr::null(),
        callbacks: &callbacks::TABLE,
        context: std::ptr::null(),
        dynamic_shared_bytes: 0,
        shared_bytes: 0,
        local_bytes: 0,
        warps: 1,
        threads: 1,
        sm_count: 1,
        grid_id: 1,
        grid_workspace: 0,
        cluster: [1; 3],
        explicit_cluster: 0,
        graph: 0,
    }
}
