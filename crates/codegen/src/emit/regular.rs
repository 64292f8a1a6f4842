//! Accesses whose lanes turn out to lie side by side when they run.
//!
//! An index that is computed from the places of threads by masks, quotients and remainders that are not known now, as in sorting networks,
//! Fourier transforms and tensors of any shape, mostly runs along the lanes all the same. Where it does, a vector access takes the place
//! of a gather or a scatter, and the test costs little beside these. Where it runs along rows that end within a warp, as those of a tile with its
//! borders do, the lanes are in a few runs. An index that comes from memory or from numbers with fractions is as
//! irregular as what it comes from, and is not tested.
//!
//! Where a loop moves all lanes on by the same from wherever they came to it (`transform::drift`), they lie to each other as they did then, which
//! needs one test for all iterations.

use kernel_abi::CompileError;
use simt_ir::{Access, Convert, Op, Order, Space, Type as IrType, Value as IrValue};
use transform::LaneShape;

use super::address::Address;
use super::each::ANYWHERE;
use super::function::Emitter;
use super::mark::Mark;
use crate::llvm::{IntPredicate, Type, Value};

/// How far definitions are followed.
const DEPTH: u32 = 16;

/// Where an access goes if its lanes lie side by side.
pub(super) struct SideBySide<'c> {
    /// Whether they do.
    pub(super) holds: Value<'c>,
    /// Where, if so.
    pub(super) address: Address<'c>,
    places: Places<'c>,
}

/// Where the lanes of an access are, as numbers that go up by `step` from one to the next where they lie side by side.
#[derive(Clone, Copy)]
struct Places<'c> {
    numbers: Value<'c>,
    step: u32,
    /// What is added to numbers of 32 bits before they are extended.
    offset: i64,
    base: Base<'c>,
}

/// Lanes in two runs.
pub(super) struct TwoRuns<'c> {
    /// Whether they are.
    pub(super) hold: Value<'c>,
    /// The number that each run's first lane has, or would have, and its lanes.
    pub(super) runs: [(Value<'c>, Value<'c>); 2],
}

