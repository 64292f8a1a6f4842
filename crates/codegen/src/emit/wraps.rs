//! Tests before any block runs: whether an index wraps that the code assumes not to.

use std::mem::offset_of;

use kernel_abi::{BlockFrame, CompileError, Status};
use transform::{Prepared, slope};

use super::Unit;
use super::bounded::bounded_function;
use super::entry::{BlockWarps, Counter, kernel_emitter, placed_function};
use super::function::Place;
use crate::llvm::{Function, IntPredicate, Value};

/// The tests of a kernel.
pub(super) struct Tests<'c> {
    /// Tells whether some index wraps in a warp.
    wraps: Function<'c>,
    /// Tells whether surely none does in the same warps of so many blocks side by side, if one test may stand for all.
    stays: Option<Function<'c>>,
    /// Tells whether surely none does in any warp of so many blocks side by side, if that can be computed at once.
    bounded: Option<Function<'c>>,
}

impl<'c> Tests<'c> {
    /// Those that there are.
    pub(super) fn new(unit: Unit<'_, 'c>, kernel: &Prepared) -> Result<Option<Tests<'c>>, CompileError> {
        let assumed = kernel.shapes.assumed();
        if assumed.is_empty() {
            return Ok(None);
        }
        let wraps = wraps_function(unit, kernel)?;
        let is_even = assumed.iter().all(|assumption| {
            !kernel.shapes.of(assumption.index).is_vector() && slope::is_even(&kernel.func, assumption.index)
        });
        let stays = if is_even { Some(stays_function(unit, kernel)?) } else { None };
        let bounded = bounded_function(unit, kernel)?;
        Ok(Some(Tests { wraps, stays, bounded }))
    }

    /// Tests so many blocks side by side from the first, before any of them runs: they may run interleaved. Gives up if some index wraps.
    pub(super) fn run(
        &self,
        unit: Unit<'_, 'c>,
        frame: Value<'c>,
        first: [Value<'c>; 3],
        length: Value<'c>,
        warps: &BlockWarps<'c>,
    ) {
        let b = unit.b;
        let [x, y, z] = first;
        let done = b.append_block("tested");
        if let Some(bounded) = self.bounded {
            let nowhere = vec![unit.types.i32.zero(); self.wraps.param_count() as usize - 4];
            let each = b.append_block("unbounded");
            b.cond_br(b.call(bounded, &[&[frame, x, y, z], &nowhere[..], &[length]].concat()), done, each);
            b.position_at_end(each);
        }
        if let Some(stays) = self.stays {
            let rows = Rows::begin(unit, warps, "test.row");
            let args = [&[frame, x, y, z], &rows.place(unit, warps)[..], &[length]].concat();
            let (each, next) = (b.append_block("each"), b.append_block("stays"));
            b.cond_br(b.call(stays, &args), next, each);
            b.position_at_end(next);
            rows.end(unit);
            b.br(done);
            b.position_at_end(each);
        }
        let columns = Counter::begin(unit, length, "test.block");
        let rows = Rows::begin(unit, warps, "test.row");
        let column = b.add(x, columns.value());
        let bad = b.call(self.wraps, &[&[frame, column, y, z], &rows.place(unit, warps)[..]].concat());
        let (give_up, go_on) = (b.append_block("deopt"), b.append_block("holds"));
        b.cond_br(bad, give_up, go_on);
        b.position_at_end(give_up);
        b.store(x, b.ptr_offset(frame, offset_of!(BlockFrame, ctaid) as i64), 4);
        b.ret(unit.types.i32.int_const(Status::Deopt as u64));
        b.position_at_end(go_on);
        rows.end(unit);
        columns.end(unit);
        b.br(done);
        b.position_at_end(done);
    }
}

/// A loop over the warps of a block.
struct Rows<'c> {
    rows: Option<Counter<'c>>,
    numbers: Counter<'c>,
}

impl<'c> Rows<'c> {
    fn begin(unit: Unit<'_, 'c>, warps: &BlockWarps<'c>, name: &str) -> Rows<'c> {
        let rows = warps.along.map(|along| Counter::begin(unit, along, name));
        Rows { rows, numbers: Counter::begin(unit, warps.across, "test.warp") }
    }

    fn place(&self, unit: Unit<'_, 'c>, warps: &BlockWarps<'c>) -> Vec<Value<'c>> {
        let row = self.rows.as_ref().map_or(unit.types.i32.zero(), Counter::value);
        warps.place(unit, row, self.numbers.value())
    }

    fn end(self, unit: Unit<'_, 'c>) {
        self.numbers.end(unit);
        self.rows.into_iter().for_each(|rows| rows.end(unit));
    }
}

/// The function that tells whether a warp must not run this code.
pub(super) fn wraps_function<'c>(
    unit: Unit<'_, 'c>,
    kernel: &Prepared,
) -> Result<Function<'c>, CompileError> {
    let b = unit.b;
    let (function, place) = placed_function(unit, kernel, "wraps", &[], unit.types.bit);
    function.add_attribute("alwaysinline");
    let wraps = kernel_emitter(unit, kernel, place).wraps()?;
    b.ret(wraps);
    Ok(function)
}

/// The function that tells whether a warp and its like in the blocks beside surely may, so many in all, where their indices grow evenly.
fn stays_function<'c>(unit: Unit<'_, 'c>, kernel: &Prepared) -> Result<Function<'c>, CompileError> {
    let b = unit.b;
    let (i32, i64) = (unit.types.i32, unit.types.i64);
    let (function, place) = placed_function(unit, kernel, "stays", &[i32], unit.types.bit);
    function.add_attribute("alwaysinline");
    let x = place.ctaid[0];
    let others = b.sub(function.param(function.param_count() - 1), i32.int_const(1));
    let mut emitters = [x, b.add(x, i32.int_const(1)), b.add(x, others)].map(|x| {
        let [_, y, z] = place.ctaid;
        kernel_emitter(unit, kernel, Place { ctaid: [x, y, z], ..place })
    });
    let mut stays = unit.types.bit.all_ones();
    for assumption in kernel.shapes.assumed() {
        let [first, second, last] = emitters.each_mut().map(|emitter| emitter.entry_value(assumption.index));
        let (first, second, last) = (first?, second?, last?);
        // Less than once around, and not behind the first: the last is where it would be among all integers, and the others lie between.
        let step = b.zext(b.sub(second, first), i64);
        let span = b.mul(step, b.zext(others, i64));
        let holds = [
            b.icmp(IntPredicate::Ult, span, i64.int_const(1 << 32)),
            b.icmp(IntPredicate::Sle, first, last),
            emitters[0].stays_in_range(assumption, first),
            emitters[0].stays_in_range(assumption, last),
        ];
        stays = holds.into_iter().fold(stays, |all, holds| b.and(all, holds));
    }
    b.ret(stays);
    Ok(function)
}
