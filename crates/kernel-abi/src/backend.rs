//! The interface through which the device compiles and runs kernels.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use simt_ir::{Approximations, Program};

use crate::{BlockFrame, Shape, Tier};

/// A kernel to compile.
pub struct CompileRequest<'a> {
    /// The linked module as PTX text: what caches are keyed by, and what a compiler in another library reads.
    pub ptx: &'a str,
    /// Name of the kernel.
    pub entry: &'a str,
    /// Launch shape to specialise for.
    pub shape: Shape,
    /// [`Tier::Quick`]: code that is there soon will do, if it has a [successor](CompiledKernel::successor).
    pub tier: Tier,
    /// The kernel in IR, with approximations of the back end's choice; lowered on demand.
    pub program: &'a dyn Fn(Approximations) -> Result<Arc<Program>, CompileError>,
}

/// A way to run kernels.
pub trait KernelBackend: Send + Sync {
    /// A short name, for messages.
    fn name(&self) -> &'static str;

    /// Compiles a kernel, or finds it compiled. May be called from several threads at once.
    fn compile(&self, request: &CompileRequest<'_>) -> Result<Arc<dyn CompiledKernel>, CompileError>;

    /// Code of [`Tier::Patient`] that can be made beside what the program does, for a kernel of which [there is none sooner](CompileError::later).
    fn later(&self, _request: &CompileRequest<'_>) -> Option<Arc<dyn Successor + Send + Sync>> {
        None
    }

    /// A back end that can tell by a second run of a block what a fault of this one left open, its thread and line. It gives up on
    /// blocks that do not end.
    fn replayer(&self) -> Option<Arc<dyn KernelBackend>> {
        None
    }
}

/// A kernel that can run.
pub trait CompiledKernel: Send + Sync {
    /// What the device must provide for it.
    fn info(&self) -> &KernelInfo;

    /// Where this is code of [`Tier::Quick`]: faster code of the kernel, for later launches.
    fn successor(&self) -> Option<&dyn Successor> {
        None
    }

    /// Runs blocks `first .. first + count` of the launch that `frame` names, x fastest.
    ///
    /// # Safety
    /// `frame` and all it points to are as [`BlockFrame`] and [`LaunchFrame`](crate::LaunchFrame) say: `params` holds
    /// `param_bytes`, `globals` one address for each name, the windows and `state` are large enough for the block.
    /// The blocks are within the grid.
    unsafe fn run(&self, frame: &mut BlockFrame, first: u64, count: u64) -> Result<(), Fault>;

    /// Runs these blocks, one after another.
    ///
    /// # Safety
    /// As for [`run`](Self::run), of each of the blocks.
    unsafe fn run_each(
        &self,
        frame: &mut BlockFrame,
        blocks: &mut dyn Iterator<Item = u64>,
    ) -> Result<(), Fault> {
        for block in blocks {
            // SAFETY: the caller's contract.
            unsafe { self.run(frame, block, 1)? };
        }
        Ok(())
    }

    /// Runs clusters `first .. first + count` of the launch that the frames name, x fastest, one after another, the blocks of each
    /// together. There is a frame for each block, in order of rank. Blocks that never wait for each other may run one after another.
    ///
    /// # Safety
    /// Each frame is as [`run`](Self::run) says, their windows and states lie as those of a cluster do, and the clusters are within
    /// the grid.
    unsafe fn run_clusters(&self, frames: &mut [BlockFrame], first: u64, count: u64) -> Result<(), Fault> {
        for number in first..first + count {
            for (rank, frame) in (0..).zip(frames.iter_mut()) {
                // SAFETY: the launch outlives the run; the blocks of a cluster within the grid are within the grid.
                unsafe {
                    let launch = &*frame.launch;
                    self.run(frame, launch.number_of(launch.ctaid_of_rank(number, rank)), 1)?;
                }
            }
        }
        Ok(())
    }

    /// Does what this thread has kept for later of what its blocks of a launch do to memory. A thread that has run blocks, the last of them in this
    /// frame, calls it before they count as done.
    fn settle(&self, _frame: &BlockFrame) -> Result<(), Fault> {
        Ok(())
    }

    /// Forgets what this thread has kept for later: the launch has failed.
    fn forget(&self) {}

    /// Whether blocks that wait for each other may all be run by one thread, in turns.
    fn takes_turns(&self) -> bool {
        false
    }

