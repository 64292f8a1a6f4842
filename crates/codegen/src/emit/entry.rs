//! The entries of a kernel: the loops over blocks and warps.

use std::mem::offset_of;

use kernel_abi::{BlockFrame, CompileError, LaunchFrame, Status, Tier, XLayout};
use simt_ir::{InstData, Op, Space};
use transform::packs::Packs;
use transform::{LaneShape, Prepared, places, retrace, stride};

use super::Unit;
use super::function::{Emitter, Place};
use super::passing;
use super::together::WarpTurns;
use super::turns::{self, Round, Turns};
use super::wraps::{Tests, wraps_function};
use crate::compile::ENTRY_SYMBOL;
use crate::llvm::{self, Block, IntPredicate, Linkage, LoopHint, Type, Value};

/// Operations on vectors and memory up to which a kernel's body is inlined into the loop over warps.
const SMALL: usize = 60;

/// What is to be known of the entry of a kernel without suspension points.
#[derive(Clone, Copy, Default)]
pub struct BlocksEntry {
    /// See [`KernelInfo::retraced`](kernel_abi::KernelInfo::retraced). What this spares are stores for each warp: a processor sees as many less of
    /// those that wait for memory. Where a warp does little, they take a quarter of the time.
    pub retraced: bool,
    /// See [`KernelInfo::walks`](kernel_abi::KernelInfo::walks).
    pub walks: bool,
}

/// Emits a kernel without suspension points.
///
/// Blocks are run in segments that lie in one row of the grid. Where a block has several rows of threads, all blocks of a segment
/// may run their first row of warps, then the second, so that accesses run along x: see [`runs_along_rows`]. In loops over the grid all
/// warps of a segment, which has no more than there is room for then, take turns.
pub fn blocks_entry(unit: Unit<'_, '_>, kernel: &Prepared) -> Result<BlocksEntry, CompileError> {
    let retraced =
        unit.machine.tier() == Tier::Full && unit.shape.assume_no_wrap && retrace::is_possible(kernel);
    let warp = warp_function(unit, kernel)?;
    let tests = Tests::new(unit, kernel)?;
    let b = unit.b;
    let (i32, i64, ptr) = (unit.types.i32, unit.types.i64, unit.types.ptr);
    let entry = b.module().add_function(ENTRY_SYMBOL, i32, &[ptr, i64, i64], Linkage::External);
    unit.machine.set_attributes(entry);
    let (frame, first, count) = (entry.param(0), entry.param(1), entry.param(2));
    b.position_at_end(entry.append_block("entry"));
    let launch = launch_of(unit, frame);
    let field = |offset: usize| b.mark_invariant(b.load(i32, b.ptr_offset(launch, offset as i64), 4));
    let grid = [field(offset_of!(LaunchFrame, grid)), field(offset_of!(LaunchFrame, grid) + 4)];
    // What may fail an assertion runs warp by warp.
    let place_of_from = || b.ptr_offset(frame, offset_of!(BlockFrame, from_warp) as i64);
    let from_warp = unit.may_assert().then(|| b.load(i32, place_of_from(), 4));
    let along_rows = runs_along_rows(unit, kernel);
    let warps = BlockWarps::new(unit, kernel, launch, along_rows);
    let turns = warp.kept.map(|bytes| Turns::new(unit, bytes, warps.count));
    let (width, height) = (b.zext(grid[0], i64), b.zext(grid[1], i64));

    let end = b.add(first, count);
    let (before, segment, done) = (b.block(), b.append_block("segment"), b.append_block("done"));
    let any = b.icmp(IntPredicate::Ne, count, i64.zero());
    b.cond_br(any, segment, done);
    b.position_at_end(segment);
    let at = b.phi(i64);
    at.add_incoming(first, before);
    let row = b.udiv(at.value(), width);
    let x = b.sub(at.value(), b.mul(row, width));
    let left_in_row = b.sub(width, x);
    let left = b.sub(end, at.value());
    let mut length = b.intrinsic("llvm.umin", &[i64], &[left_in_row, left]);
    if let Some(turns) = &turns {
        length = b.intrinsic("llvm.umin", &[i64], &[length, turns.blocks]);
    }
    let next = b.add(at.value(), length);
    let (x, length) = (b.trunc(x, i32), b.trunc(length, i32));
    let (y, z) = (b.trunc(b.urem(row, height), i32), b.trunc(b.udiv(row, height), i32));
    let store_field = |offset: usize, value: Value<'_>| {
        b.store(value, b.ptr_offset(frame, offset as i64), 4);
    };
    let ctaid = offset_of!(BlockFrame, ctaid);
    store_field(ctaid + 4, y);
    store_field(ctaid + 8, z);

    if let Some(tests) = tests {
        tests.run(unit, frame, [x, y, z], length, &warps);
    }

    let round = turns.as_ref().map(|turns| Round::begin(unit, turns, b.mul(length, warps.count)));
    let begin_rows = || warps.along.map(|along| Counter::begin(unit, along, "row"));
    let rows = if along_rows { begin_rows() } else { None };
    let columns = Counter::begin(unit, length, "block");
    let column = b.add(x, columns.value());
    if !retraced {
        store_field(ctaid, column);
    }
    let rows_of_block = if along_rows { None } else { begin_rows() };
    let row = rows.as_ref().or(rows_of_block.as_ref()).map_or(i32.zero(), Counter::value);
    let numbers = Counter::begin(unit, warps.across, "warp");
    let place = warps.place(unit, row, numbers.value());
    if !retraced {
        store_field(offset_of!(BlockFrame, warp), unit.first_warp(place[0]));
    }
    let args = [&[frame, column, y, z], &place[..]].concat();
    let passed_over = from_warp.map(|from| {
        let [run, over] = ["run", "run.over"].map(|name| b.append_block(name));
        b.mark_odds(b.cond_br(b.icmp(IntPredicate::Ult, place[0], from), over, run), 1, 2000);
        b.position_at_end(run);
        over
    });
    match &round {
        None => {
            b.call(warp.function, &args);
        }
        Some(round) => {
            let number = b.add(b.mul(columns.value(), warps.count), place[0]);
            round.turn(unit, number, |state, resume| {
                b.call(warp.function, &[&args[..], &[state, resume]].concat())
            });
        }
    }
    if let Some(over) = passed_over {
        b.br(over);
        b.position_at_end(over);
    }
    numbers.end(unit);
    rows_of_block.into_iter().for_each(|rows| rows.end(unit));
    columns.end(unit);
    rows.into_iter().for_each(|rows| rows.end(unit));
    round.into_iter().for_each(|round| round.end(unit));

    at.add_incoming(next, b.block());
    let more = b.icmp(IntPredicate::Ne, next, end);
    b.cond_br(more, segment, done);
    b.position_at_end(done);
    if warp.passes_by {
        passing::arrive(unit);
    }
    b.ret(i32.int_const(Status::Done as u64));
    Ok(BlocksEntry { retraced, walks: turns.is_some() })
}

