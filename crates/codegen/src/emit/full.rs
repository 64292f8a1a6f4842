//! Code for all lanes beside the code for some.
//!
//! Most warps have all their lanes in most blocks. Where masks have no registers of their own, accesses by the lanes of a mask take several
//! times as long as plain ones, and some processors take tens of cycles for a store. Where they have, a masked load may still be one that the
//! processor does not fetch memory ahead for (Zen 5: what comes from memory takes twice as long). So a small block that accesses memory is there
//! twice. In a loop that lanes leave one by one that saves more: while none has left, a comparison of two numbers tells so, and nothing need be
//! kept of those that have.

use std::collections::HashSet;

use kernel_abi::{CompileError, Tier};
use simt_ir::{
    Block, Def, Inst, InstData, IntBinary, IntCmp, IntUnary, Op, Target, Terminator, Type as IrType,
    Value as IrValue,
};
use transform::LaneShape;

use super::ahead::Ahead;
use super::function::Emitter;
use crate::llvm::{self, IntPredicate, Value};
use crate::target::Level;

/// Vectors of a warp that a block may compute to be there twice. In larger ones each access is.
const SMALL: u32 = 64;

/// Likewise in a loop, which runs more often.
const IN_LOOP: u32 = 128;

/// Vectors for each access up to which a larger block is there twice as well: that is no more code than its accesses twice, each with a branch.
const DENSE: u32 = 4;

/// Likewise where accesses may go together once it is known that arrays are apart.
const APART: u32 = 12;

/// Vectors up to which a block is there twice in a loop that lanes leave one by one, of however many lanes: masks of several warps take registers, and
/// what they mask waits for them.
const LEAVING: u32 = 32;

/// Which lanes execute code, as far as more is known than of the block that it is of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ActiveLanes {
    Any,
    All,
    /// Some do not: there is other code for all.
    NotAll,
}

/// A way that all lanes take together.
struct Way<'a, 'c> {
    edges: Vec<&'a Target>,
    /// It goes back to the beginning of a loop.
    is_back: bool,
    /// Where it leads.
    start: Option<llvm::Block<'c>>,
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Whether accesses by some lanes take so much longer than those by all that more code pays.
    pub(super) fn has_slow_masks(&self) -> bool {
        self.unit.machine.cpu().level() < Level::Avx512 && !self.is_quick()
    }

    /// Whether the code is to be there soon: nothing is there twice then.
    pub(super) fn is_quick(&self) -> bool {
        self.unit.machine.tier() != Tier::Full
    }

    /// Whether less code counts for more than how fast it is: it is to be there soon, or hardly ever runs.
    pub(super) fn wants_less_code(&self) -> bool {
        self.is_quick() || self.p.is_rare(self.current)
    }

    /// Emits the instructions of the current block.
    pub(super) fn insts(&mut self, block: Block) -> Result<(), CompileError> {
        let Some(full) = self.full_version(block) else { return self.insts_once(block) };
        let b = self.unit.b;
        let mask = self.active();
        let results = self.needed_at_end(block);
        let before = (self.joined.clone(), self.made.clone());
        let (some, after) = (b.append_block("some"), b.append_block("either"));
        let branch = b.cond_br(b.all(mask), full, some);
        b.mark_odds(branch, 2000, 1);
        let mark = self.mark();
        b.position_at_end(full);
        if let Some(ready) = self.knowing(ActiveLanes::All, |this| this.test_ahead(block)) {
            let body = b.append_block(&format!("b{}.ready", block.0));
            let branch = b.cond_br(ready, body, some);
            b.mark_odds(branch, 2000, 1);
            b.position_at_end(body);
        }
        let (usual, goes_on) = self.knowing(ActiveLanes::All, |this| {
            this.insts_once(block)?;
            this.ahead = Ahead::default();
            let goes_on = !this.pauses_after(block) && this.leave_together(block);
            Ok::<_, CompileError>((this.naturals(&results), goes_on))
        })?;
        let usual_end = b.block();
        if !goes_on {
            b.br(after);
        }
        self.forget_since(mark);
        b.position_at_end(some);
        (self.joined, self.made) = before;
        self.knowing(ActiveLanes::NotAll, |this| this.insts_once(block))?;
        let rare = self.naturals(&results);
        let rare_end = b.block();
        b.br(after);
        self.forget_since(mark);
        b.position_at_end(after);
        for ((result, usual), rare) in results.into_iter().zip(usual).zip(rare) {
            let phi = b.phi(rare.ty());
            if !goes_on {
                phi.add_incoming(usual, usual_end);
            }
            phi.add_incoming(rare, rare_end);
            self.have(result, phi.value());
        }
        Ok(())
    }