    /// Runs blocks from `first` on, one for each frame, none of a cluster, in turns: where one waits the others go on, if
    /// [they do](Self::takes_turns).
    ///
    /// # Safety
    /// Each frame is as [`run`](Self::run) says, their states follow each other, and the blocks are within the grid.
    unsafe fn run_in_turns(&self, frames: &mut [BlockFrame], first: u64) -> Result<(), Fault> {
        for (block, frame) in (first..).zip(frames) {
            // SAFETY: the caller's contract.
            unsafe { self.run(frame, block, 1)? };
        }
        Ok(())
    }
}

/// Code that takes the place of other code.
pub trait Successor {
    /// Whether it is there, or will never be.
    fn is_settled(&self) -> bool;

    /// About how long making it takes.
    fn cost(&self) -> Duration;

    /// Adds to the time that launches have run the first code for, and answers all of it.
    fn ran(&self, more: Duration) -> Duration;

    /// Has it made, beside what the program does.
    fn begin(&self);

    /// Waits that long for this to be settled, and has it made before other code. Answers whether it is.
    fn wait_a_while(&self, most: Duration) -> bool;

    /// Waits for it; nothing where it could not be made, and the other code is to be kept.
    fn wait(&self) -> Option<Arc<dyn CompiledKernel>>;
}

/// What a compiled kernel needs and is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelInfo {
    /// Bytes of parameters.
    pub param_bytes: u32,
    /// Bytes of static shared memory.
    pub shared_bytes: u32,
    /// Alignment of the shared window.
    pub shared_align: u32,
    /// Bytes of local memory a thread needs for frames that are known; recursion needs more.
    pub local_bytes: u32,
    /// Where the kernel recurses or calls through pointers, so that its local memory is bounded by the stack limit alone: how many times that it needs
    /// besides. Code may keep more on a stack than the program knows of.
    pub stack_limits: u32,
    /// Bytes of large frames that its code has on the stack of the thread that runs it; 0 where that is no more than any thread has.
    pub stack_bytes: u32,
    /// Bytes of [`BlockFrame::state`] for each warp.
    pub state_bytes: u32,
    /// Names of the module variables it uses, in the order of [`LaunchFrame::globals`](crate::LaunchFrame::globals).
    pub globals: Vec<String>,
    /// The entry runs with the processor set to flush f32 subnormals, as operands and as results.
    pub flush_subnormals: bool,
    /// Its blocks may wait for each other: none may keep another from starting.
    pub waits: bool,
    /// They could, by a wait that is not seen in its code: threads meet in a loop that ends by what one of them reads. Or they let time pass in a
    /// loop, so that the length of one launch says nothing of the next.
    pub may_wait: bool,
    /// Consecutive warps of a block that the code runs as one: see [`WarpEntry`](crate::WarpEntry). 1 when each runs by itself.
    pub gang: u32,
    /// Where a fault ends it, the frame does not tell in which block and warp. Code for a shape that makes no assumptions does, and comes to the same
    /// fault if it runs the same blocks.
    pub retraced: bool,
    /// What its blocks load in loops, others in their column of the grid load as well, and other things those in their row do, as in a product of
    /// matrices: it is well to run some of either soon after each other.
    pub tiled: bool,
    /// In loops in steps of the grid its blocks take turns, as many as are run at once, an iteration each: the more they are, the longer are the pieces of
    /// memory that they walk along.
    pub walks: bool,
    /// Its warps are those of blocks whose x and this axis are in each other's place, unless it is 0: a frame's [`warp`](crate::BlockFrame::warp) is
    /// one of these.
    pub turned: u8,
    /// Parameters that the code takes to be multiples, without a test at each access: where one is not, code for a shape that makes no assumptions runs.
    pub aligned: Vec<AlignedParam>,
    /// Kind of the entry.
    pub entry: EntryKind,
}

/// A pointer among a kernel's parameters that is a multiple of so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlignedParam {
    /// Where its eight bytes begin among those of the parameters.
    pub offset: u32,
    /// A power of two.
    pub bytes: u32,
}

impl Default for KernelInfo {
    fn default() -> KernelInfo {
        KernelInfo {
            param_bytes: 0,
            shared_bytes: 0,
            shared_align: 0,
            local_bytes: 0,
            stack_limits: 0,
            stack_bytes: 0,
            state_bytes: 0,
            globals: Vec::new(),
            flush_subnormals: false,
            waits: false,
            may_wait: false,
            gang: 1,
            retraced: false,
            tiled: false,
            walks: false,
            turned: 0,
            aligned: Vec::new(),
            entry: EntryKind::default(),
        }
    }
}

