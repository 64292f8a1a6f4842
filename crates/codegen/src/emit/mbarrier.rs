//! Barriers in memory. They lie in shared memory, which belongs to the host thread that runs the block or its cluster: lanes arrive
//! one after another, and nobody comes between.

use simt_ir::mbarrier::{COUNT_BITS, COUNT_MASK, EXPECTED_AT, PENDING_AT, PHASE_AT, TX_MASK};
use simt_ir::{Access, Inst};

use super::LANES;
use super::function::Emitter;
use crate::llvm::{IntPredicate, Value};

impl<'c> Emitter<'_, 'c> {
    /// Arrivals at barriers: the meaning is [`simt_ir::mbarrier::arrive`]'s, and [`simt_ir::mbarrier::is_too_many`]'s of lanes that arrive
    /// together.
    pub(super) fn mbarrier_arrive(&mut self, inst: Inst, drop: bool, together: bool, access: Access) {
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
        let first = together.then(|| self.scratch(i64.vector(LANES)));
        if let Some(first) = first {
            self.for_each_lane(b.mask_to_int(mask), |this, at| {
                let ptr = b.inttoptr(this.element(addresses, at, i64));
                b.store(b.load(i64, ptr, 8), this.element_ptr(first, at, i64), 8);
            });
        }
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
        match (first, results, &data.results[..]) {
            (Some(first), Some(results), [old, too_many]) => {
                let words = i64.vector(LANES);
                let (first, now) = (b.load(words, first, 64), b.load(words, results, 64));
                let count = self.vector(data.args[1]);
                let exceeded = self.is_too_many(first, now, count);
                self.define(*old, first);
                self.define(*too_many, exceeded);
            }
            _ => self.define_from_array(&data.results, results),
        }
    }

    /// In which lanes more arrive than a barrier waits for.
    fn is_too_many(&self, first: Value<'c>, now: Value<'c>, count: Value<'c>) -> Value<'c> {
        let b = self.unit.b;
        let words = first.ty();
        let number = |value: u64| b.splat(self.unit.types.i64.int_const(value), LANES);
        let pending = b.and(b.lshr(now, number(PENDING_AT.into())), number(COUNT_MASK));
        let count = b.int_resize(count, words, false);
        let more = b.icmp(IntPredicate::Ult, pending, count);
        let later = b.icmp(IntPredicate::Slt, b.xor(first, now), words.zero());
        b.and(b.icmp(IntPredicate::Ne, count, words.zero()), b.or(more, later))
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
