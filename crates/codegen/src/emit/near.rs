//! Loads whose lanes turn out to be near each other when they run.
//!
//! Where an image is resampled, turned or enlarged, each lane's place comes from a number with a fraction or from a quotient, and those of lanes side by
//! side are in a short stretch of memory, in order or in none. Where it is as short as two registers, these are loaded and each lane takes its element,
//! as many times faster than a gather as that has elements. An index that comes from memory may be anywhere and is not tested.
//!
//! The stretch is from the first lane's place to the last one's, both of which are read anyway: no other page lies between them.

use std::collections::HashSet;
use std::mem::offset_of;

use kernel_abi::{BlockFrame, CompileError, MISSES};
use simt_ir::{Access, Convert, Inst, Op, Order, Space, Type as IrType, Value as IrValue};

use super::address::Address;
use super::each::ANYWHERE;
use super::function::Emitter;
use super::mark::Mark;
use crate::llvm::{Builder, IntPredicate, Type, Value};
use crate::target::Level;

/// How many definitions of an index are looked at.
const MOST: usize = 64;

/// After so many times in succession that all lanes could have been near each other and were not, it is not tried any more in a launch.
const TRIES: u64 = 8;

/// How many times more lanes are near each other where that is tried than far, for the order of code.
const NEAR_TO_FAR: u32 = 20;

/// The most elements of each lane: a longer row is as long words, of which fewer are gathered than elements are chosen.
const MOST_IN_ROW: u32 = 2;

/// The fewest lanes for which it is worth while.
const LEAST: u32 = 8;

/// A register's elements, the registers that one instruction chooses from, and the lanes that it chooses for.
#[derive(Clone, Copy)]
struct Chooser {
    elements: u32,
    registers: u32,
    lanes: u32,
}

/// Lanes' places as signed numbers.
struct Numbers<'c> {
    /// Where 0 is, if that is not address 0.
    base: Option<Value<'c>>,
    numbers: Value<'c>,
    /// The bytes from a number to the next, and of an element.
    scale: u32,
    size: u32,
    /// How far they may be from the first of them in memory.
    room: u32,
    chooser: Chooser,
}

impl<'c> Numbers<'c> {
    /// A distance of numbers as one of elements, an i32 for each lane.
    fn to_elements(&self, b: &Builder<'c>, distance: Value<'c>) -> Value<'c> {
        let ty = distance.ty();
        let elements = match self.scale / self.size {
            0 => b.lshr(distance, ty.int_const(u64::from(self.size / self.scale).trailing_zeros().into())),
            elements => b.mul(distance, ty.int_const(elements.into())),
        };
        b.int_resize(elements, b.context().int(32), false)
    }
}

/// Where lanes are, for as many each as one register is for, and whether two registers hold each of these.
struct Stretches<'c> {
    are_short: Value<'c>,
    all: Vec<Stretch<'c>>,
}

/// Where some lanes are.
struct Stretch<'c> {
    /// The address of the first of them in memory.
    start: Value<'c>,
    /// The elements from there to each lane, and to the last in memory, i32s.
    places: Value<'c>,
    last: Value<'c>,
}

