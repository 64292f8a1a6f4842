//! A kernel in memory: how its blocks are run, and what its faults mean.

use crate::better::Better;
use crate::late;
use crate::object::LoadedObject;
use crate::scheduler::{Schedule, Stopped, WarpCode};
use kernel_abi::{
    AlignedParam, BlockFrame, BlocksEntry, CompileError, CompiledKernel, EntryKind, Fault, FaultKind,
    FaultRecord, KernelInfo, LaunchFrame, Status, Successor, TogetherEntry, WarpEntry, float_control,
};
use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, OnceLock};

/// Supplies the code that runs where an assumption of a shape does not hold.
pub type PlainCode = Box<dyn Fn() -> Result<Arc<Kernel>, CompileError> + Send + Sync>;

/// Loaded code of a kernel.
pub struct Kernel {
    info: KernelInfo,
    entry: Entry,
    /// Keeps the code mapped.
    _object: LoadedObject,
    /// For shapes that make assumptions.
    plain: Option<PlainCode>,
    plain_found: OnceLock<Result<Arc<Kernel>, CompileError>>,
    /// For code that was made quickly.
    better: Option<Arc<Better>>,
}

#[derive(Clone, Copy)]
enum Entry {
    Blocks(BlocksEntry),
    Warps(WarpEntry, Option<TogetherEntry>),
}

/// Bytes of a stack for what calls code with large frames, and what it calls.
const BESIDE_FRAMES: usize = 256 << 10;

impl Kernel {
    /// The kernel whose entry is at `address` in `object`; what runs whole blocks, if it has that, at `together`.
    ///
    /// # Safety
    /// There is a function of the kind that `info` tells, and another one, which do what `kernel_abi` says of such functions.
    pub unsafe fn new(
        object: LoadedObject,
        address: u64,
        together: Option<u64>,
        info: KernelInfo,
        plain: Option<PlainCode>,
        better: Option<Arc<Better>>,
    ) -> Kernel {
        let at = |address: u64| ptr::with_exposed_provenance::<()>(address as usize);
        // SAFETY: the caller's contract.
        let entry = unsafe {
            match info.entry {
                EntryKind::Blocks => {
                    Entry::Blocks(std::mem::transmute::<*const (), BlocksEntry>(at(address)))
                }
                EntryKind::Warps => Entry::Warps(
                    std::mem::transmute::<*const (), WarpEntry>(at(address)),
                    together.map(|together| std::mem::transmute::<*const (), TogetherEntry>(at(together))),
                ),
            }
        };
        if info.stack_bytes > 0 {
            guard::want_stack(info.stack_bytes as usize + BESIDE_FRAMES);
        }
        Kernel { info, entry, _object: object, plain, plain_found: OnceLock::new(), better }
    }

    /// Better code, if it is there: blocks that have not begun may as well run that.
    fn better(&self) -> Option<&Kernel> {
        self.better.as_ref()?.get().map(|kernel| &**kernel)
    }

    /// Code that tests whether accesses are aligned, if a parameter is not as aligned as this code takes it to be.
    ///
    /// # Safety
    /// The frame is one of a launch of this kernel, which outlives the call.
    unsafe fn testing(&self, frame: &BlockFrame) -> Result<Option<&Kernel>, Fault> {
        let is_aligned = |param: &AlignedParam| {
            // SAFETY: a launch has as many bytes of parameters as the kernel's information says, of which these are some.
            let value =
                unsafe { (*frame.launch).params.add(param.offset as usize).cast::<u64>().read_unaligned() };
            value & u64::from(param.bytes - 1) == 0
        };
        if self.info.aligned.iter().all(is_aligned) { Ok(None) } else { self.plain_code(frame).map(Some) }
    }

    /// The code to run instead, if any.
    ///
    /// # Safety
    /// As for [`Kernel::testing`].
    unsafe fn instead(&self, frame: &BlockFrame) -> Result<Option<&Kernel>, Fault> {
        match self.better() {
            // SAFETY: the same contract.
            None => unsafe { self.testing(frame) },
            better => Ok(better),
        }
    }

