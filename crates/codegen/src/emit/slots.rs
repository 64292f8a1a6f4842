//! Slots: stack memory for values that several blocks use. LLVM makes registers of them.

use simt_ir::{Block, Value as IrValue};
use transform::LaneShape;

use super::function::Emitter;
use super::stack::stack_align;
use super::suspend::SlotId;
use crate::llvm::{Type, Value};

/// A store to a slot.
pub struct SlotWrite<'c> {
    pub slot: SlotId,
    pub value: Value<'c>,
    pub store: Value<'c>,
    /// A block that control passes as often as the store.
    pub block: Block,
}

impl<'c> Emitter<'_, 'c> {
    pub(super) fn slot(&mut self, value: IrValue) -> SlotId {
        let value = self.places.get(value.index()).copied().unwrap_or(value);
        let (value, elements) =
            self.packs.of(value).map_or((value, 1), |(pack, _)| (pack[0], pack.len() as u32));
        if let Some(slot) = self.slots.get(&value) {
            return *slot;
        }
        let lane = self.lane_type(value);
        let ty = match self.p.shapes.of(value) {
            LaneShape::Varying => lane.vector(self.unit.lanes * elements),
            LaneShape::Rows(_) => lane.vector(self.unit.rows()),
            LaneShape::Uniform | LaneShape::Affine(_) => lane,
        };
        let slot = self.new_slot(ty);
        self.slots.insert(value, slot);
        slot
    }

    /// Whether an argument's slot is the parameter's, so that there is nothing to move.
    pub(super) fn is_kept_for(&self, param: IrValue, arg: IrValue) -> bool {
        let place = |value: IrValue| self.places.get(value.index());
        self.crossing[arg.index()] && place(param).is_some() && place(param) == place(arg)
    }

    pub(super) fn mask_slot(&mut self, block: Block) -> SlotId {
        if let Some(slot) = self.masks.get(&block) {
            return *slot;
        }
        let slot = self.new_slot(self.unit.types.mask);
        self.masks.insert(block, slot);
        slot
    }

    pub(super) fn new_slot(&mut self, ty: Type<'c>) -> SlotId {
        let memory = self.stack(ty);
        self.slot_list.push((memory, ty));
        SlotId(self.slot_list.len() as u32 - 1)
    }

    pub(super) fn read_slot(&mut self, slot: SlotId) -> Value<'c> {
        self.flow.read(slot);
        let (memory, ty) = self.slot_list[slot.0 as usize];
        self.unit.b.load(ty, memory, stack_align(ty))
    }

    pub(super) fn write_slot(&mut self, slot: SlotId, value: Value<'c>) {
        self.write_slot_as_often_as(self.current, slot, value);
    }

    /// Likewise, where control passes not more often than it does that block.
    pub(super) fn write_slot_as_often_as(&mut self, block: Block, slot: SlotId, value: Value<'c>) {
        self.flow.write(slot);
        let (memory, ty) = self.slot_list[slot.0 as usize];
        let store = self.unit.b.store(value, memory, stack_align(ty));
        self.writes.push(SlotWrite { slot, value, store, block });
    }

    /// Where lanes enter a loop, nobody waits yet in the blocks that it is left for: what their parameters hold is not needed any more, which
    /// would otherwise be kept for lanes that are not there, past barriers too.
    pub(super) fn clear_exits(&mut self, id: transform::LoopId) {
        let p = self.p;
        for &block in p.linear.order() {
            let params = &p.func.block(block).params;
            if params.is_empty()
                || !p.linear.is_delayed(block)
                || transform::Linear::left_loop(&p.cfg, &p.loops, block) != Some(id)
            {
                continue;
            }
            for &param in params.iter().filter(|param| p.shapes.of(**param).is_varying()) {
                let slot = self.slot(param);
                self.empty_slot(slot);
            }
        }
    }

    /// Where a warp begins its turn: nothing is kept of the one before. The builder stands at the prologue's end.
    pub(super) fn empty_slots(&self) {
        for &(memory, ty) in &self.slot_list {
            self.unit.b.store(ty.undef(), memory, stack_align(ty));
        }
    }

    /// What a slot holds is not needed any more.
    fn empty_slot(&mut self, slot: SlotId) {
        self.flow.write(slot);
        let (memory, ty) = self.slot_list[slot.0 as usize];
        self.unit.b.store(ty.undef(), memory, stack_align(ty));
    }
}
