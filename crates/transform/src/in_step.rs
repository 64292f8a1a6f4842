//! Whether the lanes of a warp may run in step.
//!
//! In step, one side of a branch runs to the join before the other begins, and a loop until its last lane has left it. That is right unless
//! threads rely on each other across such a border.

use simt_ir::{Block, Function, IntBinary, IntCmp, IntUnary, Op, SourceLoc, Terminator, Value};

use crate::dispatch::member_mask;
use crate::{Irreducible, Prepared};

/// Why lanes cannot run in step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// What does not work.
    pub what: &'static str,
    /// Where.
    pub loc: SourceLoc,
}

impl Obstacle {
    /// Control flow that has no order.
    pub fn entered_twice(func: &Function, irreducible: Irreducible) -> Obstacle {
        let loc = func
            .blocks()
            .find(|block| *block == irreducible.0)
            .map_or(SourceLoc::default(), |block| func.block(block).term_loc);
        Obstacle { what: "a loop that is entered in more than one place", loc }
    }
}

/// What keeps the lanes of a kernel from running in step, if anything does.
pub fn obstacle(p: &Prepared) -> Option<Obstacle> {
    if let Some(id) = p.polling.lanes_wait.first() {
        let loc = p.func.block(p.loops.get(*id).header).term_loc;
        return Some(Obstacle { what: "a loop in which threads of a warp may wait for each other", loc });
    }
    for &block in p.cfg.order() {
        for inst in &p.func.block(block).insts {
            let data = p.func.inst(*inst);
            if data.op.is_barrier() && p.linear.deferred(block).any(|waiting| reaches_barrier(p, waiting)) {
                let what = "a barrier under a condition that differs between the threads of a warp";
                return Some(Obstacle { what, loc: data.loc });
            }
            let is_partial = !p.full[block.index()] && p.linear.skip(block).is_some();
            if let Some(at) = member_mask(&data.op, data.args.len()).filter(|_| is_partial) {
                let members = data.args[at];
                let what = if meets_another_branch(p, block, &data.op, members) {
                    "an operation at which threads meet others of their warp in another branch"
                } else if meets_another_round(p, block, members) {
                    "an operation at which threads meet others of their warp that still wait in a loop around it"
                } else {
                    continue;
                };
                return Some(Obstacle { what, loc: data.loc });
            }
        }
    }
    None
}

/// Whether a barrier can be executed after control has come to `from`. Lanes that wait there could not come to it while others are at
/// the one before it.
fn reaches_barrier(p: &Prepared, from: Block) -> bool {
    let is_barrier = |block: Block| {
        let mut insts = p.func.block(block).insts.iter();
        insts.any(|inst| p.func.inst(*inst).op.is_barrier())
    };
    let reached = reached(p, [from], |_, _| true);
    p.func.blocks().any(|block| reached[block.index()] && is_barrier(block))
}

/// Whether lanes that wait for this block to be done with, some having come to it, come to a like operation for members of both before they join these lanes.
fn meets_another_branch(p: &Prepared, block: Block, op: &Op, members: Value) -> bool {
    let forward = |from: Block, to: Block| !p.loops.is_back_edge(from, to);
    let joined = reached(p, [block], forward);
    p.linear.deferred(block).any(|waiting| {
        let others = reached(p, [waiting], |from, to| forward(from, to) && !joined[to.index()]);
        let mut others = p.func.blocks().filter(|other| others[other.index()] && !joined[other.index()]);
        others.any(|other| {
            p.func.block(other).insts.iter().any(|inst| {
                let data = p.func.inst(*inst);
                data.op == *op
                    && member_mask(&data.op, data.args.len())
                        .is_some_and(|at| may_overlap(p, members, data.args[at], other, block))
            })
        })
    })
}

