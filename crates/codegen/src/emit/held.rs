//! Shared memory that registers stand for: what is found by [`transform::held`].

use kernel_abi::RESERVED_SHARED;
use simt_ir::Inst;
use transform::held::Held;

use super::function::Emitter;

impl Emitter<'_, '_> {
    /// Finds what need not be in memory; before anything is emitted.
    pub(super) fn hold(&mut self) {
        let p = self.p;
        let window = u64::from(RESERVED_SHARED + self.unit.program.shared_bytes);
        let held = Held::find(p, self.unit.shape, window, self.unit.machine.cpu().registers());
        let results = |load: Inst| &p.func.inst(load).results;
        if held.reloads().any(|(load, _)| results(load).iter().any(|value| self.packs.of(*value).is_some())) {
            return;
        }
        for (load, value) in held.reloads() {
            let block = p.def_block[results(load)[0].index()];
            self.crossing[value.index()] |= p.def_block[value.index()] != block;
        }
        self.held = held;
    }

    /// Defines what a load gives that registers stand for. Answers whether it is one.
    pub(super) fn load_held(&mut self, inst: Inst) -> bool {
        let Some(reload) = self.held.reload(inst).cloned() else { return false };
        let b = self.unit.b;
        let result = self.p.func.inst(inst).results[0];
        let stored = self.vector(reload.value);
        let lanes: Vec<i32> = reload.lanes.iter().map(|lane| *lane as i32).collect();
        let loaded = b.shuffle(stored, stored, &lanes);
        self.define(result, b.bitcast(loaded, self.lane_type(result).vector(self.unit.lanes)));
        true
    }
}
