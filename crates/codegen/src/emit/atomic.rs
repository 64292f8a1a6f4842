//! Atomics: one lane after another, or the whole warp at once where that cannot be told apart.
//!
//! A block's shared memory belongs to the host thread that runs the block: nobody comes between a load and a store there.

use kernel_abi::CompileError;
use kernel_abi::late::Places as Late;
use simt_ir::{
    Access, AtomicOp, FloatBinary, FloatMode, Inst, IntBinary, MinMax, Op, Order, Space, Type as IrType,
    Value as IrValue,
};

use super::LANES;
use super::address::Address;
use super::adjacent::Wanted;
use super::function::Emitter;
use super::unsupported;
use crate::llvm::{AtomicOp as Rmw, FloatPredicate, IntPredicate, Ordering, Type, Value};
use crate::math::value_type;

/// What each lane has of something.
#[derive(Clone, Copy)]
enum Own<'c> {
    Same(Value<'c>),
    /// An element of an array in stack memory.
    Element(Value<'c>, Type<'c>),
}

impl<'c> Own<'c> {
    fn array(self) -> Option<(Value<'c>, Type<'c>)> {
        match self {
            Own::Same(_) => None,
            Own::Element(array, ty) => Some((array, ty)),
        }
    }
}

/// Where each lane's access goes: host addresses, or signed offsets of 32 bits in a window.
#[derive(Clone, Copy)]
struct Places<'c> {
    own: Own<'c>,
    window: Option<Value<'c>>,
}

