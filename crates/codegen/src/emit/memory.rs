//! Loads and stores, by the shape of their addresses.
//!
//! One address for all lanes is a scalar access. Addresses that differ by known constants are one access of a whole vector
//! where they are consecutive, some accesses and shuffles where they consist of a few consecutive pieces, or a
//! masked access with gaps. Everything else gathers and scatters. Lanes that are not active touch no memory.

use kernel_abi::{CompileError, FaultKind};
use simt_ir::{
    Access, Convert, Def, Inst, IntBinary, Op, Order, Shift, Space, Type as IrType, Value as IrValue,
};
use transform::{LaneShape, Offsets};

use super::LANES;
use super::function::Emitter;
use crate::llvm::{IntPredicate, Ordering, Type, Value};
use crate::target::Level;

/// Host addresses of an access.
#[derive(Clone)]
pub enum Address<'c> {
    /// The same for all lanes.
    Uniform(Value<'c>),
    /// A base and constants.
    Affine(Value<'c>, Offsets),
    /// One for each lane.
    Varying(Value<'c>),
}

/// How the lanes of an affine access lie in memory. A lane's element is all it accesses.
enum Pattern {
    /// One after another from this offset.
    Consecutive(i64),
    /// Pieces of so many lanes, consecutive in themselves, from these offsets.
    Pieces(u32, Vec<i64>),
    /// Every n-th element from this offset.
    Strided(u32, i64),
    Scattered,
}

impl<'c> Emitter<'_, 'c> {
    pub(super) fn load(&mut self, inst: Inst, access: Access) -> Result<(), CompileError> {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        let lane = self.lane_type(data.results[0]);
        let count = u32::from(access.lanes);
        let size = lane.scalar_bits() / 8;
        self.check_alignment(data.args[0], access, size * count, data.loc);
        let address = self.address(data.args[0], access);
        if access.order != Order::Weak && !self.keeps_order(&address, access, size * count) {
            self.ordered_load(&data.results, lane, &address, access);
            return Ok(());
        }
        let invariant = access.invariant || matches!(access.space, Space::Const | Space::Param);
        let mark = |load: Value<'c>| {
            if access.order != Order::Weak {
                b.mark_volatile(load)
            } else if invariant {
                b.mark_invariant(load)
            } else {
                load
            }
        };
        match address {
            Address::Uniform(address) => {
                for (index, result) in data.results.iter().enumerate() {
                    let ptr = b.inttoptr(self.offset(address, index as i64 * i64::from(size)));
                    let value = mark(b.load(lane, ptr, size));
                    self.define_scalar_or_vector(*result, value);
                }
            }
            Address::Affine(base, offsets) => {
                let values = match self.pattern(&offsets, size * count, count * size) {
                    Pattern::Consecutive(start) => {
                        let mask = self.active();
                        let wide = self.load_run(
                            lane,
                            base,
                            start,
                            LANES * count,
                            self.repeated(mask, count),
                            &mark,
                        );
                        self.split(wide, count)
                    }
                    Pattern::Pieces(lanes, starts) => {
                        let mask = self.active();
                        let mut pieces: Vec<Value<'c>> = Vec::new();
                        for (at, start) in starts.iter().enumerate() {
                            let known = starts[..at].iter().position(|other| other == start);
                            if let Some(known) = known.filter(|_| self.is_full()) {
                                pieces.push(pieces[known]);
                                continue;
                            }
                            let part = b.subvector(mask, at as u32 * lanes, lanes);
                            let part = self.repeated(part, count);
                            pieces.push(self.load_run(lane, base, *start, lanes * count, part, &mark));
                        }
                        while pieces.len() > 1 {
                            pieces = pieces.chunks(2).map(|pair| b.concat(pair[0], pair[1])).collect();
                        }
                        self.split(pieces[0], count)
                    }
                    Pattern::Strided(stride, start) => {
                        let mask = self.active();
                        let spread = self.spread(mask, stride);
                        let ptr = b.inttoptr(self.offset(base, start));
                        let wide = lane.vector(LANES * stride);
                        let wide = b.masked_load(wide, ptr, size, spread, wide.zero());
                        let lanes: Vec<i32> = (0..LANES as i32).map(|lane| lane * stride as i32).collect();
                        vec![b.shuffle(wide, wide, &lanes)]
                    }
                    Pattern::Scattered => {
                        let addresses = self.widen(base, &LaneShape::Affine(offsets));
                        self.gather(lane, addresses, count)
                    }
                };
                for (result, value) in data.results.iter().zip(values) {
                    self.define(*result, value);
                }
            }
            Address::Varying(addresses) => {
                let values = self.gather(lane, addresses, count);
                for (result, value) in data.results.iter().zip(values) {
                    self.define(*result, value);
                }
            }
        }
        Ok(())
    }

    pub(super) fn store(&mut self, inst: Inst, access: Access) -> Result<(), CompileError> {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        let values = &data.args[1..];
        let lane = self.lane_type(values[0]);
        let count = u32::from(access.lanes);
        let size = lane.scalar_bits() / 8;
        self.check_alignment(data.args[0], access, size * count, data.loc);
        let address = self.address(data.args[0], access);
        if access.order != Order::Weak && !self.keeps_order(&address, access, size * count) {
            self.ordered_store(values, lane, &address, access);
            return Ok(());
        }
        let mark = |store: Value<'c>| {
            if access.order != Order::Weak { b.mark_volatile(store) } else { store }
        };
        match address {
            Address::Uniform(address) => {
                for (index, value) in values.iter().enumerate() {
                    let value = self.last_active(*value);
                    let ptr = b.inttoptr(self.offset(address, index as i64 * i64::from(size)));
                    mark(b.store(value, ptr, size));
                }
            }
            Address::Affine(base, offsets) => {
                let mask = self.active();
                let vectors: Vec<Value<'c>> = values.iter().map(|value| self.vector(*value)).collect();
                match self.pattern(&offsets, size * count, count * size) {
                    Pattern::Consecutive(start) => {
                        let wide = self.join(&vectors);
                        self.store_run(wide, base, start, self.repeated(mask, count), &mark);
                    }
                    Pattern::Pieces(lanes, starts) => {
                        let wide = self.join(&vectors);
                        for (at, start) in starts.iter().enumerate() {
                            let at = at as u32 * lanes;
                            let part = self.repeated(b.subvector(mask, at, lanes), count);
                            let piece = b.subvector(wide, at * count, lanes * count);
                            self.store_run(piece, base, *start, part, &mark);
                        }
                    }
                    Pattern::Strided(stride, start) => {
                        let spread = self.spread(mask, stride);
                        let wide = self.spread(vectors[0], stride);
                        let ptr = b.inttoptr(self.offset(base, start));
                        b.masked_store(wide, ptr, size, spread);
                    }
                    Pattern::Scattered => {
                        let addresses = self.widen(base, &LaneShape::Affine(offsets));
                        self.scatter(&vectors, addresses, size);
                    }
                }
            }
            Address::Varying(addresses) => {
                let vectors: Vec<Value<'c>> = values.iter().map(|value| self.vector(*value)).collect();
                self.scatter(&vectors, addresses, size);
            }
        }
        Ok(())
    }

    /// The host addresses of an access.
    pub(super) fn address(&mut self, value: IrValue, access: Access) -> Address<'c> {
        let b = self.unit.b;
        let i64 = self.unit.types.i64;
        let shape = self.p.shapes.of(value).clone();
        let narrow = self.p.func.ty(value) == IrType::I32;
        if access.space == Space::Local {
            let address = self.vector(value);
            let address = self.in_window(address, narrow, access.offset);
            return Address::Varying(b.add(address, self.local_windows()));
        }
        let window = self.window_scalar(access.space);
        match shape {
            LaneShape::Uniform => {
                let address = self.natural(value);
                let address = self.in_window(address, narrow, access.offset);
                Address::Uniform(b.add(address, window))
            }
            LaneShape::Affine(offsets) => {
                // In the shared window a lane's address is far below 2^31, so the base may be taken as signed: it stands for
                // a lane that need not be active.
                let base = self.natural(value);
                let base = if narrow { b.sext(base, i64) } else { base };
                let base = b.add(base, window);
                Address::Affine(self.offset(base, access.offset), offsets)
            }
            LaneShape::Varying => {
                let address = self.vector(value);
                let address = self.in_window(address, narrow, access.offset);
                Address::Varying(b.add(address, b.splat(window, LANES)))
            }
        }
    }

    fn in_window(&self, address: Value<'c>, narrow: bool, offset: i64) -> Value<'c> {
        let moved = self.offset(address, offset);
        if narrow { self.unit.b.zext(moved, self.unit.types.i64) } else { moved }
    }

    /// The addresses of all lanes as a vector.
    pub(super) fn all_addresses(&self, address: &Address<'c>) -> Value<'c> {
        match address {
            Address::Uniform(address) => self.unit.b.splat(*address, LANES),
            Address::Affine(base, offsets) => self.widen(*base, &LaneShape::Affine(offsets.clone())),
            Address::Varying(addresses) => *addresses,
        }
    }

    fn offset(&self, address: Value<'c>, offset: i64) -> Value<'c> {
        if offset == 0 {
            return address;
        }
        self.unit.b.add(address, address.ty().int_const(offset as u64))
    }

    fn pattern(&self, offsets: &Offsets, element: u32, bytes: u32) -> Pattern {
        let element = i64::from(element);
        let consecutive = |piece: &[i64]| piece.windows(2).all(|pair| pair[1] - pair[0] == element);
        if consecutive(&offsets[..]) {
            return Pattern::Consecutive(offsets[0]);
        }
        for lanes in [16usize, 8, 4] {
            if offsets.chunks(lanes).all(consecutive) {
                return Pattern::Pieces(lanes as u32, offsets.iter().copied().step_by(lanes).collect());
            }
        }
        let step = offsets[1] - offsets[0];
        let even = offsets.windows(2).all(|pair| pair[1] - pair[0] == step);
        // Only where masked accesses of this element are instructions.
        let masked = self.unit.machine.cpu().level() >= Level::Avx2 && matches!(bytes, 4 | 8);
        if even
            && masked
            && element == i64::from(bytes)
            && [2 * element, 3 * element, 4 * element].contains(&step)
        {
            return Pattern::Strided((step / element) as u32, offsets[0]);
        }
        Pattern::Scattered
    }

    /// Loads consecutive elements; only those of the mask are touched.
    fn load_run(
        &self,
        lane: Type<'c>,
        base: Value<'c>,
        start: i64,
        count: u32,
        mask: Value<'c>,
        mark: &dyn Fn(Value<'c>) -> Value<'c>,
    ) -> Value<'c> {
        let b = self.unit.b;
        let ptr = b.inttoptr(self.offset(base, start));
        let (ty, align) = (lane.vector(count), lane.scalar_bits() / 8);
        if self.is_full() {
            mark(b.load(ty, ptr, align))
        } else {
            b.masked_load(ty, ptr, align, mask, ty.zero())
        }
    }

    fn store_run(
        &self,
        value: Value<'c>,
        base: Value<'c>,
        start: i64,
        mask: Value<'c>,
        mark: &dyn Fn(Value<'c>) -> Value<'c>,
    ) {
        let b = self.unit.b;
        let ptr = b.inttoptr(self.offset(base, start));
        let align = value.ty().scalar_bits() / 8;
        if self.is_full() {
            mark(b.store(value, ptr, align));
        } else {
            b.masked_store(value, ptr, align, mask);
        }
    }

    fn gather(&mut self, lane: Type<'c>, addresses: Value<'c>, count: u32) -> Vec<Value<'c>> {
        let b = self.unit.b;
        let mask = self.active();
        let size = lane.scalar_bits() / 8;
        let ty = lane.vector(LANES);
        (0..count)
            .map(|index| {
                let ptrs = b.inttoptr(self.offset(addresses, i64::from(index * size)));
                b.gather(ty, ptrs, size, mask, ty.zero())
            })
            .collect()
    }

    fn scatter(&mut self, values: &[Value<'c>], addresses: Value<'c>, size: u32) {
        let b = self.unit.b;
        let mask = self.active();
        for (index, value) in values.iter().enumerate() {
            let ptrs = b.inttoptr(self.offset(addresses, index as i64 * i64::from(size)));
            b.scatter(*value, ptrs, size, mask);
        }
    }

    /// Each lane of a mask `count` times.
    fn repeated(&self, mask: Value<'c>, count: u32) -> Value<'c> {
        if count == 1 {
            return mask;
        }
        let lanes: Vec<i32> = (0..(mask.ty().lanes() * count) as i32).map(|at| at / count as i32).collect();
        self.unit.b.shuffle(mask, mask, &lanes)
    }

    /// Each lane followed by `stride - 1` zeros.
    fn spread(&self, vector: Value<'c>, stride: u32) -> Value<'c> {
        let lanes: Vec<i32> = (0..(LANES * stride) as i32)
            .map(|at| if at % stride as i32 == 0 { at / stride as i32 } else { LANES as i32 })
            .collect();
        self.unit.b.shuffle(vector, vector.ty().zero(), &lanes)
    }

    /// The elements of interleaved vectors.
    fn split(&self, wide: Value<'c>, count: u32) -> Vec<Value<'c>> {
        if count == 1 {
            return vec![wide];
        }
        let lanes = wide.ty().lanes() / count;
        (0..count)
            .map(|index| {
                let picked: Vec<i32> = (0..lanes).map(|lane| (lane * count + index) as i32).collect();
                self.unit.b.shuffle(wide, wide, &picked)
            })
            .collect()
    }

    /// Vectors interleaved: the elements of lane 0, of lane 1, and so on.
    fn join(&self, vectors: &[Value<'c>]) -> Value<'c> {
        let b = self.unit.b;
        let mut wide = vectors.to_vec();
        while wide.len() > 1 {
            wide = wide.chunks(2).map(|pair| b.concat(pair[0], pair[1])).collect();
        }
        let count = vectors.len() as i32;
        let lanes = LANES as i32;
        let order: Vec<i32> = (0..lanes * count).map(|at| at % count * lanes + at / count).collect();
        if count == 1 { wide[0] } else { b.shuffle(wide[0], wide[0], &order) }
    }

    /// What a value is in the highest active lane: of several stores to one place, that of the last lane stays.
    fn last_active(&mut self, value: IrValue) -> Value<'c> {
        if self.p.shapes.of(value).is_uniform() {
            return self.natural(value);
        }
        let b = self.unit.b;
        let (mask, vector) = (self.active(), self.vector(value));
        let zeros = b.ctlz(b.mask_to_int(mask));
        b.extract_dynamic(vector, b.sub(zeros.ty().int_const(31), zeros))
    }

    // Accesses with an order

    /// Whether one volatile vector access does: in shared memory warps rely on running in step, not on single lanes' order.
    fn keeps_order(&self, address: &Address<'c>, access: Access, element: u32) -> bool {
        let consecutive = match address {
            Address::Affine(_, offsets) => {
                matches!(self.pattern(offsets, element, element), Pattern::Consecutive(_))
            }
            _ => false,
        };
        access.order == Order::Volatile && access.space == Space::Shared && self.is_full() && consecutive
    }

    fn ordered_load(&mut self, results: &[IrValue], lane: Type<'c>, address: &Address<'c>, access: Access) {
        let b = self.unit.b;
        let size = lane.scalar_bits() / 8;
        let load = |ptr: Value<'c>| {
            let value = b.load_atomic(lane, ptr, load_ordering(access.order));
            if access.order == Order::Volatile { b.mark_volatile(value) } else { value }
        };
        if let Address::Uniform(address) = address {
            for (index, result) in results.iter().enumerate() {
                let value = load(b.inttoptr(self.offset(*address, index as i64 * i64::from(size))));
                self.define_scalar_or_vector(*result, value);
            }
            return;
        }
        let addresses = self.all_addresses(address);
        let addresses = self.spill(addresses);
        let arrays: Vec<Value<'c>> = results.iter().map(|_| self.stack(lane.vector(LANES))).collect();
        let mask = self.active();
        self.for_each_lane(b.mask_to_int(mask), |this, at| {
            let address = this.element(addresses, at, this.unit.types.i64);
            for (index, array) in arrays.iter().enumerate() {
                let value = load(b.inttoptr(this.offset(address, index as i64 * i64::from(size))));
                b.store(value, this.element_ptr(*array, at, lane), size);
            }
        });
        for (result, array) in results.iter().zip(arrays) {
            let value = b.load(lane.vector(LANES), array, 64);
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

    // Alignment

    /// Raises a fault if an active lane's address is no multiple of `bytes`.
    pub(super) fn check_alignment(
        &mut self,
        value: IrValue,
        access: Access,
        bytes: u32,
        loc: simt_ir::SourceLoc,
    ) {
        if bytes == 1 {
            return;
        }
        let b = self.unit.b;
        let power = bytes.trailing_zeros();
        let mut roots = Vec::new();
        self.alignment_roots(value, power, 12, &mut Vec::new(), &mut roots);
        let exact = access.offset.trailing_zeros() < power || roots.len() > 1;
        if roots.is_empty() && !exact {
            return;
        }
        let (tested, offset) = if exact { (value, access.offset) } else { (roots[0], 0) };
        let low = u64::from(bytes - 1);
        let natural = self.natural(tested);
        let is_scalar = match self.p.shapes.of(tested) {
            LaneShape::Uniform => true,
            LaneShape::Affine(offsets) => offsets.iter().all(|offset| offset & low as i64 == 0),
            LaneShape::Varying => false,
        };
        let checked = if is_scalar { natural } else { self.vector(tested) };
        let checked = self.offset(checked, offset);
        let bad = b.and(checked, checked.ty().int_const(low));
        let bad = b.icmp(IntPredicate::Ne, bad, bad.ty().zero());
        let mask = self.active();
        let (any, lanes) = if is_scalar {
            (bad, mask)
        } else {
            let bad = b.and(bad, mask);
            (b.any(bad), bad)
        };
        self.unlikely(any, |this| {
            let address = this.vector(value);
            let address = this.in_window(address, address.ty().scalar_bits() == 32, access.offset);
            this.raise_for(FaultKind::Misaligned, lanes, Some(address), loc);
        });
    }

    /// Values whose sum has the same lowest `power` bits as `value`; what is surely a multiple is left out.
    fn alignment_roots(
        &self,
        value: IrValue,
        power: u32,
        depth: u32,
        cycle: &mut Vec<IrValue>,
        roots: &mut Vec<IrValue>,
    ) {
        if self.low_zeros(value, depth) >= power || cycle.contains(&value) {
            return;
        }
        let p = self.p;
        match p.func.def(value) {
            Def::Result(inst, _) if depth > 0 => {
                let data = p.func.inst(inst);
                match data.op {
                    Op::Int(IntBinary::Add) => {
                        self.alignment_roots(data.args[0], power, depth - 1, cycle, roots);
                        self.alignment_roots(data.args[1], power, depth - 1, cycle, roots);
                        return;
                    }
                    Op::ToGeneric(space) | Op::FromGeneric(space) if space != Space::Local || power <= 4 => {
                        return self.alignment_roots(data.args[0], power, depth - 1, cycle, roots);
                    }
                    _ => {}
                }
            }
            Def::Param(block, index) if depth > 4 && p.loops.headed_by(block).is_some() => {
                // A pointer that a loop moves by multiples is as aligned as it was before.
                let mut entering = None;
                let mut moves = Vec::new();
                cycle.push(value);
                for &pred in p.cfg.preds(block) {
                    for target in p.func.block(pred).term.targets() {
                        if target.block != block {
                            continue;
                        }
                        let arg = target.args[index as usize];
                        if p.loops.is_back_edge(pred, block) {
                            self.alignment_roots(self.through_params(arg), power, 4, cycle, &mut moves);
                        } else {
                            entering = Some(arg);
                        }
                    }
                }
                cycle.pop();
                if let Some(entering) = entering.filter(|_| moves.is_empty()) {
                    return self.alignment_roots(self.through_params(entering), power, 4, cycle, roots);
                }
            }
            _ => {}
        }
        roots.push(value);
    }

    /// The value that a parameter of a block with one incoming edge stands for.
    fn through_params(&self, mut value: IrValue) -> IrValue {
        let p = self.p;
        while let Def::Param(block, index) = p.func.def(value)
            && let [pred] = p.cfg.preds(block)
            && let [target] = p.func.block(*pred).term.targets()[..]
        {
            value = target.args[index as usize];
        }
        value
    }

    /// Zero bits in which a value surely ends, in every lane.
    fn low_zeros(&self, value: IrValue, depth: u32) -> u32 {
        let p = self.p;
        let Some(data) = p.func.def_inst(value).filter(|_| depth > 0) else { return 0 };
        let arg = |at: usize| self.low_zeros(data.args[at], depth - 1);
        match data.op {
            Op::Const(bits) => bits.trailing_zeros(),
            Op::Int(IntBinary::Add | IntBinary::Sub | IntBinary::Or | IntBinary::Xor) => arg(0).min(arg(1)),
            Op::Int(IntBinary::And) => arg(0).max(arg(1)),
            Op::Int(IntBinary::Mul) => arg(0) + arg(1),
            Op::Shift(Shift::Left) => arg(0) + p.func.constant(data.args[1]).unwrap_or(0).min(64) as u32,
            Op::Convert(Convert::SExt | Convert::ZExt | Convert::Trunc)
                if p.func.ty(data.args[0]) != IrType::Pred =>
            {
                arg(0)
            }
            Op::Select => {
                self.low_zeros(data.args[1], depth - 1).min(self.low_zeros(data.args[2], depth - 1))
            }
            _ => 0,
        }
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
