//! Code for warps whose indices stay within bounds.
//!
//! A filter takes the nearest pixel at the edges of a picture, `min(max(x + 1, 0), width - 1)`; a grid that is a torus goes on at the other
//! side, `(x + 1) % width`; and where elements are numbered, a warp mostly lies in one row ([`rows`]); lanes mostly leave a loop
//! together ([`rejoined`]). Next to each other where they were bounded, the indices of lanes are not for sure, and each access would have to
//! find out. But most warps touch no edge, and one test tells so for all that is bounded in a block: [`split`] puts it before, and from there
//! on the code is there twice. Where the test holds, what was to be bounded takes the place of what was.
//!
//! Only kernels in which that makes accesses regular are split, of moderate size, and no part in which lanes meet.

mod again;
mod lanes;

use std::collections::{HashMap, HashSet};

use kernel_abi::Shape;
use simt_ir::{Block, Cfg, Def, DomTree, Function, Inst, IntBinary, Op, Target, Terminator, Type, Value};

use self::lanes::{Bound, Comparison, DEPTH, Kind, Lanes, may_bound};
use crate::disjoint::Bits;
use crate::facts::Facts;
use crate::rejoined::{self, Rejoined};
use crate::reroll::{self, Whose};
use crate::rows::{self, InRow};
use crate::{LoopId, Loops, cancel, guards, lcssa, normalize, prepare};

/// The most instructions that are there twice.
const MOST: usize = 600;

/// The most for each access that becomes regular.
const FOR_EACH: usize = 64;

/// The most results of a part that are kept for what they are used for afterwards.
const PASSED: usize = 12;

/// How many sums are followed to find a term.
const TERMS: u32 = 4;

/// A kernel that goes another way where indices stay within bounds, if that makes accesses regular. Its calls have been inlined.
pub fn split(kernel: &Function, shape: &Shape) -> Option<Function> {
    let mut insts = kernel.blocks().flat_map(|block| &kernel.block(block).insts);
    let bounds = |inst: &Inst| may_bound(kernel, *inst) || rows::may_divide(kernel, *inst);
    if !rejoined::may_have(kernel) && !guards::may_have(kernel) && !insts.any(bounds) {
        return None;
    }
    let mut func = kernel.clone();
    prepare::straighten_out(&mut func, shape);
    let is_rolled = reroll::reroll(&mut func, Whose::OfWarps);
    prepare::isolate_barriers(&mut func);
    normalize::normalize(&mut func, true).ok()?;
    let is_straightened = guards::straighten(&mut func);
    again::compute(&mut func);
    rows::gather(&mut func);
    // Nothing uses what this adds until a part does, so it comes after what removes that.
    let around = once_around(&mut func);
    let in_row = rows::find(&mut func, |inst| around.contains_key(&inst));
    cancel::cancel(&mut func);
    let cfg = Cfg::new(&func);
    let dom = DomTree::new(&cfg);
    let loops = Loops::new(&cfg, &dom, func.blocks().len()).ok()?;
    lcssa::close_loops(&mut func, &cfg, &dom, &loops);
    let rejoined = rejoined::find(&mut func, &cfg, &dom, &loops);
    let search = Search {
        func: &func,
        cfg: &cfg,
        dom: &dom,
        loops: &loops,
        shape,
        around: &around,
        in_row: &in_row,
        rejoined: &rejoined,
    };
    let parts = search.parts();
    for part in &parts {
        part.divide(&mut func);
    }
    (is_rolled || is_straightened || !parts.is_empty()).then_some(func)
}

/// Remainders of what has the divisor added, as `(x + width - 1) % width`: so that nothing is divided that is below zero. It is usually taken off again. After: the
/// kernel computes what is left then.
fn once_around(func: &mut Function) -> HashMap<Inst, Value> {
    let mut found = HashMap::new();
    for block in func.blocks() {
        for inst in func.block(block).insts.clone() {
            let data = func.inst(inst);
            let (&[dividend, divisor], loc) = (&data.args[..], data.loc) else { continue };
            let is_rest = matches!(data.op, Op::Int(IntBinary::RemS | IntBinary::RemU));
            if !is_rest || !has_term(func, dividend, divisor, TERMS) {
                continue;
            }
            let ty = func.ty(dividend);
            let insts = &func.block(block).insts;
            let at = insts.iter().position(|other| *other == inst).expect("it is in its block");
            let less = func.insert(block, at, Op::Int(IntBinary::Sub), vec![dividend, divisor], ty, loc);
            found.insert(inst, less);
        }
    }
    found
}

