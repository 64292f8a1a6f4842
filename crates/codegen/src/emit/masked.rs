//! Accesses by the lanes of a mask.
//!
//! Where the processor has no instruction for one, LLVM would branch around each lane. Here a loop goes from one active lane to the next instead:
//! short code, and quick where few lanes are active. What lies side by side in one page is read as a whole.

use kernel_abi::CompileError;
use simt_ir::{Op, Space};

use super::each::ANYWHERE;
use super::fetch::Cache;
use super::full::ActiveLanes;
use super::function::Emitter;
use super::mark::{Kind, Mark};
use super::stack::stack_align;
use crate::llvm::{IntPredicate, Type, Value};
use crate::target::Level;

/// Bytes of a page: where one can be read all can.
const PAGE: u64 = 4096;
/// Registers that a masked store asks about one by one; of more it is more code than it saves.
const MOST_REGISTERS: u32 = 4;
/// Loads of a block up to which each is told where shared memory ends.
const FEW: usize = 8;

impl<'c> Emitter<'_, 'c> {
    /// Whether masked accesses of consecutive elements of so many bytes are instructions.
    pub(super) fn has_masked(&self, bytes: u32) -> bool {
        match self.unit.machine.cpu().level() {
            Level::Baseline => false,
            Level::Avx2 => bytes >= 4,
            Level::Avx512 => true,
        }
    }

    /// Whether an instruction loads elements of so many bytes from anywhere.
    pub(super) fn has_gather(&self, bytes: u32) -> bool {
        self.unit.machine.cpu().level() >= Level::Avx2 && bytes >= 4
    }

    /// Whether one stores them anywhere. Processors that have it have masks in registers, and gather by those.
    pub(super) fn has_scatter(&self, bytes: u32) -> bool {
        self.unit.machine.cpu().level() >= Level::Avx512 && bytes >= 4
    }

    /// Whether one does what is asked for.
    pub(super) fn has_scattered(&self, load: bool, bytes: u32) -> bool {
        if load { self.has_gather(bytes) } else { self.has_scatter(bytes) }
    }

    /// Whether an access by indices is to be one of the processor's instructions. AVX2 has them for loads, which take no less than a load for each lane
    /// does: they pay where that would have to ask each lane whether it is active.
    pub(super) fn takes_indices(&self, load: bool, bytes: u32, count: u32) -> bool {
        self.has_scatter(bytes) || count == 1 && !self.is_full() && self.has_scattered(load, bytes)
    }

    /// Whether elements of so many bytes are loaded from anywhere faster by one instruction than by one for each lane. What is less than a word is
    /// taken out of words.
    pub(super) fn has_fast_gather(&self, bytes: u32) -> bool {
        self.has_scatter(4) && (bytes >= 4 || !self.unit.machine.cpu().has_stepwise_gather())
    }

    /// Loads runs of memory, of `count` words for each of so many elements; only what is of the mask's lanes is touched. The mask has a lane
    /// for each element of all runs.
    pub(super) fn load_runs(
        &mut self,
        lane: Type<'c>,
        starts: &[Value<'c>],
        elements: u32,
        count: u32,
        mask: Value<'c>,
        mark: Mark,
    ) -> Result<Vec<Value<'c>>, CompileError> {
        let b = self.unit.b;
        self.by_mask(|this| {
            let run = |(at, start): (usize, &Value<'c>)| {
                let part = this.repeated(b.subvector(mask, at as u32 * elements, elements), count);
                this.load_run(lane, *start, elements * count, part, mark)
            };
            starts.iter().enumerate().map(run).collect()
        })
    }

    /// Stores the parts of a vector to runs of memory, likewise.
    pub(super) fn store_runs(
        &mut self,
        wide: Value<'c>,
        starts: &[Value<'c>],
        elements: u32,
        count: u32,
        mask: Value<'c>,
        mark: Mark,
    ) -> Result<(), CompileError> {
        let b = self.unit.b;
        let store = |this: &mut Self| {
            for (at, start) in starts.iter().enumerate() {
                let at = at as u32 * elements;
                let part = this.repeated(b.subvector(mask, at, elements), count);
                this.store_run(b.subvector(wide, at * count, elements * count), *start, part, mark)?;
            }
            Ok(Vec::new())
        };
        self.by_mask(store).map(|_| ())
    }

    /// Stores vectors to runs of memory, likewise. The mask has a lane for each element of all of them.
    pub(super) fn store_parts(
        &mut self,
        registers: &[Value<'c>],
        starts: &[Value<'c>],
        mask: Value<'c>,
        mark: Mark,
    ) -> Result<(), CompileError> {
        let b = self.unit.b;
        let store = |this: &mut Self| {
            for (at, (register, start)) in (0..).zip(registers.iter().zip(starts)) {
                let lanes = register.ty().lanes();
                this.store_run(*register, *start, b.subvector(mask, at * lanes, lanes), mark)?;
            }
            Ok(Vec::new())
        };
        self.by_mask(store).map(|_| ())
    }

    /// Asks for the line with an address, which need not be one of memory.
    pub(super) fn prefetch(&self, address: Value<'c>, cache: Cache) {
        let (b, i32, ptr) = (self.unit.b, self.unit.types.i32, self.unit.types.ptr);
        let near = match cache {
            Cache::First => 3,
            Cache::Second => 2,
        };
        let [to_read, near, data] = [0, near, 1].map(|number| i32.int_const(number));
        b.intrinsic("llvm.prefetch", &[ptr], &[b.inttoptr(address), to_read, near, data]);
    }

    fn load_run(
        &mut self,
        lane: Type<'c>,
        start: Value<'c>,
        count: u32,
        mask: Value<'c>,
        mark: Mark,
    ) -> Result<Value<'c>, CompileError> {
        let b = self.unit.b;
        let ptr = b.inttoptr(start);
        let (ty, size) = (lane.vector(count), lane.scalar_bits() / 8);
        Ok(if self.is_full() {
            self.loaded(ty, ptr, mark)
        } else if self.has_masked(size) {
            let is_far = mark.kind != Kind::Near;
            if is_far && self.unit.machine.cpu().has_plain_prefetch_only() && !self.is_quick() {
                (0..count * size)
                    .step_by(64)
                    .for_each(|at| self.prefetch(self.offset(start, at.into()), Cache::First));
            }
            let align = mark.alignment(lane);
            let at_once = |_: &mut Self| Ok(vec![b.masked_load(ty, ptr, align, mask, ty.zero())]);
            match self.registers_apart(count, size).filter(|_| !is_far) {
                None => at_once(self)?[0],
                Some(lanes) => {
                    let inside = self.is_inside_shared(start, count * size);
                    let apart = |this: &mut Self| {
                        Ok(vec![this.load_registers_apart(lane.vector(lanes), start, mask)])
                    };
                    self.either(inside, at_once, apart)?[0]
                }
            }
        } else {
            let one_by_one = |this: &mut Self| {
                let addresses = this.run(start, count, size);
                Ok(vec![this.load_each(lane, addresses, mask)])
            };
            let loaded = if PAGE >= u64::from(count * size) && !self.wants_less_code() {
                // All of them can be read where one is read and the rest lies in the same page.
                let in_page = self.in_one_page(start, count * size);
                let at_once = |this: &mut Self| Ok(vec![this.loaded(ty, ptr, mark)]);
                self.either(b.and(in_page, b.any(mask)), at_once, one_by_one)?
            } else {
                one_by_one(self)?
            };
            loaded[0]
        })
    }

    /// Loads the lanes of a mask by registers of this type, those of which no lane is active from where there is memory: what no lane wants may be
    /// beyond the end of it, and although nothing comes of that, processors take long to find so.
    fn load_registers_apart(&mut self, ty: Type<'c>, start: Value<'c>, mask: Value<'c>) -> Value<'c> {
        let b = self.unit.b;
        let registers = self.registers_of(start, mask, ty);
        let part = |(ptr, active)| b.masked_load(ty, ptr, ty.scalar_bits() / 8, active, ty.zero());
        self.concatenated(registers.into_iter().map(part).collect())
    }

    /// Likewise stores a vector.
    fn store_registers_apart(&mut self, value: Value<'c>, lanes: u32, start: Value<'c>, mask: Value<'c>) {
        let b = self.unit.b;
        let ty = value.ty().scalar().vector(lanes);
        for (at, (ptr, active)) in (0..).zip(self.registers_of(start, mask, ty)) {
            b.masked_store(b.subvector(value, at * lanes, lanes), ptr, ty.scalar_bits() / 8, active);
        }
    }

    /// Where the registers of a vector begin in memory, and their masks.
    fn registers_of(
        &mut self,
        start: Value<'c>,
        mask: Value<'c>,
        ty: Type<'c>,
    ) -> Vec<(Value<'c>, Value<'c>)> {
        let b = self.unit.b;
        let memory = self.window_scalar(Space::Shared);
        let register = |at: u32| {
            let active = b.subvector(mask, at, ty.lanes());
            let place = self.offset(start, i64::from(at * ty.scalar_bits() / 8));
            (b.inttoptr(b.select(b.any(active), place, memory)), active)
        };
        (0..mask.ty().lanes()).step_by(ty.lanes() as usize).map(register).collect()
    }

    /// The lanes of a register where a vector of `count` elements of so many bytes takes more than a warp or two have: with so many warps together
    /// some often have no active lane, as in a sum of a block by halves.
    fn registers_apart(&self, count: u32, size: u32) -> Option<u32> {
        let lanes = self.unit.machine.cpu().vector_bits() / 8 / size;
        let many = self.unit.shape.gang > 2 && count > lanes && count.is_multiple_of(lanes);
        let insts = &self.p.func.block(self.current).insts;
        let loads = insts.iter().filter(|inst| matches!(self.p.func.inst(**inst).op, Op::Load(_))).count();
        (many && loads <= FEW && !self.wants_less_code()).then_some(lanes)
    }

    /// Whether so many bytes from an address on end before the block's shared memory does, and with it what is mapped.
    fn is_inside_shared(&mut self, start: Value<'c>, bytes: u32) -> Value<'c> {
        let b = self.unit.b;
        let place = b.sub(start, self.window_scalar(Space::Shared));
        b.icmp(IntPredicate::Ule, self.offset(place, bytes.into()), self.shared_window_bytes())
    }

    fn store_run(
        &mut self,
        value: Value<'c>,
        start: Value<'c>,
        mask: Value<'c>,
        mark: Mark,
    ) -> Result<(), CompileError> {
        let b = self.unit.b;
        if mark.kind == Kind::Passing
            && let Some(passes) = self.passes_by_caches(value, start, mask)
        {
            return self
                .store_passing(passes, value, start, |this| this.store_run(value, start, mask, Mark::PLAIN));
        }
        let ptr = b.inttoptr(start);
        let size = value.ty().scalar_bits() / 8;
        if self.is_full() {
            self.marked(b.store(value, ptr, size), mark);
        } else if self.has_masked(size) {
            self.store_masked(value, start, mask, mark)?;
        } else {
            let addresses = self.run(start, value.ty().lanes(), size);
            self.store_each(value, addresses, mask);
        }
        Ok(())
    }

    /// Stores the lanes of a mask, by an instruction for each register. Where the processor does that lane by lane, only registers of which some lanes
    /// are active and some are not are stored so: of a warp at the edge of a picture, one.
    fn store_masked(
        &mut self,
        value: Value<'c>,
        start: Value<'c>,
        mask: Value<'c>,
        mark: Mark,
    ) -> Result<(), CompileError> {
        let b = self.unit.b;
        let cpu = self.unit.machine.cpu();
        let size = value.ty().scalar_bits() / 8;
        let (count, lanes) = (value.ty().lanes(), cpu.vector_bits() / 8 / size);
        let is_worth_it = count > lanes && count.is_multiple_of(lanes) && count <= MOST_REGISTERS * lanes;
        if !cpu.has_stepwise_masked_store() || self.wants_less_code() || !is_worth_it {
            let at_once = |_: &mut Self| {
                b.masked_store(value, b.inttoptr(start), size, mask);
                Ok(Vec::new())
            };
            let Some(lanes) = self.registers_apart(count, size).filter(|_| mark.kind == Kind::Near) else {
                return at_once(self).map(|_| ());
            };
            let inside = self.is_inside_shared(start, count * size);
            let apart = |this: &mut Self| {
                this.store_registers_apart(value, lanes, start, mask);
                Ok(Vec::new())
            };
            return self.either(inside, at_once, apart).map(|_| ());
        }
        for at in (0..count).step_by(lanes as usize) {
            let (part, active) = (b.subvector(value, at, lanes), b.subvector(mask, at, lanes));
            let ptr = b.inttoptr(self.offset(start, i64::from(at * size)));
            let [whole, partly, some, after] =
                ["whole", "partly", "some", "stored"].map(|name| b.append_block(name));
            b.cond_br(b.all(active), whole, partly);
            b.position_at_end(whole);
            self.marked(b.store(part, ptr, size), mark);
            b.br(after);
            b.position_at_end(partly);
            b.cond_br(b.any(active), some, after);
            b.position_at_end(some);
            b.masked_store(part, ptr, size, active);
            b.br(after);
            b.position_at_end(after);
        }
        Ok(())
    }

    /// Makes an access, which may consist of several pieces. Where those by the lanes of a mask are slow it is there twice, for all lanes and for
    /// some.
    fn by_mask(
        &mut self,
        access: impl Fn(&mut Self) -> Result<Vec<Value<'c>>, CompileError>,
    ) -> Result<Vec<Value<'c>>, CompileError> {
        if self.is_full() || self.active_lanes == ActiveLanes::NotAll || !self.has_slow_masks() {
            return access(self);
        }
        let mask = self.active();
        self.either(
            self.unit.b.all(mask),
            |this| this.knowing(ActiveLanes::All, &access),
            |this| access(this),
        )
    }

    /// Loads an element for each active lane.
    pub(super) fn gather(&mut self, lane: Type<'c>, addresses: Value<'c>) -> Value<'c> {
        let mask = self.active();
        if self.has_gather(4) {
            return self.gather_here(lane, addresses, mask);
        }
        self.load_each(lane, addresses, mask)
    }

    /// Likewise by the processor's instructions, for lanes of a mask.
    pub(super) fn gather_here(&self, lane: Type<'c>, addresses: Value<'c>, mask: Value<'c>) -> Value<'c> {
        let b = self.unit.b;
        let size = lane.scalar_bits() / 8;
        if !self.has_gather(size) {
            return self.gather_from_words(lane, addresses, mask);
        }
        let ty = lane.vector(self.unit.lanes);
        b.gather(ty, b.inttoptr(addresses), ANYWHERE, mask, ty.zero())
    }

    /// Loads elements that are less than a word, out of the words that hold them. An element lies in one word, for it is aligned, and
    /// a word in one page: what it has besides the element can be read as well.
    fn gather_from_words(&self, lane: Type<'c>, addresses: Value<'c>, mask: Value<'c>) -> Value<'c> {
        let b = self.unit.b;
        let i32 = self.unit.types.i32;
        let ty = i32.vector(self.unit.lanes);
        let words = b.and(addresses, addresses.ty().int_const(!3));
        let words = b.gather(ty, b.inttoptr(words), 4, mask, ty.zero());
        let bits = b.shl(b.and(b.trunc(addresses, i32), ty.int_const(3)), ty.int_const(3));
        let element = b.trunc(b.lshr(words, bits), lane.to_int());
        b.bitcast(element, lane.vector(self.unit.lanes))
    }

    /// Stores an element of each active lane, lowest first.
    pub(super) fn scatter(&mut self, value: Value<'c>, addresses: Value<'c>) {
        let b = self.unit.b;
        let mask = self.active();
        let size = value.ty().scalar_bits() / 8;
        if self.has_scatter(size) {
            b.scatter(value, b.inttoptr(addresses), size, mask);
        } else {
            self.store_each(value, addresses, mask);
        }
    }

    /// Stores where so many lanes each have a place in common, as when every warp leaves its sum: what the last active one has stays.
    pub(super) fn store_common(
        &mut self,
        values: &[Value<'c>],
        lanes: u32,
        start: Value<'c>,
        step: i64,
        mark: Mark,
    ) {
        let b = self.unit.b;
        let lane = values[0].ty().scalar();
        let size = lane.scalar_bits() / 8;
        let place = |index: usize| index as i64 * i64::from(size);
        if let Some(known) = self.known_lanes() {
            for (number, active) in known.chunks(lanes as usize).enumerate() {
                let Some(last) = active.iter().rposition(|active| *active) else { continue };
                for (index, value) in values.iter().enumerate() {
                    let offset = (number as i64).wrapping_mul(step).wrapping_add(place(index));
                    let last = b.extract(*value, number as u32 * lanes + last as u32);
                    self.marked(b.store(last, b.inttoptr(self.offset(start, offset)), size), mark);
                }
            }
            return;
        }
        // Hardly more than one of them is active: lowest first.
        let arrays: Vec<Value<'c>> = values.iter().map(|value| self.spill(*value)).collect();
        let mask = self.active();
        self.for_each_lane(b.mask_to_int(mask), |this, at| {
            let number = b.lshr(at, at.ty().int_const(lanes.trailing_zeros().into()));
            let number = b.zext(number, start.ty());
            let start = b.add(start, b.mul(number, start.ty().int_const(step as u64)));
            for (index, array) in arrays.iter().enumerate() {
                let value = this.element(*array, at, lane);
                this.marked(b.store(value, b.inttoptr(this.offset(start, place(index))), size), mark);
            }
        });
    }

    /// Whether so many bytes from here on, or from each of these addresses, lie in one page: there, where one can be read, all can.
    pub(super) fn in_one_page(&self, start: Value<'c>, bytes: u32) -> Value<'c> {
        let b = self.unit.b;
        let constant = |number: u64| start.ty().int_const(number);
        let last = constant(PAGE - u64::from(bytes));
        b.icmp(IntPredicate::Ule, b.and(start, constant(PAGE - 1)), last)
    }

    /// The addresses of consecutive elements.
    fn run(&self, start: Value<'c>, count: u32, size: u32) -> Value<'c> {
        let offsets: Vec<u64> = (0..count).map(|index| u64::from(index * size)).collect();
        self.unit.b.add(self.unit.b.splat(start, count), start.ty().int_vector(&offsets))
    }

    fn load_each(&mut self, lane: Type<'c>, addresses: Value<'c>, mask: Value<'c>) -> Value<'c> {
        let b = self.unit.b;
        let (ty, size) = (lane.vector(addresses.ty().lanes()), lane.scalar_bits() / 8);
        let (places, array) = (self.spill(addresses), self.scratch(ty));
        self.for_each_lane(b.mask_to_int(mask), |this, at| {
            let place = this.element(places, at, this.unit.types.i64);
            let value = b.load(lane, b.inttoptr(place), ANYWHERE);
            b.store(value, this.element_ptr(array, at, lane), size);
        });
        b.load(ty, array, stack_align(ty))
    }

    fn store_each(&mut self, value: Value<'c>, addresses: Value<'c>, mask: Value<'c>) {
        let b = self.unit.b;
        let (lane, size) = (value.ty().scalar(), value.ty().scalar_bits() / 8);
        let (places, array) = (self.spill(addresses), self.spill(value));
        self.for_each_lane(b.mask_to_int(mask), |this, at| {
            let place = this.element(places, at, this.unit.types.i64);
            b.store(this.element(array, at, lane), b.inttoptr(place), size);
        });
    }
}
