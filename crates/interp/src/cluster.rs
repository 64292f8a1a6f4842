//! Runs the blocks of one cluster, or of several, in turn, and lets the threads of each meet at its barrier. A block that is in no cluster is a
//! cluster of one.

use kernel_abi::{BlockFrame, Fault};
use simt_ir::Program;

use crate::block::Block;
use crate::thread::State;

/// Every so many rounds blocks look whether the launch has failed elsewhere.
const ROUNDS: u32 = 64;
/// Rounds after which a block ends in which an assertion has failed.
const AFTER_FAILURE: u32 = 256;

/// Runs the blocks whose indices the frames hold, whole clusters of the launch, each for about `budget` instructions at the most.
///
/// # Safety
/// As for [`kernel_abi::CompiledKernel::run_clusters`].
pub unsafe fn run(program: &Program, frames: &mut [BlockFrame], budget: Option<u64>) -> Result<(), Fault> {
    let Some(first) = frames.first() else { return Ok(()) };
    // SAFETY: the launch outlives the run.
    let size = unsafe { &*first.launch }.cluster_blocks() as usize;
    // SAFETY: the caller's contract.
    let mut blocks = frames.iter_mut().map(|frame| unsafe { Block::new(program, frame, budget) });
    let mut clusters = Vec::new();
    while blocks.len() > 0 {
        clusters.push(Cluster { blocks: blocks.by_ref().take(size).collect(), phase: 0 });
    }
    let (mut rounds, mut left) = (0u32, AFTER_FAILURE);
    loop {
        let mut all_done = true;
        for cluster in &mut clusters {
            match cluster.round() {
                Ok(progress) => all_done &= progress == Progress::Done,
                Err(fault) => return Err(failed(&mut clusters).unwrap_or(fault)),
            }
        }
        if let Some(fault) = all_done.then(|| failed(&mut clusters)).flatten() {
            return Err(fault);
        }
        // Who polls for what a failed block or warp would have done polls for ever.
        rounds = rounds.wrapping_add(1);
        if clusters.iter().flat_map(|cluster| &cluster.blocks).any(Block::has_failed) {
            left -= 1;
        }
        if left == 0 {
            return failed(&mut clusters).map_or(Ok(()), Err);
        }
        if all_done || rounds.is_multiple_of(ROUNDS) && clusters[0].blocks[0].context.has_failed() {
            return Ok(());
        }
    }
}

/// The fault of a block in which an assertion has failed.
fn failed(clusters: &mut [Cluster<'_>]) -> Option<Fault> {
    clusters.iter_mut().flat_map(|cluster| &mut cluster.blocks).find_map(Block::take_failed)
}

#[derive(PartialEq)]
enum Progress {
    Some,
    Done,
}

struct Cluster<'a> {
    blocks: Vec<Block<'a>>,
    /// Counts completions of the cluster's barrier.
    phase: u64,
}

impl Cluster<'_> {
    /// Lets each block go on; a fault if none can.
    fn round(&mut self) -> Result<Progress, Fault> {
        let mut progress = false;
        for block in &mut self.blocks {
            progress |= block.round(self.phase)?;
        }
        progress |= self.pass_barrier();
        if progress {
            return Ok(Progress::Some);
        }
        let Some(stuck) = self.blocks.iter().position(|block| !block.is_done()) else {
            return Ok(Progress::Done);
        };
        // Nobody can go on by itself: warp operations that some named lanes will never reach.
        let mut went_on = false;
        for block in &mut self.blocks {
            went_on = went_on || block.go_on_without_absent_lanes()?;
        }
        if went_on { Ok(Progress::Some) } else { Err(self.blocks[stuck].deadlock(self.blocks.len() > 1)) }
    }

    /// Completes the barrier's phase if every thread that has not ended has arrived in it, and lets threads go on whose phase is over.
    /// Whether there were any.
    fn pass_barrier(&mut self) -> bool {
        let mut threads = self.blocks.iter().flat_map(|block| &block.threads);
        if !threads.any(|thread| thread.state == State::ClusterBarrier) {
            return false;
        }
        let phase = self.phase;
        let mut threads = self.blocks.iter().flat_map(|block| &block.threads);
        if threads.all(|thread| thread.state == State::Done || thread.cluster_phase == Some(phase)) {
            self.phase += 1;
        }
        let mut passed = false;
        for block in &mut self.blocks {
            let program = block.context.program;
            for thread in &mut block.threads {
                let is_over = thread.cluster_phase.is_some_and(|arrived| arrived < self.phase);
                if thread.state == State::ClusterBarrier && is_over {
                    thread.resume(program, &[]);
                    thread.cluster_phase = None;
                    passed = true;
                }
            }
        }
        passed
    }
}
