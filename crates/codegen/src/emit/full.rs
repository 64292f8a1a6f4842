//! Code for all lanes beside the code for some.
//!
//! Most warps have all their lanes in most blocks. Where masks have no registers of their own, accesses by the lanes of a mask take several
//! times as long as plain ones, and some processors take tens of cycles for a store: a block that accesses memory is there twice then.

use kernel_abi::CompileError;
use simt_ir::{Block, Op, Value as IrValue};

use super::function::Emitter;
use crate::llvm::Value;
use crate::target::Level;

/// Vectors of a warp that a block may compute to be there twice. In larger ones each access is.
const SMALL: u32 = 64;

impl<'c> Emitter<'_, 'c> {
    /// Whether accesses by some lanes take much longer than those by all.
    pub(super) fn prefers_full(&self) -> bool {
        self.unit.machine.cpu().level() < Level::Avx512
    }

    /// Emits the instructions of the current block.
    pub(super) fn insts(&mut self, block: Block) -> Result<(), CompileError> {
        if self.is_full() || !self.prefers_full() || !self.is_worth_two(block) {
            return self.insts_once(block);
        }
        let b = self.unit.b;
        let mask = self.active();
        let results = self.needed_at_end(block);
        let before = self.joined.clone();
        let values = self.either(
            b.all(mask),
            |this| {
                this.all_active = true;
                let done = this.insts_once(block);
                this.all_active = false;
                done?;
                Ok(this.naturals(&results))
            },
            |this| {
                this.joined = before;
                this.insts_once(block)?;
                Ok(this.naturals(&results))
            },
        )?;
        for (result, value) in results.into_iter().zip(values) {
            self.have(result, value);
        }
        Ok(())
    }

    fn insts_once(&mut self, block: Block) -> Result<(), CompileError> {
        for &inst in &self.p.func.block(block).insts {
            self.begin_scratch();
            self.inst(inst)?;
        }
        Ok(())
    }

    fn naturals(&mut self, values: &[IrValue]) -> Vec<Value<'c>> {
        values.iter().map(|value| self.natural(*value)).collect()
    }

    /// Whether the block accesses memory by vectors, is small, and does nothing that a warp does only once.
    fn is_worth_two(&self, block: Block) -> bool {
        let p = self.p;
        let insts = || p.func.block(block).insts.iter().map(|inst| p.func.inst(*inst));
        let is_access = |op: &Op| matches!(op, Op::Load(_) | Op::Store(_));
        let vectors = insts().filter(|data| data.results.iter().any(|value| p.shapes.of(*value).is_vector()));
        insts().all(|data| data.op.is_pure() || is_access(&data.op) || matches!(data.op, Op::Atomic(..)))
            && insts().any(|data| is_access(&data.op) && !p.shapes.of(data.args[0]).is_uniform())
            && vectors.count() as u32 * self.unit.lanes <= SMALL * super::LANES
    }

    /// What the block computes and its end uses.
    fn needed_at_end(&mut self, block: Block) -> Vec<IrValue> {
        let p = self.p;
        let mut needed: Vec<IrValue> = p.func.block(block).term.uses();
        needed.sort_unstable();
        needed.dedup();
        needed.retain(|value| {
            p.func.def_inst(*value).is_some()
                && p.def_block[value.index()] == Some(block)
                && !self.is_prologue(*value)
        });
        needed
    }
}
