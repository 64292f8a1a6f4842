//! Regions: pieces of a function with one entry each, between which lanes take turns.

use std::collections::{BTreeSet, HashMap};

use simt_ir::{Block, Cfg, DomTree, Function};

use super::Meeting;
use crate::Loops;

/// The regions of a function.
pub struct Regions {
    /// Their entries, those of loops that wait first, then those where lanes gather; the others in order.
    pub heads: Vec<Block>,
    /// How many of them are of loops that wait.
    pub waiting: usize,
    /// How many of them lanes gather before, which they do in no function that has loops that wait.
    pub gathering: usize,
    /// For each block the head of its region.
    pub of: Vec<Option<Block>>,
}

impl Regions {
    /// Cuts the function, whose program begins at `first`, where lanes may wait, and before the blocks where they gather.
    pub fn new(
        func: &Function,
        first: Block,
        waiting: &[Block],
        meetings: &HashMap<Block, Meeting>,
        masks: &[Block],
    ) -> Regions {
        let cfg = Cfg::new(func);
        let mut heads: BTreeSet<Block> = waiting.iter().copied().collect();
        heads.insert(first);
        heads.extend(meetings.values().map(|meeting| meeting.after));
        heads.extend(masks);
        let mut entered_twice = BTreeSet::new();
        loop {
            let of = regions(func, &cfg, &mut heads, meetings);
            match irreducible(&cfg, &heads, meetings) {
                // A loop that is entered in several places: there the lanes change regions.
                Some(block) => {
                    entered_twice.insert(block);
                    heads.insert(block);
                }
                None => {
                    let waits = |block: &Block| waiting.contains(block) || entered_twice.contains(block);
                    let (mut first, rest): (Vec<Block>, Vec<Block>) = cfg
                        .order()
                        .iter()
                        .copied()
                        .filter(|block| heads.contains(block))
                        .partition(|block| waits(block));
                    let waiting = first.len();
                    let (gather, rest): (Vec<Block>, Vec<Block>) =
                        rest.into_iter().partition(|block| masks.contains(block));
                    first.extend(gather);
                    let gathering = if waiting == 0 { first.len() } else { 0 };
                    first.extend(rest);
                    return Regions { heads: first, waiting, gathering, of };
                }
            }
        }
    }

    /// The region with this head.
    pub fn number(&self, head: Block) -> Option<u64> {
        self.heads.iter().position(|at| *at == head).map(|at| at as u64)
    }
}

/// Assigns blocks to regions. A block that control comes to from several is the head of one.
fn regions(
    func: &Function,
    cfg: &Cfg,
    heads: &mut BTreeSet<Block>,
    meetings: &HashMap<Block, Meeting>,
) -> Vec<Option<Block>> {
    loop {
        let mut of: Vec<Option<Block>> = vec![None; func.blocks().len()];
        let mut changed = true;
        let mut new = None;
        while changed && new.is_none() {
            changed = false;
            for &block in cfg.order() {
                if block == Function::ENTRY {
                    continue;
                }
                let mut region = heads.contains(&block).then_some(block);
                if region.is_none() {
                    let preds = cfg.preds(block).iter().filter(|pred| !meetings.contains_key(pred));
                    for from in preds.filter_map(|pred| of[pred.index()]) {
                        if region.is_some_and(|known| known != from) {
                            new = Some(block);
                        }
                        region = Some(from);
                    }
                }
                if of[block.index()] != region {
                    of[block.index()] = region;
                    changed = true;
                }
            }
        }
        match new {
            Some(block) => heads.insert(block),
            None => return of,
        };
    }
}

/// A block at which control enters a loop that it enters elsewhere too, inside a region.
fn irreducible(cfg: &Cfg, heads: &BTreeSet<Block>, meetings: &HashMap<Block, Meeting>) -> Option<Block> {
    let count = cfg.order().iter().map(|block| block.index() + 1).max().unwrap_or(1);
    let mut succs = vec![Vec::new(); count];
    succs[0] = heads.iter().copied().filter(|head| cfg.is_reachable(*head)).collect();
    for &block in cfg.order().iter().filter(|block| **block != Function::ENTRY) {
        if !meetings.contains_key(&block) {
            succs[block.index()] =
                cfg.succs(block).iter().copied().filter(|succ| !heads.contains(succ)).collect();
        }
    }
    let cfg = Cfg::from_successors(count, succs);
    Loops::new(&cfg, &DomTree::new(&cfg), count).err().map(|irreducible| irreducible.0)
}
