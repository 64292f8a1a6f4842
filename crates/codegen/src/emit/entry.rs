//! The entries of a kernel: the loops over blocks and warps.

use std::mem::offset_of;

use kernel_abi::{BlockFrame, CompileError, LaunchFrame, Status};
use transform::Prepared;

use super::function::{Emitter, Place};
use super::{LANES, Unit};
use crate::compile::ENTRY_SYMBOL;
use crate::llvm::{self, Block, IntPredicate, Linkage, LoopHint, Value};

/// Operations up to which a kernel's body is inlined into the loop over warps.
const SMALL: usize = 60;

/// Emits a kernel without suspension points.
pub fn blocks_entry(unit: Unit<'_, '_>, kernel: &Prepared) -> Result<(), CompileError> {
    let warp = warp_function(unit, kernel)?;
    let b = unit.b;
    let (i32, i64, ptr) = (unit.types.i32, unit.types.i64, unit.types.ptr);
    let entry = b.module().add_function(ENTRY_SYMBOL, i32, &[ptr, i64, i64], Linkage::External);
    unit.machine.set_attributes(entry);
    let (frame, first, count) = (entry.param(0), entry.param(1), entry.param(2));
    b.position_at_end(entry.append_block("entry"));
    let launch = launch_of(unit, frame);
    let field = |offset: usize| b.mark_invariant(b.load(i32, b.ptr_offset(launch, offset as i64), 4));
    let grid = [field(offset_of!(LaunchFrame, grid)), field(offset_of!(LaunchFrame, grid) + 4)];
    let warps = field(offset_of!(LaunchFrame, warps));
    let (width, height) = (b.zext(grid[0], i64), b.zext(grid[1], i64));
    let row = b.udiv(first, width);
    let ids = [b.urem(first, width), b.urem(row, height), b.udiv(row, height)];
    let ids = ids.map(|id| b.trunc(id, i32));
    let blocks = Counter::begin(unit, i64.zero(), count, "block", "blocks.done");
    let [x, y, z] = [0, 1, 2].map(|axis| {
        let phi = b.phi(i32);
        phi.add_incoming(ids[axis], blocks.before);
        phi
    });
    for (axis, id) in [x, y, z].into_iter().enumerate() {
        let place = b.ptr_offset(frame, (offset_of!(BlockFrame, ctaid) + 4 * axis) as i64);
        b.store(id.value(), place, 4);
    }
    let loop_warps = Counter::begin(unit, i32.zero(), warps, "warp", "warps.done");
    let number = loop_warps.value();
    b.store(number, b.ptr_offset(frame, offset_of!(BlockFrame, warp) as i64), 4);
    b.call(warp, &[frame, x.value(), y.value(), z.value(), number]);
    loop_warps.end(unit);

    // The next block: x runs fastest.
    let one = i32.int_const(1);
    let next_x = b.add(x.value(), one);
    let end_of_row = b.icmp(IntPredicate::Eq, next_x, grid[0]);
    let next_y = b.select(end_of_row, b.add(y.value(), one), y.value());
    let end_of_plane = b.icmp(IntPredicate::Eq, next_y, grid[1]);
    let next_z = b.select(end_of_plane, b.add(z.value(), one), z.value());
    let next_x = b.select(end_of_row, i32.zero(), next_x);
    let next_y = b.select(end_of_plane, i32.zero(), next_y);
    for (phi, next) in [(x, next_x), (y, next_y), (z, next_z)] {
        phi.add_incoming(next, b.block());
    }
    blocks.end(unit);
    b.ret(i32.int_const(Status::Done as u64));
    Ok(())
}

/// A loop over `0 .. limit` whose body is being emitted.
struct Counter<'c> {
    phi: llvm::Phi<'c>,
    limit: Value<'c>,
    head: Block<'c>,
    before: Block<'c>,
    after: Block<'c>,
}

impl<'c> Counter<'c> {
    fn begin(unit: Unit<'_, 'c>, start: Value<'c>, limit: Value<'c>, name: &str, done: &str) -> Counter<'c> {
        let b = unit.b;
        let before = b.block();
        let (head, after) = (b.append_block(name), b.append_block(done));
        let any = b.icmp(IntPredicate::Ult, start, limit);
        b.cond_br(any, head, after);
        b.position_at_end(head);
        let phi = b.phi(start.ty());
        phi.add_incoming(start, before);
        Counter { phi, limit, head, before, after }
    }

    fn value(&self) -> Value<'c> {
        self.phi.value()
    }

    fn end(self, unit: Unit<'_, 'c>) {
        let b = unit.b;
        let next = b.add(self.value(), self.value().ty().int_const(1));
        self.phi.add_incoming(next, b.block());
        let more = b.icmp(IntPredicate::Ult, next, self.limit);
        let latch = b.cond_br(more, self.head, self.after);
        b.mark_loop(latch, &[LoopHint::DoNotUnroll, LoopHint::DoNotVectorize]);
        b.position_at_end(self.after);
    }
}

