//! Where the warps of a cluster's blocks meet.

use super::{Schedule, State};

/// The barrier of all warps of a cluster. Arriving and waiting are apart, so that a warp may arrive in the next phase while
/// another has not yet waited for this one.
#[derive(Clone, Copy, Default)]
pub(super) struct ClusterBarrier {
    /// Counts completions.
    pub(super) phase: u32,
    /// Warps that have arrived in this phase and have not ended.
    pub(super) arrived: u32,
    /// Warps of the cluster that have not ended.
    pub(super) live: u32,
}

impl Schedule {
    /// So many warps of the current block have ended.
    pub(super) fn ended(&mut self, warps: u32) {
        self.live -= warps;
        self.clusters[self.rank / self.cluster_blocks].live -= warps;
        self.complete_cluster();
    }

    /// Lets the barrier of the current block's cluster go if every warp that has not ended has arrived.
    pub(super) fn complete_cluster(&mut self) {
        let number = self.rank / self.cluster_blocks;
        let cluster = &mut self.clusters[number];
        if cluster.arrived == 0 || cluster.arrived < cluster.live {
            return;
        }
        cluster.arrived = 0;
        cluster.phase = cluster.phase.wrapping_add(1);
        let blocks = &mut self.blocks[number * self.cluster_blocks..][..self.cluster_blocks];
        let warps = blocks.iter_mut().flat_map(|block| &mut block.warps);
        for warp in warps.filter(|warp| warp.state == State::WaitingForCluster) {
            warp.state = State::Ready;
            warp.arrived = None;
        }
    }
}
