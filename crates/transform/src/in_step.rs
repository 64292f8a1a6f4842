//! Whether the lanes of a warp may run in step.
//!
//! In step, one side of a branch runs to the join before the other begins, and a loop until its last lane has left it. That is right unless
//! threads rely on each other across such a border.

use std::collections::HashSet;

use simt_ir::{
    Block, Function, IntBinary, IntCmp, IntUnary, Op, SourceLoc, SpecialReg, Terminator, Type, Value,
};

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
            if let Some(at) = data.op.member_mask(data.args.len()).filter(|_| is_partial) {
                let members = data.args[at];
                let what = if meets_another_branch(p, block, &data.op, members) {
                    "an operation at which threads meet others of their warp in another branch"
                } else if meets_further_on(p, block, &data.op, members) {
                    "an operation at which threads meet others of their warp that have skipped it"
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
                    && data
                        .op
                        .member_mask(data.args.len())
                        .is_some_and(|at| may_overlap(p, members, data.args[at], other, block))
            })
        })
    })
}

/// Whether lanes that wait for this block to be done with come to a like operation further on, for members of both: where a compiler unrolled a loop,
/// lanes with fewer iterations skip the first operations of the others, and meet them at later ones.
///
/// Masks that tell who is there are computed from what is there. Who names the lanes of a tile, or all, counts on them to be where it is; then only
/// conditions that exclude each other show that they are not.
fn meets_further_on(p: &Prepared, block: Block, op: &Op, members: Value) -> bool {
    let means = meant_by(p, members);
    let ahead = reached(p, p.linear.deferred(block), |from, to| !p.loops.is_back_edge(from, to));
    let mut others = p.func.blocks().filter(|other| ahead[other.index()] && *other != block);
    others.any(|other| {
        p.func.block(other).insts.iter().any(|inst| {
            let data = p.func.inst(*inst);
            let Some(at) = data.op.member_mask(data.args.len()).filter(|_| data.op == *op) else {
                return false;
            };
            let theirs = data.args[at];
            let may_be_there = match (means, meant_by(p, theirs)) {
                (Members::OfRound, Members::OfRound | Members::Some) | (Members::Some, Members::OfRound) => {
                    true
                }
                (Members::OfRound, Members::Place) | (Members::Place, Members::OfRound) => false,
                _ => exclude_each_other(p, block, other),
            };
            may_be_there && may_overlap(p, members, theirs, other, block)
        })
    })
}

/// Whom a member mask names.
#[derive(Clone, Copy)]
enum Members {
    /// All lanes, or those of a tile.
    Place,
    /// Some lanes, by a constant.
    Some,
    /// Those who are there, as computed from what differs from round to round or from launch to launch.
    OfRound,
}

fn meant_by(p: &Prepared, mask: Value) -> Members {
    match p.func.constant(mask) {
        Some(mask) if mask as u32 != u32::MAX => Members::Some,
        Some(_) => Members::Place,
        None if is_of_lane(p, mask) => Members::Place,
        None => Members::OfRound,
    }
}

/// Whether a value is computed from a lane's number alone, and the same in all rounds of loops.
fn is_of_lane(p: &Prepared, value: Value) -> bool {
    let (mut work, mut seen) = (vec![value], HashSet::new());
    while let Some(value) = work.pop() {
        let Some(data) = p.func.def_inst(value) else { return false };
        let is_known = match data.op {
            Op::SpecialReg(reg) => !reg.is_counter() && !matches!(reg, SpecialReg::CtaId(_)),
            op => op.is_pure(),
        };
        if !is_known {
            return false;
        }
        work.extend(data.args.iter().copied().filter(|arg| seen.insert(*arg)));
    }
    true
}

