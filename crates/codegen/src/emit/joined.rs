//! Accesses to neighbours: each lane has some elements in a row, and loads or stores them one by one.
//!
//! By itself each of these accesses is strided. Together they are all elements of a piece of memory: a few accesses of whole vectors, and
//! shuffles. Compilers leave them apart where they do not know that the address is aligned to all elements, as that of a part of a tile.

use kernel_abi::CompileError;
use simt_ir::{Access, Convert, Def, Inst, IntBinary, Op, Order, Shift, Space, Value as IrValue};

use super::address::Address;
use super::function::Emitter;
use super::mark::Mark;
use super::memory::Pattern;
use super::own_rows;
use crate::llvm::Value;

/// How many elements of a lane may be whole pieces with those of others, and where instructions take any elements of two registers. LLVM takes long
/// for the shuffles of more.
const COUNTS: [i64; 2] = [4, 2];
const COUNTS_OF_ANY: [i64; 6] = [8, 6, 5, 4, 3, 2];

/// Bytes up to which one load is around another: some rows of a tile.
const FAR_AWAY: u32 = 1024;

/// The fewest loads that are made together as such.
const AROUND: usize = 3;

/// How far definitions are followed.
const DEPTH: u32 = 12;

/// Instructions among which neighbours are looked for.
const FAR: usize = 512;

