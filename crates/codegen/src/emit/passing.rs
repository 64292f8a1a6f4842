//! Stores that pass by the caches.
//!
//! A store to what is in no cache first reads the line that it is in. Where whole lines are written, and so many of them that the first have left the
//! caches before the kernel is through, that is in vain, and so is keeping them: such stores go straight to memory. How much a kernel writes is known
//! when it runs, by its grid or by the limit of the loop in which its warps take turns, so its code has both ways.
//!
//! These stores come in any order. A kernel has them only where nothing can tell, and ends with a fence.

use std::mem::offset_of;

use kernel_abi::{CompileError, LaunchFrame, Tier};
use simt_ir::{Access, Inst, Op, Order, Space};
use transform::{Prepared, stride};

use super::Unit;
use super::function::Emitter;
use crate::llvm::{IntPredicate, Value};

/// Bytes of which the caches of a few processors keep little. Nothing but time depends on it.
const MANY: u64 = 32 << 20;
/// Bytes of a line.
const LINE: u32 = 64;

/// Whether a kernel without suspension points may have such stores.
pub(super) fn is_possible(unit: Unit<'_, '_>, kernel: &Prepared) -> bool {
    cfg!(target_arch = "x86_64") && unit.machine.tier() == Tier::Full && stride::has_no_order(kernel)
}

/// Orders such stores before what follows.
pub(super) fn arrive(unit: Unit<'_, '_>) {
    unit.b.intrinsic("llvm.x86.sse.sfence", &[], &[]);
}

impl<'c> Emitter<'_, 'c> {
    /// Whether a store may pass by the caches if it is of whole lines: nothing reads what it writes.
    pub(super) fn may_pass_by(&self, inst: Inst, access: Access) -> bool {
        let p = self.p;
        let address = p.func.inst(inst).args[0];
        let reads = |inst: &Inst| {
            let data = p.func.inst(*inst);
            matches!(data.op, Op::Load(_)) && data.args[0] == address
        };
        self.passes_by
            && access.order == Order::Weak
            && matches!(access.space, Space::Global | Space::Generic)
            && !p.cfg.order().iter().flat_map(|block| &p.func.block(*block).insts).any(reads)
    }

    /// Whether this is one of many stores of whole lines.
    pub(super) fn passes_by_caches(
        &mut self,
        value: Value<'c>,
        start: Value<'c>,
        mask: Value<'c>,
    ) -> Option<Value<'c>> {
        let b = self.unit.b;
        let bytes = value.ty().scalar_bits() / 8 * value.ty().lanes();
        if !bytes.is_multiple_of(LINE) {
            return None;
        }
        let many = self.stores_many((value.ty().scalar_bits() / 8).into())?;
        let low = b.and(start, start.ty().int_const((LINE - 1).into()));
        let passes = b.and(many, b.icmp(IntPredicate::Eq, low, low.ty().zero()));
        Some(if self.is_full() { passes } else { b.and(passes, b.all(mask)) })
    }

    /// Stores a vector around the caches where the condition holds, and as `usual` does otherwise.
    pub(super) fn store_passing(
        &mut self,
        condition: Value<'c>,
        value: Value<'c>,
        start: Value<'c>,
        usual: impl FnOnce(&mut Self) -> Result<(), CompileError>,
    ) -> Result<(), CompileError> {
        let b = self.unit.b;
        let [passing, through, after] = ["passing", "through", "stored"].map(|name| b.append_block(name));
        b.cond_br(condition, passing, through);
        b.position_at_end(passing);
        b.mark_nontemporal(b.store(value, b.inttoptr(start), LINE));
        b.br(after);
        b.position_at_end(through);
        let mark = self.mark();
        usual(self)?;
        self.forget_since(mark);
        b.br(after);
        b.position_at_end(after);
        Ok(())
    }

    /// Whether the kernel writes more than caches keep, if it writes so many bytes for each of its threads, or for each number that the loop goes
    /// through in which warps take turns.
    fn stores_many(&mut self, bytes: u64) -> Option<Value<'c>> {
        let p = self.p;
        let Some(id) = p.loops.innermost(self.current) else { return Some(self.threads_move(MANY, bytes)) };
        if !self.turns.iter().any(|latch| p.loops.innermost(*latch) == Some(id)) {
            return None;
        }
        let limit = stride::limit(p, id)?;
        if !self.is_prologue(limit) {
            return None;
        }
        let limit = self.natural(limit);
        Some(self.unit.b.icmp(IntPredicate::Sge, limit, limit.ty().int_const(MANY.div_ceil(bytes))))
    }

    /// Whether the grid has so many threads that so many bytes for each come to `many`.
    pub(super) fn threads_move(&mut self, many: u64, bytes: u64) -> Value<'c> {
        let b = self.unit.b;
        let threads = *self.threads.get_or_insert_with(|| {
            let (i32, i64) = (self.unit.types.i32, self.unit.types.i64);
            let here = b.block();
            b.position_at_end(self.prologue);
            let field = |offset: usize| {
                let number = b.load(i32, b.ptr_offset(self.place.launch, offset as i64), 4);
                b.zext(b.mark_invariant(number), i64)
            };
            let along = |axis: usize| field(offset_of!(LaunchFrame, grid) + 4 * axis);
            let block = field(offset_of!(LaunchFrame, threads));
            let threads = (0..3).map(along).fold(block, |threads, blocks| b.mul(threads, blocks));
            b.position_at_end(here);
            threads
        });
        b.icmp(IntPredicate::Uge, threads, threads.ty().int_const(many.div_ceil(bytes)))
    }
}