/// Whether no lane comes to both blocks by the conditions behind which they lie: one that holds for the one and not for the other, or limits to the same
/// number that leave none.
fn exclude_each_other(p: &Prepared, one: Block, other: Block) -> bool {
    let of_one = conditions(p, one);
    let is_excluded = |(a, a_holds): &(Value, bool), (b, b_holds): &(Value, bool)| {
        let disjoint = match (limits(p, *a, *a_holds), limits(p, *b, *b_holds)) {
            (Some(a), Some(b)) => is_alike(p, a.number, b.number) && a.is_apart_from(&b),
            _ => false,
        };
        let opposite = match a_holds == b_holds {
            true => is_inverse(p, *a, *b),
            false => is_alike(p, *a, *b),
        };
        opposite || disjoint
    };
    conditions(p, other).iter().any(|own| of_one.iter().any(|theirs| is_excluded(own, theirs)))
}

/// Whether two values are surely the same.
fn is_alike(p: &Prepared, a: Value, b: Value) -> bool {
    let of = |value: Value| p.func.def_inst(value);
    a == b || of(a).zip(of(b)).is_some_and(|(a, b)| a.op.is_pure() && a.op == b.op && a.args == b.args)
}

/// Whether one comparison surely holds where the other does not.
fn is_inverse(p: &Prepared, a: Value, b: Value) -> bool {
    let (Some(a), Some(b)) = (p.func.def_inst(a), p.func.def_inst(b)) else { return false };
    let (Op::IntCmp(of_a), Op::IntCmp(of_b)) = (a.op, b.op) else { return false };
    of_a == of_b.inverse() && a.args.iter().zip(&b.args).all(|(a, b)| is_alike(p, *a, *b))
}

/// What a condition says of a number.
struct Limits {
    number: Value,
    is_signed: bool,
    least: i64,
    most: i64,
}

impl Limits {
    fn is_apart_from(&self, other: &Limits) -> bool {
        self.is_signed == other.is_signed && (self.most < other.least || other.most < self.least)
    }
}

/// What a comparison with a constant says of a number where it holds, or does not.
fn limits(p: &Prepared, cond: Value, holds: bool) -> Option<Limits> {
    let data = p.func.def_inst(cond)?;
    let Op::IntCmp(cmp) = data.op else { return None };
    let [number, constant] = data.args[..] else { return None };
    let bits = p.func.constant(constant).filter(|_| p.func.ty(number) == Type::I32)? as u32;
    let is_signed = matches!(cmp, IntCmp::LtS | IntCmp::LeS | IntCmp::GtS | IntCmp::GeS);
    let (at, lowest, highest) = match is_signed {
        true => (i64::from(bits as i32), i64::from(i32::MIN), i64::from(i32::MAX)),
        false => (i64::from(bits), 0, i64::from(u32::MAX)),
    };
    let (least, most) = match if holds { cmp } else { cmp.inverse() } {
        IntCmp::Eq => (at, at),
        IntCmp::Ne => return None,
        IntCmp::LtS | IntCmp::LtU => (lowest, at - 1),
        IntCmp::LeS | IntCmp::LeU => (lowest, at),
        IntCmp::GtS | IntCmp::GtU => (at + 1, highest),
        IntCmp::GeS | IntCmp::GeU => (at, highest),
    };
    Some(Limits { number, is_signed, least, most })
}

/// The conditions of the branches behind which a block lies, and whether each holds there.
fn conditions(p: &Prepared, block: Block) -> Vec<(Value, bool)> {
    let mut found = Vec::new();
    let mut at = block;
    while let Some(parent) = p.dom.idom(at) {
        if let Terminator::Branch { cond, then, otherwise, .. } = &p.func.block(parent).term
            && p.cfg.preds(at) == [parent]
            && then.block != otherwise.block
        {
            let (mut cond, mut holds) = (*cond, then.block == at);
            while let Some(not) = p.func.def_inst(cond).filter(|data| data.op == Op::IntUnary(IntUnary::Not))
            {
                (cond, holds) = (not.args[0], !holds);
            }
            found.push((cond, holds));
        }
        at = parent;
    }
    found
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
    is_alike(p, a, b)
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