impl<'c> Emitter<'_, 'c> {
    /// Loads each lane's elements of an access from where it is.
    pub(super) fn load_anywhere(
        &mut self,
        inst: Inst,
        access: Access,
        address: &Address<'c>,
        mark: Mark,
    ) -> Result<Vec<Value<'c>>, CompileError> {
        let data = self.p.func.inst(inst);
        let (lane, count) = (self.lane_type(data.results[0]), u32::from(access.lanes));
        if matches!(address, Address::Varying(_) | Address::Indexed(..)) && self.shares_addresses(inst, lane)
        {
            return self.load_lanes(address, lane, count, mark);
        }
        self.load_near_or((data.args[0], access), address, lane, count, mark, |this| {
            this.load_lanes(address, lane, count, mark)
        })
    }

    /// Whether lanes go one by one to several elements from the same place on, as to the colours of a pixel: where all of that is in one block of code, the
    /// addresses leave their vector once.
    fn shares_addresses(&self, inst: Inst, lane: Type<'c>) -> bool {
        !self.has_gather(lane.scalar_bits() / 8) && self.has_company(inst)
    }

    /// Loads `count` elements for each lane from where lanes may be near each other; anywhere else `otherwise` does.
    pub(super) fn load_near_or(
        &mut self,
        (value, access): (IrValue, Access),
        address: &Address<'c>,
        lane: Type<'c>,
        count: u32,
        mark: Mark,
        otherwise: impl FnOnce(&mut Self) -> Result<Vec<Value<'c>>, CompileError>,
    ) -> Result<Vec<Value<'c>>, CompileError> {
        let may_be = count <= MOST_IN_ROW
            && access.order == Order::Weak
            && access.space != Space::Local
            && !self.wants_less_code()
            && self.lanes_for_all(mark).is_none()
            && self.comes_from_places(value);
        let size = lane.scalar_bits() / 8;
        let chooser = self.chooser(lane.scalar_bits()).filter(|_| may_be);
        let indexed = match address {
            Address::Varying(_) if chooser.is_some() => self.by_index(value, access),
            _ => None,
        };
        let address = indexed.as_ref().unwrap_or(address);
        let Some(numbers) = chooser.and_then(|chooser| self.numbers(address, size, count, chooser)) else {
            return otherwise(self);
        };
        let b = self.unit.b;
        let i32 = self.unit.types.i32;
        let misses = self.misses();
        let active = self.active();
        let missed = b.load(i32, misses, 4);
        let tries = b.icmp(IntPredicate::Ult, missed, i32.int_const(TRIES));
        let [test, near, miss, far, after] =
            ["near.test", "near", "near.miss", "far", "near.after"].map(|name| b.append_block(name));
        b.cond_br(tries, test, far);
        let mark = self.mark();
        b.position_at_end(test);
        let stretches = self.test(&numbers);
        b.mark_odds(b.cond_br(stretches.are_short, near, miss), NEAR_TO_FAR, 1);
        b.position_at_end(near);
        b.store(i32.zero(), misses, 4);
        let elements = self.load_near(&stretches.all, &numbers, lane, count);
        let near_end = b.block();
        b.br(after);
        self.forget_since(mark);
        b.position_at_end(miss);
        let all = if self.is_full() { self.unit.types.bit.all_ones() } else { b.all(active) };
        b.store(b.add(missed, b.zext(all, i32)), misses, 4);
        b.br(far);
        b.position_at_end(far);
        let others = otherwise(self)?;
        let far_end = b.block();
        b.br(after);
        self.forget_since(mark);
        b.position_at_end(after);
        Ok(self.merged((elements, near_end), (others, far_end)))
    }

    /// Where it is counted how often lanes could have been near each other and were not.
    fn misses(&mut self) -> Value<'c> {
        let at = self.counted as usize % MISSES;
        self.counted += 1;
        self.unit.b.ptr_offset(self.place.frame, (offset_of!(BlockFrame, misses) + 4 * at) as i64)
    }

    /// What the processor chooses elements of so many bits with, for how many lanes each.
    fn chooser(&self, bits: u32) -> Option<Chooser> {
        let cpu = self.unit.machine.cpu();
        let most = match cpu.level() {
            Level::Avx512 if cpu.vector_bits() < 512 || bits == 8 && !cpu.has("avx512vbmi") => return None,
            Level::Avx512 => 2,
            Level::Avx2 if bits == 32 => 1,
            Level::Avx2 | Level::Baseline => return None,
        };
        let elements = cpu.vector_bits() / bits;
        let lanes = elements.min(self.unit.row_lanes()).min(self.unit.lanes);
        let registers = if elements >= 2 * lanes { 1 } else { most };
        (lanes >= LEAST).then_some(Chooser { elements, registers, lanes })
    }

    /// The lanes' places as numbers, if lanes of a register that are as far apart as every other element are near each other.
    fn numbers(&self, address: &Address<'c>, size: u32, count: u32, chooser: Chooser) -> Option<Numbers<'c>> {
        let (base, numbers, scale) = match *address {
            Address::Varying(addresses) => (None, addresses, 1),
            Address::Indexed(base, indices, scale) => (Some(base), indices, scale),
            Address::Uniform(_) | Address::Affine(..) | Address::Rows { .. } => return None,
        };
        let room = (chooser.elements * chooser.registers - count) * size / scale;
        let is_multiple = scale == 1 || scale.is_multiple_of(size);
        let has_room = room >= (chooser.lanes - 1) * (size / scale).max(1);
        (is_multiple && has_room).then(|| {
            let numbers = self.unit.b.freeze(numbers);
            Numbers { base, numbers, scale, size, room, chooser }
        })
    }

    /// Where the lanes of each register are, and whether they are near each other.
    fn test(&mut self, numbers: &Numbers<'c>) -> Stretches<'c> {
        let b = self.unit.b;
        let each = numbers.chooser.lanes;
        let mut are_near = Vec::new();
        let mut all = Vec::new();
        for at in (0..self.unit.lanes).step_by(each as usize) {
            let own = b.subvector(numbers.numbers, at, each);
            let ty = own.ty().scalar();
            let (first, last) = (b.extract(own, 0), b.extract(own, each - 1));
            let is_up = b.icmp(IntPredicate::Slt, first, last);
            let (least, most) = (b.select(is_up, first, last), b.select(is_up, last, first));
            let (span, room) = (b.sub(most, least), ty.int_const(numbers.room.into()));
            // One of the lanes is as far away as the stretch is long, so it is no longer than there is room.
            let longest = b.select(b.icmp(IntPredicate::Ult, span, room), span, room);
            let moved = b.sub(own, b.splat(least, each));
            are_near.push(b.icmp(IntPredicate::Ule, moved, b.splat(longest, each)));
            let start = match numbers.base {
                Some(base) => {
                    let wide = b.sext(least, self.unit.types.i64);
                    b.add(base, b.mul(wide, wide.ty().int_const(numbers.scale.into())))
                }
                None => least,
            };
            let [places, last] = [moved, span].map(|number| numbers.to_elements(b, number));
            all.push(Stretch { start, places, last });
        }
        let are_near = self.concatenated(are_near);
        let mask = self.active();
        let are_near = if self.is_full() { are_near } else { b.and(are_near, mask) };
        Stretches { are_short: b.all(are_near), all }
    }

    /// Loads `count` elements for each lane of stretches.
    fn load_near(
        &self,
        stretches: &[Stretch<'c>],
        numbers: &Numbers<'c>,
        lane: Type<'c>,
        count: u32,
    ) -> Vec<Value<'c>> {
        let b = self.unit.b;
        let size = i64::from(numbers.size);
        let Chooser { elements, registers, .. } = numbers.chooser;
        let ty = lane.to_int().vector(elements);
        let mut parts: Vec<Vec<Value<'c>>> = vec![Vec::new(); count as usize];
        for stretch in stretches {
            let last = b.add(stretch.last, stretch.last.ty().int_const((count - 1).into()));
            let last = b.splat(b.int_resize(last, ty.scalar(), false), elements);
            let loaded: Vec<Value<'c>> = (0..registers)
                .map(|register| {
                    let first = register * elements;
                    let own: Vec<u64> = (first..first + elements).map(u64::from).collect();
                    let is_read = b.icmp(IntPredicate::Ule, ty.int_vector(&own), last);
                    let ptr = b.inttoptr(self.offset(stretch.start, i64::from(first) * size));
                    b.masked_load(ty, ptr, ANYWHERE, is_read, ty.zero())
                })
                .collect();
            for (index, parts) in (0..).zip(&mut parts) {
                let own = b.add(stretch.places, stretch.places.ty().int_const(index));
                parts.push(self.choose(&loaded, own, lane));
            }
        }
        parts.into_iter().map(|parts| self.concatenated(parts)).collect()
    }

    /// The elements that indices, i32s, tell, of one register or two.
    fn choose(&self, loaded: &[Value<'c>], indices: Value<'c>, lane: Type<'c>) -> Value<'c> {
        let b = self.unit.b;
        let own = b.int_resize(indices, loaded[0].ty().scalar(), false);
        b.bitcast(self.chosen_of(loaded, own), lane.vector(own.ty().lanes()))
    }

    /// Whether an address is computed from places of lanes and numbers with fractions, in whichever way, and what is the same for all.
    fn comes_from_places(&self, address: IrValue) -> bool {
        let p = self.p;
        let mut work = vec![address];
        let mut seen = HashSet::new();
        while let Some(value) = work.pop() {
            if !p.shapes.of(value).is_varying() || !seen.insert(value) {
                continue;
            }
            let Some(data) = p.func.def_inst(value).filter(|_| seen.len() <= MOST) else { return false };
            match data.op {
                Op::Convert(Convert::FloatToS { .. } | Convert::FloatToU { .. }) => {}
                Op::Convert(Convert::ZExt | Convert::SExt) if p.func.ty(data.args[0]) == IrType::Pred => {}
                Op::Convert(Convert::SExt | Convert::ZExt | Convert::Trunc) => work.extend(&data.args),
                Op::Int(_) | Op::IntUnary(_) | Op::Shift(_) => work.extend(&data.args),
                Op::ToGeneric(space) | Op::FromGeneric(space) if space != Space::Local => {
                    work.extend(&data.args);
                }
                Op::Select => work.extend(&data.args[1..]),
                _ => return false,
            }
        }
        true
    }
}