    /// Has `run` run blocks with this code in frames that were made for other code of the same kernel, which may keep less while it is suspended.
    fn in_frames_of_other<R>(
        &self,
        frames: &mut [BlockFrame],
        run: impl FnOnce(&mut [BlockFrame]) -> R,
    ) -> R {
        let Some(first) = frames.first() else { return run(frames) };
        // SAFETY: the launch outlives the run.
        let warps = unsafe { (*first.launch).warps };
        let mut state = lines(self.info.state_bytes as usize * warps as usize * frames.len());
        // That of the others follows from it.
        let other = std::mem::replace(&mut frames[0].state, state.as_mut_ptr().cast());
        let result = run(frames);
        frames[0].state = other;
        result
    }

    fn plain_code(&self, frame: &BlockFrame) -> Result<&Kernel, Fault> {
        let found = self.plain_found.get_or_init(|| match &self.plain {
            Some(plain) => plain(),
            None => Err(CompileError::new("code without assumptions gave up")),
        });
        found
            .as_deref()
            .map_err(|error| fault_of(frame, FaultKind::IllegalInstruction, None, error.message.clone()))
    }

    /// # Safety
    /// As for [`CompiledKernel::run`].
    unsafe fn run_blocks(
        &self,
        entry: BlocksEntry,
        frame: &mut BlockFrame,
        first: u64,
        count: u64,
    ) -> Result<(), Fault> {
        // SAFETY: the caller's contract.
        let status = match unsafe { self.call_blocks(entry, frame, first, count) } {
            Ok(status) => status,
            // SAFETY: the same contract.
            Err(fault) if self.info.retraced => unsafe {
                return Err(self.retrace(fault, frame, first, count));
            },
            Err(fault) => {
                if fault.kind == FaultKind::Assert {
                    // SAFETY: the same contract.
                    unsafe { self.run_behind(entry, frame) };
                }
                return Err(fault);
            }
        };
        if status != Status::Deopt as u32 {
            return Ok(());
        }
        // The blocks before `ctaid` are done.
        // SAFETY: the launch outlives the run.
        let reached = unsafe { (*frame.launch).number_of(frame.ctaid) };
        let plain = self.plain_code(frame)?;
        let end = first + count;
        let reached = reached.clamp(first, end);
        match plain.entry {
            // SAFETY: the rest of the same range.
            Entry::Blocks(entry) => unsafe { plain.run_blocks(entry, frame, reached, end - reached) },
            // Where the block was one gang, its warps had nothing to wait for.
            Entry::Warps(entry, together) => {
                // SAFETY: the launch outlives the run.
                let warps = unsafe { (*frame.launch).warps };
                let mut state = lines(plain.info.state_bytes as usize * warps as usize);
                let own_state = std::mem::replace(&mut frame.state, state.as_mut_ptr().cast());
                let mut blocks = reached..end;
                let next = |launch: &LaunchFrame, _| blocks.next().map(|block| launch.ctaid(block));
                // SAFETY: the rest of the same range, with state for it.
                let result = unsafe { plain.run_warps((entry, together), std::slice::from_mut(frame), next) };
                frame.state = own_state;
                result
            }
        }
    }

    /// Runs blocks in a guarded call.
    ///
    /// # Safety
    /// As for [`CompiledKernel::run`].
    unsafe fn call_blocks(
        &self,
        entry: BlocksEntry,
        frame: &mut BlockFrame,
        first: u64,
        count: u64,
    ) -> Result<u32, Fault> {
        unsafe extern "C" fn call(job: *mut c_void, first: u64, count: u64) -> u32 {
            // SAFETY: `job` is the one below, alive for the whole call; the rest is the contract of `run`.
            unsafe {
                let job = &*job.cast::<Job>();
                set_float_control(job.flush);
                (job.entry)(job.frame, first, count)
            }
        }
        struct Job {
            entry: BlocksEntry,
            frame: *mut BlockFrame,
            flush: bool,
        }
        frame.fault = FaultRecord::default();
        let mut job = Job { entry, frame, flush: self.info.flush_subnormals };
        // SAFETY: the caller's contract; generated code owns nothing.
        let result = unsafe { guard::guarded_call(call, (&raw mut job).cast(), first, count) };
        checked(frame, result, &self.info)
    }

