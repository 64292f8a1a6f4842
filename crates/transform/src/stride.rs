//! Loops in steps of the whole grid or of a block.
//!
//! A grid that is smaller than what it works on goes over it in steps as long as itself. A warp that runs such a loop to its end before the next
//! one begins touches a piece here and a piece far away, and those between only when it comes back for the next warp: caches fetch ahead in vain, and
//! each step is another page. Where warps take turns instead, an iteration each, memory is walked along. What blocks do is not ordered, nor are the
//! warps of one, so that is what the program means as well, as long as nothing shows who came first.

use std::collections::HashSet;

use simt_ir::{Block, Def, Function, IntBinary, Op, Order, Space, SpecialReg, Terminator, Value};

use crate::{LaneShape, LoopId, Prepared, rows};

/// Scalars that a warp may keep from turn to turn: more would cost more than the order gives.
const MOST_KEPT: usize = 16;
/// How far definitions are followed: loops are unrolled a few times, and add as often.
const DEPTH: u32 = 24;

/// Latches of the loops whose warps had better take turns: those that go on by steps of the grid, and access memory along the lanes.
///
/// Only in a kernel that nothing but its results can tell the order of: one without barriers, atomics, memory of the block's own, or services.
pub fn latches(p: &Prepared) -> Vec<Block> {
    if !has_no_order(p) {
        return Vec::new();
    }
    let steps = |id| steps_over(p, id, counts_blocks) || steps_over(p, id, counts_threads) && divides(p, id);
    let mut found: Vec<LoopId> = Vec::new();
    // Inner ones come first.
    for id in p.loops.ids() {
        let contains_one = found.iter().any(|inner| p.loops.contains(id, p.loops.get(*inner).header));
        if !contains_one && steps(id) && goes_along(p, id) && keeps_little(p, id) {
            found.push(id);
        }
    }
    found.into_iter().map(|id| latch(p, id)).collect()
}

/// Whether all loops go over rows in steps of a block, which gangs may do as well as warps in turns, and for less: a turn takes something beside the
/// iteration. Not where they divide ([`rows`]): a warp mostly lies in one row, a gang less often.
pub fn goes_over_rows(p: &Prepared) -> bool {
    p.loops.count() > 0 && p.loops.ids().all(|id| walks(p, id, counts_threads) && !divides(p, id))
}

/// Whether all loops go over memory in steps of the grid.
pub fn goes_over_grid(p: &Prepared) -> bool {
    p.loops.count() > 0 && p.loops.ids().all(|id| walks(p, id, counts_blocks))
}

/// Whether a loop goes over memory, along the lanes, in steps of what `counts`.
fn walks(p: &Prepared, id: LoopId, counts: fn(SpecialReg) -> bool) -> bool {
    steps_over(p, id, counts) && goes_along(p, id)
}

/// Whether this is a kernel that nothing but its results can tell the order of: what it does is done when it ends, and no sooner.
pub fn has_no_order(p: &Prepared) -> bool {
    let mut insts = p.cfg.order().iter().flat_map(|block| &p.func.block(*block).insts);
    p.is_kernel
        && !p.dispatched
        && p.polling.headers.is_empty()
        && insts.all(|inst| shows_no_order(&p.func.inst(*inst).op))
}

/// What a loop compares with what it counts where lanes leave it: a number known before the loop, up to which it goes. Nothing if they leave it in several
/// places, or otherwise.
pub fn limit(p: &Prepared, id: LoopId) -> Option<Value> {
    let leaves = |block: &&Block| p.cfg.succs(**block).iter().any(|next| !p.loops.contains(id, *next));
    let mut leaving = p.loops.get(id).blocks.iter().filter(leaves);
    let (Some(block), None) = (leaving.next(), leaving.next()) else { return None };
    let Terminator::Branch { cond, .. } = p.func.block(*block).term else { return None };
    let data = p.func.def_inst(cond).filter(|data| matches!(data.op, Op::IntCmp(_)))?;
    let is_before = |value: &&Value| {
        let block = p.def_block[value.index()];
        block.is_none_or(|block| !p.loops.contains(id, block)) && !p.shapes.of(**value).is_vector()
    };
    data.args.iter().find(is_before).copied()
}

fn shows_no_order(op: &Op) -> bool {
    match op {
        Op::Load(access) | Op::Store(access) => {
            access.order == Order::Weak && !matches!(access.space, Space::Shared | Space::Local)
        }
        // What is the block's or the thread's own is in one place for all blocks that a processor runs.
        Op::ToGeneric(space) | Op::FromGeneric(space) => !matches!(space, Space::Shared | Space::Local),
        Op::IsSpace(_) | Op::LocalBase => false,
        op => op.is_pure(),
    }
}

