//! Loads and stores, by the shape of their addresses.
//!
//! One address for all lanes is a scalar access. Addresses that differ by known constants are one access of a whole vector
//! where they are consecutive, some accesses and shuffles where they consist of a few consecutive pieces, or a
//! masked access with gaps. Everything else gathers and scatters. Lanes that are not active touch no memory.

use kernel_abi::CompileError;
use simt_ir::{Access, Inst, Order, Space, Value as IrValue};

use super::LANES;
use super::address::Address;
use super::exact::even_step;
use super::function::Emitter;
use super::mark::{Kind, Mark};
use crate::llvm::{IntPredicate, Ordering, Type, Value};

/// How the lanes of an access lie in memory. A lane's element is all it accesses.
pub(super) enum Pattern<'c> {
    /// One after another from this address.
    Consecutive(Value<'c>),
    /// Pieces of so many lanes, from these addresses; the lanes of a piece are consecutive, or all the same.
    Pieces { lanes: u32, same: bool, starts: Vec<Value<'c>> },
    /// Of a store: so many lanes at this address, as many so many bytes further on, and so on.
    Common { lanes: u32, start: Value<'c>, step: i64 },
    /// Every n-th element from this address.
    Strided(u32, Value<'c>),
    /// Anywhere.
    Scattered,
    /// Likewise, as [`Address::Indexed`], where the processor has an instruction for it.
    Indexed(Value<'c>, Value<'c>, u32),
}

impl<'c> Pattern<'c> {
    /// Where its pieces begin, and the lanes of each, if a vector of so many lanes lies one lane after another in each.
    pub(super) fn pieces(self, lanes: u32) -> Option<(Vec<Value<'c>>, u32)> {
        match self {
            Pattern::Consecutive(start) => Some((vec![start], lanes)),
            Pattern::Pieces { lanes, same: false, starts } => Some((starts, lanes)),
            _ => None,
        }
    }
}

impl<'c> Emitter<'_, 'c> {
    pub(super) fn load(&mut self, inst: Inst, access: Access) -> Result<(), CompileError> {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        if self.is_joined(inst) || self.load_held(inst) {
            return Ok(());
        }
        let lane = self.lane_type(data.results[0]);
        let count = u32::from(access.lanes);
        let size = lane.scalar_bits() / 8;
        if self.is_lane_by_lane(access) {
            return self.load_lane_by_lane(inst, access);
        }
        if let Some(elements) = self.load_of_two_places(data.args[0], access, lane, count, data.loc) {
            for (result, elements) in data.results.iter().zip(elements) {
                self.define(*result, elements);
            }
            return Ok(());
        }
        let address = self.address(data.args[0], access);
        self.note_read(inst, access, &address, size * count);
        let groups = self.groups(data.args[0], access, &address, size, count, true);
        self.check_alignment(data.args[0], access, size * count, data.loc, groups.as_ref());
        let address = match groups {
            None => self.indexed(data.args[0], access, size).unwrap_or(address),
            Some(_) => address,
        };
        if access.order != Order::Weak && !self.keeps_order(&address, access, size * count) {
            let address = match self.p.shapes.checks(data.args[0]) {
                [] => address,
                _ => Address::Varying(self.exact_address(data.args[0], access)),
            };
            self.ordered_load(&data.results, lane, &address, access);
            return Ok(());
        }
        let invariant = access.invariant || matches!(access.space, Space::Const | Space::Param);
        let kind = match access.order {
            Order::Weak if invariant => Kind::Invariant,
            Order::Weak if access.space == Space::Shared => Kind::Near,
            Order::Weak => Kind::Plain,
            _ => Kind::Volatile,
        };
        // What is at the same place of each lane's own memory is not the same.
        let is_shared = access.order == Order::Weak && access.space != Space::Local;
        let in_columns = is_shared && self.p.columns.have(data.args[0]);
        let mark = Mark { kind, anywhere: access.anywhere, in_columns };
        if let Address::Uniform(address) = address {
            for (index, result) in data.results.iter().enumerate() {
                let ptr = b.inttoptr(self.offset(address, index as i64 * i64::from(size)));
                let value = self.loaded(lane, ptr, mark);
                self.define_scalar_or_vector(*result, value);
            }
            return Ok(());
        }
        self.fetch_next(data.args[0], access, &address, size * count);
        self.fetch_beside(inst, &address, size * count);
        if self.load_joined(inst, access, mark)? {
            return Ok(());
        }
        if let Some(groups) = groups {
            let values = match groups.hold {
                None => self.load_groups(&groups, lane, count, mark)?,
                Some(hold) => self.either(
                    hold,
                    |this| this.load_groups(&groups, lane, count, mark),
                    |this| this.load_lanes(&address, lane, count, mark),
                )?,
            };
            for (result, value) in data.results.iter().zip(values) {
                self.define(*result, value);
            }
            return Ok(());
        }
        if self.load_packed(&data.results, &address, lane, mark)? {
            return Ok(());
        }
        if self.load_from_table(inst, access, &address, mark)? {
            return Ok(());
        }
        if matches!(address, Address::Varying(_))
            && let Some(elements) = self.load_by_call(data.args[0], access, lane)
        {
            self.define(data.results[0], elements);
            return Ok(());
        }
        if self.load_around(inst, access, &address, mark)?
            || self.load_joined_rows(inst, access, &address, mark)?
        {
            return Ok(());
        }
        if let Some(regular) = self.side_by_side(data.args[0], access, &address, size * count) {
            let apart = |this: &mut Self| this.load_anywhere(inst, access, &address, mark);
            let values = self.either(
                regular.holds,
                |this| this.load_lanes(&regular.address, lane, count, mark),
                |this| match count {
                    1 => this.load_in_runs(&regular, lane, &[0], apart),
                    _ => apart(this),
                },
            )?;
            for (result, value) in data.results.iter().zip(values) {
                self.define(*result, value);
            }
            return Ok(());
        }
        let values = match self.in_range(data.args[0]) {
            None => {
                self.note_copy(inst, access, &address, mark);
                self.load_anywhere(inst, access, &address, mark)?
            }
            Some(in_range) => self.either(
                in_range,
                |this| this.load_lanes(&address, lane, count, mark),
                |this| Ok(this.load_exactly(data.args[0], access, lane, count, mark)),
            )?,
        };
        for (result, value) in data.results.iter().zip(values) {
            self.define(*result, value);
        }
        Ok(())
    }

    pub(super) fn store(&mut self, inst: Inst, access: Access) -> Result<(), CompileError> {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        if self.is_joined(inst) || self.held.is_unread(inst) {
            return Ok(());
        }
        let values = &data.args[1..];
        let lane = self.lane_type(values[0]);
        let count = u32::from(access.lanes);
        let size = lane.scalar_bits() / 8;
        if self.is_lane_by_lane(access) {
            return self.store_lane_by_lane(inst, access);
        }
        let address = self.address(data.args[0], access);
        let groups = self.groups(data.args[0], access, &address, size, count, false);
        self.check_alignment(data.args[0], access, size * count, data.loc, groups.as_ref());
        let address = match groups {
            None => self.indexed(data.args[0], access, size).unwrap_or(address),
            Some(_) => address,
        };
        if access.order != Order::Weak && !self.keeps_order(&address, access, size * count) {
            let address = match self.p.shapes.checks(data.args[0]) {
                [] => address,
                _ => Address::Varying(self.exact_address(data.args[0], access)),
            };
            self.ordered_store(values, lane, &address, access);
            return Ok(());
        }
        let mark = Mark::of(match access.order {
            Order::Weak if access.space == Space::Shared => Kind::Near,
            Order::Weak if self.may_pass_by(inst, access) => Kind::Passing,
            Order::Weak => Kind::Plain,
            _ => Kind::Volatile,
        });
        if let Address::Uniform(address) = address {
            for (index, value) in values.iter().enumerate() {
                let value = self.last_active(*value);
                let ptr = b.inttoptr(self.offset(address, index as i64 * i64::from(size)));
                self.marked(b.store(value, ptr, size), mark);
            }
            return Ok(());
        }
        self.fetch_beside(inst, &address, size * count);
        if self.store_joined(inst, access, mark)? {
            return Ok(());
        }
        if groups.is_none() && self.is_sure(data.args[0]) && self.store_packed(values, &address, mark)? {
            return Ok(());
        }
        let vectors: Vec<Value<'c>> = values.iter().map(|value| self.vector(*value)).collect();
        if let Some(groups) = groups {
            let Some(hold) = groups.hold else { return self.store_groups(&groups, &vectors, mark) };
            return self.one_of(
                hold,
                |this| this.store_groups(&groups, &vectors, mark),
                |this| this.store_lanes(&address, &vectors, mark),
            );
        }
        if let Some(regular) = self.side_by_side(data.args[0], access, &address, size * count) {
            return self.one_of(
                regular.holds,
                |this| this.store_lanes(&regular.address, &vectors, mark),
                |this| this.store_lanes(&address, &vectors, mark),
            );
        }
        match self.in_range(data.args[0]) {
            None if count == 1 && self.store_copied(values[0], access, &address, mark) => {}
            None => self.store_lanes(&address, &vectors, mark)?,
            Some(in_range) => {
                return self.one_of(
                    in_range,
                    |this| this.store_lanes(&address, &vectors, mark),
                    |this| {
                        this.store_exactly(data.args[0], access, &vectors, mark);
                        Ok(())
                    },
                );
            }
        }
        Ok(())
    }

    pub(super) fn load_lanes(
        &mut self,
        address: &Address<'c>,
        lane: Type<'c>,
        count: u32,
        mark: Mark,
    ) -> Result<Vec<Value<'c>>, CompileError> {
        let b = self.unit.b;
        let size = lane.scalar_bits() / 8;
        if let Some((base, tile)) = self.tile(address, size, count) {
            return self.for_tile(
                |this| vec![this.load_tile(&tile, base, lane, mark)],
                |this| this.load_lanes(address, lane, count, mark),
            );
        }
        if let Some(loaded) = self.load_permuted(address, lane, count, mark)? {
            return Ok(loaded);
        }
        Ok(match self.pattern(address, size, count, true) {
            Pattern::Consecutive(start) => {
                let wide = self.load_pieces(lane, &[start], self.unit.lanes, count, mark)?;
                self.split(wide, count)
            }
            Pattern::Pieces { lanes, same: false, starts } => {
                let wide = self.load_pieces(lane, &starts, lanes, count, mark)?;
                self.split(wide, count)
            }
            Pattern::Pieces { lanes, starts, .. } => {
                let starts = self.touched(starts, lanes);
                let element = |index: u32| {
                    let pieces = starts.iter().map(|start| {
                        let ptr = b.inttoptr(self.offset(*start, i64::from(index * size)));
                        b.splat(self.loaded(lane, ptr, mark), lanes)
                    });
                    self.concatenated(pieces.collect())
                };
                (0..count).map(element).collect()
            }
            Pattern::Common { .. } => unreachable!("stores have it"),
            Pattern::Strided(stride, start) => vec![self.load_strided(lane, start, stride, mark)],
            Pattern::Indexed(base, indices, bytes) => {
                vec![self.gather_indexed(lane, base, indices, bytes, mark)]
            }
            Pattern::Scattered => self.load_scattered(address, lane, count, mark),
        })
    }

    /// Loads every n-th element from this address.
    fn load_strided(&mut self, lane: Type<'c>, start: Value<'c>, stride: u32, mark: Mark) -> Value<'c> {
        let b = self.unit.b;
        let size = lane.scalar_bits() / 8;
        let (lanes, all) = (self.unit.lanes, self.unit.lanes * stride);
        let register = self.unit.machine.cpu().vector_bits() / 8 / size;
        let pick = |wide: Value<'c>, last: u32| {
            let place = |lane: u32| lane * stride + if lane * stride < last { 0 } else { stride - 1 };
            let places: Vec<i32> = (0..lanes).map(|lane| place(lane) as i32).collect();
            b.shuffle(wide, wide, &places)
        };
        if !self.is_full() || all <= register || !all.is_multiple_of(register) {
            let mask = self.active();
            let spread = self.spread(mask, stride);
            let wide = lane.vector(all);
            return pick(
                b.masked_load(wide, b.inttoptr(start), mark.alignment(lane), spread, wide.zero()),
                all,
            );
        }
        // What is after the last element need not be memory: the last register ends with it.
        let last = all - register;
        let load = |at: u32| {
            let at = if at == last { at - (stride - 1) } else { at };
            let ptr = b.inttoptr(self.offset(start, i64::from(at * size)));
            self.loaded(lane.vector(register), ptr, mark)
        };
        let mut registers: Vec<_> = (0..all).step_by(register as usize).map(load).collect();
        registers.resize(registers.len().next_power_of_two(), lane.vector(register).zero());
        pick(self.concatenated(registers), last)
    }

    /// What lies in pieces of so many lanes, one piece after another.
    pub(super) fn load_pieces(
        &mut self,
        lane: Type<'c>,
        starts: &[Value<'c>],
        lanes: u32,
        count: u32,
        mark: Mark,
    ) -> Result<Value<'c>, CompileError> {
        let mask = self.active();
        let pieces = self.load_runs(lane, starts, lanes, count, mask, mark)?;
        Ok(self.concatenated(pieces))
    }

    pub(super) fn store_lanes(
        &mut self,
        address: &Address<'c>,
        values: &[Value<'c>],
        mark: Mark,
    ) -> Result<(), CompileError> {
        let b = self.unit.b;
        let count = values.len() as u32;
        let size = values[0].ty().scalar_bits() / 8;
        if let Some((base, tile)) = self.tile(address, size, count) {
            self.for_tile(
                |this| {
                    this.store_tile(&tile, base, values[0], mark);
                    Vec::new()
                },
                |this| this.store_lanes(address, values, mark).map(|()| Vec::new()),
            )?;
            return Ok(());
        }
        if self.store_permuted(address, values, mark)? {
            return Ok(());
        }
        let mask = self.active();
        match self.pattern(address, size, count, false) {
            Pattern::Consecutive(start) if !count.is_power_of_two() => {
                let registers = self.join_registers(values);
                let lanes = registers[0].ty().lanes();
                let starts: Vec<Value<'c>> = (0..registers.len())
                    .map(|at| self.offset(start, at as i64 * i64::from(lanes * size)))
                    .collect();
                let mask = self.repeated(mask, count);
                self.store_parts(&registers, &starts, mask, mark)?;
            }
            Pattern::Consecutive(start) => {
                let wide = self.join(values);
                self.store_runs(wide, &[start], self.unit.lanes, count, mask, mark)?;
            }
            Pattern::Pieces { lanes, starts, .. } => {
                let wide = self.join(values);
                self.store_runs(wide, &starts, lanes, count, mask, mark)?;
            }
            Pattern::Common { lanes, start, step } => self.store_common(values, lanes, start, step, mark),
            Pattern::Strided(stride, start) => {
                let spread = self.spread(mask, stride);
                let wide = self.spread(values[0], stride);
                b.masked_store(wide, b.inttoptr(start), size, spread);
            }
            Pattern::Indexed(base, indices, bytes) => {
                b.scatter(values[0], self.elements(base, indices, bytes), size, mask);
            }
            Pattern::Scattered if self.stores_one_by_one(address, size * count) => {
                self.store_one_by_one(address, values, mark);
            }
            Pattern::Scattered => {
                let addresses = self.all_addresses(address);
                let (word, per) = self.word_of(values[0].ty().scalar(), count);
                for (at, values) in values.chunks(per as usize).enumerate() {
                    let words = b.bitcast(self.join(values), word.vector(self.unit.lanes));
                    let further = i64::from(at as u32 * per * size);
                    self.scatter(words, self.offset(addresses, further));
                }
            }
        }
        Ok(())
    }

    /// What scattered lanes of `count` elements are accessed by: the largest words of several elements, and how many are in
    /// one. Those of a vector, which is aligned to its size, are aligned too; those of neighbours that are accessed together need not be.
    pub(super) fn word_of(&self, lane: Type<'c>, count: u32) -> (Type<'c>, u32) {
        let bits = lane.scalar_bits();
        match count.min(64 / bits) {
            1 => (lane, 1),
            per => (self.unit.b.context().int(bits * per), per),
        }
    }

    /// Whether the offsets of an address hold: there is nothing to test, or it has been tested.
    pub(super) fn is_sure(&self, address: IrValue) -> bool {
        self.p.shapes.checks(address).is_empty() || self.ahead.is_in_range(address)
    }

    /// Whether the offsets of an address hold, where that must be tested beside the access.
    fn in_range(&mut self, address: IrValue) -> Option<Value<'c>> {
        let b = self.unit.b;
        let p = self.p;
        let mut all = None;
        if self.is_sure(address) {
            return None;
        }
        for check in p.shapes.checks(address) {
            let base = self.natural(check.assumption.index);
            let holds = self.stays_in_range(&check.assumption, base);
            all = Some(all.map_or(holds, |all| b.and(all, holds)));
        }
        all
    }

    /// How lanes of `count` elements of `size` bytes lie.
    pub(super) fn pattern(&self, address: &Address<'c>, size: u32, count: u32, load: bool) -> Pattern<'c> {
        let (offsets, rows) = match address {
            Address::Affine(_, offsets) => (offsets, self.unit.lanes as usize),
            Address::Rows { offsets, .. } => (offsets, self.unit.row_lanes() as usize),
            Address::Indexed(base, indices, bytes) if self.takes_indices(load, size, count) => {
                return Pattern::Indexed(*base, *indices, *bytes);
            }
            Address::Uniform(_) | Address::Varying(_) | Address::Indexed(..) => return Pattern::Scattered,
        };
        let start = |lane: usize| self.place_of_lane(address, lane as u32);
        let element = i64::from(size * count);
        let steps =
            |piece: &[i64], step: i64| piece.windows(2).all(|pair| pair[1].wrapping_sub(pair[0]) == step);
        if rows == self.unit.lanes as usize && steps(&offsets[..], element) {
            return Pattern::Consecutive(start(0));
        }
        let indexed = || if count == 1 { self.at_known_places(address, size, load) } else { None };
        for lanes in
            [128usize, 64, 32, 16, 8, 4].into_iter().filter(|lanes| *lanes <= rows && *lanes < offsets.len())
        {
            for same in [false, true] {
                let step = if same { 0 } else { element };
                if (load || !same) && offsets.chunks(lanes).all(|piece| steps(piece, step)) {
                    if !self.is_full()
                        && let Some(indexed) = indexed()
                    {
                        return indexed;
                    }
                    let starts = (0..self.unit.lanes as usize).step_by(lanes).map(start).collect();
                    return Pattern::Pieces { lanes: lanes as u32, same, starts };
                }
            }
        }
        for lanes in [128usize, 64, 32, 16].into_iter().filter(|lanes| !load && 2 * lanes <= offsets.len()) {
            let firsts: Vec<i64> = offsets.iter().copied().step_by(lanes).collect();
            if rows == self.unit.lanes as usize
                && let Some(step) = even_step(&firsts)
                && offsets.chunks(lanes).all(|piece| steps(piece, 0))
            {
                return Pattern::Common { lanes: lanes as u32, start: start(0), step };
            }
        }
        let step = offsets[1].wrapping_sub(offsets[0]);
        // Only where masked accesses of this element are instructions.
        if self.has_masked(size)
            && count == 1
            && rows == self.unit.lanes as usize
            && steps(&offsets[..], step)
            && [2 * element, 3 * element, 4 * element].contains(&step)
        {
            return indexed().unwrap_or_else(|| Pattern::Strided((step / element) as u32, start(0)));
        }
        Pattern::Scattered
    }

    /// In code that is to be there soon: elements at known distances as one gather or scatter, where the accesses that run faster are many
    /// instructions, most of them to have the mask of each.
    fn at_known_places(&self, address: &Address<'c>, size: u32, load: bool) -> Option<Pattern<'c>> {
        let Address::Affine(base, offsets) = address else { return None };
        let places = offsets.iter().map(|offset| i32::try_from(*offset).ok().map(|place| place as u64));
        let places: Vec<u64> = places.collect::<Option<_>>()?;
        let takes = self.is_quick() && self.has_scattered(load, size) && self.unit.lanes <= LANES;
        takes.then(|| Pattern::Indexed(*base, self.unit.types.i32.int_vector(&places), 1))
    }

    /// Addresses of pieces, one for all lanes of a piece, such that none is touched unless an active lane does.
    fn touched(&mut self, starts: Vec<Value<'c>>, lanes: u32) -> Vec<Value<'c>> {
        let b = self.unit.b;
        if self.is_full() {
            return starts;
        }
        let mask = self.active();
        // Some piece has an active lane; where this one has none, that piece is loaded instead.
        let active: Vec<Value<'c>> =
            (0..starts.len() as u32).map(|at| b.any(b.subvector(mask, at * lanes, lanes))).collect();
        let mut some = starts[starts.len() - 1];
        for at in (0..starts.len()).rev() {
            some = b.select(active[at], starts[at], some);
        }
        starts.iter().zip(active).map(|(start, active)| b.select(active, *start, some)).collect()
    }

    /// Vectors of one length, a power of two of them, one after another.
    pub(super) fn concatenated(&self, pieces: Vec<Value<'c>>) -> Value<'c> {
        self.unit.b.concatenated(pieces)
    }

    /// Each lane of a mask `count` times.
    pub(super) fn repeated(&self, mask: Value<'c>, count: u32) -> Value<'c> {
        if count == 1 {
            return mask;
        }
        let lanes: Vec<i32> = (0..(mask.ty().lanes() * count) as i32).map(|at| at / count as i32).collect();
        self.unit.b.shuffle(mask, mask, &lanes)
    }

    /// Each lane followed by `stride - 1` zeros.
    fn spread(&self, vector: Value<'c>, stride: u32) -> Value<'c> {
        let b = self.unit.b;
        let lanes: Vec<i32> = (0..(self.unit.lanes * stride) as i32)
            .map(|at| if at % stride as i32 == 0 { at / stride as i32 } else { self.unit.lanes as i32 })
            .collect();
        if vector.ty() != self.unit.types.mask {
            return b.shuffle(vector, vector.ty().zero(), &lanes);
        }
        if self.is_full() {
            let lanes: Vec<u64> =
                lanes.iter().map(|lane| u64::from(*lane < self.unit.lanes as i32)).collect();
            return self.unit.types.bit.int_vector(&lanes);
        }
        // Bits are shuffled one by one, bytes are not.
        let bytes = b.sext(vector, self.unit.context().int(8));
        let bytes = b.shuffle(bytes, bytes.ty().zero(), &lanes);
        b.icmp(IntPredicate::Slt, bytes, bytes.ty().zero())
    }

    /// The elements of interleaved vectors.
    pub(super) fn split(&self, wide: Value<'c>, count: u32) -> Vec<Value<'c>> {
        if count == 1 {
            return vec![wide];
        }
        let lanes = wide.ty().lanes() / count;
        if count == 4 && self.picks_from_two() && wide.ty().scalar_bits() == 32 {
            let (b, i64) = (self.unit.b, self.unit.types.i64);
            let pairs = self.split(b.bitcast(wide, i64.vector(2 * lanes)), 2);
            let pair = wide.ty().scalar().vector(2 * lanes);
            return pairs.into_iter().flat_map(|two| self.split(b.bitcast(two, pair), 2)).collect();
        }
        if self.goes_by_twos(count, wide.ty()) {
            let mut halves = self.split(wide, 2).into_iter().map(|half| self.split(half, count / 2));
            let (even, odd) = (halves.next().unwrap_or_default(), halves.next().unwrap_or_default());
            return even.into_iter().zip(odd).flat_map(|(even, odd)| [even, odd]).collect();
        }
        (0..count)
            .map(|index| {
                let picked: Vec<i32> = (0..lanes).map(|lane| (lane * count + index) as i32).collect();
                self.unit.b.shuffle(wide, wide, &picked)
            })
            .collect()
    }

    /// Whether an instruction takes any elements of two registers: then one of four is had in two steps, which others share.
    pub(super) fn picks_from_two(&self) -> bool {
        self.unit.machine.cpu().vector_bits() == 512
    }

    /// Whether so many vectors are interleaved in steps, in each of which a register is made of two of the step before.
    fn goes_by_twos(&self, count: u32, ty: Type<'c>) -> bool {
        count > 2 && count.is_power_of_two() && self.picks_from_two() && ty.scalar_bits() >= 32
    }

    /// Vectors interleaved: the elements of lane 0, of lane 1, and so on.
    pub(super) fn join(&self, vectors: &[Value<'c>]) -> Value<'c> {
        let b = self.unit.b;
        let ty = vectors[0].ty();
        if vectors.len() == 4 && self.picks_from_two() && ty.scalar_bits() == 32 {
            let pair = self.unit.types.i64.vector(ty.lanes());
            let pairs: Vec<_> = vectors.chunks(2).map(|two| b.bitcast(self.join(two), pair)).collect();
            return b.bitcast(self.join(&pairs), ty.scalar().vector(4 * ty.lanes()));
        }
        if self.goes_by_twos(vectors.len() as u32, ty) {
            let halves = [0, 1].map(|first| {
                let every_other: Vec<_> = vectors.iter().copied().skip(first).step_by(2).collect();
                self.join(&every_other)
            });
            return self.interleaved_in_full(&halves);
        }
        self.interleaved_in_full(vectors)
    }

    fn interleaved_in_full(&self, vectors: &[Value<'c>]) -> Value<'c> {
        let wide = self.concatenated(vectors.to_vec());
        let count = vectors.len() as i32;
        let lanes = vectors[0].ty().lanes() as i32;
        let order: Vec<i32> = (0..lanes * count).map(|at| at % count * lanes + at / count).collect();
        if count == 1 { wide } else { self.unit.b.shuffle(wide, wide, &order) }
    }

    /// Likewise, of any number of vectors, as registers: each takes what it has of one vector after another.
    pub(super) fn join_registers(&self, vectors: &[Value<'c>]) -> Vec<Value<'c>> {
        let b = self.unit.b;
        let ty = vectors[0].ty();
        let (count, lanes) = (vectors.len() as u32, self.unit.machine.cpu().vector_bits() / ty.scalar_bits());
        let lanes = lanes.min(ty.lanes());
        let mut registers = Vec::new();
        for first in (0..ty.lanes()).step_by(lanes as usize) {
            let parts: Vec<_> = vectors.iter().map(|vector| b.subvector(*vector, first, lanes)).collect();
            for register in 0..count {
                let places = (register * lanes..(register + 1) * lanes).map(|at| (at % count, at / count));
                let mut all = parts[0];
                for (number, part) in (0..).zip(&parts).skip(1) {
                    let order = places.clone().enumerate().map(|(at, (vector, lane))| match vector {
                        0 if number == 1 => lane as i32,
                        _ if vector == number => (lanes + lane) as i32,
                        _ => at as i32,
                    });
                    all = b.shuffle(all, *part, &order.collect::<Vec<_>>());
                }
                registers.push(all);
            }
        }
        registers
    }

    /// What a value is in the highest active lane: of several stores to one place, that of the last lane stays.
    fn last_active(&mut self, value: IrValue) -> Value<'c> {
        if self.p.shapes.of(value).is_uniform() {
            return self.natural(value);
        }
        let b = self.unit.b;
        if let Some(last) = self.known_lanes().and_then(|lanes| lanes.iter().rposition(|active| *active)) {
            let vector = self.vector(value);
            return b.extract(vector, last as u32);
        }
        let (mask, vector) = (self.active(), self.vector(value));
        let i32 = self.unit.types.i32;
        let zeros = b.int_resize(b.ctlz(b.mask_to_int(mask)), i32, false);
        b.extract_dynamic(vector, b.sub(i32.int_const(u64::from(self.unit.lanes) - 1), zeros))
    }

    // Accesses with an order

    /// Whether one volatile vector access does: in shared memory warps rely on running in step, not on single lanes' order.
    fn keeps_order(&self, address: &Address<'c>, access: Access, element: u32) -> bool {
        access.order == Order::Volatile
            && access.space == Space::Shared
            && self.is_full()
            && matches!(self.pattern(address, element, 1, true), Pattern::Consecutive(_))
    }

    fn ordered_load(&mut self, results: &[IrValue], lane: Type<'c>, address: &Address<'c>, access: Access) {
        let b = self.unit.b;
        let size = lane.scalar_bits() / 8;
        let load = |lane: Type<'c>, ptr: Value<'c>| {
            let value = b.load_atomic(lane, ptr, load_ordering(access.order));
            if access.order == Order::Volatile { b.mark_volatile(value) } else { value }
        };
        let whole = (results.len() == 2 && size == 8).then(|| self.unit.context().int(128));
        if let (Address::Uniform(address), Some(whole)) = (address, whole) {
            let halves = self.halves(load(whole, b.inttoptr(*address)));
            for (half, result) in halves.into_iter().zip(results) {
                self.define_scalar_or_vector(*result, b.bitcast(half, lane));
            }
            return;
        }
        if let Address::Uniform(address) = address {
            for (index, result) in results.iter().enumerate() {
                let value = load(lane, b.inttoptr(self.offset(*address, index as i64 * i64::from(size))));
                self.define_scalar_or_vector(*result, value);
            }
            return;
        }
        let addresses = self.all_addresses(address);
        let addresses = self.spill(addresses);
        let arrays: Vec<Value<'c>> =
            results.iter().map(|_| self.scratch(lane.vector(self.unit.lanes))).collect();
        let mask = self.active();
        self.for_each_lane(b.mask_to_int(mask), |this, at| {
            let address = this.element(addresses, at, this.unit.types.i64);
            let values: Vec<Value<'c>> = match whole {
                Some(whole) => this.halves(load(whole, b.inttoptr(address))).into(),
                None => (0..arrays.len() as i64)
                    .map(|index| load(lane, b.inttoptr(this.offset(address, index * i64::from(size)))))
                    .collect(),
            };
            for (value, array) in values.into_iter().zip(&arrays) {
                b.store(value, this.element_ptr(*array, at, lane), size);
            }
        });
        for (result, array) in results.iter().zip(arrays) {
            let value = b.load(lane.vector(self.unit.lanes), array, 64);
            self.define(*result, value);
        }
    }

    fn ordered_store(&mut self, values: &[IrValue], lane: Type<'c>, address: &Address<'c>, access: Access) {
        let b = self.unit.b;
        let size = lane.scalar_bits() / 8;
        let store = |value: Value<'c>, ptr: Value<'c>| {
            let store = b.store_atomic(value, ptr, store_ordering(access.order));
            if access.order == Order::Volatile {
                b.mark_volatile(store);
            }
        };
        let whole = values.len() == 2 && size == 8;
        if let (Address::Uniform(address), true) = (address, whole) {
            let halves = [0, 1].map(|half| b.bitcast(self.last_active(values[half]), self.unit.types.i64));
            store(self.whole(halves), b.inttoptr(*address));
            return;
        }
        if let Address::Uniform(address) = address {
            for (index, value) in values.iter().enumerate() {
                let value = self.last_active(*value);
                store(value, b.inttoptr(self.offset(*address, index as i64 * i64::from(size))));
            }
            return;
        }
        let addresses = self.all_addresses(address);
        let addresses = self.spill(addresses);
        let arrays: Vec<Value<'c>> = values.iter().map(|value| self.lane_array(*value)).collect();
        let mask = self.active();
        self.for_each_lane(b.mask_to_int(mask), |this, at| {
            let address = this.element(addresses, at, this.unit.types.i64);
            if whole {
                let halves = [0, 1].map(|half| this.element(arrays[half], at, this.unit.types.i64));
                store(this.whole(halves), b.inttoptr(address));
                return;
            }
            for (index, array) in arrays.iter().enumerate() {
                let value = this.element(*array, at, lane);
                store(value, b.inttoptr(this.offset(address, index as i64 * i64::from(size))));
            }
        });
    }

    /// The place of lane `at` in stack memory that holds a vector.
    pub(super) fn element_ptr(&self, array: Value<'c>, at: Value<'c>, lane: Type<'c>) -> Value<'c> {
        let b = self.unit.b;
        let i64 = self.unit.types.i64;
        b.ptr_add(array, b.mul(b.zext(at, i64), i64.int_const(u64::from(lane.scalar_bits() / 8))))
    }

    /// Lane `at` of stack memory that holds a vector.
    pub(super) fn element(&self, array: Value<'c>, at: Value<'c>, lane: Type<'c>) -> Value<'c> {
        self.unit.b.load(lane, self.element_ptr(array, at, lane), lane.scalar_bits() / 8)
    }
}

fn load_ordering(order: Order) -> Ordering {
    match order {
        Order::Weak | Order::Volatile | Order::Relaxed | Order::Release => Ordering::Relaxed,
        Order::Acquire | Order::AcqRel => Ordering::Acquire,
        Order::SeqCst => Ordering::SequentiallyConsistent,
    }
}

fn store_ordering(order: Order) -> Ordering {
    match order {
        Order::Weak | Order::Volatile | Order::Relaxed | Order::Acquire => Ordering::Relaxed,
        Order::Release | Order::AcqRel => Ordering::Release,
        Order::SeqCst => Ordering::SequentiallyConsistent,
    }
}
