//! Runs the warps of the blocks of a cluster, or of several, one after another, each up to its next suspension point, and lets them meet at
//! barriers. A block that is in no cluster is a cluster of one. Code may run several warps at once, a gang: its first stands for all.
//!
//! All of this runs inside a guarded call, in which a fault discards frames: nothing here owns anything. The state lives
//! outside, in [`Schedule`].

mod cluster;
mod together;

use std::time::{Duration, Instant};

use kernel_abi::{BARRIERS, BlockFrame, FaultKind, LaunchFrame, WARP, Wait, WaitKind, WarpEntry};

use cluster::ClusterBarrier;

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
    /// No warp has run yet.
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
    /// Warps poll for what other blocks do, and the launch has failed in one of those.
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
        self.live = 0;
        for block in &mut self.blocks {
            for gang in block.warps.chunks_mut(self.code.gang as usize) {
                gang.fill(Warp { state: State::Led, ..START });
                gang[0] = START;
            }
            block.barriers = [Barrier::default(); BARRIERS];
            block.live = block.warps.len() as u32;
            block.fresh = true;
            self.live += block.live;
        }
        for (cluster, blocks) in self.clusters.iter_mut().zip(self.blocks.chunks(self.cluster_blocks)) {
            let live = blocks.iter().map(|block| block.live).sum();
            *cluster = ClusterBarrier { live, ..ClusterBarrier::default() };
        }
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
        }
        loop {
            let (mut ran, mut yielded) = (from > 0, false);
            for index in std::mem::take(&mut from)..self.blocks[self.rank].warps.len() {
                match self.blocks[self.rank].warps[index].state {
                    State::Ready => ran = true,
                    State::Yielded => yielded = true,
                    State::Waiting | State::WaitingForCluster | State::Done | State::Led => continue,
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
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::ptr;

    thread_local! {
        /// What the warps of a test did: warp and step.
        static TRACE: RefCell<Vec<(u32, u32)>> = const { RefCell::new(Vec::new()) };
    }

    fn trace(warp: u32, step: u32) {
        TRACE.with_borrow_mut(|trace| trace.push((warp, step)));
    }

    fn launch(warps: u32) -> LaunchFrame {
        LaunchFrame {
            grid: [1; 3],
            block: [32 * warps, 1, 1],
            params: ptr::null(),
            globals: ptr::null(),
            callbacks: ptr::null(),
            context: ptr::null(),
            dynamic_shared_bytes: 0,
            shared_bytes: 0,
            local_bytes: 0,
            warps,
            threads: 32 * warps,
            sm_count: 1,
            grid_id: 1,
            grid_workspace: 0,
            cluster: [1; 3],
            explicit_cluster: 0,
        }
    }

    fn run(warps: u32, entry: WarpEntry, plain: Option<WarpEntry>) -> (Stopped, Vec<(u32, u32)>) {
        run_cluster(1, warps, entry, plain)
    }

    /// Runs blocks together whose x index is their rank.
    fn run_cluster(
        blocks: u32,
        warps: u32,
        entry: WarpEntry,
        plain: Option<WarpEntry>,
    ) -> (Stopped, Vec<(u32, u32)>) {
        run_in_gangs(1, [blocks, blocks], warps, entry, plain)
    }

    /// Likewise so many blocks of clusters of so many, with an entry that runs so many warps at once.
    fn run_in_gangs(
        gang: u32,
        [blocks, cluster]: [u32; 2],
        warps: u32,
        entry: WarpEntry,
        plain: Option<WarpEntry>,
    ) -> (Stopped, Vec<(u32, u32)>) {
        let launch = LaunchFrame { cluster: [cluster, 1, 1], ..launch(warps) };
        let frame = |rank| BlockFrame {
            launch: &launch,
            shared: ptr::null_mut(),
            local: ptr::null_mut(),
            state: ptr::null_mut(),
            ctaid: [rank, 0, 0],
            warp: 0,
            worker: 0,
            wait: Wait::default(),
            fault: kernel_abi::FaultRecord::default(),
        };
        let mut frames: Vec<BlockFrame> = (0..blocks).map(frame).collect();
        TRACE.with_borrow_mut(Vec::clear);
        let code = |entry, gang| WarpCode { entry, state: ptr::null_mut(), block_bytes: 64, gang };
        let mut schedule = Schedule::new(&launch, blocks as usize, code(entry, gang));
        schedule.start();
        // SAFETY: the entries of these tests touch nothing but the frame.
        let mut stopped = unsafe { schedule.run(frames.as_mut_ptr()) };
        if let (Stopped::NeedsPlainCode, Some(plain)) = (stopped, plain) {
            schedule.resume_with(code(plain, 1));
            // SAFETY: as above.
            stopped = unsafe { schedule.run(frames.as_mut_ptr()) };
        }
        (stopped, TRACE.take())
    }

    /// Suspends for `kind` at `barrier`, with one vote for each warp with an even number.
    unsafe fn suspend(frame: *mut BlockFrame, warp: u32, kind: WaitKind, barrier: u32, threads: u32) {
        let votes = if warp.is_multiple_of(2) { 1 } else { 0 };
        let wait = Wait { kind: kind as u32, barrier, threads, lanes: u32::MAX, votes, ..Wait::default() };
        // SAFETY: the frame of the test.
        unsafe { (*frame).wait = wait };
    }

    #[test]
    fn a_barrier_is_passed_by_all_or_none() {
        unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
            trace(warp, resume);
            // SAFETY: the frame of the test.
            unsafe {
                if resume > 0 {
                    assert_eq!(((*frame).wait.result, (*frame).wait.arrived), (2, 96));
                }
                suspend(frame, warp, WaitKind::Barrier, 0, 0);
            }
            if resume < 2 { resume + 1 } else { 0 }
        }
        let (stopped, trace) = run(3, entry, None);
        assert_eq!(stopped, Stopped::Done);
        let mut steps: Vec<u32> = trace.iter().map(|(_, step)| *step).collect();
        assert!(steps.is_sorted(), "no warp runs ahead: {trace:?}");
        steps.dedup();
        assert_eq!((steps.len(), trace.len()), (3, 9));
    }

    #[test]
    fn warps_that_part_after_a_while_have_what_they_had_together() {
        // The last warp ends after two votes, the first announces itself then, and the others vote once more.
        unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
            trace(warp, resume);
            // SAFETY: the frame of the test.
            unsafe {
                let Wait { result, arrived, .. } = (*frame).wait;
                match resume {
                    1 | 2 => assert_eq!((result, arrived), (2, 128), "warp {warp}"),
                    3 if warp > 0 => assert_eq!((result, arrived), (1, 64), "warp {warp}"),
                    _ => {}
                }
                let kind = if (warp, resume) == (0, 2) { WaitKind::Arrive } else { WaitKind::Barrier };
                suspend(frame, warp, kind, 0, 0);
            }
            if (warp, resume) == (3, 2) || resume == 3 { 0 } else { resume + 1 }
        }
        let (stopped, trace) = run(4, entry, None);
        assert_eq!(stopped, Stopped::Done);
        let together: Vec<_> = (0..3).flat_map(|step| (0..4).map(move |warp| (warp, step))).collect();
        let mut expected = together;
        expected.insert(9, (0, 3));
        expected.extend([(1, 3), (2, 3)]);
        assert_eq!(trace, expected);
    }

    #[test]
    fn a_gang_counts_for_its_warps_until_each_runs_by_itself() {
        unsafe extern "C" fn entry(frame: *mut BlockFrame, gang: u32, resume: u32) -> u32 {
            // SAFETY: the frame of the test.
            unsafe {
                trace(10 + gang, (*frame).warp);
                suspend(frame, gang, WaitKind::Barrier, 0, 0);
            }
            match (gang, resume) {
                // The second finds that an assumption does not hold.
                (1, _) => u32::MAX,
                (_, 0) => 1,
                _ => 0,
            }
        }
        unsafe extern "C" fn plain(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
            // SAFETY: the frame of the test.
            unsafe {
                trace(warp, (*frame).warp);
                suspend(frame, warp, WaitKind::Barrier, 0, 0);
            }
            if resume == 0 { 1 } else { 0 }
        }
        let (stopped, trace) = run_in_gangs(2, [1, 1], 6, entry, Some(plain));
        assert_eq!(stopped, Stopped::Done);
        let round = [(10, 0), (2, 2), (3, 3), (12, 4)];
        let first = [(10, 0), (11, 2), (2, 2), (3, 3), (12, 4)];
        assert_eq!(trace, [&first[..], &round[..]].concat());
    }

    #[test]
    fn warps_that_ended_do_not_hold_a_barrier() {
        unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
            trace(warp, resume);
            // SAFETY: the frame of the test.
            unsafe { suspend(frame, warp, WaitKind::Barrier, 3, 0) };
            if warp == 2 || resume == 1 { 0 } else { 1 }
        }
        assert_eq!(run(3, entry, None), (Stopped::Done, vec![(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]));
    }

    #[test]
    fn producers_announce_and_consumers_wait() {
        // Warp 0 waits at barrier 1 for 64 threads; warp 1 announces itself there and goes on.
        unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
            trace(warp, resume);
            let kind = if warp == 0 { WaitKind::Barrier } else { WaitKind::Arrive };
            // SAFETY: the frame of the test.
            unsafe { suspend(frame, warp, kind, 1, 64) };
            if resume == 0 { 1 } else { 0 }
        }
        assert_eq!(run(2, entry, None), (Stopped::Done, vec![(0, 0), (1, 0), (1, 1), (0, 1)]));
    }

    #[test]
    fn two_groups_use_two_barriers() {
        unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
            // SAFETY: the frame of the test.
            unsafe { suspend(frame, warp, WaitKind::Barrier, 1 + warp / 2, 64) };
            if resume == 0 { 1 } else { 0 }
        }
        assert_eq!(run(4, entry, None).0, Stopped::Done);
    }

    #[test]
    fn warps_that_wait_for_each_other_are_a_deadlock() {
        unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, _: u32) -> u32 {
            // SAFETY: the frame of the test.
            unsafe { suspend(frame, warp, WaitKind::Barrier, warp, 64) };
            1
        }
        assert_eq!(run(2, entry, None).0, Stopped::Deadlock);
    }

    #[test]
    fn a_barrier_that_does_not_exist_is_a_fault() {
        unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, _: u32) -> u32 {
            // SAFETY: the frame of the test.
            unsafe { suspend(frame, warp, WaitKind::Barrier, 16, 0) };
            1
        }
        assert_eq!(run(1, entry, None).0, Stopped::NoSuchBarrier);
    }

    #[test]
    fn the_barrier_of_a_cluster_is_passed_by_all_blocks_or_none() {
        // Arrives, does something, waits, and that again.
        unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
            // SAFETY: the frame of the test.
            unsafe {
                trace((*frame).ctaid[0] * 10 + warp, resume);
                assert_eq!(
                    (*frame).state as usize,
                    (*frame).ctaid[0] as usize * 64,
                    "each has its own state"
                );
                let kind =
                    if resume.is_multiple_of(2) { WaitKind::ClusterArrive } else { WaitKind::ClusterWait };
                suspend(frame, warp, kind, 0, 0);
            }
            if resume < 4 { resume + 1 } else { 0 }
        }
        let (stopped, trace) = run_cluster(3, 2, entry, None);
        assert_eq!((stopped, trace.len()), (Stopped::Done, 6 * 5));
        let at =
            |step| trace.iter().enumerate().filter(move |(_, (_, known))| *known == step).map(|(at, _)| at);
        // What follows a wait comes after all that precedes the arrival; what is between the two may be early.
        assert!(at(0).max() < at(2).min() && at(2).max() < at(4).min(), "{trace:?}");
    }

    #[test]
    fn warps_that_ended_do_not_hold_the_barrier_of_a_cluster() {
        // Those of block 1 end, one of them after its arrival.
        unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
            // SAFETY: the frame of the test.
            let rank = unsafe { (*frame).ctaid[0] };
            let kind = if resume == 0 { WaitKind::ClusterArrive } else { WaitKind::ClusterWait };
            // SAFETY: the frame of the test.
            unsafe { suspend(frame, warp, kind, 0, 0) };
            match (rank, warp, resume) {
                (1, 0, _) | (1, 1, 1) | (_, _, 2) => 0,
                _ => resume + 1,
            }
        }
        assert_eq!(run_cluster(2, 2, entry, None).0, Stopped::Done);
    }

    #[test]
    fn who_waits_for_the_cluster_without_having_arrived_waits_for_ever() {
        unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
            // SAFETY: the frame of the test.
            let rank = unsafe { (*frame).ctaid[0] };
            let arrives = rank == 0 && resume == 0;
            let kind = if arrives { WaitKind::ClusterArrive } else { WaitKind::ClusterWait };
            // SAFETY: the frame of the test.
            unsafe { suspend(frame, warp, kind, 0, 0) };
            if resume == 2 { 0 } else { resume + 1 }
        }
        assert_eq!(run_cluster(2, 1, entry, None).0, Stopped::Deadlock);
    }

    #[test]
    fn a_block_that_polls_lets_the_others_of_its_cluster_go_on() {
        // Block 0 asks again and again until block 1 has taken its third step.
        unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
            // SAFETY: the frame of the test.
            let rank = unsafe { (*frame).ctaid[0] };
            trace(rank, resume);
            // SAFETY: the frame of the test.
            unsafe { suspend(frame, warp, WaitKind::Yield, 0, 0) };
            match rank {
                0 if TRACE.with_borrow(|trace| trace.contains(&(1, 3))) => 0,
                0 => 1,
                _ if resume == 3 => 0,
                _ => resume + 1,
            }
        }
        assert_eq!(run_cluster(2, 1, entry, None).0, Stopped::Done);
    }

    #[test]
    fn clusters_that_take_turns_each_have_a_barrier() {
        // Of two clusters of two blocks the second waits at its barrier; the first polls until the last block is past that.
        unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
            // SAFETY: the frame of the test.
            let block = unsafe { (*frame).ctaid[0] };
            trace(block, resume);
            let kind = match (block, resume) {
                (0 | 1, _) => WaitKind::Yield,
                (_, 0) => WaitKind::ClusterArrive,
                _ => WaitKind::ClusterWait,
            };
            // SAFETY: the frame of the test.
            unsafe { suspend(frame, warp, kind, 0, 0) };
            match block {
                0 | 1 if TRACE.with_borrow(|trace| trace.contains(&(3, 2))) => 0,
                0 | 1 => 1,
                _ if resume == 2 => 0,
                _ => resume + 1,
            }
        }
        assert_eq!(run_in_gangs(1, [4, 2], 1, entry, None).0, Stopped::Done);
    }

    #[test]
    fn a_yield_lets_others_go_first() {
        unsafe extern "C" fn entry(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
            trace(warp, resume);
            // SAFETY: the frame of the test.
            unsafe { suspend(frame, warp, WaitKind::Yield, 0, 0) };
            if warp == 1 || resume == 3 { 0 } else { resume + 1 }
        }
        assert_eq!(run(2, entry, None), (Stopped::Done, vec![(0, 0), (1, 0), (0, 1), (0, 2), (0, 3)]));
    }

    #[test]
    fn a_warp_whose_assumption_fails_runs_plain_code_from_its_start() {
        unsafe extern "C" fn assuming(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
            trace(warp, resume);
            // SAFETY: the frame of the test.
            unsafe { suspend(frame, warp, WaitKind::Barrier, 0, 0) };
            match (warp, resume) {
                (1, 0) => u32::MAX,
                (_, 0) => 1,
                _ => 0,
            }
        }
        unsafe extern "C" fn plain(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32 {
            trace(warp, 100 + resume);
            // SAFETY: the frame of the test.
            unsafe { suspend(frame, warp, WaitKind::Barrier, 0, 0) };
            if resume == 0 { 7 } else { 0 }
        }
        let (stopped, trace) = run(3, assuming, Some(plain));
        assert_eq!(stopped, Stopped::Done);
        assert_eq!(trace, [(0, 0), (1, 0), (1, 100), (2, 0), (0, 1), (1, 107), (2, 1)]);
    }
}
