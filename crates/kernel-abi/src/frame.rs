//! Structures that generated code reads and writes.
//!
//! Code generators take field offsets from `core::mem::offset_of!` on these types, so there is one definition. All
//! pointers are host addresses. Alignment and size of a field are those of the C type.

use std::ffi::c_void;

pub use simt_ir::{CLUSTER_STRIDE, MAX_CLUSTER, RESERVED_SHARED, RESERVED_SHARED_USED};

/// Shared memory is allocated in pieces of so many bytes.
pub const SHARED_UNIT: u32 = 128;

/// Threads of a warp.
pub const WARP: u32 = 32;

/// Warps that a processor can hold, what `%nwarpid` says.
pub const MAX_WARPS: u32 = 64;

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
    /// Bytes of the shared window: [`RESERVED_SHARED`], static, padding and dynamic.
    pub shared_bytes: u32,
    /// Bytes of each thread's local window, a multiple of 16.
    pub local_bytes: u32,
    /// Warps of a block.
    pub warps: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Number of multiprocessors, what `%nsmid` says.
    pub sm_count: u32,
    /// `%gridid`.
    pub grid_id: u64,
    /// Address of the memory by which the blocks of a cooperative grid meet: 64 bytes, zero when it starts, the second word a
    /// counter. `%envreg1` is the upper half of the address and `%envreg2` the lower. 0 in other grids.
    pub grid_workspace: u64,
    /// Blocks of a cluster in x, y, z; they divide those of the grid. All 1 where blocks are by themselves.
    pub cluster: [u32; 3],
    /// The launch or the kernel asks for clusters: `%is_explicit_cluster`.
    pub explicit_cluster: u32,
    /// `%current_graph_exec`: what kernels know the graph by that the launch is of; 0 if they cannot launch it.
    pub graph: u64,
}

impl LaunchFrame {
    /// Blocks of a cluster.
    pub fn cluster_blocks(&self) -> u32 {
        self.cluster.iter().product()
    }

    /// Index of block `number`, x fastest.
    pub fn ctaid(&self, number: u64) -> [u32; 3] {
        unfold(number, self.grid)
    }

    /// Number of a block.
    pub fn number_of(&self, ctaid: [u32; 3]) -> u64 {
        fold(ctaid, self.grid)
    }

    /// Index of the block of this rank of cluster `number`; both are counted x fastest.
    pub fn ctaid_of_rank(&self, number: u64, rank: u32) -> [u32; 3] {
        let clusters = self.clusters();
        let (first, inside) = (unfold(number, clusters), unfold(rank.into(), self.cluster));
        std::array::from_fn(|axis| first[axis] * self.cluster[axis] + inside[axis])
    }

    /// Number of the cluster that a block is in.
    pub fn cluster_of(&self, ctaid: [u32; 3]) -> u64 {
        fold(std::array::from_fn(|axis| ctaid[axis] / self.cluster[axis]), self.clusters())
    }

    /// `%total_smem_size`: a block's shared memory in whole units, as the hardware allocates it.
    pub fn total_shared_bytes(&self) -> u32 {
        self.shared_bytes.saturating_sub(RESERVED_SHARED).next_multiple_of(SHARED_UNIT)
    }

    /// `%aggr_smem_size`: to the byte, with what the system reserves.
    pub fn aggregate_shared_bytes(&self) -> u32 {
        let fixed = self.shared_bytes - self.dynamic_shared_bytes;
        fixed.next_multiple_of(16) + self.dynamic_shared_bytes
    }

    /// Rank of a block in its cluster.
    pub fn rank_of(&self, ctaid: [u32; 3]) -> u32 {
        fold(std::array::from_fn(|axis| ctaid[axis] % self.cluster[axis]), self.cluster) as u32
    }

    /// Clusters of the grid in x, y, z.
    fn clusters(&self) -> [u32; 3] {
        std::array::from_fn(|axis| self.grid[axis] / self.cluster[axis])
    }
}

fn fold(index: [u32; 3], dims: [u32; 3]) -> u64 {
    let ([x, y, z], [width, height, _]) = (index.map(u64::from), dims.map(u64::from));
    (z * height + y) * width + x
}

fn unfold(number: u64, dims: [u32; 3]) -> [u32; 3] {
    let [x, y, _] = dims.map(u64::from);
    [number % x, number / x % y, number / x / y].map(|index| index as u32)
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
    /// The block's shared window, 1024-byte aligned, followed by unmapped memory. Those of a cluster's blocks lie
    /// [`CLUSTER_STRIDE`] apart, in order of rank.
    pub shared: *mut u8,
    /// Local windows of the block's threads, one after another by linear thread index, 64-byte aligned.
    pub local: *mut u8,
    /// Memory for values that live across suspension points: [`KernelInfo::state_bytes`](crate::KernelInfo) for each warp,
    /// 64-byte aligned. Those of a cluster's blocks follow each other, in order of rank.
    pub state: *mut u8,
    /// The block being run; generated code (or the scheduler) stores it when it starts a block, but if it is
    /// [retraced](crate::KernelInfo::retraced).
    pub ctaid: [u32; 3],
    /// The warp being run; likewise stored when a warp starts or resumes.
    pub warp: u32,
    /// The first warp that is to run of a block of a [`BlocksEntry`]: those before it have run, of which one has failed an assertion.
    pub from_warp: u32,
    /// Index of the worker, what `%smid` says.
    pub worker: u32,
    /// See [`Wait`].
    pub wait: Wait,
    /// What a fault raised by generated code is about; the rest of the fault is taken from this frame.
    pub fault: FaultRecord,
    /// How often in succession each of some quicker ways that generated code tries has not been open to it, from block to block of a launch.
    pub misses: [u32; MISSES],
}

