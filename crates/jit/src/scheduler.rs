//! Runs the warps of the blocks of a cluster, or of several, one after another, each up to its next suspension point, and lets them meet at
//! barriers. A block that is in no cluster is a cluster of one. Code may run several warps at once, a gang: its first stands for all.
//!
//! All of this runs inside a guarded call, in which a fault discards frames: nothing here owns anything. The state lives
//! outside, in [`Schedule`].

mod cluster;
mod together;

use std::time::{Duration, Instant};

use kernel_abi::{
    BARRIERS, BlockFrame, FaultKind, LaunchFrame, Parted, TogetherEntry, WARP, Wait, WaitKind, WarpEntry,
};

use cluster::ClusterBarrier;
use together::Together;

/// How long a block waits before another thread may have the core, and after how many rounds it looks at the clock.
const PATIENCE: Duration = Duration::from_micros(50);
const ROUNDS: u32 = 16;

/// What a warp is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// To be run, from the suspension point `resume` on.
    Ready,
    /// Waits at `wait.barrier`.
    Waiting,
    /// Waits at the cluster's barrier.
    WaitingForCluster,
    /// Asked to be run later.
    Yielded,
    /// Has ended.
    Done,
    /// Goes where the first warp of its gang goes.
    Led,
    /// Has failed an assertion: never goes on, and has not ended, so that who waits for it at a barrier waits in vain.
    Lost,
}

#[derive(Clone, Copy)]
struct Warp {
    state: State,
    resume: u32,
    wait: Wait,
    /// The phase of the cluster's barrier that it has arrived in and not yet waited for.
    arrived: Option<u32>,
    /// Runs the code that makes no assumption.
    plain: bool,
}

const START: Warp = Warp {
    state: State::Ready,
    resume: 0,
    wait: Wait { kind: 0, barrier: 0, threads: 0, lanes: 0, votes: 0, result: 0, arrived: 0 },
    arrived: None,
    plain: false,
};

/// Who has come to a barrier. Counted as warps arrive, so that an arrival costs the same however many warps there are.
#[derive(Clone, Copy, Default)]
struct Barrier {
    /// Warps that wait.
    waiting: u32,
    /// Warps that have announced themselves without waiting.
    announced: u32,
    /// Threads that take part, as all who come must say; 0 for the whole block.
    threads: u32,
}

impl Barrier {
    /// Whether a warp that comes says of how many threads take part what those before it say. The hardware counts warps, and the whole
    /// block is no number of them.
    fn admits(&mut self, threads: u32) -> bool {
        if self.waiting + self.announced == 0 {
            self.threads = threads;
        }
        self.threads.div_ceil(WARP) == threads.div_ceil(WARP)
    }

    /// Whether enough have come, `live` being the warps that have not ended.
    fn is_complete(self, live: u32) -> bool {
        let come = self.waiting + self.announced;
        self.waiting > 0
            && match self.threads {
                0 => come >= live,
                // The hardware counts warps: one whose threads come, or have ended, counts whole.
                threads => come.saturating_mul(WARP) >= threads,
            }
    }
}

/// Code of a kernel with suspension points, and where it keeps the state of its warps.
#[derive(Clone, Copy)]
pub struct WarpCode {
    /// The entry.
    pub entry: WarpEntry,
    /// What runs a whole block, if there is such code.
    pub together: Option<TogetherEntry>,
    /// What [`BlockFrame::state`] is while it runs the first block.
    pub state: *mut u8,
    /// Bytes from the state of one block to that of the next.
    pub block_bytes: usize,
    /// Warps that it runs at once, a divisor of those of a block. 1 in plain code.
    pub gang: u32,
}

/// The warps of one block.
struct BlockWarps {
    warps: Vec<Warp>,
    barriers: [Barrier; BARRIERS],
    /// Warps that have not ended.
    live: u32,
    /// No warp has run yet; what the others tell is of the block before.
    fresh: bool,
}

/// What follows a warp's turn.
enum Turn {
    /// Another one of its own.
    Again,
    /// The others'.
    Over,
    /// Nothing.
    Stopped(Stopped),
}

