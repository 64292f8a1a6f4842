//! Blocks whose warps come to the same barriers together and end together, as most do: then there is nothing to keep account of for each
//! warp, and what a barrier costs is little beside the code between two of them.

use kernel_abi::{BARRIERS, BlockFrame, Parted, TogetherEntry, WARP, Wait, WaitKind};

use super::{Schedule, Stopped, Turn};

/// What a warp did in its turn: where it goes on, and what it waits for.
#[derive(Clone, Copy)]
pub(super) struct Came {
    resume: u32,
    wait: Wait,
}

impl Came {
    /// What the frame says of the warp that has just run.
    ///
    /// # Safety
    /// The frame is one.
    unsafe fn of(frame: *const BlockFrame, resume: u32) -> Came {
        // One by one, as they were written: a processor is late with what it reads across several writes.
        // SAFETY: the caller's contract.
        let [kind, barrier, threads, lanes, votes] = unsafe {
            let wait = &raw const (*frame).wait;
            [
                (&raw const (*wait).kind).read_volatile(),
                (&raw const (*wait).barrier).read_volatile(),
                (&raw const (*wait).threads).read_volatile(),
                (&raw const (*wait).lanes).read_volatile(),
                (&raw const (*wait).votes).read_volatile(),
            ]
        };
        Came { resume, wait: Wait { kind, barrier, threads, lanes, votes, ..Wait::default() } }
    }

    /// Whether it has ended, or waits at a barrier for the whole block of so many warps.
    fn is_usual(&self, warps: usize) -> bool {
        let Wait { kind, barrier, threads, .. } = self.wait;
        let whole = threads == 0 || threads.div_ceil(WARP) as usize == warps;
        let waits = kind == WaitKind::Barrier as u32 && (barrier as usize) < BARRIERS && whole;
        self.resume == 0 || self.resume != u32::MAX && waits
    }

    /// Whether two warps have done the same.
    fn is_like(&self, other: &Came) -> bool {
        let meet = self.wait.barrier == other.wait.barrier && self.wait.threads == other.wait.threads;
        self.resume == other.resume && (self.resume == 0 || meet)
    }
}

/// What is known of warps that have their turns together.
#[derive(Clone, Copy)]
pub(super) enum Together {
    /// All were at this suspension point; what the first has done since.
    Scheduled { resume: u32, before: Votes, first: Option<Came> },
    /// [`Schedule::parted`] says it.
    ByEntry,
}

/// The lanes that were at a barrier, and those among them that voted for.
#[derive(Clone, Copy, Default)]
pub(super) struct Votes {
    all: u32,
    votes: u32,
}

impl Schedule {
    /// Runs all warps of the current block from their start until one does something else than those before it. Leaves each at its last
    /// suspension point; answers how many of them have had their turn.
    ///
    /// # Safety
    /// As for [`Schedule::run_block`].
    pub(super) unsafe fn run_together(&mut self, frame: *mut BlockFrame) -> Result<usize, Stopped> {
        let code = self.code;
        let warps = self.blocks[self.rank].warps.len();
        let (mut resume, mut before) = (0, Votes::default());
        // SAFETY: the caller's contract.
        unsafe { (*frame).state = code.state.wrapping_add(self.rank * code.block_bytes) };
        if let Some(together) = code.together {
            // SAFETY: the caller's contract.
            return unsafe { self.run_by_entry(frame, together) };
        }
        self.blocks[self.rank].reset(code.gang);
        loop {
            let mut first: Option<Came> = None;
            self.together = Some(Together::Scheduled { resume, before, first });
            let mut now = Votes::default();
            for index in (0..warps).step_by(code.gang as usize) {
                // SAFETY: the caller's contract; all warps suspended there.
                let own = unsafe {
                    (*frame).warp = index as u32;
                    ((*frame).wait.result, (*frame).wait.arrived) = (before.votes, before.all);
                    let resume = (code.entry)(frame, index as u32 / code.gang, resume);
                    Came::of(frame, resume)
                };
                if first.is_none() {
                    first = Some(own);
                    self.together = Some(Together::Scheduled { resume, before, first });
                }
                let first = first.unwrap_or(own);
                if !own.is_usual(warps) || !own.is_like(&first) {
                    // SAFETY: the caller's contract.
                    let stopped = unsafe { self.part(frame, (resume, before), index, first, own) };
                    return stopped.map_or(Ok(index + code.gang as usize), Err);
                }
                // Kept for the case that another does something else.
                let known = &mut self.blocks[self.rank].warps[index].wait;
                (known.lanes, known.votes) = (own.wait.lanes, own.wait.votes);
                now.all += own.wait.lanes.count_ones();
                now.votes += own.wait.votes.count_ones();
            }
            resume = first.map_or(0, |first| first.resume);
            if resume == 0 {
                self.together = None;
                return Ok(self.all_ended());
            }
            before = now;
        }
    }