    /// Runs the warps of a block behind one that has failed an assertion: each says of itself whether its own hold. What else becomes of them is
    /// nobody's concern, for the launch has failed.
    ///
    /// # Safety
    /// As for [`CompiledKernel::run`], of a frame whose block and warp the code has just failed in.
    unsafe fn run_behind(&self, entry: BlocksEntry, frame: &mut BlockFrame) {
        // SAFETY: the launch outlives the run.
        let (warps, block) = unsafe { ((*frame.launch).warps, (*frame.launch).number_of(frame.ctaid)) };
        let mut next = frame.warp + 1;
        while next < warps {
            frame.from_warp = next;
            // SAFETY: the caller's contract.
            match unsafe { self.call_blocks(entry, frame, block, 1) } {
                Err(fault) if fault.kind == FaultKind::Assert && frame.warp >= next => next = frame.warp + 1,
                _ => break,
            }
        }
        frame.from_warp = 0;
    }

    /// The fault of a second run of the same blocks, with code that knows where it is; the first, and that this is not known, if that run comes to none.
    /// The launch has failed, so what either writes does not matter.
    ///
    /// # Safety
    /// As for [`CompiledKernel::run`].
    unsafe fn retrace(&self, fault: Fault, frame: &mut BlockFrame, first: u64, count: u64) -> Fault {
        let found = match self.plain_code(frame).map(|plain| (plain, plain.entry)) {
            // SAFETY: the caller's contract, of code of the same kernel.
            Ok((plain, Entry::Blocks(entry))) => unsafe {
                plain.run_blocks(entry, frame, first, count).err()
            },
            _ => None,
        };
        found.unwrap_or_else(|| {
            // SAFETY: the launch outlives the run.
            let ctaid = unsafe { (*frame.launch).ctaid(first) };
            let detail = format!("{} (in one of the {count} blocks from this on)", fault.detail);
            Fault { ctaid, warp: 0, detail, ..fault }
        })
    }

