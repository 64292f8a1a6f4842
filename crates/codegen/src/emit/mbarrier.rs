//! Barriers in memory. They lie in shared memory, which belongs to the host thread that runs the block or its cluster: lanes arrive
//! one after another, and nobody comes between.

use simt_ir::mbarrier::{COUNT_BITS, COUNT_MASK, EXPECTED_AT, PENDING_AT, PHASE_AT, TX_MASK};
use simt_ir::{Access, Inst};

use super::LANES;
use super::function::Emitter;
use crate::llvm::{IntPredicate, Value};

impl<'c> Emitter<'_, 'c> {
    /// Arrivals at barriers: the meaning is [`simt_ir::mbarrier::arrive`]'s.
    pub(super) fn mbarrier_arrive(&mut self, inst: Inst, drop: bool, access: Access) {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        let (i32, i64) = (self.unit.types.i32, self.unit.types.i64);
        self.check_alignment(data.args[0], access, 8, data.loc, None);
        let address = self.address(data.args[0], access);
        let addresses = self.all_addresses(&address);
        let addresses = self.spill(addresses);
        let counts = self.lane_array(data.args[1]);
        let bytes = self.lane_array(data.args[2]);
        let results = data.results.first().map(|_| self.scratch(i64.vector(LANES)));
        let mask = self.active();
        self.for_each_lane(b.mask_to_int(mask), |this, at| {
            let ptr = b.inttoptr(this.element(addresses, at, i64));
            let count = b.int_resize(this.element(counts, at, i32), i64, false);
            let tx = b.int_resize(this.element(bytes, at, i32), i64, false);
            let old = b.load(i64, ptr, 8);
            b.store(this.arrived(old, count, tx, drop), ptr, 8);
            if let Some(results) = results {
                b.store(old, this.element_ptr(results, at, i64), 8);
            }
        });
        self.define_from_array(&data.results, results);
    }

    /// A barrier's bits after arrivals.
    fn arrived(&self, old: Value<'c>, count: Value<'c>, tx: Value<'c>, drop: bool) -> Value<'c> {
        let b = self.unit.b;
        let i64 = old.ty();
        let number = |value: u64| i64.int_const(value);
        let count_at = |at: u32| b.and(b.lshr(old, number(at.into())), number(COUNT_MASK));
        let tx = b.and(b.add(old, tx), number(TX_MASK));
        let less = |value: Value<'c>| b.and(b.sub(value, count), number(COUNT_MASK));
        let expected = count_at(EXPECTED_AT);
        let expected = if drop { less(expected) } else { expected };
        let pending = less(count_at(PENDING_AT));
        let phase = b.and(old, number(1 << PHASE_AT));
        let complete = b.icmp(IntPredicate::Eq, b.or(pending, tx), i64.zero());
        let waited_for = b.select(complete, expected, pending);
        let next = b.xor(phase, number(1 << PHASE_AT));
        let phase = b.select(complete, next, phase);
        let counts = b.or(expected, b.shl(waited_for, number(COUNT_BITS.into())));
        b.or(b.or(phase, b.shl(counts, number(EXPECTED_AT.into()))), tx)
    }
}