/// The warps of a block, counted in rows.
pub(super) struct BlockWarps<'c> {
    /// Warps, gangs or strips.
    count: Value<'c>,
    /// Warps, gangs or strips side by side in x.
    pub(super) across: Value<'c>,
    /// Rows of warps, in y and z, if they are counted.
    pub(super) along: Option<Value<'c>>,
    /// `blockDim.y`, where `tid` follows from the counters.
    height: Option<Value<'c>>,
}

impl<'c> BlockWarps<'c> {
    fn new(unit: Unit<'_, 'c>, kernel: &Prepared, launch: Value<'c>, along_rows: bool) -> BlockWarps<'c> {
        let b = unit.b;
        let i32 = unit.types.i32;
        if unit.shape.block_is_gang() {
            let one = i32.int_const(1);
            return BlockWarps { count: one, across: one, along: None, height: None };
        }
        let field = |offset: usize| b.mark_invariant(b.load(i32, b.ptr_offset(launch, offset as i64), 4));
        let warps = warps_of_block(unit, launch);
        let counts = counts_threads(unit, kernel);
        if !counts && !along_rows {
            return BlockWarps { count: warps, across: warps, along: None, height: None };
        }
        let size = |axis: u8| field(offset_of!(LaunchFrame, block) + 4 * usize::from(unit.axis(axis)));
        let height = counts.then(|| size(1));
        let one = i32.int_const(1);
        // Most often that is known, and what is the same for all warps of a row is all that is left of a loop over them.
        if unit.shape.width().is_some_and(|width| width <= unit.lanes) {
            return BlockWarps { count: warps, across: one, along: Some(warps), height };
        }
        let width = b.lshr(size(0), lane_bits(unit));
        let across = b.intrinsic("llvm.umax", &[i32], &[width, one]);
        BlockWarps { count: warps, across, along: Some(b.udiv(warps, across)), height }
    }

    /// Index of a warp and, where it is counted, `tid` of its first thread: what the functions of a warp take.
    pub(super) fn place(&self, unit: Unit<'_, 'c>, row: Value<'c>, column: Value<'c>) -> Vec<Value<'c>> {
        let b = unit.b;
        let before = self.along.map(|_| b.mul(row, self.across));
        let mut place = vec![before.map_or(column, |before| b.add(before, column))];
        if let Some(height) = self.height {
            let x = b.shl(column, lane_bits(unit));
            let (y, z) = match unit.shape.dims {
                3 => (b.urem(row, height), b.udiv(row, height)),
                _ => (row, unit.types.i32.zero()),
            };
            place.extend([x, y, z]);
        }
        place
    }
}