impl<'c> Emitter<'_, 'c> {
    pub(super) fn atomic(&mut self, inst: Inst, op: AtomicOp, access: Access) -> Result<(), CompileError> {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        let ty = self.p.func.ty(data.args[1]);
        let lane = value_type(self.unit.context(), ty);
        let bytes = lane.scalar_bits() / 8;
        if access.lanes == 2 && op == AtomicOp::Exch {
            self.wide_atomic(inst, access);
            return Ok(());
        }
        if access.lanes != 1 {
            return Err(unsupported("a vector atomic", data.loc));
        }
        self.check_alignment(data.args[0], access, bytes, data.loc, None);
        let address = self.address(data.args[0], access);
        if let Address::Uniform(place) = address
            && self.p.shapes.of(data.args[1]).is_uniform()
            && self.p.alone.binary_search(&inst).is_ok()
        {
            self.atomic_of_one_lane(inst, op, access, place);
            return Ok(());
        }
        let mask = self.active();
        let lanes = b.mask_to_int(mask);
        if let (Address::Uniform(address), []) = (&address, &data.results[..])
            && reduction(op).is_some()
        {
            self.atomic_in_one_place(inst, op, access, *address, mask);
            return Ok(());
        }
        if let (Address::Uniform(address), [result], AtomicOp::Add) = (&address, &data.results[..], op)
            && self.p.shapes.of(data.args[1]).is_uniform()
            && self.unit.shape.gang == 1
        {
            // Lanes count up one after another: each finds what those below it have added.
            let operand = self.natural(data.args[1]);
            let count = b.int_resize(b.ctpop(lanes), lane, false);
            let total = b.mul(operand, count);
            let old = b.atomic_rmw(Rmw::Add, b.inttoptr(*address), total, rmw_ordering(access.order));
            let below: Vec<u64> = (0..self.unit.lanes).map(|lane| (1 << lane) - 1).collect();
            let rank = b.ctpop(b.and(b.splat(lanes, self.unit.lanes), lanes.ty().int_vector(&below)));
            let rank = b.int_resize(rank, lane, false);
            let added = b.mul(b.splat(operand, self.unit.lanes), rank);
            self.define(*result, b.add(b.splat(old, self.unit.lanes), added));
            return Ok(());
        }
        if let Some(start) = self.adjacent(&address, ty, access) {
            let wanted = match data.results[..] {
                [] if self.is_late(inst) => Wanted::DoneLater,
                [] => Wanted::Done,
                _ => Wanted::Old,
            };
            let old = self.atomic_adjacent(op, ty, start, data.args[1], access, wanted);
            if let (Some(old), [result, ..]) = (old, &data.results[..]) {
                self.define(*result, old);
            }
            return Ok(());
        }
        let places = self.lane_places(data.args[0], access, &address);
        let Some((place, differ)) = self.place_of_all(inst, op, access, &address, places) else {
            self.atomic_by_lanes(inst, op, access, places);
            return Ok(());
        };
        let apart = |this: &mut Self| {
            match may_rest(op, access.order) {
                // It is seldom more than a load.
                true => this.atomic_by_lanes(inst, op, access, places),
                false => this.atomic_by_runs(inst, op, access, &address, places)?,
            }
            Ok(())
        };
        let together = |this: &mut Self| {
            this.atomic_in_one_place(inst, op, access, place, mask);
            Ok(())
        };
        self.one_of(differ, apart, together)
    }

    /// Where the first active lane's access goes, and whether any other's goes elsewhere, if that is worth asking: a processor takes long for each
    /// access that others may not come between, and keys that lie beside each other are often equal.
    fn place_of_all(
        &mut self,
        inst: Inst,
        op: AtomicOp,
        access: Access,
        address: &Address<'c>,
        places: Places<'c>,
    ) -> Option<(Value<'c>, Value<'c>)> {
        let b = self.unit.b;
        let is_worth = matches!(access.space, Space::Global | Space::Generic)
            && matches!(address, Address::Varying(_) | Address::Indexed(..))
            && reduction(op).is_some()
            && self.p.func.inst(inst).results.is_empty()
            && !self.is_quick();
        if !is_worth {
            return None;
        }
        let mask = self.active();
        let lowest = self.lowest_lane(mask);
        let first = self.own_of(places.own, lowest);
        let first = self.lane_place(places, first);
        let elsewhere =
            b.icmp(IntPredicate::Ne, self.all_addresses(address), b.splat(first, self.unit.lanes));
        Some((first, self.nonzero(b.mask_to_int(b.and(elsewhere, mask)))))
    }

    /// A reduction of lanes in several places. Where most lanes access the place of the one below them, as those do whose keys are sorted, it is one
    /// of each run of such lanes.
    fn atomic_by_runs(
        &mut self,
        inst: Inst,
        op: AtomicOp,
        access: Access,
        address: &Address<'c>,
        places: Places<'c>,
    ) -> Result<(), CompileError> {
        let b = self.unit.b;
        let mask = self.active();
        let active = b.mask_to_int(mask);
        let addresses = self.all_addresses(address);
        let from_below: Vec<i32> = (0..self.unit.lanes as i32).map(|lane| (lane - 1).max(0)).collect();
        let below = b.shuffle(addresses, addresses, &from_below);
        let bits = active.ty();
        let one = bits.int_const(1);
        let same = b.mask_to_int(b.icmp(IntPredicate::Eq, addresses, below));
        let follows = b.and(b.and(same, active), b.shl(active, one));
        let starts = b.and(active, b.not(follows));
        let [runs, lanes] =
            [starts, active].map(|set| b.int_resize(b.ctpop(set), self.unit.types.i32, false));
        let are_many = b.icmp(IntPredicate::Ugt, b.add(runs, runs), lanes);
        let apart = |this: &mut Self| {
            this.atomic_by_lanes(inst, op, access, places);
            Ok(())
        };
        let by_runs = |this: &mut Self| {
            this.for_each_lane(starts, |this, at| {
                // From this lane up to where the next run starts.
                let from_here = b.shl(bits.all_ones(), b.int_resize(at, bits, false));
                let next = b.and(starts, b.shl(from_here, one));
                let below_next = b.and(b.not(next), b.sub(next, one));
                let run = b.int_to_mask(b.and(active, b.and(from_here, below_next)));
                let own = this.own_of(places.own, at);
                let place = this.lane_place(places, own);
                this.atomic_in_one_place(inst, op, access, place, run);
            });
            Ok(())
        };
        self.one_of(are_many, apart, by_runs)
    }

    /// A reduction of some lanes in one place, whose parts nobody can tell apart: the lanes' first.
    fn atomic_in_one_place(
        &mut self,
        inst: Inst,
        op: AtomicOp,
        access: Access,
        place: Value<'c>,
        mask: Value<'c>,
    ) {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        let ty = self.p.func.ty(data.args[1]);
        let lane = value_type(self.unit.context(), ty);
        let value = self.vector(data.args[1]);
        let rest = self.identity(op, value);
        let reduce = reduction(op).expect("the operation is a reduction");
        let part = b.intrinsic(reduce, &[value.ty()], &[b.select(mask, value, rest)]);
        let rmw = integer_rmw(op).expect("reductions are of integers");
        let at_once = |this: &mut Self| {
            this.integer_update((op, rmw), ty, b.inttoptr(place), part, access.order, false);
        };
        match self.is_late(inst) {
            true => {
                let kept = self.scratch(lane);
                b.store(part, kept, lane.scalar_bits() / 8);
                let left = self.keep_late((op, ty, Late::One), place, self.unit.types.i32.int_const(1), kept);
                let left = self.nonzero(left);
                self.unlikely(left, at_once);
            }
            false => at_once(self),
        }
    }

    /// One lane after another.
    fn atomic_by_lanes(&mut self, inst: Inst, op: AtomicOp, access: Access, places: Places<'c>) {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        let ty = self.p.func.ty(data.args[1]);
        let lane = value_type(self.unit.context(), ty);
        let bytes = lane.scalar_bits() / 8;
        let mask = self.active();
        let lanes = b.mask_to_int(mask);
        let operands = match self.p.shapes.of(data.args[1]).is_uniform() {
            true => Own::Same(self.natural(data.args[1])),
            false => Own::Element(self.lane_array(data.args[1]), lane),
        };
        let results = data.results.first().map(|_| self.scratch(lane.vector(self.unit.lanes)));
        let kept = match self.is_late(inst) {
            true if self.unit.lanes == LANES => {
                let (start, late) = match places.own {
                    Own::Same(place) => (place, Late::One),
                    Own::Element(places, _) => (b.ptrtoint(places, self.unit.types.i64), Late::Scattered),
                };
                let array = match operands {
                    Own::Same(_) => self.lane_array(data.args[1]),
                    Own::Element(array, _) => array,
                };
                Some(self.keep_late((op, ty, late), start, lanes, array))
            }
            true => {
                self.settle_before(inst);
                None
            }
            false => None,
        };
        let update = |this: &mut Self, at: Value<'c>, place: Value<'c>, operand: Value<'c>| {
            let place = this.lane_place(places, place);
            let old = this.update_for_one((op, access), ty, place, operand, results.is_some());
            if let Some(results) = results {
                b.store(old, this.element_ptr(results, at, lane), bytes);
            }
        };
        if kept.is_some() || !self.is_full() {
            self.for_each_lane(kept.unwrap_or(lanes), |this, at| {
                let [place, operand] = [places.own, operands].map(|all| this.own_of(all, at));
                update(this, at, place, operand);
            });
        } else {
            let arrays: Vec<_> = [places.own, operands].into_iter().filter_map(Own::array).collect();
            self.for_all_lanes(&arrays, |this, at, elements| {
                let mut elements = elements.iter();
                let [place, operand] = [places.own, operands].map(|all| match all {
                    Own::Same(value) => value,
                    Own::Element(..) => *elements.next().expect("each array has an element"),
                });
                update(this, at, place, operand);
            });
        }
        self.define_from_array(&data.results, results);
    }

    /// Of one lane that has been told from others (`transform::stragglers`), at once: it costs no more than to keep it for later. Whoever comes without
    /// that lane does nothing.
    fn atomic_of_one_lane(&mut self, inst: Inst, op: AtomicOp, access: Access, place: Value<'c>) {
        let data = self.p.func.inst(inst);
        let (ty, operand) = (self.p.func.ty(data.args[1]), self.natural(data.args[1]));
        if self.is_late(inst) {
            self.settle_before(inst);
        }
        let active = self.active();
        let is_there = self.nonzero(self.unit.b.mask_to_int(active));
        self.where_holds(is_there, |this| {
            this.update_for_one((op, access), ty, place, operand, false);
        });
    }

    /// An operation with one operand at one place, and what was there, if that is asked for.
    fn update_for_one(
        &mut self,
        (op, access): (AtomicOp, Access),
        ty: IrType,
        place: Value<'c>,
        operand: Value<'c>,
        is_asked: bool,
    ) -> Value<'c> {
        let b = self.unit.b;
        let lane = value_type(self.unit.context(), ty);
        let ptr = b.inttoptr(place);
        match integer_rmw(op).filter(|_| ty.is_int()) {
            _ if access.space == Space::Shared => {
                let bytes = lane.scalar_bits() / 8;
                let old = b.load(lane, ptr, bytes);
                let new = self.combined(op, ty, old, operand);
                b.store(new, ptr, bytes);
                old
            }
            Some(rmw) => self.integer_update((op, rmw), ty, ptr, operand, access.order, is_asked),
            None if op == AtomicOp::Exch => {
                let operand = b.bitcast(operand, lane.to_int());
                let old = b.atomic_rmw(Rmw::Exchange, ptr, operand, rmw_ordering(access.order));
                b.bitcast(old, lane)
            }
            None => self.update(op, ty, ptr, operand, access.order),
        }
    }

    /// The host addresses of an access, for code that takes one lane after another.
    fn lane_places(&mut self, value: IrValue, access: Access, address: &Address<'c>) -> Places<'c> {
        let is_narrow = self.p.func.ty(value) == IrType::I32 && access.space != Space::Local;
        if is_narrow && matches!(address, Address::Varying(_)) {
            // Extended lane by lane: the processor adds the window as it accesses the place.
            let offsets = self.vector(value);
            let offsets = self.spill(self.offset(offsets, access.offset));
            let window = Some(self.window_scalar(access.space));
            return Places { own: Own::Element(offsets, self.unit.types.i32), window };
        }
        let own = match address {
            Address::Uniform(place) => Own::Same(*place),
            _ => {
                let addresses = self.all_addresses(address);
                Own::Element(self.spill(addresses), self.unit.types.i64)
            }
        };
        Places { own, window: None }
    }

    /// What the lane of this index, an i32, has.
    fn own_of(&self, all: Own<'c>, at: Value<'c>) -> Value<'c> {
        match all {
            Own::Same(value) => value,
            Own::Element(array, ty) => self.element(array, at, ty),
        }
    }

    /// The host address of a lane's access.
    fn lane_place(&self, places: Places<'c>, own: Value<'c>) -> Value<'c> {
        let b = self.unit.b;
        match places.window {
            Some(window) => b.add(b.sext(own, self.unit.types.i64), window),
            None => own,
        }
    }

    /// An exchange of two words at once, unconditional or with a comparison.
    fn wide_atomic(&mut self, inst: Inst, access: Access) {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        self.check_alignment(data.args[0], access, 16, data.loc, None);
        let address = self.address(data.args[0], access);
        let addresses = self.all_addresses(&address);
        let addresses = self.spill(addresses);
        let operands: Vec<Value<'c>> = data.args[1..].iter().map(|arg| self.lane_array(*arg)).collect();
        let i64 = self.unit.types.i64;
        let results: Vec<Value<'c>> =
            data.results.iter().map(|_| self.scratch(i64.vector(self.unit.lanes))).collect();
        let ordering = rmw_ordering(access.order);
        let mask = self.active();
        self.for_each_lane(b.mask_to_int(mask), |this, at| {
            let ptr = b.inttoptr(this.element(addresses, at, i64));
            let whole = |pair: &[Value<'c>]| this.whole([0, 1].map(|half| this.element(pair[half], at, i64)));
            let old = match &operands[..] {
                [expected @ .., low, high] if !expected.is_empty() => {
                    b.compare_exchange(ptr, whole(expected), whole(&[*low, *high]), ordering).0
                }
                new => b.atomic_rmw(Rmw::Exchange, ptr, whole(new), ordering),
            };
            for (half, result) in this.halves(old).into_iter().zip(&results) {
                b.store(half, this.element_ptr(*result, at, i64), 8);
            }
        });
        for (result, array) in data.results.iter().zip(results) {
            let value = b.load(i64.vector(self.unit.lanes), array, 64);
            self.define(*result, value);
        }
    }

    /// Two words as one of 128 bits, the low one first.
    pub(super) fn whole(&self, [low, high]: [Value<'c>; 2]) -> Value<'c> {
        let b = self.unit.b;
        let wide = self.unit.context().int(128);
        b.or(b.zext(low, wide), b.shl(b.zext(high, wide), wide.int_const(64)))
    }

    /// The words of one of 128 bits, the low one first.
    pub(super) fn halves(&self, whole: Value<'c>) -> [Value<'c>; 2] {
        let b = self.unit.b;
        let i64 = self.unit.types.i64;
        [b.trunc(whole, i64), b.trunc(b.lshr(whole, whole.ty().int_const(64)), i64)]
    }

    pub(super) fn atomic_cas(&mut self, inst: Inst, access: Access) -> Result<(), CompileError> {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        if access.lanes == 2 {
            self.wide_atomic(inst, access);
            return Ok(());
        }
        let lane = value_type(self.unit.context(), self.p.func.ty(data.args[1]));
        let bytes = lane.scalar_bits() / 8;
        self.check_alignment(data.args[0], access, bytes, data.loc, None);
        let address = self.address(data.args[0], access);
        let addresses = self.all_addresses(&address);
        let addresses = self.spill(addresses);
        let expected = self.lane_array(data.args[1]);
        let new = self.lane_array(data.args[2]);
        let results = data.results.first().map(|_| self.scratch(lane.vector(self.unit.lanes)));
        let mask = self.active();
        self.for_each_lane(b.mask_to_int(mask), |this, at| {
            let ptr = b.inttoptr(this.element(addresses, at, this.unit.types.i64));
            let (expected, new) = (this.element(expected, at, lane), this.element(new, at, lane));
            let int = lane.to_int();
            if access.space == Space::Shared {
                let old = b.load(int, ptr, bytes);
                let equal = b.icmp(IntPredicate::Eq, old, b.bitcast(expected, int));
                b.store(b.select(equal, b.bitcast(new, int), old), ptr, bytes);
                if let Some(results) = results {
                    b.store(b.bitcast(old, lane), this.element_ptr(results, at, lane), bytes);
                }
                return;
            }
            let ordering = rmw_ordering(access.order);
            let (old, _) = b.compare_exchange(ptr, b.bitcast(expected, int), b.bitcast(new, int), ordering);
            if let Some(results) = results {
                b.store(b.bitcast(old, lane), this.element_ptr(results, at, lane), bytes);
            }
        });
        self.define_from_array(&data.results, results);
        Ok(())
    }

    pub(super) fn define_from_array(&mut self, results: &[IrValue], array: Option<Value<'c>>) {
        if let (Some(result), Some(array)) = (results.first(), array) {
            let ty = self.lane_type(*result).vector(self.unit.lanes);
            let value = self.unit.b.load(ty, array, 64);
            self.define(*result, value);
        }
    }

    /// An operation that LLVM has. Answers what was there, if that `is_asked`.
    fn integer_update(
        &mut self,
        (op, rmw): (AtomicOp, Rmw),
        ty: IrType,
        ptr: Value<'c>,
        operand: Value<'c>,
        order: Order,
        is_asked: bool,
    ) -> Value<'c> {
        let b = self.unit.b;
        if !may_rest(op, order) {
            return b.atomic_rmw(rmw, ptr, operand, rmw_ordering(order));
        }
        if is_asked {
            return self.update(op, ty, ptr, operand, order);
        }
        // One comparison, unless somebody asks what was there.
        let old = b.load_atomic(operand.ty(), ptr, Ordering::Relaxed);
        let changes = match op {
            AtomicOp::MinS => b.icmp(IntPredicate::Slt, operand, old),
            AtomicOp::MinU => b.icmp(IntPredicate::Ult, operand, old),
            AtomicOp::MaxS => b.icmp(IntPredicate::Sgt, operand, old),
            AtomicOp::MaxU => b.icmp(IntPredicate::Ugt, operand, old),
            _ => b.icmp(IntPredicate::Ne, self.combined(op, ty, old, operand), old),
        };
        self.where_holds(changes, |this| {
            match op {
                AtomicOp::And | AtomicOp::Or => b.atomic_rmw(rmw, ptr, operand, rmw_ordering(order)),
                _ => this
                    .exchange(ptr, old, operand.ty(), order, true, |old| this.combined(op, ty, old, operand)),
            };
        });
        old
    }

    /// An operation that the processor has not as one instruction, or that often leaves what is there: tried until nobody comes between.
    /// Answers what was there.
    fn update(
        &mut self,
        op: AtomicOp,
        ty: IrType,
        ptr: Value<'c>,
        operand: Value<'c>,
        order: Order,
    ) -> Value<'c> {
        let b = self.unit.b;
        let lane = operand.ty();
        let int = lane.to_int();
        let first = b.load_atomic(int, ptr, Ordering::Relaxed);
        let rests = may_rest(op, order);
        self.exchange(ptr, first, lane, order, rests, |old| self.combined(op, ty, old, operand))
    }

    /// Puts `change` of what is at `place`, a `ty`, there, tried until nobody comes between. `guess` are bits that may be there, and were if the
    /// exchange `rests`: then it ends where there is nothing to change. Answers what was.
    pub(super) fn exchange(
        &self,
        place: Value<'c>,
        guess: Value<'c>,
        ty: Type<'c>,
        order: Order,
        rests: bool,
        change: impl FnOnce(Value<'c>) -> Value<'c>,
    ) -> Value<'c> {
        let b = self.unit.b;
        let bits = guess.ty();
        let before = b.block();
        let (again, done) = (b.append_block("again"), b.append_block("updated"));
        b.br(again);
        b.position_at_end(again);
        let known = b.phi(bits);
        known.add_incoming(guess, before);
        let new = b.bitcast(change(b.bitcast(known.value(), ty)), bits);
        if rests {
            let put = b.append_block("put");
            b.cond_br(b.icmp(IntPredicate::Eq, new, known.value()), done, put);
            b.position_at_end(put);
        }
        // What it answers where it is done is what was known.
        let (seen, replaced) = b.compare_exchange(place, known.value(), new, rmw_ordering(order));
        known.add_incoming(seen, b.block());
        b.cond_br(replaced, done, again);
        b.position_at_end(done);
        b.bitcast(known.value(), ty)
    }

    /// What an atomic puts in the place of `old`.
    pub(super) fn combined(&self, op: AtomicOp, ty: IrType, old: Value<'c>, operand: Value<'c>) -> Value<'c> {
        let b = self.unit.b;
        let math = self.unit.math();
        let min_max = |max: bool| Op::MinMax(MinMax { max, nan: false, ..MinMax::default() });
        let pure = match op {
            AtomicOp::Add => Op::Int(IntBinary::Add),
            AtomicOp::And => Op::Int(IntBinary::And),
            AtomicOp::Or => Op::Int(IntBinary::Or),
            AtomicOp::Xor => Op::Int(IntBinary::Xor),
            AtomicOp::MinS => Op::Int(IntBinary::MinS),
            AtomicOp::MinU => Op::Int(IntBinary::MinU),
            AtomicOp::MaxS => Op::Int(IntBinary::MaxS),
            AtomicOp::MaxU => Op::Int(IntBinary::MaxU),
            AtomicOp::FAdd { ftz } if ty == IrType::F64 => return self.sum_of_doubles(ftz, old, operand),
            AtomicOp::FAdd { ftz } => Op::Float(FloatBinary::Add, FloatMode { ftz, ..FloatMode::default() }),
            AtomicOp::FMin => min_max(false),
            AtomicOp::FMax => min_max(true),
            AtomicOp::Exch => return operand,
            AtomicOp::Inc => {
                let over = b.icmp(IntPredicate::Uge, old, operand);
                return b.select(over, old.ty().zero(), b.add(old, old.ty().int_const(1)));
            }
            AtomicOp::Dec => {
                let zero = b.icmp(IntPredicate::Eq, old, old.ty().zero());
                let over = b.or(zero, b.icmp(IntPredicate::Ugt, old, operand));
                return b.select(over, operand, b.sub(old, old.ty().int_const(1)));
            }
        };
        let new = math.op(pure, &[old, operand], &[ty, ty], ty).expect("every one is arithmetic");
        if ty.is_int() || ty == IrType::F64 { new } else { math.canon_nan(ty, new) }
    }

    /// With its NaNs, as the adder of global memory has them or not.
    fn sum_of_doubles(&self, global: bool, old: Value<'c>, operand: Value<'c>) -> Value<'c> {
        let b = self.unit.b;
        let is_nan = |value| b.fcmp(FloatPredicate::Uno, value, value);
        let sum = b.fadd(old, operand);
        if global {
            return b.select(is_nan(operand), operand, b.select(is_nan(old), old, sum));
        }
        // Added to a number it becomes quiet.
        b.select(is_nan(old), b.fadd(old, old), sum)
    }

    /// What leaves the other operand of an operation as it is.
    fn identity(&self, op: AtomicOp, like: Value<'c>) -> Value<'c> {
        let ty = like.ty();
        let top = 1u64 << (ty.scalar_bits() - 1);
        match op {
            AtomicOp::And | AtomicOp::MinU => ty.all_ones(),
            AtomicOp::MinS => ty.int_const(top - 1),
            AtomicOp::MaxS => ty.int_const(top),
            _ => ty.zero(),
        }
    }

    // Used by reductions among lanes too.

    /// Whether any of the lanes in an i32 is set.
    pub(super) fn nonzero(&self, bits: Value<'c>) -> Value<'c> {
        self.unit.b.icmp(IntPredicate::Ne, bits, bits.ty().zero())
    }
}

fn reduction(op: AtomicOp) -> Option<&'static str> {
    Some(match op {
        AtomicOp::Add => "llvm.vector.reduce.add",
        AtomicOp::And => "llvm.vector.reduce.and",
        AtomicOp::Or => "llvm.vector.reduce.or",
        AtomicOp::Xor => "llvm.vector.reduce.xor",
        AtomicOp::MinS => "llvm.vector.reduce.smin",
        AtomicOp::MinU => "llvm.vector.reduce.umin",
        AtomicOp::MaxS => "llvm.vector.reduce.smax",
        AtomicOp::MaxU => "llvm.vector.reduce.umax",
        _ => return None,
    })
}

