//! Accesses whose addresses are computed lane by lane, where an index wraps between one lane and the next.
//!
//! They hardly ever run, so that what counts is how little code they are: a loop over the lanes, with scalars.

use simt_ir::{Access, Type as IrType, Value as IrValue};
use transform::{Check, LaneShape};

use super::function::Emitter;
use super::mark::Mark;
use crate::llvm::{Type, Value};

/// What a value is in one lane, by the lane's index.
#[derive(Clone, Copy)]
enum InLane<'c> {
    /// This in lane 0, and so much more in each next.
    Steps(Value<'c>, i64),
    /// What lies in stack memory for each lane.
    Array(Value<'c>, Type<'c>),
    /// What lies in stack memory for each row of lanes, and so much more in each next lane of the row.
    Rows(Value<'c>, Type<'c>, i64),
}

impl<'c> Emitter<'_, 'c> {
    /// Loads what the active lanes have at their exact addresses.
    pub(super) fn load_exactly(
        &mut self,
        address: IrValue,
        access: Access,
        lane: Type<'c>,
        count: u32,
        mark: Mark,
    ) -> Vec<Value<'c>> {
        let b = self.unit.b;
        let ty = lane.vector(self.unit.lanes);
        let arrays: Vec<Value<'c>> = (0..count).map(|_| self.scratch(ty)).collect();
        self.at_exact_addresses(address, access, |this, start, at| {
            let size = lane.scalar_bits() / 8;
            for (index, array) in arrays.iter().enumerate() {
                let ptr = b.inttoptr(this.offset(start, index as i64 * i64::from(size)));
                let value = this.loaded(lane, ptr, mark);
                b.store(value, this.element_ptr(*array, at, lane), size);
            }
        });
        arrays.into_iter().map(|array| b.load(ty, array, 64)).collect()
    }

    /// Stores what the active lanes have to their exact addresses.
    pub(super) fn store_exactly(
        &mut self,
        address: IrValue,
        access: Access,
        values: &[Value<'c>],
        mark: Mark,
    ) {
        let b = self.unit.b;
        let arrays: Vec<Value<'c>> = values.iter().map(|value| self.spill(*value)).collect();
        self.at_exact_addresses(address, access, |this, start, at| {
            let lane = values[0].ty().scalar();
            let size = lane.scalar_bits() / 8;
            for (index, array) in arrays.iter().enumerate() {
                let value = this.element(*array, at, lane);
                let ptr = b.inttoptr(this.offset(start, index as i64 * i64::from(size)));
                this.marked(b.store(value, ptr, size), mark);
            }
        });
    }

    /// Runs `body` for each active lane, lowest first, with its host address and its index.
    fn at_exact_addresses(
        &mut self,
        address: IrValue,
        access: Access,
        body: impl FnOnce(&mut Self, Value<'c>, Value<'c>),
    ) {
        let b = self.unit.b;
        let narrow = self.p.func.ty(address) == IrType::I32;
        let assumed = self.by_lane(address);
        let checks: Vec<_> =
            self.p.shapes.checks(address).iter().map(|check| (check, self.checked_by_lane(check))).collect();
        let mask = self.active();
        self.for_each_lane(b.mask_to_int(mask), |this, at| {
            let mut exact = this.of_lane(assumed, at);
            for (check, (index, assumed)) in checks {
                let extended = this.extended(check, this.of_lane(index, at));
                let off = b.sub(extended, this.of_lane(assumed, at));
                exact = b.add(exact, b.mul(off, off.ty().int_const(check.factor)));
            }
            let exact = this.in_window(exact, narrow, access.offset);
            let start = b.add(exact, this.window_scalar(access.space));
            body(this, start, at);
        });
    }

    /// A checked index, and what it is assumed to be extended.
    fn checked_by_lane(&mut self, check: &Check) -> (InLane<'c>, InLane<'c>) {
        let index = check.assumption.index;
        let shape = self.p.shapes.of(index);
        let natural = self.natural(index);
        let base = self.assumed_base(natural);
        let assumed = match shape {
            LaneShape::Affine(offsets) if let Some(step) = even_step(offsets) => {
                InLane::Steps(self.offset(base, offsets[0]), step)
            }
            shape => {
                let assumed = self.widen(base, shape);
                InLane::Array(self.spill(assumed), base.ty())
            }
        };
        (self.by_lane(index), assumed)
    }

    /// The base that an affine extension has, whatever its kind: see `scalar_result`.
    fn assumed_base(&self, base: Value<'c>) -> Value<'c> {
        self.unit.b.sext(base, self.unit.types.i64)
    }

    fn extended(&self, check: &Check, index: Value<'c>) -> Value<'c> {
        let i64 = self.unit.types.i64;
        match check.assumption.unsigned {
            true => self.unit.b.zext(index, i64),
            false => self.unit.b.sext(index, i64),
        }
    }

    /// Each lane's host address, where an index that it depends on wraps.
    pub(super) fn exact_address(&mut self, value: IrValue, access: Access) -> Value<'c> {
        let b = self.unit.b;
        let address = self.exact(value);
        let narrow = self.p.func.ty(value) == IrType::I32;
        let address = self.in_window(address, narrow, access.offset);
        let window = self.window_scalar(access.space);
        b.add(address, b.splat(window, self.unit.lanes))
    }

    fn exact(&mut self, value: IrValue) -> Value<'c> {
        let (b, p) = (self.unit.b, self.p);
        let mut exact = self.vector(value);
        for check in p.shapes.checks(value) {
            let index = check.assumption.index;
            let base = self.natural(index);
            let assumed = self.widen(self.assumed_base(base), p.shapes.of(index));
            let index = self.vector(index);
            let off = b.sub(self.extended(check, index), assumed);
            exact = b.add(exact, b.mul(off, off.ty().int_const(check.factor)));
        }
        exact
    }

    fn by_lane(&mut self, value: IrValue) -> InLane<'c> {
        let shape = self.p.shapes.of(value).clone();
        let row = self.unit.row_lanes() as usize;
        let step = match &shape {
            LaneShape::Uniform => Some((0, 0)),
            LaneShape::Affine(offsets) => even_step(offsets).map(|step| (offsets[0], step)),
            LaneShape::Rows(offsets) => {
                let steps: Option<Vec<i64>> = offsets.chunks(row).map(even_step).collect();
                steps
                    .filter(|steps| steps.windows(2).all(|pair| pair[0] == pair[1]))
                    .map(|steps| (0, steps[0]))
            }
            LaneShape::Varying => None,
        };
        let Some((first, step)) = step else {
            return InLane::Array(self.lane_array(value), self.lane_type(value));
        };
        let natural = self.natural(value);
        match shape {
            LaneShape::Rows(_) => InLane::Rows(self.spill(natural), self.lane_type(value), step),
            _ => InLane::Steps(self.offset(natural, first), step),
        }
    }

    fn of_lane(&self, value: InLane<'c>, at: Value<'c>) -> Value<'c> {
        let b = self.unit.b;
        let moved = |base: Value<'c>, at: Value<'c>, step: i64| {
            if step == 0 {
                return base;
            }
            let at = b.int_resize(at, base.ty(), false);
            b.add(base, b.mul(at, base.ty().int_const(step as u64)))
        };
        match value {
            InLane::Steps(first, step) => moved(first, at, step),
            InLane::Array(array, lane) => self.element(array, at, lane),
            InLane::Rows(bases, lane, step) => {
                let row = self.unit.row_lanes();
                let number = b.lshr(at, at.ty().int_const(row.trailing_zeros().into()));
                let within = b.and(at, at.ty().int_const(u64::from(row) - 1));
                moved(self.element(bases, number, lane), within, step)
            }
        }
    }
}

/// What each element is more than the one before, if that is the same for all.
pub(super) fn even_step(offsets: &[i64]) -> Option<i64> {
    let step = offsets[1].wrapping_sub(offsets[0]);
    offsets.windows(2).all(|pair| pair[1].wrapping_sub(pair[0]) == step).then_some(step)
}
