//! What blocks run in, and how their faults are told.

use kernel_abi::{BlockFrame, CompiledKernel, Fault, FaultKind};

/// What blocks run in.
pub(super) enum Frames {
    /// One after another in this.
    Block(BlockFrame),
    /// Those of a cluster together, each in its own.
    Cluster(Vec<BlockFrame>),
    /// Blocks that may wait for each other, each in its own.
    InTurns(Vec<BlockFrame>),
}

/// How many blocks of a cluster an address could tell apart.
const RANKS: u64 = (1 << 32) / kernel_abi::CLUSTER_STRIDE;

impl Frames {
    /// The fault, as a device calls it if an address names a block that the cluster has not, or any where there are no clusters.
    pub(super) fn in_cluster(&self, mut fault: Fault) -> Fault {
        if let (FaultKind::IllegalAddress, Some(address)) = (fault.kind, fault.address) {
            let (first, blocks, is_cluster) = match self {
                Frames::Block(frame) => (frame.shared, 1, false),
                Frames::InTurns(frames) => {
                    let failed = frames.iter().find(|frame| frame.ctaid == fault.ctaid);
                    (failed.unwrap_or(&frames[0]).shared, 1, false)
                }
                Frames::Cluster(frames) => (frames[0].shared, frames.len() as u64, true),
            };
            let rank = address.wrapping_sub(first as u64) / kernel_abi::CLUSTER_STRIDE;
            if (blocks..RANKS).contains(&rank) {
                // An H100 recorded the one kind up to rank 9 and the other for rank 255.
                let possible = is_cluster && rank < u64::from(kernel_abi::MAX_CLUSTER);
                fault.kind = if possible { FaultKind::OutsideCluster } else { FaultKind::IllegalInstruction };
            }
        }
        fault
    }

    /// Runs so many blocks, or clusters.
    ///
    /// # Safety
    /// As [`CompiledKernel::run`], [`CompiledKernel::run_clusters`] and [`CompiledKernel::run_in_turns`] say.
    pub(super) unsafe fn run(
        &mut self,
        kernel: &dyn CompiledKernel,
        first: u64,
        count: u64,
    ) -> Result<(), Fault> {
        // SAFETY: the caller's contract.
        unsafe {
            match self {
                Frames::Block(frame) => kernel.run(frame, first, count),
                Frames::Cluster(frames) => kernel.run_clusters(frames, first, count),
                Frames::InTurns(frames) => kernel.run_in_turns(&mut frames[..count as usize], first),
            }
        }
    }

    /// Does what these blocks have left for later.
    pub(super) fn settle(&self, kernel: &dyn CompiledKernel) -> Result<(), Fault> {
        match self {
            Frames::Block(frame) => kernel.settle(frame),
            Frames::Cluster(frames) | Frames::InTurns(frames) => {
                frames.first().map_or(Ok(()), |frame| kernel.settle(frame))
            }
        }
    }
}

/// Whether two runs of a block failed alike. The first knows an address to the page only: an access of many threads at once fails
/// where the page begins. Likewise it knows the first warp of a gang only.
pub(super) fn is_same(first: &Fault, second: &Fault, gang: u32) -> bool {
    let near = match (first.address, second.address) {
        (Some(first), Some(second)) => first.abs_diff(second) < 4096,
        _ => true,
    };
    first.kind == second.kind
        && first.ctaid == second.ctaid
        && first.warp / gang == second.warp / gang
        && near
}
