//! Linearisation of divergent control flow, as far as needed.
//!
//! After Moll and Hack ("Partial control-flow linearization", PLDI 2018). Blocks are put in a topological order in which a loop's blocks
//! stand together. A branch on which all active lanes agree stays a branch. Where lanes part, one successor comes next and
//! the others are *deferred*: each block is entered with a mask of lanes, and control passes through the deferred blocks in order before
//! it passes anything that comes after them.
//!
//! At the beginning of block `b`, every active lane is in `b` or in one of `deferred(b)`. So if nothing is deferred, the mask of `b`
//! is not empty. Otherwise it may be, and then [`Linear::skip`] is where to go on.

use std::collections::BTreeSet;

use simt_ir::{Block, Cfg, DomTree};

use crate::{LoopId, Loops};

/// The linear control flow of a function.
#[derive(Clone, Debug)]
pub struct Linear {
    order: Vec<Block>,
    position: Vec<usize>,
    deferred: Vec<BTreeSet<usize>>,
    delayed: Vec<bool>,
    mask_of: Vec<Block>,
}

impl Linear {
    /// Linearises a function in normal form. `end` is the block that returns; it comes last, and kernels' lanes that are done wait there.
    pub fn new(cfg: &Cfg, dom: &DomTree, loops: &Loops, divergent: &[bool], end: Option<Block>) -> Linear {
        let order = loop_order(cfg, loops, end);
        let count = divergent.len();
        let mut position = vec![usize::MAX; count];
        for (at, block) in order.iter().enumerate() {
            position[block.index()] = at;
        }
        let mut linear = Linear {
            deferred: vec![BTreeSet::new(); count],
            delayed: vec![false; count],
            mask_of: (0..count as u32).map(Block).collect(),
            order,
            position,
        };
        while linear.defer(cfg, loops, divergent) {}
        linear.share_masks(cfg, dom, loops, end);
        linear
    }

    /// The blocks in their order.
    pub fn order(&self) -> &[Block] {
        &self.order
    }

    /// Position of a reachable block in the order.
    pub fn position(&self, block: Block) -> usize {
        self.position[block.index()]
    }

    /// Blocks in which lanes may wait when `block` begins, in order.
    pub fn deferred(&self, block: Block) -> impl Iterator<Item = Block> + '_ {
        self.deferred[block.index()].iter().map(|at| self.order[*at])
    }

    /// Where control goes from `block` when its mask is empty; `None` if the mask never is.
    pub fn skip(&self, block: Block) -> Option<Block> {
        self.deferred(block).next()
    }

    /// Where control goes when lanes of `block` go on to `targets`, or to none of them.
    pub fn next(&self, block: Block, targets: &[Block]) -> Option<Block> {
        let waiting = self.deferred[block.index()].first().copied();
        targets.iter().map(|to| self.position(*to)).chain(waiting).min().map(|at| self.order[at])
    }

    /// Whether lanes may wait for the block, so that several edges can have contributed to its mask when it begins.
    pub fn is_delayed(&self, block: Block) -> bool {
        self.delayed[block.index()]
    }

    /// Whether nobody waits in `to` when lanes of `from` go there: no other way leads there before, in this iteration of the loop around it.
    pub fn is_first_way(&self, cfg: &Cfg, loops: &Loops, from: Block, to: Block) -> bool {
        let preds = cfg.preds(to);
        loops.innermost(from) == loops.innermost(to)
            && preds.iter().filter(|pred| **pred == from).count() == 1
            && preds.iter().all(|pred| self.position(*pred) >= self.position(from))
    }

    /// The loops that lanes leave for `block`, the outermost of them: it has no other predecessor then.
    pub fn left_loop(cfg: &Cfg, loops: &Loops, block: Block) -> Option<LoopId> {
        let [from] = cfg.preds(block) else { return None };
        loops.around(*from).take_while(|id| !loops.contains(*id, block)).last()
    }

    /// The block whose mask this block has: itself, or a dominator that it post-dominates.
    pub fn mask_of(&self, block: Block) -> Block {
        self.mask_of[block.index()]
    }

    /// One round of passing deferred sets on; whether anything changed.
    fn defer(&mut self, cfg: &Cfg, loops: &Loops, divergent: &[bool]) -> bool {
        let mut changed = false;
        for at in 0..self.order.len() {
            let block = self.order[at];
            let waiting = self.deferred[block.index()].clone();
            let succs: Vec<usize> = cfg.succs(block).iter().map(|to| self.position(*to)).collect();
            if succs.iter().any(|to| loops.is_back_edge(block, self.order[*to])) {
                // A latch. Lanes that left the loop wait while the others go round.
                debug_assert_eq!(succs.len(), 1, "a latch only jumps");
                changed |= self.pass(self.order[succs[0]], waiting.iter().copied());
                continue;
            }
            let all: BTreeSet<usize> = waiting.iter().chain(&succs).copied().collect();
            if divergent[block.index()] || succs.len() == 1 {
                changed |= self.go(&all);
            } else {
                for succ in succs {
                    let mut set = waiting.clone();
                    set.insert(succ);
                    changed |= self.go(&set);
                }
            }
            changed |= self.go(&waiting);
        }
        changed
    }

    /// Control goes to the first of `set`, the others wait there.
    fn go(&mut self, set: &BTreeSet<usize>) -> bool {
        let Some(first) = set.first() else { return false };
        self.pass(self.order[*first], set.iter().skip(1).copied())
    }

    fn pass(&mut self, to: Block, waiting: impl Iterator<Item = usize>) -> bool {
        let mut changed = false;
        for at in waiting {
            self.delayed[self.order[at].index()] = true;
            changed |= self.deferred[to.index()].insert(at);
        }
        changed
    }

    /// A block that every lane of its dominator comes to, in the same iteration, has the dominator's mask.
    fn share_masks(&mut self, cfg: &Cfg, dom: &DomTree, loops: &Loops, end: Option<Block>) {
        let Some(end) = end else { return };
        for level in std::iter::once(None).chain(loops.ids().map(Some)) {
            let post = PostDominators::new(cfg, self.position.len(), end, loops, level);
            for at in 0..self.order.len() {
                let block = self.order[at];
                if loops.innermost(block) != level || loops.headed_by(block).is_some() {
                    continue;
                }
                // Lanes that leave an inner loop are those that came to it.
                let mut dominators = std::iter::successors(dom.idom(block), |parent| dom.idom(*parent));
                let parent = dominators.find(|parent| loops.innermost(*parent) == level);
                if let Some(parent) = parent.filter(|parent| post.dominates(block, *parent)) {
                    self.mask_of[block.index()] = self.mask_of(parent);
                }
            }
        }
    }
}