/// By how many bits the number of what runs at once is shifted to be that of its first thread.
fn lane_bits<'c>(unit: Unit<'_, 'c>) -> Value<'c> {
    unit.types.i32.int_const(unit.lanes.trailing_zeros().into())
}

/// Whether the loops over the warps of a block know `tid`: each row is of whole warps, and no scheduler runs them.
fn counts_threads(unit: Unit<'_, '_>, kernel: &Prepared) -> bool {
    unit.lanes <= super::LANES
        && !super::suspends(kernel)
        && unit.shape.dims > 1
        && unit.shape.x == XLayout::Rows
}

/// Whether blocks run row by row of their threads, interleaved: several rows, each of whole warps or less, no memory of the block's own, and
/// every access is along x. One that jumps from lane to lane, as in a transposition, touches lines that the next row of the same block needs.
fn runs_along_rows(unit: Unit<'_, '_>, kernel: &Prepared) -> bool {
    let regular = unit.lanes <= super::LANES
        && unit.shape.dims > 1
        && unit.shape.turned == 0
        && unit.shape.x != XLayout::Irregular
        && unit.shape.whole_warps;
    // Output would come in an order that surprises.
    let in_order = |block: simt_ir::Block, inst: &InstData| {
        let jumps = || kernel.shapes.of(inst.args[0]) == &LaneShape::Varying && !kernel.is_rare(block);
        match inst.op {
            Op::Syscall(_) | Op::IsSpace(_) => true,
            Op::ToGeneric(space) | Op::FromGeneric(space) => space == Space::Shared,
            op => op.access().is_some_and(|access| match access.space {
                Space::Shared => true,
                Space::Local => false,
                _ => jumps(),
            }),
        }
    };
    let surprises = |block: &simt_ir::Block| {
        kernel.func.block(*block).insts.iter().any(|inst| in_order(*block, kernel.func.inst(*inst)))
    };
    regular && !kernel.cfg.order().iter().any(surprises)
}

/// A loop over `0 .. limit` whose body is being emitted; none where the limit is known to be 1.
pub(super) struct Counter<'c> {
    value: Value<'c>,
    limit: Value<'c>,
    round: Option<CountedLoop<'c>>,
}

struct CountedLoop<'c> {
    phi: llvm::Phi<'c>,
    head: Block<'c>,
    after: Block<'c>,
}

impl<'c> Counter<'c> {
    pub(super) fn begin(unit: Unit<'_, 'c>, limit: Value<'c>, name: &str) -> Counter<'c> {
        let b = unit.b;
        let before = b.block();
        let zero = limit.ty().zero();
        if limit.as_int() == Some(1) {
            return Counter { value: zero, limit, round: None };
        }
        let (head, after) = (b.append_block(name), b.append_block("after"));
        let any = b.icmp(IntPredicate::Ne, limit, zero);
        b.cond_br(any, head, after);
        b.position_at_end(head);
        let phi = b.phi(limit.ty());
        phi.add_incoming(zero, before);
        Counter { value: phi.value(), limit, round: Some(CountedLoop { phi, head, after }) }
    }

    pub(super) fn value(&self) -> Value<'c> {
        self.value
    }

    pub(super) fn end(self, unit: Unit<'_, 'c>) {
        let b = unit.b;
        let Some(CountedLoop { phi, head, after }) = self.round else { return };
        let next = b.add(self.value, self.value.ty().int_const(1));
        phi.add_incoming(next, b.block());
        let more = b.icmp(IntPredicate::Ne, next, self.limit);
        let latch = b.cond_br(more, head, after);
        b.mark_loop(latch, &[LoopHint::DoNotUnroll, LoopHint::DoNotVectorize]);
        b.position_at_end(after);
    }
}

