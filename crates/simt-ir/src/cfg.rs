//! The control-flow graph of a function: predecessors, order, dominators.

use crate::{Block, Function, Value};

/// Predecessors, successors and a reverse post-order of the blocks that the entry reaches.
#[derive(Clone, Debug)]
pub struct Cfg {
    preds: Vec<Vec<Block>>,
    succs: Vec<Vec<Block>>,
    order: Vec<Block>,
    position: Vec<u32>,
}

const UNREACHED: u32 = u32::MAX;

impl Cfg {
    /// The graph of a function. A block that is a successor twice counts as predecessor twice.
    pub fn new(func: &Function) -> Cfg {
        let count = func.blocks().len();
        let succs: Vec<Vec<Block>> =
            func.blocks().map(|b| func.block(b).term.targets().iter().map(|t| t.block).collect()).collect();
        Cfg::from_successors(count, succs)
    }

    /// A graph given by the successors of each node; node 0 is the entry.
    pub fn from_successors(count: usize, succs: Vec<Vec<Block>>) -> Cfg {
        let mut order = Vec::with_capacity(count);
        let mut seen = vec![false; count];
        // Post-order by an explicit stack: kernels may have very long chains of blocks.
        let mut stack: Vec<(Block, usize)> = Vec::new();
        if count > 0 {
            seen[0] = true;
            stack.push((Block(0), 0));
        }
        while let Some((block, next)) = stack.last_mut() {
            let Some(&succ) = succs[block.index()].get(*next) else {
                order.push(*block);
                stack.pop();
                continue;
            };
            *next += 1;
            if !seen[succ.index()] {
                seen[succ.index()] = true;
                stack.push((succ, 0));
            }
        }
        order.reverse();
        let mut position = vec![UNREACHED; count];
        for (i, block) in order.iter().enumerate() {
            position[block.index()] = i as u32;
        }
        let mut preds = vec![Vec::new(); count];
        for &block in &order {
            for succ in &succs[block.index()] {
                preds[succ.index()].push(block);
            }
        }
        Cfg { preds, succs, order, position }
    }

    /// Predecessors that the entry reaches.
    pub fn preds(&self, block: Block) -> &[Block] {
        &self.preds[block.index()]
    }

    /// Successors.
    pub fn succs(&self, block: Block) -> &[Block] {
        &self.succs[block.index()]
    }

    /// Reachable blocks in reverse post-order.
    pub fn order(&self) -> &[Block] {
        &self.order
    }

    /// What the edges into a block pass for its parameter of this index, in the function that this is of.
    pub fn passed<'a>(
        &'a self,
        func: &'a Function,
        block: Block,
        index: usize,
    ) -> impl Iterator<Item = Value> + 'a {
        let targets = self.preds(block).iter().flat_map(|pred| func.block(*pred).term.targets());
        targets.filter(move |target| target.block == block).map(move |target| target.args[index])
    }

    /// How often each value is read by what control comes to, in the function that this is of.
    pub fn uses(&self, func: &Function) -> Vec<u32> {
        let mut uses = vec![0; func.value_count()];
        for &block in self.order() {
            let data = func.block(block);
            let args = data.insts.iter().flat_map(|inst| func.inst(*inst).args.iter().copied());
            args.chain(data.term.uses()).for_each(|value| uses[value.index()] += 1);
        }
        uses
    }

    /// For each block whether it is one of `starts` or comes after one, where `next` tells what does.
    pub fn reached<Next: IntoIterator<Item = Block>>(
        &self,
        starts: impl IntoIterator<Item = Block>,
        next: impl Fn(Block) -> Next,
    ) -> Vec<bool> {
        let mut seen = vec![false; self.succs.len()];
        let mut work: Vec<Block> = starts.into_iter().collect();
        while let Some(block) = work.pop() {
            if !std::mem::replace(&mut seen[block.index()], true) {
                work.extend(next(block));
            }
        }
        seen
    }

    /// Position in that order; `None` for a block that is never reached.
    pub fn position(&self, block: Block) -> Option<usize> {
        match self.position[block.index()] {
            UNREACHED => None,
            position => Some(position as usize),
        }
    }

    /// Whether the entry reaches the block.
    pub fn is_reachable(&self, block: Block) -> bool {
        self.position(block).is_some()
    }
}

