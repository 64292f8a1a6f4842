//! Accesses that a loop repeats far from where it was.
//!
//! What lanes access side by side is a row to them. Where a loop goes on from row to row, as down the columns of a matrix or from one number of each
//! element to the next, rows are pages apart: a warp accesses a line or two of each, and its neighbour, which runs the loop next, the lines beside
//! them. Processors fetch ahead along rows or see a loop's stride, but not what the next warp will want. [`accesses`] says which had better
//! ask for that.

use std::collections::HashSet;

use simt_ir::{Access, Convert, Def, Inst, IntBinary, Op, Order, Shift, Space, Value};

use crate::simplify::sign_extended;
use crate::{LaneShape, LoopId, Prepared};

/// Bytes from one row to the next from which on rows are far from each other: about a page.
const FAR: u64 = 2048;
/// Bytes about an access that asks, within which others of its address need not.
const NEAR: i64 = 128;
/// How many accesses of a loop ask. Where more are made, others have mostly been there before, as neighbours in a grid do.
const MOST: usize = 8;
/// How many definitions are looked at for what a loop moves an address by.
const DEFINITIONS: u32 = 100;

/// What an iteration of a loop adds to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A constant.
    By(i64),
    /// A number that is known before the loop and the same in all lanes.
    Uniform,
}

impl Step {
    fn and(self, other: Step) -> Option<Step> {
        match (self, other) {
            (Step::By(one), Step::By(other)) => one.checked_add(other).map(Step::By),
            _ => Some(Step::Uniform),
        }
    }

    fn times(self, factor: i64) -> Option<Step> {
        match self {
            Step::By(by) => by.checked_mul(factor).map(Step::By),
            Step::Uniform => Some(Step::Uniform),
        }
    }

    /// Whether it may be a page or more.
    fn is_far(self) -> bool {
        match self {
            Step::By(by) => by.unsigned_abs() >= FAR,
            Step::Uniform => true,
        }
    }
}

/// Loads and stores along the lanes, of memory that nobody waits for, which the innermost loop around them repeats far away: of those near each other one.
pub fn accesses(p: &Prepared) -> HashSet<Inst> {
    let mut found = HashSet::new();
    let mut places: HashSet<(LoopId, Value, i64)> = HashSet::new();
    for &block in p.cfg.order() {
        let Some(around) = p.loops.innermost(block) else { continue };
        for inst in &p.func.block(block).insts {
            let data = p.func.inst(*inst);
            let (Op::Load(access) | Op::Store(access)) = data.op else { continue };
            let address = data.args[0];
            let goes_along = matches!(p.shapes.of(address), LaneShape::Affine(_) | LaneShape::Rows(_));
            if !goes_along || !is_plain(access) || !step(p, address, around).is_some_and(Step::is_far) {
                continue;
            }
            let place = (around, address, (access.offset + NEAR / 2).div_euclid(NEAR));
            if places.iter().filter(|(id, ..)| *id == around).count() < MOST && places.insert(place) {
                found.insert(*inst);
            }
        }
    }
    found
}

/// Whether what is there may be asked for: it is device memory, which nobody waits for.
pub fn is_plain(access: Access) -> bool {
    access.order == Order::Weak && matches!(access.space, Space::Global | Space::Generic)
}

/// By what a value is greater in the next iteration of a loop, if that can be said before. That it could wrap is not minded: what is asked for
/// need not be there.
pub fn step(p: &Prepared, value: Value, around: LoopId) -> Option<Step> {
    Steps { p, around, left: DEFINITIONS }.of(value)
}

struct Steps<'p> {
    p: &'p Prepared,
    around: LoopId,
    /// So many definitions may still be looked at.
    left: u32,
}

impl Steps<'_> {
    fn of(&mut self, value: Value) -> Option<Step> {
        let p = self.p;
        self.left = self.left.checked_sub(1)?;
        if self.is_outside(value) {
            return Some(Step::By(0));
        }
        let data = match p.func.def(value) {
            Def::Param(block, at) if p.loops.headed_by(block) == Some(self.around) => {
                let mut next = p.cfg.passed(&p.func, block, at as usize);
                return next.find_map(|arg| self.moved(arg, value));
            }
            _ => p.func.def_inst(value)?,
        };
        match data.op {
            Op::Int(IntBinary::Add) => self.of(data.args[0])?.and(self.of(data.args[1])?),
            Op::Int(IntBinary::Sub) => self.of(data.args[0])?.and(self.of(data.args[1])?.times(-1)?),
            Op::Int(IntBinary::Mul) => match self.constant(data.args[1]) {
                Some(factor) => self.of(data.args[0])?.times(factor),
                None => (0..2).find_map(|at| {
                    self.addend(data.args[at])?;
                    match self.of(data.args[1 - at])? {
                        Step::By(0) => Some(Step::By(0)),
                        _ => Some(Step::Uniform),
                    }
                }),
            },
            Op::Shift(Shift::Left) => {
                let bits = self.constant(data.args[1])?;
                self.of(data.args[0])?.times(1i64.checked_shl(bits as u32)?)
            }
            Op::Convert(Convert::ZExt | Convert::SExt) => self.of(data.args[0]),
            _ => None,
        }
    }

    /// What a value is more than a loop's parameter, whichever way control has come.
    fn moved(&mut self, value: Value, param: Value) -> Option<Step> {
        if value == param {
            return Some(Step::By(0));
        }
        let p = self.p;
        self.left = self.left.checked_sub(1)?;
        match p.func.def(value) {
            Def::Param(block, at) if p.loops.headed_by(block).is_none() => {
                let mut ways = p.cfg.passed(&p.func, block, at as usize);
                let one = self.moved(ways.next()?, param)?;
                ways.all(|arg| self.moved(arg, param) == Some(one)).then_some(one)
            }
            Def::Result(..) => {
                let data = p.func.def_inst(value).filter(|data| data.op == Op::Int(IntBinary::Add))?;
                let (more, before) =
                    (0..2).find_map(|at| self.addend(data.args[at]).map(|more| (more, data.args[1 - at])))?;
                self.moved(before, param)?.and(more)
            }
            _ => None,
        }
    }

    /// What an iteration adds that adds this.
    fn addend(&self, value: Value) -> Option<Step> {
        let is_known = self.is_outside(value) && self.p.shapes.of(value).is_uniform();
        self.constant(value).map(Step::By).or_else(|| is_known.then_some(Step::Uniform))
    }

    fn is_outside(&self, value: Value) -> bool {
        let p = self.p;
        p.def_block[value.index()].is_none_or(|block| !p.loops.contains(self.around, block))
    }

    /// A constant, with its sign: numbers of 32 bits are kept without.
    fn constant(&self, value: Value) -> Option<i64> {
        let bits = self.p.func.constant(value)?;
        Some(sign_extended(bits, self.p.func.ty(value).bits()))
    }
}
