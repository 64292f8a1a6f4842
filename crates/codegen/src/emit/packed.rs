//! Packs: values that stay as they lie in memory, interleaved in one long vector. Which do is found by [`transform::packs`].
//!
//! A pack is computed at once, where the first of its values is: what it is made of is at hand there, since that is packs as well, or the same for
//! all. It has one slot. A value of it that is wanted by itself is taken out by shuffles.

use kernel_abi::CompileError;
use simt_ir::{InstData, Value as IrValue};
use transform::LaneShape;
use transform::packs::{alike_lanes, are_same, passed};

use super::address::Address;
use super::function::{AtHand, Emitter};
use super::mark::Mark;
use crate::llvm::{Type, Value};

/// Registers that one load fills.
const MOST_AT_ONCE: u32 = 8;

impl<'c> Emitter<'_, 'c> {
    /// The pack that a value is in.
    pub(super) fn pack_of(&self, value: IrValue) -> Option<Vec<IrValue>> {
        self.packs.of(value).map(|(pack, _)| pack.to_vec())
    }

    /// A pack is at hand from now on, and in its slot if other blocks read it.
    pub(super) fn define_pack(&mut self, pack: &[IrValue], wide: Value<'c>) {
        self.made.insert(pack[0]);
        self.wides.insert(pack[0], wide);
        self.added.push((AtHand::Wide, pack[0]));
        if pack.iter().any(|value| self.crossing[value.index()]) {
            let slot = self.slot(pack[0]);
            self.write_slot(slot, wide);
        }
    }

    /// A value of a pack has been computed by itself, as the others will be.
    pub(super) fn define_apart(&mut self, pack: &[IrValue]) {
        let vectors: Option<Vec<Value<'c>>> =
            pack.iter().map(|value| self.local.get(value).copied()).collect();
        if let Some(vectors) = vectors {
            let wide = self.join(&vectors);
            self.define_pack(pack, wide);
        }
    }

    /// A pack as one vector, unless it is of values that are computed by themselves, not all of them yet.
    fn wide(&mut self, pack: &[IrValue]) -> Option<Value<'c>> {
        if let Some(known) = self.wides.get(&pack[0]) {
            return Some(*known);
        }
        if self.p.func.def_inst(pack[0]).is_some() && !self.made.contains(&pack[0]) {
            return None;
        }
        let slot = self.slot(pack[0]);
        let wide = self.read_slot(slot);
        self.wides.insert(pack[0], wide);
        self.added.push((AtHand::Wide, pack[0]));
        Some(wide)
    }

    /// A value of a pack by itself.
    pub(super) fn taken_out(&mut self, pack: &[IrValue], value: IrValue) -> Option<Value<'c>> {
        let wide = self.wide(pack)?;
        let vectors = self.split(wide, pack.len() as u32);
        for (value, vector) in pack.iter().zip(vectors) {
            self.have(*value, vector);
        }
        self.local.get(&value).copied()
    }

    /// Values as one vector, whether they are a pack or not.
    fn as_wide(&mut self, values: &[IrValue]) -> Value<'c> {
        if self.packs.is_pack(values)
            && let Some(wide) = self.wide(values)
        {
            return wide;
        }
        if are_same(self.p, values) && self.p.shapes.of(values[0]) == &LaneShape::Uniform {
            let natural = self.natural(values[0]);
            return self.unit.b.splat(natural, self.unit.lanes * values.len() as u32);
        }
        if are_same(self.p, values)
            && let Some(alike) = alike_lanes(self.p, values[0])
        {
            let b = self.unit.b;
            let vector = self.vector(values[0]);
            let spread = |lane| b.splat(b.extract(vector, lane), alike * values.len() as u32);
            return self.concatenated((0..self.unit.lanes).step_by(alike as usize).map(spread).collect());
        }
        let vectors: Vec<Value<'c>> = values.iter().map(|value| self.vector(*value)).collect();
        self.join(&vectors)
    }

    /// The argument of an edge for a pack of parameters.
    pub(super) fn passed_wide(&mut self, target: &simt_ir::Target, pack: &[IrValue]) -> Value<'c> {
        let args = passed(self.p, target, pack);
        self.as_wide(&args)
    }

    /// Computes the pack that an instruction's result is in, unless that has been done. Not where what it is made of is not at hand as a whole.
    pub(super) fn pure_packed(&mut self, data: &InstData, result: IrValue) -> Result<bool, CompileError> {
        if self.packs.passes_by(result) {
            return Ok(true);
        }
        if let Some(word) = self.word_of_pack(result) {
            self.define(result, word);
            return Ok(true);
        }
        let Some(pack) = self.pack_of(result) else { return Ok(false) };
        if self.wides.contains_key(&pack[0]) {
            return Ok(true);
        }
        if pack.iter().any(|value| self.local.contains_key(value)) {
            return Ok(false);
        }
        if let Some(word) = self.packs.word_of(&pack) {
            let words = self.vector(word);
            let wide = self.unit.context().int(16).vector(2 * self.unit.lanes);
            self.define_pack(&pack, self.unit.b.bitcast(words, wide));
            return Ok(true);
        }
        let p = self.p;
        let mut args = Vec::new();
        for at in 0..data.args.len() {
            let values: Vec<IrValue> =
                pack.iter().filter_map(|value| p.func.def_inst(*value)).map(|data| data.args[at]).collect();
            if self.packs.is_pack(&values) && self.wide(&values).is_none() {
                return Ok(false);
            }
            args.push(self.as_wide(&values));
        }
        let types: Vec<simt_ir::Type> = data.args.iter().map(|arg| p.func.ty(*arg)).collect();
        let Some(wide) = self.computed(data.op, &args, &types, p.func.ty(result)) else {
            return Ok(false);
        };
        self.define_pack(&pack, wide);
        Ok(true)
    }

    /// A word that is put together of a pack.
    fn word_of_pack(&mut self, word: IrValue) -> Option<Value<'c>> {
        let pack = self.packs.joined_as(word)?.to_vec();
        let wide = self.as_wide(&pack);
        Some(self.unit.b.bitcast(wide, self.unit.types.i32.vector(self.unit.lanes)))
    }

    /// Loads values that stay together; answers whether these do.
    pub(super) fn load_packed(
        &mut self,
        values: &[IrValue],
        address: &Address<'c>,
        lane: Type<'c>,
        mark: Mark,
    ) -> Result<bool, CompileError> {
        if !self.packs.is_pack(values) {
            return Ok(false);
        }
        let Some(wide) = self.load_interleaved(address, lane, values.len() as u32, mark)? else {
            return Ok(false);
        };
        self.define_pack(values, wide);
        Ok(true)
    }

    /// So many elements of each lane as they lie in memory; nothing if they do not lie one after another.
    fn load_interleaved(
        &mut self,
        address: &Address<'c>,
        lane: Type<'c>,
        count: u32,
        mark: Mark,
    ) -> Result<Option<Value<'c>>, CompileError> {
        let pattern = self.pattern(address, lane.scalar_bits() / 8, count, true);
        let Some((starts, lanes)) = pattern.pieces(self.unit.lanes) else { return Ok(None) };
        let size = lane.scalar_bits() / 8;
        let register = self.unit.machine.cpu().registers().bytes;
        // LLVM loads the parts of a long vector the last one first, which processors do not see coming: volatile loads stay in order.
        if let [start] = starts[..]
            && lanes * count * size > MOST_AT_ONCE * register
            && self.is_full()
            && !mark.anywhere
        {
            let (b, i64, elements) = (self.unit.b, self.unit.types.i64, register / size);
            let starts: Vec<_> = (0..lanes * count * size / register)
                .map(|at| b.add(start, i64.int_const(u64::from(at * register))))
                .collect();
            let mask = self.unit.types.bit.vector(lanes * count).all_ones();
            let parts = self.load_runs(lane, &starts, elements, 1, mask, Mark::VOLATILE)?;
            return Ok(Some(self.concatenated(parts)));
        }
        self.load_pieces(lane, &starts, lanes, count, mark).map(Some)
    }

    /// Stores values that are together; answers whether these are.
    pub(super) fn store_packed(
        &mut self,
        values: &[IrValue],
        address: &Address<'c>,
        mark: Mark,
    ) -> Result<bool, CompileError> {
        if !self.packs.is_pack(values) {
            return Ok(false);
        }
        let size = self.lane_type(values[0]).scalar_bits() / 8;
        let pattern = self.pattern(address, size, values.len() as u32, false);
        let Some((starts, lanes)) = pattern.pieces(self.unit.lanes) else { return Ok(false) };
        let Some(wide) = self.wide(values) else { return Ok(false) };
        let mask = self.active();
        self.store_runs(wide, &starts, lanes, values.len() as u32, mask, mark)?;
        Ok(true)
    }
}
