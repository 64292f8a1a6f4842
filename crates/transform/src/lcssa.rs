//! Loop-closed SSA: a value defined in a loop and used outside it leaves through parameters of the loop's exit blocks.
//!
//! The lanes of a warp leave a loop in different iterations. What each of them takes along must be kept when it leaves, and the
//! exit block's parameters are where that happens.

use std::collections::HashMap;

use simt_ir::{Block, Cfg, Def, DomTree, Function, Value};

use crate::Loops;

/// Closes all loops. Needs the normal form: every exit block has one predecessor.
pub fn close_loops(func: &mut Function, cfg: &Cfg, dom: &DomTree, loops: &Loops) {
    let frontiers = dom.frontiers(cfg);
    for id in loops.ids() {
        let mut exits: Vec<(Block, Block)> = loops.exit_edges(id, cfg);
        exits.dedup();
        let mut defined: Vec<Value> = Vec::new();
        for &block in &loops.get(id).blocks {
            defined.extend_from_slice(&func.block(block).params);
            for inst in &func.block(block).insts {
                defined.extend_from_slice(&func.inst(*inst).results);
            }
        }
        let outside = uses_outside(func, cfg, loops, id);
        for value in defined {
            if let Some(uses) = outside.get(&value) {
                Closing { func, cfg, dom, loops, id, value }.close(&exits, uses, &frontiers);
            }
        }
    }
}

/// For each value of the loop, the blocks outside that use it.
fn uses_outside(func: &Function, cfg: &Cfg, loops: &Loops, id: crate::LoopId) -> HashMap<Value, Vec<Block>> {
    let mut uses: HashMap<Value, Vec<Block>> = HashMap::new();
    let def_block = def_blocks(func, cfg);
    for &block in cfg.order() {
        if loops.contains(id, block) {
            continue;
        }
        let data = func.block(block);
        let read = data.insts.iter().flat_map(|inst| func.inst(*inst).args.clone()).chain(data.term.uses());
        for value in read {
            if def_block[value.index()].is_some_and(|at| loops.contains(id, at)) {
                let blocks = uses.entry(value).or_default();
                if blocks.last() != Some(&block) {
                    blocks.push(block);
                }
            }
        }
    }
    uses
}

/// The block that defines each value.
pub fn def_blocks(func: &Function, cfg: &Cfg) -> Vec<Option<Block>> {
    let mut blocks = vec![None; func.value_count()];
    for &block in cfg.order() {
        for param in &func.block(block).params {
            blocks[param.index()] = Some(block);
        }
        for inst in &func.block(block).insts {
            for result in &func.inst(*inst).results {
                blocks[result.index()] = Some(block);
            }
        }
    }
    blocks
}

struct Closing<'a> {
    func: &'a mut Function,
    cfg: &'a Cfg,
    dom: &'a DomTree,
    loops: &'a Loops,
    id: crate::LoopId,
    value: Value,
}

impl Closing<'_> {
    fn close(mut self, exits: &[(Block, Block)], uses: &[Block], frontiers: &[Vec<Block>]) {
        let live = self.live_outside(uses);
        let mut defs: HashMap<Block, Value> = HashMap::new();
        let ty = self.func.ty(self.value);
        let mut work = Vec::new();
        for (from, exit) in exits {
            if live.contains(exit) && !defs.contains_key(exit) {
                let param = self.func.add_param(*exit, ty);
                defs.insert(*exit, param);
                self.append_args(*from, *exit, self.value);
                work.push(*exit);
            }
        }
        let mut joins = Vec::new();
        while let Some(block) = work.pop() {
            for &at in &frontiers[block.index()] {
                if live.contains(&at) && !defs.contains_key(&at) && !self.loops.contains(self.id, at) {
                    let param = self.func.add_param(at, ty);
                    defs.insert(at, param);
                    joins.push(at);
                    work.push(at);
                }
            }
        }
        for join in joins {
            let mut preds = self.cfg.preds(join).to_vec();
            preds.sort();
            preds.dedup();
            for pred in preds {
                let value = self.reaching(&defs, pred);
                self.append_args(pred, join, value);
            }
        }
        for &block in uses {
            let new = self.reaching(&defs, block);
            self.rewrite(block, new, &defs);
        }
    }

    /// Blocks outside the loop at whose beginning the value is needed.
    fn live_outside(&self, uses: &[Block]) -> Vec<Block> {
        let mut live: Vec<Block> = Vec::new();
        let mut work = uses.to_vec();
        while let Some(block) = work.pop() {
            if !self.loops.contains(self.id, block) && !live.contains(&block) {
                live.push(block);
                work.extend_from_slice(self.cfg.preds(block));
            }
        }
        live
    }

    /// The value at the end of a block.
    fn reaching(&self, defs: &HashMap<Block, Value>, mut block: Block) -> Value {
        loop {
            if let Some(value) = defs.get(&block) {
                return *value;
            }
            if self.loops.contains(self.id, block) {
                return self.value;
            }
            match self.dom.idom(block) {
                Some(parent) => block = parent,
                None => return self.value,
            }
        }
    }

    fn append_args(&mut self, from: Block, to: Block, arg: Value) {
        for target in self.func.block_mut(from).term.targets_mut() {
            if target.block == to {
                target.args.push(arg);
            }
        }
    }

    /// Replaces the value in a block's instructions and in what it passes on, but for arguments added here.
    fn rewrite(&mut self, block: Block, new: Value, defs: &HashMap<Block, Value>) {
        let old = self.value;
        debug_assert!(!defs.values().any(|v| *v == old));
        for inst in self.func.block(block).insts.clone() {
            for arg in &mut self.func.inst_mut(inst).args {
                if *arg == old {
                    *arg = new;
                }
            }
        }
        self.func.block_mut(block).term.map_uses(|arg| if arg == old { new } else { arg });
    }
}

/// Whether every use of a loop's value outside the loop is a parameter of an exit block: what [`close_loops`] brings about.
pub fn is_closed(func: &Function, cfg: &Cfg, loops: &Loops) -> bool {
    let def_block = def_blocks(func, cfg);
    cfg.order().iter().all(|&block| {
        let data = func.block(block);
        let mut read =
            data.insts.iter().flat_map(|inst| func.inst(*inst).args.clone()).chain(data.term.uses());
        read.all(|value| {
            matches!(func.def(value), Def::Removed)
                || def_block[value.index()]
                    .is_none_or(|at| loops.around(at).all(|id| loops.contains(id, block)))
        })
    })
}