/// The warps of the blocks being run. Made once for a range of blocks.
pub struct Schedule {
    blocks: Vec<BlockWarps>,
    /// The block being run.
    rank: usize,
    /// Those of the clusters that the blocks make up, of so many blocks each.
    clusters: Vec<ClusterBarrier>,
    cluster_blocks: usize,
    /// Warps of all blocks that have not ended.
    live: u32,
    code: WarpCode,
    /// For warps that find an assumption of `code` not to hold.
    plain: Option<WarpCode>,
    /// Where the warps of the current block are while they have their turns together.
    together: Option<Together>,
    /// Likewise, where code of the kernel's own gives them.
    parted: Parted,
    /// A warp has failed an assertion.
    some_lost: bool,
}

/// Why the blocks stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// All warps have ended.
    Done,
    /// A warp needs the plain code, which is not there. Go on with it: [`Schedule::resume_with`].
    NeedsPlainCode,
    /// All warps wait for each other.
    Deadlock,
    /// A warp waits at a barrier that does not exist.
    NoSuchBarrier,
    /// Warps come to one barrier with other numbers of threads.
    CountsDiffer,
    /// Warps poll for what other blocks do, and the launch has failed in one of those; or one has failed an assertion, and none of the others can
    /// go on.
    Abandoned,
}

impl Schedule {
    /// A schedule for so many blocks of the launch: whole clusters.
    pub fn new(launch: &LaunchFrame, blocks: usize, code: WarpCode) -> Schedule {
        let block = || BlockWarps {
            warps: vec![START; launch.warps as usize],
            barriers: [Barrier::default(); BARRIERS],
            live: launch.warps,
            fresh: true,
        };
        let cluster_blocks = launch.cluster_blocks() as usize;
        let mut schedule = Schedule {
            blocks: (0..blocks).map(|_| block()).collect(),
            rank: 0,
            clusters: vec![ClusterBarrier::default(); blocks / cluster_blocks],
            cluster_blocks,
            live: 0,
            code,
            plain: None,
            together: None,
            parted: Parted::default(),
            some_lost: false,
        };
        schedule.start();
        schedule
    }

    /// Supplies the code that makes no assumption.
    pub fn resume_with(&mut self, plain: WarpCode) {
        self.plain = Some(plain);
    }

    /// The next blocks start.
    pub fn start(&mut self) {
        (self.live, self.some_lost, self.together) = (0, false, None);
        for block in &mut self.blocks {
            block.live = block.warps.len() as u32;
            block.fresh = true;
            self.live += block.live;
        }
        for (cluster, blocks) in self.clusters.iter_mut().zip(self.blocks.chunks(self.cluster_blocks)) {
            let live = blocks.iter().map(|block| block.live).sum();
            *cluster = ClusterBarrier { live, ..ClusterBarrier::default() };
        }
    }

    /// The warp that the frame names has failed an assertion and left the code where it was. The others may go on.
    ///
    /// # Safety
    /// As for [`Schedule::run`], of the frame of the block that was run last.
    pub unsafe fn lose_warp(&mut self, frame: *mut BlockFrame) {
        // SAFETY: the caller's contract.
        let index = unsafe { (*frame).warp as usize };
        if let Some(together) = self.together.take() {
            self.account_for_those_before(index, together);
        }
        if let Some(warp) = self.blocks[self.rank].warps.get_mut(index) {
            warp.state = State::Lost;
        }
        self.some_lost = true;
    }