/// The warps, gangs or strips of a block.
pub(super) fn warps_of_block<'c>(unit: Unit<'_, 'c>, launch: Value<'c>) -> Value<'c> {
    let b = unit.b;
    let i32 = unit.types.i32;
    let place = b.ptr_offset(launch, offset_of!(LaunchFrame, warps) as i64);
    let warps = b.lshr(b.mark_invariant(b.load(i32, place, 4)), unit.gang_bits());
    b.shl(warps, i32.int_const(unit.shape.strips.trailing_zeros().into()))
}

pub(super) fn launch_of<'c>(unit: Unit<'_, 'c>, frame: Value<'c>) -> Value<'c> {
    let b = unit.b;
    let place = b.ptr_offset(frame, offset_of!(BlockFrame, launch) as i64);
    b.mark_invariant(b.load(unit.types.ptr, place, 8))
}

/// The index of the block that a frame is of.
pub(super) fn ctaid_of<'c>(unit: Unit<'_, 'c>, frame: Value<'c>) -> [Value<'c>; 3] {
    let b = unit.b;
    [0, 1, 2].map(|axis| {
        let place = b.ptr_offset(frame, (offset_of!(BlockFrame, ctaid) + 4 * axis) as i64);
        b.mark_invariant(b.load(unit.types.i32, place, 4))
    })
}

/// A function `(frame, ctaid x, y, z, warp)`, and `tid x, y, z` of the warp's first thread where [`counts_threads`], and `more`; the builder
/// stands in it.
pub(super) fn placed_function<'c>(
    unit: Unit<'_, 'c>,
    kernel: &Prepared,
    name: &str,
    more: &[Type<'c>],
    result: Type<'c>,
) -> (llvm::Function<'c>, Place<'c>) {
    let b = unit.b;
    let (i32, ptr) = (unit.types.i32, unit.types.ptr);
    let params: &[Type<'c>] = &[ptr, i32, i32, i32, i32, i32, i32, i32];
    let counts = counts_threads(unit, kernel);
    let params = [if counts { params } else { &params[..5] }, more].concat();
    let function = b.module().add_function(name, result, &params, Linkage::Internal);
    unit.machine.set_attributes(function);
    b.position_at_end(function.append_block("prologue"));
    let frame = function.param(0);
    let place = Place {
        frame,
        launch: launch_of(unit, frame),
        ctaid: [1, 2, 3].map(|at| function.param(at)),
        warp: if unit.shape.block_is_gang() { i32.zero() } else { function.param(4) },
        tid: counts.then(|| [5, 6, 7].map(|at| function.param(at))),
    };
    (function, place)
}

/// What runs one warp of a kernel without suspension points.
struct WarpFunction<'c> {
    function: llvm::Function<'c>,
    /// Bytes that the warp keeps from turn to turn, where warps take turns. The function takes where they are and where to go on, and answers
    /// where to go on next time.
    kept: Option<u32>,
    /// Whether it may have stores that pass by the caches.
    passes_by: bool,
}

fn warp_function<'c>(unit: Unit<'_, 'c>, kernel: &Prepared) -> Result<WarpFunction<'c>, CompileError> {
    let b = unit.b;
    let (i32, ptr) = (unit.types.i32, unit.types.ptr);
    let latches = match unit.machine.tier() {
        Tier::Quick | Tier::Patient => Vec::new(),
        Tier::Full => stride::latches(kernel),
    };
    let in_turns = !latches.is_empty();
    let (more, result): (&[_], _) = if in_turns { (&[ptr, i32], i32) } else { (&[], unit.context().void()) };
    let (function, place) = placed_function(unit, kernel, "warp", more, result);
    let usual = kernel.cfg.order().iter().filter(|block| !kernel.is_rare(**block));
    let insts = usual.flat_map(|block| kernel.func.block(*block).insts.iter());
    // Scalars of the launch and the block are computed outside the loop.
    let costs = |data: &InstData| {
        let memory = data.op.access().is_some_and(|access| access.space != Space::Param);
        memory || data.results.iter().any(|value| kernel.shapes.of(*value).is_vector())
    };
    let size = insts.filter(|inst| costs(kernel.func.inst(**inst))).count();
    function.add_attribute(if size <= SMALL { "alwaysinline" } else { "noinline" });
    let mut emitter = kernel_emitter(unit, kernel, place);
    emitter.turns = latches;
    let passes_by = passing::is_possible(unit, kernel);
    emitter.passes_by = passes_by;
    let end = b.append_block("end");
    let start = emitter.body(end)?;
    if !in_turns {
        b.position_at_end(emitter.prologue);
        b.br(start);
        b.position_at_end(end);
        b.ret_void();
        return Ok(WarpFunction { function, kept: None, passes_by });
    }
    let first = function.param_count() - 2;
    let (state, resume) = (function.param(first), function.param(first + 1));
    let layout = emitter.state_layout();
    let cases = emitter.finish_suspensions(&layout, state, |number| {
        b.ret(number);
    });
    b.position_at_end(emitter.prologue);
    b.switch(resume, start, &cases);
    b.position_at_end(end);
    b.ret(turns::ended(unit));
    Ok(WarpFunction { function, kept: Some(layout.bytes), passes_by })
}

