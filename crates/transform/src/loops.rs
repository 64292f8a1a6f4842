//! The loops of a function and how they nest.

use simt_ir::{Block, Cfg, DomTree};

/// A loop of a [`Loops`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LoopId(pub u32);

impl LoopId {
    /// Position in the table.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One natural loop.
#[derive(Clone, Debug)]
pub struct Loop {
    /// The block through which every entry and every further iteration goes.
    pub header: Block,
    /// The loop around it.
    pub parent: Option<LoopId>,
    /// All its blocks, those of inner loops included, in reverse post-order.
    pub blocks: Vec<Block>,
}

/// Control flow that enters a loop in more than one place, at this block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Irreducible(pub Block);

/// All loops of a function; an inner loop comes before the loop around it.
#[derive(Clone, Debug)]
pub struct Loops {
    loops: Vec<Loop>,
    innermost: Vec<Option<LoopId>>,
}

impl Loops {
    /// Finds the loops of a graph.
    pub fn new(cfg: &Cfg, dom: &DomTree, block_count: usize) -> Result<Loops, Irreducible> {
        let mut found = Loops { loops: Vec::new(), innermost: vec![None; block_count] };
        for &header in cfg.order().iter().rev() {
            let position = cfg.position(header);
            let mut work = Vec::new();
            for &pred in cfg.preds(header) {
                if cfg.position(pred) >= position {
                    if !dom.dominates(header, pred) {
                        return Err(Irreducible(header));
                    }
                    work.push(pred);
                }
            }
            if !work.is_empty() {
                found.add(cfg, header, work);
            }
        }
        for &block in cfg.order() {
            let mut at = found.innermost[block.index()];
            while let Some(id) = at {
                found.loops[id.index()].blocks.push(block);
                at = found.loops[id.index()].parent;
            }
        }
        Ok(found)
    }

    /// Every loop, inner ones first.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = LoopId> + use<> {
        (0..self.loops.len() as u32).map(LoopId)
    }

    /// Number of loops.
    pub fn count(&self) -> usize {
        self.loops.len()
    }

    /// The loop.
    pub fn get(&self, id: LoopId) -> &Loop {
        &self.loops[id.index()]
    }

    /// The innermost loop around a block.
    pub fn innermost(&self, block: Block) -> Option<LoopId> {
        self.innermost[block.index()]
    }

    /// The loop whose header this is.
    pub fn headed_by(&self, block: Block) -> Option<LoopId> {
        self.innermost(block).filter(|id| self.get(*id).header == block)
    }

    /// Whether the block belongs to the loop.
    pub fn contains(&self, id: LoopId, block: Block) -> bool {
        self.around(block).any(|at| at == id)
    }

    /// The loops around a block, innermost first.
    pub fn around(&self, block: Block) -> impl Iterator<Item = LoopId> + '_ {
        std::iter::successors(self.innermost(block), |id| self.get(*id).parent)
    }

    /// Whether the edge leads from inside a loop to its header.
    pub fn is_back_edge(&self, from: Block, to: Block) -> bool {
        self.headed_by(to).is_some_and(|id| self.contains(id, from))
    }

    /// Edges that leave the loop, as (source, target).
    pub fn exit_edges(&self, id: LoopId, cfg: &Cfg) -> Vec<(Block, Block)> {
        let mut edges = Vec::new();
        for &from in &self.get(id).blocks {
            edges.extend(cfg.succs(from).iter().filter(|to| !self.contains(id, **to)).map(|to| (from, *to)));
        }
        edges
    }

    /// Adds the loop whose back edges start at `work`. Loops inside have been added.
    fn add(&mut self, cfg: &Cfg, header: Block, mut work: Vec<Block>) {
        let id = LoopId(self.loops.len() as u32);
        self.loops.push(Loop { header, parent: None, blocks: Vec::new() });
        self.innermost[header.index()] = Some(id);
        while let Some(block) = work.pop() {
            match self.around(block).last() {
                None => {
                    self.innermost[block.index()] = Some(id);
                    work.extend_from_slice(cfg.preds(block));
                }
                Some(outermost) if outermost != id => {
                    self.loops[outermost.index()].parent = Some(id);
                    let inner = self.get(outermost).header;
                    work.extend(cfg.preds(inner).iter().filter(|pred| !self.contains(outermost, **pred)));
                }
                Some(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loops(succs: &[&[u32]]) -> Result<Loops, Irreducible> {
        let succs = succs.iter().map(|s| s.iter().map(|b| Block(*b)).collect()).collect::<Vec<_>>();
        let count = succs.len();
        let cfg = Cfg::from_successors(count, succs);
        Loops::new(&cfg, &DomTree::new(&cfg), count)
    }

    #[test]
    fn nested_loops_know_their_blocks_and_parents() {
        // 0 → 1 → 2 → 3 → {2, 4}, 4 → {1, 5}
        let loops = loops(&[&[1], &[2], &[3], &[2, 4], &[1, 5], &[]]).unwrap();
        assert_eq!(loops.count(), 2);
        let inner = loops.innermost(Block(3)).unwrap();
        let outer = loops.get(inner).parent.unwrap();
        assert_eq!(loops.get(inner).blocks, [Block(2), Block(3)]);
        assert_eq!(loops.get(outer).blocks, [Block(1), Block(2), Block(3), Block(4)]);
        assert_eq!(loops.innermost(Block(5)), None);
        assert!(loops.is_back_edge(Block(4), Block(1)) && !loops.is_back_edge(Block(0), Block(1)));
    }

    #[test]
    fn a_loop_with_two_entries_is_refused() {
        assert!(loops(&[&[1, 2], &[2, 3], &[1, 3], &[]]).is_err());
    }
}