fn latch(p: &Prepared, id: LoopId) -> Block {
    let mut preds = p.cfg.preds(p.loops.get(id).header).iter();
    *preds.find(|pred| p.loops.contains(id, **pred)).expect("a loop has a latch")
}

/// Whether some number goes on by what depends on what `counts`.
fn steps_over(p: &Prepared, id: LoopId, counts: fn(SpecialReg) -> bool) -> bool {
    let header = p.loops.get(id).header;
    let latch = p.func.block(latch(p, id));
    let params = &p.func.block(header).params;
    let mut nexts = latch.term.targets().into_iter().flat_map(|target| params.iter().zip(&target.args));
    nexts.any(|(param, next)| goes_on_by(p, id, *param, *next, counts, DEPTH) == Some(true))
}

/// How many blocks there are.
fn counts_blocks(reg: SpecialReg) -> bool {
    matches!(reg, SpecialReg::NctaId(_))
}

/// How many threads a row of a block has.
fn counts_threads(reg: SpecialReg) -> bool {
    reg == SpecialReg::Ntid(0)
}

/// Whether what is added to `param`, to get `value`, depends on what `counts`; `None` if `value` comes about otherwise.
fn goes_on_by(
    p: &Prepared,
    id: LoopId,
    param: Value,
    value: Value,
    counts: fn(SpecialReg) -> bool,
    depth: u32,
) -> Option<bool> {
    if value == param {
        return Some(false);
    }
    let depth = depth.checked_sub(1)?;
    match p.func.def(value) {
        Def::Param(block, at) if p.loops.contains(id, block) && p.loops.headed_by(block).is_none() => {
            let mut ways = p.cfg.passed(&p.func, block, at as usize);
            ways.try_fold(false, |any, arg| Some(goes_on_by(p, id, param, arg, counts, depth)? | any))
        }
        Def::Result(..) => {
            let data = p.func.def_inst(value).filter(|data| data.op == Op::Int(IntBinary::Add))?;
            let outside =
                |value: &Value| p.def_block[value.index()].is_none_or(|block| !p.loops.contains(id, block));
            let (own, step) = match (data.args[0], data.args[1]) {
                (own, step) if outside(&step) => (own, step),
                (step, own) => (own, Some(step).filter(outside)?),
            };
            Some(goes_on_by(p, id, param, own, counts, depth)? | depends_on(&p.func, step, counts))
        }
        _ => None,
    }
}

/// Whether a value is computed from what `counts`.
fn depends_on(func: &Function, value: Value, counts: fn(SpecialReg) -> bool) -> bool {
    let (mut work, mut seen) = (vec![value], HashSet::new());
    while let Some(value) = work.pop() {
        let Some(data) = func.def_inst(value).filter(|data| data.op.is_pure()) else { continue };
        if matches!(data.op, Op::SpecialReg(reg) if counts(reg)) {
            return true;
        }
        work.extend(data.args.iter().copied().filter(|arg| seen.insert(*arg)));
    }
    false
}

/// Whether the loop finds rows and columns of what it goes over.
fn divides(p: &Prepared, id: LoopId) -> bool {
    let mut insts = p.loops.get(id).blocks.iter().flat_map(|block| &p.func.block(*block).insts);
    insts.any(|inst| rows::divides(&p.func, *inst))
}

/// Whether the loop accesses memory at addresses that differ by constants between lanes.
fn goes_along(p: &Prepared, id: LoopId) -> bool {
    let insts = p.loops.get(id).blocks.iter().flat_map(|block| &p.func.block(*block).insts);
    insts
        .map(|inst| p.func.inst(*inst))
        .filter(|data| data.op.access().is_some())
        .any(|data| matches!(p.shapes.of(data.args[0]), LaneShape::Affine(_) | LaneShape::Rows(_)))
}

/// Whether what a warp keeps from one iteration to the next, of what is read from there on, is a few scalars, beside its masks.
fn keeps_little(p: &Prepared, id: LoopId) -> bool {
    let header = p.loops.get(id).header;
    let params = &p.func.block(header).params;
    let reached = p.cfg.reached([header], |block| p.cfg.succs(block).iter().copied());
    let crossing = p.crossing_into(|block| reached[block.index()]);
    let kept = (0..p.func.value_count()).map(|at| Value(at as u32)).filter(|value| {
        let outside = |block| !p.loops.contains(id, block) || params.contains(value);
        crossing[value.index()] && p.def_block[value.index()].is_some_and(outside)
    });
    let mut scalars = 0;
    for value in kept {
        if p.shapes.of(value).is_vector() {
            return false;
        }
        // Constants and what the launch alone decides are computed anew.
        scalars += usize::from(p.func.def_inst(value).is_none());
    }
    scalars <= MOST_KEPT
}