    /// Runs blocks together, and then the next, as often as `place` gives each frame, by its number, a block.
    ///
    /// # Safety
    /// As for [`CompiledKernel::run_clusters`], of the blocks that `place` answers.
    unsafe fn run_warps(
        &self,
        (entry, together): (WarpEntry, Option<TogetherEntry>),
        frames: &mut [BlockFrame],
        mut place: impl FnMut(&LaunchFrame, u32) -> Option<[u32; 3]>,
    ) -> Result<(), Fault> {
        unsafe extern "C" fn call(job: *mut c_void, _: u64, _: u64) -> u32 {
            // SAFETY: `job` is the one below, alive for the whole call; the rest is the contract of `run`.
            unsafe {
                let job = &mut *job.cast::<Job>();
                set_float_control(job.flush);
                job.stopped = (*job.schedule).run(job.frames);
            }
            0
        }
        struct Job {
            schedule: *mut Schedule,
            frames: *mut BlockFrame,
            flush: bool,
            stopped: Stopped,
        }
        let [first, ..] = &*frames else { return Ok(()) };
        // SAFETY: the launch outlives the run.
        let launch = unsafe { &*first.launch };
        let state_of = |kernel: &Kernel| kernel.info.state_bytes as usize * launch.warps as usize;
        let own_state = first.state;
        let gang = self.info.gang;
        let code = WarpCode { entry, together, state: own_state, block_bytes: state_of(self), gang };
        let mut schedule = Schedule::new(launch, frames.len(), code);
        let mut plain_state;
        let mut failed = None;
        'blocks: loop {
            for (rank, frame) in (0..).zip(frames.iter_mut()) {
                let Some(ctaid) = place(launch, rank) else { break 'blocks };
                frame.ctaid = ctaid;
            }
            schedule.start();
            loop {
                for frame in frames.iter_mut() {
                    frame.fault = FaultRecord::default();
                }
                let flush = self.info.flush_subnormals;
                let (blocks, all) = (&mut schedule, frames.as_mut_ptr());
                let mut job = Job { schedule: blocks, frames: all, flush, stopped: Stopped::Done };
                // SAFETY: the caller's contract; the scheduler's frames own nothing.
                let result = unsafe { guard::guarded_call(call, (&raw mut job).cast(), 0, 0) };
                let stopped = job.stopped;
                // That of the others follows from it.
                frames[0].state = own_state;
                let frame = &frames[schedule.rank()];
                match checked(frame, result, &self.info) {
                    Ok(_) => {}
                    // Other warps say whether theirs hold.
                    Err(fault) if fault.kind == FaultKind::Assert => {
                        failed.get_or_insert(fault);
                        let at = schedule.rank();
                        // SAFETY: the frame of the block that has just run.
                        unsafe { schedule.lose_warp(&raw mut frames[at]) };
                        continue;
                    }
                    Err(fault) => return Err(failed.unwrap_or(fault)),
                }
                if stopped == Stopped::NeedsPlainCode {
                    let plain = self.plain_code(frame)?;
                    let Entry::Warps(entry, together) = plain.entry else {
                        return Err(fault_of(
                            frame,
                            FaultKind::IllegalInstruction,
                            None,
                            "code of two kinds".into(),
                        ));
                    };
                    let block_bytes = state_of(plain);
                    plain_state = lines(block_bytes * frames.len());
                    let state = plain_state.as_mut_ptr().cast();
                    schedule.resume_with(WarpCode { entry, together, state, block_bytes, gang: 1 });
                    continue;
                }
                if let Some(fault) = failed {
                    return Err(fault);
                }
                if stopped == Stopped::Abandoned {
                    return Ok(());
                }
                if let Some((kind, detail)) = schedule.fault_kind(stopped) {
                    return Err(fault_of(frame, kind, None, detail.into()));
                }
                break;
            }
        }
        Ok(())
    }
}

/// What the state of warps is aligned to.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[expect(dead_code, reason = "generated code reads and writes it")] [u8; 64]);

fn lines(bytes: usize) -> Vec<Line> {
    vec![Line([0; 64]); bytes.div_ceil(size_of::<Line>()).max(1)]
}

impl CompiledKernel for Kernel {
    fn info(&self) -> &KernelInfo {
        &self.info
    }

    fn successor(&self) -> Option<&dyn Successor> {
        self.better.as_deref().map(|better| better as _)
    }

    unsafe fn run(&self, frame: &mut BlockFrame, first: u64, count: u64) -> Result<(), Fault> {
        // SAFETY: the same contract.
        if let Some(other) = unsafe { self.instead(frame)? } {
            return other.in_frames_of_other(std::slice::from_mut(frame), |frames| {
                // SAFETY: the same contract, with state for this code.
                unsafe { other.run(&mut frames[0], first, count) }
            });
        }
        // SAFETY: the same contract.
        unsafe {
            match self.entry {
                Entry::Blocks(entry) => self.run_blocks(entry, frame, first, count),
                Entry::Warps(..) => self.run_each(frame, &mut (first..first + count)),
            }
        }
    }

