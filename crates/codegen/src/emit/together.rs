//! The turns of warps between barriers.
//!
//! A block whose warps all come to the same barriers needs no scheduler to say who is next. Where nothing but whole-block barriers that are known now
//! suspends a warp, code that runs all warps of a block up to the next one, and so on, is part of the kernel: between two barriers there is
//! often so little to do that what a scheduler looks at for each warp would take a tenth of the time. Where a warp does something else than those before
//! it, the scheduler goes on from there.
//!
//! The warps' loop is around the kernel's body, in one function with it: a call for each warp would take as long as some fifty instructions, of which
//! the processor would see as many less of the next warp's while it waits for memory.

use std::mem::offset_of;

use kernel_abi::artifact::TOGETHER_SYMBOL;
use kernel_abi::{BARRIERS, BlockFrame, Parted, Tier, Wait};
use simt_ir::{BarrierKind, Op};
use transform::Prepared;

use super::Unit;
use super::entry::{Counter, ctaid_of, launch_of, warps_of_block};
use crate::compile::ENTRY_SYMBOL;
use crate::llvm::{Block, Function, IntPredicate, Linkage, LoopHint, Phi, Type, Value};

/// Whether all that suspends a warp are barriers for the whole block with numbers that are known.
fn is_simple(kernel: &Prepared) -> bool {
    let mut insts = kernel.cfg.order().iter().flat_map(|block| &kernel.func.block(*block).insts);
    !kernel.dispatched
        && kernel.polling.yields.is_empty()
        && insts.all(|inst| {
            let data = kernel.func.inst(*inst);
            match data.op {
                Op::Barrier { kind: BarrierKind::Sync, count: false } => {
                    kernel.func.constant(data.args[0]).is_some_and(|number| number < BARRIERS as u64)
                }
                op => !transform::abreast::suspends(&op),
            }
        })
}

/// The function that a kernel's body is in, from whose beginning or a suspension point a warp has its turn, or one warp after another. Of a warp that runs
/// in strips, these are the warps here.
pub(super) struct WarpTurns<'c> {
    function: Function<'c>,
    pub(super) frame: Value<'c>,
    /// Where to go on.
    pub(super) resume: Value<'c>,
    /// The first, or only, warp.
    warp: Value<'c>,
    round: Option<Round<'c>>,
    /// Whether all warps of a block may have their turns here.
    together: bool,
}

/// The loop over warps `warp .. end`, for as long as they answer the same.
struct Round<'c> {
    end: Value<'c>,
    parted: Value<'c>,
    head: Block<'c>,
    at: Phi<'c>,
    /// What the first has answered, and the barrier that it waits at; nothing in its own turn.
    first: Phi<'c>,
    barrier: Phi<'c>,
    /// Where a turn ends, and the answer.
    over: Block<'c>,
    answer: Phi<'c>,
}

