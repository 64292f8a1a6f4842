//! Structures that generated code reads and writes.
//!
//! Code generators take field offsets from `core::mem::offset_of!` on these types, so there is one definition. All
//! pointers are host addresses. Alignment and size of a field are those of the C type.

use std::ffi::c_void;

/// Threads of a warp.
pub const WARP: u32 = 32;

/// Bytes of local memory that a call takes besides the callee's frame, so that endless recursion meets its limit.
pub const CALL_BYTES: u32 = 16;

/// Named barriers of a block.
pub const BARRIERS: usize = 16;

/// What all blocks of one launch share. Read only while it runs.
#[repr(C)]
#[derive(Debug)]
pub struct LaunchFrame {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// The kernel's parameters, [`KernelInfo::param_bytes`](crate::KernelInfo) long, 64-byte aligned.
    pub params: *const u8,
    /// Addresses of module variables, in the order of `Program::globals`.
    pub globals: *const u64,
    /// Services of the host.
    pub callbacks: *const Callbacks,
    /// The device's own, for callbacks.
    pub context: *const c_void,
    /// Bytes of dynamic shared memory.
    pub dynamic_shared_bytes: u32,
    /// Bytes of the shared window: static, padding and dynamic.
    pub shared_bytes: u32,
    /// Bytes of each thread's local window, a multiple of 16.
    pub local_bytes: u32,
    /// Warps of a block.
    pub warps: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Number of workers, what `%nsmid` says.
    pub sm_count: u32,
    /// `%gridid`.
    pub grid_id: u64,
    /// Address of the memory by which the blocks of a cooperative grid meet: 64 bytes, zero when it starts, the second word a
    /// counter. `%envreg1` is the upper half of the address and `%envreg2` the lower. 0 in other grids.
    pub grid_workspace: u64,
}

// SAFETY: a launch frame is read only while shared; what it points to outlives the launch (the device's duty).
unsafe impl Send for LaunchFrame {}
// SAFETY: as above.
unsafe impl Sync for LaunchFrame {}

/// What one block in flight owns. Generated code gets a pointer to it as first argument.
#[repr(C)]
#[derive(Debug)]
pub struct BlockFrame {
    /// The launch.
    pub launch: *const LaunchFrame,
    /// The block's shared window, 1024-byte aligned, followed by unmapped memory.
    pub shared: *mut u8,
    /// Local windows of the block's threads, one after another by linear thread index, 64-byte aligned.
    pub local: *mut u8,
    /// Memory for values that live across suspension points: [`KernelInfo::state_bytes`](crate::KernelInfo) for each warp,
    /// 64-byte aligned.
    pub state: *mut u8,
    /// The block being run; generated code (or the scheduler) stores it when it starts a block.
    pub ctaid: [u32; 3],
    /// The warp being run; stored when a warp starts or resumes.
    pub warp: u32,
    /// Index of the worker, what `%smid` says.
    pub worker: u32,
    /// See [`Wait`].
    pub wait: Wait,
    /// What a fault raised by generated code is about; the rest of the fault is taken from this frame.
    pub fault: FaultRecord,
}

/// Why a warp suspended, written by a warp entry before it returns, and what it gets when it resumes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Wait {
    /// A [`WaitKind`].
    pub kind: u32,
    /// Barrier number.
    pub barrier: u32,
    /// Threads that take part; 0 for the whole block.
    pub threads: u32,
    /// Lanes of the warp that arrive here.
    pub lanes: u32,
    /// Lanes whose predicate holds, for reductions.
    pub votes: u32,
    /// Set by the scheduler before it resumes the warp: the number of votes of all threads that took part.
    pub result: u32,
    /// Likewise: the number of threads that took part.
    pub arrived: u32,
}

/// Why a warp returned.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitKind {
    /// At a barrier, until enough threads have arrived.
    Barrier = 0,
    /// At a barrier, without waiting (`bar.arrive`).
    Arrive = 1,
    /// For something another block or the host does (a polling loop, `nanosleep`): resume later.
    Yield = 2,
}

/// Written by generated code before it leaves through the fault exit.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct FaultRecord {
    /// A [`FaultKind`](crate::FaultKind) as number.
    pub kind: u32,
    /// A lane it concerns, or 32 and above when unknown.
    pub lane: u32,
    /// The address, where one is concerned.
    pub address: u64,
    /// Line in the PTX, or 0.
    pub ptx_line: u32,
}

/// Services that generated code calls. `mask` names the lanes that call; arrays have 32 elements, one a lane, and elements of lanes
/// outside the mask are neither read nor written. None of these unwinds or faults.
#[repr(C)]
#[derive(Debug)]
pub struct Callbacks {
    /// Device `printf`: formats and argument blocks by generic address; results as C `int`s, -1 on failure.
    pub vprintf: unsafe extern "C" fn(
        frame: *mut BlockFrame,
        mask: u32,
        formats: *const u64,
        arguments: *const u64,
        results: *mut i32,
    ),
    /// Reports a failed assertion of the lowest lane. Generated code then raises `FaultKind::Assert`.
    pub assert_fail: unsafe extern "C" fn(
        frame: *mut BlockFrame,
        mask: u32,
        messages: *const u64,
        files: *const u64,
        lines: *const u32,
        functions: *const u64,
    ),
    /// Device heap: addresses, 0 when exhausted.
    pub malloc: unsafe extern "C" fn(frame: *mut BlockFrame, mask: u32, sizes: *const u64, results: *mut u64),
    /// Device heap: gives back; 0 is ignored.
    pub free: unsafe extern "C" fn(frame: *mut BlockFrame, mask: u32, addresses: *const u64),
    /// Nanoseconds of a clock that all blocks share (`%globaltimer`).
    pub global_timer: unsafe extern "C" fn() -> u64,
    /// Sleeps about so many nanoseconds, a millisecond at most.
    pub nanosleep: unsafe extern "C" fn(nanoseconds: u32),
}

/// Entry of a kernel without suspension points: runs blocks `first .. first + count`, numbered x fastest. Answers a [`Status`](crate::Status) as number;
/// on `Deopt`, `ctaid` names the block it did not start, and all before it are done.
pub type BlocksEntry = unsafe extern "C" fn(frame: *mut BlockFrame, first: u64, count: u64) -> u32;

/// Entry of a kernel with suspension points: runs one warp of block `frame.ctaid` from its beginning (`resume` 0) or from
/// where it suspended. Answers 0 when the warp has ended, else the `resume` to go on with, `frame.wait` saying why;
/// `u32::MAX` is [`Status::Deopt`](crate::Status::Deopt), only for `resume` 0, and then nothing was done.
pub type WarpEntry = unsafe extern "C" fn(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32;