fn launch_of<'c>(unit: Unit<'_, 'c>, frame: Value<'c>) -> Value<'c> {
    let b = unit.b;
    let place = b.ptr_offset(frame, offset_of!(BlockFrame, launch) as i64);
    b.mark_invariant(b.load(unit.types.ptr, place, 8))
}

/// The function that runs one warp of a kernel without suspension points: `(frame, ctaid x, y, z, warp)`.
fn warp_function<'c>(unit: Unit<'_, 'c>, kernel: &Prepared) -> Result<llvm::Function<'c>, CompileError> {
    let b = unit.b;
    let (i32, ptr) = (unit.types.i32, unit.types.ptr);
    let void = unit.context().void();
    let function = b.module().add_function("warp", void, &[ptr, i32, i32, i32, i32], Linkage::Internal);
    unit.machine.set_attributes(function);
    let size: usize = kernel.cfg.order().iter().map(|block| kernel.func.block(*block).insts.len()).sum();
    function.add_attribute(if size <= SMALL { "alwaysinline" } else { "noinline" });
    b.position_at_end(function.append_block("prologue"));
    let frame = function.param(0);
    let place = Place {
        frame,
        launch: launch_of(unit, frame),
        ctaid: [function.param(1), function.param(2), function.param(3)],
        warp: function.param(4),
    };
    let mut emitter = kernel_emitter(unit, kernel, place);
    let end = b.append_block("end");
    let start = emitter.body(end)?;
    b.position_at_end(emitter.prologue);
    b.br(start);
    b.position_at_end(end);
    b.ret_void();
    Ok(function)
}

/// Emits a kernel with suspension points. Answers the bytes of state of a warp.
pub fn warp_entry(unit: Unit<'_, '_>, kernel: &Prepared) -> Result<u32, CompileError> {
    let b = unit.b;
    let (i32, i64, ptr) = (unit.types.i32, unit.types.i64, unit.types.ptr);
    let entry = b.module().add_function(ENTRY_SYMBOL, i32, &[ptr, i32, i32], Linkage::External);
    unit.machine.set_attributes(entry);
    let (frame, warp, resume) = (entry.param(0), entry.param(1), entry.param(2));
    b.position_at_end(entry.append_block("prologue"));
    let ctaid = [0, 1, 2].map(|axis| {
        let place = b.ptr_offset(frame, (offset_of!(BlockFrame, ctaid) + 4 * axis) as i64);
        b.mark_invariant(b.load(i32, place, 4))
    });
    b.store(warp, b.ptr_offset(frame, offset_of!(BlockFrame, warp) as i64), 4);
    let place = Place { frame, launch: launch_of(unit, frame), ctaid, warp };
    let mut emitter = kernel_emitter(unit, kernel, place);
    let end = b.append_block("end");
    let start = emitter.body(end)?;

    b.position_at_end(emitter.prologue);
    let states = b.ptr_offset(frame, offset_of!(BlockFrame, state) as i64);
    let states = b.mark_invariant(b.load(ptr, states, 8));
    let dispatch = b.append_block("dispatch");
    let layout = emitter.state_layout();
    let offset = b.mul(b.zext(warp, i64), i64.int_const(layout.bytes.into()));
    let state = b.ptr_add(states, offset);
    b.br(dispatch);
    let cases = emitter.finish_suspensions(&layout, state);
    b.position_at_end(dispatch);
    b.switch(resume, start, &cases);
    b.position_at_end(end);
    b.ret(i32.zero());
    Ok(layout.bytes)
}

fn kernel_emitter<'a, 'c>(unit: Unit<'a, 'c>, kernel: &'a Prepared, place: Place<'c>) -> Emitter<'a, 'c> {
    let b = unit.b;
    let (i32, i64) = (unit.types.i32, unit.types.i64);
    let mask = if unit.shape.whole_warps {
        unit.types.mask.all_ones()
    } else {
        let threads = b.ptr_offset(place.launch, offset_of!(LaunchFrame, threads) as i64);
        let threads = b.mark_invariant(b.load(i32, threads, 4));
        let left = b.sub(threads, b.shl(place.warp, i32.int_const(5)));
        let lane = i32.int_vector(&std::array::from_fn::<u64, 32, _>(|lane| lane as u64));
        b.icmp(IntPredicate::Ult, lane, b.splat(left, LANES))
    };
    Emitter::new(unit, kernel, place, mask, i64.zero())
}