/// Reverse post-order with the blocks of each loop together, and `end` last.
fn loop_order(cfg: &Cfg, loops: &Loops, end: Option<Block>) -> Vec<Block> {
    let mut order: Vec<Block> = cfg.order().iter().copied().filter(|block| Some(*block) != end).collect();
    // Outer loops first: moving a block out from between a loop's blocks keeps the order topological, since only the header
    // lets control into the loop.
    for id in loops.ids().rev() {
        let start = order.iter().position(|b| *b == loops.get(id).header).expect("a header is reachable");
        let (inside, outside): (Vec<Block>, Vec<Block>) =
            order[start..].iter().partition(|block| loops.contains(id, **block));
        order.truncate(start);
        order.extend(inside);
        order.extend(outside);
    }
    order.extend(end);
    order
}

/// Post-dominators within one iteration of a loop: its back edges, and those of the loops around it, count as ways to `end`.
/// Blocks from which no lane returns are ignored.
struct PostDominators {
    reversed: Cfg,
    tree: DomTree,
    end: Block,
}

impl PostDominators {
    fn new(cfg: &Cfg, count: usize, end: Block, loops: &Loops, level: Option<LoopId>) -> PostDominators {
        let ends_iteration = |from: Block, to: Block| {
            loops.headed_by(to).is_some_and(|id| {
                loops.contains(id, from)
                    && level.is_some_and(|level| loops.contains(id, loops.get(level).header))
            })
        };
        let mut succs = vec![Vec::new(); count];
        for &block in cfg.order() {
            for &to in cfg.succs(block) {
                let to = if ends_iteration(block, to) { end } else { to };
                succs[swapped(to, end).index()].push(swapped(block, end));
            }
        }
        let reversed = Cfg::from_successors(count, succs);
        let tree = DomTree::new(&reversed);
        PostDominators { reversed, tree, end }
    }

    fn dominates(&self, a: Block, b: Block) -> bool {
        let (a, b) = (swapped(a, self.end), swapped(b, self.end));
        self.reversed.is_reachable(a) && self.reversed.is_reachable(b) && self.tree.dominates(a, b)
    }
}