/// What a number is to an address.
#[derive(Clone, Copy)]
enum Base<'c> {
    /// The address.
    None,
    /// One in this window.
    Window(Value<'c>),
    /// An index of elements of so many bytes.
    Elements(Value<'c>, u32),
}

impl<'c> Emitter<'_, 'c> {
    /// A test whether lanes that access so many bytes each lie side by side, where that is not known but may well be.
    pub(super) fn side_by_side(
        &mut self,
        value: IrValue,
        access: Access,
        address: &Address<'c>,
        bytes: u32,
    ) -> Option<SideBySide<'c>> {
        if self.wants_less_code()
            || access.order != Order::Weak
            || access.space == Space::Local
            || !self.p.shapes.of(value).is_varying()
        {
            return None;
        }
        if let Some(places) = self.places_before_loop(value, access, bytes) {
            return Some(self.tested(places, bytes));
        }
        if !self.is_of_places(value, DEPTH) {
            return None;
        }
        let b = self.unit.b;
        let is_narrow = self.p.func.ty(value) == IrType::I32;
        let (numbers, step, offset, base) = match address {
            Address::Varying(_) | Address::Indexed(..) if is_narrow => {
                let window = self.window_scalar(access.space);
                (self.vector(value), bytes, access.offset, Base::Window(window))
            }
            Address::Indexed(base, indices, scale) if *scale == bytes => {
                (*indices, 1, 0, Base::Elements(*base, *scale))
            }
            Address::Varying(addresses) => (*addresses, bytes, 0, Base::None),
            _ => return None,
        };
        // A lane that is not active may have anything, but what it has must be one number here and where the access goes.
        Some(self.tested(Places { numbers: b.freeze(numbers), step, offset, base }, bytes))
    }

    /// Where the lanes were before the loop that moves them on by the same: what is found out about that is the same in each iteration.
    fn places_before_loop(&mut self, value: IrValue, access: Access, bytes: u32) -> Option<Places<'c>> {
        let p = self.p;
        let id = p.loops.innermost(self.current)?;
        if p.func.ty(value) != IrType::I64 || access.space == Space::Shared {
            return None;
        }
        let (start, moves) = self.before_moves(value);
        let is_before = p.def_block[start.index()].is_some_and(|block| !p.loops.contains(id, block));
        if moves.is_empty() || !is_before || !p.shapes.of(start).is_varying() {
            return None;
        }
        let b = self.unit.b;
        let window = self.offset(self.window_scalar(access.space), access.offset);
        let moved = moves.into_iter().map(|by| self.natural(by)).fold(window, |sum, by| b.add(sum, by));
        let numbers = b.freeze(self.vector(start));
        Some(Places { numbers, step: bytes, offset: 0, base: Base::Window(moved) })
    }

    /// With the test whether they lie side by side.
    fn tested(&mut self, places: Places<'c>, bytes: u32) -> SideBySide<'c> {
        let b = self.unit.b;
        let first = b.extract(places.numbers, 0);
        let along = self.along(&places, first, self.unit.lanes);
        let mut holds = b.all(b.icmp(IntPredicate::Eq, places.numbers, along));
        if let Some(in_range) = self.run_stays_in_range(&places, first, self.unit.lanes) {
            holds = b.and(holds, in_range);
        }
        let start = self.start(&places, first);
        let offsets = (0..i64::from(self.unit.lanes)).map(|lane| lane * i64::from(bytes)).collect();
        SideBySide { holds, address: Address::Affine(start, offsets), places }
    }

    /// Loads an element for each of these numbers of bytes, that much further on, where the lanes lie side by side.
    pub(super) fn load_side_by_side(
        &mut self,
        regular: &SideBySide<'c>,
        lane: Type<'c>,
        moved: &[i64],
        mark: Mark,
    ) -> Result<Vec<Value<'c>>, CompileError> {
        let mut elements = Vec::new();
        for by in moved {
            let Address::Affine(start, offsets) = &regular.address else { unreachable!("they are") };
            let address = Address::Affine(self.offset(*start, *by), offsets.clone());
            elements.extend(self.load_lanes(&address, lane, 1, mark)?);
        }
        Ok(elements)
    }

    /// Loads elements whose lanes do not all lie side by side: as those of rows of a tile, which go on elsewhere where a row ends. Where the lanes of each
    /// register are in two runs at most, these take a masked access each; anywhere else `otherwise` does. There is an element for each of
    /// these numbers of bytes, that much further on.
    pub(super) fn load_in_runs(
        &mut self,
        regular: &SideBySide<'c>,
        lane: Type<'c>,
        moved: &[i64],
        otherwise: impl FnOnce(&mut Self) -> Result<Vec<Value<'c>>, CompileError>,
    ) -> Result<Vec<Value<'c>>, CompileError> {
        let b = self.unit.b;
        let size = lane.scalar_bits() / 8;
        let piece = self.unit.machine.cpu().vector_bits() / lane.scalar_bits();
        if !self.has_masked(size) || size < 4 || !self.unit.lanes.is_multiple_of(piece) {
            return otherwise(self);
        }
        let places = regular.places;
        let mask = self.active();
        let mut hold = self.unit.types.bit.all_ones();
        let mut runs = Vec::new();
        for at in (0..self.unit.lanes).step_by(piece as usize) {
            let numbers = b.subvector(places.numbers, at, piece);
            let two = self.two_runs_of(&Places { numbers, ..places });
            hold = b.and(hold, two.hold);
            let active = b.subvector(mask, at, piece);
            runs.push(two.runs.map(|(start, lanes)| (start, b.and(active, lanes))));
        }
        let in_runs = |this: &mut Self| {
            let ty = lane.vector(piece);
            let runs: Vec<_> =
                runs.iter().map(|two| two.map(|(start, mask)| (this.start(&places, start), mask))).collect();
            let run = |value, (start, mask): (Value<'c>, Value<'c>), by: i64| {
                b.masked_load(ty, b.inttoptr(this.offset(start, by)), ANYWHERE, mask, value)
            };
            let register =
                |two: &[(Value<'c>, Value<'c>); 2], by| run(run(ty.zero(), two[0], by), two[1], by);
            let element = |by: &i64| this.concatenated(runs.iter().map(|two| register(two, *by)).collect());
            Ok(moved.iter().map(element).collect())
        };
        self.either(hold, in_runs, otherwise)
    }

    /// The runs of a vector of addresses of elements of so many bytes, if it is not more than two: where indices are bounded by an edge, all lanes but some
    /// at one end are in one.
    pub(super) fn two_runs(&self, addresses: Value<'c>, bytes: u32) -> TwoRuns<'c> {
        let places = Places { numbers: addresses, step: bytes, offset: 0, base: Base::None };
        self.two_runs_of(&places)
    }

    fn two_runs_of(&self, places: &Places<'c>) -> TwoRuns<'c> {
        let b = self.unit.b;
        let numbers = places.numbers;
        let lanes = numbers.ty().lanes();
        let (first, last) = (b.extract(numbers, 0), b.extract(numbers, lanes - 1));
        let before = b.sub(last, last.ty().int_const(u64::from((lanes - 1) * places.step)));
        let [with_first, with_last] =
            [first, before].map(|start| b.icmp(IntPredicate::Eq, numbers, self.along(places, start, lanes)));
        let mut hold = b.all(b.or(with_first, with_last));
        for start in [first, before] {
            if let Some(in_range) = self.run_stays_in_range(places, start, lanes) {
                hold = b.and(hold, in_range);
            }
        }
        TwoRuns { hold, runs: [(first, with_first), (before, b.not(with_first))] }
    }

    /// The numbers of a run of so many lanes that begins with this one.
    fn along(&self, places: &Places<'c>, first: Value<'c>, lanes: u32) -> Value<'c> {
        let b = self.unit.b;
        let distances: Vec<u64> = (0..u64::from(lanes)).map(|lane| lane * u64::from(places.step)).collect();
        let ty = first.ty().vector(lanes);
        b.add(b.splat(first, lanes), ty.int_vector(&distances))
    }

    /// Whether numbers of 32 bits are side by side once they are extended, too, as they are if they do not wrap before.
    fn run_stays_in_range(&self, places: &Places<'c>, first: Value<'c>, lanes: u32) -> Option<Value<'c>> {
        if first.ty() == self.unit.types.i64 {
            return None;
        }
        let first = self.offset(first, places.offset);
        let most = i32::MAX as u64 - u64::from((lanes - 1) * places.step);
        Some(self.unit.b.icmp(IntPredicate::Sle, first, first.ty().int_const(most)))
    }

    /// The address of what has this number.
    fn start(&self, places: &Places<'c>, number: Value<'c>) -> Value<'c> {
        let b = self.unit.b;
        let i64 = self.unit.types.i64;
        let wide = match number.ty() == i64 {
            true => number,
            false => b.sext(self.offset(number, places.offset), i64),
        };
        match places.base {
            Base::None => wide,
            Base::Window(window) => b.add(wide, window),
            Base::Elements(base, scale) => b.add(base, b.mul(wide, i64.int_const(scale.into()))),
        }
    }

    /// Whether an integer is computed from places of lanes, and what is the same for all, alone.
    fn is_of_places(&self, value: IrValue, depth: u32) -> bool {
        let p = self.p;
        if *p.shapes.of(value) != LaneShape::Varying {
            return true;
        }
        let Some(data) = p.func.def_inst(value).filter(|_| depth > 0) else { return false };
        let is_integer = |value: IrValue| p.func.ty(value).is_int();
        let is_plain = match data.op {
            Op::Int(_) | Op::IntUnary(_) | Op::Shift(_) => is_integer(value),
            Op::Convert(Convert::SExt | Convert::ZExt | Convert::Trunc) => is_integer(data.args[0]),
            Op::ToGeneric(space) | Op::FromGeneric(space) => space != Space::Local,
            _ => false,
        };
        is_plain && data.args.iter().all(|arg| self.is_of_places(*arg, depth - 1))
    }
}