/// Whether a value is a sum with this term, and not a multiple of it.
fn has_term(func: &Function, sum: Value, term: Value, depth: u32) -> bool {
    let Some(data) = func.def_inst(sum).filter(|_| depth > 0) else { return false };
    data.op == Op::Int(IntBinary::Add)
        && data.args.iter().any(|arg| *arg == term || has_term(func, *arg, term, depth - 1))
}

/// Instructions that are to be there twice, from a place in a block on.
struct Part {
    block: Block,
    at: usize,
    bounds: Vec<Bound>,
    /// Where the ways join again in the block; if they do not, they include other blocks.
    end: Option<usize>,
    /// The other blocks, in an order in which definitions come before uses.
    others: Vec<Block>,
}

struct Search<'a> {
    func: &'a Function,
    cfg: &'a Cfg,
    dom: &'a DomTree,
    loops: &'a Loops,
    shape: &'a Shape,
    /// What [`once_around`] found.
    around: &'a HashMap<Inst, Value>,
    /// What [`rows::find`] found.
    in_row: &'a HashMap<Inst, InRow>,
    /// What [`rejoined::find`] found.
    rejoined: &'a HashMap<Value, Rejoined>,
}

impl Search<'_> {
    fn parts(&self) -> Vec<Part> {
        let mut taken: HashSet<Block> = HashSet::new();
        let mut parts = Vec::new();
        for &block in self.cfg.order() {
            if taken.contains(&block) {
                continue;
            }
            if let Some(part) = self.part(block) {
                taken.extend(part.others.iter().copied().chain([block]));
                parts.push(part);
            }
        }
        parts
    }

    fn part(&self, block: Block) -> Option<Part> {
        let insts = &self.func.block(block).insts;
        let mut lanes = Lanes::new(self);
        let mut bounds: Vec<Bound> = Vec::new();
        for param in &self.func.block(block).params {
            if let Some(bound) = lanes.rejoined(*param) {
                lanes.keep(&bound);
                bounds.push(bound);
            }
        }
        let (mut at, mut early) = (0, Early::new(self.func, insts));
        for (position, &inst) in insts.iter().enumerate() {
            let Some(bound) = lanes.bound(inst) else { continue };
            if bounds.is_empty() {
                (at, early) = (position, Early::new(self.func, &insts[position..]));
            }
            if bound.tests.iter().all(|(_, a, b)| early.is(*a, DEPTH) && b.is_none_or(|b| early.is(b, DEPTH)))
            {
                lanes.keep(&bound);
                bounds.push(bound);
            }
        }
        if bounds.is_empty() {
            return None;
        }
        let others = self.others(block);
        let in_step = self.in_step(&mut lanes, &others);
        let mut is_regular = |inst: &Inst| {
            let data = self.func.inst(*inst);
            lanes::is_access(&data.op)
                && (in_step.contains(inst) || lanes.is_bounded(data.args[0], DEPTH))
                && lanes.kind(data.args[0]) != Kind::Any
        };
        let meet = |inst: &Inst| self.func.inst(*inst).op.is_convergent();
        let here = &insts[at..];
        let here = &here[..here.iter().position(meet).unwrap_or(here.len())];
        let regular = here.iter().filter(|inst| is_regular(inst)).count();
        let last = here.iter().rposition(&mut is_regular);
        let elsewhere: Vec<Inst> =
            others.iter().flat_map(|other| &self.func.block(*other).insts).copied().collect();
        let regular_elsewhere = elsewhere.iter().filter(|inst| is_regular(inst)).count();
        let pays = |count: usize, regular: usize| regular > 0 && count <= MOST.min(FOR_EACH * regular);
        let together = insts[at..].iter().chain(&elsewhere).any(meet);
        if regular_elsewhere > 0
            && !together
            && pays(insts.len() - at + elsewhere.len(), regular + regular_elsewhere)
        {
            return Some(Part { block, at, bounds, end: None, others });
        }
        let end = at + last? + 1;
        bounds.retain(|bound| bound.is_of(self.func, &insts[at..end]));
        pays(end - at, regular).then_some(Part { block, at, bounds, end: Some(end), others: Vec::new() })
    }

    /// Whether the lanes of a row may differ in higher bits than those that tell one from another.
    fn may_carry(&self, number: Value) -> bool {
        let facts = || Facts::new(self.func, self.cfg, self.dom, self.shape);
        // They are multiples of this, and as many times it from each other as there are others between.
        let step = Bits::new(self.func, facts()).of(number).trailing_zeros();
        facts().base_low(number).trailing_zeros() < step + self.shape.row_lanes().trailing_zeros()
    }

    /// What is in loops that lanes may leave one by one, and leave together if nothing leaves its bounds: how often they run follows from what is bounded.
    fn in_step(&self, lanes: &mut Lanes<'_>, blocks: &[Block]) -> HashSet<Inst> {
        let mut steady: HashMap<LoopId, bool> = HashMap::new();
        let mut found = HashSet::new();
        for &block in blocks {
            let Some(id) = self.loops.innermost(block) else { continue };
            let is_steady = *steady.entry(id).or_insert_with(|| {
                let exits = rejoined::exits(self.func, self.cfg, self.loops, id);
                blocks.contains(&self.loops.get(id).header)
                    && !exits.is_empty()
                    && exits.iter().all(|exit| lanes.kind(*exit) == Kind::Same)
                    && exits.iter().any(|exit| lanes.follows(*exit))
            });
            if is_steady {
                found.extend(&self.func.block(block).insts);
            }
        }
        found
    }

    /// The other blocks that control comes to only through this one, in the same loop.
    fn others(&self, block: Block) -> Vec<Block> {
        let around = self.loops.innermost(block);
        let is_own = |other: &Block| {
            *other != block
                && self.dom.dominates(block, *other)
                && around.is_none_or(|id| self.loops.contains(id, *other))
                && !matches!(self.func.block(*other).term, Terminator::Return(_))
        };
        self.cfg.order().iter().copied().filter(is_own).collect()
    }
}

