//! The threads of one block: their turns, and where they meet.

use kernel_abi::{BARRIERS, BlockFrame, Fault, FaultKind, WARP};
use simt_ir::texture::TextureOp;
use simt_ir::{Access, BarrierKind, Op, Program, Type, mbarrier};

use crate::memory::{self, BadAccess};
use crate::texture;
use crate::thread::{Arrival, BlockContext, Event, Location, State, Thread};
use crate::warp::{self, Member, Others};

/// Instructions a warp executes before another one gets its turn: threads that wait for each other through memory make progress.
const QUANTUM: u32 = 2000;

/// A block being run.
pub struct Block<'a> {
    /// What its threads share.
    pub context: BlockContext<'a>,
    /// Its threads, by their index.
    pub threads: Vec<Thread<'a>>,
    /// For each barrier the threads that have announced themselves without waiting.
    arrivals: Vec<Vec<(u32, Arrival)>>,
    /// Instructions left.
    budget: Option<u64>,
    /// Of the first thread whose assertion has failed. Its warp is lost: it never goes on, and others wait for it in vain.
    failed: Option<Fault>,
}

impl<'a> Block<'a> {
    /// Block `frame.ctaid`, which runs for about `budget` instructions at the most.
    ///
    /// # Safety
    /// As for [`kernel_abi::CompiledKernel::run`], as long as the block is used.
    pub unsafe fn new(program: &'a Program, frame: &'a mut BlockFrame, budget: Option<u64>) -> Block<'a> {
        let ctaid = frame.ctaid;
        // SAFETY: the launch outlives the run.
        let launch = unsafe { &*frame.launch };
        let context = BlockContext { program, launch, frame, ctaid };
        let threads = (0..launch.threads).map(|linear| Thread::new(&context, linear)).collect();
        Block { context, threads, arrivals: vec![Vec::new(); BARRIERS], budget, failed: None }
    }

    /// Whether all its threads have ended.
    pub fn is_done(&self) -> bool {
        self.threads.iter().all(|thread| thread.state == State::Done)
    }

    /// Whether an assertion has failed.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Its fault, if an assertion has failed.
    pub fn take_failed(&mut self) -> Option<Fault> {
        self.failed.take()
    }

    /// Gives each thread a turn and lets those meet that have come together; barriers only if nobody else can go on. Whether anything
    /// has happened. `phase` is the cluster's barrier's.
    pub fn round(&mut self, phase: u64) -> Result<bool, Fault> {
        // Whether anybody went on, and the shortest sleep if all who did fell asleep.
        let (mut progress, mut awake, mut sleep) = (false, false, u32::MAX);
        for first in (0..self.threads.len()).step_by(WARP as usize) {
            let last = (first + WARP as usize).min(self.threads.len());
            let ready = self.lanes(&(first..last), |thread| thread.state == State::Ready);
            self.warp_turn(first, ready, phase)?;
            for index in (first..last).filter(|index| ready >> (index - first) & 1 != 0) {
                progress = true;
                match self.threads[index].sleeps {
                    Some(time) => sleep = sleep.min(time),
                    None => awake = true,
                }
            }
        }
        for first in (0..self.threads.len()).step_by(WARP as usize) {
            let last = (first + WARP as usize).min(self.threads.len());
            let met = self.meet(first..last, false)?;
            (progress, awake) = (progress | met, awake | met);
        }
        // Somebody may poll memory for what another does after a barrier.
        let passed = self.complete_barrier(progress)?;
        if progress && !passed && !awake {
            // SAFETY: callbacks are the device's and hold while it runs.
            unsafe { ((*self.context.launch.callbacks).nanosleep)(sleep) };
        }
        Ok(progress || passed)
    }

    /// Executes a warp operation for whoever has come to it. Whether there is one.
    pub fn go_on_without_absent_lanes(&mut self) -> Result<bool, Fault> {
        for first in (0..self.threads.len()).step_by(WARP as usize) {
            let last = (first + WARP as usize).min(self.threads.len());
            if self.meet(first..last, true)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lets these lanes of a warp go on, an instruction each at a time. Lanes that go the same way are at the same place, as a device has them
    /// where it can: what one stores after all of them have read is not read by any.
    fn warp_turn(&mut self, first: usize, mut ready: u32, phase: u64) -> Result<(), Fault> {
        for _ in 0..QUANTUM {
            if ready == 0 {
                break;
            }
            let going = ready;
            let mut failed = None;
            for lane in (0..WARP).filter(|lane| going >> lane & 1 != 0) {
                let index = first + lane as usize;
                let place = self.threads[index].location();
                match self.turn(index, 1, phase) {
                    Ok(()) => {}
                    Err(fault) if fault.kind == FaultKind::Assert => {
                        failed = Some((fault, index, place));
                        break;
                    }
                    Err(fault) => return Err(fault),
                }
                let thread = &self.threads[index];
                if thread.state != State::Ready || thread.sleeps.is_some() {
                    ready &= !(1 << lane);
                }
            }
            if let Some((fault, index, place)) = failed {
                self.let_warp_assert(first, index, place, phase);
                self.lose_warp(first, fault);
                break;
            }
        }
        Ok(())
    }

    /// Has the other lanes of a warp come to the place where the assertion of one has failed: on a device, whose lanes go together, every lane
    /// whose assertion fails there says so. Here some may be behind.
    fn let_warp_assert(&mut self, first: usize, failed: usize, place: Location, phase: u64) {
        let turned_back = self.threads[failed].turned_back;
        let last = (first + WARP as usize).min(self.threads.len());
        for other in (first..last).filter(|other| *other != failed) {
            for _ in 0..QUANTUM {
                let thread = &self.threads[other];
                let here = thread.location();
                let is_past = (here.0, here.1) == (place.0, place.1) && here > place;
                if thread.state != State::Ready || thread.turned_back > turned_back {
                    break;
                }
                if thread.turned_back == turned_back
                    && here == place
                    && thread.is_called_as(&self.threads[failed])
                {
                    // The first fault is the block's.
                    let _ = self.turn(other, 1, phase);
                    break;
                }
                let is_over = thread.turned_back == turned_back && is_past;
                if is_over
                    || thread.is_at_assertion(self.context.program)
                    || self.turn(other, 1, phase).is_err()
                {
                    break;
                }
            }
        }
    }

    /// An assertion of this warp has failed: on a device it stops as a whole, and the others go on.
    fn lose_warp(&mut self, first: usize, fault: Fault) {
        self.failed.get_or_insert(fault);
        let last = (first + WARP as usize).min(self.threads.len());
        for thread in &mut self.threads[first..last] {
            if thread.state != State::Done {
                thread.state = State::Lost;
            }
        }
    }

    /// Lets a thread execute so many instructions at the most.
    fn turn(&mut self, index: usize, instructions: u32, phase: u64) -> Result<(), Fault> {
        if let Some(left) = &mut self.budget {
            // A turn that ends early counts whole: nobody relies on the exact number.
            *left = left.saturating_sub(instructions.into());
            if *left == 0 {
                return Err(self.fault(index, FaultKind::Deadlock, None, 0, "the block does not end".into()));
            }
        }
        match self.threads[index].run(&self.context, instructions) {
            Ok(()) => Ok(()),
            Err(Event::Arrived(arrival)) => {
                let slot = self.slot(arrival.barrier, index)?;
                self.arrivals[slot].push((index as u32, arrival));
                Ok(())
            }
            Err(Event::ArrivedInCluster) => {
                self.threads[index].cluster_phase = Some(phase);
                Ok(())
            }
            Err(Event::Fault { kind, address, ptx_line, detail }) => {
                Err(self.fault(index, kind, address, ptx_line, detail))
            }
        }
    }

    fn fault(&self, index: usize, kind: FaultKind, address: Option<u64>, line: u32, detail: String) -> Fault {
        let thread = &self.threads[index];
        Fault {
            kind,
            address,
            ctaid: self.context.ctaid,
            warp: thread.linear / WARP,
            lane: Some(thread.lane()),
            ptx_line: (line != 0).then_some(line),
            detail,
        }
    }

    fn slot(&self, barrier: u32, index: usize) -> Result<usize, Fault> {
        if (barrier as usize) < BARRIERS {
            return Ok(barrier as usize);
        }
        let detail = format!("there is no barrier {barrier}");
        Err(self.fault(index, FaultKind::IllegalInstruction, None, 0, detail))
    }

    /// Executes a warp operation for which all lanes have come. When `force` is set, for whoever is there.
    fn meet(&mut self, warp: std::ops::Range<usize>, force: bool) -> Result<bool, Fault> {
        let ready = self.threads[warp.clone()].iter().any(|thread| thread.state == State::Ready);
        let live = self.lanes(&warp, |thread| thread.state != State::Done);
        let mut groups: Vec<(Op, Option<u32>, Vec<usize>)> = Vec::new();
        for index in warp.clone() {
            let State::Warp(op, args) = &self.threads[index].state else { continue };
            let mask = op.member_mask(args.len()).map(|at| args[at] as u32);
            let same = groups.iter_mut().find(|(o, m, members)| {
                // Calls from two branches are two places, as they are where the function is inlined.
                let together = || self.threads[members[0]].is_beside(&self.threads[index]);
                o == op && *m == mask && (mask.is_some() || together())
            });
            match same {
                Some((_, _, members)) => members.push(index),
                None => groups.push((*op, mask, vec![index])),
            }
        }
        // Without a member mask the lanes that happen to be together take part: those furthest behind go first. To a product of matrices all
        // must come: whatever else lanes have come to goes before it.
        groups.sort_by_key(|(op, _, members)| {
            let (depth, func, block, at) = self.threads[members[0]].location();
            (matches!(op, Op::MatrixMultiply(_)), std::cmp::Reverse(depth), func, block, at)
        });
        let complete = groups.into_iter().find(|(op, mask, members)| {
            let here = members.iter().fold(0, |set, i| set | 1u32 << self.threads[*i].lane());
            match mask {
                Some(mask) => mask & live & !here == 0 || force,
                // Nobody needs to wait for who stores or arrives later: that may be a lane that polls for what this one does.
                None => !ready || matches!(op, Op::Texture(_) | Op::MbarrierArrive { .. }),
            }
        });
        let Some((op, _, members)) = complete else { return Ok(false) };
        match op {
            Op::Texture(op) => self.store(&op, &members)?,
            Op::MbarrierArrive { drop, access, .. } => self.arrive(drop, &access, &members)?,
            op => self.execute(op, &members)?,
        }
        Ok(true)
    }

    /// A store to a surface by the lanes that have come to it.
    fn store(&mut self, op: &TextureOp, members: &[usize]) -> Result<(), Fault> {
        let program = self.context.program;
        let lanes: Vec<(u32, &[u64])> = members
            .iter()
            .map(|index| match &self.threads[*index].state {
                State::Warp(_, args) => (self.threads[*index].lane(), &args[..]),
                _ => unreachable!("members wait at the operation"),
            })
            .collect();
        let first = members[0];
        if let Err(wrong) = texture::serve(&self.context, self.threads[first].linear / WARP, op, &lanes) {
            let index = members.iter().find(|index| self.threads[**index].lane() == wrong.lane);
            let line = self.threads[first].warp_operation_line(program);
            let index = *index.unwrap_or(&first);
            return Err(self.fault(index, wrong.kind, Some(wrong.address), line, String::new()));
        }
        for index in members {
            self.threads[*index].resume(program, &[]);
        }
        Ok(())
    }

    /// Arrivals at barriers in memory by the lanes that have come to it.
    fn arrive(&mut self, drop: bool, access: &Access, members: &[usize]) -> Result<(), Fault> {
        let program = self.context.program;
        let each = |bad: BadAccess, block: &Block<'_>, index: usize| {
            let line = block.threads[index].warp_operation_line(program);
            block.fault(index, bad.kind, Some(bad.address), line, String::new())
        };
        let mut before = Vec::new();
        for index in members {
            let place = self.threads[*index].barrier_place(access, program);
            let old = place.and_then(|at| Ok((at, memory::load(Type::I64, at)?)));
            before.push(old.map_err(|bad| each(bad, self, *index))?);
        }
        for (index, (at, first)) in members.iter().zip(before) {
            let State::Warp(_, args) = &self.threads[*index].state else {
                unreachable!("members wait at the operation")
            };
            let (count, bytes) = (args[1] as u32, args[2] as u32);
            let now = memory::update(Type::I64, at, |old| mbarrier::arrive(old, count, bytes, drop));
            let now = now.map_err(|bad| each(bad, self, *index))?;
            let too_many = mbarrier::is_too_many(first, now, count);
            self.threads[*index].resume(program, &[first, too_many.into()]);
        }
        Ok(())
    }

    fn lanes(&self, warp: &std::ops::Range<usize>, holds: impl Fn(&Thread<'_>) -> bool) -> u32 {
        self.threads[warp.clone()].iter().filter(|t| holds(t)).fold(0, |set, t| set | 1 << t.lane())
    }

    fn execute(&mut self, op: Op, members: &[usize]) -> Result<(), Fault> {
        let program = self.context.program;
        let inputs: Vec<Member> = members
            .iter()
            .map(|index| {
                let thread = &self.threads[*index];
                let State::Warp(_, args) = &thread.state else {
                    unreachable!("members wait at the operation")
                };
                let types = thread.warp_operand_types(program);
                Member { lane: thread.lane(), args: args.iter().copied().zip(types).collect() }
            })
            .collect();
        let rest = Rest { threads: &self.threads, first: members[0], program };
        let results = warp::execute(op, self.threads[members[0]].linear / WARP, &inputs, &rest);
        let results = results.map_err(|bad| {
            let line = self.threads[members[0]].warp_operation_line(program);
            self.fault(members[0], bad.kind, Some(bad.address), line, String::new())
        })?;
        for (index, results) in members.iter().zip(results) {
            self.threads[*index].resume(program, &results);
        }
        Ok(())
    }

    /// Lets one barrier go at which enough threads have arrived; if `whole`, only when nobody else of their warps can come to it.
    fn complete_barrier(&mut self, whole: bool) -> Result<bool, Fault> {
        for barrier in 0..BARRIERS {
            let waiting: Vec<(usize, Arrival)> = (0..self.threads.len())
                .filter_map(|index| match self.threads[index].state {
                    State::Barrier(arrival) if arrival.barrier as usize == barrier => Some((index, arrival)),
                    _ => None,
                })
                .collect();
            let Some((index, first)) = waiting.first() else { continue };
            let announced = &self.arrivals[barrier];
            // The whole block is no number of warps.
            let warps_of = |arrival: &Arrival| arrival.threads.div_ceil(WARP);
            let mut others =
                waiting.iter().map(|(_, other)| other).chain(announced.iter().map(|(_, other)| other));
            if others.any(|other| warps_of(other) != warps_of(first)) {
                let detail = format!("threads come to barrier {barrier} with other numbers of threads");
                return Err(self.fault(*index, FaultKind::IllegalInstruction, None, 0, detail));
            }
            let enough = if first.threads == 0 {
                let at_barrier = waiting.len() + announced.len();
                at_barrier >= self.threads.iter().filter(|t| t.state != State::Done).count()
            } else {
                // The hardware counts warps: a warp whose threads come, or have ended, counts whole.
                let mut warps: Vec<u32> = waiting.iter().map(|(index, _)| *index as u32 / WARP).collect();
                warps.extend(announced.iter().map(|(index, _)| index / WARP));
                warps.sort_unstable();
                warps.dedup();
                warps.len() as u32 * WARP >= first.threads
            };
            if !enough || whole && !self.have_come_whole(barrier) {
                continue;
            }
            let votes = waiting.iter().filter(|(_, arrival)| arrival.vote).count() as u64;
            let arrived = waiting.len() as u64;
            for (index, arrival) in waiting {
                let results: &[u64] = match arrival.kind {
                    BarrierKind::Sync | BarrierKind::Arrive => &[],
                    BarrierKind::RedPopc => &[votes],
                    BarrierKind::RedAnd => &[(votes == arrived) as u64],
                    BarrierKind::RedOr => &[(votes > 0) as u64],
                };
                self.threads[index].resume(self.context.program, results);
            }
            self.arrivals[barrier].clear();
            return Ok(true);
        }
        // A barrier number out of range is waited for by nobody else.
        for index in 0..self.threads.len() {
            if let State::Barrier(arrival) = self.threads[index].state {
                self.slot(arrival.barrier, index)?;
            }
        }
        Ok(false)
    }

    /// Whether of each warp that is at a barrier all threads are, or have ended.
    fn have_come_whole(&self, barrier: usize) -> bool {
        let come = |index: usize| match self.threads[index].state {
            State::Barrier(arrival) => arrival.barrier as usize == barrier,
            _ => self.arrivals[barrier].iter().any(|(thread, _)| *thread as usize == index),
        };
        let mut warps = (0..self.threads.len()).step_by(WARP as usize).map(|first| {
            let last = (first + WARP as usize).min(self.threads.len());
            first..last
        });
        warps.all(|mut warp| {
            !warp.clone().any(come)
                || warp.all(|index| come(index) || self.threads[index].state == State::Done)
        })
    }

    /// That all threads wait, those of the other blocks of its cluster too.
    pub fn deadlock(&self, in_cluster: bool) -> Fault {
        let index = self.threads.iter().position(|t| t.state != State::Done).unwrap_or(0);
        let at = match &self.threads[index].state {
            State::Barrier(arrival) => format!("at barrier {}", arrival.barrier),
            State::ClusterBarrier => "at the cluster's barrier".to_string(),
            _ => "at a warp operation".to_string(),
        };
        let group = if in_cluster { "cluster" } else { "block" };
        let detail = format!("all threads of the {group} wait, the first of them {at}");
        self.fault(index, FaultKind::Deadlock, None, 0, detail)
    }
}

/// The block around a warp operation.
struct Rest<'a, 'b> {
    threads: &'b [Thread<'a>],
    /// One that has come to the operation.
    first: usize,
    program: &'a Program,
}

impl Others for Rest<'_, '_> {
    fn held(&self, lane: u32) -> Vec<u64> {
        let thread = self.threads.get(self.first / WARP as usize * WARP as usize + lane as usize);
        thread.map_or_else(Vec::new, |thread| thread.held(&self.threads[self.first], self.program))
    }

    fn load_shared(&self, address: u32, bytes: usize) -> Result<u64, BadAccess> {
        self.threads[self.first].load_shared(address, bytes)
    }
}