    unsafe fn run_each(
        &self,
        frame: &mut BlockFrame,
        blocks: &mut dyn Iterator<Item = u64>,
    ) -> Result<(), Fault> {
        // SAFETY: the same contract.
        if let Some(other) = unsafe { self.instead(frame)? } {
            return other.in_frames_of_other(std::slice::from_mut(frame), |frames| {
                // SAFETY: the same contract, with state for this code.
                unsafe { other.run_each(&mut frames[0], blocks) }
            });
        }
        match self.entry {
            Entry::Blocks(entry) => {
                for block in blocks {
                    // SAFETY: the same contract.
                    unsafe { self.run_blocks(entry, frame, block, 1)? };
                }
                Ok(())
            }
            Entry::Warps(entry, together) => {
                let next = |launch: &LaunchFrame, _| blocks.next().map(|block| launch.ctaid(block));
                // SAFETY: the same contract.
                unsafe { self.run_warps((entry, together), std::slice::from_mut(frame), next) }
            }
        }
    }

    unsafe fn run_clusters(&self, frames: &mut [BlockFrame], first: u64, count: u64) -> Result<(), Fault> {
        let Some(some) = frames.first() else { return Ok(()) };
        // SAFETY: the same contract.
        if let Some(other) = unsafe { self.instead(some)? } {
            return other.in_frames_of_other(frames, |frames| {
                // SAFETY: the same contract, with state for this code.
                unsafe { other.run_clusters(frames, first, count) }
            });
        }
        let mut numbers = first..first + count;
        match self.entry {
            Entry::Blocks(entry) => numbers.try_for_each(|number| {
                (0..).zip(frames.iter_mut()).try_for_each(|(rank, frame)| {
                    // SAFETY: the same contract, of each block.
                    unsafe {
                        let launch = &*frame.launch;
                        let block = launch.number_of(launch.ctaid_of_rank(number, rank));
                        self.run_blocks(entry, frame, block, 1)
                    }
                })
            }),
            Entry::Warps(entry, together) => {
                let mut number = None;
                let next = |launch: &LaunchFrame, rank| {
                    if rank == 0 {
                        number = numbers.next();
                    }
                    number.map(|number| launch.ctaid_of_rank(number, rank))
                };
                // SAFETY: the same contract.
                unsafe { self.run_warps((entry, together), frames, next) }
            }
        }
    }

    fn settle(&self, frame: &BlockFrame) -> Result<(), Fault> {
        late::settle().map_err(|fault| {
            let detail = format!("{fault} (an atomic of this block or of one before it)");
            fault_of(frame, FaultKind::IllegalAddress, Some(fault.address), detail)
        })
    }

    fn forget(&self) {
        late::forget();
    }

    fn takes_turns(&self) -> bool {
        // Wherever a warp waits for another block is a suspension point, unless the code never suspends.
        matches!(self.entry, Entry::Warps(..)) && self.info.waits
    }

    unsafe fn run_in_turns(&self, frames: &mut [BlockFrame], first: u64) -> Result<(), Fault> {
        let Some(some) = frames.first() else { return Ok(()) };
        let other = match self.better().filter(|better| better.takes_turns()) {
            // SAFETY: the same contract.
            None => unsafe { self.testing(some)? },
            better => better,
        };
        if let Some(other) = other {
            return other.in_frames_of_other(frames, |frames| {
                // SAFETY: the same contract, with state for this code.
                unsafe { other.run_in_turns(frames, first) }
            });
        }
        let mut blocks = first..first + frames.len() as u64;
        match self.entry {
            // SAFETY: the same contract.
            Entry::Warps(entry, together) => unsafe {
                self.run_warps((entry, together), frames, |launch, _| {
                    blocks.next().map(|block| launch.ctaid(block))
                })
            },
            Entry::Blocks(entry) => blocks.zip(frames).try_for_each(|(block, frame)| {
                // SAFETY: the same contract, of each block.
                unsafe { self.run_blocks(entry, frame, block, 1) }
            }),
        }
    }
}

