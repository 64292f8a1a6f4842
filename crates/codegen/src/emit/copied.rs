//! Rows that go from global to shared memory, as those of tiles do.
//!
//! Where what a load has read is stored at once, its rows are loaded and stored one after another rather than first all loaded, then all stored: the
//! load is done again beside the store, and what it has done before is not used. While rows come from far, those that are there go on, and none
//! of them waits in a register for others (Zen 5: products by tiles of 32 × 32 take 0.98 of the time, transposition 0.94).

use std::collections::HashMap;

use simt_ir::{Access, Inst, Op, Order, Space, Value as IrValue};

use super::address::Address;
use super::function::Emitter;
use super::mark::Mark;
use super::memory::Pattern;
use crate::llvm::{Type, Value};

/// What may be loaded again, by the value that it is: nothing has been written since but shared memory.
#[derive(Default)]
pub(super) struct Copies<'c>(HashMap<IrValue, Rows<'c>>);

/// Where rows of so many lanes begin.
struct Rows<'c> {
    lane: Type<'c>,
    lanes: u32,
    starts: Vec<Value<'c>>,
    mark: Mark,
}

impl<'c> Emitter<'_, 'c> {
    /// Notes a load that a store may do again.
    pub(super) fn note_copy(&mut self, inst: Inst, access: Access, address: &Address<'c>, mark: Mark) {
        let result = self.p.func.inst(inst).results[0];
        let lane = self.lane_type(result);
        let size = lane.scalar_bits() / 8;
        let is_plain = access.space == Space::Global && access.order == Order::Weak && access.lanes == 1;
        if !is_plain || self.is_quick() || !self.is_full() || self.uses[result.index()] != 1 {
            return;
        }
        if let Pattern::Pieces { lanes, same: false, starts } = self.pattern(address, size, 1, true)
            && (lanes * size).is_multiple_of(self.unit.machine.cpu().registers().bytes)
        {
            self.copies.0.insert(result, Rows { lane, lanes, starts, mark });
        }
    }

    /// Stores what has just been loaded, if it is: answers whether.
    pub(super) fn store_copied(
        &mut self,
        value: IrValue,
        access: Access,
        address: &Address<'c>,
        mark: Mark,
    ) -> bool {
        if access.space != Space::Shared || access.order != Order::Weak || !self.is_full() {
            return false;
        }
        let Some(rows) = self.copies.0.remove(&value) else { return false };
        let (b, size) = (self.unit.b, rows.lane.scalar_bits() / 8);
        let to = self.pattern(address, size, 1, false).pieces(self.unit.lanes);
        let Some((starts, lanes)) = to.filter(|(_, lanes)| lanes.is_multiple_of(rows.lanes)) else {
            return false;
        };
        let register = self.unit.machine.cpu().registers().bytes / size;
        for lane in (0..self.unit.lanes).step_by(register as usize) {
            let place = |starts: &[Value<'c>], lanes: u32| {
                let start = starts[(lane / lanes) as usize];
                b.inttoptr(self.offset(start, i64::from(lane % lanes * size)))
            };
            let from = place(&rows.starts, rows.lanes);
            let part = self.loaded(rows.lane.vector(register), from, rows.mark);
            self.marked(b.store(part, place(&starts, lanes), size), mark);
        }
        true
    }

    /// An instruction comes: what may not be done after it is no copy.
    pub(super) fn end_copies(&mut self, op: &Op) {
        let goes_on = match op {
            Op::Load(access) => access.order == Order::Weak,
            Op::Store(access) => access.order == Order::Weak && access.space == Space::Shared,
            op => op.is_pure(),
        };
        if !goes_on {
            self.forget_copies();
        }
    }

    pub(super) fn forget_copies(&mut self) {
        self.copies.0.clear();
    }
}