/// The two kinds of entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EntryKind {
    /// A [`BlocksEntry`](crate::BlocksEntry).
    #[default]
    Blocks,
    /// A [`WarpEntry`](crate::WarpEntry).
    Warps,
}

/// How a range of blocks came out, as generated code says it.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// All done.
    Done = 0,
    /// An assumption of the shape does not hold: run the rest with code that does not make it.
    Deopt = 1,
}

/// Why a launch ended early.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// An access to memory that is not there (700).
    IllegalAddress = 1,
    /// An address that is no multiple of the access size (716).
    Misaligned = 2,
    /// `trap` (719).
    Trap = 3,
    /// A failed assertion (710).
    Assert = 4,
    /// Calls nested too deep, or too large a frame (reported as 700).
    StackOverflow = 5,
    /// An instruction used in a way the hardware refuses (715).
    IllegalInstruction = 6,
    /// An indirect call of something that is no function (718).
    InvalidPc = 7,
    /// An access through a window that the address does not lie in (717).
    InvalidAddressSpace = 8,
    /// All warps of a block wait for each other.
    Deadlock = 9,
    /// An access to the shared memory of a block that the cluster has not (719).
    OutsideCluster = 10,
    /// A barrier in memory at which more arrive, or more bytes come, than it can count (719).
    BarrierCount = 11,
}

impl FaultKind {
    /// Every kind.
    pub const ALL: [FaultKind; 11] = [
        FaultKind::IllegalAddress,
        FaultKind::Misaligned,
        FaultKind::Trap,
        FaultKind::Assert,
        FaultKind::StackOverflow,
        FaultKind::IllegalInstruction,
        FaultKind::InvalidPc,
        FaultKind::InvalidAddressSpace,
        FaultKind::Deadlock,
        FaultKind::OutsideCluster,
        FaultKind::BarrierCount,
    ];

    /// The kind with this number.
    pub fn from_number(number: u32) -> Option<FaultKind> {
        FaultKind::ALL.into_iter().find(|kind| *kind as u32 == number)
    }
}

impl From<simt_ir::Refusal> for FaultKind {
    fn from(refusal: simt_ir::Refusal) -> FaultKind {
        match refusal {
            simt_ir::Refusal::Illegal => FaultKind::IllegalInstruction,
            simt_ir::Refusal::Misaligned => FaultKind::Misaligned,
            simt_ir::Refusal::BarrierCount => FaultKind::BarrierCount,
            simt_ir::Refusal::Trap => FaultKind::Trap,
            simt_ir::Refusal::NoFunction => FaultKind::InvalidPc,
        }
    }
}

/// A fault and where it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// The address concerned, if one is.
    pub address: Option<u64>,
    /// Block.
    pub ctaid: [u32; 3],
    /// Warp of the block.
    pub warp: u32,
    /// Lane of the warp, when known.
    pub lane: Option<u32>,
    /// Line in the PTX, when known.
    pub ptx_line: Option<u32>,
    /// More to say, or empty.
    pub detail: String,
}

impl Fault {
    /// The thread's index in its block of this shape, when the lane is known.
    pub fn thread(&self, block: [u32; 3]) -> Option<[u32; 3]> {
        let linear = self.warp * crate::WARP + self.lane?;
        let (x, y) = (block[0].max(1), block[1].max(1));
        Some([linear % x, linear / x % y, linear / x / y])
    }
}

/// Why a kernel could not be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// What and where, for the JIT log.
    pub message: String,
    /// Something this implementation lacks, rather than a mistake in the program.
    pub unsupported: bool,
    /// There is no compiler to ask.
    pub no_compiler: bool,
    /// There is no code of [`Tier::Quick`], since any takes long to make; of the other tiers there is.
    pub later: bool,
}

impl CompileError {
    /// A mistake in the program, or a failure of the compiler.
    pub fn new(message: impl Into<String>) -> CompileError {
        CompileError { message: message.into(), unsupported: false, no_compiler: false, later: false }
    }

    /// Something that is supported, by code that takes long to make.
    pub fn later(message: impl Into<String>) -> CompileError {
        CompileError { unsupported: true, later: true, ..CompileError::new(message) }
    }

    /// The compiler is missing.
    pub fn no_compiler(message: impl Into<String>) -> CompileError {
        CompileError { no_compiler: true, ..CompileError::new(message) }
    }

    /// Something this implementation lacks.
    pub fn unsupported(message: impl Into<String>) -> CompileError {
        CompileError { unsupported: true, ..CompileError::new(message) }
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CompileError {}