fn integer_rmw(op: AtomicOp) -> Option<Rmw> {
    Some(match op {
        AtomicOp::Add => Rmw::Add,
        AtomicOp::And => Rmw::And,
        AtomicOp::Or => Rmw::Or,
        AtomicOp::Xor => Rmw::Xor,
        AtomicOp::Exch => Rmw::Exchange,
        AtomicOp::MinS => Rmw::Min,
        AtomicOp::MinU => Rmw::UMin,
        AtomicOp::MaxS => Rmw::Max,
        AtomicOp::MaxU => Rmw::UMax,
        AtomicOp::Inc => Rmw::IncrementWrap,
        AtomicOp::Dec => Rmw::DecrementWrap,
        AtomicOp::FAdd { .. } | AtomicOp::FMin | AtomicOp::FMax => return None,
    })
}

/// Whether an operation often leaves what is there, and may then be a load: one that orders nothing else. A lock on the line is dear.
pub(super) fn may_rest(op: AtomicOp, order: Order) -> bool {
    let rests = matches!(
        op,
        AtomicOp::MinS
            | AtomicOp::MinU
            | AtomicOp::MaxS
            | AtomicOp::MaxU
            | AtomicOp::FMin
            | AtomicOp::FMax
            | AtomicOp::And
            | AtomicOp::Or
    );
    rests && rmw_ordering(order) == Ordering::Relaxed
}

fn rmw_ordering(order: Order) -> Ordering {
    match order {
        Order::Weak | Order::Volatile | Order::Relaxed => Ordering::Relaxed,
        Order::Acquire => Ordering::Acquire,
        Order::Release => Ordering::Release,
        Order::AcqRel => Ordering::AcquireRelease,
        Order::SeqCst => Ordering::SequentiallyConsistent,
    }
}
