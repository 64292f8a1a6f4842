//! Local memory whose elements lie lane by lane: see [`transform::lane_by_lane`].
//!
//! The windows of the lanes that run together begin where the first of them would, and lie in each other: an element that begins so many bytes
//! into the window of each is a vector, as many times further on as there are lanes.

use kernel_abi::CompileError;
use simt_ir::{Access, Inst, Op, Space, Type as IrType, Value as IrValue};
use transform::LaneShape;

use super::address::Address;
use super::function::Emitter;
use super::mark::Mark;
use crate::llvm::{Type, Value};

impl<'c> Emitter<'_, 'c> {
    pub(super) fn is_lane_by_lane(&self, access: Access) -> bool {
        access.space == Space::Local && self.p.lane_by_lane
    }

    pub(super) fn load_lane_by_lane(&mut self, inst: Inst, access: Access) -> Result<(), CompileError> {
        let data = self.p.func.inst(inst);
        let lane = self.lane_type(data.results[0]);
        let size = lane.scalar_bits() / 8;
        self.check_alignment(data.args[0], access, size * u32::from(access.lanes), data.loc, None);
        for (at, result) in data.results.iter().enumerate() {
            let address =
                self.lanes_of_element(data.args[0], access.offset + at as i64 * i64::from(size), size);
            let values = self.load_lanes(&address, lane, 1, Mark::PLAIN)?;
            self.define(*result, values[0]);
        }
        Ok(())
    }

    pub(super) fn store_lane_by_lane(&mut self, inst: Inst, access: Access) -> Result<(), CompileError> {
        let data = self.p.func.inst(inst);
        let size = self.lane_type(data.args[1]).scalar_bits() / 8;
        self.check_alignment(data.args[0], access, size * u32::from(access.lanes), data.loc, None);
        if self.update_lane_by_lane(inst, access) {
            return Ok(());
        }
        for (at, value) in data.args[1..].iter().enumerate() {
            let address =
                self.lanes_of_element(data.args[0], access.offset + at as i64 * i64::from(size), size);
            let vector = self.vector(*value);
            self.store_lanes(&address, &[vector], Mark::PLAIN)?;
        }
        Ok(())
    }

    /// Changes an element of each lane anywhere, if that is what a store does: it is loaded once more, and what loaded it before is not used. One lane
    /// after another: of what has just been stored a gather has to wait until it is in the cache, where a load of one element need not.
    fn update_lane_by_lane(&mut self, inst: Inst, access: Access) -> bool {
        let p = self.p;
        let data = p.func.inst(inst);
        let in_loop = p.loops.innermost(self.current).is_some();
        let pays = in_loop && self.is_full() && !self.is_quick() && self.unit.lanes <= 64;
        if !pays || !p.shapes.of(data.args[0]).is_varying() {
            return false;
        }
        let Some(old) = self.changed_in_place(inst, access) else { return false };
        let change = p.func.def_inst(data.args[1]).expect("a changed value is a result");
        let lane = self.lane_type(data.args[1]);
        let size = lane.scalar_bits() / 8;
        let address = self.lanes_of_element(data.args[0], access.offset, size);
        let b = self.unit.b;
        let mut operands = Vec::new();
        for arg in &change.args {
            operands.push(match p.shapes.of(*arg).is_uniform() {
                _ if *arg == old => None,
                true => Some(self.natural(*arg)),
                false => Some(self.vector(*arg)),
            });
        }
        for (place, at) in self.place_of_each(&address).into_iter().zip(0..) {
            let ptr = b.inttoptr(place);
            let old = b.load(lane, ptr, size);
            let of_lane = |operand: &Option<Value<'c>>| match *operand {
                None => old,
                Some(all) if all.ty().is_vector() => b.extract(all, at),
                Some(same) => same,
            };
            let args: Vec<_> = operands.iter().map(of_lane).collect();
            let new = self.math_op(change.op, change, data.args[1], &args).expect("it changes numbers");
            b.store(new, ptr, size);
        }
        true
    }

    /// What has been loaded from where a store puts what becomes of it, if that is all that is done with it, and nothing is stored in between.
    fn changed_in_place(&self, inst: Inst, access: Access) -> Option<IrValue> {
        let func = &self.p.func;
        let data = func.inst(inst);
        let &[address, value] = &data.args[..] else { return None };
        let change = func.def_inst(value)?;
        if !matches!(change.op, Op::Int(_) | Op::Float(..) | Op::Fma(_)) || self.uses[value.index()] != 1 {
            return None;
        }
        let loaded = |arg: &IrValue| {
            let load = func.def_inst(*arg)?;
            let is_there = load.op == Op::Load(access) && load.args == [address];
            (is_there && self.uses[arg.index()] == 1).then_some(*arg)
        };
        let old = change.args.iter().find_map(loaded)?;
        let insts = &func.block(self.current).insts;
        let from = insts.iter().position(|at| func.inst(*at).results == [old])?;
        let to = insts.iter().position(|at| *at == inst)?;
        let is_quiet = |at: &Inst| matches!(func.inst(*at).op, Op::Load(_)) || func.inst(*at).op.is_pure();
        insts[from..to].iter().all(is_quiet).then_some(old)
    }

    /// Where the lanes have an element of so many bytes, which is aligned.
    fn lanes_of_element(&mut self, value: IrValue, offset: i64, size: u32) -> Address<'c> {
        let b = self.unit.b;
        let i64 = self.unit.types.i64;
        let (start, _) = self.first_local_window();
        let lanes = self.unit.lanes;
        let by = |ty: Type<'c>| ty.int_const(lanes.trailing_zeros().into());
        let narrow = self.p.func.ty(value) == IrType::I32;
        let own = |lane: u32| i64::from(lane * size);
        if matches!(self.p.shapes.of(value), LaneShape::Uniform) {
            let place = self.natural(value);
            let place = self.in_window(place, narrow, offset);
            let base = b.add(start, b.shl(place, by(i64)));
            return Address::Affine(base, (0..lanes).map(own).collect());
        }
        // The windows together are far smaller than what an index of 32 bits reaches.
        let i32 = self.unit.types.i32;
        let places = self.vector(value);
        let places = self.offset(b.int_resize(places, i32, false), offset);
        let own: Vec<u64> = (0..lanes).map(|lane| own(lane) as u64).collect();
        let indices = b.add(b.shl(places, by(places.ty())), i32.int_vector(&own));
        Address::Indexed(start, indices, 1)
    }
}
