//! The loop over the warps of a block and its barriers.
//!
//! A block whose warps all come to the same barriers needs no scheduler to say who is next. Where nothing but whole-block barriers that are known now
//! suspends a warp, code that runs all warps of a block up to the next one, and so on, is part of the kernel: between two barriers there is
//! often so little to do that what a scheduler looks at for each warp would take a tenth of the time. Where a warp does something else than those before
//! it, the scheduler goes on from there.

use std::mem::offset_of;

use kernel_abi::artifact::TOGETHER_SYMBOL;
use kernel_abi::{BARRIERS, BlockFrame, Parted, Wait};
use simt_ir::{BarrierKind, Op};
use transform::Prepared;

use super::Unit;
use crate::llvm::{Function, IntPredicate, Linkage, LoopHint};

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
                op => !op.is_barrier(),
            }
        })
}

/// Emits a [`TogetherEntry`](kernel_abi::TogetherEntry) beside a kernel's [`WarpEntry`](kernel_abi::WarpEntry), if it may have one.
pub fn together_entry(unit: Unit<'_, '_>, kernel: &Prepared, warp: Function<'_>) {
    if !is_simple(kernel) {
        return;
    }
    let b = unit.b;
    let (i32, ptr) = (unit.types.i32, unit.types.ptr);
    let entry = b.module().add_function(TOGETHER_SYMBOL, i32, &[ptr, i32, ptr], Linkage::External);
    unit.machine.set_attributes(entry);
    let (frame, count, parted) = (entry.param(0), entry.param(1), entry.param(2));
    let before = entry.append_block("entry");
    let [round, usual, each, next, last, apart] =
        ["round", "usual", "each", "next", "last", "apart"].map(|name| entry.append_block(name));
    b.position_at_end(before);
    b.br(round);
    b.position_at_end(round);
    let resume = b.phi(i32);
    resume.add_incoming(i32.zero(), before);
    let first = b.call(warp, &[frame, i32.zero(), resume.value()]);
    let wait = offset_of!(BlockFrame, wait) + offset_of!(Wait, barrier);
    let barrier = b.load(i32, b.ptr_offset(frame, wait as i64), 4);
    let gives_up = b.icmp(IntPredicate::Eq, first, i32.all_ones());
    b.mark_odds(b.cond_br(gives_up, apart, usual), 1, 2000);
    b.position_at_end(usual);
    let one = i32.int_const(1);
    let is_one = b.icmp(IntPredicate::Eq, count, one);
    b.cond_br(is_one, last, each);
    b.position_at_end(each);
    let at = b.phi(i32);
    at.add_incoming(one, usual);
    let own = b.call(warp, &[frame, at.value(), resume.value()]);
    let alike = b.icmp(IntPredicate::Eq, own, first);
    b.mark_odds(b.cond_br(alike, next, apart), 2000, 1);
    b.position_at_end(next);
    let following = b.add(at.value(), one);
    at.add_incoming(following, next);
    let more = b.icmp(IntPredicate::Ne, following, count);
    let latch = b.cond_br(more, each, last);
    b.mark_loop(latch, &[LoopHint::DoNotUnroll]);
    b.position_at_end(last);
    resume.add_incoming(first, last);
    let ended = b.icmp(IntPredicate::Eq, first, i32.zero());
    let done = entry.append_block("done");
    b.cond_br(ended, done, round);
    b.position_at_end(done);
    b.ret(one);
    b.position_at_end(apart);
    let (index, came) = (b.phi(i32), b.phi(i32));
    for (phi, early, late) in [(&index, i32.zero(), at.value()), (&came, first, own)] {
        phi.add_incoming(early, round);
        phi.add_incoming(late, each);
    }
    for (offset, value) in [
        (offset_of!(Parted, resume), resume.value()),
        (offset_of!(Parted, at), index.value()),
        (offset_of!(Parted, first), first),
        (offset_of!(Parted, own), came.value()),
        (offset_of!(Parted, barrier), barrier),
    ] {
        b.store(value, b.ptr_offset(parted, offset as i64), 4);
    }
    b.ret(i32.zero());
}