/// What can be had before these instructions of a block.
struct Early<'a> {
    func: &'a Function,
    own: HashSet<Inst>,
    known: HashMap<Value, bool>,
}

impl<'a> Early<'a> {
    fn new(func: &'a Function, own: &[Inst]) -> Early<'a> {
        Early { func, own: own.iter().copied().collect(), known: HashMap::new() }
    }

    /// Whether a value is from before, or computed from such.
    fn is(&mut self, value: Value, depth: u32) -> bool {
        let Def::Result(inst, _) = self.func.def(value) else { return true };
        if !self.own.contains(&inst) {
            return true;
        }
        if let Some(known) = self.known.get(&value) {
            return *known;
        }
        let data = self.func.inst(inst);
        let is = depth > 0 && data.op.is_pure() && data.args.iter().all(|arg| self.is(*arg, depth - 1));
        self.known.insert(value, is);
        is
    }
}

impl Part {
    /// Puts the test before the part, and a copy for where it holds beside it.
    fn divide(&self, func: &mut Function) {
        let after = self.end.map(|end| func.split_block(self.block, end));
        let rest = func.split_block(self.block, self.at);
        let loc = func.inst(func.block(rest).insts[0]).loc;
        if let Some(after) = after {
            sink(func, rest, after, &self.bounds);
            func.block_mut(rest).term = Terminator::Jump(Target::new(after));
            guards::pass_on(func, &[rest], after);
        }
        let is_left = |bound: &&Bound| bound.is_of(func, &func.block(rest).insts);
        let bounds: Vec<&Bound> = self.bounds.iter().filter(is_left).collect();
        let make = |func: &mut Function, op, args, ty| func.append_value(self.block, op, args, ty, loc);
        let mut holds = None;
        let mut made: HashSet<Comparison> = HashSet::new();
        for &(cmp, a, b) in bounds.iter().flat_map(|bound| &bound.tests) {
            if !made.insert((cmp, a, b)) {
                continue;
            }
            [Some(a), b].into_iter().flatten().for_each(|value| bring_forward(func, rest, self.block, value));
            let b = b.unwrap_or_else(|| make(func, Op::Const(0), vec![], func.ty(a)));
            let test = make(func, Op::IntCmp(cmp), vec![a, b], Type::Pred);
            holds = Some(match holds {
                None => test,
                Some(holds) => make(func, Op::Int(IntBinary::And), vec![holds, test], Type::Pred),
            });
        }
        let holds = holds.expect("a part has bounds, and each a test");
        let cond = make(func, Op::Unanimous, vec![holds], Type::Pred);
        let copy = self.copied(func, rest);
        let (then, otherwise) = (Target::new(copy), Target::new(rest));
        let data = func.block_mut(self.block);
        data.term = Terminator::Branch { cond, then, otherwise, uniform: false };
        data.term_loc = loc;
    }