impl<'c> WarpTurns<'c> {
    /// Begins the function; the builder stands in its first block, which gets no end before [`end`](Self::end).
    pub(super) fn begin(unit: Unit<'_, 'c>, kernel: &Prepared) -> WarpTurns<'c> {
        let b = unit.b;
        let (i32, ptr) = (unit.types.i32, unit.types.ptr);
        let together = unit.machine.tier() == Tier::Full && is_simple(kernel);
        if !together && unit.shape.strips == 1 && unit.shape.turned == 0 {
            let function = b.module().add_function(ENTRY_SYMBOL, i32, &[ptr, i32, i32], Linkage::External);
            unit.machine.set_attributes(function);
            b.position_at_end(function.append_block("prologue"));
            let [frame, warp, resume] = [0, 1, 2].map(|at| function.param(at));
            return WarpTurns { function, frame, resume, warp, round: None, together };
        }
        let params = [ptr, i32, i32, i32, ptr];
        let name = if unit.shape.strips > 1 { "strips" } else { "warps" };
        let function = b.module().add_function(name, i32, &params, Linkage::Internal);
        unit.machine.set_attributes(function);
        function.add_attribute("noinline");
        let [frame, warp, end, resume, parted] = [0, 1, 2, 3, 4].map(|at| function.param(at));
        let before = function.append_block("before");
        let [head, over] = ["prologue", "over"].map(|name| function.append_block(name));
        b.position_at_end(over);
        let answer = b.phi(i32);
        b.position_at_end(head);
        let [at, first, barrier] = [(); 3].map(|()| b.phi(i32));
        b.position_at_end(before);
        let round = Round { end, parted, head, at, first, barrier, over, answer };
        WarpTurns { function, frame, resume, warp, round: Some(round), together }
    }

    /// Begins a turn, and answers whose it is.
    pub(super) fn enter(&self, unit: Unit<'_, 'c>) -> Value<'c> {
        let Some(round) = &self.round else { return self.warp };
        unit.b.position_at_end(round.head);
        if unit.may_assert() {
            // Of a warp that fails, and does not come back, the scheduler reads it here.
            let [at, first, barrier] = [&round.at, &round.first, &round.barrier].map(|phi| phi.value());
            tell(unit, round.parted, [self.resume, at, first, unit.types.i32.zero(), barrier]);
        }
        round.at.value()
    }

    /// Whether one turn comes after another.
    pub(super) fn is_round(&self) -> bool {
        self.round.is_some()
    }

    /// Ends the turn here.
    pub(super) fn leave(&self, unit: Unit<'_, 'c>, answer: Value<'c>) {
        let b = unit.b;
        let Some(round) = &self.round else {
            b.ret(answer);
            return;
        };
        round.answer.add_incoming(answer, b.block());
        b.br(round.over);
    }

    /// Ends the function, whose first block is given.
    pub(super) fn end(&self, unit: Unit<'_, 'c>, before: Block<'c>) {
        let Some(round) = &self.round else { return };
        let (b, i32) = (unit.b, unit.types.i32);
        let [alike, next, done, apart] = ["alike", "next", "done", "apart"].map(|name| b.append_block(name));
        b.position_at_end(before);
        b.br(round.head);
        let (at, answer) = (round.at.value(), round.answer.value());
        b.position_at_end(round.over);
        let wait = offset_of!(BlockFrame, wait) + offset_of!(Wait, barrier);
        let barrier = b.load(i32, b.ptr_offset(self.frame, wait as i64), 4);
        let is_first = b.icmp(IntPredicate::Eq, at, self.warp);
        let first = b.select(is_first, answer, round.first.value());
        let barrier = b.select(is_first, barrier, round.barrier.value());
        let is_alike = b.icmp(IntPredicate::Eq, answer, first);
        let goes_on = b.icmp(IntPredicate::Ne, answer, i32.all_ones());
        b.mark_odds(b.cond_br(b.and(is_alike, goes_on), alike, apart), 2000, 1);
        b.position_at_end(alike);
        let following = b.add(at, i32.int_const(1));
        let more = b.icmp(IntPredicate::Ne, following, round.end);
        b.cond_br(more, next, done);
        b.position_at_end(next);
        b.mark_loop(b.br(round.head), &[LoopHint::DoNotUnroll, LoopHint::DoNotHoist]);
        for (phi, early, late) in [
            (round.at, self.warp, following),
            (round.first, i32.zero(), first),
            (round.barrier, i32.zero(), barrier),
        ] {
            phi.add_incoming(early, before);
            phi.add_incoming(late, next);
        }
        b.position_at_end(done);
        b.ret(first);
        b.position_at_end(apart);
        tell(unit, round.parted, [self.resume, at, first, answer, barrier]);
        b.ret(i32.all_ones());
    }

    /// Emits the [`WarpEntry`](kernel_abi::WarpEntry), unless the function is it, and the [`TogetherEntry`](kernel_abi::TogetherEntry), if the kernel
    /// may have one. Strips are tested by `wraps`, all before any of them runs; of a turned block all warps are, of which none may run this code if one
    /// must not: there are no such warps in the other.
    pub(super) fn entries(&self, unit: Unit<'_, 'c>, wraps: Option<Function<'c>>) {
        if self.round.is_none() {
            return;
        }
        self.warp_entry(unit, wraps);
        if self.together {
            self.together_entry(unit, wraps);
        }
    }

    /// Runs one warp up to the next barrier. All its strips come to the same one, since all its lanes do.
    fn warp_entry(&self, unit: Unit<'_, 'c>, wraps: Option<Function<'c>>) {
        let b = unit.b;
        let (i32, ptr) = (unit.types.i32, unit.types.ptr);
        let entry = b.module().add_function(ENTRY_SYMBOL, i32, &[ptr, i32, i32], Linkage::External);
        unit.machine.set_attributes(entry);
        let [frame, warp, resume] = [0, 1, 2].map(|at| entry.param(at));
        b.position_at_end(entry.append_block("entry"));
        let parted = b.alloca(parted_type(unit), 8);
        let strips = i32.int_const(unit.shape.strips.into());
        let first = b.mul(warp, strips);
        let end = b.add(first, strips);
        let [run, give_up] = ["run", "deopt"].map(|name| entry.append_block(name));
        let [tested, count] = match unit.shape.turned {
            0 => [first, strips],
            _ => [i32.zero(), warps_of_block(unit, launch_of(unit, frame))],
        };
        test(unit, wraps, [frame, tested, count, resume], [run, give_up]);
        b.position_at_end(run);
        b.ret(b.call(self.function, &[frame, first, end, resume, parted]));
        b.position_at_end(give_up);
        b.ret(i32.all_ones());
    }

    /// Runs all warps of a block from barrier to barrier.
    fn together_entry(&self, unit: Unit<'_, 'c>, wraps: Option<Function<'c>>) {
        let b = unit.b;
        let (i32, ptr) = (unit.types.i32, unit.types.ptr);
        let entry = b.module().add_function(TOGETHER_SYMBOL, i32, &[ptr, i32, ptr], Linkage::External);
        unit.machine.set_attributes(entry);
        let [frame, count, parted] = [0, 1, 2].map(|at| entry.param(at));
        let strips = i32.int_const(unit.shape.strips.into());
        b.position_at_end(entry.append_block("entry"));
        let rest = b.alloca(parted_type(unit), 8);
        let end = b.mul(count, strips);
        let [run, give_up, round, usual, done, apart] =
            ["run", "deopt", "round", "usual", "done", "apart"].map(|name| entry.append_block(name));
        let fresh = i32.zero();
        test(unit, wraps, [frame, i32.zero(), end, fresh], [run, give_up]);
        b.position_at_end(run);
        b.br(round);
        b.position_at_end(round);
        let resume = b.phi(i32);
        resume.add_incoming(fresh, run);
        let came = b.call(self.function, &[frame, i32.zero(), end, resume.value(), parted]);
        let parts = b.icmp(IntPredicate::Eq, came, i32.all_ones());
        b.mark_odds(b.cond_br(parts, apart, usual), 1, 2000);
        b.position_at_end(usual);
        resume.add_incoming(came, usual);
        let ended = b.icmp(IntPredicate::Eq, came, i32.zero());
        b.cond_br(ended, done, round);
        b.position_at_end(done);
        b.ret(i32.int_const(1));
        b.position_at_end(apart);
        if unit.shape.strips > 1 {
            // It is the first strip of a warp: the others have their turns still.
            let place = b.ptr_offset(parted, offset_of!(Parted, at) as i64);
            let at = b.load(i32, place, 4);
            let following = b.add(at, i32.int_const(1));
            let warp_end = b.add(at, strips);
            b.call(self.function, &[frame, following, warp_end, resume.value(), rest]);
            b.store(b.udiv(at, strips), place, 4);
        }
        b.ret(i32.zero());
        b.position_at_end(give_up);
        tell(unit, parted, [fresh, i32.zero(), i32.all_ones(), i32.all_ones(), i32.zero()]);
        b.ret(i32.zero());
    }
}

