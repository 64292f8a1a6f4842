//! Local memory whose elements lie lane by lane: see [`transform::lane_by_lane`].
//!
//! The windows of the lanes that run together begin where the first of them would, and lie in each other: an element that begins so many bytes
//! into the window of each is a vector, as many times further on as there are lanes.

use kernel_abi::CompileError;
use simt_ir::{Access, Inst, Space, Type as IrType, Value as IrValue};
use transform::LaneShape;

use super::address::Address;
use super::function::Emitter;
use super::memory::Mark;

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
            let values = self.load_lanes(&address, lane, 1, Mark::None)?;
            self.define(*result, values[0]);
        }
        Ok(())
    }

    pub(super) fn store_lane_by_lane(&mut self, inst: Inst, access: Access) -> Result<(), CompileError> {
        let data = self.p.func.inst(inst);
        let size = self.lane_type(data.args[1]).scalar_bits() / 8;
        self.check_alignment(data.args[0], access, size * u32::from(access.lanes), data.loc, None);
        for (at, value) in data.args[1..].iter().enumerate() {
            let address =
                self.lanes_of_element(data.args[0], access.offset + at as i64 * i64::from(size), size);
            let vector = self.vector(*value);
            self.store_lanes(&address, &[vector], Mark::None)?;
        }
        Ok(())
    }

    /// Where the lanes have an element of so many bytes, which is aligned.
    fn lanes_of_element(&mut self, value: IrValue, offset: i64, size: u32) -> Address<'c> {
        let b = self.unit.b;
        let i64 = self.unit.types.i64;
        let (start, _) = self.first_local_window();
        let lanes = self.unit.lanes;
        let by = |ty: crate::llvm::Type<'c>| ty.int_const(lanes.trailing_zeros().into());
        let narrow = self.p.func.ty(value) == IrType::I32;
        let own = |lane: u32| i64::from(lane * size);
        if matches!(self.p.shapes.of(value), LaneShape::Uniform) {
            let place = self.natural(value);
            let place = self.in_window(place, narrow, offset);
            let base = b.add(start, b.shl(place, by(i64)));
            return Address::Affine(base, (0..lanes).map(own).collect());
        }
        let places = self.vector(value);
        let places = self.in_window(places, narrow, offset);
        let own: Vec<u64> = (0..lanes).map(|lane| own(lane) as u64).collect();
        let starts = b.add(b.splat(start, lanes), i64.int_vector(&own));
        Address::Varying(b.add(b.shl(places, by(places.ty())), starts))
    }
}