    /// The rank of the block that was run last, or that a deadlock is about.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Runs the blocks whose indices the frames hold until they end or cannot go on.
    ///
    /// # Safety
    /// `frames` has a frame for each block of the schedule, each as `kernel_abi::CompiledKernel::run` says, and the states of the codes
    /// are large enough.
    pub unsafe fn run(&mut self, frames: *mut BlockFrame) -> Stopped {
        let (mut rounds, mut since) = (0u32, None);
        loop {
            let (mut ran, mut yielded) = (false, false);
            for rank in 0..self.blocks.len() {
                self.rank = rank;
                // SAFETY: the caller's contract.
                match unsafe { self.run_block(frames.add(rank)) } {
                    Ok(did) => {
                        ran |= did.ran;
                        yielded |= did.yielded;
                    }
                    Err(stopped) => return stopped,
                }
            }
            if self.live == 0 {
                return Stopped::Done;
            }
            if ran {
                continue;
            }
            if self.some_lost {
                return Stopped::Abandoned;
            }
            if !yielded {
                self.rank = self.blocks.iter().position(|block| block.live > 0).unwrap_or(0);
                return Stopped::Deadlock;
            }
            // What they wait for happens in the lanes' next turns, or on other threads, which may need this core.
            rounds = rounds.wrapping_add(1);
            if !rounds.is_multiple_of(ROUNDS) {
                std::hint::spin_loop();
                continue;
            }
            // SAFETY: the caller's contract: the frames are those of blocks in flight, and their launch and its callbacks outlive them.
            if unsafe { ((*(*(*frames).launch).callbacks).has_failed)(frames) } != 0 {
                return Stopped::Abandoned;
            }
            if since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                std::thread::yield_now();
                since = None;
            }
        }
    }

    /// Runs the current block until all its warps wait or have ended.
    ///
    /// # Safety
    /// As for [`Schedule::run`], of this block's frame.
    unsafe fn run_block(&mut self, frame: *mut BlockFrame) -> Result<Did, Stopped> {
        let mut did = Did { ran: false, yielded: false };
        let mut from = 0;
        if std::mem::take(&mut self.blocks[self.rank].fresh) {
            // SAFETY: the caller's contract.
            from = unsafe { self.run_together(frame)? };
            did.ran = true;
        }
        if self.blocks[self.rank].live == 0 {
            return Ok(did);
        }
        loop {
            let (mut ran, mut yielded) = (from > 0, false);
            for index in std::mem::take(&mut from)..self.blocks[self.rank].warps.len() {
                match self.blocks[self.rank].warps[index].state {
                    State::Ready => ran = true,
                    State::Yielded => yielded = true,
                    State::Waiting | State::WaitingForCluster | State::Done | State::Led | State::Lost => {
                        continue;
                    }
                }
                // SAFETY: the caller's contract.
                if let Some(stopped) = unsafe { self.turn(frame, index) } {
                    return Err(stopped);
                }
            }
            if ran || self.blocks[self.rank].complete_any() {
                did.ran = true;
                continue;
            }
            did.yielded = yielded;
            return Ok(did);
        }
    }

    /// Runs one warp, and those it leads, up to their next suspension point.
    ///
    /// # Safety
    /// As for [`Schedule::run_block`].
    unsafe fn turn(&mut self, frame: *mut BlockFrame, index: usize) -> Option<Stopped> {
        loop {
            let warp = self.blocks[self.rank].warps[index];
            let code = match (warp.plain, self.plain) {
                (true, Some(plain)) => plain,
                (true, None) => return Some(Stopped::NeedsPlainCode),
                (false, _) => self.code,
            };
            let gang = code.gang;
            // SAFETY: the caller's contract; a warp resumes where its own code suspended it.
            let (resume, wait) = unsafe {
                (*frame).warp = index as u32;
                (*frame).state = code.state.wrapping_add(self.rank * code.block_bytes);
                (*frame).wait = warp.wait;
                let resume = (code.entry)(frame, index as u32 / gang, warp.resume);
                (resume, (*frame).wait)
            };
            match self.settle(index, resume, wait) {
                Turn::Again => {}
                Turn::Over => return None,
                Turn::Stopped(stopped) => return Some(stopped),
            }
        }
    }

    /// Accounts for a warp that has run up to the suspension point after which it goes on at `resume`, or to its end.
    fn settle(&mut self, index: usize, resume: u32, wait: Wait) -> Turn {
        let block = &mut self.blocks[self.rank];
        let cluster = &mut self.clusters[self.rank / self.cluster_blocks];
        let gang = if block.warps[index].plain { 1 } else { self.code.gang };
        let warp = &mut block.warps[index];
        match resume {
            0 => {
                warp.state = State::Done;
                block.live -= gang;
                if warp.arrived == Some(cluster.phase) {
                    cluster.arrived -= gang;
                }
                self.ended(gang);
                return Turn::Over;
            }
            // The assumption is tested before anything is done, so the warp can start again.
            u32::MAX if warp.resume == 0 && !warp.plain => {
                // Each by itself.
                block.warps[index..index + gang as usize].fill(Warp { plain: true, ..START });
                return Turn::Again;
            }
            _ => {}
        }
        warp.resume = resume;
        warp.wait = wait;
        if wait.kind == WaitKind::Yield as u32 {
            warp.state = State::Yielded;
            return Turn::Over;
        }
        if wait.kind == WaitKind::ClusterArrive as u32 {
            warp.state = State::Ready;
            if warp.arrived != Some(cluster.phase) {
                warp.arrived = Some(cluster.phase);
                cluster.arrived += gang;
            }
            self.complete_cluster();
            return Turn::Again;
        }
        if wait.kind == WaitKind::ClusterWait as u32 {
            // The phase it arrived in may be over.
            if warp.arrived.is_some_and(|phase| phase != cluster.phase) {
                warp.state = State::Ready;
                warp.arrived = None;
                return Turn::Again;
            }
            warp.state = State::WaitingForCluster;
            return Turn::Over;
        }
        let Some(barrier) = block.barriers.get_mut(wait.barrier as usize) else {
            return Turn::Stopped(Stopped::NoSuchBarrier);
        };
        if !barrier.admits(wait.threads) {
            return Turn::Stopped(Stopped::CountsDiffer);
        }
        if wait.kind == WaitKind::Arrive as u32 {
            barrier.announced += gang;
            warp.state = State::Ready;
            // An announcement may be what others wait for.
            block.complete(wait.barrier);
            return Turn::Again;
        }
        barrier.waiting += gang;
        warp.state = State::Waiting;
        block.complete(wait.barrier);
        Turn::Over
    }

    /// What the blocks' end, if it is not a good one, is called.
    pub fn fault_kind(&self, stopped: Stopped) -> Option<(FaultKind, &'static str)> {
        let who = match self.cluster_blocks {
            1 => "all warps of the block wait for each other",
            _ => "all warps of the cluster wait for each other",
        };
        match stopped {
            Stopped::Done | Stopped::NeedsPlainCode | Stopped::Abandoned => None,
            Stopped::Deadlock => Some((FaultKind::Deadlock, who)),
            Stopped::NoSuchBarrier => Some((FaultKind::IllegalInstruction, "a barrier number above 15")),
            Stopped::CountsDiffer => {
                Some((FaultKind::IllegalInstruction, "warps come to a barrier with other numbers of threads"))
            }
        }
    }
}