impl<'c> Emitter<'_, 'c> {
    /// Whether another access does what this does as well.
    pub(super) fn is_joined(&self, inst: Inst) -> bool {
        self.joined.contains(&inst)
    }

    /// Loads what this load and its neighbours load, if together they are whole pieces of memory and apart they are not. Nothing may have
    /// been written between them, so that the neighbours may go first.
    pub(super) fn load_joined(
        &mut self,
        inst: Inst,
        access: Access,
        mark: Mark,
    ) -> Result<bool, CompileError> {
        let data = self.p.func.inst(inst);
        let (address, lane) = (data.args[0], self.lane_type(data.results[0]));
        let size = lane.scalar_bits() / 8;
        if self.is_quick() || access.lanes != 1 || access.order != Order::Weak || !self.is_sure(address) {
            return Ok(false);
        }
        let own = self.address(address, access);
        if !matches!(self.pattern(&own, size, 1, true), Pattern::Strided(..) | Pattern::Scattered) {
            return Ok(false);
        }
        let neighbours = self.neighbours(inst, access, own_rows::MOST);
        for count in self.counts(size, data.results[0]) {
            let step = i64::from(size);
            let Some(first) = (0..count).map(|before| access.offset - before * step).find(|first| {
                let mut wanted = (0..count).map(|index| first + index * step);
                wanted.all(|offset| neighbours.iter().any(|(at, _)| *at == offset))
            }) else {
                continue;
            };
            let first = Access { offset: first, ..access };
            let start = self.address(address, first);
            let whole = match self.pattern(&start, size, count as u32, true) {
                Pattern::Consecutive(_) => true,
                Pattern::Pieces { same, .. } => !same,
                _ => false,
            };
            if !whole {
                continue;
            }
            let offset = |index: i64| first.offset + index * step;
            let own = |index| neighbours.iter().find(|(at, _)| *at == offset(index)).map(|(_, load)| *load);
            let loads: Vec<Inst> = (0..count).filter_map(own).collect();
            let results: Vec<_> = loads.iter().map(|load| self.p.func.inst(*load).results[0]).collect();
            if self.load_packed(&results, &start, lane, mark)? {
                self.joined.extend(loads);
                return Ok(true);
            }
            let values = self.load_lanes(&start, lane, count as u32, mark)?;
            self.define_joined(&neighbours, first.offset, step, values);
            return Ok(true);
        }
        Ok(false)
    }

    /// Loads what this load and its neighbours load where each lane has a row anywhere. Lanes that turn out to lie side by side, as
    /// [`regular`](super::regular) says, have vectors of each.
    pub(super) fn load_joined_rows(
        &mut self,
        inst: Inst,
        access: Access,
        address: &Address<'c>,
        mark: Mark,
    ) -> Result<bool, CompileError> {
        let data = self.p.func.inst(inst);
        let (value, lane) = (data.args[0], self.lane_type(data.results[0]));
        let size = lane.scalar_bits() / 8;
        if self.wants_less_code()
            || access.lanes != 1
            || access.order != Order::Weak
            || access.space == Space::Local
            || !self.is_sure(value)
            || !matches!(self.pattern(address, size, 1, true), Pattern::Scattered | Pattern::Indexed(..))
        {
            return Ok(false);
        }
        let neighbours = self.neighbours(inst, access, own_rows::MOST);
        let step = i64::from(size);
        let has = |offset: i64| neighbours.iter().any(|(at, _)| *at == offset);
        let before = (1..).take_while(|before| has(access.offset - before * step)).count() as i64;
        let first = access.offset - before * step;
        let length = (0..).take_while(|index| has(first + index * step)).count() as i64;
        // Of a longer row one load at a time: what comes later would take registers until it is used.
        let place = before % (i64::from(own_rows::BYTES) / step);
        let (first, before, length) = (first + (before - place) * step, place, length - (before - place));
        let fits = |count: &i64| *count <= length && *count > before;
        let Some(count) = self.row_counts(size).into_iter().find(fits) else { return Ok(false) };
        let first_access = Access { offset: first, ..access };
        let row = self.address(value, first_access);
        let bytes = size * count as u32;
        let by_rows = |this: &mut Self| {
            this.load_near_or((value, first_access), &row, lane, count as u32, mark, |this| {
                Ok(this.load_scattered(&row, lane, count as u32, mark))
            })
        };
        let side_by_side = match self.lane_distance(value, DEPTH) == Some(bytes.into()) {
            true => self.side_by_side(value, first_access, &row, bytes),
            false => None,
        };
        let values = if let Some(regular) = side_by_side {
            let whole = |this: &mut Self| this.load_lanes(&regular.address, lane, count as u32, mark);
            self.either(regular.holds, whole, by_rows)?
        } else if let Some(regular) = self.side_by_side(value, access, address, size) {
            let moved: Vec<i64> = (0..count).map(|index| (index - before) * step).collect();
            self.either(
                regular.holds,
                |this| this.load_side_by_side(&regular, lane, &moved, mark),
                |this| this.load_in_runs(&regular, lane, &moved, by_rows),
            )?
        } else {
            by_rows(self)?
        };
        self.define_joined(&neighbours, first, step, values);
        Ok(true)
    }

    /// How far lanes are apart that are numbered one after another, if their address is such a number times a constant, also past a loop.
    fn lane_distance(&self, value: IrValue, depth: u32) -> Option<u64> {
        let p = self.p;
        let depth = depth.checked_sub(1)?;
        let Def::Result(inst, _) = p.func.def(value) else {
            let Def::Param(block, at) = p.func.def(value) else { return None };
            let passed = p.cfg.passed(&p.func, block, at as usize);
            return passed.into_iter().find_map(|arg| self.lane_distance(arg, depth));
        };
        let data = p.func.inst(inst);
        match data.op {
            Op::Int(IntBinary::Add) => {
                let varying = data.args.iter().filter(|arg| p.shapes.of(**arg).is_vector());
                varying.filter_map(|arg| self.lane_distance(*arg, depth)).next()
            }
            Op::Int(IntBinary::Mul) => p.func.constant(data.args[1]),
            Op::Shift(Shift::Left) => {
                p.func.constant(data.args[1]).and_then(|by| 1u64.checked_shl(by as u32))
            }
            Op::Convert(Convert::SExt | Convert::ZExt) => self.lane_distance(data.args[0], depth),
            _ => None,
        }
    }

    /// Loads what this load and others at known distances from it load where lanes may turn out to lie side by side: what is found out about the
    /// one is so for all, as for the elements around one of a tile.
    pub(super) fn load_around(
        &mut self,
        inst: Inst,
        access: Access,
        address: &Address<'c>,
        mark: Mark,
    ) -> Result<bool, CompileError> {
        let data = self.p.func.inst(inst);
        let (value, lane) = (data.args[0], self.lane_type(data.results[0]));
        let size = lane.scalar_bits() / 8;
        if self.wants_less_code() || access.lanes != 1 || access.order != Order::Weak || size < own_rows::WORD
        {
            return Ok(false);
        }
        let mut around = self.neighbours(inst, access, FAR_AWAY);
        around.retain(|(at, _)| (at - access.offset) % i64::from(size) == 0);
        // A row of each lane's own is better loaded as such, wherever lanes lie.
        let row = own_rows::BYTES / size;
        let has = |offset: i64| around.iter().any(|(at, _)| *at == offset);
        let begins_row = |first: i64| (0..row).all(|index| has(first + i64::from(index * size)));
        if around.iter().any(|(at, _)| begins_row(*at)) {
            return Ok(false);
        }
        // What is loaded before it is used takes registers until then.
        let registers = self.unit.machine.cpu().registers();
        let each = (self.unit.lanes * size).div_ceil(registers.bytes).max(1);
        around.truncate((registers.count / 2 / each) as usize);
        if around.len() < AROUND {
            return Ok(false);
        }
        let Some(regular) = self.side_by_side(value, access, address, size) else { return Ok(false) };
        let moved: Vec<i64> = around.iter().map(|(at, _)| at - access.offset).collect();
        let apart = |this: &mut Self| {
            let mut values = Vec::new();
            for (offset, _) in &around {
                let access = Access { offset: *offset, ..access };
                let address = this.address(value, access);
                let address = this.indexed(value, access, size).unwrap_or(address);
                values.extend(this.load_near_or((value, access), &address, lane, 1, mark, |this| {
                    this.load_lanes(&address, lane, 1, mark)
                })?);
            }
            Ok(values)
        };
        let values = self.either(
            regular.holds,
            |this| this.load_side_by_side(&regular, lane, &moved, mark),
            |this| this.load_in_runs(&regular, lane, &moved, apart),
        )?;
        for ((_, load), value) in around.iter().zip(values) {
            self.joined.insert(*load);
            self.define(self.p.func.inst(*load).results[0], value);
        }
        Ok(true)
    }

    /// Loads that come with another have their elements, from this offset on.
    fn define_joined(&mut self, loads: &[(i64, Inst)], first: i64, step: i64, values: Vec<Value<'c>>) {
        for (value, index) in values.into_iter().zip(0..) {
            for (_, load) in loads.iter().filter(|(at, _)| *at == first + index * step) {
                self.joined.insert(*load);
                self.define(self.p.func.inst(*load).results[0], value);
            }
        }
    }

    /// How many elements of so many bytes are tried as pieces, most first: as many as stay together with this one.
    fn counts(&self, size: u32, value: IrValue) -> Vec<i64> {
        let picks = self.picks_from_two() && (size > 1 || self.unit.machine.cpu().has("avx512vbmi"));
        let counts: &[i64] = if picks { &COUNTS_OF_ANY } else { &COUNTS };
        let together = self.packs.of(value).map(|(pack, _)| pack.len() as i64);
        together.into_iter().chain(counts.iter().copied()).collect()
    }

    /// This instruction and all that follow it in its block.
    fn rest_of_block(&self, inst: Inst) -> &[Inst] {
        let insts = &self.p.func.block(self.current).insts;
        let from = insts.iter().position(|at| *at == inst).unwrap_or(insts.len());
        &insts[from..]
    }

    /// Whether something else is loaded in the current block at some distance from what a load loads.
    pub(super) fn has_company(&self, inst: Inst) -> bool {
        let func = &self.p.func;
        let own = func.inst(inst);
        let is_company = |other: &Inst| {
            let data = func.inst(*other);
            matches!(data.op, Op::Load(_)) && data.args == own.args && *other != inst
        };
        func.block(self.current).insts.iter().any(is_company)
    }

    /// The loads from this address, each with its offset, less than so many bytes from this one's, that come from here on before memory may change there.
    fn neighbours(&self, inst: Inst, access: Access, within: u32) -> Vec<(i64, Inst)> {
        let func = &self.p.func;
        let own = func.inst(inst);
        let rest = self.rest_of_block(inst);
        let insts = &func.block(self.current).insts;
        // Stores from before that wait for others, and those that come on the way.
        let waits = |at: &&Inst| matches!(func.inst(**at).op, Op::Store(_)) && self.is_joined(**at);
        let mut passed: Vec<Inst> = insts[..insts.len() - rest.len()].iter().filter(waits).copied().collect();
        let mut found = Vec::new();
        for &at in rest.iter().take(FAR) {
            let data = func.inst(at);
            match data.op {
                Op::Load(other) if other.order == Order::Weak => {
                    let near = (other.offset - access.offset).unsigned_abs() < within.into();
                    let alike = Access { offset: access.offset, ..other } == access;
                    if near
                        && alike
                        && !self.is_joined(at)
                        && passed.iter().all(|store| self.may_pass(at, *store))
                        && data.args == own.args
                        && func.ty(data.results[0]) == func.ty(own.results[0])
                    {
                        found.push((other.offset, at));
                    }
                }
                // Which loads it lets pass is asked of each.
                Op::Store(_) => passed.push(at),
                op if op.is_pure() => {}
                _ => break,
            }
        }
        found
    }

    /// Leaves a store to the last of those to its neighbours, which stores for all, if together they are whole pieces of memory and apart
    /// they are not. Nothing may happen between them, so that the first may be later.
    pub(super) fn store_joined(
        &mut self,
        inst: Inst,
        access: Access,
        mark: Mark,
    ) -> Result<bool, CompileError> {
        let data = self.p.func.inst(inst);
        let address = data.args[0];
        if let Some((first, values)) = self.joined_stores.remove(&inst) {
            let start = self.address(address, Access { offset: first, ..access });
            if self.store_packed(&values, &start, mark)? {
                return Ok(true);
            }
            let vectors: Vec<_> = values.iter().map(|value| self.vector(*value)).collect();
            self.store_lanes(&start, &vectors, mark)?;
            return Ok(true);
        }
        let size = self.lane_type(data.args[1]).scalar_bits() / 8;
        let own = self.address(address, access);
        // What other lanes store to the same places comes later there too: rows of a distance unknown might share some.
        let mut sorted = match &own {
            Address::Affine(_, offsets) => offsets.to_vec(),
            Address::Varying(_) if self.ahead.apart.contains(&address) => Vec::new(),
            _ => return Ok(false),
        };
        if self.is_quick() || access.lanes != 1 || access.order != Order::Weak || !self.is_sure(address) {
            return Ok(false);
        }
        let is_scattered = match self.pattern(&own, size, 1, false) {
            Pattern::Scattered => true,
            Pattern::Strided(..) => false,
            _ => return Ok(false),
        };
        sorted.sort_unstable();
        for count in self.counts(size, data.args[1]) {
            let step = i64::from(size);
            if sorted.windows(2).any(|pair| pair[1].wrapping_sub(pair[0]) < count * step) {
                continue;
            }
            let mut stores = self.neighbouring_stores(inst, access, count as usize);
            let Some(&(_, last, _)) = stores.last() else { continue };
            stores.sort_unstable_by_key(|(at, ..)| *at);
            let first = stores[0].0;
            let wanted = (0..count).map(|index| first + index * step);
            if !wanted.eq(stores.iter().map(|(at, ..)| *at)) {
                continue;
            }
            let start = self.address(address, Access { offset: first, ..access });
            let whole = match self.pattern(&start, size, count as u32, false) {
                Pattern::Consecutive(_) => true,
                Pattern::Pieces { .. } => count.count_ones() == 1,
                // A row of each lane's own, as one store.
                Pattern::Scattered => {
                    let bytes = count * step;
                    is_scattered
                        && count.count_ones() == 1
                        && bytes <= own_rows::BYTES.into()
                        && self.stores_one_by_one(&start, bytes as u32)
                }
                _ => false,
            };
            if !whole {
                continue;
            }
            self.joined.extend(stores.iter().map(|(_, store, _)| *store).filter(|store| *store != last));
            self.joined_stores.insert(last, (first, stores.iter().map(|(.., value)| *value).collect()));
            return Ok(true);
        }
        Ok(false)
    }

    /// This store and the next ones to its neighbours, so many in all, each with its offset and its value; nothing if anything comes between that
    /// may not come before them.
    fn neighbouring_stores(&self, inst: Inst, access: Access, count: usize) -> Vec<(i64, Inst, IrValue)> {
        let func = &self.p.func;
        let own = func.inst(inst);
        let mut found = Vec::new();
        for &at in self.rest_of_block(inst).iter().take(FAR) {
            let data = func.inst(at);
            match data.op {
                Op::Store(other)
                    if Access { offset: access.offset, ..other } == access
                        && data.args[0] == own.args[0]
                        && !self.is_joined(at)
                        && (other.offset - access.offset).unsigned_abs() < own_rows::MOST.into()
                        && func.ty(data.args[1]) == func.ty(own.args[1]) =>
                {
                    found.push((other.offset, at, data.args[1]));
                    if found.len() == count {
                        return found;
                    }
                }
                // What has been done with another is no longer there.
                Op::Load(_) if self.is_joined(at) => {}
                Op::Load(_) | Op::Store(_) if found.iter().all(|(_, store, _)| self.may_pass(*store, at)) => {
                }
                op if op.is_pure() => {}
                _ => break,
            }
        }
        Vec::new()
    }
}
