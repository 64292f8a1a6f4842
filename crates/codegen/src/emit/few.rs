//! Few lanes that go on one after another (`transform::stragglers`).

use simt_ir::{Block, Inst, InstData, Op, Value as IrValue};

use super::function::Emitter;
use crate::llvm::IntPredicate;

impl<'c> Emitter<'_, 'c> {
    /// [`Op::FewLanes`].
    pub(super) fn few_lanes(&mut self, data: &InstData, most: u8) {
        let b = self.unit.b;
        let few = if u32::from(most) >= self.unit.lanes {
            self.unit.types.bit.all_ones()
        } else if self.is_full() {
            self.unit.types.bit.zero()
        } else {
            let active = self.active();
            let count = b.ctpop(b.mask_to_int(active));
            b.icmp(IntPredicate::Ule, count, count.ty().int_const(most.into()))
        };
        self.define(data.results[0], few);
    }

    /// Whether a block only asks whether few lanes are left, and goes on where they are not.
    pub(super) fn asks_for_few(&self, block: Block, cond: IrValue) -> bool {
        let p = self.p;
        let asks = matches!(p.op_of(cond), Some(Op::FewLanes(_))) && p.def_block[cond.index()] == Some(block);
        asks && p.func.block(block).insts.len() == 1
    }

    /// Before a loop that goes from lane to lane: what each begins with goes to memory, once for all.
    pub(super) fn lay_out(&mut self, from: Block, to: Block) {
        let p = self.p;
        if p.loops.headed_by(to).is_none() || p.loops.is_back_edge(from, to) {
            return;
        }
        for inst in &p.func.block(to).insts {
            let data = p.func.inst(*inst);
            let value = data.args.first().copied().filter(|_| data.op == Op::FirstLane);
            // Bits are no elements of memory.
            let is_laid_out = |value: &IrValue| {
                let is_outside = p.def_block[value.index()] != Some(to);
                p.shapes.of(*value).is_varying()
                    && is_outside
                    && self.lane_type(*value) != self.unit.types.bit
            };
            if let Some(value) = value.filter(is_laid_out) {
                let lanes = self.vector(value);
                let memory = self.stack(lanes.ty());
                self.unit.b.store(lanes, memory, 64);
                self.laid_out.insert(*inst, memory);
            }
        }
    }

    /// [`Op::FirstLane`].
    pub(super) fn first_lane(&mut self, inst: Inst) {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        let value = data.args[0];
        let first = if self.p.shapes.of(value).is_uniform() {
            self.natural(value)
        } else {
            let active = self.active();
            let lane = b.cttz(b.mask_to_int(active));
            match self.laid_out.get(&inst) {
                Some(memory) => self.element(*memory, lane, self.lane_type(value)),
                None => b.extract_dynamic(self.vector(value), lane),
            }
        };
        self.define(data.results[0], first);
    }
}