/// What the warps of a block have done in their turns.
struct Did {
    /// Some have gone on.
    ran: bool,
    /// Some have asked to be run later.
    yielded: bool,
}

impl BlockWarps {
    /// All warps are to be run from their start.
    fn reset(&mut self, gang: u32) {
        for gang in self.warps.chunks_mut(gang as usize) {
            gang.fill(Warp { state: State::Led, ..START });
            gang[0] = START;
        }
        self.barriers = [Barrier::default(); BARRIERS];
    }

    /// Lets any barrier go that is complete now that warps have ended.
    fn complete_any(&mut self) -> bool {
        (0..BARRIERS as u32).any(|barrier| self.complete(barrier))
    }

    /// Lets a barrier go if enough threads have arrived.
    fn complete(&mut self, barrier: u32) -> bool {
        if !self.barriers[barrier as usize].is_complete(self.live) {
            return false;
        }
        let waits = |warp: &Warp| warp.state == State::Waiting && warp.wait.barrier == barrier;
        let (mut votes, mut arrived) = (0, 0);
        for warp in self.warps.iter().filter(|warp| waits(warp)) {
            votes += warp.wait.votes.count_ones();
            arrived += warp.wait.lanes.count_ones();
        }
        for warp in self.warps.iter_mut().filter(|warp| waits(warp)) {
            warp.state = State::Ready;
            warp.wait.result = votes;
            warp.wait.arrived = arrived;
        }
        self.barriers[barrier as usize] = Barrier::default();
        true
    }
}

#[cfg(test)]
mod tests;