/// Whether lanes that come to this block in one round of a loop that waits mean others, who come to it in a later one: those whom the
/// loop has yet to let through.
fn meets_another_round(p: &Prepared, block: Block, members: Value) -> bool {
    let ahead = reached(p, p.linear.deferred(block), |from, to| !p.loops.is_back_edge(from, to));
    let around = p.loops.around(block).map(|id| p.loops.get(id).header);
    let mut waiting = around.filter(|header| p.polling.headers.contains(header));
    waiting.any(|header| {
        let latch = p.cfg.preds(header).iter().copied().find(|pred| p.loops.is_back_edge(*pred, header));
        latch.is_some_and(|latch| ahead[latch.index()] && !names_its_side(p, members, block, latch))
    })
}

/// Whether two member masks, used in these blocks on two sides of a branch, may name the same lane.
fn may_overlap(p: &Prepared, a: Value, b: Value, a_other: Block, b_other: Block) -> bool {
    match (p.func.constant(a), p.func.constant(b)) {
        (Some(a), Some(b)) => a & b != 0,
        (Some(_), None) => !names_its_side(p, b, a_other, b_other),
        (None, Some(_)) => !names_its_side(p, a, b_other, a_other),
        (None, None) => !names_its_side(p, a, b_other, a_other) && !names_its_side(p, b, a_other, b_other),
    }
}

/// Whether a member mask was asked from the lanes themselves: from those on one side of the branch, or as the lanes for which the
/// condition holds that parts them. Who asks that means them alone.
fn names_its_side(p: &Prepared, mask: Value, side: Block, other_side: Block) -> bool {
    let Some(data) = p.func.def_inst(mask) else { return false };
    let common = p.def_block[mask.index()].is_none_or(|block| p.dom.dominates(block, other_side));
    match data.op {
        Op::IntUnary(IntUnary::Not) => names_its_side(p, data.args[0], side, other_side),
        Op::Int(IntBinary::And) => data.args.iter().any(|arg| names_its_side(p, *arg, side, other_side)),
        Op::Vote(_) => !common || parts(p, data.args[0], side, other_side),
        Op::ActiveMask | Op::MatchAny | Op::MatchAll => !common,
        _ => false,
    }
}

/// Whether a branch on this condition parts the two blocks.
fn parts(p: &Prepared, condition: Value, side: Block, other_side: Block) -> bool {
    let mut at = side;
    while let Some(parent) = p.dom.idom(at) {
        if let Terminator::Branch { cond, .. } = p.func.block(parent).term
            && p.cfg.preds(at) == [parent]
            && !p.dom.dominates(at, other_side)
            && same_condition(p, cond, condition)
        {
            return true;
        }
        at = parent;
    }
    false
}

/// Whether two conditions surely are the same, or each other's opposites.
fn same_condition(p: &Prepared, a: Value, b: Value) -> bool {
    let (a, b) = (without_not(p, a), without_not(p, b));
    let (of_a, of_b) = (p.func.def_inst(a), p.func.def_inst(b));
    a == b || of_a.zip(of_b).is_some_and(|(a, b)| a.op.is_pure() && a.op == b.op && a.args == b.args)
}

/// A condition without what turns it round, or into a number and back.
fn without_not(p: &Prepared, mut condition: Value) -> Value {
    while let Some(data) = p.func.def_inst(condition) {
        let zero = |at: usize| p.func.constant(data.args[at]) == Some(0);
        condition = match data.op {
            Op::IntUnary(IntUnary::Not) => data.args[0],
            Op::IntCmp(IntCmp::Eq | IntCmp::Ne) if zero(1) => match p.func.def_inst(data.args[0]) {
                Some(of) if of.op == Op::Select && p.func.constant(of.args[2]) == Some(0) => {
                    match p.func.constant(of.args[1]) {
                        Some(bits) if bits != 0 => of.args[0],
                        _ => return condition,
                    }
                }
                _ => return condition,
            },
            _ => return condition,
        };
    }
    condition
}

/// For each block whether control can come to it from one of these, themselves included, over edges that `follows` lets pass.
fn reached(
    p: &Prepared,
    from: impl IntoIterator<Item = Block>,
    follows: impl Fn(Block, Block) -> bool,
) -> Vec<bool> {
    let follows = &follows;
    p.cfg.reached(from, |block| p.cfg.succs(block).iter().copied().filter(move |to| follows(block, *to)))
}