/// The quicker ways whose misses are counted apart from those of others.
pub const MISSES: usize = 16;

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
    /// At the cluster's barrier, without waiting (`barrier.cluster.arrive`).
    ClusterArrive = 3,
    /// At the cluster's barrier, until all threads of the cluster have arrived.
    ClusterWait = 4,
}

/// The host's function that generated code calls to end a launch with a fault: `(frame, kind, lane, address, ptx_line)`, as in
/// [`FaultRecord`].
pub const RAISE_SYMBOL: &str = "anywarp_raise";

/// Written when generated code ends a launch, before it leaves through the fault exit.
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
    /// Carries out an instruction about textures or surfaces ([`crate::texture`]): its code; its operands, 32 words each, one a lane,
    /// which the results replace, at least one of them. Answers 0, or a [`Failure`](crate::texture::Failure) as number.
    pub texture: unsafe extern "C" fn(
        frame: *mut BlockFrame,
        mask: u32,
        code: u64,
        registers: *mut crate::matrix::LaneWords,
    ) -> u32,
    /// Sleeps about so many nanoseconds, a millisecond at most.
    pub nanosleep: unsafe extern "C" fn(nanoseconds: u32),
    /// The runtime for kernels: the [`RuntimeFunction`](simt_ir::RuntimeFunction) of this number. Each of its parameters is 32 numbers, one a
    /// lane, one parameter after another; all are widened to 64 bits.
    pub runtime: unsafe extern "C" fn(
        frame: *mut BlockFrame,
        mask: u32,
        function: u32,
        arguments: *const u64,
        results: *mut u64,
    ),
    /// Whether the launch has failed in another block, so that a block that waits for others may never go on: 0 if not. Schedulers ask, no
    /// generated code.
    pub has_failed: unsafe extern "C" fn(frame: *mut BlockFrame) -> u32,
}

/// Entry of a kernel without suspension points: runs blocks `first .. first + count`, numbered x fastest. Answers a [`Status`](crate::Status) as number;
/// on `Deopt`, `ctaid` names the block it did not start, and all before it are done.
pub type BlocksEntry = unsafe extern "C" fn(frame: *mut BlockFrame, first: u64, count: u64) -> u32;

/// Entry of a kernel with suspension points: runs one warp, or the gang of this number (see [`KernelInfo::gang`](crate::KernelInfo)),
/// of block `frame.ctaid` from its beginning (`resume` 0) or from
/// where it suspended. Answers 0 when the warp has ended, else the `resume` to go on with, `frame.wait` saying why;
/// `u32::MAX` is [`Status::Deopt`](crate::Status::Deopt), only for `resume` 0, and then nothing was done.
pub type WarpEntry = unsafe extern "C" fn(frame: *mut BlockFrame, warp: u32, resume: u32) -> u32;

/// What a kernel may have beside its [`WarpEntry`], if nothing suspends its warps but barriers for the whole block: runs all of a block, so many warps or
/// gangs, from the beginning for as long as they come to the same barriers. Answers 1 when all have ended together. Answers 0 when one has done
/// something else than those before it; who was where is in `parted` then.
pub type TogetherEntry = unsafe extern "C" fn(frame: *mut BlockFrame, count: u32, parted: *mut Parted) -> u32;

/// Where the warps, or gangs, of a block part. `frame.wait` is that of the last that ran.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parted {
    /// Where all of them were: those behind the last that ran still are.
    pub resume: u32,
    /// The last that ran.
    pub at: u32,
    /// What the first of them answered, and all before the last.
    pub first: u32,
    /// What the last answered.
    pub own: u32,
    /// The barrier that the first waits at, unless it has ended.
    pub barrier: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_a_cluster_lie_together() {
        let launch = LaunchFrame {
            grid: [4, 6, 2],
            block: [1; 3],
            params: std::ptr::null(),
            globals: std::ptr::null(),
            callbacks: std::ptr::null(),
            context: std::ptr::null(),
            dynamic_shared_bytes: 0,
            shared_bytes: 0,
            local_bytes: 0,
            warps: 1,
            threads: 1,
            sm_count: 1,
            grid_id: 1,
            grid_workspace: 0,
            cluster: [2, 3, 1],
            explicit_cluster: 1,
            graph: 0,
        };
        assert_eq!(launch.cluster_blocks(), 6);
        assert_eq!(launch.ctaid_of_rank(0, 5), [1, 2, 0]);
        assert_eq!(launch.ctaid_of_rank(3, 0), [2, 3, 0]);
        assert_eq!(launch.ctaid_of_rank(7, 3), [3, 4, 1]);
        let mut seen = std::collections::HashSet::new();
        for cluster in 0..8 {
            for rank in 0..6 {
                let ctaid = launch.ctaid_of_rank(cluster, rank);
                assert_eq!((launch.cluster_of(ctaid), launch.rank_of(ctaid)), (cluster, rank));
                seen.insert(ctaid);
            }
        }
        assert_eq!(seen.len(), 48, "each block is in one cluster");
        assert_eq!((launch.ctaid(47), launch.number_of([3, 5, 1])), ([3, 5, 1], 47));
    }
}