/// Sets what generated code wants of the processor. The end of the guarded call takes it back.
///
/// # Safety
/// Runs in a guarded call, before generated code and no floating-point code of the host.
unsafe fn set_float_control(flush_subnormals: bool) {
    if flush_subnormals {
        // SAFETY: per the contract nothing that Rust compiled sees the register changed.
        unsafe {
            std::arch::asm!("ldmxcsr [{}]", in(reg) &float_control::FLUSHING, options(nostack, readonly))
        };
    }
}

/// The status of a guarded call, or the fault: one that generated code raised and recorded, or one of the processor.
///
/// Of a fault of the processor a gang's code knows the first of its warps alone.
fn checked(frame: &BlockFrame, result: Result<u32, guard::Fault>, info: &KernelInfo) -> Result<u32, Fault> {
    let gang = info.gang;
    let checked = match result {
        Ok(status) => match FaultKind::from_number(frame.fault.kind) {
            None => Ok(status),
            Some(kind) => {
                let record = frame.fault;
                let mut fault = fault_of(frame, kind, None, String::new());
                fault.lane = (record.lane < kernel_abi::WARP).then_some(record.lane);
                fault.address = (record.address != 0).then_some(record.address);
                fault.ptx_line = (record.ptx_line != 0).then_some(record.ptx_line);
                Err(fault)
            }
        },
        Err(fault) => {
            use guard::FaultKind::*;
            let kind = match fault.kind {
                Unmapped | Protected | General | Bus => FaultKind::IllegalAddress,
                StackOverflow => FaultKind::StackOverflow,
                Arithmetic | IllegalInstruction => FaultKind::IllegalInstruction,
            };
            let known = matches!(fault.kind, Unmapped | Protected | Bus);
            let mut detail = fault.to_string();
            if gang > 1 {
                detail += &format!(" (in one of the {gang} warps from {} on)", frame.warp);
            }
            Err(fault_of(frame, kind, known.then_some(fault.address), detail))
        }
    };
    match checked {
        // SAFETY: the frame's launch outlives the run, and this.
        Err(fault) => Err(turned_back(fault, info.turned, unsafe { (*frame.launch).block })),
        checked => checked,
    }
}

/// A fault of code whose warps go along this axis of blocks of this size, told as of warps that go along x.
fn turned_back(mut fault: Fault, axis: u8, block: [u32; 3]) -> Fault {
    if axis == 0 {
        return fault;
    }
    let axis = usize::from(axis);
    let mut size = block;
    size.swap(0, axis);
    let turned = fault.warp * kernel_abi::WARP + fault.lane.unwrap_or(0);
    let mut thread = [turned % size[0], turned / size[0] % size[1], turned / size[0] / size[1]];
    thread.swap(0, axis);
    let thread = (thread[2] * block[1] + thread[1]) * block[0] + thread[0];
    fault.warp = thread / kernel_abi::WARP;
    fault.lane = fault.lane.map(|_| thread % kernel_abi::WARP);
    fault
}

fn fault_of(frame: &BlockFrame, kind: FaultKind, address: Option<u64>, detail: String) -> Fault {
    Fault { kind, address, ctaid: frame.ctaid, warp: frame.warp, lane: None, ptx_line: None, detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_turned_blocks_are_told_of_the_launch_s_threads() {
        let block = [2, 16, 4];
        for axis in 0..3 {
            for thread in 0..block.iter().product() {
                let place = [thread % 2, thread / 2 % 16, thread / 32];
                let (mut turned, mut size) = (place, block);
                turned.swap(0, axis.into());
                size.swap(0, axis.into());
                let number = (turned[2] * size[1] + turned[1]) * size[0] + turned[0];
                let fault = Fault {
                    kind: FaultKind::IllegalAddress,
                    address: None,
                    ctaid: [0; 3],
                    warp: number / 32,
                    lane: Some(number % 32),
                    ptx_line: None,
                    detail: String::new(),
                };
                let told = turned_back(fault, axis, block);
                assert_eq!(
                    (told.warp, told.lane),
                    (thread / 32, Some(thread % 32)),
                    "{place:?}, axis {axis}"
                );
            }
        }
    }
}
