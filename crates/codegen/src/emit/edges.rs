//! What goes from block to block: values and lanes.

use simt_ir::{Block, Target, Value as IrValue};

use super::function::Emitter;
use crate::llvm::Value;

/// How a parameter comes by its value along an edge.
enum Merging {
    /// It is the argument.
    None,
    /// The argument is that of the lanes that go along the edge.
    Choice,
    /// It is anything: of the lanes that go along the edge none reads it.
    Unread,
}

impl<'c> Emitter<'_, 'c> {
    /// Gives an edge's target its arguments and its lanes.
    pub(super) fn pass_on(&mut self, target: &Target, lanes: Value<'c>) {
        let b = self.unit.b;
        let p = self.p;
        let delayed = p.linear.is_delayed(target.block);
        let merges = delayed && !p.linear.is_first_way(&p.cfg, &p.loops, self.current, target.block);
        let params = &p.func.block(target.block).params;
        // All arguments are read before any parameter is written: they may be parameters of the same block.
        let args: Vec<Option<Value<'c>>> = params
            .iter()
            .zip(&target.args)
            .map(|(param, arg)| match self.pack_of(*param) {
                // All of a pack go where the first goes.
                Some(pack) if pack[0] == *param => Some(self.passed_wide(target, &pack)),
                Some(_) => None,
                None if p.shapes.of(*param).is_varying() => Some(self.vector(*arg)),
                None => Some(self.natural(*arg)),
            })
            .collect();
        // Control that leaves a loop, or enters one, does so as often as what is outside is passed.
        let from = self.current;
        let depth = |block: Block| p.loops.around(block).count();
        let often = match p.shapes.divergent()[from.index()] {
            false if depth(target.block) < depth(from) => target.block,
            _ => from,
        };
        for ((param, arg), new) in params.iter().zip(&target.args).zip(args) {
            let Some(new) = new.filter(|_| !self.is_kept_for(*param, *arg)) else { continue };
            let slot = self.slot(*param);
            let new = match self.merging(*param, target.block, merges) {
                Merging::Unread if merges => continue,
                Merging::Unread => b.freeze(new.ty().poison()),
                Merging::Choice => b.select(lanes, new, self.read_slot(slot)),
                Merging::None => new,
            };
            self.write_slot_as_often_as(often, slot, new);
        }
        if let Some(id) = p.loops.headed_by(target.block)
            && !p.loops.contains(id, from)
        {
            self.clear_exits(id);
        }
        if p.full[target.block.index()] || p.linear.mask_of(target.block) != target.block {
            return;
        }
        let slot = self.mask_slot(target.block);
        let leaves_loop =
            p.loops.innermost(self.current).is_some_and(|id| !p.loops.contains(id, target.block));
        let lanes = if delayed && (leaves_loop || p.cfg.preds(target.block).len() > 1) {
            // Lanes may wait there that came another way, or in an earlier iteration.
            let waiting = self.read_slot(slot);
            b.or(waiting, lanes)
        } else {
            lanes
        };
        self.write_slot(slot, lanes);
    }

    /// Empties the masks of blocks that lanes may wait for, directly inside a loop or outside all.
    pub(super) fn clear_masks(&mut self, level: Option<transform::LoopId>) {
        for &block in self.p.linear.order() {
            let own = self.p.linear.mask_of(block) == block && !self.p.full[block.index()];
            let header = self.p.loops.headed_by(block).is_some();
            let at = if header {
                // The header's own mask is set by the preheader and the latch.
                continue;
            } else {
                self.p.loops.innermost(block)
            };
            if own && at == level && self.p.linear.is_delayed(block) {
                let slot = self.mask_slot(block);
                self.write_slot(slot, self.unit.types.mask.zero());
            }
        }
    }

    /// At the beginning of the loop around regions: what a lane brought to a block where it waited for others is used up. Otherwise it would be
    /// carried through all regions, for lanes that come to that block later keep what the others have there.
    pub(super) fn clear_params(&mut self, level: transform::LoopId) {
        let p = self.p;
        for &block in p.linear.order() {
            if p.loops.innermost(block) != Some(level)
                || p.loops.headed_by(block).is_some()
                || !p.linear.is_delayed(block)
            {
                continue;
            }
            for param in p.func.block(block).params.iter().filter(|param| p.shapes.of(**param).is_varying()) {
                let slot = self.slot(*param);
                let zero = self.slot_list[slot.0 as usize].1.zero();
                self.write_slot(slot, zero);
            }
        }
    }

    /// How a parameter comes by its value along the edge from the current block, which `merges` if lanes may have come to the target another way.
    fn merging(&self, param: IrValue, target: Block, merges: bool) -> Merging {
        let p = self.p;
        if !p.shapes.of(param).is_varying() {
            return Merging::None;
        }
        // Lanes that leave a loop come to what is behind it along one edge, but not at once; and what a header has is also that of the last iteration.
        let at_once = p.loops.innermost(self.current) == p.loops.innermost(target)
            && p.loops.headed_by(target).is_none();
        match p.unread.only_way(param).filter(|_| at_once) {
            Some(way) if way != self.current => Merging::Unread,
            Some(_) => Merging::None,
            None if merges => Merging::Choice,
            None => Merging::None,
        }
    }
}