    /// Emits code of which it is known which lanes execute it.
    pub(super) fn knowing<R>(&mut self, lanes: ActiveLanes, emit: impl FnOnce(&mut Self) -> R) -> R {
        let before = std::mem::replace(&mut self.active_lanes, lanes);
        let result = emit(self);
        self.active_lanes = before;
        result
    }

    /// Where the code of a block begins that is for all lanes, if it has such code beside that for some.
    fn full_version(&mut self, block: Block) -> Option<llvm::Block<'c>> {
        if let Some(known) = self.full_versions.get(&block) {
            return *known;
        }
        let p = self.p;
        let may_differ = || !p.full[block.index()] || self.may_have_arrays_apart(block);
        let has_two = !self.is_quick() && may_differ() && self.is_worth_two(block) && !p.is_rare(block);
        let start = has_two.then(|| self.unit.b.append_block(&format!("b{}.all", block.0)));
        self.full_versions.insert(block, start);
        start
    }

    /// At the end of code that all lanes execute: where all of them go the same way, to a block that has code for all lanes, they go there
    /// at once. Nothing need be merged, since no lane is elsewhere. Answers whether that is always so.
    pub(super) fn leave_together(&mut self, block: Block) -> bool {
        let p = self.p;
        if self.is_quick() || !self.is_full() {
            return false;
        }
        let (cond, then, otherwise) = match &p.func.block(block).term {
            Terminator::Jump(target) => {
                let Some(way) = self.way_together(block, target) else { return false };
                self.go_together(&way);
                return true;
            }
            Terminator::Branch { cond, then, otherwise, .. } if p.shapes.divergent()[block.index()] => {
                (*cond, then, otherwise)
            }
            _ => return false,
        };
        let mut goes_round = false;
        for (target, other, holds) in [(then, otherwise, true), (otherwise, then, false)] {
            let Some(way) = self.way_together(block, target) else { continue };
            let Some(all) = self.all_go(&way, cond, holds) else { continue };
            goes_round = way.is_back;
            self.part(all, &way, other);
            break;
        }
        if goes_round {
            // Not all stay in the loop: often all leave it.
            for (target, other, holds) in [(then, otherwise, true), (otherwise, then, false)] {
                let Some(way) = self.way_out_together(block, target) else { continue };
                let Some(all) = self.surely_all(cond, holds) else { continue };
                self.part(all, &way, other);
            }
        }
        false
    }

    /// The lanes that go each of the two ways from the end of a block where lanes part. Where all surely go one way, which a comparison of two numbers
    /// tells, nothing is asked of each: that takes registers of vectors, and with wide ones some processors have fewer units for narrow ones as well.
    pub(super) fn ways_of_lanes(
        &mut self,
        block: Block,
        cond: IrValue,
        then: &Target,
    ) -> Result<[Value<'c>; 2], CompileError> {
        let b = self.unit.b;
        if !self.p.full[block.index()] {
            return self.masks_of_ways(block, cond);
        }
        if self.p.loops.innermost(block).is_some() {
            // Whether they all stay in it is asked of each.
            self.catch_up()?;
        }
        let here = b.block();
        self.leave_together(block);
        let parted = b.block() != here;
        let usual = if parted || self.is_quick() { None } else { self.usual_way(cond, then) };
        let Some((all, holds)) = usual else { return self.masks_of_ways(block, cond) };
        let (some, masks) = (b.append_block("some"), b.append_block("masks"));
        let branch = b.cond_br(all, masks, some);
        b.mark_odds(branch, 2000, 1);
        let before = b.block();
        let mark = self.mark();
        b.position_at_end(some);
        let parts = self.masks_of_ways(block, cond)?;
        let some = b.block();
        b.br(masks);
        self.forget_since(mark);
        b.position_at_end(masks);
        let ty = self.unit.types.mask;
        let of_all = if holds { [ty.all_ones(), ty.zero()] } else { [ty.zero(), ty.all_ones()] };
        let merged = |at: usize| {
            let phi = b.phi(ty);
            phi.add_incoming(of_all[at], before);
            phi.add_incoming(parts[at], some);
            phi.value()
        };
        Ok([merged(0), merged(1)])
    }

    fn masks_of_ways(&mut self, block: Block, cond: IrValue) -> Result<[Value<'c>; 2], CompileError> {
        self.catch_up()?;
        let b = self.unit.b;
        let mask = self.mask(block);
        let cond = self.vector(cond);
        Ok([b.and(mask, cond), b.and(mask, b.not(cond))])
    }

    /// Instructions of a block that all lanes execute which only tell each lane where to go at its end: most often nobody asks.
    fn put_off(&self, block: Block) -> Vec<Inst> {
        let p = self.p;
        let Terminator::Branch { cond, .. } = p.func.block(block).term else { return Vec::new() };
        if self.is_quick() || !p.full[block.index()] || !p.shapes.divergent()[block.index()] {
            return Vec::new();
        }
        let mut found = HashSet::new();
        let mut work = vec![cond];
        while let Some(value) = work.pop() {
            let own = p.def_block[value.index()] == Some(block) && self.uses[value.index()] == 1;
            let Def::Result(inst, _) = p.func.def(value) else { continue };
            let data = p.func.inst(inst);
            if !own || !p.shapes.of(value).is_varying() {
                continue;
            }
            match data.op {
                Op::IntCmp(_) => {}
                Op::Int(IntBinary::And | IntBinary::Or) | Op::IntUnary(IntUnary::Not) => {
                    work.extend(&data.args);
                }
                _ => continue,
            }
            found.insert(inst);
        }
        let in_order = p.func.block(block).insts.iter().copied();
        in_order.filter(|inst| found.contains(inst)).collect()
    }

    /// Emits what has been put off.
    fn catch_up(&mut self) -> Result<(), CompileError> {
        for inst in std::mem::take(&mut self.put_off) {
            self.begin_scratch();
            self.inst(inst)?;
        }
        Ok(())
    }

    /// Which way lanes usually go, as what the predicate is then, and a number that tells whether all do.
    fn usual_way(&mut self, cond: IrValue, then: &Target) -> Option<(Value<'c>, bool)> {
        // Few threads have nothing to do.
        let holds = !self.comes_to_nothing(then.block);
        self.surely_all(cond, holds).map(|all| (all, holds))
    }

    /// Whether a block leads to the end without doing anything.
    fn comes_to_nothing(&self, mut block: Block) -> bool {
        for _ in 0..3 {
            let data = self.p.func.block(block);
            match &data.term {
                _ if !data.insts.is_empty() => return false,
                Terminator::Jump(next) => block = next.block,
                term => return matches!(term, Terminator::Return(_)),
            }
        }
        false
    }

    /// Whether all lanes take a way where the predicate is `holds`, if that is worth knowing.
    fn all_go(&mut self, way: &Way<'_, 'c>, cond: IrValue, holds: bool) -> Option<Value<'c>> {
        let all = self.surely_all(cond, holds);
        // In a loop it saves more than it costs.
        if all.is_some() || !way.is_back {
            return all;
        }
        let b = self.unit.b;
        let cond = self.vector(cond);
        Some(b.all(if holds { cond } else { b.not(cond) }))
    }

    /// Goes a way if all do, and on from here otherwise. Then no lane comes to `other`.
    fn part(&mut self, all: Value<'c>, way: &Way<'a, 'c>, other: &Target) {
        let b = self.unit.b;
        let (together, apart) = (b.append_block("together"), b.append_block("apart"));
        let branch = b.cond_br(all, together, apart);
        b.mark_odds(branch, 100, 1);
        let node = self.flow.current();
        b.position_at_end(together);
        let mark = self.mark();
        self.flow.branch_from(node);
        if !self.p.linear.is_delayed(other.block) {
            self.pass_on(other, self.unit.types.mask.zero());
        }
        self.go_together(way);
        self.forget_since(mark);
        b.position_at_end(apart);
        self.flow.branch_from(node);
    }

    /// The edges from the end of a block, the first to `target`, over blocks that do nothing to one that has code for all lanes.
    fn way_together(&mut self, block: Block, target: &'a Target) -> Option<Way<'a, 'c>> {
        let p = self.p;
        let (mut from, mut target) = (block, target);
        let mut way = Way { edges: Vec::new(), is_back: false, start: None };
        // Over the preheader or the latch of a loop, and what comes before.
        for _ in 0..3 {
            way.edges.push(target);
            way.is_back |= p.loops.is_back_edge(from, target.block);
            way.start = self.full_version(target.block);
            let data = p.func.block(target.block);
            match &data.term {
                _ if way.start.is_some() => return Some(way),
                Terminator::Jump(next) if self.does_nothing(target.block) => {
                    (from, target) = (target.block, next);
                }
                Terminator::Branch { cond, otherwise, .. } if self.asks_for_few(target.block, *cond) => {
                    (from, target) = (target.block, otherwise);
                }
                _ => return None,
            }
        }
        None
    }

    /// The edges from the end of a block in a loop, the first to `target`, out of it to a block that all lanes come to
    /// whenever it runs.
    fn way_out_together(&mut self, block: Block, target: &'a Target) -> Option<Way<'a, 'c>> {
        let p = self.p;
        let mut target = target;
        let mut way = Way { edges: Vec::new(), is_back: false, start: None };
        for _ in 0..2 {
            let id = p.loops.innermost(block)?;
            if p.loops.contains(id, target.block) {
                return None;
            }
            way.edges.push(target);
            if p.full[target.block.index()] && p.loops.headed_by(target.block).is_none() {
                way.start = Some(self.llvm_block(target.block));
                return Some(way);
            }
            match &p.func.block(target.block).term {
                Terminator::Jump(next) if self.does_nothing(target.block) => target = next,
                _ => return None,
            }
        }
        None
    }

    /// Whether a block only hands on what its edge gives it, and what is known without it.
    fn does_nothing(&mut self, block: Block) -> bool {
        let p = self.p;
        let mut insts = p.func.block(block).insts.iter().map(|inst| p.func.inst(*inst));
        !self.pauses_after(block)
            && insts.all(|data| {
                !data.results.is_empty() && data.results.iter().all(|value| self.is_prologue(*value))
            })
    }

    fn go_together(&mut self, way: &Way<'a, 'c>) {
        let here = self.current;
        let all = self.unit.types.mask.all_ones();
        for target in &way.edges {
            self.pass_on(target, all);
            if let Some(id) = self.p.loops.headed_by(target.block) {
                self.clear_masks(Some(id));
            }
            self.current = target.block;
        }
        self.flow.edge_to_block(self.current);
        self.unit.b.br(way.start.expect("a way ends at such code"));
        self.current = here;
    }

    /// Defines whether a predicate holds in all active lanes; where that costs less it may be said not to.
    pub(super) fn unanimous(&mut self, data: &InstData) -> Result<(), CompileError> {
        let cond = data.args[0];
        let (mut holds, is_exact) = self.in_all_lanes(cond, true);
        // The lanes at the ends may not be active, as at the edges of a tile, again and again.
        if !is_exact && !self.is_full() && !self.wants_less_code() {
            let exactly = |this: &mut Self| Ok(vec![this.in_all_lanes(cond, false).0]);
            holds = self.either(holds, |_| Ok(vec![holds]), exactly)?[0];
        }
        self.define(data.results[0], holds);
        Ok(())
    }

    /// [`Op::AnyLane`]: that of lane 0. It may not be there, and its number anything, but one.
    pub(super) fn any_lane(&mut self, data: &InstData) {
        let b = self.unit.b;
        let value = data.args[0];
        let own = match self.p.shapes.of(value) {
            LaneShape::Uniform | LaneShape::Affine(_) => b.freeze(self.natural(value)),
            LaneShape::Rows(_) | LaneShape::Varying => {
                let lanes = b.freeze(self.vector(value));
                b.extract(lanes, 0)
            }
        };
        self.define(data.results[0], own);
    }

    /// Whether a predicate holds in all active lanes, and whether that is exactly so: `by_ends` it may hold though it is said not to.
    fn in_all_lanes(&mut self, cond: IrValue, by_ends: bool) -> (Value<'c>, bool) {
        let b = self.unit.b;
        if let Some(data) = self.p.func.def_inst(cond)
            && data.op == Op::Int(IntBinary::And)
        {
            let [first, second] = [data.args[0], data.args[1]].map(|arg| self.in_all_lanes(arg, by_ends));
            return (b.and(first.0, second.0), first.1 && second.1);
        }
        if self.p.shapes.of(cond).is_uniform() {
            return (self.natural(cond), true);
        }
        if by_ends && let Some(holds) = self.surely_all(cond, true) {
            return (holds, false);
        }
        let (cond, active) = (self.vector(cond), self.active());
        (b.all(b.or(cond, b.not(active))), true)
    }

    /// A scalar that is true only if the predicate is `holds` in all lanes, where there is one: comparisons of numbers that differ by
    /// constants between lanes are decided by the least and the greatest.
    fn surely_all(&mut self, cond: IrValue, holds: bool) -> Option<Value<'c>> {
        let p = self.p;
        let b = self.unit.b;
        let data = p.func.def_inst(cond)?;
        match data.op {
            Op::IntUnary(IntUnary::Not) => self.surely_all(data.args[0], !holds),
            Op::Int(op @ (IntBinary::And | IntBinary::Or)) => {
                let sides = [0, 1].map(|at| self.surely_all(data.args[at], holds));
                match (op == IntBinary::And) == holds {
                    true => Some(b.and(sides[0]?, sides[1]?)),
                    false => match sides {
                        [Some(first), Some(second)] => Some(b.or(first, second)),
                        [first, second] => first.or(second),
                    },
                }
            }
            Op::IntCmp(cmp) if matches!(p.func.ty(data.args[0]), IrType::I32 | IrType::I64) => {
                let (mut low, mut high) = (data.args[0], data.args[1]);
                if matches!(cmp, IntCmp::GtS | IntCmp::GtU | IntCmp::LeS | IntCmp::LeU) {
                    (low, high) = (high, low);
                }
                let is_less = match cmp {
                    IntCmp::LtS | IntCmp::LtU | IntCmp::GtS | IntCmp::GtU => true,
                    IntCmp::LeS | IntCmp::LeU | IntCmp::GeS | IntCmp::GeU => false,
                    IntCmp::Eq | IntCmp::Ne => return None,
                };
                let unsigned = matches!(cmp, IntCmp::LtU | IntCmp::LeU | IntCmp::GtU | IntCmp::GeU);
                // `low < high`, or its opposite, `high <= low`.
                match is_less == holds {
                    true => self.surely_less(low, high, unsigned, true),
                    false => self.surely_less(high, low, unsigned, false),
                }
            }
            _ => None,
        }
    }

    /// Whether one number is less than the other in all lanes, or not greater if that is not `strict`.
    fn surely_less(
        &mut self,
        low: IrValue,
        high: IrValue,
        unsigned: bool,
        strict: bool,
    ) -> Option<Value<'c>> {
        use IntPredicate::*;
        let b = self.unit.b;
        let i64 = self.unit.types.i64;
        // Numbers of 32 bits are compared as signed ones of 64.
        let is_wide = self.p.func.ty(low) == IrType::I64;
        let [below, up_to, from] = if unsigned && is_wide { [Ult, Ule, Uge] } else { [Slt, Sle, Sge] };
        let (least, most) = match (is_wide, unsigned) {
            (false, true) => (0, u64::from(u32::MAX)),
            (false, false) => (i64::from(i32::MIN) as u64, i32::MAX as u64),
            (true, true) => (0, u64::MAX),
            (true, false) => (i64::MIN as u64, i64::MAX as u64),
        };
        let mut holds = None;
        let mut side = |this: &mut Self, value: IrValue, greatest: bool| {
            let (first, last) = match this.p.shapes.of(value) {
                LaneShape::Uniform => (0, 0),
                LaneShape::Affine(offsets) => {
                    offsets.iter().fold((0, 0), |(l, m), offset| (*offset.min(&l), *offset.max(&m)))
                }
                LaneShape::Rows(_) | LaneShape::Varying => return None,
            };
            if first < i64::from(i32::MIN) || last > i64::from(i32::MAX) || !this.is_at_hand(value) {
                return None;
            }
            let base = this.natural(value);
            let base = match (is_wide, unsigned) {
                (true, _) => base,
                (false, true) => b.zext(base, i64),
                (false, false) => b.sext(base, i64),
            };
            // What wraps in some lane is told by the slow way.
            let mut bound = |predicate, offset: i64, limit: u64| {
                let inside = b.icmp(predicate, base, i64.int_const(limit.wrapping_sub(offset as u64)));
                holds = Some(holds.map_or(inside, |holds| b.and(holds, inside)));
            };
            if first < 0 {
                bound(from, first, least);
            }
            if last > 0 {
                bound(up_to, last, most);
            }
            Some(this.offset(base, if greatest { last } else { first }))
        };
        let greatest = side(self, low, true)?;
        let smallest = side(self, high, false)?;
        let less = b.icmp(if strict { below } else { up_to }, greatest, smallest);
        Some(holds.map_or(less, |holds| b.and(holds, less)))
    }

    fn insts_once(&mut self, block: Block) -> Result<(), CompileError> {
        self.put_off = self.put_off(block);
        self.forget_copies();
        for &inst in &self.p.func.block(block).insts {
            if self.put_off.contains(&inst) {
                continue;
            }
            self.begin_scratch();
            self.inst(inst)?;
        }
        self.fetch();
        Ok(())
    }

    fn naturals(&mut self, values: &[IrValue]) -> Vec<Value<'c>> {
        values.iter().map(|value| self.natural(*value)).collect()
    }

    /// Whether the block accesses memory by vectors, is small, and does nothing that a warp does only once.
    fn is_worth_two(&self, block: Block) -> bool {
        let p = self.p;
        let insts = || p.func.block(block).insts.iter().map(|inst| p.func.inst(*inst));
        let is_access = |op: &Op| matches!(op, Op::Load(_) | Op::Store(_));
        let by_lanes = |data: &InstData| is_access(&data.op) && !p.shapes.of(data.args[0]).is_uniform();
        let vectors = insts().filter(|data| data.results.iter().any(|value| p.shapes.of(*value).is_vector()));
        let (vectors, accesses) =
            (vectors.count() as u32, insts().filter(|data| by_lanes(data)).count() as u32);
        let id = p.loops.innermost(block);
        let lanes_leave = id.is_some_and(|id| p.shapes.divergent_loops()[id.index()]);
        let small = if id.is_some() { IN_LOOP } else { SMALL };
        insts().all(|data| data.op.is_pure() || is_access(&data.op) || matches!(data.op, Op::Atomic(..)))
            && accesses > 0
            && (vectors * self.unit.lanes <= small * super::LANES
                || vectors <= DENSE * accesses
                || vectors <= APART * accesses && self.may_have_arrays_apart(block)
                || lanes_leave && vectors <= LEAVING)
    }

    /// What the block computes and its end uses.
    fn needed_at_end(&mut self, block: Block) -> Vec<IrValue> {
        let p = self.p;
        // What is put off comes after both versions: not it is needed of them, but what it is made of.
        let put_off = self.put_off(block);
        let made_of = put_off.iter().flat_map(|inst| p.func.inst(*inst).args.iter().copied());
        let mut needed: Vec<IrValue> = p.func.block(block).term.uses().into_iter().chain(made_of).collect();
        needed.sort_unstable();
        needed.dedup();
        needed.retain(|value| {
            let Def::Result(inst, _) = p.func.def(*value) else { return false };
            !put_off.contains(&inst) && p.def_block[value.index()] == Some(block) && !self.is_prologue(*value)
        });
        needed
    }
}