/// Immediate dominators.
#[derive(Clone, Debug)]
pub struct DomTree {
    idom: Vec<Option<Block>>,
    children: Vec<Vec<Block>>,
    enter: Vec<u32>,
    leave: Vec<u32>,
}

impl DomTree {
    /// Dominators by the algorithm of Cooper, Harvey and Kennedy.
    pub fn new(cfg: &Cfg) -> DomTree {
        let count = cfg.preds.len();
        let mut idom: Vec<Option<Block>> = vec![None; count];
        let mut children = vec![Vec::new(); count];
        let (mut enter, mut leave) = (vec![0; count], vec![0; count]);
        let Some(&entry) = cfg.order.first() else {
            return DomTree { idom, children, enter, leave };
        };
        idom[entry.index()] = Some(entry);
        let mut changed = true;
        while changed {
            changed = false;
            for &block in &cfg.order[1..] {
                let mut new: Option<Block> = None;
                for &pred in cfg.preds(block) {
                    if idom[pred.index()].is_some() {
                        new = Some(new.map_or(pred, |other| common(cfg, &idom, pred, other)));
                    }
                }
                if new != idom[block.index()] {
                    idom[block.index()] = new;
                    changed = true;
                }
            }
        }
        idom[entry.index()] = None;
        for &block in &cfg.order {
            if let Some(parent) = idom[block.index()] {
                children[parent.index()].push(block);
            }
        }
        let mut clock = 0;
        let mut stack = vec![(entry, 0)];
        while let Some((block, next)) = stack.last_mut() {
            if *next == 0 {
                clock += 1;
                enter[block.index()] = clock;
            }
            if let Some(&child) = children[block.index()].get(*next) {
                *next += 1;
                stack.push((child, 0));
            } else {
                clock += 1;
                leave[block.index()] = clock;
                stack.pop();
            }
        }
        DomTree { idom, children, enter, leave }
    }

    /// The immediate dominator; `None` for the entry and for unreachable blocks.
    pub fn idom(&self, block: Block) -> Option<Block> {
        self.idom[block.index()]
    }

    /// Blocks whose immediate dominator this is.
    pub fn children(&self, block: Block) -> &[Block] {
        &self.children[block.index()]
    }

    /// Whether every path from the entry to `b` passes `a`; a block dominates itself.
    pub fn dominates(&self, a: Block, b: Block) -> bool {
        self.enter[a.index()] <= self.enter[b.index()] && self.leave[b.index()] <= self.leave[a.index()]
    }

    /// For every block, the blocks at which its dominance ends.
    pub fn frontiers(&self, cfg: &Cfg) -> Vec<Vec<Block>> {
        let mut frontiers = vec![Vec::new(); self.idom.len()];
        for &block in cfg.order() {
            if cfg.preds(block).len() < 2 {
                continue;
            }
            for &pred in cfg.preds(block) {
                let mut runner = Some(pred);
                while let Some(at) = runner
                    && Some(at) != self.idom(block)
                {
                    let frontier: &mut Vec<Block> = &mut frontiers[at.index()];
                    if !frontier.contains(&block) {
                        frontier.push(block);
                    }
                    runner = self.idom(at);
                }
            }
        }
        frontiers
    }
}

fn common(cfg: &Cfg, idom: &[Option<Block>], mut a: Block, mut b: Block) -> Block {
    let position = |block: Block| cfg.position[block.index()];
    let up = |block: Block| idom[block.index()].expect("processed blocks have a dominator");
    while a != b {
        while position(a) > position(b) {
            a = up(a);
        }
        while position(b) > position(a) {
            b = up(b);
        }
    }
    a
}