/// Emits a kernel with suspension points. Answers the bytes of state of a warp, of which a gang has several.
pub fn warp_entry(unit: Unit<'_, '_>, kernel: &Prepared) -> Result<u32, CompileError> {
    let b = unit.b;
    let i64 = unit.types.i64;
    let before_all = unit.shape.strips > 1 || unit.shape.turned != 0;
    let turns = WarpTurns::begin(unit, kernel);
    let ctaid = ctaid_of(unit, turns.frame);
    let launch = launch_of(unit, turns.frame);
    let states = b.ptr_offset(turns.frame, offset_of!(BlockFrame, state) as i64);
    let states = b.mark_invariant(b.load(unit.types.ptr, states, 8));
    let stack_block = b.block();
    let warp = turns.enter(unit);
    b.store(unit.first_warp(warp), b.ptr_offset(turns.frame, offset_of!(BlockFrame, warp) as i64), 4);
    let place = Place { frame: turns.frame, launch, ctaid, warp, tid: None };
    let mut emitter = kernel_emitter(unit, kernel, place);
    emitter.stack_block = stack_block;
    if !emitter.is_quick() && !kernel.dispatched {
        emitter.places = places::shared(kernel);
        emitter.packs.place(kernel, &mut emitter.places);
    }
    let end = b.append_block("end");
    let start = emitter.body(end)?;

    // What the tests need of the prologue must be there before it ends.
    let tests = b.append_block("tests");
    b.position_at_end(tests);
    // Those of all strips come before any of them runs, and where warps are others than in code without assumptions those of the block.
    let wraps = if before_all { unit.types.bit.zero() } else { emitter.wraps()? };
    b.position_at_end(emitter.prologue);
    let dispatch = b.append_block("dispatch");
    let layout = emitter.state_layout();
    let offset = b.mul(b.zext(warp, i64), i64.int_const(layout.bytes.into()));
    let state = b.ptr_add(states, offset);
    emitter.set_cells(state);
    if turns.is_round() {
        emitter.empty_slots();
    }
    b.br(dispatch);
    let cases = emitter.finish_suspensions(&layout, state, |number| turns.leave(unit, number));
    b.position_at_end(dispatch);
    b.switch(turns.resume, tests, &cases);
    let give_up = b.append_block("deopt");
    b.position_at_end(tests);
    b.cond_br(wraps, give_up, start);
    b.position_at_end(give_up);
    turns.leave(unit, unit.types.i32.all_ones());
    b.position_at_end(end);
    turns.leave(unit, unit.types.i32.zero());
    turns.end(unit, stack_block);
    let wraps = match before_all && !kernel.shapes.assumed().is_empty() {
        true => Some(wraps_function(unit, kernel)?),
        false => None,
    };
    turns.entries(unit, wraps);
    let warp_bytes = layout.bytes * u32::from(unit.shape.strips);
    Ok(warp_bytes.div_ceil(unit.shape.gang.into()).next_multiple_of(64))
}

pub(super) fn kernel_emitter<'a, 'c>(
    unit: Unit<'a, 'c>,
    kernel: &'a Prepared,
    place: Place<'c>,
) -> Emitter<'a, 'c> {
    let b = unit.b;
    let (i32, i64) = (unit.types.i32, unit.types.i64);
    let mask = if unit.shape.whole_warps {
        unit.types.mask.all_ones()
    } else {
        let threads = b.ptr_offset(place.launch, offset_of!(LaunchFrame, threads) as i64);
        let threads = b.mark_invariant(b.load(i32, threads, 4));
        let left = b.sub(threads, unit.first_thread(place.warp));
        b.icmp(IntPredicate::Ult, unit.lane_indices(i32), b.splat(left, unit.lanes))
    };
    let mut emitter = Emitter::new(unit, kernel, place, mask, i64.zero());
    if !emitter.is_quick() && !kernel.dispatched {
        emitter.packs = Packs::find(kernel);
        emitter.hold();
    }
    emitter
}
