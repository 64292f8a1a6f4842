//! Runs the warps of a block one after another, each up to its next suspension point, and lets them meet at barriers.
//!
//! All of this runs inside a guarded call, in which a fault discards frames: nothing here owns anything. The state lives
//! outside, in [`Schedule`].

use kernel_abi::{BARRIERS, BlockFrame, FaultKind, LaunchFrame, WARP, Wait, WaitKind, WarpEntry};

/// What a warp of the block is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// To be run, from the suspension point `resume` on.
    Ready,
    /// Waits at `wait.barrier`.
    Waiting,
    /// Asked to be run later.
    Yielded,
    /// Has ended.
    Done,
}

#[derive(Clone, Copy)]
struct Warp {
    state: State,
    resume: u32,
    wait: Wait,
    /// Runs the code that makes no assumption.
    plain: bool,
}

const START: Warp = Warp {
    state: State::Ready,
    resume: 0,
    wait: Wait { kind: 0, barrier: 0, threads: 0, lanes: 0, votes: 0, result: 0, arrived: 0 },
    plain: false,
};

/// Who has come to a barrier. Counted as warps arrive, so that an arrival costs the same however many warps there are.
#[derive(Clone, Copy, Default)]
struct Barrier {
    /// Warps that wait.
    waiting: u32,
    /// Warps that have announced themselves without waiting.
    announced: u32,
    /// Threads that take part, as the first to wait says; 0 for the whole block.
    threads: u32,
}

impl Barrier {
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
    /// What [`BlockFrame::state`] is while it runs.
    pub state: *mut u8,
}

/// The warps of the block being run. Made once for a range of blocks.
pub struct Schedule {
    warps: Vec<Warp>,
    barriers: [Barrier; BARRIERS],
    /// Warps that have not ended.
    live: u32,
    code: WarpCode,
    /// For warps that find an assumption of `code` not to hold.
    plain: Option<WarpCode>,
}

/// Why a block stopped.
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
}

impl Schedule {
    /// A schedule for blocks of the launch.
    pub fn new(launch: &LaunchFrame, code: WarpCode) -> Schedule {
        let warps = vec![START; launch.warps as usize];
        Schedule { warps, barriers: [Barrier::default(); BARRIERS], live: launch.warps, code, plain: None }
    }

    /// Supplies the code that makes no assumption.
    pub fn resume_with(&mut self, plain: WarpCode) {
        self.plain = Some(plain);
    }

    /// The next block starts.
    pub fn start_block(&mut self) {
        self.warps.fill(START);
        self.barriers = [Barrier::default(); BARRIERS];
        self.live = self.warps.len() as u32;
    }

    /// Runs block `frame.ctaid` until it ends or cannot go on.
    ///
    /// # Safety
    /// `frame` is as `kernel_abi::CompiledKernel::run` says, and the states of the codes are large enough.
    pub unsafe fn run(&mut self, frame: *mut BlockFrame) -> Stopped {
        loop {
            let (mut ran, mut waited) = (false, false);
            for index in 0..self.warps.len() {
                match self.warps[index].state {
                    State::Ready => ran = true,
                    State::Yielded => waited = true,
                    State::Waiting | State::Done => continue,
                }
                // SAFETY: the caller's contract.
                match unsafe { self.turn(frame, index) } {
                    None => {}
                    Some(stopped) => return stopped,
                }
            }
            if ran {
                continue;
            }
            if self.live == 0 {
                return Stopped::Done;
            }
            if self.complete_any() {
                continue;
            }
            if !waited {
                return Stopped::Deadlock;
            }
            // What they wait for happens on other threads.
            std::thread::yield_now();
        }
    }

    /// Runs one warp up to its next suspension point.
    ///
    /// # Safety
    /// As for [`Schedule::run`].
    unsafe fn turn(&mut self, frame: *mut BlockFrame, index: usize) -> Option<Stopped> {
        loop {
            let warp = self.warps[index];
            let code = match (warp.plain, self.plain) {
                (true, Some(plain)) => plain,
                (true, None) => return Some(Stopped::NeedsPlainCode),
                (false, _) => self.code,
            };
            // SAFETY: the caller's contract; a warp resumes where its own code suspended it.
            let (resume, wait) = unsafe {
                (*frame).warp = index as u32;
                (*frame).state = code.state;
                (*frame).wait = warp.wait;
                let resume = (code.entry)(frame, index as u32, warp.resume);
                (resume, (*frame).wait)
            };
            let warp = &mut self.warps[index];
            match resume {
                0 => {
                    warp.state = State::Done;
                    self.live -= 1;
                    return None;
                }
                // The assumption is tested before anything is done, so the warp can start again.
                u32::MAX if warp.resume == 0 && !warp.plain => {
                    warp.plain = true;
                    continue;
                }
                _ => {}
            }
            warp.resume = resume;
            warp.wait = wait;
            if wait.kind == WaitKind::Yield as u32 {
                warp.state = State::Yielded;
                return None;
            }
            let Some(barrier) = self.barriers.get_mut(wait.barrier as usize) else {
                return Some(Stopped::NoSuchBarrier);
            };
            if wait.kind == WaitKind::Arrive as u32 {
                barrier.announced += 1;
                warp.state = State::Ready;
                // An announcement may be what others wait for.
                self.complete(wait.barrier);
                continue;
            }
            if barrier.waiting == 0 {
                barrier.threads = wait.threads;
            }
            barrier.waiting += 1;
            warp.state = State::Waiting;
            self.complete(wait.barrier);
            return None;
        }
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

    /// What the block's end, if it is not a good one, is called.
    pub fn fault_kind(stopped: Stopped) -> Option<(FaultKind, &'static str)> {
        match stopped {
            Stopped::Done | Stopped::NeedsPlainCode => None,
            Stopped::Deadlock => Some((FaultKind::Deadlock, "all warps of the block wait for each other")),
            Stopped::NoSuchBarrier => Some((FaultKind::IllegalInstruction, "a barrier number above 15")),
        }
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
        }
    }

    fn run(warps: u32, entry: WarpEntry, plain: Option<WarpEntry>) -> (Stopped, Vec<(u32, u32)>) {
        let launch = launch(warps);
        let mut frame = BlockFrame {
            launch: &launch,
            shared: ptr::null_mut(),
            local: ptr::null_mut(),
            state: ptr::null_mut(),
            ctaid: [0; 3],
            warp: 0,
            worker: 0,
            wait: Wait::default(),
            fault: kernel_abi::FaultRecord::default(),
        };
        TRACE.with_borrow_mut(Vec::clear);
        let code = |entry| WarpCode { entry, state: ptr::null_mut() };
        let mut schedule = Schedule::new(&launch, code(entry));
        schedule.start_block();
        // SAFETY: the entries of these tests touch nothing but `wait`.
        let mut stopped = unsafe { schedule.run(&mut frame) };
        if let (Stopped::NeedsPlainCode, Some(plain)) = (stopped, plain) {
            schedule.resume_with(code(plain));
            // SAFETY: as above.
            stopped = unsafe { schedule.run(&mut frame) };
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