/// The graph's root must be node 0: the end and block 0 change places.
fn swapped(block: Block, end: Block) -> Block {
    match block {
        Block(0) => end,
        block if block == end => Block(0),
        block => block,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linear(succs: &[&[u32]], divergent: &[u32], end: u32) -> Linear {
        let succs = succs.iter().map(|s| s.iter().map(|b| Block(*b)).collect()).collect::<Vec<_>>();
        let count = succs.len();
        let cfg = Cfg::from_successors(count, succs);
        let dom = DomTree::new(&cfg);
        let loops = Loops::new(&cfg, &dom, count).unwrap();
        let divergent: Vec<bool> = (0..count as u32).map(|b| divergent.contains(&b)).collect();
        Linear::new(&cfg, &dom, &loops, &divergent, Some(Block(end)))
    }

    fn deferred(linear: &Linear, block: u32) -> Vec<u32> {
        linear.deferred(Block(block)).map(|b| b.0).collect()
    }

    #[test]
    fn uniform_control_flow_stays() {
        let linear = linear(&[&[1, 2], &[3], &[3], &[]], &[], 3);
        for block in 0..4 {
            assert_eq!(linear.skip(Block(block)), None);
        }
        assert_eq!(linear.mask_of(Block(3)), Block(0));
        assert_eq!(linear.mask_of(Block(1)), Block(1));
    }

    #[test]
    fn a_divergent_diamond_runs_both_sides() {
        let linear = linear(&[&[1, 2], &[3], &[3], &[]], &[0], 3);
        let (first, second) = (linear.order()[1], linear.order()[2]);
        assert_eq!(linear.next(Block(0), &[Block(1), Block(2)]), Some(first));
        assert_eq!(deferred(&linear, first.0), [second.0]);
        assert_eq!(linear.next(first, &[Block(3)]), Some(second));
        assert_eq!(deferred(&linear, second.0), [3]);
        assert_eq!(linear.skip(Block(3)), None, "all meet at the end");
    }

    #[test]
    fn a_uniform_branch_inside_a_divergent_one_stays() {
        // 0 → {1, 5}; 1 → {2, 3} → 4 → 5
        let linear = linear(&[&[1, 5], &[2, 3], &[4], &[4], &[5], &[]], &[0], 5);
        assert_eq!(linear.next(Block(1), &[Block(2)]), Some(Block(2)));
        assert_eq!(linear.next(Block(1), &[Block(3)]), Some(Block(3)));
        assert_eq!(deferred(&linear, 2), [5]);
        assert_eq!(linear.mask_of(Block(4)), Block(1));
    }

    #[test]
    fn lanes_that_leave_a_loop_wait_until_all_have() {
        // 0 → 1 → {2, 4}, 2 → 3 → 1 (latch 3), 4 → 5
        let linear = linear(&[&[1], &[2, 4], &[3], &[1], &[5], &[]], &[1], 5);
        assert_eq!(linear.next(Block(1), &[Block(2), Block(4)]), Some(Block(2)));
        assert_eq!(deferred(&linear, 1), [4], "from earlier iterations");
        assert_eq!(linear.skip(Block(3)), Some(Block(4)));
        assert_eq!(linear.skip(Block(4)), None);
    }

    #[test]
    fn all_lanes_that_come_to_a_loop_are_there_after_it() {
        // 0 → 1 → 2 → {3, 4}, 3 → 2 (latch), 4 → 5
        let after = linear(&[&[1], &[2], &[3, 4], &[2], &[5], &[]], &[2], 5);
        assert_eq!(after.mask_of(Block(4)), Block(0));
        assert_eq!(after.mask_of(Block(3)), Block(3), "some have left");
        // 0 → 1 → 2 → 3 → {4, 5}, 4 → 3 (latch), 5 → {6, 7}, 6 → 2 (outer latch)
        let inside = linear(&[&[1], &[2], &[3], &[4, 5], &[3], &[6, 7], &[2], &[]], &[3], 7);
        assert_eq!(inside.mask_of(Block(5)), inside.mask_of(Block(2)));
        // Some return from within.
        let returns = linear(&[&[1], &[2], &[3, 6], &[4, 5], &[2], &[6], &[]], &[2, 3], 6);
        assert_eq!(returns.mask_of(Block(5)), Block(5));
    }

    #[test]
    fn lanes_that_return_early_may_leave_nobody() {
        // 0 → {1, 2}, 1 → 3 (the end), 2 → 3
        let linear = linear(&[&[3, 2], &[], &[3], &[]], &[0], 3);
        assert_eq!(deferred(&linear, 2), [3]);
        assert_eq!(linear.skip(Block(2)), Some(Block(3)));
    }

    #[test]
    fn a_block_reached_through_the_next_iteration_has_its_own_mask() {
        // 0 → 1 → 2 → {3, 5}; 3 → {4, 6}; 4 → 2 (inner latch); 5 → 1 (outer latch); 6 the end
        let linear = linear(&[&[1], &[2], &[3, 5], &[4, 6], &[2], &[1], &[]], &[2], 6);
        assert_ne!(linear.mask_of(Block(3)), linear.mask_of(Block(2)));
    }
}