fn parted_type<'c>(unit: Unit<'_, 'c>) -> Type<'c> {
    unit.types.i32.array(size_of::<Parted>() as u64 / 4)
}

/// Stores the fields of a [`Parted`].
fn tell<'c>(unit: Unit<'_, 'c>, parted: Value<'c>, [resume, at, first, own, barrier]: [Value<'c>; 5]) {
    let b = unit.b;
    for (offset, value) in [
        (offset_of!(Parted, resume), resume),
        (offset_of!(Parted, at), at),
        (offset_of!(Parted, first), first),
        (offset_of!(Parted, own), own),
        (offset_of!(Parted, barrier), barrier),
    ] {
        b.store(value, b.ptr_offset(parted, offset as i64), 4);
    }
}

/// Goes to `run` unless so many warps, or strips, from the first begin and one of them must not run this code: then to the other block.
fn test<'c>(
    unit: Unit<'_, 'c>,
    wraps: Option<Function<'c>>,
    [frame, first, count, resume]: [Value<'c>; 4],
    [run, give_up]: [Block<'c>; 2],
) {
    let b = unit.b;
    let Some(wraps) = wraps else {
        b.br(run);
        return;
    };
    let [tests, holds] = ["tests", "holds"].map(|name| b.append_block(name));
    let fresh = b.icmp(IntPredicate::Eq, resume, unit.types.i32.zero());
    b.cond_br(fresh, tests, run);
    b.position_at_end(tests);
    let [x, y, z] = ctaid_of(unit, frame);
    let numbers = Counter::begin(unit, count, "test.warp");
    let warp = b.add(first, numbers.value());
    b.cond_br(b.call(wraps, &[frame, x, y, z, warp]), give_up, holds);
    b.position_at_end(holds);
    numbers.end(unit);
    b.br(run);
}
