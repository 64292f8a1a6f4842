//! Where lanes that part at a branch meet again.

use simt_ir::{Block, Cfg};

use crate::{LoopId, Loops};

/// What a divergent branch, or a loop that lanes leave in different iterations, does to control flow around it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Influence {
    /// Blocks that lanes reach on different ways or at different times: their parameters differ from lane to lane.
    pub joins: Vec<Block>,
    /// Loops that some lanes leave while others go on.
    pub loops: Vec<LoopId>,
}

/// The influence of a divergent branch at the end of `block`.
pub fn of_branch(cfg: &Cfg, loops: &Loops, block: Block) -> Influence {
    let around: Vec<LoopId> = loops.around(block).collect();
    propagate(cfg, loops, around, cfg.succs(block).iter().map(|to| (block, *to)))
}

/// The influence of a divergent loop on what is outside it.
pub fn of_loop(cfg: &Cfg, loops: &Loops, id: LoopId) -> Influence {
    let around: Vec<LoopId> = loops.around(loops.get(id).header).skip(1).collect();
    let edges = loops.exit_edges(id, cfg);
    let mut influence = propagate(cfg, loops, around, edges.iter().copied());
    for (_, to) in edges {
        if !influence.joins.contains(&to) {
            influence.joins.push(to);
        }
    }
    influence
}

/// Gives the target of each starting edge its own label and passes labels on along forward edges. Where two meet is a join,
/// and has a label of its own from there. A loop around the start is divergent when lanes leave it under another label
/// than some have that go round.
fn propagate(
    cfg: &Cfg,
    loops: &Loops,
    around: Vec<LoopId>,
    start: impl Iterator<Item = (Block, Block)>,
) -> Influence {
    let size = cfg.order().iter().map(|block| block.index() + 1).max().unwrap_or(0);
    let mut walk = Walk {
        loops,
        labels: vec![None; size],
        joins: Vec::new(),
        rounds: around.iter().map(|id| (*id, Vec::new())).collect(),
        exits: around.iter().map(|id| (*id, Vec::new())).collect(),
    };
    for (from, to) in start {
        walk.step(from, to, to);
    }
    for &block in cfg.order() {
        if let Some(label) = walk.labels[block.index()] {
            for &succ in cfg.succs(block) {
                walk.step(block, succ, label);
            }
        }
    }
    let divergent = |at: usize| {
        let (rounds, exits) = (&walk.rounds[at].1, &walk.exits[at].1);
        rounds.iter().any(|round| exits.iter().any(|exit| exit != round))
    };
    let loops = (0..around.len()).filter(|at| divergent(*at)).map(|at| around[at]).collect();
    Influence { joins: walk.joins, loops }
}

struct Walk<'a> {
    loops: &'a Loops,
    labels: Vec<Option<Block>>,
    joins: Vec<Block>,
    /// For each loop around the start, labels that reach its header again.
    rounds: Vec<(LoopId, Vec<Block>)>,
    /// Likewise, labels that leave it.
    exits: Vec<(LoopId, Vec<Block>)>,
}

impl Walk<'_> {
    fn step(&mut self, from: Block, to: Block, label: Block) {
        for (id, labels) in &mut self.rounds {
            if self.loops.get(*id).header == to && self.loops.contains(*id, from) {
                labels.push(label);
            }
        }
        for (id, labels) in &mut self.exits {
            if self.loops.contains(*id, from) && !self.loops.contains(*id, to) {
                labels.push(label);
            }
        }
        if self.loops.is_back_edge(from, to) {
            return;
        }
        let at = &mut self.labels[to.index()];
        match *at {
            None => *at = Some(label),
            Some(known) if known == label => {}
            Some(_) => {
                *at = Some(to);
                if !self.joins.contains(&to) {
                    self.joins.push(to);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simt_ir::DomTree;

    fn graph(succs: &[&[u32]]) -> (Cfg, Loops) {
        let succs = succs.iter().map(|s| s.iter().map(|b| Block(*b)).collect()).collect::<Vec<_>>();
        let count = succs.len();
        let cfg = Cfg::from_successors(count, succs);
        let loops = Loops::new(&cfg, &DomTree::new(&cfg), count).unwrap();
        (cfg, loops)
    }

    #[test]
    fn a_diamond_joins_at_its_end_only() {
        // 0 → {1, 2} → 3 → {4, 5} → 6
        let (cfg, loops) = graph(&[&[1, 2], &[3], &[3], &[4, 5], &[6], &[6], &[]]);
        assert_eq!(of_branch(&cfg, &loops, Block(0)), Influence { joins: vec![Block(3)], loops: vec![] });
    }

    #[test]
    fn a_divergent_exit_makes_the_loop_divergent_and_its_exit_a_join() {
        // 0 → 1 → {2, 3}, 2 → 1, 3 → 4
        let (cfg, loops) = graph(&[&[1], &[2, 3], &[1], &[4], &[]]);
        let id = loops.headed_by(Block(1)).unwrap();
        let branch = of_branch(&cfg, &loops, Block(1));
        assert_eq!(branch.loops, vec![id]);
        assert_eq!(of_loop(&cfg, &loops, id).joins, vec![Block(3)]);
    }

    #[test]
    fn lanes_that_meet_before_the_latch_leave_the_loop_together() {
        // 0 → 1 → {2, 3} → 4 → {1, 5}
        let (cfg, loops) = graph(&[&[1], &[2, 3], &[4], &[4], &[1, 5], &[]]);
        assert_eq!(of_branch(&cfg, &loops, Block(1)), Influence { joins: vec![Block(4)], loops: vec![] });
        let id = loops.headed_by(Block(1)).unwrap();
        assert_eq!(of_branch(&cfg, &loops, Block(4)).loops, vec![id], "unless they part just there");
    }
}