    /// Likewise by code of the kernel's own.
    ///
    /// # Safety
    /// As for [`Schedule::run_block`]; the frame names the block's state.
    unsafe fn run_by_entry(
        &mut self,
        frame: *mut BlockFrame,
        together: TogetherEntry,
    ) -> Result<usize, Stopped> {
        let gang = self.code.gang as usize;
        let gangs = self.blocks[self.rank].warps.len() / gang;
        self.parted = Parted::default();
        self.together = Some(Together::ByEntry);
        // SAFETY: the caller's contract.
        let ended = unsafe { together(frame, gangs as u32, &raw mut self.parted) } != 0;
        self.together = None;
        if ended {
            return Ok(self.all_ended());
        }
        self.blocks[self.rank].reset(self.code.gang);
        let Parted { resume, at, first, own, barrier } = self.parted;
        let index = at as usize * gang;
        // SAFETY: the caller's contract.
        let own = unsafe { Came::of(frame, own) };
        let wait = Wait { kind: WaitKind::Barrier as u32, barrier, ..Wait::default() };
        let first = if at == 0 { own } else { Came { resume: first, wait } };
        // SAFETY: the caller's contract.
        let stopped = unsafe { self.part(frame, (resume, Votes::default()), index, first, own) };
        stopped.map_or(Ok(index + gang), Err)
    }

    /// The warps of the current block have ended; answers how many they are.
    fn all_ended(&mut self) -> usize {
        let block = &mut self.blocks[self.rank];
        let ended = std::mem::take(&mut block.live);
        self.ended(ended);
        ended as usize
    }

    /// Takes account of each warp. They were together at suspension point `resume`; since then those before the one at `index` have done
    /// what the first did, that one something else, and the others nothing.
    ///
    /// # Safety
    /// As for [`Schedule::run_block`].
    unsafe fn part(
        &mut self,
        frame: *mut BlockFrame,
        (resume, before): (u32, Votes),
        index: usize,
        first: Came,
        own: Came,
    ) -> Option<Stopped> {
        self.together = None;
        if let Some(stopped) = self.account(index, (resume, before), first) {
            return Some(stopped);
        }
        match self.settle(index, own.resume, own.wait) {
            // SAFETY: the caller's contract.
            Turn::Again => unsafe { self.turn(frame, index) },
            Turn::Over => None,
            Turn::Stopped(stopped) => Some(stopped),
        }
    }

    /// Takes account of each warp that has done what the first did, of so many, and of where the others are.
    fn account(&mut self, index: usize, (resume, before): (u32, Votes), first: Came) -> Option<Stopped> {
        let gang = self.code.gang as usize;
        for leader in self.blocks[self.rank].warps.iter_mut().step_by(gang) {
            leader.resume = resume;
            (leader.wait.result, leader.wait.arrived) = (before.votes, before.all);
        }
        for at in (0..index).step_by(gang) {
            let Wait { lanes, votes, .. } = self.blocks[self.rank].warps[at].wait;
            // What is usual needs no second turn.
            if let Turn::Stopped(stopped) = self.settle(at, first.resume, Wait { lanes, votes, ..first.wait })
            {
                return Some(stopped);
            }
        }
        None
    }

    /// Likewise where the warp at `index` has failed an assertion.
    pub(super) fn account_for_those_before(&mut self, index: usize, together: Together) {
        let (at, first) = match together {
            Together::Scheduled { resume, before, first } => ((resume, before), first),
            Together::ByEntry => {
                self.blocks[self.rank].reset(self.code.gang);
                let Parted { resume, first, barrier, .. } = self.parted;
                let wait = Wait { kind: WaitKind::Barrier as u32, barrier, ..Wait::default() };
                ((resume, Votes::default()), Some(Came { resume: first, wait }))
            }
        };
        let first = first.unwrap_or(Came { resume: 0, wait: Wait::default() });
        // What is wrong now is nothing beside the assertion.
        let _ = self.account(index, at, first);
    }
}