    /// Copies the part, without bounds; the copy of its first block.
    fn copied(&self, func: &mut Function, rest: Block) -> Block {
        let usual: HashMap<Value, Value> =
            self.bounds.iter().map(|bound| (bound.result, bound.usual)).collect();
        let originals: Vec<Block> = [rest].into_iter().chain(self.others.iter().copied()).collect();
        let copies: HashMap<Block, Block> =
            originals.iter().map(|block| (*block, func.add_block())).collect();
        let mut values: HashMap<Value, Value> = HashMap::new();
        let mut insts = Vec::new();
        for original in &originals {
            let copy = copies[original];
            for param in func.block(*original).params.clone() {
                values.insert(param, func.add_param(copy, func.ty(param)));
            }
            for inst in func.block(*original).insts.clone() {
                if func.inst(inst).results.iter().any(|result| usual.contains_key(result)) {
                    continue;
                }
                insts.push(func.append_copy(copy, inst, &mut values));
            }
        }
        let mapped = |mut value: Value| {
            while let Some(bounded) = usual.get(&value) {
                value = *bounded;
            }
            values.get(&value).copied().unwrap_or(value)
        };
        for inst in insts {
            func.inst_mut(inst).args.iter_mut().for_each(|arg| *arg = mapped(*arg));
        }
        for original in &originals {
            let data = func.block(*original);
            let (mut term, loc) = (data.term.clone(), data.term_loc);
            term.map_uses(mapped);
            for target in term.targets_mut() {
                target.block = copies.get(&target.block).copied().unwrap_or(target.block);
            }
            let data = func.block_mut(copies[original]);
            (data.term, data.term_loc) = (term, loc);
        }
        copies[&rest]
    }
}

/// Moves to the beginning of the next block what is computed beside accesses and what else is needed, unless that leaves many results for it.
fn sink(func: &mut Function, from: Block, to: Block, bounds: &[Bound]) {
    let bounds: HashMap<Value, &Bound> = bounds.iter().map(|bound| (bound.result, bound)).collect();
    let mut needed: HashSet<Value> = HashSet::new();
    let (mut kept, mut moved) = (Vec::new(), Vec::new());
    for &inst in func.block(from).insts.iter().rev() {
        let data = func.inst(inst);
        if data.op.is_pure() && !data.results.iter().any(|result| needed.contains(result)) {
            moved.push(inst);
        } else {
            needed.extend(&data.args);
            let bounds = data.results.iter().filter_map(|result| bounds.get(result));
            needed.extend(bounds.flat_map(|bound| bound.takes()));
            kept.push(inst);
        }
    }
    let results: HashSet<Value> = kept.iter().flat_map(|inst| &func.inst(*inst).results).copied().collect();
    let used: HashSet<Value> = moved.iter().flat_map(|inst| &func.inst(*inst).args).copied().collect();
    if used.intersection(&results).count() > PASSED {
        return;
    }
    kept.reverse();
    moved.reverse();
    func.block_mut(from).insts = kept;
    func.block_mut(to).insts.splice(0..0, moved);
}

/// Moves what computes a value from one block to the end of another.
pub(crate) fn bring_forward(func: &mut Function, from: Block, to: Block, value: Value) {
    let Def::Result(inst, _) = func.def(value) else { return };
    if !func.block(from).insts.contains(&inst) {
        return;
    }
    for arg in func.inst(inst).args.clone() {
        bring_forward(func, from, to, arg);
    }
    func.block_mut(from).insts.retain(|other| *other != inst);
    func.block_mut(to).insts.push(inst);
}

#[cfg(test)]
mod tests;
